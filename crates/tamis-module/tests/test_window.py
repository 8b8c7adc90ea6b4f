"""Filters that forget: what is in the window is never missed, what is older is gone, whatever happens to the server."""

import pathlib
import random
import time

import pytest
import redis
from conftest import digest, found, keys, until
from test_citizen import replicate

SECOND = 1_000_000
START = 1_700_000_000 * SECOND
# Seconds, and what a generation lasts.
SPAN, STEP = 80 * SECOND, 10 * SECOND


def info(r, key, *word):
    """BF.INFO as a dictionary. redis-py knows the usual fields alone."""
    r.response_callbacks.pop("BF.INFO", None)
    answer = r.execute_command("BF.INFO", key, *word)
    answer = answer if isinstance(answer, dict) else dict(zip(answer[::2], answer[1::2]))
    return {name.decode(): value for name, value in answer.items()}


def about(r, key):
    return info(r, key, "WINDOW")


def rate_now(r, key):
    return float(r.execute_command("BF.DEBUG", key)[0].split(b"rate:")[1])


def server_time(r):
    seconds, micros = r.time()
    return seconds * SECOND + micros


class Oracle:
    """Knows when each key was told new, or seen."""

    def __init__(self, quiet, seed):
        self.quiet, self.rng = quiet, random.Random(seed)
        self.now, self.last, self.asked = START, {}, 0

    def age(self, key, at):
        return at - self.last[key] if key in self.last else None

    def step(self):
        """Times that are random, bursts, to the microsecond at an edge, or long pauses."""
        kind = self.rng.random()
        if kind < 0.5:
            return 0
        if kind < 0.8:
            return self.rng.randrange(SECOND)
        if kind < 0.95:
            edge = STEP - self.now % STEP
            return max(0, edge + self.rng.choice([-1, 0, 1]))
        if kind < 0.99:
            return self.rng.choice([STEP, SPAN - 1, SPAN, SPAN + 1])
        return self.rng.choice([SPAN + STEP, SPAN + 2 * STEP, 50 * SPAN])

    def run(self, r, key, rounds):
        for _ in range(rounds):
            self.now += self.step()
            # Some are late, by up to a generation.
            at = self.now - (self.rng.randrange(STEP) if self.rng.random() < 0.2 else 0)
            items = [f"key{self.rng.randrange(2000)}" for _ in range(self.rng.choice([1, 1, 10, 200]))]
            answers = r.execute_command("BF.INSERT", key, "AT", at, "NOCREATE", "ITEMS", *items)
            for item, new in zip(items, answers, strict=True):
                age = self.age(item, at)
                if age is not None and age <= SPAN:
                    assert not new, (item, age)
                elif age is None or age > SPAN + STEP:
                    assert new, (item, age)
                if new or self.quiet:
                    self.last[item] = max(at, self.last.get(item, at))
                self.asked += 1
        self.check(r, key)

    def check(self, r, key):
        """Every key, now and later."""
        for later in [0, STEP, SPAN // 2, SPAN, SPAN + STEP]:
            at = self.now + later
            pipe = r.pipeline(transaction=False)
            names = keys(0, 2050)
            for item in names:
                pipe.execute_command("BF.EXISTS", key, item, "AT", at)
            for item, there in zip(names, pipe.execute(), strict=True):
                age = self.age(item, at)
                if age is None or age > SPAN + STEP:
                    assert not there, (item, age)
                elif age <= SPAN:
                    assert there, (item, age)


@pytest.mark.parametrize("meaning", ["within", "quiet"])
def test_the_events_that_every_host_knows(servers, meaning):
    r = servers().client()
    r.execute_command("BF.RESERVE", "w", 1e-9, 1_000, "WINDOW", 3600, *["QUIET"] * (meaning == "quiet"))
    lines = (pathlib.Path(__file__).resolve().parents[2] / "tamis/tests/golden/windows.tsv").read_text().splitlines()
    for line in lines:
        name, what, key, at, answer = line.split("\t")
        if name == meaning:
            # In microseconds.
            command = ["BF.INSERT", "w", "AT", f"{at}000", "ITEMS", key] if what == "add" else ["BF.EXISTS", "w", key, "AT", f"{at}000"]
            answered = r.execute_command(*command)
            assert (answered == [1] if what == "add" else answered == 1) == (answer in ("new", "yes")), line


def reserve(r, quiet):
    # So rarely wrong that among so many it never is.
    r.execute_command("BF.RESERVE", "w", 1e-10, 16_000, "WINDOW", 80, *["QUIET"] * quiet)


@pytest.mark.parametrize("quiet", [False, True], ids=["within", "quiet"])
@pytest.mark.parametrize("how", ["rdb", "aof", "rewritten"])
def test_a_restart_in_the_middle(servers, how, quiet):
    server = servers(appendonly="no" if how == "rdb" else "yes", **{"aof-use-rdb-preamble": "no"})
    r = server.client()
    reserve(r, quiet)
    oracle = Oracle(quiet, 1)
    for part in range(3):
        oracle.run(r, "w", 400)
        if how == "rewritten":
            r.bgrewriteaof()
            busy = ["aof_rewrite_in_progress", "aof_rewrite_scheduled"]
            until(lambda r=r: not any(r.info("persistence")[name] for name in busy), "the file to be rewritten")
            oracle.run(r, "w", 50)
        before = digest(r, "w"), r.dump("w"), about(r, "w")
        server.stop(save=how == "rdb")
        server.start()
        r = server.client()
        assert (digest(r, "w"), r.dump("w"), about(r, "w")) == before
    oracle.run(r, "w", 400)
    assert oracle.asked > 75_000


@pytest.mark.parametrize("quiet", [False, True], ids=["within", "quiet"])
def test_a_failover_in_the_middle(servers, quiet):
    primary, spare = servers(), servers("COMPATIBLE", "yes", "SECRET", "yes")
    r, copy = primary.client(), spare.client()
    replicate(copy, primary)
    reserve(r, quiet)
    oracle = Oracle(quiet, 2)
    oracle.run(r, "w", 500)
    until(lambda: r.execute_command("WAIT", 1, 1000) == 1, "the replica to have it")
    assert digest(r, "w") == digest(copy, "w") and r.dump("w") == copy.dump("w")
    oracle.check(copy, "w")
    primary.stop()
    copy.replicaof("NO", "ONE")
    oracle.run(copy, "w", 500)
    # And a new replica has it all.
    third = servers().client()
    replicate(third, spare)
    oracle.check(third, "w")
    oracle.run(copy, "w", 100)
    until(lambda: copy.execute_command("WAIT", 1, 1000) == 1, "the replica to have it")
    assert copy.dump("w") == third.dump("w")


@pytest.mark.parametrize("quiet", [False, True], ids=["within", "quiet"])
def test_the_servers_clock_is_replicated(servers, quiet):
    """Without AT: replicas and the file get the moment, and a reloaded server has it."""
    server = servers(appendonly="yes", appendfsync="always", **{"aof-use-rdb-preamble": "no"})
    r, copy = server.client(), servers().client()
    replicate(copy, server)
    # So short that it forgets while this runs.
    r.execute_command("BF.RESERVE", "w", 1e-6, 2000, "WINDOW", 0.2, "GENERATIONS", 4, *["QUIET"] * quiet)
    r.execute_command("BF.INSERT", "made", "WINDOW", 3600, "CAPACITY", 500, "ITEMS", "a", "b")
    told, end = 0, time.monotonic() + 1
    while time.monotonic() < end:
        told += r.execute_command("BF.ADD", "w", "often")
        r.execute_command("BF.MADD", "w", *random.choices(keys(0, 50), k=5))
        pipe = r.pipeline()
        pipe.execute_command("BF.ADD", "w", "in a transaction")
        pipe.execute()
        r.eval("redis.call('BF.MADD', KEYS[1], 'in', 'a', 'script', ARGV[1])", 1, "w", random.random())
    assert told >= (1 if quiet else 2)
    until(lambda: r.execute_command("WAIT", 1, 1000) == 1, "the replica to have it")
    before = [r.dump("w"), r.dump("made")]
    assert [copy.dump("w"), copy.dump("made")] == before
    server.stop()
    server.start()
    assert [server.client().dump("w"), server.client().dump("made")] == before
    assert server.client().bf().mexists("made", "a", "b", "c") == [1, 1, 0]


def test_the_clock_and_told_times(r):
    r.execute_command("BF.RESERVE", "w", 1e-6, 4000, "WINDOW", 8000)
    now, step = server_time(r), 1000 * SECOND

    def insert(item, at):
        return r.execute_command("BF.INSERT", "w", "AT", at, "ITEMS", item)

    # The clock asks; the oldest first.
    assert insert("gone", now - 9 * step) == [1] and not r.bf().exists("w", "gone")
    assert insert("there", now - 7 * step) == [1] and r.bf().exists("w", "there")
    assert r.bf().add("w", "there") == 0 and r.bf().add("w", "gone") == 1
    assert r.bf().mexists("w", "there", "gone", "never") == [1, 1, 0]
    # And it is asked about other times.
    r.bf().add("w", "added")
    now = server_time(r)
    for later, there in [(8 * step - 60 * SECOND, 1), (10 * step, 0)]:
        assert r.execute_command("BF.EXISTS", "w", "added", "at", now + later) == there
    assert r.bf().card("w") == 3
    # Ahead of the clock by a generation, no further; a year that is a typo forgets nothing.
    assert insert("ahead", server_time(r) + step - 10 * SECOND) == [1]
    for far in [2 * step, 75 * 365 * 86400 * SECOND, 2**62]:
        with pytest.raises(redis.ResponseError, match="AT is .* ahead of the server's clock"):
            insert("far", now + far)
    assert r.bf().mexists("w", "there", "added", "ahead", "far") == [1, 1, 1, 0]
    assert r.bf().add("w", "after") == 1 and r.bf().exists("w", "after")
    # What is older than the window is told new, not kept, and counted.
    late = r.info("tamis_filters")["tamis_bloom_items_late"]
    before = digest(r, "w")
    assert insert("old", now - 20 * step) == [1] and insert("old", now - 20 * step) == [1]
    assert digest(r, "w") == before and r.info("tamis_filters")["tamis_bloom_items_late"] == late + 2


def test_a_clock_that_is_behind_loses_nothing(servers):
    """Here by an hour: as after a jump, or on a replica that becomes the primary."""
    server = servers()
    future = server_time(server.client()) + 3600 * SECOND
    server.stop()

    def command(*words):
        words = [str(word).encode() for word in words]
        return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)

    # What a primary of that clock would have written.
    (server.folder / "appendonly.aof").write_bytes(
        command("BF.RESERVE", "w", 1e-6, 1000, "WINDOW", 80, "GENERATIONS", 8, "LAYOUT", "tamis", "SECRET", "NONE")
        + command("BF.INSERT", "w", "AT", future - 79 * SECOND, "NOCREATE", "ITEMS", "old")
        + command("BF.INSERT", "w", "AT", future, "NOCREATE", "ITEMS", "seen"))
    server.options["appendonly"] = "yes"
    server.start()
    r = server.client()
    assert r.bf().mexists("w", "seen", "old", "other") == [1, 1, 0]
    assert r.bf().madd("w", "seen", "other") == [0, 1]
    assert r.bf().mexists("w", "seen", "other") == [1, 1] and r.bf().card("w") == 3
    told = about(r, "w")
    assert told["Latest"] == future and 3500 * SECOND < told["Clock behind"] <= 3600 * SECOND
    assert (server.folder / "log").read_text().count("behind the latest addition") in (1, 2)
    r.execute_command("BF.CLEAR", "w")
    assert about(r, "w")["Clock behind"] == 0 and about(r, "w")["Latest"] is None
    assert r.bf().add("w", "other") == 1 and about(r, "w")["Latest"] < future


def test_a_script_is_one_moment(servers):
    r = servers().client()
    r.execute_command("BF.RESERVE", "w", 0.01, 1000, "WINDOW", 60)
    latest = r.register_script("""
        local all = {}
        for i = 1, 200 do
            redis.call('BF.MADD', KEYS[1], 'a' .. i, 'b' .. i, 'c' .. i)
            all[i] = redis.call('BF.INFO', KEYS[1], 'WINDOW')[8]
        end
        return all
    """)(keys=["w"])
    assert latest == sorted(latest)
    # Redis 7.0 has no such clock for modules.
    assert len(set(latest)) == 1 or servers.program == "redis7"


def test_what_changes_nothing_is_not_replicated(servers):
    r = servers(appendonly="yes", appendfsync="always").client()

    def written():
        return r.info("replication")["master_repl_offset"], r.info("persistence")["aof_current_size"]

    def insert(key, at, *items):
        before = written(), digest(r, key)
        r.execute_command("BF.INSERT", key, "AT", at, "ITEMS", *items)
        changed = written() != before[0]
        assert changed == (digest(r, key) != before[1])
        return changed

    for key, quiet in [("w", []), ("q", ["QUIET"])]:
        r.execute_command("BF.RESERVE", key, 1e-6, 1000, "WINDOW", 80, *quiet)
        assert insert(key, START, "a", "b")
        assert not insert(key, START, "a", "b") and not insert(key, START + STEP - 1, "b", "a")
        assert insert(key, START + 1, "a", "c", "b")
        # Only a sighting in another generation renews.
        assert insert(key, START + STEP, "a") == bool(quiet)
        assert not insert(key, START + STEP + 5, "a")
        assert not insert(key, START - 20 * STEP, "a", "z")


@pytest.mark.any_server
@pytest.mark.parametrize("rate, generations", [(0.01, 8), (0.001, 8), (0.01, 1), (0.01, 24)])
def test_the_rate_of_a_full_window(r, rate, generations):
    count, day = 24_000, 86400 * SECOND
    r.execute_command("BF.RESERVE", "w", rate, count, "WINDOW", 86400, "GENERATIONS", generations)
    # A minute ahead, so that the oldest stay in the window meanwhile.
    now, step, each = server_time(r) + 60 * SECOND, day // generations, count // generations
    # All of them, the one being filled, and one for questions that are late.
    told = []
    for age in range(generations + 1, -1, -1):
        items = keys(age * each, (age + 1) * each)
        new = r.execute_command("BF.INSERT", "w", "AT", now - age * step, "ITEMS", *items)
        told += [item for item, new in zip(items, new, strict=True) if new and age <= generations]
    # Who was wrongly told "not new" is not remembered for that.
    assert (1 - rate) * (count + each) < len(told) <= count + each
    assert found(r, "w", told) == len(told)
    wrong = found(r, "w", [f"other{i}" for i in range(200_000)]) / 200_000
    print(f"{generations} generations at {rate}: {wrong:.5f}, {r.bf().info('w').size * 8 / count:.1f} bits a key")
    # Slots have one of four widths, so it may be far lower.
    assert 0 < wrong <= 1.05 * rate
    assert wrong / 1.3 < rate_now(r, "w") <= 1.05 * rate
    assert about(r, "w")["Tables"] == 1
    # Beyond what it is made for it grows, and keeps the rate.
    many = keys(10**6, 10**6 + 8 * count)
    told = [item for item, new in zip(many, r.bf().madd("w", *many), strict=True) if new]
    assert len(told) > (1 - 1.05 * rate) * 8 * count and found(r, "w", told) == len(told)
    assert rate_now(r, "w") <= 1.05 * rate and about(r, "w")["Tables"] > 1
    wrong = found(r, "w", [f"other{i}" for i in range(200_000)]) / 200_000
    assert wrong <= 1.05 * rate


def test_info(both):
    both.execute_command("BF.RESERVE", "w", 0.001, 1000, "WINDOW", "2.5", "GENERATIONS", 5, "QUIET")
    both.execute_command("BF.INSERT", "w", "AT", START, "ITEMS", "a", "b")
    # What clients of RedisBloom know, and nothing else: some refuse fields they don't know.
    assert info(both, "w") == {
        "Capacity": 1000, "Size": info(both, "w")["Size"], "Number of filters": 1,
        "Number of items inserted": 0, "Expansion rate": None,
    }
    assert both.bf().card("w") == 0
    assert about(both, "w") == {
        "Seconds": b"2.5", "Generations": 5, "Quiet": 1, "Latest": START, "Clock behind": 0,
        "Tables": 1,
    }
    assert both.type("w") == b"tamis--bf" and both.memory_usage("w") > 1000
    debug = [line.decode() for line in both.execute_command("BF.DEBUG", "w")]
    assert debug[0].startswith("size:0 rate:") and debug[1].endswith(" size:2") and len(debug) == 2
    both.bf().add("plain", "x")
    for line in ["BF.INFO plain WINDOW", "BF.EXISTS plain x AT 5", "BF.INSERT plain AT 5 ITEMS y", "BF.INSERT none AT 5 ITEMS y"]:
        with pytest.raises(redis.ResponseError, match="reserve it with a WINDOW"):
            both.execute_command(*line.split())
    assert not both.exists("none") and not both.bf().exists("plain", "y")


def test_merge_clear_dump_and_other_options(servers):
    server = servers("COMPATIBLE", "yes", "SECRET", "yes")
    r = server.client()
    r.config_set("tamis.secret", "no")
    for name in ["a", "b"]:
        r.execute_command("BF.RESERVE", name, 0.001, 1000, "WINDOW", 80, "EX", 1000)
        assert 0 < r.ttl(name) <= 1000 and r.type(name) == b"tamis--bf"
    r.execute_command("BF.INSERT", "a", "AT", START, "ITEMS", "both", "one")
    r.execute_command("BF.INSERT", "b", "AT", START + SPAN, "ITEMS", "both", "two")
    r.execute_command("BF.MERGE", "m", "a", "b")

    def ask(key, at):
        return [r.execute_command("BF.EXISTS", key, item, "AT", at) for item in ["both", "one", "two"]]

    assert ask("m", START + SPAN) == [1, 1, 1] and ask("m", START + SPAN + 2 * STEP) == [1, 0, 1]
    r.execute_command("BF.RESERVE", "other", 0.001, 1000, "WINDOW", 81)
    r.execute_command("BF.RESERVE", "grows", 0.001, 1000)
    for other in ["other", "grows"]:
        with pytest.raises(redis.ResponseError):
            r.execute_command("BF.MERGE", "m", other)
    r.execute_command("BF.INSERT", "a", "AT", START, "ITEMS", *keys(0, 1000))
    r.execute_command("BF.INSERT", "b", "AT", START, "ITEMS", *keys(1000, 2000))
    before = digest(r, "a")
    with pytest.raises(redis.ResponseError, match="no room for the keys of both"):
        r.execute_command("BF.MERGE", "a", "b")
    assert digest(r, "a") == before
    # In chunks, too.
    iterator = 0
    while True:
        iterator, data = r.execute_command("BF.SCANDUMP", "m", iterator)
        if iterator == 0:
            break
        assert r.execute_command("BF.LOADCHUNK", "n", iterator, data) in (True, b"OK")
    assert digest(r, "n") == digest(r, "m")
    r.execute_command("BF.CLEAR", "a")
    assert ask("a", START) == [0, 0, 0] and 0 < r.ttl("a") <= 1000
    for line in ["BF.COUNT m both", "BF.REMOVE m both"]:
        with pytest.raises(redis.ResponseError, match="COUNTING"):
            r.execute_command(*line.split())
    # One that is there is not made again.
    assert r.execute_command("BF.INSERT", "m", "WINDOW", 5, "CAPACITY", 5, "AT", START + SPAN, "ITEMS", "both") == [0]


@pytest.mark.any_server
def test_a_large_one_leaves_and_arrives_in_pieces(servers):
    server = servers()
    r = server.client()
    r.execute_command("BF.RESERVE", "w", 0.01, 8_000_000, "WINDOW", 86400)
    assert r.bf().info("w").size > 16 << 20
    for age in [7, 3, 0]:
        at = server_time(r) - age * 10_800 * SECOND
        r.execute_command("BF.INSERT", "w", "AT", at, "ITEMS", *keys(age * 5000, (age + 1) * 5000))
    items = [item for age in [7, 3, 0] for item in keys(age * 5000, (age + 1) * 5000)]
    iterator = pieces = 0
    while True:
        iterator, data = r.execute_command("BF.SCANDUMP", "w", iterator)
        if iterator == 0:
            break
        r.execute_command("BF.LOADCHUNK", "loaded", iterator, data)
        pieces += 1
    assert pieces > 2
    r.restore("restored", 0, r.dump("w"))
    r.copy("w", "copied")
    names = ["w", "loaded", "restored", "copied"]
    server.stop(save=True)
    server.start()
    r = server.client()
    assert len(set(digest(r, *names))) == 1
    assert all(found(r, name, items) == len(items) for name in names)


NUMBER = "WINDOW must be a number of seconds above 0, such as 86400 or 0.5"


@pytest.mark.parametrize("words, text", [
    ("WINDOW 0", NUMBER), ("WINDOW -1", NUMBER), ("WINDOW x", NUMBER), ("WINDOW 1e3", NUMBER), ("WINDOW nan", NUMBER),
    ("WINDOW", NUMBER), ("WINDOW 0.0000001", NUMBER), ("WINDOW .", NUMBER), ("WINDOW 99999999999999999999", NUMBER),
    ("WINDOW 0.001", "at least a millisecond for each generation"),
    ("WINDOW 9999999999999999", "at most 20,000 years"),
    ("WINDOW 60 GENERATIONS 0", "1 to 62"), ("WINDOW 60 GENERATIONS 63", "1 to 62"),
    ("WINDOW 60 GENERATIONS 10000", "1 to 62"), ("WINDOW 60 GENERATIONS 4294967295", "1 to 62"),
    ("WINDOW 60 GENERATIONS -1", "bad generations"), ("WINDOW 60 GENERATIONS 4294967296", "bad generations"),
    ("WINDOW 60 GENERATIONS", "bad generations"), ("WINDOW 60 WINDOW 60", "WINDOW was given twice"),
    ("QUIET", "GENERATIONS and QUIET need a WINDOW"), ("GENERATIONS 8", "GENERATIONS and QUIET need a WINDOW"),
    ("WINDOW 60 EXPANSION 2", "neither EXPANSION nor NONSCALING"), ("WINDOW 60 EXPANSION 0", "neither EXPANSION nor NONSCALING"),
    ("NONSCALING WINDOW 60", "neither EXPANSION nor NONSCALING"),
])
def test_bad_input(r, words, text):
    for line in [f"BF.RESERVE k 0.01 100 {words}", f"BF.INSERT k {words} ITEMS a"]:
        # There the next word is the value.
        if "INSERT" in line and words.endswith(("WINDOW", "GENERATIONS")):
            continue
        with pytest.raises(redis.ResponseError) as refused:
            r.execute_command(*line.split())
        assert text in str(refused.value)
    assert not r.exists("k")


@pytest.mark.parametrize("line, text", [
    ("BF.RESERVE k 0.01 100 WINDOW 60 COUNTING", "neither COUNTING nor RedisBloom's layout"),
    ("BF.RESERVE k 0.01 100 WINDOW 60 LAYOUT redisbloom", "neither COUNTING nor RedisBloom's layout"),
    ("BF.INSERT k WINDOW 60 TIGHTENING 0.5 ITEMS a", "none of SEED, TIGHTENING and VALIDATESCALETO"),
    ("BF.INSERT k WINDOW 60 VALIDATESCALETO 500 ITEMS a", "none of SEED, TIGHTENING and VALIDATESCALETO"),
    ("BF.INSERT k WINDOW 60 AT x ITEMS a", "microseconds since 1970"),
    ("BF.INSERT k WINDOW 60 AT 1.5 ITEMS a", "microseconds since 1970"),
    ("BF.INSERT k WINDOW 60 AT 9223372036854775808 ITEMS a", "microseconds since 1970"),
    ("BF.INSERT k WINDOW 60 AT 9223372036854775807 ITEMS a", "ahead of the server's clock"),
    ("BF.INSERT k AT 5 NOCREATE ITEMS a", "not found"),
    ("BF.RESERVE k 0.01 100 WINDOW 60 AT 5", "Unknown argument received: 'AT'"),
    ("BF.EXISTS k a AT", "wrong number of arguments"), ("BF.EXISTS k a b", "wrong number of arguments"),
    ("BF.EXISTS k a IN 5", "wrong number of arguments"), ("BF.EXISTS k a AT x", "microseconds since 1970"),
])
def test_bad_input_of_single_commands(r, line, text):
    with pytest.raises(redis.ResponseError) as refused:
        r.execute_command(*line.split())
    assert text in str(refused.value)
    assert not r.exists("k")


def test_the_shortest_and_the_longest(r):
    """A second, a century, one generation and 62."""
    for name, words in [("short", "1 GENERATIONS 62"), ("century", "3155760000"), ("one", "60 GENERATIONS 1"),
                        ("tiny", "0.001 GENERATIONS 1"), ("long", "99999999999")]:
        r.execute_command("BF.RESERVE", name, 0.01, 1000, "WINDOW", *words.split())
        assert r.execute_command("BF.INSERT", name, "AT", START, "ITEMS", "a", "a", "b") == [1, 0, 1]
        span = int(float(words.split()[0]) * SECOND)
        assert r.execute_command("BF.EXISTS", name, "a", "AT", START + span)
        assert not r.execute_command("BF.EXISTS", name, "a", "AT", START + 3 * span) or span > 10**17
    for at in [0, -1, -(2**63), -5 * 10**15]:
        r.execute_command("BF.RESERVE", f"at{at}", 0.01, 1000, "WINDOW", 60)
        assert r.execute_command("BF.INSERT", f"at{at}", "AT", at, "ITEMS", "a", "b") == [1, 1]
        assert r.execute_command("BF.INSERT", f"at{at}", "AT", at, "ITEMS", "a", "b") == [0, 0]
        assert r.bf().add(f"at{at}", "a") == 1
