"""Whatever bytes come, the server stays up and takes no more than they are."""

import random

import pytest
import redis
from conftest import SAMPLES, keys


def mutated(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 3, 8])):
        what = rng.randrange(5)
        at = rng.randrange(len(data)) if data else 0
        # Numbers are at the front.
        at = min(at, rng.randrange(1, 120)) if rng.random() < 0.7 else at
        if what == 0 and data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        elif what == 1 and data:
            data[at % len(data)] = rng.choice([0, 1, 0x7F, 0x80, 0x81, 0xC3, 0xFF])
        elif what == 2:
            del data[at : at + rng.choice([1, 2, 8, 1000])]
        elif what == 3:
            data[at:at] = rng.randbytes(rng.choice([1, 4, 8]))
        else:
            data[at : at + 8] = rng.choice([b"\xff" * 8, b"\0" * 8, (2**40).to_bytes(8, "little")])
    return bytes(data)


def use(r, kind):
    """Whatever was let in, it works without harm."""
    for command in ["INFO k", "INFO k WINDOW", "DEBUG k", "CARD k", "ADD k new", "INSERT k AT 5 ITEMS a b", "EXISTS k key1", "MEXISTS k key1 key2", "SCANDUMP k 0", "SCANDUMP k 1"]:
        try:
            r.execute_command(*f"{kind}.{command}".split())
        except redis.ResponseError as error:
            assert "internal error" not in str(error)
        except KeyError:
            pass  # redis-py wants all fields
    for line in ["CF.DEL k key1", "CF.COMPACT k", "DUMP k", "MEMORY USAGE k", "DEBUG DIGEST-VALUE k", "COPY k l REPLACE"]:
        try:
            r.execute_command(*line.split())
        except redis.ResponseError:
            pass


def ours(r):
    """Dumps of our own layouts."""
    r.execute_command("BF.RESERVE", "b", 0.01, 100)
    r.bf().madd("b", *keys(0, 300))
    r.execute_command("BF.RESERVE", "w", 0.01, 300, "WINDOW", 60, "GENERATIONS", 3, "QUIET")
    r.bf().madd("w", *keys(0, 100))
    r.execute_command("BF.RESERVE", "w2", 0.001, 50, "WINDOW", 86400)
    r.bf().madd("w2", *keys(0, 40))
    r.cf().insert("c", keys(0, 1500))
    for name, kind in [("b", "BF"), ("w", "BF"), ("w2", "BF"), ("c", "CF")]:
        chunks, iterator = [], 0
        while True:
            iterator, data = r.execute_command(f"{kind}.SCANDUMP", name, iterator)
            if iterator == 0:
                break
            chunks.append((iterator, data))
        yield kind, r.dump(name), chunks


def test_mutated_samples(servers):
    server = servers()
    r = server.client()
    # Sums would hide what is behind them.
    r.execute_command("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", "1")
    count = 10_000 if servers.program == "redis7" else 1_500
    own = list(ours(r))
    dumps = [(path.name[:2].upper(), path.read_bytes()) for path in sorted(SAMPLES.glob("*.dump"))]
    dumps += [(kind, dump) for kind, dump, _ in own]
    chunked = [(kind, chunks) for kind, _, chunks in own]
    for name in ["bfscale", "bffixed", "cfbig", "cfkick"]:
        files = sorted(SAMPLES.glob(f"{name}.chunk*"), key=lambda path: int(path.name.split(".iter")[1]))
        chunked.append((name[:2].upper(), [(int(p.name.split(".iter")[1]), p.read_bytes()) for p in files]))
    rng = random.Random(7)
    accepted = 0
    used = r.info("memory")["used_memory"]
    for i in range(count):
        r.delete("k", "l")
        if i % 2:
            kind, dump = rng.choice(dumps)
            body, tail = dump[:-10], dump[-10:]
            try:
                # The type stays: other types are the server's business.
                r.restore("k", 0, body[:10] + mutated(rng, body[10:]) + tail)
            except redis.ResponseError:
                continue
        else:
            kind, chunks = rng.choice(chunked)
            broken = rng.randrange(len(chunks))
            try:
                for at, (iterator, data) in enumerate(chunks):
                    data = mutated(rng, data) if at == broken else data
                    r.execute_command(f"{kind}.LOADCHUNK", "k", iterator, data)
            except redis.ResponseError:
                use(r, kind)
                continue
        accepted += 1
        use(r, kind)
    assert server.alive()
    assert accepted > count / 100, "nothing got past the first check"
    r.delete("k", "l")
    assert r.info("memory")["used_memory"] < used + (4 << 20)
    assert r.info("memory")["used_memory_peak"] < used + (256 << 20)


@pytest.mark.parametrize("header", [
    # A RedisBloom header that claims 2^50 bytes, and one of our own.
    (1).to_bytes(8, "little") + b"\1\0\0\0\5\0\0\0\2\0\0\0" + (2**50).to_bytes(8, "little") + bytes(45),
    b"TAMISBF1" + (2).to_bytes(4, "little") + (2**60).to_bytes(8, "little"),
])
def test_a_claim_costs_nothing(r, header):
    before = r.info("memory")["used_memory"]
    try:
        r.bf().loadchunk("k", 1, header)
    except redis.ResponseError:
        return
    assert r.info("memory")["used_memory"] < before + 65536
    with pytest.raises(redis.ResponseError, match="being loaded"):
        r.bf().exists("k", "x")
