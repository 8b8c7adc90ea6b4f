"""The Python reader answers as the library does. See README.md."""

import json
from pathlib import Path

import pytest
from read_tamis import Corrupt, Filter, KeyNeeded, Unclean, siphash128

HERE = Path(__file__).parent
ANSWERS = json.loads((HERE / "answers.json").read_text())
SECRET = (HERE / "secret.key").read_bytes()
FILES = ANSWERS["files"]


def opened(name, data=None):
    secret = SECRET if "apart" in name else None
    if data is None:
        data = (HERE / name).read_bytes()
    return Filter(data, secret, FILES[name]["refused"])


def test_every_kind_is_read():
    kinds = "bloom blocked counting cuckoo growing fuse ribbon cascade window"
    assert {file["kind"] for file in FILES.values()} == set(kinds.split())


def test_an_unfinished_layer_is_ignored():
    name = "growing-layers.tamis"
    data = (HERE / name).read_bytes()
    assert b"added-0" in opened(name, data + bytes(640))
    with pytest.raises(Corrupt):
        opened("blocked-one-line.tamis", (HERE / "blocked-one-line.tamis").read_bytes() + bytes(64))


def test_every_file_is_listed():
    assert {path.name for path in HERE.glob("*.tamis")} == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_answers(name):
    expected = FILES[name]
    seen = opened(name)
    assert (seen.kind, seen.keys, seen.checked) == (
        expected["kind"],
        expected["keys"],
        expected["checked"],
    )
    special = [bytes.fromhex(key) for key in ANSWERS["special"]]
    numbered = [f"added-{i}".encode() for i in range(expected["added"] - len(special))]
    for key in special + numbered:
        assert key in seen
    for i in range(expected.get("allowed", 0)):
        assert f"allowed-{i}".encode() not in seen
    yes = [i for i in range(ANSWERS["probes"]) if f"probe-{i}".encode() in seen]
    assert yes == expected["false yes"]


@pytest.mark.parametrize("name", [n for n in FILES if FILES[n]["refused"]])
def test_a_lost_machines_file_is_refused(name):
    with pytest.raises(Unclean):
        Filter((HERE / name).read_bytes())


@pytest.mark.parametrize("name", [n for n in FILES if "apart" in n])
def test_a_secret_kept_apart_is_needed(name):
    data = (HERE / name).read_bytes()
    assert SECRET not in data
    for secret in [None, bytes(16)]:
        with pytest.raises(KeyNeeded):
            Filter(data, secret)


@pytest.mark.parametrize("name", [n for n in FILES if FILES[n]["checked"]])
def test_every_damaged_byte_is_noticed(name):
    data = (HERE / name).read_bytes()
    for at in range(len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 1 << at % 8
        with pytest.raises((Corrupt, Unclean, KeyNeeded)):
            opened(name, bytes(damaged))
    for cut in [0, 1, 127, 128, len(data) - 1]:
        with pytest.raises(Corrupt):
            opened(name, data[:cut])


def test_siphash_reference_vector():
    message = bytes(range(15))
    expected = bytes.fromhex("5493e99933b0a8117e08ec0f97cfc3d9")
    assert siphash128(bytes(range(16)), message).to_bytes(16, "little") == expected
