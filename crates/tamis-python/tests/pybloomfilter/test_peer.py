"""Files, base64 and pickles that cross between us and the real pybloomfiltermmap3 0.6.3.

TAMIS_PYBLOOMFILTER_PEER names the Python of a virtual environment that has it; ./test makes one.
"""
import os
import pathlib
import pickle
import random
import subprocess

import pytest

import tamis
from pybloomfilter import BloomFilter

PEER = os.environ.get("TAMIS_PYBLOOMFILTER_PEER")
pytestmark = pytest.mark.skipif(not PEER, reason="TAMIS_PYBLOOMFILTER_PEER is not set: no original to cross files with")

chance = random.Random(7)
KEYS = (
    [chance.randbytes(n) for n in range(100)]
    + ["x" * n for n in range(40)]
    + ["é" * n + "\u3184" for n in range(20)]
    + [f"https://example.com/{i}" for i in range(500)]
    + [0, 1, -1, -2, 2**61, 2**70, -(2**70), True, 1.5, -0.25, float("inf"), (), (1, 2), (1, (2, -3)), frozenset([1, 2])]
)
SHAPES = [
    (capacity, rate, [chance.getrandbits(32) for _ in range(hashes)])
    for capacity, rate, hashes in [
        (1000, 0.01, 6), (1, 0.5, 1), (0, 0.1, 3), (777, 0.1, 2), (3, 0.9999, 1), (5000, 0.001, 9), (100_000, 1e-6, 19),
        (12_345, 0.3, 4), (700, 0.02, 5), (700, 0.005, 7), (700, 0.004, 8), (10, 1e-9, 256), (3_000_000, 0.05, 4),
    ]
]


def peer(what, folder):
    ran = subprocess.run([PEER, pathlib.Path(__file__).with_name("peer.py"), what, folder],
                         input=pickle.dumps((SHAPES, KEYS)), capture_output=True)
    assert ran.returncode == 0, ran.stderr.decode()


def test_the_same_bytes_and_answers(tmp_path):
    peer("create", tmp_path)
    for i, (capacity, rate, seeds) in enumerate(SHAPES):
        theirs = tmp_path / f"{i}.bloom"
        bf = BloomFilter(capacity, rate, tmp_path / f"{i}.ours", hash_seeds=seeds)
        answers = bytes(bf.add(key) for key in KEYS)
        assert answers == (tmp_path / f"{i}.answers").read_bytes()
        assert bf.to_base64() == (tmp_path / f"{i}.base64").read_bytes()
        assert (tmp_path / f"{i}.ours").read_bytes() == theirs.read_bytes()
        # In memory, the bits are the same.
        memory = BloomFilter(capacity, rate, hash_seeds=seeds)
        memory.update(KEYS)
        assert memory.data_array == theirs.read_bytes()[1280:]


def test_we_read_theirs(tmp_path):
    peer("create", tmp_path)
    for i in range(len(SHAPES)):
        text = (tmp_path / f"{i}.base64").read_bytes()
        for bf in (
            BloomFilter.open(tmp_path / f"{i}.bloom", "r"),
            BloomFilter.from_base64(tmp_path / f"{i}.decoded", text),
            pickle.loads((tmp_path / f"{i}.pickle").read_bytes()),
        ):
            assert type(bf) is BloomFilter
            assert all(key in bf for key in KEYS)


def test_they_read_ours(tmp_path):
    for i, (capacity, rate, seeds) in enumerate(SHAPES):
        bf = BloomFilter(capacity, rate, tmp_path / f"{i}.bloom", hash_seeds=seeds)
        bf.update(KEYS)
        (tmp_path / f"{i}.base64").write_bytes(bf.to_base64())
        (tmp_path / f"{i}.pickle").write_bytes(pickle.dumps(bf))
        bf.close()
    peer("read", tmp_path)


def test_both_write_to_one_file(tmp_path):
    one = BloomFilter(1000, 0.01, tmp_path / "one.bloom")
    two = one.copy_template(tmp_path / "two.bloom")
    one.add("in one")
    two.add("in two")
    two.add("in two as well")
    one.close()
    two.close()
    peer("unite", tmp_path)
    one = BloomFilter.open(tmp_path / "one.bloom")
    assert all(key in one for key in ("in one", "in two", "in two as well", "theirs"))
    assert len(one) == 4


def test_numbers_through_open_foreign(tmp_path):
    """Numbers are what `hash()` makes of them, in files of theirs and of ours."""
    edges = [2**61 - 1, 2**61, 2**63 - 1, 2**63, 2**64, 10**40]
    numbers = [0, -1, 1, -2, True, *edges, *(-edge for edge in edges), 0.5, -0.0, 1e22, -2.25, 5e-324, float("inf"), -float("inf")]
    numbers += [chance.randrange(-(2**bits), 2**bits) for bits in range(1, 200)]
    numbers += [chance.uniform(-1, 1) * 10.0 ** chance.randrange(-300, 300) for _ in range(500)]
    ours = BloomFilter(2000, 1e-6, tmp_path / "0.bloom", hash_seeds=SHAPES[0][2])
    ours.update(numbers)
    ours.close()
    run = [PEER, "-c", "import pickle, pybloomfilter, sys\n"
           "path, seeds, numbers = pickle.load(sys.stdin.buffer)\n"
           "bf = pybloomfilter.BloomFilter(2000, 1e-6, path, hash_seeds=seeds)\n"
           "bf.update(numbers)\nbf.sync()"]
    subprocess.run(run, input=pickle.dumps((str(tmp_path / "1.bloom"), SHAPES[0][2], numbers)), check=True)
    for i in range(2):
        filter = tamis.open_foreign(tmp_path / f"{i}.bloom", keys="python-number")
        assert all(number in filter for number in numbers) and all(filter.contains_many(numbers))
    for keys in ["int32", "int64", "float64"]:
        with pytest.raises(tamis.ParameterError, match="python-number"):
            tamis.open_foreign(tmp_path / "1.bloom", keys=keys)
    for refused in [float("nan"), None, ()]:
        with pytest.raises(tamis.TamisError):
            refused in tamis.open_foreign(tmp_path / "1.bloom", keys="python-number")
