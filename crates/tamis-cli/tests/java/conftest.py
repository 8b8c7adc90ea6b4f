import contextlib
import pathlib
import shutil
import socket
import subprocess
import sys
import threading

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[4]
sys.path.append(str(ROOT / "crates/tamis-cli/tests/console"))

from test_console import TAMIS, end_service, make_home, port, redis, reserved_port, wait_for  # noqa: E402, F401

EXAMPLES = ROOT / "examples/java"


class Java:
    """The guide's classes in a Java machine, behind Driver.java."""

    def __init__(self, folder):
        subprocess.run([ROOT / "java/build", folder / "jar"], check=True)
        sources = [*EXAMPLES.glob("*.java"), pathlib.Path(__file__).parent / "Driver.java"]
        arguments = f"@{EXAMPLES}/debian.args"
        subprocess.run(["javac", arguments, "-Werror", "-d", "classes", *sources], cwd=folder, check=True)
        self.process = subprocess.Popen(["java", arguments, "shop.Driver"], cwd=folder, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __call__(self, *words):
        self.process.stdin.write("\t".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip("\n")

    def key(self, command, key):
        return self(command, key.encode("utf-16-be", "surrogatepass").hex())


@pytest.fixture
def home(tmp_path):
    """With the sources of the library, which the guide builds."""
    home = make_home(tmp_path)
    shutil.copytree(ROOT / "java", home / "java", ignore=shutil.ignore_patterns("tests"))
    for license in ["LICENSE-APACHE", "LICENSE-MIT"]:
        shutil.copy(ROOT / license, home)
    yield home
    end_service(home)


@pytest.fixture(scope="session")
def one_machine(tmp_path_factory):
    java = Java(tmp_path_factory.mktemp("classes"))
    yield java
    java.process.stdin.close()
    assert java.process.wait(10) == 0


@pytest.fixture
def machine(one_machine):
    """Its filters wait long, since the test's machine may be busy."""
    one_machine("patience", 20_000)
    return one_machine


@contextlib.contextmanager
def served(folder, *options):
    """tamis serve of an empty filter; gives its port."""
    file = folder / "products.tamis"
    subprocess.run([TAMIS, "create", file, "--capacity", "1000", "-p", "0.001"], check=True, capture_output=True)
    (folder / "token").write_text("a-token-of-the-tests-own\n")
    log = folder / "serve.log"
    with reserved_port() as port, log.open("w") as out:
        options = ["--listen", f"127.0.0.1:{port}", "--write", "--token-file", folder / "token", *options]
        service = subprocess.Popen([TAMIS, "serve", *options, file], stdout=out, stderr=out)
        try:
            wait_for(port, log, lambda: service.poll() is not None)
            yield port
        finally:
            service.kill()
            service.wait()


@contextlib.contextmanager
def listening(serve):
    """A server that gives each connection to `serve`, in a thread of its own; gives its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def run(connection):
            with connection, contextlib.suppress(OSError):
                serve(connection)

        def accept():
            with contextlib.suppress(OSError):
                while True:
                    threading.Thread(target=run, args=[server.accept()[0]], daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def answering(answer):
    """A server that lets `answer(connection, request)` answer; it returns whether to go on."""

    def serve(connection):
        while (request := connection.recv(1 << 16)) and answer(connection, request):
            pass

    return listening(serve)


def bad_line(port, lasts):
    """A way to the server at that port, each of whose connections ends after `lasts()` bytes of answers."""

    def serve(connection):
        with socket.create_connection(("127.0.0.1", port)) as behind:

            def ask():
                with contextlib.suppress(OSError):
                    while request := connection.recv(1 << 16):
                        behind.sendall(request)
                    behind.shutdown(socket.SHUT_WR)

            threading.Thread(target=ask, daemon=True).start()
            left = lasts()
            while left and (answer := behind.recv(left)):
                connection.sendall(answer)
                left -= len(answer)
            connection.shutdown(socket.SHUT_RDWR)

    return listening(serve)
