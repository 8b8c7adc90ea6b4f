"""SQLite with the extension: Python's own, which is Debian's, and apsw's, which is the newest.

TAMIS_SQLITE is the extension, TAMIS the command; TAMIS_CORRUPT_FILES has files that `cargo test -p tamis --test files corrupt` wrote."""

import os
import pathlib
import shutil
import sqlite3
import subprocess

import apsw
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
EXTENSION = pathlib.Path(os.environ.get("TAMIS_SQLITE", TARGET / "debug/libtamis_sqlite.so"))
TAMIS = pathlib.Path(os.environ.get("TAMIS", TARGET / "debug/tamis"))
GOLDEN = ROOT / "crates/tamis/tests/golden"


class Debian:
    """Python's module, whose SQLite is the system's."""

    errors = sqlite3.Error

    def __init__(self, extension, path=":memory:"):
        self.connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self.connection.enable_load_extension(True)
        self.connection.load_extension(str(extension))


class Newest:
    """apsw, which has a SQLite of its own."""

    errors = apsw.Error

    def __init__(self, extension, path=":memory:"):
        self.connection = apsw.Connection(path)
        self.connection.enable_load_extension(True)
        self.connection.load_extension(str(extension))


def rows(self, sql, *values):
    return [tuple(row) for row in self.connection.execute(sql, values)]


def one(self, sql, *values):
    ((value,),) = self.rows(sql, *values)
    return value


def fails(self, text, sql, *values):
    with pytest.raises(self.errors) as raised:
        self.rows(sql, *values)
    assert text in str(raised.value)


for database in (Debian, Newest):
    database.rows, database.one, database.fails = rows, one, fails


@pytest.fixture(scope="session")
def extension(tmp_path_factory):
    """As it is installed."""
    installed = tmp_path_factory.mktemp("extension") / "tamis_sqlite.so"
    shutil.copy(EXTENSION, installed)
    return installed.with_suffix("")


@pytest.fixture(params=[Debian, Newest], ids=["debian", "newest"])
def connect(request, extension):
    return lambda *path: request.param(extension, *path)


@pytest.fixture
def db(connect):
    return connect()


@pytest.fixture
def tamis(tmp_path):
    """Runs the command."""

    def run(*words, text=None):
        done = subprocess.run([TAMIS, *map(str, words)], input=text, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode in (0, 1), done.stderr
        return done.stdout

    return run


@pytest.fixture
def made(tamis, tmp_path):
    """Makes a filter of texts, and gives its path."""

    def make(name, keys, *options, n=1000, p=0.000001):
        path = tmp_path / name
        tamis("create", "--capacity", n, "-p", p, *options, path)
        key_file = options[options.index("--secret-file"):][:2] if "--secret-file" in options else ()
        tamis("add", *key_file, path, text="".join(f"{key}\n" for key in keys))
        return str(path)

    return make
