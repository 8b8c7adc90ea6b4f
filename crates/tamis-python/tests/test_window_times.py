"""Times of a `tamis.Window`, as every library gives them: the moment they stand for, and what is refused."""

import random
import subprocess
import sys
from datetime import date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tamis

UTC = timezone.utc
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
EAST = timezone(timedelta(hours=5, minutes=30))


def test_a_datetime_is_taken_to_the_microsecond():
    rng = random.Random("microseconds")
    zones = [UTC, timezone(timedelta(hours=5, minutes=30)), timezone(-timedelta(seconds=1, microseconds=7))]
    for year in [2, 1583, 1833, 1834, 1969, 1970, *range(2020, 2120, 3), 9998]:
        for zone in zones:
            day = timedelta(days=rng.randrange(365), seconds=rng.randrange(86_400))
            at = datetime(year, 1, 1, tzinfo=zone) + day + timedelta(microseconds=rng.randrange(1_000_000))
            window = tamis.Window(10, within="1h")
            assert window.add("key", at=at) and window.latest == at
            local = at.replace(tzinfo=None)
            if 1970 < year < 9998:
                window = tamis.Window(10, within="1h")
                assert window.add("key", at=local) and window.latest == local.astimezone(UTC)


def test_a_time_is_given_by_its_place_or_its_name():
    window = tamis.Window(1000, 1e-9, within="60s")
    assert window.add("a", 0) and not window.add("a", at=60) and window.add("a", **{"at": 70})
    # Without a time, and with None, it is the clock.
    assert window.add("b") and not window.add("b", None) and not window.add("b", at=None)
    assert abs(window.latest - datetime.now(UTC)) < timedelta(minutes=5)
    wrong = [((), {}), ((), {"at": 0}), ((), {"key": "a"}), (("a",), {"to": 0}), (("a", 0), {"at": 0}), (("a", 0, 0), {})]
    for arguments, named in wrong:
        with pytest.raises(TypeError, match="add: expected a key, and perhaps a time as at"):
            window.add(*arguments, **named)
    with pytest.raises(TypeError):
        tamis.Window.add("no window", "a")


TIMES = [datetime(2026, 1, 31, 12, minute, tzinfo=UTC) for minute in (0, 5, 7)]
NAIVE = [time.replace(tzinfo=None) for time in TIMES]
SECONDS = [int(time.timestamp()) for time in TIMES]


def columns():
    yield "list", TIMES
    yield "tuple", tuple(TIMES)
    yield "iterator", lambda: iter(TIMES)
    yield "list of another zone", [time.astimezone(EAST) for time in TIMES]
    yield "ints", SECONDS
    yield "floats", [float(second) for second in SECONDS]
    yield "numpy scalars", list(np.array(NAIVE, "datetime64[us]"))
    yield "pandas timestamps", [pd.Timestamp(time) for time in TIMES]
    yield "pandas naive timestamps", [pd.Timestamp(time) for time in NAIVE]
    for unit in ("m", "s", "ms", "us", "ns", "60s"):
        yield f"numpy {unit}", np.array(NAIVE, "datetime64[us]").astype(f"datetime64[{unit}]")
    yield "numpy big-endian", np.array(NAIVE, ">M8[us]")
    yield "numpy strided", np.array([time for time in NAIVE for _ in range(2)], "M8[s]")[::2]
    yield "numpy objects", np.array(TIMES, object)
    for kind in ("int64", "uint64", "int32", "float64"):
        yield f"numpy {kind}", np.array(SECONDS, kind)
    for unit in ("s", "ms", "us", "ns"):
        for zone in (None, "UTC", "Asia/Kolkata"):
            array = pa.array(TIMES, pa.timestamp(unit, tz=zone or "UTC"))
            array = array if zone else array.cast(pa.timestamp(unit))
            yield f"arrow {unit} {zone}", array
        yield f"pandas {unit}", pd.Series(NAIVE).astype(f"datetime64[{unit}]")
        yield f"pandas {unit} zone", pd.Series(TIMES).astype(f"datetime64[{unit}, Asia/Kolkata]")
        yield f"pandas arrow {unit}", pd.Series(TIMES, dtype=pd.ArrowDtype(pa.timestamp(unit, "Asia/Kolkata")))
    yield "arrow chunks", pa.chunked_array([pa.array(TIMES[:1]), pa.array(TIMES[1:])])
    yield "arrow sliced", pa.array([None, *TIMES], pa.timestamp("ms", "UTC"))[1:]
    yield "arrow table", pa.table({"time": TIMES})["time"]
    yield "arrow ints", pa.array(SECONDS)
    yield "pandas index", pd.DatetimeIndex(TIMES)
    yield "pandas Int64", pd.Series(SECONDS, dtype="Int64")
    yield "pandas objects", pd.Series(TIMES, dtype=object)
    for unit in ("ms", "us", "ns"):
        yield f"polars {unit}", pl.Series(NAIVE, dtype=pl.Datetime(unit))
        yield f"polars {unit} zone", pl.Series(TIMES, dtype=pl.Datetime(unit, "Asia/Kolkata"))
    yield "polars ints", pl.Series(SECONDS)


@pytest.mark.parametrize("at", [pytest.param(at, id=name) for name, at in columns()])
def test_times_of_every_library_unit_and_zone(at):
    at = at() if callable(at) else at
    window = tamis.Window(1000, 1e-9, within="1h")
    assert window.add_many(["a", "b", "a"], at=at) == [True, True, False]
    assert window.latest == TIMES[-1]
    # Each key is where it belongs: 12:00 is in the eighth of an hour from 12:00, and the others are, too.
    (generation,) = window.generations
    assert (generation.start, generation.keys) == (TIMES[0], 2)
    for key, time in zip("ab", TIMES):
        assert window.contains(key, at=time + timedelta(hours=1))


@pytest.mark.parametrize("days", ["arrow 32", "arrow 64", "numpy", "polars", "dates"])
def test_dates_are_their_midnights_in_utc(days):
    dates = [date(2026, 1, 30), date(2026, 1, 31)]
    at = {
        "arrow 32": pa.array(dates, pa.date32()),
        "arrow 64": pa.array(dates, pa.date64()),
        "numpy": np.array(dates, "datetime64[D]"),
        "polars": pl.Series(dates),
        "dates": dates,
    }[days]
    window = tamis.Window(1000, 1e-9, within="7d")
    window.update(["a", "b"], at=at)
    assert window.latest == datetime(2026, 1, 31, tzinfo=UTC)


def test_a_datetime_without_a_zone_is_local_time():
    program = """
import tamis, datetime
window = tamis.Window(1000, within="1h")
window.add("key", at=datetime.datetime(2026, 1, 31, 12, 0, 0, 123456))
assert window.latest.isoformat() == "2026-01-31T06:30:00.123456+00:00", window.latest
window.add("key", at=datetime.datetime(9998, 1, 31, 12, 0, 0, 999999))
assert window.latest.isoformat() == "9998-01-31T06:30:00.999999+00:00", window.latest
"""
    subprocess.run([sys.executable, "-c", program], check=True, env={"TZ": "IST-5:30"})


def test_fractions_of_a_microsecond_belong_to_it():
    window = tamis.Window(1000, within="1h")
    window.add("key", at=np.datetime64("2026-01-31T12:00:00.123456789", "ns"))
    assert window.latest == NOON.replace(microsecond=123456)
    window.add("key", at=pd.Timestamp("2026-01-31T12:00:01.123456789", tz="UTC"))
    assert window.latest == NOON.replace(second=1, microsecond=123456)
    window.add("key", at=NOON.timestamp() + 2.5)
    assert window.latest == NOON.replace(second=2, microsecond=500000)
    before_1970 = tamis.Window(1000, within="1h")
    before_1970.add("key", at=-0.5)
    assert before_1970.latest == datetime(1969, 12, 31, 23, 59, 59, 500000, tzinfo=UTC)


MISSING = [
    [TIMES[0], None, TIMES[2]],
    [SECONDS[0], float("nan"), SECONDS[2]],
    [TIMES[0], pd.NaT, TIMES[2]],
    [TIMES[0], np.datetime64("NaT"), TIMES[2]],
    np.array([NAIVE[0], None, NAIVE[2]], "datetime64[s]"),
    np.ma.array(SECONDS, mask=[0, 1, 0]),
    np.array([0.0, np.nan, 1.0]),
    pd.Series([NAIVE[0], None, NAIVE[2]]),
    pd.Series([1, None, 2], dtype="Int64"),
    pa.array([TIMES[0], None, TIMES[2]]),
    pa.chunked_array([pa.array(TIMES[:1]), pa.array([None, TIMES[2]], pa.timestamp("us", "UTC"))]),
    pl.Series([TIMES[0], None, TIMES[2]]),
]


@pytest.mark.parametrize("at", MISSING, ids=lambda at: type(at).__module__ + "." + type(at).__name__)
def test_a_missing_time_is_said_with_its_position_and_nothing_is_added(at):
    window = tamis.Window(1000, within="1h")
    for call in (window.add_many, window.contains_many, window.update):
        with pytest.raises(tamis.ParameterError, match="at: expected a time for each key, got none at position 1;"):
            call(["a", "b", "c"], at=at)
    assert len(window) == 0 and window.latest is None


@pytest.mark.parametrize(
    "at",
    ["2026-01-31", b"2026", True, [True], object(), [object()], {}, ["12:00"], timedelta(hours=1)]
    + [np.array(["2026-01-31"]), np.array([1], "timedelta64[s]"), pa.array(["x"]), pa.array([[1]]), pl.Series(["x"])]
    + [pd.Series(["x"]), pd.DataFrame({"a": [1]}), pa.array([1], pa.duration("s")), np.array([[1]]), 1j],
    ids=repr,
)
def test_what_is_no_time(at):
    window = tamis.Window(1000, within="1h")
    if not isinstance(at, dict):
        with pytest.raises(tamis.ArgumentTypeError, match="^at: expected"):
            window.add_many(["a"], at=at)
    with pytest.raises(tamis.ArgumentTypeError, match="^at: expected"):
        window.add("a", at=at)
    assert len(window) == 0


@pytest.mark.parametrize("at", [10**12, 1e300, -(10**30), float("inf"), 253402300800, -62135596801])
def test_times_beyond_the_calendar(at):
    window = tamis.Window(1000, within="1h")
    with pytest.raises(tamis.ParameterError, match="at: expected a time from the year 1 to 9999"):
        window.add("key", at=at)
    with pytest.raises(tamis.ParameterError, match="at position 1; of milliseconds"):
        window.add_many(["key", "other"], at=[0, at])
    with pytest.raises(tamis.ParameterError):
        window.contains("key", at=at)
    assert window.latest is None


def test_the_first_and_the_last_times():
    window = tamis.Window(1000, within="1h")
    first, last = (time.replace(tzinfo=UTC) for time in (datetime.min, datetime.max))
    assert window.add("first", at=first) and window.latest == first and window.generations[0].start == first
    assert window.add("last", at=last) and window.latest == last and window.generations[0].end == last
    assert window.contains("last", at=last) and not window.contains("first", at=last)


def test_a_time_for_each_key():
    window = tamis.Window(1000, within="1h")
    for keys in (["a", "b"], iter("ab"), np.array(["a", "b"]), pa.array(["a", "b"])):
        with pytest.raises(tamis.ParameterError, match="at: expected a time for each of 2 keys, got 3"):
            window.add_many(keys, at=TIMES)
    with pytest.raises(tamis.KeyTypeError):
        window.add_many(["a", None, "b"], at=TIMES)
    assert len(window) == 0
    assert window.add_many([], at=[]) == [] and window.add_many([], at=NOON) == []


@pytest.mark.parametrize("keys", [np.array, pa.array, pl.Series, pd.Series, list])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_null_key_has_a_time_and_is_not_added(keys, threads):
    window = tamis.Window(200_000, 1e-9, within="100s")
    rows = [None if i % 7 == 3 and keys is not np.array and keys is not list else f"key {i % 1000}" for i in range(100_000)]
    times = pa.array([i // 100 for i in range(100_000)])
    new = window.add_many(keys(rows), at=times, threads=threads)
    new = list(map(bool, new.to_pylist() if isinstance(new, pa.Array) else new))
    # A thousand keys come by in ten seconds; each is new every 110 seconds or so.
    told = {}
    for i, (key, is_new) in enumerate(zip(rows, new)):
        if key is None:
            assert not is_new
            continue
        age = i // 100 - told.get(key, -1000)
        assert is_new or age < 100 + 12.5 and not (is_new and age <= 100)
        if is_new:
            assert age > 100
            told[key] = i // 100
    assert len(told) == len(set(rows) - {None})


def test_answers_are_like_the_keys():
    window = tamis.Window(1000, within="1h")
    assert isinstance(window.add_many(np.array([1, 2, 3]), at=TIMES), np.ndarray)
    assert isinstance(window.add_many(pa.array([1, 2, 3]), at=TIMES), pa.BooleanArray)
    assert isinstance(window.contains_many(pl.Series([1, 2, 3]), at=TIMES), pl.Series)
    assert isinstance(window.contains_many(pd.Series([1, 2, 3]), at=TIMES), np.ndarray)
    assert window.contains_many((1, 2, 4), at=TIMES) == [True, True, False]
    told = []
    window.add_many(list(range(100_000)), at=np.zeros(100_000), progress=told.append)
    assert told[-1] == 100_000
