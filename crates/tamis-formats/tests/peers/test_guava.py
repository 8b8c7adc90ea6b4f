"""Guava, as Debian has it, in a Java machine."""

import java
import pytest
from conftest import ABSENT, BINARY, HERE, LONGS, NUMBERS, TEXTS, WORDS

import tamis

JAR = "/usr/share/java/guava.jar"


@pytest.fixture(scope="session")
def guava(tmp_path_factory):
    with java.running(HERE / "GuavaPeer.java", "com.google.common.hash.GuavaPeer", JAR, tmp_path_factory.mktemp("classes")) as call:
        yield call


def number(size):
    return lambda key: (key).to_bytes(size, "little", signed=True)


# The funnel, its keys, ones that nobody added, and the bytes of a key.
FUNNELS = [
    ("bytes", "utf8", [*(text.encode() for text in WORDS), *BINARY], [text.encode() for text in ABSENT], lambda key: key),
    ("utf8", "utf8", [*WORDS, *TEXTS], ABSENT, str.encode),
    (
        "utf16",
        "utf16",
        [*WORDS, *TEXTS, "half a pair \ud83c"],
        ABSENT,
        lambda key: key.encode("utf-16-le", "surrogatepass"),
    ),
    ("int32", "int32", [*range(500), *NUMBERS], range(10_000, 30_000), number(4)),
    ("int64", "int64", [*range(500), *LONGS], range(10_000, 30_000), number(8)),
]


@pytest.mark.parametrize("format,strategy", [("guava", "mitz64"), ("guava-mitz32", "mitz32")])
@pytest.mark.parametrize("funnel,encoding,keys,absent,encode", FUNNELS, ids=[row[0] for row in FUNNELS])
def test_files_cross(guava, ours, tmp_path, format, strategy, funnel, encoding, keys, absent, encode):
    def written(name, keys):
        path = tmp_path / name
        path.write_text("".join(encode(key).hex() + "\n" for key in keys))
        return path

    theirs = tmp_path / "theirs"
    assert guava("make", funnel, strategy, 1000, 0.01, theirs, written("keys", keys)) == "made"
    filter = tamis.open_foreign(theirs, format="guava", keys=encoding)
    assert all(filter.contains_many(keys))

    mine = ours(format, 1000, 0.01, keys, encoding)
    assert mine.read_bytes() == theirs.read_bytes()
    asked = [*keys, *absent]
    answers = guava("ask", funnel, mine, written("asked", asked), tmp_path / "again")
    assert [answer == "1" for answer in answers] == filter.contains_many(asked)
    assert all(filter.contains_many(keys)) and sum(filter.contains_many(absent)) < 300
    assert (tmp_path / "again").read_bytes() == mine.read_bytes()
