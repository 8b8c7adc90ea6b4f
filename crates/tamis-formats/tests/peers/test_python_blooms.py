"""rbloom, abloom and pyprobables, by their own packages."""

import hashlib
import pickle

import abloom
import probables
import pytest
import rbloom
from conftest import ABSENT, BINARY, TEXTS, WORDS

import tamis

# A digest of 16 bytes, as rbloom's documentation makes it.
HASHES = {
    "utf8": lambda key: hashlib.sha256(key.encode()).digest(),
    "python-pickle": lambda key: hashlib.sha256(pickle.dumps(key, 4)).digest(),
}


@pytest.mark.parametrize("keys", HASHES)
def test_rbloom(tmp_path, keys):
    def hash_func(key):
        return int.from_bytes(HASHES[keys](key)[:16], "big", signed=True)

    theirs = rbloom.Bloom(1000, 0.01, hash_func)
    theirs.update([*WORDS, *TEXTS, "y" * 65_535, "y" * 65_536, "y" * 255, "y" * 256])
    theirs.save(str(tmp_path / "theirs"))
    ours = tamis.open_foreign(tmp_path / "theirs", "rbloom", keys)
    assert all(ours.contains_many([*WORDS, *TEXTS, "y" * 65_535, "y" * 65_536, "y" * 255, "y" * 256]))
    assert ours.contains_many(ABSENT) == [key in theirs for key in ABSENT]
    ours.update(ABSENT[:300])
    ours.save(tmp_path / "ours")
    loaded = rbloom.Bloom.load(str(tmp_path / "ours"), hash_func)
    assert all(key in loaded for key in [*WORDS, *TEXTS, *ABSENT[:300]])


def test_abloom(tmp_path):
    theirs = abloom.BloomFilter(1000, 0.01, serializable=True)
    theirs.update([*WORDS, *TEXTS, *BINARY])
    (tmp_path / "theirs").write_bytes(theirs.to_bytes())
    ours = tamis.open_foreign(tmp_path / "theirs")
    assert ours.format == "abloom" and all(ours.contains_many([*WORDS, *TEXTS, *BINARY]))
    assert ours.contains_many(ABSENT) == [key in theirs for key in ABSENT]
    ours.update(ABSENT[:300])
    loaded = abloom.BloomFilter.from_bytes(bytes(ours))
    assert all(key in loaded for key in [*WORDS, *TEXTS, *BINARY, *ABSENT[:300]])
    with pytest.raises(tamis.ParameterError):
        tamis.open_foreign(tmp_path / "theirs", keys="int64")


@pytest.mark.parametrize("rate", [0.5, 0.1, 0.01, 0.0123, 1e-6])
@pytest.mark.parametrize("capacity", [1, 7, 1000, 12_345])
def test_pyprobables(tmp_path, capacity, rate):
    theirs = probables.BloomFilter(est_elements=capacity, false_positive_rate=rate)
    for key in [*WORDS[:capacity], *TEXTS[:-1], *BINARY[:-1]]:
        theirs.add(key)
    theirs.export(tmp_path / "theirs")
    ours = tamis.open_foreign(tmp_path / "theirs", "pyprobables")
    assert all(ours.contains_many([*WORDS[:capacity], *TEXTS[:-1], *BINARY[:-1]]))
    asked = ABSENT[:1000]
    assert ours.contains_many(asked) == [key in theirs for key in asked]
