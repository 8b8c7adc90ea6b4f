"""Series and frames of pandas, polars and pyarrow."""

import math
import random

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tamis
import tamis.polars

FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


def rows(frame):
    if isinstance(frame, pd.DataFrame):
        return frame["row"].tolist()
    return frame["row"].to_list() if isinstance(frame, pl.DataFrame) else frame["row"].to_pylist()


def seen(keys=(), **options):
    f = tamis.Filter(10_000, 1e-12, **options)
    f.update(keys)
    return f


def test_isin_is_of_the_callers_type():
    f = seen(["a", "b"])
    series = pd.Series(["b", None, "c"], index=[9, 9, 7], name="url")
    found = f.isin(series)
    assert isinstance(found, pd.Series) and found.name == "url" and found.index.equals(series.index)
    assert found.dtype == bool and found.tolist() == [True, False, False]
    assert series[found].tolist() == ["b"]
    assert f.isin(pd.Index(["a", "x"])).tolist() == [True, False]
    found = f.isin(pl.Series("url", ["b", None]))
    assert isinstance(found, pl.Series) and found.name == "url" and found.to_list() == [True, False]
    assert isinstance(f.isin(pa.array(["b"])), pa.BooleanArray)
    chunked = pa.chunked_array([["a"], [], ["x", "b"]])
    found = f.isin(chunked)
    assert isinstance(found, pa.ChunkedArray) and [len(c) for c in found.chunks] == [1, 0, 2]
    assert found.to_pylist() == [True, False, True]
    empty = pa.chunked_array([], pa.string())
    assert f.isin(empty).to_pylist() == []
    array = f.isin(np.array(["a", "z"]), threads=2)
    assert isinstance(array, np.ndarray) and array.tolist() == [True, False]
    assert f.isin(("a", "z")) == [True, False] == f.isin(iter(["a", "z"]))


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_dedup_by_one_column(make):
    f = seen(["old"])
    frame = make({"url": ["a", "old", "a", "b", None, None], "row": list(range(6))})
    left = tamis.dedup(frame, "url", filter=f)
    assert type(left) is type(frame) and rows(left) == [0, 3, 4, 5], "rows without a key stay"
    assert rows(tamis.dedup(frame, ["url"], filter=f)) == [4, 5]
    assert rows(frame) == list(range(6))


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_dedup_by_several_columns(make):
    f = seen()
    frame = make(
        {
            "name": ["ada", "ada", "ada", None, None, None, "ad"],
            "day": [1, 1, 2, 1, None, None, 1],
            "row": list(range(7)),
        }
    )
    assert rows(tamis.dedup(frame, ["name", "day"], filter=f)) == [0, 2, 3, 4, 5, 6]
    assert rows(tamis.dedup(frame, ("name", "day"), filter=f)) == [4, 5]
    # An int column with a null is one of floats in pandas: the keys are the same.
    assert ("ada", 1) in f and (None, 1) in f and ("ad", 1) in f and ("ad", 2) not in f


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_dedup_by_all_columns_of_all_types(make):
    f = seen()
    frame = make({"f": [1.5, math.nan, 1.5, 2.0], "b": [True, False, True, True], "s": list("aaaa"), "row": [0, 0, 0, 0]})
    assert len(rows(tamis.dedup(frame, filter=f))) == 3
    assert (1.5, 1, "a", 0) in f and (2, 1, "a", 0) in f and (None, 0, "a", 0) in f
    one = make({"b": [True, False, True], "row": [0, 1, 2]})
    assert rows(tamis.dedup(one, "b", filter=seen())) == [0, 1]
    floats = make({"x": [1.5, math.nan, math.nan, 1.5], "row": [0, 1, 2, 3]})
    assert rows(tamis.dedup(floats, "x", filter=seen())) == [0, 1, 2]


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_dedup_is_drop_duplicates(make):
    random.seed(1)
    for size in (0, 1, 10, 3000):
        keys = [(random.choice("abc"), random.randrange(max(size, 1))) for _ in range(size)]
        table = {"a": [a for a, _ in keys], "b": [b for _, b in keys], "row": list(range(size))}
        if size == 0:
            table = {"a": np.array([], dtype="U1"), "b": np.array([], dtype="i8"), "row": np.array([], dtype="i8")}
        said = pd.DataFrame(table).drop_duplicates(["a", "b"])["row"].tolist()
        assert rows(tamis.dedup(make(table), ["a", "b"], filter=seen())) == said
        said = pd.DataFrame(table).drop_duplicates("b")["row"].tolist()
        assert rows(tamis.dedup(make(table), "b", filter=seen())) == said


def test_dedup_keeps_the_index():
    frame = pd.DataFrame({"url": ["a", "a", "b"]}, index=[7, 8, 9])
    assert tamis.dedup(frame, "url", filter=seen()).index.tolist() == [7, 9]
    frame = pd.DataFrame({("x", "y"): ["a", "a"], ("x", "z"): ["a", "b"]})
    assert len(tamis.dedup(frame, ("x", "y"), filter=seen())) == 1
    batch = pa.record_batch({"url": ["a", "a", "b"]})
    assert tamis.dedup(batch, "url", filter=seen()).num_rows == 2


def test_dedup_in_redis(server):
    with tamis.connect(f"redis://{server}/frames", 1000, 1e-6) as f:
        frame = pd.DataFrame({"url": ["a", "a", None]})
        assert len(tamis.dedup(frame, "url", filter=f)) == 2
        assert len(tamis.dedup(pl.from_pandas(frame), "url", filter=f)) == 1
        f.delete()


def test_mistakes_are_said():
    frame = pd.DataFrame({"url": ["a"], "when": pd.to_datetime(["2026-01-01"])})
    with pytest.raises(tamis.ParameterError, match="subset: expected columns.*nowhere"):
        tamis.dedup(frame, ["url", "nowhere"], filter=seen())
    with pytest.raises(tamis.ParameterError, match="subset"):
        tamis.dedup(frame, [], filter=seen())
    with pytest.raises(tamis.ParameterError, match="one name"):
        tamis.dedup(pd.DataFrame([["a", "b"]], columns=["x", "x"]), "x", filter=seen())
    for wrong in ([1], "a", None, pl.LazyFrame({"a": [1]}), pl.Series([1]), pd.Series([1])):
        with pytest.raises(tamis.ParameterError, match="frame: expected"):
            tamis.dedup(wrong, "url", filter=seen())
    with pytest.raises(TypeError):
        tamis.dedup(frame, "url")
    with pytest.raises(tamis.KeyTypeError):
        tamis.dedup(frame, filter=seen())


def test_polars_expressions():
    f = seen(["a", "b"])
    frame = pl.DataFrame({"url": ["a", "x", None, "b"]})
    asked = frame.with_columns(pl.col("url").tamis.isin(f).alias("seen"))
    assert asked["seen"].to_list() == [True, False, False, True]
    lazy = frame.lazy().filter(~pl.col("url").tamis.isin(f)).collect()
    assert lazy["url"].to_list() == ["x", None]
    assert frame.select(pl.col("url").tamis.isin(f)).columns == ["url"]
    grouped = frame.with_columns(g=pl.Series([1, 1, 2, 2])).group_by("g").agg(pl.col("url").tamis.isin(f).sum())
    assert sorted(grouped.rows()) == [(1, 1), (2, 1)]
    assert frame.clear().select(pl.col("url").tamis.isin(f)).height == 0
