"""npm's bloom-filters, under Node."""

import json
import os
import subprocess

from conftest import ABSENT, HERE, TEXTS, WORDS

import pytest

import tamis

# Of an empty text it hashes nothing.
KEYS = [*WORDS, *(text for text in TEXTS if text)]


def node(command):
    """NODE_PATH says where the package is."""
    assert os.environ.get("NODE_PATH"), "the package bloom-filters of npm is not there"
    done = subprocess.run(["node", HERE / "peer.js"], input=json.dumps(command), check=True, capture_output=True, text=True)
    return done.stdout


def test_files_cross(ours, tmp_path):
    theirs = tmp_path / "theirs.json"
    theirs.write_text(node({"make": KEYS, "n": 1000, "p": 0.01, "seed": 0x12_3456_7890}).strip())
    filter = tamis.open_foreign(theirs)
    assert filter.format == "bloom-filters" and all(filter.contains_many(KEYS))

    mine = ours("bloom-filters", 1000, 0.01, KEYS)
    assert mine.read_bytes() == theirs.read_bytes()
    answers = json.loads(node({"ask": [*KEYS, *ABSENT], "filter": json.loads(mine.read_text())}))
    assert answers == filter.contains_many([*KEYS, *ABSENT])
    assert sum(answers[len(KEYS) :]) < 300


@pytest.mark.parametrize("bits", [8, 16])
def test_xor_filters_are_asked(tmp_path, bits):
    theirs = tmp_path / "theirs.json"
    theirs.write_text(node({"xor": KEYS, "bits": bits}).strip())
    filter = tamis.open_foreign(theirs)
    assert filter.format == "bloom-filters" and all(filter.contains_many(KEYS))
    asked = [*KEYS, *ABSENT]
    assert filter.contains_many(asked) == json.loads(node({"ask": asked, "filter": json.loads(theirs.read_text())}))
