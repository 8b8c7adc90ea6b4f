"""A filter is a value like others: it is saved, copied, replicated, measured, moved and forbidden."""

import pytest
import redis
from conftest import PATIENCE, VALKEY, add_all, digest, found, keys, sample, until

NAMES = [
    "bf", "bf:fixed", "bf:secret", "bf:counts", "bf:window", "bf:quiet", "cf", "cf:asked", "their:bf", "their:cf", "valkey", "half",
]


def fill(r):
    """One of everything."""
    add_all(r.bf().madd, "bf", keys(0, 3000))
    r.execute_command("BF.RESERVE", "bf:fixed", 0.001, 2000, "NONSCALING")
    add_all(r.bf().madd, "bf:fixed", keys(0, 2000))
    r.config_set("tamis.secret", "yes")
    add_all(r.bf().madd, "bf:secret", keys(0, 1000))
    r.config_set("tamis.secret", "no")
    r.execute_command("BF.RESERVE", "bf:counts", 0.01, 2000, "COUNTING")
    add_all(r.bf().madd, "bf:counts", keys(0, 1500))
    for key in keys(0, 500):
        assert r.execute_command("BF.REMOVE", "bf:counts", key)
    r.execute_command("BF.RESERVE", "bf:window", 0.001, 20_000, "WINDOW", 86400)
    add_all(r.bf().madd, "bf:window", keys(0, 1500))
    r.execute_command("BF.RESERVE", "bf:quiet", 0.001, 50_000, "WINDOW", 86400, "GENERATIONS", 24, "QUIET")
    add_all(r.bf().madd, "bf:quiet", keys(0, 1500))
    r.execute_command("BF.LOAD", "valkey", VALKEY)
    r.cf().insert("cf", keys(0, 3000))
    r.execute_command("CF.RESERVE", "cf:asked", 2000, "ERROR", 0.0001, "EXPANSION", 3)
    r.cf().insert("cf:asked", keys(0, 5000))
    for key in keys(0, 500):
        r.cf().delete("cf:asked", key)
    r.restore("their:bf", 0, sample("bfscale.dump"))
    r.restore("their:cf", 0, sample("cfkick.dump"))
    r.bf().loadchunk("half", 1, sample("bfscale.chunk0.iter1"))
    r.bf().loadchunk("half", 145, sample("bfscale.chunk1.iter145"))


def check(r):
    assert found(r, "bf", keys(0, 3000)) == 3000
    assert found(r, "bf:fixed", keys(0, 2000)) == 2000
    assert found(r, "bf:secret", keys(0, 1000)) == 1000
    assert found(r, "bf:counts", keys(500, 1500)) == 1000 and r.bf().card("bf:counts") > 980
    for name in ["bf:window", "bf:quiet"]:
        assert found(r, name, keys(0, 1500)) == 1500 and 1490 < r.bf().card(name) <= 1500
    assert found(r, "valkey", keys(0, 400)) == 400
    assert found(r, "cf", keys(0, 3000), "CF.MEXISTS") == 3000
    assert found(r, "cf:asked", keys(500, 5000), "CF.MEXISTS") == 4500
    with pytest.raises(redis.ResponseError, match="being loaded: 144 of 2688 bytes"):
        r.bf().exists("half", "key1")


def test_restart_from_rdb(servers):
    server = servers()
    r = server.client()
    fill(r)
    before = digest(r, *NAMES)
    assert len(set(before)) == len(NAMES)
    server.stop(save=True)
    server.start()
    check(server.client())
    assert digest(server.client(), *NAMES) == before
    # What was half loaded is gone on with.
    for iterator, number in [(457, 2), (1153, 3), (2689, 4)]:
        server.client().bf().loadchunk("half", iterator, sample(f"bfscale.chunk{number}.iter{iterator}"))
    assert found(server.client(), "half", keys(0, 1000)) == 1000


@pytest.mark.parametrize("rewrite", [False, True])
def test_restart_from_aof(servers, rewrite):
    server = servers(**{"appendonly": "yes", "aof-use-rdb-preamble": "no"})
    r = server.client()
    fill(r)
    if rewrite:
        r.bgrewriteaof()
        busy = ["aof_rewrite_in_progress", "aof_rewrite_scheduled"]
        until(lambda: not any(r.info("persistence")[name] for name in busy), "the file to be rewritten")
    before = digest(r, *NAMES)
    server.stop()
    server.start()
    check(server.client())
    assert digest(server.client(), *NAMES) == before


def test_dump_restore_copy(r):
    fill(r)
    for name in NAMES:
        r.restore(f"{name}:restored", 0, r.dump(name))
        assert r.copy(name, f"{name}:copied")
        assert len(set(digest(r, name, f"{name}:restored", f"{name}:copied"))) == 1, name
    r.bf().add("bf:copied", "only in the copy")
    assert not r.bf().exists("bf", "only in the copy")


def replicate(replica, primary):
    """Makes it a replica that has all there is."""
    replica.replicaof("127.0.0.1", primary.port)
    until(lambda: replica.info("replication")["master_link_status"] == "up", "the replica")


def test_a_replica_is_the_same_whatever_its_options(servers):
    primary, replica = servers(), servers(
        "COMPATIBLE", "yes", "BF-INITIAL-SIZE", "5000", "BF-ERROR-RATE", "0.2", "SECRET", "yes",
        "CF-INITIAL-SIZE", "9999", "MAX-KEY-BYTES", "1000",
    )
    r, copy = primary.client(), replica.client()
    replicate(copy, primary)
    fill(r)
    # Growth, full filters, duplicates, deletes, merges, clears.
    for i in range(20):
        r.bf().madd("bf", *keys(i * 400, i * 400 + 700))
        r.bf().insert("made", keys(i * 50, i * 50 + 80), capacity=60, error=0.001)
        r.execute_command("CF.INSERT", "cf", "ITEMS", *keys(i * 300, i * 300 + 400))
        r.execute_command("CF.INSERTNX", "cf:nx", "ITEMS", *keys(i * 100, i * 100 + 150))
        r.cf().addnx("cf:nx", f"key{i}")
        r.cf().delete("cf", f"key{i * 7}")
        r.bf().add("bf:one", f"key{i // 2}")
    r.execute_command("BF.RESERVE", "part", 0.01, 3, "NONSCALING")
    assert len(r.execute_command("BF.MADD", "part", "a", "b", "c", "d", "e")) == 4
    r.execute_command("CF.RESERVE", "cf:part", 1024, "EXPANSION", 0)
    for at in range(0, 2000, 500):
        r.execute_command("CF.INSERT", "cf:part", "ITEMS", *keys(at, at + 500))
    r.execute_command("CF.COMPACT", "cf")
    for name in ["m1", "m2"]:
        r.execute_command("BF.RESERVE", name, 0.01, 9000)
        r.bf().madd(name, *keys(0, 100))
    r.execute_command("BF.MERGE", "merged", "m1", "m2")
    r.execute_command("BF.CLEAR", "m1")
    with pytest.raises(redis.ResponseError):
        r.bf().loadchunk("bad", 1, sample("bfscale.chunk0.iter1"))
        r.bf().loadchunk("bad", 2689, b"x" * 2688 + b"x")
    until(lambda: r.execute_command("WAIT", 1, 1000) == 1, "the replica to have all of it")
    names = NAMES + ["made", "cf:nx", "bf:one", "part", "cf:part", "merged", "m1", "m2"]
    assert digest(r, *names) == digest(copy, *names)
    assert sorted(r.keys()) == sorted(copy.keys())
    log = (replica.folder / "log").read_text() + (primary.folder / "log").read_text()
    assert "CRITICAL" not in log
    # A new replica gets all of it at once.
    second = servers().client()
    replicate(second, primary)
    assert digest(second, *names) == digest(r, *names)
    check(second)


def test_what_changes_nothing_is_not_replicated(servers):
    # Written before an answer is sent: else what is written may wait for the disk, and count later.
    r = servers(appendonly="yes", appendfsync="always").client()
    r.bf().madd("bf", *keys(0, 50))
    r.cf().insert("cf", keys(0, 50))
    before = r.info("replication")["master_repl_offset"], r.info("persistence")["aof_current_size"]
    r.bf().madd("bf", *keys(0, 50))
    r.bf().add("bf", "key1")
    r.execute_command("BF.RESERVE", "bf", 0.01, 5, "NX")
    r.cf().insertnx("cf", keys(0, 50))
    r.cf().addnx("cf", "key1")
    r.cf().delete("cf", "never there")
    assert (r.info("replication")["master_repl_offset"], r.info("persistence")["aof_current_size"]) == before


@pytest.mark.parametrize("layout", ["tamis", "redisbloom"])
def test_what_changes_nothing_breaks_no_watch(servers, layout):
    r = servers("COMPATIBLE", "yes" if layout == "redisbloom" else "no").client()
    r.bf().add("b", "x")
    r.cf().add("c", "x")

    def survives(key, *words):
        """Whether a transaction that watches the key is executed though this came between."""
        with r.pipeline() as pipe:
            pipe.watch(key)
            try:
                r.execute_command(*words)
            except redis.ResponseError:
                pass
            pipe.multi()
            pipe.ping()
            try:
                return pipe.execute() == [True]
            except redis.WatchError:
                return False

    for words in [
        ("BF.ADD", "b", "x"), ("BF.MADD", "b", "x", "x"), ("BF.INSERT", "b", "ITEMS", "x"), ("BF.RESERVE", "b", 0.01, 10),
        ("CF.ADDNX", "c", "x"), ("CF.INSERTNX", "c", "ITEMS", "x"), ("CF.DEL", "c", "never"), ("BF.EXISTS", "b", "y"),
        ("BF.ADD", "c", "x"), ("BF.LOADCHUNK", "b", 1, "x"),
    ]:
        assert survives(words[1], *words), words
    for words in [
        ("BF.ADD", "b", "y"), ("BF.MADD", "b", "x", "z"), ("BF.INSERT", "b", "ITEMS", "w"), ("BF.CLEAR", "b"),
        ("CF.ADD", "c", "x"), ("CF.ADDNX", "c", "y"), ("CF.INSERT", "c", "ITEMS", "x"), ("CF.DEL", "c", "x"),
        ("CF.COMPACT", "c"), ("BF.RESERVE", "new", 0.01, 10), ("BF.ADD", "other", "x"), ("CF.ADD", "other:c", "x"),
        ("BF.MERGE", "union", "b"), ("BF.RESERVE", "dying", 0.01, 10, "EX", 100),
    ]:
        assert not survives(words[1], *words), words



def test_memory_usage_is_what_the_server_gave(servers):
    r = servers().client()
    r.execute_command("CONFIG", "SET", "maxmemory", "0")
    jemalloc = "jemalloc" in r.info("memory")["mem_allocator"]
    for make in [
        lambda: r.execute_command("BF.RESERVE", "k", 0.01, 10_000_000),
        lambda: add_all(r.bf().madd, "k", keys(0, 300_000)),
        lambda: r.execute_command("CF.RESERVE", "k", 5_000_000, "ERROR", 0.001),
        lambda: r.execute_command("BF.RESERVE", "k", 0.01, 3_000_000, "WINDOW", 60),
        lambda: r.restore("k", 0, sample("bfscale.dump")),
    ]:
        r.memory_purge() if jemalloc else None
        before = r.info("memory")["used_memory"]
        make()
        used = r.info("memory")["used_memory"] - before
        told = r.memory_usage("k")
        # What else the server has, for its clients above all, moves by some KiB.
        assert abs(told - used) < 65536 + used * 0.01, (told, used)
        r.delete("k")


@pytest.mark.parametrize("layout", ["tamis", "redisbloom"])
def test_memory_usage_counts_small_things(servers, layout):
    """What lies beside the bits weighs most in small filters, of which there may be many."""
    names = [f"{kind}{i}" for kind in ["bf", "cf"] for i in range(500)]
    r = servers().client()

    def told():
        pipe = r.pipeline(transaction=False)
        for name in names:
            pipe.memory_usage(name, samples=0)
        return sum(pipe.execute())

    def used():
        r.connection_pool.disconnect()  # the server has buffers for each client
        until(lambda: r.info("clients")["connected_clients"] == 1, "the old connection to be gone")
        return r.info("memory")["used_memory"]

    pipe = r.pipeline(transaction=False)
    for name in names:
        if name.startswith("bf"):
            pipe.execute_command("BF.RESERVE", name, 0.01, 4, "EXPANSION", 1, "LAYOUT", layout)
            pipe.execute_command("BF.MADD", name, *keys(0, 40))
        else:
            pipe.execute_command("CF.RESERVE", name, 16, "NX", "LAYOUT", layout)
            pipe.execute_command("CF.INSERT", name, "ITEMS", *keys(0, 60))
    pipe.execute()
    assert int(r.bf().info("bf7").filterNum) > 5
    filters, before = told(), used()
    pipe = r.pipeline(transaction=False)
    for name in names:
        pipe.set(name, "")
    pipe.execute()
    # In the same tables of the server, so that the filters alone make the difference.
    told_less, freed = filters - told(), before - used()
    print(layout, "told", told_less, "freed", freed)
    # A list of layers that is not counted would make it ten times as much.
    assert abs(told_less - freed) < 65536


@pytest.mark.any_server
def test_memory_a_key(r):
    r.execute_command("BF.RESERVE", "reserved", 0.01, 1_000_000)
    print("reserved 1 M at 1 %:", r.memory_usage("reserved") * 8 / 1e6, "bits an item")
    assert r.memory_usage("reserved") * 8 <= 10.5e6
    done = 0
    for count in [200_000, 1_000_000]:
        add_all(r.bf().madd, "grown", keys(done, count), 20_000)
        done = count
        size = r.bf().info("grown").size
        print(f"grown to {count} at 1 %:", size * 8 / count, "bits an item,", r.memory_usage("grown") * 8 / count, "all in")
        assert size * 8 / count <= 24
    assert r.memory_usage("grown") * 8 / count <= 24


@pytest.mark.any_server
@pytest.mark.parametrize("first, expansion", [(1000, 10), (1000, 100), (20_000, 4), (20_000, 10)])
def test_large_steps_take_no_more_memory_than_redisblooms(r, first, expansion):
    sizes = {}
    for layout in ["tamis", "redisbloom"]:
        r.execute_command("BF.RESERVE", layout, 0.01, first, "EXPANSION", expansion, "LAYOUT", layout)
        add_all(r.bf().madd, layout, keys(0, first + first // 10))
        info = r.bf().info(layout)
        assert (info.filterNum, info.capacity) == (2, first * (1 + expansion))
        sizes[layout] = info.size
    assert sizes["tamis"] < 1.15 * sizes["redisbloom"]


def test_a_limit_a_key(r):
    r.config_set("tamis.max-key-bytes", "100kb")
    for line in ["BF.RESERVE k 0.01 1000000000", "BF.RESERVE k 0.01 90000", "BF.RESERVE k 0.01 50000 WINDOW 60", "CF.RESERVE k 900000"]:
        with pytest.raises(redis.ResponseError, match="max-key-bytes"):
            r.execute_command(*line.split())
    answers = r.execute_command("BF.MADD", "k", *keys(0, 90_000))
    assert "max-key-bytes" in str(answers[-1]) and 10_000 < len(answers) < 90_000
    assert found(r, "k", keys(0, len(answers) - 1)) == len(answers) - 1
    assert r.memory_usage("k") < 150_000
    # The length of the first layer, in bytes and bits.
    header = bytearray(sample("bfscale.chunk0.iter1"))
    header[20:36] = (2**40).to_bytes(8, "little") + (2**43).to_bytes(8, "little")
    with pytest.raises(redis.ResponseError, match="max-key-bytes"):
        r.bf().loadchunk("l", 1, bytes(header))


def test_maxmemory(r):
    r.bf().add("k", "x")
    r.config_set("maxmemory", "1")
    for line in ["BF.ADD k y", "BF.RESERVE l 0.01 10", "CF.ADD c x", "BF.LOADCHUNK d 1 x", "BF.MERGE m k"]:
        with pytest.raises(redis.ResponseError, match="OOM|maxmemory"):
            r.execute_command(*line.split())
    assert r.bf().exists("k", "x")
    r.config_set("maxmemory", "0")


@pytest.mark.parametrize("words", [[], ["WINDOW", 60]], ids=["grows", "window"])
def test_lazy_free(r, words):
    r.execute_command("BF.RESERVE", "k", 0.01, 10_000_000, *words)
    before = r.info("memory").get("lazyfreed_objects", 0)
    r.unlink("k")
    until(lambda: r.info("memory").get("lazyfreed_objects", 0) > before, "another thread to free it")


def test_defragmentation_keeps_every_answer(servers):
    server = servers()
    r = server.client()
    try:
        r.config_set("activedefrag", "yes")
    except redis.ResponseError:
        assert servers.program != "redis8", "this server can defragment"
        return
    r.execute_command("CONFIG", "SET", "active-defrag-ignore-bytes", "1", "active-defrag-threshold-lower", "1",
                      "active-defrag-cycle-min", "60", "active-defrag-cycle-max", "75")
    kinds = {"tamis": ["LAYOUT", "tamis"], "redisbloom": ["LAYOUT", "redisbloom"], "window": ["WINDOW", 86400]}
    for kind, words in kinds.items():
        for i in range(3000):
            r.execute_command("BF.RESERVE", f"{kind}{i}", 1e-6, 100 + i % 500, *words)
            r.bf().madd(f"{kind}{i}", *keys(i, i + 20))
    r.cf().insert("cf", keys(0, 5000))
    for kind in kinds:
        for i in range(3000):
            if i % 7:
                r.delete(f"{kind}{i}")
    until(lambda: r.info("stats")["active_defrag_key_hits"] > 0 < r.info("stats")["active_defrag_hits"], "keys to be moved")
    hits = r.info("stats")
    print("moved:", hits["active_defrag_key_hits"], "keys,", hits["active_defrag_hits"], "allocations")
    for kind in kinds:
        for i in range(0, 3000, 7):
            assert r.bf().mexists(f"{kind}{i}", *keys(i, i + 20)) == [1] * 20
    assert found(r, "cf", keys(0, 5000), "CF.MEXISTS") == 5000


def test_commands_are_documented_and_categorised(r):
    # redis-py reads answers of COMMAND for itself.
    r.response_callbacks.pop("COMMAND", None)
    names = [name.decode() for name in r.execute_command("COMMAND", "LIST")]
    names = [name for name in names if name.startswith(("bf.", "cf."))]
    assert len(names) == 31
    for name in names:
        docs = r.execute_command("COMMAND", "DOCS", name)[1]
        assert b"summary" in docs and b"arguments" in docs
    assert r.execute_command("COMMAND", "GETKEYS", "BF.MERGE", "a", "b", "c") == [b"a", b"b", b"c"]
    assert r.execute_command("COMMAND", "GETKEYS", "BF.MADD", "a", "b", "c") == [b"a"]
    # Redis 7.0 has no categories for commands of modules.
    if "bloom" in r.acl_cat():
        category = {name: {member.lower() for member in r.acl_cat(name)} for name in ["read", "write", "bloom", "cuckoo"]}
        assert {"bf.exists", "cf.count", "bf.scandump"} <= category["read"]
        assert {"bf.add", "cf.compact", "bf.merge", "cf.del"} <= category["write"]
        # Rules for RedisBloom's users still load.
        assert r.acl_setuser("app", enabled=True, categories=["+bloom", "+topk", "-cms", "-tdigest"])
        assert {"bf.add", "bf.info"} <= category["bloom"] and {"cf.add", "cf.info"} <= category["cuckoo"]
    docs = dict(zip(*[iter(r.execute_command("COMMAND", "DOCS", "cf.reserve")[1])] * 2))
    arguments = [dict(zip(*[iter(argument)] * 2)) for argument in docs[b"arguments"]]
    assert [(a[b"name"], a[b"type"]) for a in arguments[:3]] == [
        (b"key", b"key"), (b"capacity", b"integer"), (b"bucketsize", b"block"),
    ]
    r.execute_command("ACL", "SETUSER", "reader", "on", ">x", "~*", "-@all", "+bf.exists")
    reader = redis.Redis(port=r.connection_pool.connection_kwargs["port"], username="reader", password="x")
    r.bf().add("k", "x")
    assert reader.bf().exists("k", "x")
    with pytest.raises(redis.exceptions.NoPermissionError):
        reader.bf().add("k", "y")


def test_key_specifications(r):
    """Who may only read keys may ask, and merge from them."""
    r.response_callbacks.pop("COMMAND", None)
    r.execute_command("BF.ADD", "read:b", "x")
    r.execute_command("BF.RESERVE", "read:n", 0.01, 100, "COUNTING")
    r.execute_command("CF.ADD", "read:c", "x")
    r.execute_command("ACL", "SETUSER", "user", "on", ">x", "+@all", "%R~read:*", "~own:*", "%W~made:*")
    port = r.connection_pool.connection_kwargs["port"]
    user = redis.Redis(port=port, username="user", password="x")
    user.response_callbacks.clear()
    for line in [
        "BF.EXISTS read:b x", "BF.MEXISTS read:b x y", "BF.INFO read:b", "BF.CARD read:b", "BF.SCANDUMP read:b 0",
        "BF.DEBUG read:b", "BF.COUNT read:n x", "CF.EXISTS read:c x", "CF.MEXISTS read:c x", "CF.COUNT read:c x",
        "CF.INFO read:c", "CF.SCANDUMP read:c 0", "CF.DEBUG read:c", "BF.MERGE own:b read:b", "CF.MERGE own:c read:c",
        "BF.ADD own:b y", "BF.RESERVE made:b 0.01 10", "CF.RESERVE made:c 10",
    ]:
        user.execute_command(*line.split())
    for line in [
        "BF.ADD read:b y", "BF.MADD read:b y", "BF.INSERT read:b ITEMS y", "BF.CLEAR read:b", "BF.REMOVE read:n x",
        "BF.MERGE read:b own:b", "BF.LOADCHUNK read:b 1 x", "BF.LOAD read:new x", "CF.ADD read:c y", "CF.DEL read:c x",
        "CF.COMPACT read:c", "BF.RESERVE read:new 0.01 10", "BF.EXISTS made:b x",
    ]:
        with pytest.raises(redis.exceptions.NoPermissionError):
            user.execute_command(*line.split())


@pytest.mark.parametrize("layout", ["tamis", "redisbloom"])
def test_reserved_memory_is_taken_when_it_is_used(servers, layout):
    """What nobody has touched is the system's: that is also why it takes no time."""
    r = servers().client()

    def grown(*command):
        before = r.info("memory")
        r.execute_command(*command)
        after = r.info("memory")
        return after["used_memory"] - before["used_memory"], after["used_memory_rss"] - before["used_memory_rss"]

    used, resident = grown("BF.RESERVE", "bf", 0.01, 800_000_000, "LAYOUT", layout)
    assert used > 900_000_000 and resident < 64_000_000
    used, resident = grown("CF.RESERVE", "cf", 200_000_000, "LAYOUT", layout)
    assert used > 180_000_000 and resident < 64_000_000
    # Growth does the same.
    r.execute_command("BF.RESERVE", "grows", 0.01, 20_000, "EXPANSION", 20_000, "LAYOUT", layout)
    used, resident = grown("BF.MADD", "grows", *keys(0, 20_500))
    assert int(r.bf().info("grows").filterNum) == 2
    assert used > 400_000_000 and resident < 64_000_000
    # And what is no longer used goes back.
    add_all(r.bf().madd, "bf", keys(0, 1000))
    used, resident = grown("BF.CLEAR", "bf")
    assert resident < 64_000_000 and r.bf().card("bf") == 0 and r.bf().info("bf").capacity == 800_000_000
    assert found(r, "bf", keys(0, 1000)) == 0


def test_a_filter_larger_than_maxmemory_is_refused(r):
    r.config_set("maxmemory", "100mb")
    before = r.info("memory")["used_memory"]
    for line in [
        "BF.RESERVE k 0.01 800000000", "CF.RESERVE k 800000000", "BF.RESERVE k 0.01 100000000 LAYOUT redisbloom",
        "BF.RESERVE k 0.01 100000000 COUNTING", "BF.RESERVE k 0.01 100000000 WINDOW 60", "BF.INSERT k CAPACITY 800000000 ITEMS a",
    ]:
        with pytest.raises(redis.ResponseError, match="larger than maxmemory"):
            r.execute_command(*line.split())
    assert not r.exists("k") and r.info("memory")["used_memory"] < before + (1 << 20)
    # Nor may one grow so far.
    for layout in ["tamis", "redisbloom"]:
        r.execute_command("BF.RESERVE", layout, 0.01, 10_000, "EXPANSION", 32768, "LAYOUT", layout)
        answers = r.execute_command("BF.MADD", layout, *keys(0, 10_500))
        assert "larger than maxmemory" in str(answers[-1])
        assert found(r, layout, keys(0, len(answers) - 1)) == len(answers) - 1
    r.config_set("maxmemory", "0")


def test_time_to_live(servers):
    """Set with the filter, and the same everywhere: a point in time, not a time span."""
    server = servers(appendonly="yes", appendfsync="always")
    r, copy = server.client(), servers().client()
    replicate(copy, server)
    r.execute_command("BF.RESERVE", "b", 0.01, 100, "EX", 1000)
    r.execute_command("CF.RESERVE", "c", 100, "EX", 1000, "NX")
    at = {name: r.execute_command("PEXPIRETIME", name) for name in ["b", "c"]}
    assert all(0 < r.ttl(name) <= 1000 for name in at)
    # Of one that is there, it stays.
    r.execute_command("BF.RESERVE", "b", 0.01, 100, "NX", "EX", 5)
    r.bf().add("b", "x")
    assert {name: r.execute_command("PEXPIRETIME", name) for name in at} == at
    until(lambda: r.execute_command("WAIT", 1, 1000) == 1, "the replica to have it")
    assert {name: copy.execute_command("PEXPIRETIME", name) for name in at} == at
    server.stop()
    server.start()
    assert {name: server.client().execute_command("PEXPIRETIME", name) for name in at} == at
    for seconds in ["0", "-5", "x", "05", "99999999999999"]:
        with pytest.raises(redis.ResponseError, match="invalid expire time"):
            server.client().execute_command("BF.RESERVE", "new", 0.01, 100, "EX", seconds)
    server.client().execute_command("BF.CLEAR", "b")
    assert server.client().execute_command("PEXPIRETIME", "b") == at["b"]


def test_info_and_events(r):
    r.config_set("notify-keyspace-events", "KEd")
    listener = r.pubsub()
    listener.psubscribe("__keyspace@0__:*")
    assert listener.get_message(timeout=PATIENCE)["type"] == "psubscribe"
    r.bf().add("k", "x")
    r.bf().add("k", "x")
    r.cf().add("c", "x")
    events = [listener.get_message(timeout=PATIENCE)["data"] for _ in range(4)]
    assert events == [b"bloom.reserve", b"bloom.add", b"cuckoo.reserve", b"cuckoo.add"]
    assert listener.get_message(timeout=0.1) is None
    r.bf().exists("k", "x")
    info = r.info("tamis_filters")
    assert info["tamis_bloom_keys"] == 1 and info["tamis_cuckoo_keys"] == 1
    assert info["tamis_bloom_items_offered"] == 2 and info["tamis_bloom_items_found"] == 1
    assert info["tamis_bytes"] > 0
    r.execute_command("FLUSHALL", "SYNC")
    assert r.info("tamis_filters")["tamis_bloom_keys"] == 0


def test_numbers_out_of_range_are_named(servers):
    r = servers().client()
    for name, value in [("bf-initial-size", 0), ("cf-bucket-size", 256), ("cf-expansion-factor", -2)]:
        with pytest.raises(redis.ResponseError, match=f"Value for `{name}` must be in the range"):
            r.config_set(f"tamis.{name}", value)
    with pytest.raises(redis.ResponseError):
        r.config_set("tamis.max-key-bytes", -1)
    # A layout's own expansion survives a change of the layout.
    r.config_set("tamis.compatible", "yes")
    r.config_set("tamis.cf-expansion-factor", -1)


def test_options(servers):
    r = servers("BF-ERROR-RATE", "0.001", "bf_initial_size", "5000").client()
    r.bf().add("k", "x")
    assert r.bf().info("k").capacity == 5000
    assert r.config_get("tamis.bf-error-rate") == {"tamis.bf-error-rate": "0.001"}
    with pytest.raises(redis.ResponseError):
        r.config_set("tamis.bf-error-rate", "2")
    with pytest.raises(redis.ResponseError):
        r.config_set("tamis.bf-initial-size", "0")
    for words in [("FOO", "yes"), ("COMPATIBLE", "maybe"), ("COMPATIBLE",)]:
        with pytest.raises(AssertionError):
            servers(*words)
