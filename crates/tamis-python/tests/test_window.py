"""`tamis.Window`: never a false "no" within the window, none remembered beyond it and its band.

How times are given is in test_window_times.py, frames are in test_window_frames.py."""

import copy
import multiprocessing
import os
import pathlib
import pickle
import random
import threading
import warnings
from datetime import datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest
import workers

import tamis

UTC = timezone.utc
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


class Oracle:
    """Exactly when each key was told new, or seen, and what may be said of it at another time."""

    def __init__(self, window):
        self.window, self.times, self.latest = window, {}, datetime.min.replace(tzinfo=UTC)

    def remembered(self, at):
        """Whether a key of this time is kept: not if it is older than the window of the latest one."""
        number = lambda time: (time - datetime(1970, 1, 1, tzinfo=UTC)) // self.window.band
        return number(at) >= number(self.latest) - round(self.window.span / self.window.band)

    def judge(self, key, at, new):
        """Checks an answer, and takes note of it."""
        if not self.remembered(at):
            assert new, f"{key} is of a time that is too old"
            return
        span, band = self.window.span, self.window.band
        known = self.times.get(key, ())
        if any(timedelta(0) <= at - time <= span and self.remembered(time) for time in known):
            assert not new, f"{key} was seen in the window"
        # What is newer is found, too; and what is older than window and band never is.
        if not any(at - time < span + band for time in known):
            self.surely_new += 1
            self.false_yes += not new
        if new or self.window.quiet:
            self.times.setdefault(key, []).append(at)
        self.latest = max(self.latest, at)

    surely_new = false_yes = 0


def events(count, seed, pace):
    """Keys and times: the same keys come again after all sorts of pauses, some events are late."""
    rng, now = random.Random(seed), NOON
    for i in range(count):
        now += timedelta(seconds=pace(rng, i))
        late = timedelta(seconds=rng.choice((0, 0, 0, 1, 20, 100)))
        yield f"key {rng.randrange(count // 10)}", now - late


PACES = {
    "steady": lambda rng, i: rng.random() * 0.1,
    "bursts": lambda rng, i: 30 if i % 500 == 0 else 0.001,
    "pauses": lambda rng, i: rng.choice((0, 0.01, 0.01, 0.1, 7.5)) if i % 2000 else 200,
}


@pytest.mark.parametrize("pace", PACES)
@pytest.mark.parametrize("meaning", ["within", "quiet"])
@pytest.mark.parametrize("generations", [1, 8, 62])
def test_against_an_oracle_with_times(pace, meaning, generations):
    window = tamis.Window(20_000, 0.001, **{meaning: timedelta(seconds=60)}, generations=generations)
    oracle = Oracle(window)
    all_events = list(events(6_000, f"{pace} {meaning}", PACES[pace]))
    for key, at in all_events[:2000]:
        assert window.remembers(at) == oracle.remembered(at)
        expected = window.contains(key, at=at) and window.remembers(at)
        new = window.add(key, at=at)
        assert new is not expected
        oracle.judge(key, at, new)
    for start in range(2000, len(all_events), 1000):
        keys, times = zip(*all_events[start : start + 1000])
        for key, at, new in zip(keys, times, window.add_many(keys, at=list(times))):
            oracle.judge(key, at, new)
    assert oracle.surely_new > 100
    assert oracle.false_yes <= 2 + 0.002 * oracle.surely_new
    assert window.latest == oracle.latest


@pytest.mark.parametrize("meaning", ["within", "quiet"])
def test_the_events_that_every_host_knows(meaning):
    window = tamis.Window(1_000, 1e-9, **{meaning: "1h"})
    lines = (pathlib.Path(__file__).resolve().parents[2] / "tamis/tests/golden/windows.tsv").read_text().splitlines()
    for line in lines:
        name, what, key, at, answer = line.split("\t")
        if name == meaning:
            ask = window.add if what == "add" else window.contains
            assert ask(key, at=int(at) / 1000) == (answer in ("new", "yes")), line


def test_the_edges_of_the_window_are_exact():
    hour, tick = timedelta(hours=1), timedelta(microseconds=1)
    window = tamis.Window(1000, 1e-9, within=8 * hour)
    start = datetime(2026, 1, 31, 8, tzinfo=UTC)        # on the grid: generations are of an hour
    assert window.band == hour and window.add("key", at=start)
    assert window.contains("key", at=start + 8 * hour)
    assert window.contains("key", at=start + 9 * hour - tick)
    assert not window.contains("key", at=start + 9 * hour)
    last = tamis.Window(1000, 1e-9, within=8 * hour)
    last.add("key", at=start + hour - tick)
    assert last.contains("key", at=start + 9 * hour - tick)
    assert not last.contains("key", at=start + 9 * hour)


def test_the_two_meanings():
    within, quiet = tamis.Window(1000, 1e-9, within=60), tamis.Window(1000, 1e-9, quiet=60)
    assert [within.add("key", at=at) for at in range(0, 200, 50)] == [True, False, True, False]
    assert [quiet.add("key", at=at) for at in range(0, 200, 50)] == [True, False, False, False]
    assert (within.quiet, quiet.quiet) == (False, True)


def test_a_window_of_the_last_keys():
    window = tamis.Window(last=1000, p=1e-9)
    assert (window.span, window.band, window.capacity, window.latest) == (1000, 125, 1000, None)
    assert all(window.add_many(range(3000), at=5))
    assert all(window.contains_many(range(2000, 3000)))
    assert not any(window.contains_many(range(3000 - 1000 - 125 - 125)))
    assert [g.start for g in window.generations][-1] <= 2000
    assert window.remembers(0) and window.remembers()
    with pytest.raises(tamis.ParameterError, match="n: expected none beside last"):
        tamis.Window(5, last=1000)
    assert tamis.Window(1000, last=1000).capacity == 1000


def test_by_the_clock():
    window = tamis.Window(1000, 1e-9, within="1h")
    now = datetime.now(UTC)
    window.add("an hour and a quarter ago", at=now - timedelta(hours=1.25))
    window.add("lately", at=now - timedelta(minutes=30))
    assert "lately" in window and "an hour and a quarter ago" not in window
    assert window.add("now") and not window.add("now") and "now" in window
    assert abs(window.latest - now) < timedelta(minutes=1)
    assert window.contains_many(["lately", "now", "never"]) == [True, True, False]
    assert window.isin(pd.Series(["lately", "never"])).tolist() == [True, False]
    assert window.add_many(["now", "later"]) == [False, True]


def test_a_clock_that_was_set_back_loses_nothing():
    window = tamis.Window(1000, 1e-9, within="1h")
    ahead = datetime.now(UTC) + timedelta(days=3)
    window.add("key", at=ahead)
    with pytest.warns(UserWarning, match="it was set back"):
        assert window.add("other")
    with pytest.warns(UserWarning, match="it was set back"):
        assert window.add_many(["other", "third"]) == [False, True]
    assert window.latest == ahead and "key" in window and "other" in window
    # Clocks of other machines may be a little ahead.
    window = tamis.Window(1000, within="1h")
    window.add("key", at=datetime.now(UTC) + timedelta(minutes=3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        window.add("other")


def test_after_a_long_pause_it_is_empty():
    window = tamis.Window(1000, 1e-9, within="1h")
    keys = [str(i) for i in range(100)]
    window.update(keys, at=NOON)
    later = NOON + timedelta(days=365)
    assert not any(window.contains_many(keys, at=later))
    assert all(window.add_many(keys, at=later)) and len(window) == 100


def test_what_is_too_old_is_new_and_not_kept():
    window = tamis.Window(1000, 1e-9, within="1h")
    window.add("key", at=NOON)
    old = NOON - timedelta(hours=2)
    assert not window.remembers(old) and window.remembers(NOON - timedelta(hours=1))
    assert window.add("old", at=old) and window.add("old", at=old) and not window.contains("old", at=NOON)
    assert window.latest == NOON


@pytest.mark.parametrize(
    "span,length",
    [
        (timedelta(days=1), 86_400),
        (90, 90),
        (0.5, 0.5),
        (np.int64(60), 60),
        ("24h", 86_400),
        ("7d", 604_800),
        ("2w", 1_209_600),
        ("90 s", 90),
        ("1.5m", 90),
        ("250ms", 0.25),
        (pd.Timedelta("1h"), 3600),
    ],
)
def test_lengths_of_time(span, length):
    for meaning in ("within", "quiet"):
        assert tamis.Window(1000, **{meaning: span}).span == timedelta(seconds=length)


def test_a_century_is_a_window():
    century = timedelta(days=36525)
    window = tamis.Window(1000, 1e-9, within=century)
    window.add("key", at=0)
    assert window.span == century and window.contains("key", at=century.total_seconds())


@pytest.mark.parametrize(
    "arguments,error,text",
    [
        ({}, TypeError, "within, quiet, last: expected one of them"),
        ({"within": 1, "quiet": 1}, ValueError, "expected one of them, got several"),
        ({"within": 0}, ValueError, "within: expected a length of time above 0, got 0"),
        ({"within": -1}, ValueError, "above 0, got -1"),
        ({"quiet": timedelta(0)}, ValueError, "quiet: expected a length of time above 0, got 0:00:00"),
        ({"within": "-5h"}, ValueError, "above 0"),
        ({"within": "5 years"}, ValueError, 'a text such as "24h"'),
        ({"within": "h"}, ValueError, 'a text such as "24h"'),
        ({"within": ""}, ValueError, 'a text such as "24h"'),
        ({"within": float("nan")}, TypeError, "within: expected"),
        ({"within": float("inf")}, ValueError, "within|window"),
        ({"within": True}, TypeError, "within: expected a timedelta"),
        ({"within": [1]}, TypeError, "within: expected a timedelta"),
        ({"within": "0.001ms"}, ValueError, "millisecond"),
        ({"within": 1, "generations": 0}, ValueError, "1 to 62"),
        ({"within": 1, "generations": 10_000}, ValueError, "1 to 62"),
        ({"within": 1, "generations": -1}, ValueError, "generations: expected"),
        ({"within": 1, "generations": "8"}, TypeError, "generations: expected"),
        ({"within": 1, "n": None}, ValueError, "n: expected how many keys"),
        ({"within": 1, "n": -1}, ValueError, "n: expected"),
        ({"within": 1, "p": 0.0}, ValueError, "rate"),
        ({"within": 1, "p": 2}, ValueError, "rate"),
        ({"last": 0, "n": None}, ValueError, "at least 1"),
        ({"last": "10", "n": None}, TypeError, "last: expected"),
        ({"within": 1, "n": 2**60}, ValueError, "keys|size|memory"),
        ({"within": 1, "hash_func": 5}, ValueError, "hash_func"),
        ({"within": 1, "seed": 1, "keyed": True}, ValueError, "seed"),
    ],
)
def test_bad_windows(arguments, error, text):
    arguments = {"n": 1000, **arguments}
    with pytest.raises(error, match=text) as raised:
        tamis.Window(**arguments)
    assert isinstance(raised.value, tamis.TamisError)
    with pytest.raises(error, match=text):
        tamis.Window.create("bad.tamis", **arguments)
    assert not os.listdir()


def test_it_is_a_filter():
    window = tamis.Window(1000, within="1h", seed=7, ignore_case=True)
    assert isinstance(window, tamis.Filter) and window.kind == "window" and not window and len(window) == 0
    window.update(["a", "b"], ["c"], at=NOON)
    assert len(window) == 3 and window.capacity == 1000 and window.p <= 0.01 and 0 < window.fill < 1
    assert window.contains("A", at=NOON) and window.contains(window.hash("b"), at=NOON)
    assert repr(window).startswith("<tamis.Window window, 3 of 1000 keys, p=0.0") and window._repr_html_()
    info = window.info()
    assert info["seed"] == 7 and info["band"] == timedelta(minutes=7.5) and info["latest"] == NOON
    assert [generation["keys"] for generation in info["generations"]] == [3]
    assert window.explain("a")["answer"] == "maybe"
    with pytest.raises(tamis.UnableError):
        window.remove("a")
    with pytest.raises(tamis.UnableError):
        window.intersection(window.copy())
    window.clear()
    assert len(window) == 0 and window.latest is None and window.span == timedelta(hours=1)
    window.close()
    for use in (lambda: window.span, lambda: window.add("a"), lambda: window.generations, lambda: window.remembers(0)):
        with pytest.raises(tamis.ClosedError):
            use()
    with pytest.raises(tamis.ParameterError, match="tamis.Window makes one"):
        tamis.Filter(1000, kind="window")


class Mine(tamis.Window):
    """A window with attributes."""


@pytest.mark.parametrize("make", [tamis.Window, Mine])
def test_copies_pickles_and_bytes(make):
    window = make(1000, 1e-9, quiet="1h", generations=5)
    times = [NOON + timedelta(minutes=minutes) for minutes in (0, 5, 7)]
    window.update(["a", "b"], at=times[:2])
    if make is Mine:
        window.note = "mine"
    others = [
        window.copy(),
        copy.copy(window),
        copy.deepcopy(window),
        *(pickle.loads(pickle.dumps(window, protocol)) for protocol in range(2, 6)),
        make.from_bytes(bytes(window)),
        make.from_buffer(bytes(window)),
        make.from_base64(window.to_base64()),
    ]
    for other in others:
        assert type(other) is make and other == window and other.quiet and other.band == timedelta(minutes=12)
        assert other.latest == times[1] and other.contains("b", at=times[1]) and len(other) == 2
    assert pickle.loads(pickle.dumps(window)).__dict__ == {"note": "mine"} if make is Mine else True
    others[0].add("c", at=times[2])
    assert not window.contains("c", at=times[2])


def test_files_open_as_what_they_are():
    window = tamis.Window(1000, 1e-9, within="1h")
    window.update(["a", "b"], at=NOON)
    window.save("window.tamis")
    tamis.Filter(1000).save("plain.tamis")
    for opened in (
        tamis.Filter.open("window.tamis"),
        tamis.Filter.load("window.tamis"),
        tamis.Filter.from_bytes(bytes(window)),
        tamis.Window.open("window.tamis"),
    ):
        assert type(opened) is tamis.Window and opened.contains("a", at=NOON) and opened == window
    with pytest.raises(tamis.ReadOnlyError):
        tamis.Window.open("window.tamis").add("c", at=NOON)
    with tamis.Filter.open("window.tamis", "r+") as shared:
        assert shared.add("c", at=NOON) and not shared.add("c", at=NOON)
    assert tamis.Window.load("window.tamis").contains("c", at=NOON)
    with pytest.raises(tamis.UnableError, match="expected a window, got a blocked filter"):
        tamis.Window.open("plain.tamis")

    class Derived(tamis.Filter):
        pass

    derived = Derived.open("window.tamis", "r+")       # by the clock
    assert type(derived) is Derived and "a" not in derived and derived.add("new") and "new" in derived
    derived.close()
    with pytest.raises(tamis.ExistsError):
        tamis.Window.create("window.tamis", 1000, within="1h")
    with tamis.Window.create("window.tamis", last=50, overwrite=True) as fresh:
        assert fresh.span >= 50 and fresh.capacity == 50 and fresh.add("a")


def test_unions_keep_ages():
    a, b = (tamis.Window(1000, 1e-9, within="1h") for _ in range(2))
    a.add("left", at=NOON)
    b.add("right", at=NOON + timedelta(minutes=30))
    both = a | b
    a |= b
    for union in (a, both, a.union(b)):
        assert type(union) is tamis.Window and union.latest == NOON + timedelta(minutes=30)
        assert union.contains_many(["left", "right"], at=NOON + timedelta(hours=1)) == [True, True]
        assert union.contains_many(["left", "right"], at=NOON + timedelta(hours=1.25)) == [False, True]
    with pytest.raises(tamis.UnlikeError):
        a |= tamis.Window(1000, 1e-9, within="2h")
    with pytest.raises(tamis.TamisError):
        tamis.Window(last=10) | tamis.Window(last=10)


def test_functions_of_ones_own_and_secrets():
    window = tamis.Window(1000, 1e-9, within="1h", hash_func=lambda event: event["id"])
    assert window.add({"id": "a"}, at=NOON) and not window.add({"id": "a", "size": 1}, at=NOON)
    assert window.add_many([{"id": "a"}, {"id": "b"}], at=[NOON, NOON]) == [False, True]
    secret = tamis.Window(1000, within="1h", key=bytes(16))
    secret.add("a", at=NOON)
    secret.save("secret.tamis")
    with pytest.raises(tamis.KeyNeededError):
        tamis.Window.open("secret.tamis")
    assert tamis.Filter.open("secret.tamis", key=bytes(16)).contains("a", at=NOON)


def test_plans():
    plan = tamis.plan(1_000_000, 0.01, within="24h")
    assert (plan.kind, plan.n) == ("window", 1_000_000) and plan.p <= 0.01
    assert plan.bytes == tamis.Window(1_000_000, 0.01, within="24h").nbytes
    assert tamis.plan(p=0.01, last=1000).n == 1000
    finer = tamis.plan(1_000_000, 0.01, quiet=timedelta(days=1), generations=24)
    assert finer.bytes > plan.bytes
    for wrong in ({"delete": True}, {"size": 1000}, {"kind": "bloom"}, {"grow": True}, {"finished": True}):
        with pytest.raises(tamis.ParameterError, match="a window is a kind of its own"):
            tamis.plan(1000, within=1, **wrong)
    with pytest.raises(tamis.ParameterError, match="n: expected"):
        tamis.plan(within="1h")


def test_a_guard_and_a_set_of_keys():
    window = tamis.Window(1000, 1e-9, within="1h")
    guard = tamis.Guard(window)
    assert guard.add("key") and guard.get("key", {"key": 1}.get) == 1 and guard.get("other", {}.get) is None
    assert "third" in window.union(["third"])


def test_threads_add_and_ask_at_once():
    window = tamis.Window(400_000, 1e-6, within="1000s")
    errors, start = [], threading.Barrier(4)

    def work(name):
        try:
            start.wait()
            for second in range(0, 200, 4):
                keys = [f"{name} {second} {i}" for i in range(100)]
                if second % 8:
                    window.update(keys, at=second)
                else:
                    window.add_many(np.array(keys), at=np.full(100, second), threads=2)
                assert window.add(f"{name} {second}", at=second)
                assert all(window.contains_many(keys, at=second))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(name,), daemon=True) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert not errors, errors
    for name in "abcd":
        for second in range(0, 200, 4):
            assert all(window.contains_many([f"{name} {second} {i}" for i in range(100)], at=1000))


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_processes_share_a_file(method):
    tamis.Window.create("shared.tamis", 100_000, 1e-6, within="1000s").close()
    with multiprocessing.get_context(method).Pool(3) as pool:
        assert sum(pool.map(workers.add_to_shared_window, "abc")) >= 1
    with tamis.Window.open("shared.tamis") as window:
        assert window.latest == datetime(1970, 1, 1, 0, 1, 40, tzinfo=UTC)
        for name in "abc":
            for second in range(0, 100, 5):
                assert all(window.contains_many([f"{name} {second} {i}" for i in range(50)], at=1000))
