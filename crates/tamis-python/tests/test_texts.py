"""Dates, times, durations, decimals, UUIDs and bools: one key, whoever holds the value, and whatever casts it to text."""

import datetime as dt
import uuid
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tamis

PARIS = dt.timezone(dt.timedelta(hours=1))
STAMPS = ["2026-01-31T12:00:00", "1969-12-31T23:59:59", "0001-01-01T00:00:00", "9999-12-31T23:59:58", "2024-02-29T00:00:00"]
NAIVE = [dt.datetime.fromisoformat(text) for text in STAMPS]
FINE = [moment.replace(microsecond=us) for moment, us in zip(NAIVE, (500_000, 1, 123_456, 999_999, 100))]
DATES = [moment.date() for moment in NAIVE]
TIMES = [dt.time(0, 0), dt.time(23, 59, 59, 999_999), dt.time(12, 30, 0, 500_000), dt.time(1, 2, 3)]
SPANS = [dt.timedelta(0), dt.timedelta(hours=25, milliseconds=5), dt.timedelta(microseconds=-1), dt.timedelta(days=-2, hours=1)]
DECIMALS = [Decimal("1.50"), Decimal("0.00"), Decimal("-0.05"), Decimal("12345678901234567890.12")]
UUIDS = [uuid.UUID(int=0), uuid.UUID("2d931510-d99f-494a-8c67-87feb05e1594")]

# Values, and the texts of their keys.
TEXTS = {
    "date": (DATES, ["2026-01-31", "1969-12-31", "0001-01-01", "9999-12-31", "2024-02-29"]),
    "timestamp": (
        FINE,
        [
            "2026-01-31 12:00:00.5",
            "1969-12-31 23:59:59.000001",
            "0001-01-01 00:00:00.123456",
            "9999-12-31 23:59:58.999999",
            "2024-02-29 00:00:00.0001",
        ],
    ),
    "whole seconds": (NAIVE, [text.replace("T", " ") for text in STAMPS]),
    "moment": (
        [moment.replace(tzinfo=PARIS) for moment in FINE if moment.year > 1],
        [
            "2026-01-31 11:00:00.5+00",
            "1969-12-31 22:59:59.000001+00",
            "9999-12-31 22:59:58.999999+00",
            "2024-02-28 23:00:00.0001+00",
        ],
    ),
    "time": (TIMES, ["00:00:00", "23:59:59.999999", "12:30:00.5", "01:02:03"]),
    "duration": (SPANS, ["00:00:00", "25:00:00.005", "-00:00:00.000001", "-47:00:00"]),
    "decimal": (DECIMALS, ["1.50", "0.00", "-0.05", "12345678901234567890.12"]),
    "uuid": (UUIDS, [str(value) for value in UUIDS]),
    "bool": ([True, False], ["true", "false"]),
}


def full(keys):
    f = tamis.Filter(10_000, 1e-12)
    f.update(keys)
    return f


def columns(name, values):
    """The same values, as every library has them, with a null behind them."""
    arrow = {"uuid": pa.uuid(), "decimal": pa.decimal128(38, 2)}.get(name)
    if arrow is None or name != "uuid":
        yield pa.array([*values, None], arrow)
        yield pa.chunked_array([pa.array(values, arrow), pa.array([None], arrow or pa.array(values).type)])
        yield pa.array([*values, None], arrow).dictionary_encode() if name != "bool" else pa.array([*values, None])
    else:
        yield pa.array([value.bytes for value in values] + [None], pa.uuid())
    yield pd.Series([*values, None], dtype=object)
    yield pl.Series([*values, None], dtype=pl.Object)
    if name == "decimal":
        yield pl.Series([*values, None], dtype=pl.Decimal(38, 2))
        yield pa.array([*values, None], pa.decimal256(50, 2))
        yield pd.Series([*values, None], dtype=pd.ArrowDtype(pa.decimal128(38, 2)))
    elif name != "uuid":
        yield pl.Series([*values, None])
    if name in ("timestamp", "whole seconds"):
        yield pd.Series([*values, None], dtype="datetime64[us]")
        yield pd.Index(np.array([*values, None], dtype="M8[us]"))
        yield np.array([*values, "NaT"], dtype="M8[us]")
        yield np.array([*values, "NaT"], dtype=">M8[us]")
        yield pd.Series(np.array([*values, "NaT"], dtype="M8[us]")).astype("category")
    if name == "whole seconds":
        for unit in ("s", "ms"):
            yield np.array([*values, "NaT"], dtype=f"M8[{unit}]")
            yield pa.array([*values, None], pa.timestamp(unit))
    if name == "moment":
        yield pd.Series([*values, None]).dt.tz_convert("Asia/Tokyo")
        yield pa.array([*values, None], pa.timestamp("us", "America/New_York"))
        yield pl.Series([*values, None]).dt.convert_time_zone("Asia/Kolkata")
    if name == "date":
        yield np.array([*values, "NaT"], dtype="M8[D]")
        yield pa.array([*values, None], pa.date64())
    if name == "time":
        yield pa.array([*values, None], pa.time64("ns"))
    if name == "duration":
        yield np.array([*values, "NaT"], dtype="m8[us]")
        yield pd.Series(np.array([*values, "NaT"], dtype="m8[us]"))
        yield pa.array([*values, None], pa.duration("ns"))
    if name == "bool":
        yield pd.Series([*values, None], dtype="boolean")
        yield np.ma.masked_array([*values, True], mask=[False] * len(values) + [True])


@pytest.mark.parametrize("name", TEXTS)
def test_one_key_in_every_library(name):
    values, texts = TEXTS[name]
    wanted = [True] * len(values) + [False]
    by_text, by_value = full(texts), full(values)
    assert by_text == by_value, "a value's key is its text"
    assert all(value in by_text for value in values)
    for column in columns(name, values):
        kind = f"{type(column).__module__} {getattr(column, 'dtype', getattr(column, 'type', ''))}"
        assert [bool(found) for found in pa.array(by_text.contains_many(column)).to_pylist()] == wanted, kind
        made = tamis.Filter(10_000, 1e-12)
        assert [bool(new) for new in pa.array(made.add_many(column)).to_pylist()] == wanted, kind
        assert made == by_text, kind
        made = tamis.Filter(10_000, 1e-12)
        made.update(column, threads=2)
        assert made == by_text, kind


@pytest.mark.parametrize("name", TEXTS)
def test_in_tuples_and_frames_it_is_the_same_key(name):
    values, texts = TEXTS[name]
    pairs = full([(text, 1) for text in texts])
    assert all((value, 1) in pairs for value in values)
    frames = [pd.DataFrame({"v": pd.Series(values, dtype=object), "one": 1})]
    if name != "uuid":
        column = pa.array(values, pa.decimal128(38, 2) if name == "decimal" else None)
        table = pa.table({"v": column, "one": pa.array([1] * len(values))})
        frames += [table, pl.from_arrow(table), table.to_pandas(), table.to_pandas(types_mapper=pd.ArrowDtype)]
    for frame in frames:
        assert len(tamis.dedup(frame, filter=full([(text, 1) for text in texts]))) == 0, type(frame)
        made = tamis.Filter(10_000, 1e-12)
        assert len(tamis.dedup(frame, filter=made)) == len(values)
        assert made == pairs, type(frame)


@pytest.mark.parametrize("name", TEXTS)
def test_duckdb_casts_to_the_same_text(name):
    duckdb = pytest.importorskip("duckdb")
    values, texts = TEXTS[name]
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    # What DuckDB has no number for.
    values = [value for value in values if not (name == "uuid")] or [str(value) for value in values]
    column = pa.array(values, pa.decimal128(38, 2) if name == "decimal" else None)
    given = pa.table({"v": column})
    cast = "v::UUID::VARCHAR" if name == "uuid" else "v::VARCHAR"
    assert [row for (row,) in connection.sql(f"SELECT {cast} FROM given").fetchall()] == texts
    if name == "duration":
        return  # It has intervals of months, days and nanoseconds instead.
    # And its own Arrow is the same key.
    result = connection.sql("SELECT v FROM given")
    assert all(full(texts).contains_many(getattr(result, "to_arrow_table", result.arrow)()["v"]).to_pylist())


def test_the_command_finds_them(command, tmp_path):
    f = tamis.Filter(1000, 1e-9)
    f.update(pd.Series(pd.to_datetime(["2026-01-31 12:00:00", "2026-01-31 12:00:00.25"], format="ISO8601")))
    f.update(pa.array([dt.date(2026, 2, 1)]))
    f.update(pa.array([Decimal("12.50")]))
    f.add(True)
    f.save(tmp_path / "f.tamis")
    lines = b"2026-01-31 12:00:00\n2026-01-31 12:00:00.25\n2026-02-01\n12.50\ntrue\n"
    assert command("check", tmp_path / "f.tamis", input=lines + b"12.5\n") == lines


def test_nanoseconds_and_more():
    nanos = np.array(["2026-01-31T12:00:00.000000001", "1969-12-31T23:59:59.999999999", "NaT"], dtype="M8[ns]")
    f = full(["2026-01-31 12:00:00.000000001", "1969-12-31 23:59:59.999999999"])
    for column in (nanos, pd.Series(nanos), pa.array(nanos), pl.Series(nanos), pd.Series(nanos).astype(object)):
        assert pa.array(f.contains_many(column)).to_pylist() == [True, True, False], type(column)
    assert nanos[0] in f and pd.Timestamp(nanos[1]) in f and pd.Timestamp(nanos[1], tz="UTC") not in f
    f = full(["25:00:00.000000001"])
    assert pd.Timedelta(hours=25, nanoseconds=1) in f and np.timedelta64(90_000 * 10**9 + 1, "ns") in f
    # Coarser and finer units of numpy are the same moment.
    f = full(["2026-01-01 00:00:00", "2026-01-01", "49:00:00"])
    for unit in ("h", "m", "s", "ms", "us", "ns", "30m"):
        assert np.datetime64("2026-01-01T00:00:00").astype(f"M8[{unit}]") in f, unit
        assert f.contains_many(np.array([49 * 60], dtype="m8[m]").astype(f"m8[{unit}]")).tolist() == [True]
    for unit in ("D", "M", "Y"):
        assert f.contains_many(np.array(["2026-01-01"], dtype=f"M8[{unit}]")).tolist() == [True], unit
    assert np.datetime64("2026-01-01", "W") in full(["2026-01-01"])
    assert np.datetime64(1, "as") in full(["1970-01-01 00:00:00.000000000000000001"])
    # Beyond what Python has.
    assert np.datetime64("-0043-03-15") in full(["0044-03-15 (BC)"])
    assert np.datetime64("12026-01-31T00:00:01") in full(["12026-01-31 00:00:01"])
    assert f.contains_many(pa.array([-(2**31), 2**31 - 1], pa.int32()).cast(pa.date32())).to_pylist() == [False] * 2


def test_decimals_of_every_width():
    widest = [Decimal("9" * 73 + ".999"), Decimal("-" + "9" * 73 + ".999")]
    texts = [format(value, "f") for value in widest]
    assert full(texts).contains_many(pa.array(widest, pa.decimal256(76, 3))).to_pylist() == [True, True]
    assert Decimal("1E+3") in full(["1000"]) and Decimal("-0.0") in full(["0.0"]) and Decimal("1.0") not in full(["1.00"])
    for kind in ("decimal32", "decimal64"):
        if hasattr(pa, kind):
            assert full(["-0.07"]).contains_many(pa.array([Decimal("-0.07")], getattr(pa, kind)(5, 2))).to_pylist() == [True]
    assert full(["500", "0"]).contains_many(pa.array([Decimal("5E+2"), Decimal(0)], pa.decimal128(3, -2))).to_pylist() == [True] * 2
    with pytest.raises(tamis.KeyRangeError, match="exponent"):
        tamis.Filter(10).add(Decimal("1E+999999"))


def test_what_stands_for_nothing_is_no_key():
    f = tamis.Filter(1000)
    for nothing in (pd.NaT, pd.NA, np.datetime64("NaT"), np.timedelta64("NaT", "s"), Decimal("NaN"), np.float16("nan"), None):
        with pytest.raises(tamis.KeyTypeError):
            f.add(nothing)
        with pytest.raises(tamis.KeyTypeError):
            f.update([nothing])
        assert f.add_many(pd.Series([nothing, "a"], dtype=object)).tolist()[0] is False
    assert len(f) == 1
    with pytest.raises(tamis.KeyTypeError, match="time zone"):
        f.add(dt.time(1, tzinfo=dt.timezone.utc))
    with pytest.raises(tamis.KeyRangeError, match="UTC"):
        f.add(dt.datetime.min.replace(tzinfo=PARIS))
    for column in (np.array([1], dtype="m8[Y]"), np.array([1j]), pa.array([[1]])):
        with pytest.raises(tamis.KeyTypeError, match="expected"):
            f.update(column)


def test_half_floats_and_periods():
    halves = np.array([1.5, -0.25, 65504, 6e-8, np.inf, np.nan, 3], dtype="f2")
    f = full([float(value) for value in halves if value == value])
    wanted = [True] * 5 + [False, True]
    for column in (halves, pa.array(halves), pd.Series(halves), pd.Series(halves.astype(object))):
        assert pa.array(f.contains_many(column)).to_pylist()[:5] == wanted[:5], type(column)
    assert f.contains_many(halves).tolist() == wanted and halves[0] in f
    months = pd.period_range("2026-01", periods=2, freq="M")
    f = full(["2026-01", "2026-02"])
    for column in (pd.Series(months), months, pd.Series(months).astype(object), list(months)):
        assert list(f.contains_many(column)) == [True, True]


def test_case_and_urls_change_nothing_of_them():
    for options in ({"ignore_case": True}, {"url": True}, {"seed": 7}, {"key": bytes(16)}):
        f = tamis.Filter(1000, 1e-9, **options)
        f.update(pa.array([dt.datetime(2026, 1, 31, 12)]))
        f.update(pa.array([True]))
        assert dt.datetime(2026, 1, 31, 12) in f and "2026-01-31 12:00:00" in f and True in f and "true" in f
        f.update(pd.Series([("Ada", dt.date(2026, 1, 31))]))
        assert ("Ada", "2026-01-31") in f
