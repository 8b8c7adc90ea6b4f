"""What the tests share: the command, a Redis server, and a folder of their own."""

import contextlib
import os
import pathlib
import socket
import subprocess
import time

import pytest


def pytest_addoption(parser):
    parser.addoption("--heavy", action="store_true", help="also tests marked heavy; TAMIS_HEAVY=1 says the same")


def pytest_configure(config):
    config.addinivalue_line("markers", "heavy: takes too long for every change; left out unless --heavy is given")
    config.addinivalue_line("markers", "module: needs TAMIS_MODULE, the file of the server's module")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--heavy") or os.environ.get("TAMIS_HEAVY") == "1":
        return
    heavy = [item for item in items if "heavy" in item.keywords]
    config.hook.pytest_deselected(items=heavy)
    items[:] = [item for item in items if item not in heavy]


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


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The address of a Redis server of the test file's own."""
    with redis_server(tmp_path_factory.mktemp("redis")) as address:
        yield address


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextlib.contextmanager
def redis_server(folder, *options):
    with socket.socket() as reserved:
        # Nobody else is given the port while this is open; a server may listen there all the same.
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
        command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", *options]
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
        try:
            while not listens(port):
                assert process.poll() is None, "redis-server ended"
                time.sleep(0.02)
            yield f"127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()
