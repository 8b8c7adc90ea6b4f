"""Coming from RedisBloom and valkey-bloom, and going back: what is written, read and configured."""

import shutil
import struct

import pytest
import redis
from conftest import SAMPLES, VALKEY, add_all, digest, found, keys, sample, until
from test_compatible import chunks

# How many arguments each command has in RedisBloom, and its words with a value.
THEIRS = {
    b"BF.RESERVE": (range(4, 8), {b"EXPANSION"}, {b"NONSCALING"}),
    b"BF.ADD": (range(3, 4), None, None),
    b"BF.MADD": (range(3, 10**6), None, None),
    b"BF.LOADCHUNK": (range(4, 5), None, None),
    b"CF.RESERVE": (range(3, 11, 2), {b"BUCKETSIZE", b"MAXITERATIONS", b"EXPANSION"}, set()),
    b"CF.ADD": (range(3, 4), None, None),
    b"CF.ADDNX": (range(3, 4), None, None),
    b"CF.INSERT": (range(4, 10**6), None, None),
    b"CF.DEL": (range(3, 4), None, None),
    b"CF.COMPACT": (range(2, 3), None, None),
    b"CF.LOADCHUNK": (range(4, 5), None, None),
}
SERVERS_OWN = {b"SELECT", b"MULTI", b"EXEC", b"DEL", b"PEXPIREAT"}


def commands(server):
    """What the append-only files hold."""
    data = b"".join(path.read_bytes() for path in sorted((server.folder / "appendonlydir").glob("*.aof")))
    found, at = [], 0

    def line():
        nonlocal at
        end = data.index(b"\r\n", at)
        text, at = data[at:end], end + 2
        return text

    while at < len(data):
        text = line()
        if text.startswith(b"#"):  # a time, of newer servers
            continue
        command = []
        for _ in range(int(text[1:])):
            length = int(line()[1:])
            command.append(data[at : at + length])
            at += length + 2
        found.append([command[0].upper(), *command[1:]])
    return found


def check_theirs(all_commands):
    for command in all_commands:
        if command[0] in SERVERS_OWN:
            continue
        counts, valued, single = THEIRS[command[0]]
        assert len(command) in counts, command[:8]
        if valued is None:
            continue
        words = command[4 if command[0] == b"BF.RESERVE" else 3 :]
        while words:
            word = words.pop(0)
            assert word in valued | single, command
            if word in valued:
                int(words.pop(0))


def use_everything(r):
    """Every command that changes something, on filters of RedisBloom's layout."""
    r.bf().add("bf", "x")
    add_all(r.bf().madd, "bf", keys(0, 500), 50)
    r.execute_command("BF.INSERT", "bf:made", "CAPACITY", 300, "ERROR", 0.001, "ITEMS", *keys(0, 400))
    r.execute_command("BF.INSERT", "bf:fixed", "CAPACITY", 300, "NONSCALING", "EXPANSION", 3, "ITEMS", *keys(0, 300))
    r.execute_command("BF.RESERVE", "bf:rate", 0.9, 300, "EX", 5000)
    r.bf().madd("bf:rate", *keys(0, 200))
    r.execute_command("BF.RESERVE", "bf:four", 0.01, 100, "EXPANSION", 4, "NX")
    for name in ["one", "two"]:
        r.execute_command("BF.RESERVE", f"bf:{name}", 0.01, 2000, "EX", 7000)
        r.bf().madd(f"bf:{name}", *keys(0, 300))
    r.execute_command("BF.MERGE", "bf:one", "bf:two")
    r.execute_command("BF.CLEAR", "bf:two")
    r.bf().add("bf:two", "after")
    r.cf().add("cf", "x")
    r.cf().addnx("cf", "y")
    r.cf().insert("cf", keys(0, 3000))
    r.execute_command("CF.INSERTNX", "cf", "CAPACITY", 500, "ITEMS", *keys(2900, 3100))
    r.execute_command("CF.RESERVE", "cf:made", 500, "BUCKETSIZE", 4, "EXPANSION", 2, "NX")
    for key in keys(0, 50):
        r.cf().delete("cf", key)
    r.execute_command("CF.COMPACT", "cf")
    for name, kind in [("bfscale", "BF"), ("cfkick", "CF")]:
        for iterator, data in chunks(name):
            r.execute_command(f"{kind}.LOADCHUNK", name, iterator, data)
    return sorted(r.keys())


def times(r, names):
    return {name: r.execute_command("PEXPIRETIME", name) for name in names}


def test_the_way_back_has_redisblooms_words_alone(servers):
    server = servers("COMPATIBLE", "yes", appendonly="yes", **{"aof-use-rdb-preamble": "no"})
    replica = servers("BF-INITIAL-SIZE", "77", "CF-MAX-EXPANSIONS", "1", "SECRET", "yes").client()
    r = server.client()
    replica.replicaof("127.0.0.1", server.port)
    until(lambda: replica.info("replication")["master_link_status"] == "up", "the replica")
    names = use_everything(r)
    assert all(r.type(name).startswith(b"MBbloom") for name in names)
    before, expiry = digest(r, *names), times(r, names)
    assert sum(at > 0 for at in expiry.values()) == 3
    # Whatever a replica's own options are, it has the same.
    until(lambda: r.execute_command("WAIT", 1, 1000) == 1, "the replica to have all of it")
    assert digest(replica, *names) == before and times(replica, names) == expiry
    # And what reads it back.
    server.stop()
    written = commands(server)
    assert {b"BF.RESERVE", b"BF.ADD", b"BF.MADD", b"CF.RESERVE", b"CF.INSERT", b"CF.DEL"} <= {c[0] for c in written}
    check_theirs(written)
    server.module = ()
    server.start()
    r = server.client()
    assert digest(r, *names) == before and times(r, names) == expiry
    r.bgrewriteaof()
    busy = ["aof_rewrite_in_progress", "aof_rewrite_scheduled"]
    until(lambda: not any(r.info("persistence")[name] for name in busy), "the file to be rewritten")
    server.stop()
    check_theirs(commands(server))
    server.start()
    assert digest(server.client(), *names) == before


def test_a_rewritten_file_has_redisblooms_bytes(servers):
    server = servers(appendonly="yes", **{"aof-use-rdb-preamble": "no"})
    r = server.client()
    for name in ["bfscale", "bffixed", "cfbig", "cfkick"]:
        r.restore(name, 0, sample(f"{name}.dump"))
    r.bgrewriteaof()
    busy = ["aof_rewrite_in_progress", "aof_rewrite_scheduled"]
    until(lambda: not any(r.info("persistence")[name] for name in busy), "the file to be rewritten")
    server.stop()
    written = commands(server)
    for name in ["bfscale", "bffixed", "cfbig", "cfkick"]:
        kind = name[:2].upper().encode()
        of_it = [(int(c[2]), c[3]) for c in written if c[0] == kind + b".LOADCHUNK" and c[1] == name.encode()]
        assert of_it == chunks(name)


def encoded(*words):
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def start_with(servers, lines, *module):
    """A server that finds these commands in its append-only file."""
    server = servers(*module, appendonly="yes", **{"aof-use-rdb-preamble": "no"})
    server.stop()
    folder = server.folder / "appendonlydir"
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "appendonly.aof.1.incr.aof").write_bytes(b"".join(encoded(*line) for line in lines))
    (folder / "appendonly.aof.manifest").write_bytes(b"file appendonly.aof.1.incr.aof seq 1 type i\n")
    server.start()
    return server.client()


def test_redisblooms_file_makes_redisblooms_filters(servers):
    """Whatever is the default here: what another server wrote is what it had."""
    r = start_with(servers, [
        ("SELECT", 0),
        ("bf.reserve", "b", "0.01", "100"), *[("bf.add", "b", key) for key in keys(0, 1000)],
        ("cf.reserve", "c", "1024"), *[("cf.add", "c", key) for key in keys(0, 500)],
        ("bf.add", "implied", "x"), ("cf.add", "implied:cf", "x"),
    ])
    assert all(r.type(name).startswith(b"MBbloom") for name in ["b", "c", "implied", "implied:cf"])
    r.restore("b:theirs", 0, sample("bfscale.dump"))
    r.restore("c:theirs", 0, sample("cfbig.dump"))
    assert digest(r, "b") == digest(r, "b:theirs") and digest(r, "c") == digest(r, "c:theirs")
    # A client's are as the options say.
    r.bf().add("new", "x")
    assert r.type("new").startswith(b"tamis--bf")


def test_numbers_of_redisbloom(servers):
    """The figures of RedisBloom 2.8 for the same calls."""
    r = servers("COMPATIBLE", "yes").client()
    r.response_callbacks.clear()
    r.execute_command("BF.RESERVE", "b", "0.001", "100")
    assert r.execute_command("BF.INFO", "b", "size") == [296]
    assert r.execute_command("BF.INFO", "b")[:4] == [b"Capacity", 100, b"Size", 296]
    r.execute_command("CF.RESERVE", "c", 1000)
    assert r.execute_command("CF.INFO", "c")[:2] == [b"Size", 1080]
    assert r.execute_command("CF.SCANDUMP", "c", 0) == [0, None]
    assert r.execute_command("CF.DEBUG", "c") == \
        b"bktsize:2 buckets:512 items:0 deletes:0 filters:1 max_iterations:20 expansion:1"
    r.execute_command("BF.INSERT", "d", "ERROR", "0.001", "CAPACITY", "50000", "EXPANSION", 2, "ITEMS", "foo")
    assert r.execute_command("BF.DEBUG", "d") == [
        b"size:1", b"bytes:98880 bits:791040 hashes:11 hashwidth:64 capacity:50000 size:1 ratio:0.0005",
    ]
    r.execute_command("BF.RESERVE", "e", "0.001", "100")
    for i in range(4000):
        r.execute_command("BF.ADD", "e", i)
    told = r.execute_command("BF.DEBUG", "e")
    assert told[0] == b"size:3997" and told[4].endswith(b"size:800 ratio:6.25e-05")
    # 32 tables, not 33.
    r.execute_command("CF.RESERVE", "full", 4)
    added = 0
    with pytest.raises(redis.ResponseError, match="Maximum expansions reached"):
        for added in range(1000):
            r.execute_command("CF.ADD", "full", added)
    assert b"filters:32 " in r.execute_command("CF.DEBUG", "full") and added >= 124
    # Rates above a quarter are a quarter.
    for name, rate in [("high", "0.9999999999999999"), ("quarter", "0.25")]:
        r.execute_command("BF.RESERVE", name, rate, 100, "NONSCALING")
    assert digest(r, "high") == digest(r, "quarter")
    # NONSCALING has the last word.
    r.execute_command("BF.INSERT", "both", "NONSCALING", "EXPANSION", 2, "CAPACITY", 3, "ITEMS", "a", "b", "c")
    assert r.execute_command("BF.INFO", "both", "EXPANSION") == [None]


def test_impossible_headers_are_refused(r):
    good = sample("bfscale.chunk0.iter1")
    for at, data in [
        (72, bytes(8)), (20, bytes(8)), (28, bytes(8)), (12, b"\xff" * 4), (0, b"\xff" * 4), (8, bytes(4)),
        (36, b"\xff" * 8), (60, bytes(4)),
    ]:
        bad = bytearray(good)
        bad[at : at + len(data)] = data
        with pytest.raises(redis.ResponseError, match="^received bad data$"):
            r.bf().loadchunk("k", 1, bytes(bad))
        assert not r.exists("k")
    bad = bytearray(good)
    bad[0:8] = bad[36:44] = b"\xff" * 8
    with pytest.raises(redis.ResponseError, match="^received bad data$"):
        r.bf().loadchunk("k", 1, bytes(bad))


def test_an_empty_filter_needs_its_first_chunk_alone(r):
    for kind, reserve in [("BF", ["0.01", "1000"]), ("CF", ["1024"])]:
        r.execute_command(f"{kind}.RESERVE", kind, *reserve, "LAYOUT", "redisbloom")
        iterator, header = r.execute_command(f"{kind}.SCANDUMP", kind, 0)
        r.execute_command(f"{kind}.LOADCHUNK", "copy", iterator, header)
        assert digest(r, "copy") == digest(r, kind)
        # The zeros that may follow are no error; anything else is.
        iterator, zeros = r.execute_command(f"{kind}.SCANDUMP", kind, iterator)
        r.execute_command(f"{kind}.LOADCHUNK", "copy", iterator, zeros)
        with pytest.raises(redis.ResponseError):
            r.execute_command(f"{kind}.LOADCHUNK", "copy", iterator, b"x" * len(zeros))
        r.execute_command(f"{kind}.ADD", "copy", "x")
        r.delete("copy")


def test_redisblooms_options(servers):
    server = servers("ERROR_RATE", "0.02", "INITIAL_SIZE", "200", "CF_MAX_EXPANSIONS", "3", "COMPATIBLE", "yes")
    r = server.client()
    r.bf().add("b", "x")
    assert r.bf().info("b").capacity == 200
    r.execute_command("CF.RESERVE", "c", 4)
    with pytest.raises(redis.ResponseError, match="Maximum expansions reached"):
        for key in keys(0, 1000):
            r.cf().add("c", key)
    assert r.cf().info("c").filterNum == 3
    everything = servers(
        "bf-error-rate", "0.02", "bf-initial-size", "200", "bf-expansion-factor", "3", "cf-bucket-size", "3",
        "cf-initial-size", "2048", "cf-max-iterations", "30", "cf-expansion-factor", "2", "cf-max-expansions", "64",
        "bloom-tightening-ratio", "0.5", "bloom-use-random-seed", "yes",
    )
    assert everything.client().config_get("tamis.cf-max-expansions") == {"tamis.cf-max-expansions": "64"}
    log = (everything.folder / "log").read_text()
    assert "cf-bucket-size, cf-max-iterations, cf-max-expansions: for filters of RedisBloom's layout" in log
    assert "option bloom-tightening-ratio has no meaning here" in log
    theirs = servers("bloom-capacity", "300", "bloom-fp-rate", "0.001", "bloom-memory-usage-limit", "1000000").client()
    theirs.bf().add("b", "x")
    assert theirs.bf().info("b").capacity == 300
    assert theirs.config_get("tamis.max-key-bytes") == {"tamis.max-key-bytes": "1000000"}


def test_redisblooms_settings(servers):
    """Where the server allows names without the module's before them."""
    if servers.program != "redis8":
        with pytest.raises(redis.ResponseError):
            servers().client().config_set("bf-error-rate", "0.02")
        return
    r = servers("COMPATIBLE", "yes", **{"bf-initial-size": "345"}).client()
    names = {
        "bf-error-rate": "0.01", "bf-initial-size": "345", "bf-expansion-factor": "2", "cf-bucket-size": "2",
        "cf-initial-size": "1024", "cf-max-iterations": "20", "cf-expansion-factor": "1", "cf-max-expansions": "32",
    }
    for name, value in names.items():
        assert r.config_get(name) == {name: value}
    r.config_set("bf-error-rate", "0.02")
    assert r.config_get("tamis.bf-error-rate") == {"tamis.bf-error-rate": "0.02"}
    r.config_set("tamis.bf-initial-size", "123")
    assert r.config_get("bf-initial-size") == {"bf-initial-size": "123"}
    r.bf().add("b", "x")
    assert r.bf().info("b").capacity == 123
    for name, value in [
        ("bf-error-rate", "0.0"), ("bf-error-rate", "1"), ("bf-initial-size", "0"), ("bf-initial-size", 2**32),
        ("bf-expansion-factor", "-1"), ("cf-bucket-size", "256"), ("cf-initial-size", "0"), ("cf-max-iterations", "65536"),
        ("cf-expansion-factor", "-1"), ("cf-expansion-factor", "32769"), ("cf-max-expansions", "65537"),
    ]:
        with pytest.raises(redis.ResponseError, match="must be in the range"):
            r.config_set(name, value)


def valkey_fields(load):
    """The fields of valkey-bloom's RDB value, from what BF.LOAD takes."""
    expansion, rate, tightening, is_random, count = struct.unpack("<IddBQ", load[1:30])

    def unsigned(number):
        if number < 64:
            return b"\x02" + bytes([number])
        return b"\x02" + bytes([0x40 | number >> 8, number & 255])

    out = unsigned(count) + unsigned(expansion)
    out += b"\x04" + struct.pack("<d", rate) + b"\x04" + struct.pack("<d", tightening) + unsigned(is_random)
    at, items = 30, 0
    for _ in range(count):
        length = struct.unpack("<Q", load[at : at + 8])[0]
        data = load[at + 8 : at + 8 + length]
        items, capacity = struct.unpack("<qq", load[at + 8 + length : at + 24 + length])
        at += 24 + length
        out += b"\x05" + unsigned(length)[1:] + data + unsigned(capacity)
    return out + unsigned(items)


def test_valkey_blooms_data(r):
    r.execute_command("BF.LOAD", "v", VALKEY)
    assert r.type("v").startswith(b"bloomfltr")
    assert found(r, "v", keys(0, 400)) == 400 and found(r, "v", keys(400, 10_400)) < 260
    info = r.bf().info("v")
    assert (info.capacity, info.filterNum, info.insertedNum, info.expansionRate) == (750, 4, 391, 2)
    r.response_callbacks.clear()
    assert r.execute_command("BF.INFO", "v", "ERROR") == [b"0.01"]
    assert r.execute_command("BF.INFO", "v", "TIGHTENING") == [b"0.5"]
    # As valkey-bloom dumps it, and from that.
    dump = r.dump("v")
    assert dump[10:-11] == valkey_fields(VALKEY)
    r.restore("copy", 0, dump)
    assert digest(r, "copy") == digest(r, "v")
    for name in ["v", "copy"]:
        r.execute_command("BF.MADD", name, *keys(400, 2000))
        assert found(r, name, keys(0, 2000)) == 2000
    assert digest(r, "copy") == digest(r, "v")
    with pytest.raises(redis.ResponseError, match="BUSYKEY"):
        r.execute_command("BF.LOAD", "v", VALKEY)
    for bad in [b"", b"\x02" + VALKEY[1:], VALKEY[:-1], VALKEY + b"x"]:
        with pytest.raises(redis.ResponseError, match="decoding failed"):
            r.execute_command("BF.LOAD", "bad", bad)
    with pytest.raises(redis.ResponseError, match="use DUMP"):
        r.execute_command("BF.SCANDUMP", "v", 0)


def test_valkey_blooms_file(servers):
    """Its replicas and append-only files make filters with a seed, and load them."""
    seed = bytes(7 * i + 1 for i in range(32))
    r = start_with(servers, [
        ("SELECT", 0), ("BF.LOAD", "loaded", VALKEY),
        ("BF.INSERT", "v", "CAPACITY", 50, "ERROR", "0.01", "TIGHTENING", "0.5", "SEED", seed, "EXPANSION", 2),
        *[("BF.ADD", "v", key) for key in keys(0, 200)],
        ("BF.INSERT", "items", "CAPACITY", 50, "ERROR", "0.01", "TIGHTENING", "0.5", "SEED", seed, "EXPANSION", 2,
         "ITEMS", *keys(0, 400)),
        ("BF.MADD", "v", *keys(200, 400)),
    ])
    assert len(set(digest(r, "loaded", "v", "items"))) == 1


def test_valkey_blooms_commands(r):
    r.response_callbacks.clear()
    assert r.execute_command("BF.INSERT", "k", "VALIDATESCALETO", 10**6, "TIGHTENING", "0.5", "ITEMS", "a", "b") == [1, 1]
    assert r.execute_command("BF.CARD", "k") == 2
    assert r.execute_command("BF.INFO", "k", "MAXSCALEDCAPACITY") == [None]
    r.config_set("tamis.max-key-bytes", "1mb")
    for line, text in [
        ("BF.INSERT n VALIDATESCALETO 100000000 ITEMS a", "VALIDATESCALETO causes"),
        ("BF.INSERT n NONSCALING VALIDATESCALETO 1000 ITEMS a", "cannot use NONSCALING and VALIDATESCALETO"),
        ("BF.INSERT n TIGHTENING 2 ITEMS a", "tightening ratio range"),
        ("BF.INSERT n SEED short ITEMS a", "invalid seed"),
    ]:
        with pytest.raises(redis.ResponseError, match=text):
            r.execute_command(*line.split())
    assert not r.exists("n")


def test_counting(both):
    both.execute_command("BF.RESERVE", "k", 0.01, 1000, "COUNTING")
    assert both.bf().add("k", "ada") == 1 and both.bf().add("k", "ada") == 0
    assert both.execute_command("BF.COUNT", "k", "ada") == 2 and both.execute_command("BF.COUNT", "k", "bob") == 0
    assert both.execute_command("BF.COUNT", "none", "ada") == 0
    assert both.execute_command("BF.REMOVE", "k", "ada") == 1 and both.bf().exists("k", "ada") == 1
    assert both.execute_command("BF.REMOVE", "k", "ada") == 1 and both.bf().exists("k", "ada") == 0
    assert both.execute_command("BF.REMOVE", "k", "ada") == 0
    # It keeps its rate: what is new to a full one is refused.
    answers = both.execute_command("BF.MADD", "k", *keys(0, 1200))
    assert "full" in str(answers[-1]) and both.bf().card("k") == 1000
    assert both.bf().add("k", "key1") == 0 and both.execute_command("BF.COUNT", "k", "key1") >= 2
    assert both.execute_command("BF.REMOVE", "k", "key5") == 1
    both.execute_command("BF.RESERVE", "plain", 0.01, 1000)
    for line, text in [
        ("BF.REMOVE plain x", "reserve it with COUNTING"), ("BF.COUNT plain x", "reserve it with COUNTING"),
        ("BF.REMOVE none x", "not found"), ("BF.RESERVE l 0.01 10 COUNTING EXPANSION 2", "neither EXPANSION"),
        ("BF.RESERVE l 0.01 10 COUNTING LAYOUT redisbloom", "neither EXPANSION"), ("BF.MERGE plain k", "counting"),
    ]:
        with pytest.raises(redis.ResponseError, match=text):
            both.execute_command(*line.split())


@pytest.mark.any_server
def test_counting_keeps_its_rate(r):
    r.execute_command("BF.RESERVE", "k", 0.01, 20_000, "COUNTING")
    add_all(r.bf().madd, "k", keys(0, 20_000))
    pipe = r.pipeline(transaction=False)
    for key in keys(0, 10_000):
        pipe.execute_command("BF.REMOVE", "k", key)
    assert sum(pipe.execute()) == 10_000
    add_all(r.bf().madd, "k", keys(20_000, 30_000))
    assert found(r, "k", keys(10_000, 30_000)) == 20_000
    assert found(r, "k", [f"never:{i}" for i in range(100_000)]) < 1_150
