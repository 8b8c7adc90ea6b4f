"""The Python reader of index files answers as the library does. See README.md."""

import json
from pathlib import Path

import pytest
from read_tamis import Corrupt, KeyNeeded
from read_tamix import Index

HERE = Path(__file__).parent
FILES = json.loads((HERE / "index-answers.json").read_text())
SECRET = (HERE / "secret.key").read_bytes()


def opened(name):
    return Index((HERE / name).read_bytes(), SECRET if "apart" in name else None)


def test_every_file_is_listed():
    assert {path.name for path in HERE.glob("*.tamix")} == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_answers(name):
    expected, index = FILES[name], opened(name)
    assert index.specs == ["key", "tenth"]
    for number, keys in enumerate(expected["entries"]):
        id_, flags, stamp, reason = index.entries[number]
        assert id_ == f"entry-{number}".encode() + b"\xff\0"
        assert reason == ("" if keys is not None else "crème brûlée")
        assert flags == (1, 3, 0)[number % 3]
        expected_stamp = [number + 1, number - 2, number << 40, 2**64 - 1]
        assert stamp == (expected_stamp if flags & 1 else [0] * 4)
        for i in range(min(keys or 50, 300)):
            assert number in index.candidates("key", f"{number}-{i}".encode()) or keys == 0
            if i % 10 == 0:
                assert number in index.candidates("tenth", f"{number}-{i}".encode()) or keys == 0
    for spec in index.specs:
        for i, candidates in enumerate(expected[spec]):
            assert index.candidates(spec, f"probe-{i}".encode()) == candidates


@pytest.mark.parametrize("name", FILES)
def test_damage_is_noticed(name):
    data = (HERE / name).read_bytes()
    for at in range(0, len(data), 7):
        with pytest.raises(Corrupt):
            Index(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :], SECRET)


def test_the_secret_is_asked_for():
    with pytest.raises(KeyNeeded):
        Index((HERE / "index-keyed-apart.tamix").read_bytes())
