"""The same commands in RedisBloom itself, in the same server program: the same answers, the same bytes, and files that it
reads. TAMIS_MODULE_REDISBLOOM is its file."""

import os
import pathlib
import random
import shutil
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from conftest import SERVERS, Server, found, keys, until  # noqa: E402
from test_switching import use_everything  # noqa: E402
from texts import BEFORE, TAKEN, cases  # noqa: E402

REDISBLOOM = os.environ["TAMIS_MODULE_REDISBLOOM"]
PROGRAM = next(iter(SERVERS.values()))


@pytest.fixture
def start(tmp_path):
    started = []

    def start(file=None, *module, **options):
        folder = pathlib.Path(tempfile.mkdtemp(dir=tmp_path))
        started.append(Server(PROGRAM, folder, module, **({"file": file} if file else {}), **options))
        return started[-1]

    yield start
    for server in started:
        server.stop()
        server.reserved.close()
        shutil.rmtree(server.folder, ignore_errors=True)


@pytest.fixture
def pair(start):
    return start(None, "COMPATIBLE", "yes"), start(REDISBLOOM)


def test_its_texts(start):
    server = start(REDISBLOOM)
    wrong = []
    for words, _, text in cases():
        server.answer("FLUSHALL")
        for line in BEFORE:
            server.answer(*line.split())
        answer = server.answer(*words)
        said = not answer.startswith(b"-") if text is TAKEN else answer == f"-{text}\r\n".encode()
        if not said:
            wrong.append((words, text, answer))
    assert not wrong


def commands(rng, count):
    """Any commands that both know, on few keys and items, so that filters fill, grow, shrink and are compacted."""
    for i in range(count):
        bloom, cuckoo = f"b{rng.randrange(4)}", f"c{rng.randrange(4)}"
        item = f"item{rng.randrange(900)}"
        items = [f"item{rng.randrange(900)}" for _ in range(rng.randrange(1, 30))]
        yield rng.choice([
            lambda: ("BF.RESERVE", bloom, rng.choice(["0.01", "0.2", "1e-7"]), rng.choice([1, 3, 50, 700]),
                     *rng.choice([(), ("NONSCALING",), ("EXPANSION", "1"), ("EXPANSION", "3")])),
            lambda: ("BF.ADD", bloom, item),
            lambda: ("BF.MADD", bloom, *items),
            lambda: ("BF.INSERT", bloom, "CAPACITY", "20", "ERROR", "0.02", "EXPANSION", "2", "ITEMS", *items),
            lambda: ("BF.EXISTS", bloom, item),
            lambda: ("BF.MEXISTS", bloom, *items),
            lambda: ("BF.INFO", bloom, *rng.choice([(), ("CAPACITY",), ("size",), ("EXPANSION",)])),
            lambda: ("BF.CARD", bloom),
            lambda: ("BF.DEBUG", bloom),
            lambda: ("BF.SCANDUMP", bloom, rng.randrange(2)),
            lambda: ("CF.RESERVE", cuckoo, rng.choice([4, 16, 100, 600]),
                     *rng.choice([(), ("BUCKETSIZE", "1"), ("EXPANSION", "0"), ("EXPANSION", "2"), ("MAXITERATIONS", "3")])),
            lambda: ("CF.ADD", cuckoo, item),
            lambda: ("CF.ADDNX", cuckoo, item),
            lambda: ("CF.INSERT", cuckoo, "ITEMS", *items),
            lambda: ("CF.INSERTNX", cuckoo, "CAPACITY", "40", "ITEMS", *items),
            lambda: ("CF.DEL", cuckoo, item),
            lambda: ("CF.DEL", cuckoo, rng.choice(items)),
            lambda: ("CF.COMPACT", cuckoo),
            lambda: ("CF.COUNT", cuckoo, item),
            lambda: ("CF.EXISTS", cuckoo, item),
            lambda: ("CF.MEXISTS", cuckoo, *items),
            lambda: ("CF.INFO", cuckoo),
            lambda: ("CF.DEBUG", cuckoo),
            lambda: ("CF.SCANDUMP", cuckoo, rng.randrange(2)),
            lambda: ("DEL", rng.choice([bloom, cuckoo])) if rng.randrange(8) == 0 else ("PING",),
        ])()


@pytest.mark.parametrize("seed", range(4))
def test_its_answers_and_bytes(pair, seed):
    ours, theirs = pair
    for at, command in enumerate(commands(random.Random(seed), 3000)):
        answer = ours.answer(*command)
        assert answer == theirs.answer(*command), (at, command)
        if at % 50 == 0:
            for key in [f"{kind}{i}" for kind in "bc" for i in range(4)]:
                dumps = [server.client().dump(key) for server in pair]
                assert (dumps[0] or b"")[:-10] == (dumps[1] or b"")[:-10], (at, key)


def confirm(r, key, items):
    """Adds them one by one and a few at a time; those that were confirmed."""
    confirmed = []
    for at in range(0, len(items), 10):
        for some in [items[at : at + 1], items[at + 1 : at + 10]]:
            try:
                answers = r.execute_command("CF.INSERT", key, "ITEMS", *some)
            except Exception:
                continue
            confirmed += [item for item, answer in zip(some, answers) if answer == 1]
    return confirmed


@pytest.mark.parametrize("capacity, count", [(4, 1_000), (1024, 40_000)])
@pytest.mark.parametrize("file", ["aof", "rdb"])
def test_it_has_all_that_was_confirmed(start, file, capacity, count):
    options = {"appendonly": "yes" if file == "aof" else "no", "aof-use-rdb-preamble": "no"}
    server = start(None, "COMPATIBLE", "yes", **options)
    r = server.client()
    r.execute_command("CF.RESERVE", "c", capacity)
    r.execute_command("BF.RESERVE", "b", "0.001", capacity, "EXPANSION", 1)
    confirmed = confirm(r, "c", keys(0, count))
    bloom = keys(0, min(count, 20 * capacity))
    assert len(r.execute_command("BF.MADD", "b", *bloom)) == len(bloom)
    r.execute_command("BF.RESERVE", "zero", "0.01", 100, "NONSCALING")
    r.execute_command("BF.MADD", "zero", *keys(0, 50))
    dumps = {name: r.dump(name)[:-10] for name in ["b", "c", "zero"]}
    server.stop(save=file == "rdb")
    server.file, server.module = REDISBLOOM, ()
    server.start()
    r = server.client()
    assert len(confirmed) >= 120 and found(r, "c", confirmed, "CF.MEXISTS") == len(confirmed)
    assert found(r, "b", bloom) == len(bloom) and found(r, "zero", keys(0, 50)) == 50
    assert {name: r.dump(name)[:-10] for name in dumps} == dumps


def dumps(r, names):
    return {name: r.dump(name)[:-10] for name in names}


@pytest.mark.parametrize("file", ["aof", "rdb"])
def test_it_reads_all_that_is_written(start, file):
    options = {"appendonly": "yes" if file == "aof" else "no", "aof-use-rdb-preamble": "no"}
    server = start(None, "COMPATIBLE", "yes", **options)
    r = server.client()
    names = use_everything(r)
    before, expiry = dumps(r, names), {name: r.pexpiretime(name) for name in names}
    server.stop(save=file == "rdb")
    server.file, server.module = REDISBLOOM, ()
    server.start()
    r = server.client()
    assert dumps(r, names) == before and {name: r.pexpiretime(name) for name in names} == expiry


def test_it_follows_as_a_replica(start):
    server, replica = start(None, "COMPATIBLE", "yes"), start(REDISBLOOM).client()
    r = server.client()
    confirmed = confirm(r, "before", keys(0, 3000))
    replica.replicaof("127.0.0.1", server.port)
    until(lambda: replica.info("replication")["master_link_status"] == "up", "the replica")
    r.execute_command("CF.RESERVE", "small", 4)
    small = confirm(r, "small", keys(0, 1000))
    names = use_everything(r)
    until(lambda: r.execute_command("WAIT", 1, 1000) == 1, "the replica to have all of it")
    assert found(replica, "before", confirmed, "CF.MEXISTS") == len(confirmed)
    assert found(replica, "small", small, "CF.MEXISTS") == len(small) > 120
    assert dumps(replica, names) == dumps(r, names)
