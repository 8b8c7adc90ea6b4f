"""DCSO's bloom command, as Debian has it."""

import shutil
import subprocess

import pytest
from conftest import ABSENT, BINARY, TEXTS, WORDS

import tamis

# A line is a key.
KEYS = [key for key in [*(text.encode() for text in [*WORDS, *TEXTS]), *BINARY] if key and b"\n" not in key and b"\r" not in key]
# Its line reader takes no longer ones.
KEYS = [key for key in KEYS if len(key) < 60_000]


def bloom(*arguments, keys=(), gzip=False):
    command = [shutil.which("bloom") or "bloom", *(["--gzip"] if gzip else []), *map(str, arguments)]
    return subprocess.run(command, input=b"".join(key + b"\n" for key in keys), check=True, capture_output=True).stdout


@pytest.mark.parametrize("gzip", [False, True])
def test_files_cross(ours, tmp_path, gzip):
    theirs = tmp_path / "theirs.bloom"
    bloom("create", "-n", "1000", "-p", "0.01", theirs, gzip=gzip)
    bloom("insert", theirs, keys=KEYS, gzip=gzip)
    filter = tamis.open_foreign(theirs, keys="utf8")
    assert all(filter.contains_many(KEYS))
    info = filter.info()
    assert info["format"] == "dcso" and info["capacity"] == 1000 and info["p"] == 0.01

    mine = ours("dcso", 1000, 0.01, KEYS, "utf8")
    assert tamis.open_foreign(mine, keys="utf8").info()["keys"] == info["keys"]
    if not gzip:
        assert mine.read_bytes() == theirs.read_bytes()
    said = bloom("check", mine, keys=[*KEYS, *(key.encode() for key in ABSENT)]).splitlines()
    assert said[: len(KEYS)] == KEYS
    found = [key for key in ABSENT if key in filter]
    assert [line.decode() for line in said[len(KEYS) :]] == found and len(found) < 300


def test_each_goes_on_with_the_others_file(ours, tmp_path):
    path = ours("dcso", 1000, 0.01, WORDS[:250], "utf8")
    bloom("insert", path, keys=[key.encode() for key in WORDS[250:400]])
    filter = tamis.open_foreign(path, keys="utf8")
    filter.update(WORDS[400:])
    filter.save(path)
    said = bloom("check", path, keys=[key.encode() for key in WORDS])
    assert said.decode().splitlines() == WORDS
    # In all it is what either would have made alone.
    assert path.read_bytes() == ours("dcso", 1000, 0.01, WORDS, "utf8").read_bytes()


def test_the_data_behind_a_filter_stays(tmp_path):
    path = tmp_path / "data.bloom"
    bloom("create", "-n", "100", "-p", "0.01", path)
    bloom("set-data", path, keys=[b"from a feed"])
    filter = tamis.open_foreign(path, keys="utf8")
    filter.add("key")
    filter.save(path)
    assert b"from a feed" in bloom("get-data", path)
    assert bloom("check", path, keys=[b"key", b"no key"]) == b"key\n"
