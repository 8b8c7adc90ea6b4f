"""What the tests share: the command, and a folder of their own."""

import os
import pathlib
import subprocess

import pytest


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    """Every test, and every example of the documentation, writes its files there."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def command():
    """The real `tamis` command: $TAMIS, or as `cargo build -p tamis-cli` makes it."""
    program = os.environ.get("TAMIS")
    if program is None:
        root = pathlib.Path(__file__).resolve().parents[3]
        target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
        build = ["cargo", "build", "--quiet", "-p", "tamis-cli"]
        subprocess.run(build, cwd=root, check=True)
        program = root / target / "debug" / "tamis"

    def run(*args, input=None, ok=(0,)):
        done = subprocess.run([program, *map(str, args)], input=input, capture_output=True)
        assert done.returncode in ok, done.stderr.decode()
        return done.stdout

    return run
