"""What comes in between: errors, signals, forks, and systems without threads to give."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pyarrow as pa
import pytest

import tamis


def run(script, *args):
    """Runs the script in a process of its own, which has ten minutes."""
    text = "import faulthandler; faulthandler.dump_traceback_later(600, exit=True)\n" + textwrap.dedent(script)
    done = subprocess.run(
        [sys.executable, "-c", text, *map(str, args)], capture_output=True, text=True, timeout=700
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# An error ends a batch as it would end a loop.

N = 50_000


def with_one_bad(make, bad):
    keys = [f"key {i}" for i in range(N)]
    keys[bad] = "\ud800"
    return make(keys)


def damaged_arrow(keys):
    bad = keys.index("\ud800")
    keys[bad] = "bad"
    column = pa.array(keys)
    offsets = np.frombuffer(column.buffers()[1], dtype="i4").copy()
    # The row before is too long, and this one ends before it begins; pyarrow looks at the first and the last.
    offsets[bad] = 100 if bad == 0 else offsets[-1] + 100
    offsets = pa.py_buffer(offsets)
    return pa.Array.from_buffers(pa.string(), N, [None, offsets, column.buffers()[2]])


@pytest.mark.parametrize("kind", ["blocked", "cuckoo"])
@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize(
    "make", [list, tuple, iter, lambda keys: np.array(keys), lambda keys: np.array(keys, dtype=object), damaged_arrow]
)
@pytest.mark.parametrize("bad", [0, 4096, 20_001, N - 1])
def test_keys_before_an_error_are_added_and_none_after(kind, threads, make, bad):
    f = tamis.Filter(2 * N, 1e-9, kind=kind)
    with pytest.raises((tamis.KeyEncodingError, tamis.CorruptError)):
        f.add_many(with_one_bad(make, bad), threads=threads)
    found = f.contains_many([f"key {i}" for i in range(N)])
    # The row before a damaged one is damaged, too.
    before = bad - (make is damaged_arrow and bad > 0)
    assert all(found[:before]) and not any(found[bad:])
    assert len(f) in (before, bad)


def test_several_threads_end_where_one_does_when_the_filter_is_full():
    one, many = (tamis.Filter(100_000, 0.01, kind="cuckoo") for _ in range(2))
    for f, threads in ((one, 1), (many, 4)):
        with pytest.raises(tamis.FullError):
            f.add_many(np.arange(400_000), threads=threads)
    assert one == many and 90_000 < len(one) < 120_000


def test_a_generator_that_raises_has_added_what_it_gave():
    f = tamis.Filter(1000, 1e-9)

    def keys():
        yield "a"
        yield "b"
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        f.update(keys())
    assert len(f) == 2 and "a" in f and "b" in f


# Ctrl-C


class Interrupted(Exception):
    pass


def works_in_the_background():
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/comm") as name:
                if name.read() == "tamis\n":
                    return True
        except OSError:
            pass  # it has just ended
    return False


def heard(call, under_way):
    """Whether a signal ended the call while it was under way, which is asked inside the handler; else it ended before."""
    ended = False

    def handler(*_):
        if ended:
            return  # a signal that came as the timer was stopped
        if under_way():
            raise Interrupted
        signal.setitimer(signal.ITIMER_REAL, 0.005)  # not yet, or no more

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        call()
        ended = True
    except Interrupted:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return False


# How long a machine takes is not known before: what was too short for a signal is made longer.
SIZES = (1, 2, 4, 8, 16, 32)


def batches():
    yield "list of str", 200_000, lambda count: [f"key {i}" for i in range(count)]
    yield "list of int", 500_000, lambda count: list(range(count))
    yield "numpy", 1_000_000, np.arange
    yield "arrow", 1_000_000, lambda count: pa.array(np.arange(count))
    yield "iterator", 500_000, lambda count: (i for i in range(count))


@pytest.mark.parametrize("name,count,keys", list(batches()), ids=lambda value: value if type(value) is str else "")
@pytest.mark.parametrize("threads", [1, 3])
def test_a_batch_hears_a_signal(name, count, keys, threads):
    def ended_early(size):
        # At this rate, nearly all keys are counted.
        f, batch, most = tamis.Filter(1000, 1e-6, kind="growing"), keys(count * size), count * size * 0.999
        was_heard = heard(lambda: f.update(batch, threads=threads), lambda: 0 < len(f) < most)
        assert was_heard or len(f) >= most
        # The keys at work when it was heard may have been the last.
        return was_heard and len(f) < most

    assert any(map(ended_early, SIZES))


@pytest.mark.parametrize("times", ["one", "each"])
def test_a_batch_of_a_window_hears_a_signal(times):
    def ended_early(size):
        count = 500_000 * size
        window, keys = tamis.Window(count, 1e-9, within="1h"), np.arange(count)
        at = 0 if times == "one" else np.linspace(0, 3600, count)
        was_heard = heard(lambda: window.update(keys, at=at), lambda: len(window) > 0)
        # The keys at work when it was heard may have been the last.
        return was_heard and not window.contains(count - 1, at=0) and window.contains(0, at=0)

    assert any(map(ended_early, SIZES))


def whole_filters():
    def filled(n):
        f = tamis.Filter(1000, size=64_000_000 * n)
        f.add("key")
        return f

    def save(n):
        f = filled(n)
        return lambda: f.save("large.tamis")

    def load(n):
        filled(n).save("large.tamis")
        return lambda: tamis.Filter.load("large.tamis")

    def copy(n):
        f = filled(n)
        return f.copy

    def union(n):
        f, g = filled(n), filled(n)
        return lambda: f.__ior__(g)

    def build(n):
        keys = np.arange(1_000_000 * n)
        return lambda: tamis.build(keys, threads=2)

    def view(n):
        f = filled(n)
        return lambda: memoryview(f)

    yield from (save, load, copy, union, build, view)


@pytest.mark.parametrize("make", list(whole_filters()), ids=lambda make: make.__name__)
def test_work_on_a_whole_filter_hears_a_signal(make):
    assert any(heard(make(size), works_in_the_background) for size in SIZES)


def test_what_reads_in_the_background_keeps_nobody_from_asking():
    def asked_meanwhile(size):
        f, path = tamis.Filter(1000, size=64_000_000 * size), f"large{size}.tamis"
        # Interrupted, it goes on in the background, and the file is there at its end.
        was_heard = heard(lambda: f.save(path), works_in_the_background)
        assert f.nbytes > 0 and f.kind == "blocked" and not f.closed and "key" not in f
        return was_heard and not os.path.exists(path)

    assert any(map(asked_meanwhile, SIZES))
    while works_in_the_background():
        time.sleep(0.01)


def test_a_filter_is_whole_after_an_interrupted_call():
    f = tamis.Filter(1000, size=256_000_000)
    f.update(["a", "b"])
    with pytest.raises(Interrupted):
        heard_later = signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(Interrupted()))
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.02)
            while True:
                f.save("whole.tamis")
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, heard_later)
    # What goes on in the background is waited for by what would change the filter.
    f.add("c")
    f.save("whole.tamis")
    g = tamis.Filter.load("whole.tamis")
    assert g == f and all(x in g for x in "abc")


# fork


@pytest.mark.parametrize("kind,threads", [("blocked", 1), ("cuckoo", 2), ("growing", 2)])
def test_a_child_of_a_process_at_work_works(kind, threads):
    run(
        """
        import os, signal, sys, threading, warnings
        import numpy as np
        import tamis

        warnings.simplefilter("ignore")  # Python 3.12 says that forks and threads don't go together
        kind, threads = sys.argv[1], int(sys.argv[2])
        f = tamis.Filter(400_000, 0.001, kind=kind)
        done, stop = [0], threading.Event()

        def work():
            while not stop.is_set():
                at = done[0] % 360_000  # a cuckoo filter takes few copies
                if kind == "cuckoo" and done[0] >= 360_000:
                    f.contains_many(np.arange(20_000), threads=threads)
                else:
                    f.add_many(np.arange(at, at + 20_000), threads=threads)
                done[0] += 20_000

        def ask():
            while not stop.is_set():
                f.contains_many(np.arange(20_000), threads=threads)

        workers = [threading.Thread(target=work, daemon=True), threading.Thread(target=ask, daemon=True)]
        for worker in workers:
            worker.start()
        for _ in range(8):
            sure = min(done[0], 360_000)
            child = os.fork()
            if child == 0:
                signal.alarm(300)  # a child that hangs dies of it
                good = f.contains_many(np.arange(sure), threads=threads).all()
                f.add("new here")
                good &= "new here" in f and all(f.contains_many(["new here", 0]) if sure else [True])
                g = f.copy()
                good &= "new here" in g and f.p_now < 1 and len(f) >= sure * 0.99
                os._exit(0 if good else 1)
            assert os.waitpid(child, 0)[1] == 0
        stop.set()
        for worker in workers:
            worker.join()
        assert f.contains_many(np.arange(min(done[0], 360_000))).all()
        """,
        kind,
        threads,
    )


def test_a_child_of_a_process_that_saves_works():
    run(
        """
        import os, signal, threading, warnings
        import tamis, pybloomfilter

        warnings.simplefilter("ignore")
        f = tamis.Filter(1000, size=32_000_000)
        old = pybloomfilter.BloomFilter(1_000_000, 0.01, "old.bloom")
        f.add("key"), old.add("key")
        stop = threading.Event()

        def work():
            while not stop.is_set():
                f.save("saved.tamis")
                old.sync()

        worker = threading.Thread(target=work, daemon=True)
        worker.start()
        for i in range(10):
            child = os.fork()
            if child == 0:
                signal.alarm(300)
                f.add("mine")
                ok = "key" in f and "mine" in f and "key" in old and not old.add(f"other {i}")
                os._exit(0 if ok else 1)
            assert os.waitpid(child, 0)[1] == 0
        stop.set()
        worker.join()
        """
    )


@pytest.mark.parametrize("kind", ["blocked", "growing"])
def test_a_child_leaves_the_file_to_its_parent(kind):
    run(
        """
        import os, signal, subprocess, sys
        import tamis

        kind = sys.argv[1]
        f = tamis.Filter.create("shared.tamis", 1000, kind=kind)
        f.update(range(900))
        child = os.fork()
        if child == 0:
            signal.alarm(300)
            assert all(f.contains_many(list(range(900))))
            try:
                f.update(range(900, 1000))
                assert kind == "blocked", "two processes write a growing filter"
            except tamis.BusyError:
                assert kind == "growing"
            f.close()
            f = tamis.Filter.create("own.tamis", 1000, kind=kind)
            f.update(range(10_000))
            f.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        # The parent still has its lock and its mark.
        other = "import tamis; tamis.Filter.open('shared.tamis', 'r+')"
        done = subprocess.run([sys.executable, "-c", other], capture_output=True, text=True)
        assert (done.returncode == 0) == (kind == "blocked"), done.stderr
        with open("shared.tamis", "rb") as file:
            marked = file.read(128)[112:128] != bytes(16)
        assert marked, "after a power loss the file would look whole"
        f.update(range(1000, 20_000))
        if kind == "blocked":
            assert all(f.contains_many(list(range(900, 1000)))), "the child's keys"
        f.close()
        g = tamis.Filter.load("shared.tamis")
        assert all(g.contains_many(list(range(900)))) and all(g.contains_many(list(range(1000, 20_000))))
        with open("shared.tamis", "rb") as file:
            assert file.read(128)[112:128] == bytes(16)
        """,
        kind,
    )


def test_a_generator_may_fork():
    run(
        """
        import os
        import tamis

        f = tamis.Filter(1000, 1e-9)

        def keys():
            yield "before"
            global child
            child = os.fork()
            yield "after"

        f.update(keys())
        assert len(f) == 2 and "before" in f and "after" in f
        if child == 0:
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        """
    )


# No threads


def test_without_threads_to_have_the_work_is_done_all_the_same():
    run(
        """
        import os, resource, threading
        import numpy as np
        import tamis

        f, keys = tamis.Filter(1_000_000, 0.001), np.arange(500_000)
        large = tamis.Filter(1000, size=8_000_000)
        if os.getuid() == 0:  # whom no limit binds
            os.setgid(65534), os.setuid(65534)
        resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
        try:
            threading.Thread(target=print).start()
        except RuntimeError:
            pass
        else:
            raise AssertionError("there are threads to be had")
        f.update(keys, threads=4)
        assert f.contains_many(keys, threads=4).all()
        assert large.copy() == large
        small = tamis.build(keys, threads=4)
        assert small.contains_many(keys, threads=4).all()
        """
    )



def test_calls_behind_an_interrupted_one_end_whatever_is_raised_meanwhile():
    """What was interrupted goes on in the background and keeps the filter; who waits for it can be interrupted, too."""
    run(
        """
        import signal, threading
        import tamis

        # A quarter of a gigabyte, whose union takes its time in the background.
        size = 256 << 20
        a, b = (tamis.Filter(size, size=size) for _ in range(2))
        main = threading.get_ident()

        def interrupted(call):
            # Signals until the call has ended: each finds it waiting.
            ended = threading.Event()

            def signals():
                while not ended.wait(0.05):
                    signal.pthread_kill(main, signal.SIGINT)

            thread = threading.Thread(target=signals)
            heard = False
            try:
                thread.start()
                call()
            except KeyboardInterrupt:
                heard = True
            while thread.is_alive():
                try:
                    ended.set()
                    thread.join()
                except KeyboardInterrupt:
                    pass
            return heard

        def many(filter):
            for _ in range(1000):
                filter |= b

        assert interrupted(lambda: many(a))
        # It may be over by now, or not; whoever waits for it is interrupted or has its answer.
        for call in (lambda: a.add("key"), lambda: a.update(["key"]), lambda: len(a), lambda: a.contains_many(["key"])):
            interrupted(call)
        a.add("key")
        assert "key" in a
        """
    )
