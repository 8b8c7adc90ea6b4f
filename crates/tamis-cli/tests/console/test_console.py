"""Every console example of README.md and docs/ is run, and prints what the page says.

A block of kind `console` has commands behind `$ `, and below each what it prints, both streams together. A page's
blocks are run in order, in one folder that starts with a copy of `samples/` and more, with `tamis` and this Python on the path. Where a page
says 127.0.0.1:6379 the examples talk to a Redis server of the test's own, with our module; 127.0.0.1:7654 becomes a
port of the test's own, on which `tamis serve` is waited for, and ended behind the page by the number in `serve.pid`.

`python test_console.py PAGE` writes into a page what its commands print now, to be read before it is committed.

What differs from run to run is compared by its form alone: speeds (`184 MB/s`) and random generations. A line `…`
stands for any lines; a `…` within a line for any text.
"""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[4]
# A page in Chinese has the blocks of its page in English: test_learn.py.
PAGES = [ROOT / "README.md", *sorted(page for page in (ROOT / "docs").rglob("*.md") if ".zh-CN" not in page.name)]
PAGES.remove(ROOT / "docs/guides/java.md")  # it needs a JDK: tests/java runs it
TAMIS = pathlib.Path(os.environ.get("TAMIS", ROOT / "target/debug/tamis"))
MODULE = pathlib.Path(os.environ.get("TAMIS_MODULE", ROOT / "target/debug/libtamis_module.so"))
REDIS = "127.0.0.1:6379"
SERVICE = "127.0.0.1:7654"
# In seconds, for what takes a moment unless the machine is busy.
PATIENCE = 300


def blocks(page):
    """(line, kind, lines) of the page's fenced blocks."""
    kind = start = None
    for number, line in enumerate(page.read_text().splitlines(), 1):
        fence = re.match(r"\s*```(\S*)", line)
        if not fence:
            if kind is not None:
                lines.append(line)
        elif kind is None:
            kind, start, lines = fence[1], number, []
        else:
            yield start, kind, lines
            kind = None
    assert kind is None, f"{page.name}:{start}: a block without an end"


def examples(lines):
    """(command, expected lines) of a console block."""
    command, expected, more = None, [], False
    for line in lines:
        if more:  # the command goes on: a backslash, or an open quote
            command += "\n" + line.removeprefix("> ")
        elif line.startswith("$ "):
            if command is not None:
                yield command, expected
            command, expected = line[2:], []
        else:
            assert command is not None, f"output without a command: {line!r}"
            expected.append(line)
            continue
        more = command.endswith("\\")
    if command is not None:
        yield command, expected


def form(line):
    line = re.sub(r"\d[\d.,]* [kMGT]?B/s", "N B/s", line.rstrip())
    return re.sub(r"\b[0-9a-f]{16,32}(?=[.}])", "GENERATION", line)


def says(expected, printed):
    """Whether the printed lines are those expected, `…` being anything."""
    pattern = ""
    for line in expected:
        if line.strip() == "…":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*".join(re.escape(part) for part in form(line).split("…")) + r"\n"
    return re.fullmatch(pattern, "".join(form(line) + "\n" for line in printed)) is not None


def run(command, home, port, redis):
    """Its exit code, and what it prints, with the page's addresses of Redis and of the service."""
    path = f"{home.parent / 'bin'}:{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "COLUMNS": "120", "LC_ALL": "C.UTF-8"}
    addresses = {SERVICE: f"127.0.0.1:{port}"}
    if REDIS in command:
        addresses[REDIS] = redis()
    for said, real in addresses.items():
        command = command.replace(said, real)
    ran = subprocess.run(["bash", "-c", command], cwd=home, env=env, text=True,
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE)
    if "tamis serve" in command and (home / "serve.pid").exists():
        wait_for(port, home / "serve.log")
    printed = ran.stdout
    for said, real in addresses.items():
        printed = printed.replace(real, said)
    return ran.returncode, printed


@contextlib.contextmanager
def reserved_port():
    """Nobody else is given the port meanwhile; a server may listen there all the same."""
    with socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))
        yield reserved.getsockname()[1]


def wait_for(port, log, ended=lambda: False):
    """Waits until somebody listens there."""
    end = time.monotonic() + PATIENCE
    with socket.socket() as probe:
        while probe.connect_ex(("127.0.0.1", port)) != 0:
            assert time.monotonic() < end and not ended(), log.read_text()
            time.sleep(0.01)


def end_service(home):
    """A page that fails before it ends its service leaves it to us."""
    pid = home / "serve.pid"
    if pid.exists():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid.read_text()), signal.SIGKILL)


@pytest.fixture
def home(tmp_path):
    home = make_home(tmp_path)
    yield home
    end_service(home)


def make_home(tmp_path):
    bin = tmp_path / "bin"
    bin.mkdir()
    (bin / "tamis").symlink_to(TAMIS.resolve())
    home = tmp_path / "home"
    home.mkdir()
    shutil.copytree(ROOT / "samples", home / "samples")
    for folder in ("examples/java", "crates/tamis-formats/tests/samples"):
        shutil.copytree(ROOT / folder, home / folder)
    return home


@pytest.fixture
def port():
    with reserved_port() as port:
        yield port


@pytest.fixture
def redis(tmp_path):
    with server_on_demand(tmp_path) as address:
        yield address


@contextlib.contextmanager
def server_on_demand(tmp_path):
    """Starts a server when it is first asked for; gives its address."""
    servers = []
    log = tmp_path / "redis.log"

    with reserved_port() as port:

        def address():
            if not servers:
                args = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path)]
                args += ["--logfile", str(log)]
                if MODULE.exists():  # README needs none; a page that does fails without
                    args += ["--loadmodule", str(MODULE)]
                servers.append(subprocess.Popen(args))
                wait_for(port, log, lambda: servers[0].poll() is not None)
            return f"127.0.0.1:{port}"

        yield address
        for server in servers:
            server.kill()
            server.wait()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_console_examples(page, home, port, redis):
    run_page(page, home, port, redis)


def run_page(page, home, port, redis):
    for number, kind, lines in blocks(page):
        if kind != "console":
            unrun = [line for line in lines if re.match(r"(\$|tamis [a-z]+) ", line)]
            assert not unrun, f"{page.name}:{number}: a command outside a console block is run by nobody: {unrun[0]}"
            continue
        for command, expected in examples(lines):
            where = f"{page.relative_to(ROOT)}:{number}: $ {command}"
            code, printed = run(command, home, port, redis)
            assert code in (0, 1), f"{where}\nexit {code}\n{printed}"
            said = "\n".join(expected)
            assert says(expected, printed.splitlines()), f"{where}\nprinted:\n{printed}\nthe page says:\n{said}"


def test_there_are_examples():
    ran = {page.relative_to(ROOT).as_posix() for page in PAGES if any(kind == "console" for _, kind, _ in blocks(page))}
    guides = ["crawler", "logs", "mail", "backend", "parquet", "pybloomfilter", "recipes"]
    assert ran >= {"README.md", "docs/dedup.md", *(f"docs/guides/{guide}.md" for guide in guides)}, ran


def rewrite(page):
    with (
        tempfile.TemporaryDirectory() as folder,
        server_on_demand(pathlib.Path(folder)) as redis,
        reserved_port() as port,
    ):
        home = make_home(pathlib.Path(folder))
        lines = page.read_text().splitlines()
        for number, kind, block in reversed(list(blocks(page))):
            if kind == "console":
                lines[number : number + len(block)] = [number]
        for at, line in enumerate(lines):
            if isinstance(line, int):
                block = next(block for number, _, block in blocks(page) if number == line)
                lines[at] = ""
                for command, expected in examples(block):
                    _, printed = run(command, home, port, redis)
                    printed = printed.splitlines()
                    said = expected if says(expected, printed) else printed
                    lines[at] += "\n".join(["$ " + command, *said]) + "\n"
                lines[at] = lines[at].removesuffix("\n")
        end_service(home)
        page.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    rewrite(pathlib.Path(sys.argv[1]))
