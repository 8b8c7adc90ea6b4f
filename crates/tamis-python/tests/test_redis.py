"""`tamis.connect` against a real redis-server."""

import multiprocessing
import os
import pathlib
import pickle
import signal
import subprocess
import threading
import warnings

import pyarrow
import pytest

import tamis


def test_it_is_a_filter(server):
    with tamis.connect(f"redis://{server}/0/seen", 10_000, 0.01) as seen:
        assert seen.add("key") and not seen.add(b"key")
        assert "key" in seen and "other" not in seen
        keys = [f"key{i}" for i in range(5000)]
        new = seen.add_many(keys)
        assert len(new) == 5000 and sum(new) > 4900
        assert all(seen.contains_many(keys))
        assert seen.contains_many(pyarrow.array(keys + [None])).to_pylist() == [True] * 5000 + [False]
        seen.update(keys)
        info = seen.info()
        assert info["kind"] == seen.kind == "blocked" and info["bytes"] == seen.nbytes
        assert abs(info["keys"] - 5001) < 150
        assert 0.4 < seen.fill < 0.6 and seen.capacity == 10_000 and seen.p == 0.01 > seen.p_now
        with pytest.raises(tamis.IndeterminateCountError):
            len(seen)
        # The same bits in memory, in a file, and in Redis.
        copy = seen.copy()
        assert all(copy.contains_many(keys))
        seen.save("copy.tamis")
        assert bytes(tamis.Filter.load("copy.tamis")) == bytes(copy)
        copy.add("only there")
        seen |= copy
        assert "only there" in seen
        seen.clear()
        assert "key" not in seen
    assert seen.closed
    with pytest.raises(tamis.ClosedError):
        seen.add("key")


def test_windows_forget_on_the_server(server):
    with tamis.connect(f"redis://{server}/lately", 1000, 1e-6, within="1h", generations=4) as lately:
        assert lately.kind == "window" and lately.add("key") and not lately.add("key") and "key" in lately
        assert lately.add_many(["key", "other"]) == [False, True]
        with pytest.raises(tamis.UnableError, match="can't be copied between Redis and files"):
            lately.copy()
        frame = pyarrow.table({"key": ["other", "new", "new"]})
        assert tamis.dedup(frame, "key", filter=lately)["key"].to_pylist() == ["new"]
        with pytest.raises(tamis.ParameterError, match="at: expected a Window"):
            tamis.dedup(frame, "key", filter=lately, at=0)
    with tamis.connect(f"redis://{server}/lately") as lately:       # as it was made
        assert lately.kind == "window" and "new" in lately
    for wrong in ({"kind": "blocked"}, {"delete": True}, {"grow": True}, {"module": True}, {"quiet": "1h"}):
        with pytest.raises(tamis.ParameterError, match="within, quiet"):
            tamis.connect(f"redis://{server}/wrong", 1000, within="1h", **wrong)
    with pytest.raises(tamis.ParameterError, match="n: expected how many keys"):
        tamis.connect(f"redis://{server}/wrong", within="1h")


def test_keys_are_removed(server):
    with tamis.connect(f"redis://{server}/online", 1000, delete=True) as online:
        assert online.kind == "counting"
        assert online.add("ada") and not online.add("ada")
        assert online.count("ada") == 2
        assert online.remove("ada") and "ada" in online
        assert online.remove("ada") and "ada" not in online
        assert not online.remove("ada")


def test_workers_share_it_and_each_key_is_new_for_one(server):
    keys = [f"url{i}" for i in range(5000)]
    new = []

    def work(seed):
        with tamis.connect(f"redis://{server}/urls", 100_000, 1e-6) as seen:
            mine = keys[seed:] + keys[:seed]
            answers = seen.add_many(mine)
            new.extend(key for key, was_new in zip(mine, answers) if was_new)

    threads = [threading.Thread(target=work, args=(1000 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(new) == sorted(keys)


def test_it_ends(server):
    seen = tamis.connect(f"redis://{server}/short", 1000)
    seen.expire(3600)
    assert 3000 < seen.info()["seconds_to_live"] <= 3600
    seen.expire(None)
    assert seen.info()["seconds_to_live"] is None
    seen.delete()
    with pytest.raises(tamis.NotFoundError):
        tamis.connect(f"redis://{server}/short")


def test_mistakes_are_said(server):
    with pytest.raises(tamis.ParameterError, match="location"):
        tamis.connect("redis://127.0.0.1")
    with pytest.raises(tamis.ParameterError, match="how many keys"):
        tamis.connect(f"redis://{server}/new", p=0.01)
    with pytest.raises(tamis.ParameterError, match="seconds"):
        tamis.connect(f"redis://{server}/new", timeout=-1)
    with pytest.raises(tamis.NotFoundError, match="create"):
        tamis.connect(f"redis://{server}/nowhere")
    with tamis.connect(f"redis://{server}/mistakes", 1000) as seen:
        with pytest.raises(tamis.KeyTypeError):
            seen.add(None)
        with pytest.raises(tamis.UnableError):
            seen.remove("key")
        with pytest.raises(tamis.UnlikeError):
            seen |= tamis.Filter(50)
    with pytest.raises(ConnectionError):
        tamis.connect("redis://127.0.0.1:1/seen", timeout=0.2, retry_for=0)
    assert not pathlib.Path("nowhere").exists()


def test_a_forked_process_has_connections_of_its_own(server):
    """Answers to one process must not be read by another."""
    with tamis.connect(f"redis://{server}/forked", 100_000, 1e-6) as seen:
        old = [f"old{i}" for i in range(2_000)]
        seen.update(old)
        children = []
        for child in range(4):
            pid = os.fork()
            if pid == 0:
                # No test of this process's goes on in its child.
                wrong = 1
                try:
                    mine = [f"{child}.{i}" for i in range(2_000)]
                    for i in range(0, 2_000, 50):
                        wrong = 2
                        assert all(seen.contains_many(old[i : i + 50]))
                        wrong = 3
                        assert all(seen.add_many(mine[i : i + 50]))
                    wrong = 0
                finally:
                    os._exit(wrong)
            children.append(pid)
        for i in range(0, 2_000, 50):
            assert all(seen.contains_many(old[i : i + 50]))
        for pid in children:
            _, status = os.waitpid(pid, 0)
            assert os.waitstatus_to_exitcode(status) == 0
        assert all(seen.contains_many([f"{child}.{i}" for child in range(4) for i in range(2_000)]))


def test_signals_lose_no_answers(server):
    """A handler that runs while an answer is awaited: the answer still counts."""
    handled = []
    before = signal.signal(signal.SIGALRM, lambda *_: handled.append(None))
    # Handlers of Python interrupt what the system is at.
    signal.siginterrupt(signal.SIGALRM, True)
    try:
        with tamis.connect(f"redis://{server}/signals", 100_000, 1e-6) as seen:
            signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
            for start in range(0, 40_000, 2_000):
                keys = [f"key{i}" for i in range(start, start + 2_000)]
                assert all(seen.add_many(keys))
                assert not any(seen.add_many(keys)), "old keys are not new"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert handled


def test_a_process_is_forked_in_the_middle_of_a_call(server):
    """Another thread is always talking to the server: each child gets a connection of its own."""
    with tamis.connect(f"redis://{server}/busy", 1_000_000, 1e-6) as seen:
        seen.update(f"old{i}" for i in range(1_000))
        done = threading.Event()

        def work():
            number = 0
            while not done.is_set():
                number += 1
                seen.update([f"{number}.{i}" for i in range(2_000)])

        thread = threading.Thread(target=work)
        thread.start()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # Python's own, about threads and forks
                children = [fork_and_ask(seen, child) for child in range(20)]
            exits = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
        finally:
            done.set()
            thread.join()
        assert exits == [0] * 20
        assert all(seen.contains_many([f"child {child}" for child in range(20)]))


def fork_and_ask(seen, child):
    pid = os.fork()
    if pid == 0:
        wrong = 1
        try:
            assert all(seen.contains_many([f"old{i}" for i in range(1_000)]))
            assert seen.add(f"child {child}") and f"child {child}" in seen and not seen.closed
            seen.close()
            assert seen.closed
            wrong = 0
        finally:
            os._exit(wrong)
    return pid


def test_what_is_there_must_be_what_is_asked_for(server):
    at = f"redis://{server}/asked"
    tamis.connect(at, 1000).close()
    for wanted, expected in (
        ({"delete": True}, "delete: .* got a blocked filter"),
        ({"grow": True}, "grow: .* got a blocked filter"),
        ({"kind": "counting"}, "kind: .* got a blocked filter"),
        ({"within": "1h"}, "within, quiet: .* got a blocked filter"),
    ):
        with pytest.raises(tamis.ParameterError, match=expected):
            tamis.connect(at, 1000, **wanted)
    tamis.connect(at, 1000, kind="blocked").close()
    tamis.connect(at, 5000, 0.1).close()  # how large it is made counts only when it is made
    at = f"redis://{server}/asked-window"
    tamis.connect(at, 1000, within="1h").close()
    tamis.connect(at, 1000, within="1h").close()
    for wanted in ({"within": "2h"}, {"quiet": "1h"}):
        with pytest.raises(tamis.ParameterError, match="got another window"):
            tamis.connect(at, 1000, **wanted)
    tamis.connect(f"redis://{server}/asked-counting", 1000, delete=True).close()
    with tamis.connect(f"redis://{server}/asked-counting", 1000, delete=True) as online:
        assert online.add("key") and online.remove("key")


def test_a_pickle_is_where_it_is(server, tmp_path):
    secret = tmp_path / "secret"
    with tamis.connect(f"redis://{server}/pickled", 1000, key_file=secret, timeout=7) as seen:
        seen.add("key")
        with pickle.loads(pickle.dumps(seen)) as same:
            assert "key" in same and same.location == seen.location
            assert same.add("other") and "other" in seen
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        with tamis.connect(f"redis://{server}/pooled", 1000, 1e-6) as seen:
            assert sorted(pool.starmap(tamis.RedisFilter.add, [(seen, "key")] * 6)) == [False] * 5 + [True]
    key = bytes(range(16))
    with tamis.connect(f"redis://{server}/apart", 1000, key=key) as seen:
        with pytest.raises(tamis.KeyNeededError, match="key_file"):
            pickle.dumps(seen)
    host, port = server.split(":")
    cli = ["redis-cli", "-h", host, "-p", port, "ACL", "SETUSER", "ada", "on", ">sesame", "~*", "+@all"]
    subprocess.run(cli, check=True, stdout=subprocess.DEVNULL)
    with tamis.connect(f"redis://ada:sesame@{server}/secret", 1000) as seen:
        with pytest.warns(UserWarning, match="password"):
            same = pickle.loads(pickle.dumps(seen))
        assert same.add("key")
