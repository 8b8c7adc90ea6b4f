"""The promised rate is the measured one."""

import random
import string

import pytest
from conftest import add_all, found, keys

ASKED = 200_000
pytestmark = pytest.mark.any_server


def odd_keys(count):
    """Keys of very unlike lengths, of all bytes, related to each other."""
    rng = random.Random(1)
    for i in range(count):
        kind = i % 4
        if kind == 0:
            yield i.to_bytes(8, "little")
        elif kind == 1:
            yield b"a" * (i % 300) + str(i).encode()
        elif kind == 2:
            yield ("https://example.org/" + "".join(rng.choices(string.ascii_letters, k=5)) + str(i)).encode()
        else:
            yield rng.randbytes(1 + i % 40) + i.to_bytes(4, "big")


def measured(r, key, command):
    strange = [f"never:{i}" for i in range(ASKED)]
    return found(r, key, strange, command) / ASKED


def bound(rate):
    """1.05 times what was asked, and three standard deviations of what was measured."""
    return 1.05 * rate + 3 * (rate / ASKED) ** 0.5


@pytest.mark.parametrize("rate", [1e-2, 1e-3, 1e-4])
def test_bloom_reserved_and_grown(r, rate):
    items = list(odd_keys(100_000))
    r.execute_command("BF.RESERVE", "reserved", rate, 100_000)
    r.execute_command("BF.RESERVE", "grown", rate, 100)
    for name in ["reserved", "grown"]:
        add_all(r.bf().madd, name, items, 5000)
        assert found(r, name, items) == len(items)
        got = measured(r, name, "BF.MEXISTS")
        print(f"{name} {rate}: {got}")
        assert got <= bound(rate)


@pytest.mark.parametrize("rate", [1e-2, 1e-3])
def test_cuckoo_through_churn(r, rate):
    count = 10_000
    r.execute_command("CF.RESERVE", "k", 1000, "ERROR", rate)
    for at in range(0, count, 1000):
        r.cf().insert("k", keys(at, at + 1000))
    for at in range(0, 10 * count, 1000):
        pipe = r.pipeline(transaction=False)
        for i in range(at, at + 1000):
            pipe.execute_command("CF.DEL", "k", f"key{i}")
            pipe.execute_command("CF.ADD", "k", f"key{i + count}")
        assert all(pipe.execute())
    assert found(r, "k", keys(10 * count, 11 * count), "CF.MEXISTS") == count
    got = measured(r, "k", "CF.MEXISTS")
    print(f"churned {rate}: {got}")
    assert got <= bound(rate)
