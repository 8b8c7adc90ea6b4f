"""poppy, by its own package for Python."""

import poppy
import pytest
from conftest import ABSENT, BINARY, TEXTS, WORDS

import tamis

KEYS = [*(text.encode() for text in [*WORDS, *TEXTS]), *BINARY]


# Its version 1 is DCSO's file.
@pytest.mark.parametrize("version,format", [(1, "dcso"), (2, "poppy")])
def test_files_cross(ours, tmp_path, version, format):
    theirs = poppy.BloomFilter.with_version(version, 1000, 0.01)
    for key in KEYS:
        theirs.insert_bytes(key)
    path = tmp_path / "theirs.poppy"
    theirs.save(str(path))
    filter = tamis.open_foreign(path, keys="utf8")
    assert filter.format == format and all(filter.contains_many(KEYS))

    mine = ours(format, 1000, 0.01, KEYS, "utf8")
    assert mine.read_bytes() == path.read_bytes()
    loaded = poppy.load(str(mine))
    assert all(loaded.contains_bytes(key) for key in KEYS)
    answers = filter.contains_many(ABSENT)
    assert answers == [loaded.contains_str(key) for key in ABSENT]
    assert sum(answers) < 300


def test_speed_at_the_cost_of_memory(ours, tmp_path):
    mine = ours("poppy-speed", 20_000, 0.001, KEYS, "utf8")
    loaded = poppy.load(str(mine))
    assert all(loaded.contains_bytes(key) for key in KEYS)
    filter = tamis.open_foreign(mine, keys="utf8")
    assert filter.contains_many(ABSENT) == [loaded.contains_str(key) for key in ABSENT]
    for key in ABSENT[:1000]:
        loaded.insert_str(key)
    loaded.save(str(tmp_path / "more"))
    assert all(tamis.open_foreign(tmp_path / "more", keys="utf8").contains_many(ABSENT[:1000]))
