"""BF.* through redis-py's own methods, and what they leave out."""

import os
import subprocess

import pytest
import redis
from conftest import add_all, found, keys


def info(client, key):
    """What redis-py makes of BF.INFO: an object in RESP2, a dictionary in RESP3."""
    answer = client.bf().info(key)
    names = {
        "capacity": "Capacity", "filterNum": "Number of filters",
        "insertedNum": "Number of items inserted", "expansionRate": "Expansion rate",
    }
    if isinstance(answer, dict):
        answer = {getattr(name, "decode", lambda name=name: name)(): value for name, value in answer.items()}
        return {ours: answer[theirs] for ours, theirs in names.items()}
    return {ours: getattr(answer, ours) for ours in names}


def test_create_add_ask(both):
    bf = both.bf()
    assert bf.create("bloom", 0.01, 1000)
    assert bf.create("expands", 0.01, 1000, expansion=4)
    assert bf.create("fixed", 0.01, 1000, noScale=True)
    assert bf.add("bloom", "foo") == 1 and bf.add("bloom", "foo") == 0
    assert bf.madd("bloom", "foo", "bar", "baz", "bar") == [0, 1, 1, 0]
    assert bf.exists("bloom", "bar") == 1 and bf.exists("bloom", "noexist") == 0
    assert bf.mexists("bloom", "foo", "nope") == [1, 0]
    assert bf.card("bloom") == 3 and bf.card("missing") == 0
    assert bf.exists("missing", "x") == 0 and bf.mexists("missing", "x", "y") == [0, 0]
    # Keys are bytes.
    assert bf.add("bloom", b"\x00\xff\r\n") == 1 and bf.exists("bloom", b"\x00\xff\r\n") == 1
    assert bf.add("bloom", "") == 1 and bf.add("bloom", b"\x00") == 1


def test_resp3_answers_are_booleans(server):
    raw = server.client(3)
    assert raw.execute_command("BF.ADD", "k", "x") is True
    assert raw.execute_command("BF.MADD", "k", "x", "y") == [False, True]
    assert raw.execute_command("BF.EXISTS", "k", "x") is True
    assert raw.execute_command("BF.CARD", "k") == 2
    told = raw.execute_command("BF.INFO", "k")
    assert told == {
        b"Capacity": 100, b"Size": told[b"Size"], b"Number of filters": 1,
        b"Number of items inserted": 2, b"Expansion rate": 2,
    }
    assert raw.execute_command("BF.INFO", "k", "ITEMS") == {b"Number of items inserted": 2}
    # Without the client's own reading of replies.
    old = server.client(2)
    old.response_callbacks.clear()
    assert old.execute_command("BF.INFO", "k", "items") == [2]
    assert old.execute_command("BF.INFO", "k")[:2] == [b"Capacity", 100]
    assert old.execute_command("BF.EXISTS", "k", "x") == 1


def test_insert(both):
    bf = both.bf()
    with pytest.raises(redis.ResponseError, match="not found"):
        bf.insert("none", ["foo"], noCreate=True)
    assert bf.insert("bloom", ["foo", "bar", "foo"], capacity=500, error=0.001) == [1, 1, 0]
    assert info(both, "bloom")["capacity"] == 500
    assert bf.insert("bloom", ["foo", "new"], noCreate=True) == [0, 1]
    assert bf.insert("fixed", ["a"], noScale=True, capacity=2) == [1]
    assert info(both, "fixed")["expansionRate"] is None


def test_info(both):
    bf = both.bf()
    bf.create("expanding", 0.0001, 1000, expansion=4)
    bf.create("fixed", 0.0001, 1000, noScale=True)
    assert info(both, "expanding") == {"capacity": 1000, "filterNum": 1, "insertedNum": 0, "expansionRate": 4}
    assert info(both, "fixed")["expansionRate"] is None
    with pytest.raises(redis.ResponseError, match="not found"):
        bf.info("missing")
    with pytest.raises(redis.ResponseError, match="Invalid information value"):
        both.execute_command("BF.INFO", "fixed", "FOO")


@pytest.mark.parametrize("compatible", ["no", "yes"])
def test_a_full_filter_keeps_what_it_has_and_says_so(r, compatible):
    r.config_set("tamis.compatible", compatible)
    r.execute_command("BF.RESERVE", "fixed", 0.01, 3, "NONSCALING")
    answers = r.execute_command("BF.MADD", "fixed", "a", "b", "c", "d", "e")
    assert answers[:3] == [1, 1, 1] and len(answers) == 4
    assert "non scaling filter is full" in str(answers[3])
    assert r.execute_command("BF.MADD", "fixed", "a", "b") == [0, 0]
    with pytest.raises(redis.ResponseError, match="non scaling filter is full"):
        r.execute_command("BF.ADD", "fixed", "z")
    assert r.execute_command("BF.MEXISTS", "fixed", "a", "b", "c", "d") == [1, 1, 1, 0]


@pytest.mark.parametrize("line, text", [
    ("BF.RESERVE k x 100", "ERR bad error rate"),
    ("BF.RESERVE k 0 100", "ERR error rate must be in the range (0.000000, 1.000000)"),
    ("BF.RESERVE k 0.01 0", "ERR capacity must be in the range [1, 1073741824]"),
    ("BF.RESERVE k 0.01 ten", "ERR bad capacity"),
    ("BF.RESERVE k 0.01 10 EXPANSION", "ERR no expansion"),
    ("BF.RESERVE k 0.01 10 EXPANSION 2 NONSCALING", "Nonscaling filters cannot expand"),
    ("BF.RESERVE k 0.01 10 FOO", "ERR Unknown argument received: 'FOO'"),
    ("BF.RESERVE there 0.01 10", "ERR item exists"),
    ("BF.RESERVE k", "ERR wrong number of arguments for 'bf.reserve' command"),
    ("BF.ADD k", "ERR wrong number of arguments for 'bf.add' command"),
    ("BF.INSERT k CAP 5 ITEMS a", "Unknown argument received"),
    ("BF.INSERT k NOCREATE", "ERR wrong number of arguments for 'bf.insert' command"),
    ("BF.INFO k", "ERR not found"),
    ("BF.SCANDUMP k 0", "ERR not found"),
    ("BF.SCANDUMP there x", "Second argument must be numeric"),
    ("BF.LOADCHUNK k x y", "ERR Second argument must be numeric"),
    ("BF.LOADCHUNK k 7 y", "ERR not found"),
    ("BF.LOADCHUNK there 1 y", "ERR invalid offset - no link found"),
    ("BF.CLEAR k", "ERR not found"),
    ("BF.MERGE k nothing", "ERR not found"),
    ("BF.ADD text x", "WRONGTYPE Operation against a key holding the wrong kind of value"),
    ("BF.ADD cuckoo x", "WRONGTYPE Operation against a key holding the wrong kind of value"),
    ("CF.ADD there x", "WRONGTYPE Operation against a key holding the wrong kind of value"),
])
def test_errors(r, line, text):
    r.execute_command("BF.ADD", "there", "x")
    r.execute_command("CF.ADD", "cuckoo", "x")
    r.set("text", "x")
    # redis-py cuts ERR off.
    with pytest.raises(redis.ResponseError) as refused:
        r.execute_command(*line.split())
    assert str(refused.value).lower() in (text.lower(), text.lower().removeprefix("err "))
    assert not r.exists("k")


def test_reserve_if_there_is_none(r):
    for word in ["NX", "IFNOTEXISTS"]:
        assert r.execute_command("BF.RESERVE", "k", 0.01, 500, word) in (True, b"OK")
        assert r.execute_command("BF.RESERVE", "k", 0.5, 5, word) in (True, b"OK")
        assert r.bf().info("k").capacity == 500


@pytest.mark.parametrize("layout", ["tamis", "redisbloom"])
def test_merge_and_clear(r, layout):
    for name, start in [("a", 0), ("b", 2000)]:
        r.execute_command("BF.RESERVE", name, 0.01, 5000, "LAYOUT", layout)
        add_all(r.bf().madd, name, keys(start, start + 2000))
    assert r.execute_command("BF.MERGE", "all", "a", "b") == b"OK"
    assert found(r, "all", keys(0, 4000)) == 4000
    assert found(r, "a", keys(2000, 4000)) < 60
    r.execute_command("BF.MERGE", "a", "a", "b")
    assert found(r, "a", keys(0, 4000)) == 4000
    with pytest.raises(redis.ResponseError, match="more keys together"):
        r.execute_command("BF.MERGE", "a", "all")
    assert r.bf().card("a") == r.bf().card("all")
    r.execute_command("BF.RESERVE", "other", 0.001, 5000, "LAYOUT", layout)
    with pytest.raises(redis.ResponseError):
        r.execute_command("BF.MERGE", "a", "other")
    assert r.execute_command("BF.CLEAR", "a") == b"OK"
    assert found(r, "a", keys(0, 4000)) == 0 and r.bf().info("a").capacity == 5000


def test_dump_and_load_through_the_client(r):
    bf = r.bf()
    bf.create("a", 0.01, 1000)
    add_all(bf.madd, "a", keys(0, 5000))
    chunks, iterator = [], 0
    while True:
        iterator, data = bf.scandump("a", iterator)
        if iterator == 0:
            break
        chunks.append((iterator, data))
    for iterator, data in chunks:
        if iterator != 1:
            # Half a filter answers nothing, least of all "no".
            with pytest.raises(redis.ResponseError, match="being loaded"):
                bf.exists("copy", "key1")
            with pytest.raises(redis.ResponseError, match="being loaded"):
                bf.add("copy", "key1")
        assert bf.loadchunk("copy", iterator, data)
    assert found(r, "copy", keys(0, 5000)) == 5000
    assert r.execute_command("DEBUG", "DIGEST-VALUE", "a", "copy")[0] == \
        r.execute_command("DEBUG", "DIGEST-VALUE", "a", "copy")[1]
    # The last chunk again, because its answer was lost.
    assert bf.loadchunk("copy", *chunks[-1])


def test_redis_rs(server):
    subprocess.run([os.environ["TAMIS_MODULE_REDIS_RS"], str(server.port)], check=True)


@pytest.mark.any_server
def test_the_most_layers_are_named(r):
    r.execute_command("BF.RESERVE", "k", 0.01, 1, "EXPANSION", 1)
    with pytest.raises(redis.ResponseError, match=r"1,000 layers, the most there can be: reserve a larger one.*EXPANSION"):
        for key in keys(0, 100_000):
            r.execute_command("BF.ADD", "k", key)
    info = r.bf().info("k")
    assert info.filterNum == 1000 and info.insertedNum == 1000
    assert r.execute_command("BF.ADD", "k", "key0") == 0
