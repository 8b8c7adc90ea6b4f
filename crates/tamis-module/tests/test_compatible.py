"""RedisBloom's data moves here and back, bit for bit."""

import shutil

import pytest
from conftest import SAMPLES, add_all, digest, found, keys, sample

# Name, kind, the keys it holds, and what made it.
FILTERS = [
    ("bfscale", "BF", (0, 1000), ["0.01", "100"]),
    ("bffixed", "BF", (0, 500), ["0.001", "1000", "NONSCALING"]),
    ("bfdefault", "BF", (0, 300), None),
    ("cfbig", "CF", (0, 500), ["1024"]),
    ("cfkick", "CF", (40, 600), ["256", "BUCKETSIZE", "4", "MAXITERATIONS", "20", "EXPANSION", "2"]),
]


def plain_dump(name):
    """A DUMP with uncompressed strings, without the version and sum at its end."""
    path = SAMPLES / f"{name}.nolzf.dump"
    return (path if path.exists() else SAMPLES / f"{name}.dump").read_bytes()[:-10]


def chunks(name):
    files = sorted(SAMPLES.glob(f"{name}.chunk*"), key=lambda path: int(path.name.split(".iter")[1]))
    return [(int(path.name.split(".iter")[1]), path.read_bytes()) for path in files]


@pytest.mark.parametrize("name, kind, held, _", FILTERS, ids=lambda value: value if isinstance(value, str) else "")
def test_dumps_and_chunks_round_trip(r, name, kind, held, _):
    r.restore("k", 0, sample(f"{name}.dump"))
    assert found(r, "k", keys(*held), f"{kind}.MEXISTS") == held[1] - held[0]
    assert r.dump("k")[:-10] == plain_dump(name)
    # SCANDUMP, as RedisBloom gives it.
    got, iterator = [], 0
    while True:
        iterator, data = r.execute_command(f"{kind}.SCANDUMP", "k", iterator)
        if iterator == 0:
            break
        got.append((iterator, data))
    assert got == chunks(name)
    for iterator, data in got:
        r.execute_command(f"{kind}.LOADCHUNK", "loaded", iterator, data)
    assert r.dump("loaded")[:-10] == plain_dump(name)
    assert digest(r, "k") == digest(r, "loaded")
    assert r.copy("k", "copied") and r.dump("copied")[:-10] == plain_dump(name)


def test_an_rdb_file_round_trips(servers):
    server = servers()
    server.stop()
    shutil.copy(SAMPLES / "all.rdb", server.folder / "dump.rdb")
    server.start()
    r = server.client()
    for name, kind, held, _ in FILTERS:
        assert found(r, name, keys(*held), f"{kind}.MEXISTS") == held[1] - held[0]
        assert r.dump(name)[:-10] == plain_dump(name)
    r.save()
    server.stop()
    server.start()
    for name, kind, held, _ in FILTERS:
        assert server.client().dump(name)[:-10] == plain_dump(name)


def test_what_redisbloom_would_have_made(servers):
    r = servers("COMPATIBLE", "yes").client()
    for name, kind, held, reserve in FILTERS:
        if reserve:
            r.execute_command(f"{kind}.RESERVE", name, *reserve)
        for key in keys(0, held[1]):
            r.execute_command(f"{kind}.ADD", name, key)
        for key in keys(0, held[0]):
            r.execute_command("CF.DEL", name, key)
        if name != "cfkick":
            assert r.dump(name)[:-10] == plain_dump(name), name
        assert found(r, name, keys(*held), f"{kind}.MEXISTS") == held[1] - held[0]


def test_one_that_came_grows_on(r):
    r.restore("k", 0, sample("bfscale.dump"))
    before = r.bf().info("k")
    add_all(r.bf().madd, "k", keys(0, 5000))
    after = r.bf().info("k")
    assert after.filterNum > before.filterNum and after.capacity > before.capacity
    assert found(r, "k", keys(0, 5000)) == 5000
    r.restore("c", 0, sample("cfkick.dump"))
    for key in keys(40, 300):
        assert r.cf().delete("c", key)
    assert found(r, "c", keys(300, 600), "CF.MEXISTS") == 300


def test_both_layouts_side_by_side(r):
    r.execute_command("BF.RESERVE", "ours", 0.01, 1000)
    r.config_set("tamis.compatible", "yes")
    r.execute_command("BF.ADD", "theirs", "x")
    r.execute_command("CF.ADD", "theirs:cf", "x")
    assert b"tamis--bf" in r.type("ours") and b"MBbloom--" in r.type("theirs")
    assert b"MBbloomCF" in r.type("theirs:cf")
    # A rate can only be asked for in our own layout.
    r.execute_command("CF.RESERVE", "asked", 1000, "ERROR", 0.001, "LAYOUT", "tamis")
    assert b"tamis--cf" in r.type("asked")
