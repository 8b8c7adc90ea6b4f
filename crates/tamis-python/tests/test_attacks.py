"""The sentences of docs/python.md, attacked: objects that call back, change, raise and end while they are read."""

import enum
import gc
import math
import os
import pickle
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pyarrow as pa
import pytest

import tamis


def test_objects_that_are_no_keys():
    f = tamis.Filter(1000)
    no_keys = [None, math.nan, np.float64("nan"), np.float32("nan"), (), ("a",), [], {}, object()]
    for no_key in [*no_keys, np.array([1.5]), np.ma.masked, 1j, type, ..., NotImplemented]:
        for ask in (f.add, f.__contains__, lambda key: f.update([key]), lambda key: f.contains_many(iter([key]))):
            # An array has an `__index__`, which raises.
            with pytest.raises(TypeError if isinstance(no_key, np.ndarray) else tamis.KeyTypeError):
                ask(no_key)
    for large in (2**64, -(2**63) - 1, 10**400, -(10**400)):
        for ask in (f.add, f.__contains__, lambda key: f.update([key])):
            with pytest.raises(tamis.KeyRangeError):
                ask(large)
    assert len(f) == 0


def test_keys_in_disguise():
    class Text(str):
        def encode(self, *_):
            raise AssertionError("not asked")

    class Number(int):
        def __index__(self):
            raise AssertionError("not asked")

    class Few(enum.IntEnum):
        ONE = 1

    f = tamis.Filter(1000, 1e-9)
    f.update([Text("text"), Number(7), Few.ONE])
    assert f.contains_many(["text", 7, 1]) == [True] * 3 and Number(7) in f and Text("text") in f
    edges = [0, -1, 2**63 - 1, -(2**63), 2**63, 2**64 - 1, 2**30, 2**60, -(2**30)]
    for number in edges:
        f = tamis.Filter(1000, 1e-9)
        assert f.add(number)
        twin = number % 2**64
        same = [number, twin, twin.to_bytes(8, "little"), Number(number)]
        assert all(key in f for key in same) and all(f.contains_many(same))
        assert sum(f.contains_many(edges)) == (2 if number in (-1, 2**64 - 1, -(2**63), 2**63) else 1)


def test_buffers_of_every_form():
    raw = bytes(range(100))
    f = tamis.Filter(1000, 1e-9)
    f.add(memoryview(raw)[::3])
    f.add(memoryview(raw)[::-1])
    assert raw[::3] in f and raw[::-1] in f and raw not in f
    table = memoryview(np.arange(12, dtype="u1").reshape(3, 4).T)
    f.add(table)
    assert table.tobytes() in f
    released = memoryview(raw)
    released.release()
    with pytest.raises(ValueError):
        f.add(released)
    array = bytearray(b"first")
    f.add(array)
    array[:] = b"other"
    assert b"first" in f and b"other" not in f


def test_a_generator_may_do_what_it_likes_with_the_filter():
    for kind in ("blocked", "growing", "cuckoo"):
        f = tamis.Filter(1000, 1e-9, kind=kind)

        def keys():
            for i in range(50):
                assert f.add(("a", i)[0] + str(i))
                f.update([f"b{i}"])
                assert f.add_many(np.array([f"c{i}"])).all()
                assert len(f.copy()) >= 3 * i and bytes(f) and f == f and f.p_now < 1
                if i % 25 == 0:
                    gc.collect()
                yield f"d{i}"

        f.update(keys())
        assert len(f) == 200 and all(f.contains_many([f"{c}{i}" for c in "abcd" for i in range(50)]))

    def closing(f):
        yield "before"
        f.close()
        yield "after"

    f = tamis.Filter.create("closing.tamis", 1000)
    with pytest.raises(tamis.ClosedError):
        f.update(closing(f))

    def clearing(f):
        yield "before"
        f.clear()
        yield "after"

    f = tamis.Filter(1000, 1e-9)
    f.update(clearing(f))
    assert "after" in f


def test_objects_that_raise_and_end_while_they_are_read(monkeypatch):
    class Raises:
        def __index__(self):
            raise ZeroDivisionError

    class Ends:
        def __index__(self):
            return 5

        def __del__(self):
            raise RuntimeError("in __del__")

    f = tamis.Filter(1000, 1e-9)
    with pytest.raises(ZeroDivisionError):
        f.update(["a", Raises(), "b"])
    assert "a" in f and "b" not in f
    monkeypatch.setattr(sys, "unraisablehook", lambda *_: None)
    f.update(Ends() for _ in range(100))
    keys = [Ends() for _ in range(100)]
    f.update(keys)
    keys.clear()
    assert 5 in f


def test_a_list_that_another_thread_changes():
    f = tamis.Filter(1_000_000, 1e-6)
    keys, stop = [str(i) for i in range(80_000)], threading.Event()

    def change():
        while not stop.is_set():
            keys[1000:] = [str(i) for i in range(1000, 50_000)]
            keys.extend(["x" * 20] * 30_000)
            stop.wait(0.001)

    thread = threading.Thread(target=change, daemon=True)
    thread.start()
    try:
        for _ in range(5):
            try:
                f.update(keys)
            except IndexError:
                pass  # it had become shorter
    finally:
        stop.set()
        thread.join()
    assert all(f.contains_many([str(i) for i in range(1000)]))


def test_everything_after_close():
    f = tamis.Filter.create("closed.tamis", 1000)
    g = tamis.Filter(1000)
    f.close()
    f.close()
    assert f.closed and repr(f)
    for use in (
        lambda: f.add("a"),
        lambda: "a" in f,
        lambda: f.update(["a"]),
        lambda: f.contains_many(np.array(["a"])),
        lambda: f.add_many(pa.array(["a"]), threads=2),
        lambda: len(f),
        lambda: bool(f),
        lambda: f.copy(),
        lambda: f.clear(),
        lambda: f | g,
        lambda: g | f,
        lambda: g.__ior__(f),
        lambda: f.__iand__(g),
        lambda: f == g,
        lambda: f.info(),
        lambda: f.p_now,
        lambda: f.fill,
        lambda: f.capacity,
        lambda: f.save("other.tamis"),
        lambda: bytes(f),
        lambda: f.to_base64(),
        lambda: f.sync(),
        lambda: f.remove("a"),
        lambda: f.count("a"),
        lambda: pickle.dumps(f),
        lambda: f.__enter__(),
        lambda: tamis.Guard(f).get("a", dict().get),
    ):
        with pytest.raises(tamis.ClosedError):
            use()


def test_pickles_of_mapped_filters_are_in_memory():
    f = tamis.Filter.create("mapped.tamis", 1000, 1e-9)
    f.update(["a", "b"])
    for mode in ("r", "r+"):
        with tamis.Filter.open("mapped.tamis", mode) as g:
            copy = pickle.loads(pickle.dumps(g))
            assert copy == f and copy.path is None
            copy.add("c")
            assert "c" not in g and "c" not in f
    f.close()


def test_answers_outlive_what_they_came_from():
    class Column:
        def __init__(self, array):
            self.array = array

        def __arrow_c_array__(self, requested_schema=None):
            return self.array.__arrow_c_array__(requested_schema)

    f = tamis.Filter(100_000, 1e-9)
    f.update(np.arange(0, 100_000, 2))
    mask = f.contains_many(Column(pa.array(np.arange(100_000))))
    array = pa.array(mask)
    view = np.asarray(f.contains_many(np.arange(100_000)))
    del mask, f
    gc.collect()
    junk = [bytes(12_500) for _ in range(100)]
    assert array.to_pylist() == [i % 2 == 0 for i in range(100_000)] and (view == (np.arange(100_000) % 2 == 0)).all()
    del junk


def test_a_guard_whose_store_calls_back():
    f = tamis.Filter(1000, 1e-9)
    f.update(["a", "b"])
    guard = tamis.Guard(f)

    def load(key):
        if key == "a":
            assert guard.get("b", load) == 2 and guard.add("c")
            guard.forget_all()
            return 1
        return {"b": 2}.get(key)

    assert guard.get("a", load) == 1 and guard.get("zzz", load) is None
    with pytest.raises(ZeroDivisionError):
        guard.get("a", lambda key: 1 / 0)


def test_a_subinterpreter_is_refused():
    script = """
        import textwrap
        try:
            import _xxsubinterpreters as interpreters
        except ImportError:
            import _interpreters as interpreters
        import tamis

        seen = tamis.Filter(10)
        code = '''
        try:
            import tamis
        except ImportError:
            pass
        else:
            raise SystemError("it was imported")
        '''
        assert interpreters.run_string(interpreters.create(), textwrap.dedent(code)) is None
        assert seen.add("key") and "key" in seen
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr


def test_a_finalizer_may_empty_the_list_that_is_read():
    """The exception for a text without UTF-8 makes the collector run, and that a `__del__`. Freed memory is
    overwritten, so that whoever reads it falls."""
    script = """
        import gc, sys, tamis

        class Emptier:
            def __init__(self):
                self.circle = self

            def __del__(self):
                keys.clear()

        def ask(call, before, threshold):
            # Whether the list was emptied while it was read.
            gc.collect()
            keys[:] = [str(i) for i in range(before)] + [f"\\ud800 {i}" for i in range(40)]
            Emptier()
            gc.set_threshold(threshold)
            try:
                call(keys)
            except tamis.KeyEncodingError as error:
                gc.set_threshold(700)
                assert "position 0: surrogates not allowed" in str(error), error
                return not keys
            gc.set_threshold(700)
            assert not keys, "a text without UTF-8 was taken for a key"
            return False

        keys = []
        for name in ("add_many", "contains_many", "update"):
            seen = tamis.Filter(1000, 1e-9)
            call = getattr(seen, name)
            emptied = [ask(call, before, threshold) for before in (0, 5, 15, 30) for threshold in range(1, 12)]
            # Since 3.12 the collector waits until the call is over.
            assert any(emptied) or sys.version_info >= (3, 12), emptied
        """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={**os.environ, "PYTHONMALLOC": "debug"},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, (done.returncode, done.stderr)
