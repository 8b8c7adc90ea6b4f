"""`tamis.dedup` with windows: rows that were seen lately are dropped."""

import warnings
from datetime import datetime, timedelta, timezone

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tamis

UTC = timezone.utc
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def hours(*numbers):
    return [NOON + timedelta(hours=number) for number in numbers]


ROWS = {"key": ["a", "b", "a", None, "a", "b"], "time": hours(0, 1, 24, 24, 28, 29), "row": [0, 1, 2, 3, 4, 5]}
STAY = [0, 1, 3, 4, 5]


def frames():
    yield "pandas", pd.DataFrame(ROWS)
    yield "polars", pl.DataFrame(ROWS)
    yield "pyarrow", pa.table(ROWS)
    yield "lazy", pl.LazyFrame(ROWS)
    yield "reader", lambda: pa.table(ROWS).to_reader(max_chunksize=2)


def rows_of(frame):
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, pa.RecordBatchReader):
        frame = frame.read_all()
    rows = frame["row"]
    return rows.to_pylist() if isinstance(frame, pa.Table) else rows.to_list()


@pytest.mark.parametrize("frame", [pytest.param(frame, id=name) for name, frame in frames()])
def test_rows_are_judged_at_their_times(frame):
    made = frame() if callable(frame) else frame
    window = tamis.Window(1000, 1e-9, within="24h")
    result = tamis.dedup(made, "key", filter=window, at="time")
    assert type(result) is type(made) and rows_of(result) == STAY
    assert len(window) >= 2 and window.latest == NOON + timedelta(hours=29)
    made = frame() if callable(frame) else frame
    assert rows_of(tamis.dedup(made, "key", at="time", within=timedelta(hours=24), n=6)) == STAY
    made = frame() if callable(frame) else frame
    assert rows_of(tamis.dedup(made, "key", at="time", quiet="24h", n=6)) == [0, 1, 3, 5]
    made = frame() if callable(frame) else frame
    assert rows_of(tamis.dedup(made, "key", last=6)) == [0, 1, 3]


def test_rows_are_as_if_added_one_by_one():
    count = 50_000
    keys = [f"key {i * 7919 % 3000}" for i in range(count)]
    seconds = [i // 50 - (i % 11 == 0) * 30 for i in range(count)]
    loop = tamis.Window(count, 1e-9, within="60s")
    expected = [i for i in range(count) if loop.add(keys[i], at=seconds[i])]
    window = tamis.Window(count, 1e-9, within="60s")
    frame = pa.table({"key": keys, "at": pa.array(seconds).cast(pa.timestamp("s")), "row": range(count)})
    assert rows_of(tamis.dedup(frame, "key", filter=window, at="at")) == expected
    assert window == loop


def test_without_a_column_it_is_the_clock():
    window = tamis.Window(1000, 1e-9, within="24h")
    frame = pd.DataFrame(ROWS)
    assert rows_of(tamis.dedup(frame, "key", filter=window)) == [0, 1, 3]
    assert rows_of(tamis.dedup(frame, "key", filter=window)) == [3] and "a" in window
    assert abs(window.latest - datetime.now(UTC)) < timedelta(minutes=5)
    # One time for all, or other times than those of the frame.
    window.clear()
    assert rows_of(tamis.dedup(frame, "key", filter=window, at=NOON)) == [0, 1, 3] and window.latest == NOON
    window.clear()
    assert rows_of(tamis.dedup(frame, "key", filter=window, at=frame["time"])) == STAY


def test_several_columns_and_functions():
    frame = pd.DataFrame({"user": [1, 1, 2, 1], "item": ["x", "y", "x", "x"], "at": hours(0, 1, 2, 3), "row": range(4)})
    window = tamis.Window(1000, 1e-9, within="7d")
    assert rows_of(tamis.dedup(frame, ["user", "item"], filter=window, at="at")) == [0, 1, 2]
    assert window.contains((1, "x"), at=NOON)
    upper = tamis.Window(1000, 1e-9, within="7d", hash_func=str.upper)
    frame = pd.DataFrame({"key": ["a", "A", None, "b"], "at": hours(0, 1, 2, 3), "row": range(4)})
    assert rows_of(tamis.dedup(frame, "key", filter=upper, at="at")) == [0, 2, 3]


def test_times_of_the_future_do_not_move_the_window():
    frame = pd.DataFrame({"key": ["a", "typo", "a", "b"], "at": hours(0, 0, 1, 2), "row": range(4)})
    frame.loc[1, "at"] = pd.Timestamp("2099-01-31", tz="UTC")
    window = tamis.Window(1000, 1e-9, within="24h")
    with pytest.warns(UserWarning, match="^1 rows have times of the future"):
        assert rows_of(tamis.dedup(frame, "key", filter=window, at="at")) == [0, 1, 3]
    assert window.latest == NOON + timedelta(hours=2) and window.contains("typo", at=NOON)
    # Before any other time, it is the first that follows.
    frame = frame.iloc[[1, 0, 2, 3]]
    with pytest.warns(UserWarning, match="^1 rows have times of the future"):
        assert rows_of(tamis.dedup(frame, "key", at="at", within="24h")) == [1, 0, 3]
    frame = frame.iloc[[1, 0, 2, 3]]
    # Of an empty window it is now.
    window.clear()
    with pytest.warns(UserWarning, match="future"):
        tamis.dedup(frame.iloc[1:2], "key", filter=window, at="at")
    assert abs(window.latest - datetime.now(UTC)) < timedelta(minutes=5)


def test_rows_that_are_too_old_stay_and_are_counted():
    frame = pd.DataFrame({"key": ["a", "old", "old", "late", "late"], "at": hours(0, -30, -29, -20, -20), "row": range(5)})
    window = tamis.Window(1000, 1e-9, within="24h")
    with pytest.warns(UserWarning, match="^2 rows are older than the window"):
        assert rows_of(tamis.dedup(frame, "key", filter=window, at="at")) == [0, 1, 2, 3]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ordered = frame.sort_values("at")
        assert rows_of(tamis.dedup(ordered, "key", at="at", within="24h")) == [1, 3, 0]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_missing_time_adds_nothing(make):
    frame = make({"key": ["a", "b", "c"], "at": [NOON, NOON, None], "row": [0, 1, 2]})
    window = tamis.Window(1000, within="24h")
    with pytest.raises(tamis.ParameterError, match="got none at position 2"):
        tamis.dedup(frame, "key", filter=window, at="at")
    assert len(window) == 0


def test_bad_arguments():
    frame, window = pd.DataFrame(ROWS), tamis.Window(1000, within="24h")
    for arguments, error, text in (
        ({}, TypeError, "filter: expected a Filter or a RedisFilter; or p, within, quiet or last"),
        ({"filter": window, "within": "24h"}, ValueError, "it has its own"),
        ({"filter": window, "n": 5}, ValueError, "it has its own"),
        ({"filter": tamis.Filter(1000), "at": "time"}, ValueError, "at: expected a Window as the filter"),
        ({"filter": window, "at": "nothing"}, ValueError, "at: expected columns of the frame"),
        ({"filter": window, "at": "key"}, TypeError, "at: expected"),
        ({"filter": window, "at": [NOON]}, ValueError, "a time for each of 6 rows, got 1"),
        ({"filter": 5}, TypeError, "filter: expected a Filter"),
        ({"within": 0}, ValueError, "above 0"),
    ):
        with pytest.raises(error, match=text) as raised:
            tamis.dedup(frame, "key", **arguments)
        assert isinstance(raised.value, tamis.TamisError)
    # Now, and not when it is collected.
    with pytest.raises(tamis.ParameterError, match="above 0"):
        tamis.dedup(pl.LazyFrame(ROWS), "key", within=0)
    with pytest.raises(tamis.ParameterError, match="at: expected a column of the frame"):
        tamis.dedup(pl.LazyFrame(ROWS), "key", filter=window, at="nothing")
    window.save("window.tamis")
    with pytest.raises(tamis.ReadOnlyError):
        tamis.dedup(frame, "key", filter=tamis.Window.open("window.tamis"), at="time")
    assert len(window) == 0
    assert rows_of(tamis.dedup(frame.iloc[:0], "key", at="time", within="24h")) == []


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_a_window_over_a_lazy_frame_goes_by_the_order_of_its_rows(engine):
    count = 200_000
    frame = pl.DataFrame({"key": [i * 7919 % 30_011 for i in range(count)], "row": range(count)})
    frame = frame.with_columns(at=pl.lit(NOON) + pl.duration(seconds=pl.col("row")))
    one_by_one = tamis.Window(count, 1e-12, within="24h")
    keys = zip(frame["key"], frame["at"])
    stay = [row for row, (key, at) in enumerate(keys) if one_by_one.add(key, at=at)]
    assert 30_011 < len(stay) < count
    left = tamis.dedup(frame.lazy().filter(pl.col("row") >= 0), "key", at="at", within="24h", p=1e-12)
    for _ in range(2):
        assert left.collect(engine=engine)["row"].to_list() == stay
    window = tamis.Window(count, 1e-12, within="24h")
    left = tamis.dedup(frame.lazy(), "key", at="at", filter=window)
    assert left.collect(engine=engine)["row"].to_list() == stay and window.latest == one_by_one.latest
