"""Threads that add and ask at once. Nothing may get lost, and nobody waits for ever."""

import threading

import numpy as np
import pyarrow as pa
import pytest

import tamis


def together(*works):
    """Runs all at once, and raises what one of them raises."""
    errors = []
    start = threading.Barrier(len(works))

    def run(work):
        try:
            start.wait()
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
        assert not thread.is_alive(), "two threads wait for each other"
    if errors:
        raise errors[0]


IN_FILES = ["blocked", "bloom", "counting", "growing"]


@pytest.mark.parametrize(
    "kind,place",
    [(kind, "file") for kind in IN_FILES] + [(kind, "memory") for kind in [*IN_FILES, "cuckoo"]],
)
def test_adding_and_asking_at_once(kind, place):
    if place == "memory":
        f = tamis.Filter(300_000, 0.001, kind=kind)
    else:
        f = tamis.Filter.create("shared.tamis", 300_000, 0.001, kind=kind)
    per_thread = 20_000

    def singles(name):
        def work():
            for i in range(per_thread):
                key = f"{name} {i}"
                f.add(key)
                assert key in f

        return work

    def batches(name, make, **threads):
        def work():
            for start in range(0, per_thread, 2000):
                keys = make([f"{name} {i}" for i in range(start, start + 2000)])
                f.add_many(keys, **threads)
                assert all(f.contains_many(keys, **threads).tolist() if make is not list else f.contains_many(keys))

        return work

    def looks():
        for _ in range(20):
            assert 0 <= len(f) <= 200_000 and f.p_now < 0.01 and repr(f) and f.fill < 1

    together(
        singles("a"),
        singles("b"),
        batches("c", list),
        batches("d", np.array),
        batches("e", pa.array, threads=2),
        looks,
    )
    for name in "abcde":
        assert all(f.contains_many([f"{name} {i}" for i in range(per_thread)]))
    n = 5 * per_thread
    assert n * 0.995 <= len(f) <= n


def test_of_one_new_key_exactly_one_is_told_so():
    f = tamis.Filter(100_000, 1e-9)
    told = []

    def singles():
        told.extend(sum(f.add(i) for i in range(start, start + 100)) for start in range(0, 20_000, 100))

    def batches():
        told.extend(int(f.add_many(np.arange(start, start + 100)).sum()) for start in range(0, 20_000, 100))

    together(singles, batches, singles, batches)
    assert sum(told) == 20_000 == len(f)


def test_sets_of_two_filters_both_ways():
    a, b = tamis.Filter(100_000), tamis.Filter(100_000)
    a.update(range(1000))
    b.update(range(1000, 2000))

    def combine(x, y):
        def work():
            nonlocal a, b
            for i in range(100):
                x.__ior__(y)
                assert x == x and i in x | y
                x == y

        return work

    together(combine(a, b), combine(b, a), lambda: a.update(np.arange(100_000)), combine(a, a))
    assert all(a.contains_many(list(range(2000)))) and all(b.contains_many(list(range(2000))))


def test_closing_while_others_work():
    for _ in range(5):
        f = tamis.Filter.create("closing.tamis", 100_000, overwrite=True)

        def until_closed(work):
            def run():
                with pytest.raises(tamis.ClosedError):
                    while True:
                        work()

            return run

        together(
            until_closed(lambda: f.add("key")),
            until_closed(lambda: "key" in f),
            until_closed(lambda: f.add_many(np.arange(10_000), threads=2)),
            until_closed(lambda: f.contains_many([str(i) for i in range(1000)])),
            until_closed(lambda: (f.copy(), f.info(), bytes(f))),
            f.close,
        )


def test_asking_side_by_side_with_adding():
    """Single calls and a batch share the filter, and every answer is that of some order of the calls."""
    f = tamis.Filter(400_000, 1e-6)
    known = [f"known {i}" for i in range(10_000)]
    f.update(known)

    def ask():
        assert all(key in f for key in known)

    def add(name):
        return lambda: [f.add((name, i)) for i in range(10_000)]

    together(ask, ask, add("a"), add("b"), lambda: f.update(np.arange(200_000), threads=2))
    assert len(f) == 230_000


def test_a_generator_may_ask_the_filter_it_fills():
    f = tamis.Filter(1000)

    def keys():
        for i in range(100):
            assert i in f or f.add(f"seen {i}")
            yield i

    f.update(keys())
    assert len(f) == 200


@pytest.mark.parametrize("make", [np.arange, lambda n: pa.array(np.arange(n)), lambda n: list(range(n))])
def test_the_gil_is_released(make):
    def looked_at_under_way(n):
        keys, f = make(n), tamis.Filter(n, 1e-6)
        thread = threading.Thread(target=f.update, args=(keys,))
        thread.start()
        under_way = False
        while thread.is_alive():
            under_way = under_way or 0 < len(f) < 0.999 * n
        assert len(f) > 0.999 * n
        return under_way

    # With the GIL held, the filter would be empty or full whenever it is looked at. A machine with other
    # things to do may not let us look in time: then it gets a longer batch.
    assert any(map(looked_at_under_way, [3_000_000, 10_000_000, 30_000_000]))
