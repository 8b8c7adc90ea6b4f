"""CF.* through redis-py's own methods, and what they leave out."""

import pytest
import redis
from conftest import found, keys


def test_create_add_ask(both):
    cf = both.cf()
    assert cf.create("cuckoo", 1000)
    assert cf.create("cuckoo_e", 1000, expansion=1)
    assert cf.create("cuckoo_bs", 1000, bucket_size=4)
    assert cf.create("cuckoo_mi", 1000, max_iterations=10)
    assert cf.add("cuckoo", "filter") == 1
    assert cf.addnx("cuckoo", "filter") == 0 and cf.addnx("cuckoo", "newItem") == 1
    assert cf.insert("captest", ["foo"]) == [1]
    assert cf.insert("captest", ["foo"], capacity=1000) == [1]
    assert cf.insertnx("captest", ["foo", "bar"]) == [0, 1]
    assert cf.insertnx("empty1", ["foo", "bar"], capacity=1000) == [1, 1]
    with pytest.raises(redis.ResponseError, match="not found"):
        cf.insertnx("none", ["foo"], nocreate=True)
    assert cf.count("captest", "foo") == 2
    assert cf.exists("cuckoo", "filter") == 1 and cf.exists("cuckoo", "notexist") == 0
    assert both.execute_command("CF.MEXISTS", "cuckoo", "filter", "no") == [1, 0]
    assert cf.delete("cuckoo", "filter") == 1 and cf.delete("cuckoo", "filter") == 0
    assert cf.count("cuckoo", "filter") == 0
    info = cf.info("cuckoo")
    if isinstance(info, dict):
        assert (info[b"Number of items inserted"], info[b"Number of items deleted"]) == (1, 1)
    else:
        assert (info.insertedNum, info.deletedNum, info.filterNum) == (1, 1, 1)


def test_missing_keys(r):
    cf = r.cf()
    assert cf.exists("no", "x") == 0 and cf.count("no", "x") == 0
    assert r.execute_command("CF.MEXISTS", "no", "x", "y") == [0, 0]
    with pytest.raises(redis.ResponseError, match="Not found"):
        cf.delete("no", "x")
    with pytest.raises(redis.ResponseError, match="Cuckoo filter was not found"):
        r.execute_command("CF.COMPACT", "no")
    with pytest.raises(redis.ResponseError, match="not found"):
        cf.info("no")


@pytest.mark.parametrize("line, text", [
    ("CF.RESERVE k x", "Bad capacity"),
    ("CF.RESERVE k 0", "Capacity must be in the range [2 * BUCKETSIZE, 1073741824]"),
    ("CF.RESERVE k 5 BUCKETSIZE 3", "Capacity must be in the range [2 * BUCKETSIZE, 1073741824]"),
    ("CF.RESERVE k 5 BUCKETSIZE 0", "BUCKETSIZE: value must be in the range [1, 255]"),
    ("CF.RESERVE k 5 MAXITERATIONS x", "Couldn't parse MAXITERATIONS"),
    ("CF.RESERVE k 5 EXPANSION 99999", "EXPANSION: value must be in the range [0, 32768]"),
    ("CF.RESERVE k 5 ERROR 1", "ERR error rate must be in the range (0.000000, 1.000000)"),
    ("CF.RESERVE k 5 ERROR 1e-8", "ERR ERROR must be at least 1.8e-8 for a filter that grows like this: 18 layers share it; "
     "1e-9 with EXPANSION 0. A Bloom filter goes lower, and with COUNTING its items can be removed, too"),
    ("CF.RESERVE k 5 ERROR 1e-10 EXPANSION 0", "ERR ERROR must be at least 1e-9. A Bloom filter goes lower, and with "
     "COUNTING its items can be removed, too"),
    ("CF.RESERVE k 5 FOO", "ERR Unknown argument received: 'FOO'"),
    ("CF.INSERT k CAPACITY 5 ITEM a", "Unknown argument received"),
    ("CF.LOADCHUNK k 1 abc", "Invalid header"),
])
def test_errors(r, line, text):
    with pytest.raises(redis.ResponseError) as refused:
        r.execute_command(*line.split())
    assert str(refused.value) in (text, text.removeprefix("ERR "))
    assert not r.exists("k")


def test_full(r):
    r.execute_command("CF.RESERVE", "fixed", 1024, "EXPANSION", 0)
    answers = [r.execute_command("CF.INSERT", "fixed", "ITEMS", *keys(i, i + 500)) for i in range(0, 2000, 500)]
    answers = sum(answers, [])
    assert answers[:1024] == [1] * 1024 and answers[-1] == -1
    with pytest.raises(redis.ResponseError, match="Filter is full"):
        r.execute_command("CF.ADD", "fixed", "more")
    assert found(r, "fixed", keys(0, 1024), "CF.MEXISTS") == 1024


def test_compact_and_merge(r):
    for at in range(0, 8000, 1000):
        r.execute_command("CF.INSERT", "k", "ITEMS", *keys(at, at + 1000))
    before = r.cf().info("k").filterNum
    assert before > 2
    pipe = r.pipeline(transaction=False)
    for key in keys(500, 8000):
        pipe.execute_command("CF.DEL", "k", key)
    assert sum(pipe.execute()) == 7500
    assert r.execute_command("CF.COMPACT", "k") == b"OK"
    assert r.cf().info("k").filterNum < before
    assert found(r, "k", keys(0, 500), "CF.MEXISTS") == 500
    for name, start in [("a", 0), ("b", 300)]:
        r.execute_command("CF.RESERVE", name, 1024, "ERROR", 0.001)
        r.execute_command("CF.INSERT", name, "ITEMS", *keys(start, start + 300))
    assert r.execute_command("CF.MERGE", "both", "a", "b") == b"OK"
    assert found(r, "both", keys(0, 600), "CF.MEXISTS") == 600
    assert r.cf().info("both").insertedNum == 600
    with pytest.raises(redis.ResponseError):
        r.execute_command("CF.MERGE", "both", "k")


def test_dump_and_load_through_the_client(r):
    cf = r.cf()
    for at in range(0, 3000, 1000):
        cf.insert("a", keys(at, at + 1000))
    iterator = 0
    while True:
        iterator, data = cf.scandump("a", iterator)
        if iterator == 0:
            break
        assert cf.loadchunk("copy", iterator, data)
    assert found(r, "copy", keys(0, 3000), "CF.MEXISTS") == 3000
    assert all(cf.delete("copy", key) for key in keys(0, 100))


@pytest.mark.any_server
def test_the_most_layers_are_named(r):
    """No setting is to blame for them."""
    r.config_set("tamis.cf-max-expansions", 1)
    r.execute_command("CF.RESERVE", "k", 1, "EXPANSION", 1)
    with pytest.raises(redis.ResponseError, match="shared among 32 layers.*reserve a larger one.*EXPANSION 2"):
        for at in range(0, 60_000, 100):
            r.execute_command("CF.INSERT", "k", "ITEMS", *keys(at, at + 99))
            r.execute_command("CF.ADD", "k", f"key{at + 99}")
    assert r.cf().info("k").filterNum == 32


@pytest.mark.parametrize("words, rate", [("", "1.8e-8"), ("EXPANSION 1", "3.2e-8"), ("EXPANSION 0", "1e-9")])
@pytest.mark.any_server
def test_the_lowest_rate_is_taken(r, words, rate):
    assert r.execute_command("CF.RESERVE", "k", 5, "ERROR", rate, *words.split()) == b"OK"
