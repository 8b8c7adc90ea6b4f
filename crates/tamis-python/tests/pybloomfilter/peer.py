"""Runs inside the virtual environment of the real pybloomfiltermmap3: does what the first argument says."""
import pathlib
import pickle
import sys

import pybloomfilter

assert not hasattr(pybloomfilter, "IndeterminateCountError"), "this is not the original"


def create(folder, shapes, keys):
    """One file a shape, and its base64 and pickle."""
    for i, (capacity, rate, seeds) in enumerate(shapes):
        bf = pybloomfilter.BloomFilter(capacity, rate, f"{folder}/{i}.bloom", hash_seeds=seeds)
        answers = [bf.add(key) for key in keys]
        bf.sync()
        pathlib.Path(f"{folder}/{i}.base64").write_bytes(bf.to_base64())
        pathlib.Path(f"{folder}/{i}.pickle").write_bytes(pickle.dumps(bf))
        pathlib.Path(f"{folder}/{i}.answers").write_bytes(bytes(answers))


def read(folder, shapes, keys):
    """Looks for the keys in files, texts and pickles that we made."""
    for i, (capacity, rate, seeds) in enumerate(shapes):
        bf = pybloomfilter.BloomFilter.open(f"{folder}/{i}.bloom")
        assert (bf.capacity, bf.error_rate, list(bf.hash_seeds)) == (capacity, rate, seeds)
        text = pathlib.Path(f"{folder}/{i}.base64").read_bytes()
        decoded = pybloomfilter.BloomFilter.from_base64(f"{folder}/{i}.decoded", text)
        unpickled = pickle.loads(pathlib.Path(f"{folder}/{i}.pickle").read_bytes())
        for one in (bf, decoded, unpickled):
            missing = [key for key in keys if key not in one]
            assert not missing, missing


def unite(folder, *_):
    """Adds to a file of ours, and unites it with another of ours: its own check must find them alike."""
    one = pybloomfilter.BloomFilter.open(f"{folder}/one.bloom")
    two = pybloomfilter.BloomFilter.open(f"{folder}/two.bloom")
    one.add("theirs")
    one |= two
    assert "in two" in one, "the original did not unite them"


globals()[sys.argv[1]](sys.argv[2], *pickle.load(sys.stdin.buffer))
