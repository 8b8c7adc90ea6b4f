"""`tamis.dedup` of lists and iterators: items that were seen are dropped."""

import itertools
import math
from datetime import datetime, timedelta, timezone

import pandas as pd
import pyarrow as pa
import pytest

import tamis

NOON = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)
EVENTS = [
    {"id": id, "time": NOON + timedelta(hours=hour), "row": row}
    for row, (id, hour) in enumerate([("a", 0), ("b", 1), ("a", 24), (None, 24), ("a", 28), ("b", 29)])
]
STAY = [0, 1, 3, 4, 5]


def rows(items):
    return [item["row"] for item in items]


@pytest.mark.parametrize("make", [list, iter])
def test_items_are_keys(make):
    words = ["a", b"b", 3, "a", None, 3, math.nan, ("x", 1), ("x", 1), None]
    left = tamis.dedup(make(words[:7] + words[9:]), within="24h", n=100)
    assert isinstance(left, list) == (make is list)
    left = list(left)
    assert left[:5] == ["a", b"b", 3, None, words[6]] and left[5:] == [None]
    pairs = tamis.Filter(1000, 1e-9, values=2)
    assert list(tamis.dedup(make(words[7:9]), filter=pairs)) == [("x", 1)] and ("x", 1) in pairs
    assert list(tamis.dedup(make([]), within="24h", n=1)) == []


@pytest.mark.parametrize("make", [list, iter])
def test_dicts_are_judged_by_their_fields_at_their_times(make):
    window = tamis.Window(1000, 1e-9, within="24h")
    assert rows(tamis.dedup(make(EVENTS), "id", filter=window, at="time")) == STAY
    assert window.latest == NOON + timedelta(hours=29)
    assert rows(tamis.dedup(make(EVENTS), "id", at="time", quiet="24h", n=6)) == [0, 1, 3, 5]
    assert rows(tamis.dedup(make(EVENTS), ["id"], last=6)) == [0, 1, 3]
    assert rows(tamis.dedup(make(EVENTS), ["id", "row"], within="24h", n=6)) == [0, 1, 2, 3, 4, 5]
    assert rows(tamis.dedup(make(EVENTS), "id", at=NOON, within="24h", n=6)) == [0, 1, 3]
    # As the same rows of a frame are.
    frame = tamis.dedup(pd.DataFrame(EVENTS), "id", at="time", within="24h")
    assert frame["row"].tolist() == rows(tamis.dedup(make(EVENTS), "id", at="time", within="24h", n=6))
    with pytest.raises(tamis.ParameterError, match="frame: expected dicts that all have 'nowhere'"):
        list(tamis.dedup(make(EVENTS), "nowhere", within="24h", n=6))


def test_times_of_a_list():
    window = tamis.Window(1000, 1e-9, within="60s")
    assert tamis.dedup(["a", "a", "b", "a"], filter=window, at=[0, 60, 60, 70]) == ["a", "b", "a"]
    with pytest.raises(tamis.ParameterError, match="at: expected a time for each of 2 rows, got 1"):
        tamis.dedup(["a", "b"], filter=window, at=[0])
    with pytest.warns(UserWarning, match="1 rows are older than the window"):
        assert tamis.dedup(["b", "c"], filter=window, at=[70, 0]) == ["c"]


@pytest.mark.parametrize("make", [list, iter])
@pytest.mark.parametrize("kind", ["blocked", "counting", "cuckoo", "growing"])
def test_every_kind_of_filter_knows_its_items_once(make, kind):
    seen = tamis.Filter(1000, 1e-6, kind=kind)
    words = [str(i % 50) for i in range(500)]
    assert list(tamis.dedup(make(words), filter=seen)) == words[:50]
    assert list(tamis.dedup(make(words), filter=seen)) == [] and len(seen) == 50
    if kind in ("counting", "cuckoo"):
        assert all(seen.remove(word) for word in words[:50]) and len(seen) == 0


@pytest.mark.parametrize("make", [list, iter])
def test_a_function_makes_the_keys(make):
    seen = tamis.Window(1000, 1e-9, within="24h", hash_func=lambda event: event["id"] or "none")
    assert rows(tamis.dedup(make(EVENTS), filter=seen)) == [0, 1, 3]


def test_a_list_that_fails_adds_nothing():
    seen = tamis.Filter(1000, 1e-9)
    with pytest.raises(tamis.KeyTypeError):
        tamis.dedup(["a", "b", object()], filter=seen)
    assert len(seen) == 0 and tamis.dedup(["a", "b"], filter=seen) == ["a", "b"]


def test_an_iterator_takes_an_item_when_it_is_asked_for_one():
    taken = []

    def numbers():
        for i in itertools.count():
            taken.append(i)
            yield i // 3

    stream = tamis.dedup(numbers(), within="24h", n=1000, p=1e-9)
    assert taken == [] and next(stream) == 0 and taken == [0]
    assert list(itertools.islice(stream, 3)) == [1, 2, 3] and taken[-1] == 9

    def breaks():
        yield "a"
        raise RuntimeError("no more")

    seen = tamis.Filter(1000)
    stream = tamis.dedup(breaks(), filter=seen)
    assert next(stream) == "a" and "a" in seen
    with pytest.raises(RuntimeError, match="no more"):
        next(stream)


def test_what_is_wrong_is_said_at_once():
    with pytest.raises(tamis.ParameterError, match="n: expected how many keys there are at most"):
        tamis.dedup(iter(["a"]), within="24h")
    with pytest.raises(tamis.ArgumentTypeError, match="filter: expected a Filter or a RedisFilter"):
        tamis.dedup(["a"])
    with pytest.raises(tamis.ParameterError, match="at: expected a Window"):
        tamis.dedup(iter(["a"]), filter=tamis.Filter(10), at=0)
    with pytest.raises(tamis.UnableError):
        tamis.dedup(iter(["a"]), filter=tamis.build(["a"]))
    for no_frame in ("text", b"bytes", {"a": 1}, ("a", "b"), pa.array(["a"]), pd.Series(["a"])):
        with pytest.raises(tamis.ArgumentTypeError, match="a list or an iterator, got"):
            tamis.dedup(no_frame, filter=tamis.Filter(10))


def test_a_filter_in_redis(server):
    with tamis.connect(f"redis://{server}/items", 1000, 1e-6, within="1h") as lately:
        assert tamis.dedup(["a", None, "b", "a"], filter=lately) == ["a", None, "b"]
        assert list(tamis.dedup(iter(["b", "c", "c"]), filter=lately)) == ["c"]
