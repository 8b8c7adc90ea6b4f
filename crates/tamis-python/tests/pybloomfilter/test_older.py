"""Files and texts of pybloomfiltermmap's older versions, whose hashes differ and are not said."""
import pathlib
import pickle
import shutil
import warnings

import pytest

from pybloomfilter import BloomFilter

SAMPLES = pathlib.Path(__file__).parents[3] / "tamis-formats/tests/samples/pybloomfilter"
#: What the versions' own code added; see the samples' README.
KEYS = [*(f"key{i}" for i in range(500)), "", "é", "日本", "x" * 300, "🌾", "ab", "abc", "aé", "日é", 12345, -7, 0]
VERSIONS = [
    ("0.1.10_djb", True),
    ("0.2.0_djb", True),
    ("0.3.2_superfast", False),
    ("0.3.11_sha512", False),
    ("0.3.14_murmur32", False),
]


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    warnings.simplefilter("error")


@pytest.mark.parametrize("name, keys, hashes", [("mike", ["MIKE"], 17), ("fruit", ["apple", "banana", "orange", "pear"], 7)])
def test_the_texts_of_2010(name, keys, hashes):
    text = (SAMPLES / f"2010_{name}.base64").read_text()
    bf = BloomFilter.from_base64("f.bloom", text)
    assert all(key in bf for key in keys)
    assert (bf.num_hashes, bf.hash, bf.bit_count, len(bf)) == (hashes, "djb", hashes * len(keys), len(keys))
    assert not any(f"other{i}" in bf for i in range(10_000))

    # Whatever is made of it hashes as it does.
    copy = bf.copy("copy.bloom")
    assert keys[0] in copy and copy.hash == "djb"
    template = bf.copy_template("template.bloom")
    assert keys[0] not in template
    template.add("new")
    template |= bf
    assert "new" in template and all(key in template for key in keys)
    template.close()
    again = BloomFilter.open("template.bloom")
    assert again.hash == "djb" and "new" in again and all(key in again for key in keys)
    with pytest.raises(ValueError, match="can't be pickled: use to_base64"):
        pickle.dumps(bf)
    in_memory = BloomFilter(100, 0.1, hash_seeds=[1, 2, 3], hash="djb")
    in_memory.add("MIKE")
    pickled = pickle.loads(pickle.dumps(in_memory))
    assert "MIKE" in pickled and pickled.hash == "djb"
    assert keys[0] in BloomFilter.from_base64("again.bloom", bf.to_base64())


@pytest.mark.parametrize("name, sure", VERSIONS)
def test_every_version(name, sure):
    shutil.copy(SAMPLES / f"pbfm_{name}.bloom", "f")
    hash = name.split("_")[1]
    bf = BloomFilter.open("f", hash=hash)
    missing = [key for key in KEYS if key not in bf]
    assert missing == []
    assert sum(f"absent{i}" in bf for i in range(10_000)) < 120
    assert sum(i in bf for i in range(1_000_000, 1_010_000)) < 120
    text = bf.to_base64()
    bf.add("more")
    bf.close()

    # The file told its hash, or who changed it did: an attribute remembers it.
    assert "more" in BloomFilter.open("f") and 12345 in BloomFilter.open("f")
    if sure:
        return
    shutil.copyfile("f", "alone")
    with pytest.warns(RuntimeWarning, match=f"does not say how its keys were hashed.*{hash}.*hash="):
        BloomFilter.open("alone")
    with pytest.warns(RuntimeWarning, match="does not say"):
        BloomFilter.from_base64("g", text)
    assert "key7" in BloomFilter.from_base64("h", text, hash=hash)


def test_the_wrong_hash_is_refused_or_asked_for():
    shutil.copy(SAMPLES / "pbfm_0.1.10_djb.bloom", "f")
    with pytest.raises(ValueError, match="expected djb"):
        BloomFilter.open("f", hash="sha512")
    with pytest.raises(ValueError, match="hash: expected one of murmur, .*got 'md5'|got \"md5\""):
        BloomFilter.open("f", hash="md5")
    murmur, djb = (BloomFilter(100, 0.1, hash_seeds=[1, 2], hash=hash) for hash in ("murmur", "djb"))
    with pytest.raises(ValueError, match="not the same type"):
        murmur |= djb


@pytest.mark.parametrize("hash", ["murmur", "murmur32", "sha512", "superfast", "djb"])
def test_what_is_made_here_is_remembered(hash):
    """Eight hashes: the numbers of a new file may be an older version's, too."""
    bf = BloomFilter(1000, 1 / 256, "f", hash=hash)
    bf.update(KEYS)
    bf.close()
    bf = BloomFilter.open("f")
    assert bf.hash == hash and all(key in bf for key in KEYS)
