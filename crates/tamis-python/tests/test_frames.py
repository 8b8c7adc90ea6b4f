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
    assert (1.5, True, "a", 0) in f and (2, True, "a", 0) in f and (None, False, "a", 0) in f
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
    for wrong in ([1], "a", None, pl.Series([1]), pd.Series([1]), pa.array([1])):
        with pytest.raises(tamis.ArgumentTypeError, match="frame: expected"):
            tamis.dedup(wrong, "url", filter=seen())
    with pytest.raises(tamis.ArgumentTypeError, match="filter: expected a Filter or a RedisFilter; or p, within"):
        tamis.dedup(frame, "url")
    with pytest.raises(tamis.ArgumentTypeError, match="filter: expected a Filter"):
        tamis.dedup(frame, filter=5)
    with pytest.raises(tamis.UnableError, match="fuse"):
        tamis.dedup(frame, filter=tamis.build(["a"]))
    assert len(tamis.dedup(frame, filter=seen())) == 1


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_a_call_that_fails_adds_nothing(make):
    """Or the rows that it did not return would be dropped by the next call."""
    bad = {"a": ["x", "y", "z"], "b": [1, 2, 3], "row": [0, 1, 2], "list": [[1], [2], [3]]}
    f = seen()
    for subset in (["a", "list"], ["a", "b", "list"], ["list"], None):
        with pytest.raises(tamis.KeyTypeError):
            tamis.dedup(make(bad), subset, filter=f)
    assert len(f) == 0
    frame = make({"a": ["x", "y", "z"], "row": [0, 1, 2]})
    assert rows(tamis.dedup(frame, "a", filter=f)) == [0, 1, 2]


def test_a_call_that_fails_late_adds_nothing(monkeypatch):
    objects = pd.DataFrame({"a": ["x", "y", object()], "b": ["x", "y", "z"]})
    f = seen()
    for subset in ("a", ["b", "a"]):
        with pytest.raises(tamis.KeyTypeError):
            tamis.dedup(objects, subset, filter=f)
    with pytest.raises(tamis.KeyRangeError):
        tamis.dedup(pd.DataFrame({"a": [1, 2**70]}, dtype=object), filter=f)
    assert len(f) == 0

    class Failing(pd.DataFrame):
        def __getitem__(self, key):
            if isinstance(key, np.ndarray):
                raise MemoryError
            return super().__getitem__(key)

    with pytest.raises(MemoryError):
        tamis.dedup(Failing({"a": ["x", "y"]}), "a", filter=f)
    assert len(f) == 0 and len(tamis.dedup(pd.DataFrame({"a": ["x", "y"]}), "a", filter=f)) == 2

    def failing(key):
        if key == "z":
            raise RuntimeError
        return key

    f = seen(hash_func=failing)
    with pytest.raises(RuntimeError):
        tamis.dedup(pd.DataFrame({"a": ["x", "z"]}), "a", filter=f)
    assert len(f) == 0


@pytest.mark.parametrize("kind", ["cuckoo", "counting"])
def test_duplicates_do_not_fill_a_filter(kind):
    f = tamis.Filter(300, 1e-6, kind=kind)
    frame = pd.DataFrame({"a": [f"k{i}" for i in range(300)] * 3})
    for round in range(20):
        left = tamis.dedup(frame, "a", filter=f)
        assert len(left) == (300 if round == 0 else 0)
    assert f.count("k7") == 1 and f.remove("k7") and "k7" not in f


def test_a_filter_that_is_full_takes_nothing():
    f = tamis.Filter(100, 0.01, kind="cuckoo")
    f.update(f"old{i}" for i in range(80))
    before = bytes(f)
    many = pd.DataFrame({"a": [f"new{i}" for i in range(5000)]})
    with pytest.raises(tamis.FullError):
        tamis.dedup(many, "a", filter=f)
    assert len(f) == 80 and f.contains_many([f"old{i}" for i in range(80)]) == [True] * 80
    assert bytes(f) == before or sum(f.contains_many(many["a"])) < 500
    few = many[~f.contains_many(many["a"])][:3]
    assert len(tamis.dedup(few, "a", filter=f)) == 3


def test_threads_share_out_equal_keys():
    f = tamis.Filter(100_000, 1e-12)
    frame = pd.DataFrame({"a": np.arange(20_000)})
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda _: tamis.dedup(frame, "a", filter=f), range(8)))
    assert sum(map(len, parts)) == 20_000 and len(set(pd.concat(parts)["a"])) == 20_000


def test_classes_derived_from_a_librarys():
    class Frame(pd.DataFrame):
        @property
        def _constructor(self):
            return Frame

    class Column(pd.Series):
        pass

    class Array(np.ndarray):
        pass

    class Table(pl.DataFrame):
        pass

    f = seen(["a"])
    frame = Frame({"url": ["a", "b"], "row": [0, 1]})
    left = tamis.dedup(frame, "url", filter=f)
    assert type(left) is Frame and left["row"].tolist() == [1]
    assert f.contains_many(Column(["a", None, "z"])).tolist() == [True, False, False]
    assert isinstance(f.isin(Column(["a"])), pd.Series)
    assert f.contains_many(np.array(["a", "z"]).view(Array)).tolist() == [True, False]
    assert len(tamis.dedup(Table({"url": ["a", "c"]}), "url", filter=f)) == 1
    for keys in (Column(["a"]), np.array(["a"]).view(Array)):
        assert isinstance(f.isin(keys), (pd.Series, np.ndarray))


def test_columns_whose_parts_end_elsewhere():
    table = pa.table({"a": pa.chunked_array([["x", "y"], [], ["x", None]]), "b": pa.chunked_array([[1], [2, 1, 1]])})
    f = seen()
    left = tamis.dedup(table, filter=f)
    assert left.to_pydict() == {"a": ["x", "y", None], "b": [1, 2, 1]}
    assert ("y", 2) in f and (None, 1) in f and len(f) == 3
    dictionary = pa.table({"a": pa.array(["x", "y", "x"]).dictionary_encode(), "b": [1, 1, 1]})
    assert tamis.dedup(dictionary, filter=f).num_rows == 1 and ("y", 1) in f


def test_readers_batch_by_batch():
    batches = [pa.record_batch({"a": [f"k{i % 7}" for i in range(n, n + 5)]}) for n in range(0, 50, 5)]
    taken = []

    def source():
        for batch in batches:
            taken.append(len(taken))
            yield batch

    f = seen()
    reader = tamis.dedup(pa.RecordBatchReader.from_batches(batches[0].schema, source()), "a", filter=f)
    assert isinstance(reader, pa.RecordBatchReader) and not taken and len(f) == 0
    assert reader.read_next_batch().num_rows == 5 and len(taken) == 1 and len(f) == 5
    assert reader.read_all().num_rows == 2 and len(f) == 7
    with pytest.raises(tamis.ParameterError, match="subset"):
        tamis.dedup(pa.RecordBatchReader.from_batches(batches[0].schema, batches), "b", filter=f)

    with pytest.raises(tamis.ParameterError, match="n: expected how many keys"):
        tamis.dedup(pa.RecordBatchReader.from_batches(batches[0].schema, batches), "a", p=1e-9)
    reader = tamis.dedup(pa.RecordBatchReader.from_batches(batches[0].schema, batches), "a", n=7, p=1e-9)
    assert reader.read_all().num_rows == 7


def shuffled(count, keys):
    random.seed(7)
    return pl.DataFrame({"a": [random.randrange(keys) for _ in range(count)], "b": range(count)})


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_lazy_frames_whatever_the_engine(engine):
    """The streaming engine hands batches over in any order, several at a time, and no more of them than it needs."""
    frame = shuffled(400_000, 100_000)
    first = frame.unique("a", keep="first", maintain_order=True)
    for _ in range(3):
        f = tamis.Filter(100_000, 1e-12)
        left = tamis.dedup(frame.lazy().filter(pl.col("b") >= 0), "a", filter=f)
        assert isinstance(left, pl.LazyFrame) and len(f) == 0
        assert left.collect(engine=engine).equals(first) and len(f) == len(first)
    # What follows changes neither which rows stay nor which keys are added.
    f = tamis.Filter(100_000, 1e-12)
    left = tamis.dedup(frame.lazy(), "a", filter=f)
    few = left.filter(pl.col("a") < 10).select("b").head(3).collect(engine=engine)
    assert few.equals(first.filter(pl.col("a") < 10).select("b").head(3)) and len(f) == len(first)
    with pytest.raises(tamis.ParameterError, match="subset"):
        tamis.dedup(frame.lazy(), "c", filter=f)
    # A filter for the call is made anew each time: the frame can be collected again.
    left = tamis.dedup(frame.lazy(), "a", p=1e-12)
    assert left.collect(engine=engine).equals(first) and left.collect(engine=engine).equals(first)
    left.sink_parquet("left.parquet", engine=engine)
    assert pl.read_parquet("left.parquet").equals(first)


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_dedup_without_a_filter(make):
    frame = make({"k": ["a", "b", "a", None, None], "row": list(range(5))})
    for wish in ({"p": 1e-9}, {"n": 10}, {"n": 10, "p": 1e-9}):
        assert rows(tamis.dedup(frame, "k", **wish)) == [0, 1, 3, 4]
    assert rows(tamis.dedup(make({"k": np.array([], dtype="U1"), "row": np.array([], dtype="i8")}), "k", p=0.1)) == []
    with pytest.raises(tamis.ParameterError, match="p"):
        tamis.dedup(frame, "k", p=2)
    with pytest.raises(tamis.ParameterError, match="at: expected a Window"):
        tamis.dedup(frame, "k", p=1e-9, at="row")


def test_datasets_of_hugging_face():
    import datetime as dt

    import datasets

    noon = dt.datetime(2026, 1, 31, 12, tzinfo=dt.timezone.utc)
    times = [noon + dt.timedelta(hours=hours) for hours in (0, 1, 2, 3, 30)]
    data = datasets.Dataset.from_dict({"k": ["a", "b", "a", None, "b"], "row": list(range(5)), "at": times})
    f = seen(["old"])
    left = tamis.dedup(data, "k", filter=f)
    assert type(left) is datasets.Dataset and left.features == data.features
    assert left["row"][:] == [0, 1, 3] and len(f) == 3 and len(tamis.dedup(data, "k", filter=f)) == 1
    # Rows that were picked, and formats, are those of the dataset.
    assert tamis.dedup(data.select([4, 2, 0]).with_format("numpy"), "k", p=1e-9)["row"][:].tolist() == [4, 2]
    assert tamis.dedup(data, ["k", "row"], p=1e-9)["row"][:] == [0, 1, 2, 3, 4]
    assert len(tamis.dedup(data.select_columns(["k"]), p=1e-9)) == 3
    assert tamis.dedup(data, "k", at="at", within="24h")["row"][:] == [0, 1, 3, 4]
    with pytest.raises(tamis.ParameterError, match="subset: expected columns"):
        tamis.dedup(data, "nothing", p=1e-9)
    with pytest.raises(tamis.ParameterError, match="at: expected columns"):
        tamis.dedup(data, "k", at="nothing", within="24h")
    for other in (datasets.DatasetDict({"train": data}), data.to_iterable_dataset()):
        for wish in ({"filter": f}, {"p": 0.1}):
            with pytest.raises(tamis.ArgumentTypeError, match="frame: expected .* a Dataset of datasets, .* got datasets"):
                tamis.dedup(other, "k", **wish)


def test_a_module_of_the_server_gets_the_keys_that_columns_are(server):
    # Without a module, the same by the hash.
    import datetime as dt

    with tamis.connect(f"redis://{server}/dates", 1000, 1e-6) as f:
        frame = pd.DataFrame({"day": [dt.date(2026, 1, 1), dt.date(2026, 1, 1)], "ok": [True, True]})
        assert len(tamis.dedup(frame, filter=f)) == 1
        assert ("2026-01-01", True) in f
        f.delete()


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
