"""The way back to RedisBloom: with COMPATIBLE yes, what it would refuse is refused, and what it can't read is not made."""

import pytest
import redis
from conftest import digest, found, keys
from test_compatible import plain_dump


@pytest.fixture
def compatible(servers):
    return servers("COMPATIBLE", "yes", appendonly="yes", **{"aof-use-rdb-preamble": "no"})


def test_a_command_is_refused_as_a_whole_at_the_most_expansions(compatible):
    """The numbers are RedisBloom's."""
    r = compatible.client()
    r.execute_command("CF.RESERVE", "c", 4)
    confirmed = []
    with pytest.raises(redis.ResponseError, match="Maximum expansions reached"):
        for key in keys(0, 1000):
            assert r.execute_command("CF.ADD", "c", key) == 1
            confirmed.append(key)
    assert len(confirmed) == 123 and b"filters:32 " in r.execute_command("CF.DEBUG", "c")
    before = r.dump("c")
    for words in [
        ("CF.ADD", "c", "one more"), ("CF.ADDNX", "c", confirmed[0]), ("CF.INSERT", "c", "ITEMS", *keys(0, 50)),
        ("CF.INSERTNX", "c", "ITEMS", *keys(0, 50)), ("CF.INSERT", "c", "NOCREATE", "ITEMS", "one more"),
    ]:
        with pytest.raises(redis.ResponseError, match="Maximum expansions reached"):
            r.execute_command(*words)
    assert r.dump("c") == before and found(r, "c", confirmed, "CF.MEXISTS") == len(confirmed)
    # With room again, it goes on.
    for key in confirmed[20:]:
        r.execute_command("CF.DEL", "c", key)
    r.execute_command("CF.COMPACT", "c")
    assert r.execute_command("CF.ADD", "c", "one more") == 1


def test_a_command_that_began_grows_as_far_as_it_needs(compatible):
    r = compatible.client()
    r.execute_command("CF.RESERVE", "c", 4)
    assert r.execute_command("CF.INSERT", "c", "ITEMS", *keys(0, 6000)) == [1] * 6000
    tables = r.cf().info("c").filterNum
    # More than an RDB value or a first chunk was once read with.
    assert tables > 1024 and found(r, "c", keys(0, 6000), "CF.MEXISTS") == 6000
    dump, whole = r.dump("c"), digest(r, "c")
    r.restore("copy", 0, dump)
    assert digest(r, "copy") == whole
    with pytest.raises(redis.ResponseError, match="Maximum expansions reached"):
        r.execute_command("CF.ADD", "c", "one more")
    # And all of it is in the file.
    compatible.stop()
    compatible.start()
    assert digest(compatible.client(), "c") == whole


def test_compacting_moves_what_it_can_of_every_table(compatible):
    """The file is RedisBloom's own, of the same commands."""
    r = compatible.client()
    r.execute_command("CF.RESERVE", "c", 64)
    for key in keys(0, 400):
        r.execute_command("CF.ADD", "c", key)
    r.execute_command("CF.COMPACT", "c")
    assert r.dump("c")[:-10] == plain_dump("cfcompact")


def expansion(r, key):
    """As the first chunk has it."""
    return int.from_bytes(r.execute_command("BF.SCANDUMP", key, 0)[1][16:20], "little")


def test_an_expansion_of_zero_is_written(compatible):
    r = compatible.client()
    r.execute_command("BF.RESERVE", "zero", 0.01, 3, "EXPANSION", 0)
    r.execute_command("BF.INSERT", "inserted", "EXPANSION", 0, "CAPACITY", 3, "ITEMS", "a")
    r.execute_command("BF.RESERVE", "fixed", 0.01, 3, "NONSCALING")
    r.config_set("tamis.bf-expansion-factor", 0)
    r.execute_command("BF.ADD", "set", "a")
    names = {"zero": 0, "inserted": 0, "fixed": 2, "set": 0}
    assert {name: expansion(r, name) for name in names} == names
    for name in ["zero", "inserted", "fixed"]:
        assert r.execute_command("BF.INFO", name, "EXPANSION") == [None]
        assert "full" in str(r.execute_command("BF.MADD", name, "a", "b", "c", "d")[-1])
    before = digest(r, *names)
    compatible.stop()
    compatible.start()
    assert digest(compatible.client(), *names) == before


def test_what_redisbloom_cannot_read_must_be_asked_for(compatible):
    r = compatible.client()
    for words in [("BF.RESERVE", "k", 0.01, 100, "COUNTING"), ("CF.RESERVE", "k", 1000, "ERROR", 0.001)]:
        with pytest.raises(redis.ResponseError, match="RedisBloom can't read .* LAYOUT tamis"):
            r.execute_command(*words)
        assert not r.exists("k")
        r.execute_command(*words, "LAYOUT", "tamis")
        assert r.type("k").startswith(b"tamis--")
        r.delete("k")
