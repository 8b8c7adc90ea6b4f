"""Servers with the module, one of each that TAMIS_MODULE_SERVERS names (NAME=PATH, apart by spaces)."""

import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

MODULE = os.environ["TAMIS_MODULE"]
SERVERS = dict(pair.split("=", 1) for pair in os.environ["TAMIS_MODULE_SERVERS"].split())
SAMPLES = pathlib.Path(__file__).resolve().parents[2] / "tamis-formats/tests/samples/redisbloom"


def pytest_configure(config):
    config.addinivalue_line("markers", "any_server: one server is as good as any other")


def pytest_collection_modifyitems(config, items):
    """What is a matter of the filters alone, one server shows."""
    first = next(iter(SERVERS))

    def needed(item):
        return not item.get_closest_marker("any_server") or item.callspec.params["servers"] == first

    config.hook.pytest_deselected(items=[item for item in items if not needed(item)])
    items[:] = [item for item in items if needed(item)]


def sample(name):
    return (SAMPLES / name).read_bytes()


class Server:
    """A server of its own, in a folder of its own."""

    def __init__(self, program, folder, module=(), **options):
        self.program, self.folder, self.module = program, folder, module
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.options = {
            "save": "", "appendonly": "no", "rdbcompression": "no", "enable-debug-command": "yes",
            "repl-diskless-sync-delay": "0",
        }
        self.options.update(options)
        self.process = None
        self.start()

    def start(self):
        command = [self.program, "--port", str(self.port), "--dir", str(self.folder), "--bind", "127.0.0.1"]
        for name, value in self.options.items():
            command += [f"--{name}", value]
        command += ["--loadmodule", MODULE, *self.module]
        self.log = open(self.folder / "log", "ab")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        client = self.client()
        for _ in range(600):
            try:
                client.ping()
                return
            except redis.exceptions.ConnectionError:
                assert self.process.poll() is None, (self.folder / "log").read_text()[-3000:]
            except redis.exceptions.BusyLoadingError:
                pass
            time.sleep(0.05)
        raise AssertionError("the server does not answer")

    def client(self, protocol=2, **options):
        # A server that is not there yet is asked again by `start` alone.
        return redis.Redis(port=self.port, protocol=protocol, retry=Retry(NoBackoff(), 0), **options)

    def stop(self, save=False):
        if self.process.poll() is None:
            try:
                self.client().execute_command("SHUTDOWN", "SAVE" if save else "NOSAVE")
            except redis.exceptions.ConnectionError:
                pass
            self.process.wait(30)
        self.log.close()

    def alive(self):
        return self.process.poll() is None and self.client().ping()


@pytest.fixture(params=SERVERS)
def servers(request, tmp_path):
    """Starts servers of one program."""
    started = []

    def start(*module, **options):
        folder = pathlib.Path(tempfile.mkdtemp(dir=tmp_path))
        server = Server(SERVERS[request.param], folder, module, **options)
        started.append(server)
        return server

    start.program = request.param
    yield start
    for server in started:
        server.stop()
        shutil.rmtree(server.folder, ignore_errors=True)


@pytest.fixture
def server(servers):
    return servers()


@pytest.fixture
def r(server):
    return server.client()


@pytest.fixture(params=[2, 3], ids=["resp2", "resp3"])
def both(request, server):
    """A client of either protocol."""
    client = server.client(request.param)
    client.flushall()
    return client


def digest(client, *keys):
    return client.execute_command("DEBUG", "DIGEST-VALUE", *keys)


def keys(start, end):
    return [f"key{i}" for i in range(start, end)]


def add_all(command, key, items, size=1000):
    for at in range(0, len(items), size):
        command(key, *items[at : at + size])


def found(r, key, items, command="BF.MEXISTS", size=5000):
    """How many of the items seem to be there."""
    count = 0
    for at in range(0, len(items), size):
        count += sum(map(bool, r.execute_command(command, key, *items[at : at + size])))
    return count

