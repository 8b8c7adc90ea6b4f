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
FORMATS = pathlib.Path(__file__).resolve().parents[2] / "tamis-formats/tests/samples"
SAMPLES = FORMATS / "redisbloom"
# What BF.LOAD takes, made by the crates that valkey-bloom is made of: key0 to key399.
VALKEY = (FORMATS / "valkey-bloom/bfload_p01_n50_x2_key0-399.bin").read_bytes()


# In seconds, for what takes a moment unless the machine is busy.
PATIENCE = 300


def until(condition, what):
    """Waits for it."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"waited for {what}"
        time.sleep(0.02)


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

    def __init__(self, program, folder, module=(), file=MODULE, **options):
        self.program, self.folder, self.module, self.file = program, folder, module, file
        # Nobody else is given the port while this is open; a server may listen there all the same.
        self.reserved = socket.socket()
        self.reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.reserved.bind(("127.0.0.1", 0))
        self.port = self.reserved.getsockname()[1]
        self.options = {
            "save": "", "appendonly": "no", "rdbcompression": "no", "enable-debug-command": "yes",
            "repl-diskless-sync-delay": "0",
            # What another thread is still to free would count as used.
            "lazyfree-lazy-user-del": "no", "lazyfree-lazy-server-del": "no",
        }
        self.options.update(options)
        self.process = None
        self.start()

    def start(self):
        command = [self.program, "--port", str(self.port), "--dir", str(self.folder), "--bind", "127.0.0.1"]
        for name, value in self.options.items():
            command += [f"--{name}", value]
        command += ["--loadmodule", self.file, *self.module]
        self.log = open(self.folder / "log", "ab")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        until(self.answers, "the server to answer")

    def answers(self):
        try:
            with self.client() as client:
                return client.ping()
        except redis.exceptions.BusyLoadingError:
            return False
        except redis.exceptions.ConnectionError:
            assert self.process.poll() is None, (self.folder / "log").read_text()[-3000:]
            return False

    def client(self, protocol=2):
        # A server that is not there yet is asked again by `start` alone.
        return redis.Redis(
            port=self.port, protocol=protocol, retry=Retry(NoBackoff(), 0),
            socket_timeout=PATIENCE, socket_connect_timeout=PATIENCE,
        )

    def answer(self, *words):
        """The bytes of the answer to a command."""
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        command = b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE) as connection:
            connection.sendall(command + b"PING\r\n")
            answer = b""
            while not answer.endswith(b"+PONG\r\n"):
                answer += connection.recv(1 << 16)
        return answer.removesuffix(b"+PONG\r\n")

    def stop(self, save=False):
        if self.process.poll() is None:
            try:
                self.client().execute_command("SHUTDOWN", "SAVE" if save else "NOSAVE")
            except redis.exceptions.ConnectionError:
                pass
            self.process.wait(PATIENCE)
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
        server.reserved.close()
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

