"""What the tests with other systems' own programs share.

Each writes files that the other side reads: the same keys are found, keys that nobody added get the same answers, and
where both make a filter from the same numbers, it is the same file to the byte."""

import os
import pathlib
import subprocess

import pytest

import tamis

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[3]

# What has broken implementations: short and long, high bytes at the end, NUL, more than 16 bits of Unicode.
TEXTS = [
    *("x" * length for length in [1, 7, 8, 9, 15, 16, 17, 33]),
    "high \u00ff",
    "\u00e9" * 8,
    "astral \U0001f33e",
    "\U0001f9c2\U0001f33e\U0001f9c2",
    "nul \0 inside",
    "\0",
    "",
    "l" * 100_000,
]
BINARY = [
    b"",
    *(bytes([0x80 + length] * length) for length in [1, 7, 8, 9, 15, 16, 17, 33]),
    bytes(range(256)),
    b"\x00\xff" * 50_000,
]
NUMBERS = [0, 1, -1, 127, 128, 255, 256, -128, 2**31 - 1, -(2**31)]
LONGS = [*NUMBERS, 2**31, 2**32, 2**63 - 1, -(2**63), -(2**40)]

WORDS = [f"key{i}" for i in range(500)]
ABSENT = [f"absent{i}" for i in range(20_000)]


@pytest.fixture(scope="session")
def empty(tmp_path_factory):
    """empty(format, keys, rate): the path of an empty filter that the library made."""
    build = ["cargo", "build", "--quiet", "--workspace", "--example", "empty"]
    subprocess.run(build, cwd=ROOT, check=True)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    program = ROOT / target / "debug/examples/empty"

    def make(format, keys, rate):
        path = tmp_path_factory.mktemp(format) / "filter"
        path.write_bytes(subprocess.run([program, format, str(keys), str(rate)], check=True, capture_output=True).stdout)
        return path

    return make


@pytest.fixture
def ours(empty, tmp_path):
    """ours(format, keys, rate, which, encoding): the path of a filter with keys, that we made and saved."""

    def make(format, keys, rate, which, encoding=None):
        path = tmp_path / f"ours-{format}"
        filter = tamis.open_foreign(empty(format, keys, rate), keys=encoding, format=name_of(format))
        filter.update(which)
        filter.save(path)
        return path

    return make


def name_of(format):
    """The example's names say which variant; the package's, which format."""
    return {"guava-mitz32": "guava", "spark2": "spark", "poppy-speed": "poppy"}.get(format, format)
