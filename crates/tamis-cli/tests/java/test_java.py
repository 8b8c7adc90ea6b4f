"""docs/guides/java.md, compiled and run: its commands, its code, and its guard when things fail.

What may never happen is that a row of the table is "not found".
"""

import random
import socket
import subprocess
import threading
import time

import pytest
from conftest import EXAMPLES, ROOT, answering, bad_line, served
from test_console import TAMIS, blocks, run_page

PAGE = ROOT / "docs/guides/java.md"
TOKEN = "a-token-of-the-tests-own"

KEYS = [
    "plain", "", " ", "é", "e\u0301", "王芳@example.org", "🎉",
    "two\nlines", "ends\r\n", '"quoted\\"', "\0", "tab\there", "\u2028", "\ufeffmark", "x" * 1_000_000, "王" * 400_000,
]  # fmt: skip
# Halves of surrogate pairs.
HALVES = ["\ud83c", "a\udf89z", "\udf89\ud83c"]
NAMES = [key[:12].encode("unicode_escape").decode() for key in KEYS]


def test_commands(home, port, redis):
    run_page(PAGE, home, port, redis)


def test_code_shown_is_code_compiled():
    sources = [source.read_text() for source in EXAMPLES.rglob("*.java")]
    shown = ["\n".join(lines) + "\n" for _, kind, lines in blocks(PAGE) if kind == "java"]
    assert len(shown) >= 5
    for code in shown:
        assert any(code in source for source in sources), f"in no file of examples/java:\n{code}"


@pytest.fixture(params=["local", "guava", "moving", "http", "redis"])
def java(request, machine, tmp_path):
    """The guard with an empty table and an empty filter that answers."""
    if request.param in ["local", "guava"]:
        assert machine(request.param) == "done"
        yield machine
    elif request.param == "moving":
        assert machine("guava") == machine("moving") == "done"
        yield machine
    elif request.param == "http":
        with served(tmp_path) as port:
            assert machine("http", f"http://127.0.0.1:{port}/v1/filters/products", TOKEN) == "done"
            yield machine
    else:
        address = request.getfixturevalue("redis")()
        assert machine("redis", address.split(":")[1], "products") == "done"
        assert machine("fill") == "done"
        yield machine


def test_every_key_that_was_saved_is_found(java):
    for key, name in zip(KEYS, NAMES, strict=True):
        assert java.key("check", key) == "no", name
        assert java.key("find", key) == "none", name  # the table is not asked
    for key, name in zip(KEYS, NAMES, strict=True):
        assert java.key("save", key) == "done", name
    for key, name in zip(KEYS, NAMES, strict=True):
        assert java.key("check", key) == "yes", name
        assert java.key("find", key) == "found, table asked", name
        assert java.key("find", key) == "found", name  # the cache
    for part in ["two", "lines", "ends", "quoted", "王"]:
        assert java.key("check", part) == "no", part


def test_half_of_a_surrogate_pair(java, request):
    """It has no UTF-8. The library refuses it, and then no row is written; Guava and what Java sends have `?` for it."""
    is_refused = request.node.callspec.params["java"] in ["local", "moving"]
    for key in HALVES:
        saved = java.key("save", key)
        assert saved.startswith("failed: ") if is_refused else saved == "done", saved
        assert java.key("find", key) == ("none, table asked" if is_refused else "found, table asked")


def test_java_and_tamis_make_the_same_bytes_of_keys(machine, tmp_path):
    with served(tmp_path) as port:
        machine("http", f"http://127.0.0.1:{port}/v1/filters/products", TOKEN)
        assert all(machine.key("save", key) == "done" for key in KEYS)
    hex = "".join(key.encode().hex() + "\n" for key in KEYS)
    ran = subprocess.run([TAMIS, "check", "-c", "--hex", tmp_path / "products.tamis"], input=hex, text=True, capture_output=True)
    assert (ran.stdout, ran.stderr) == (f"{len(KEYS)}\n", "")


def test_keys_of_before_a_move_are_found(machine):
    assert machine("guava") == "done"
    assert all(machine.key("save", key) == "done" for key in KEYS[:5])
    assert machine("moving") == "done"
    assert all(machine.key("save", key) == "done" for key in KEYS[5:])
    assert [machine.key("check", key) for key in KEYS] == ["yes"] * len(KEYS)
    assert machine.key("check", "unknown") == "no"


def fails_open(java, row="row"):
    """The row is found by asking the table, an unknown id reaches it, and nothing can be saved."""
    java.key("row", row)
    started = time.monotonic()
    assert java.key("find", row) == "found, table asked"
    assert java.key("find", "unknown") == "none, table asked"
    assert java.key("save", "new").startswith("failed: ")
    assert java.key("find", "new") == "none, table asked", "a row was written that the filter doesn't know"
    assert time.monotonic() - started < 10


def use(java, kind, port, name="products"):
    assert (java("http", f"http://127.0.0.1:{port}/v1/filters/{name}", TOKEN) if kind == "http" else java("redis", port, name)) == "done"


@pytest.mark.parametrize("kind", ["http", "redis"])
def test_nobody_listens(machine, port, kind):
    use(machine, kind, port)
    fails_open(machine)


@pytest.mark.parametrize("kind", ["http", "redis"])
def test_nobody_answers(machine, kind):
    machine("patience", 300)
    with answering(lambda connection, request: True) as port:
        use(machine, kind, port)
        fails_open(machine)


@pytest.mark.parametrize("kind,whole", [("http", None), ("redis", b"*2\r\n:0\r\n:1\r\n")])
@pytest.mark.parametrize("pause", [0.4, 60], ids=["drips", "stalls"])
def test_an_answer_that_takes_its_time(machine, kind, whole, pause):
    """A byte now and then is no answer either; the thread is not held for longer than it wants to wait."""
    whole = whole or http('{"found":[false]}\n')
    ended = threading.Event()

    def answer(connection, request):
        connection.sendall(whole[:-8])
        for byte in whole[-8:]:
            if ended.wait(pause):
                return
            connection.sendall(bytes([byte]))

    machine("patience", 500)
    with answering(answer) as port:
        use(machine, kind, port)
        machine.key("row", "row")
        started = time.monotonic()
        assert machine.key("find", "row") == "found, table asked"
        assert time.monotonic() - started < 2.5
        ended.set()


def test_no_such_filter(machine, redis, tmp_path):
    with served(tmp_path) as port:
        use(machine, "http", port, "others")
        fails_open(machine)
    use(machine, "redis", redis().split(":")[1], "others")
    fails_open(machine)


def test_a_url_that_is_none(machine):
    machine("http", "http://no such host/", TOKEN)
    machine.key("row", "row")
    assert machine.key("find", "row") == "found, table asked"


def http(body, status="200 OK"):
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


@pytest.mark.parametrize(
    "kind,answer",
    [
        ("http", http("<html>no</html>")),
        ("http", http("no\n")),
        ("http", http("")),
        ("http", http('{"found":[]}')),
        ("http", http('{"found":[false,false]}')),
        ("http", http('{"found":[false]}', "503 Service Unavailable")),
        ("http", http('{"found":[false]}', "302 Found\r\nLocation: /")),
        ("http", http('{"new":[true],"saved":false}')),
        ("http", b":0\r\n"),
        ("redis", b"-LOADING Redis is loading the dataset in memory\r\n"),
        ("redis", b"-NOAUTH Authentication required.\r\n"),
        ("redis", b"*0\r\n"),
        ("redis", b"*-1\r\n"),
        ("redis", b"*2\r\n:0\r\n:0\r\n"),
        ("redis", b"*2\r\n$1\r\n0\r\n:1\r\n"),
        ("redis", b"*2\r\n-ERR\r\n:1\r\n"),
        ("redis", b"*2\r\n:\r\n:1\r\n"),
        ("redis", b"*x\r\n"),
        ("redis", b"\r\n"),
        ("redis", b"HTTP/1.1 400 Bad Request\r\n\r\n"),
    ],
    ids=lambda value: value[-24:].decode() if isinstance(value, bytes) else value,
)
def test_answers_that_nobody_expects(machine, kind, answer):
    machine("patience", 300)
    with answering(lambda connection, request: connection.sendall(answer) is None) as port:
        use(machine, kind, port)
        fails_open(machine)


@pytest.mark.parametrize("answer", [b":0\r\n", b"*1\r\n:0\r\n"])
def test_an_answer_about_one_key_of_two(machine, answer):
    """To an addition it is one: the key was there."""
    with answering(lambda connection, request: connection.sendall(answer) is None) as port:
        use(machine, "redis", port)
        machine.key("row", "row")
        assert machine.key("find", "row") == "found, table asked"


@pytest.mark.parametrize("kind,whole", [("http", http('{"found":[false]}\n')), ("redis", b"*2\r\n:0\r\n:1\r\n")])
def test_an_answer_that_ends_anywhere(machine, kind, whole):
    """Only the whole answer is a "no"."""
    ends = [0]
    with answering(lambda connection, request: connection.sendall(whole[: ends[0]])) as port:
        use(machine, kind, port)
        machine.key("row", "row")
        for ends[0] in range(len(whole)):
            answer = machine.key("check", "row")
            assert answer.startswith("failed: "), (whole[: ends[0]], answer)
        ends[0] = len(whole)
        assert machine.key("check", "unknown") == "no"  # it is the answer that is believed


def test_a_late_answer_answers_nothing_else(machine):
    """The first answer, a "no", comes after the second question."""
    late, asked = threading.Event(), []

    def answer(connection, request):
        asked.append(request)
        if len(asked) == 1:
            late.wait(10)
            connection.sendall(b"*2\r\n:0\r\n:1\r\n")
        return connection.sendall(b"*2\r\n:1\r\n:1\r\n") is None

    machine("patience", 300)
    with answering(answer) as port:
        use(machine, "redis", port)
        machine.key("row", "row")
        assert machine.key("check", "unknown").startswith("failed: ")
        late.set()
        time.sleep(0.1)
        assert machine.key("check", "row") == "yes"
        assert len(asked) == 2


def redis_cli(port, *words):
    """Enough of one: sends a command, gives the first bytes of the answer."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(" ".join(words).encode() + b"\r\n")
        return connection.recv(4096).decode()


def test_a_filter_that_redis_lost(machine, redis):
    port = int(redis().split(":")[1])
    use(machine, "redis", port)
    for row in ["ada", "bob"]:
        machine.key("row", row)
    assert machine.key("check", "ada").startswith("failed: ")
    assert machine("fill") == "done"
    assert machine.key("check", "ada") == "yes" and machine.key("check", "eve") == "no"
    assert machine("fill") == "done"  # as the next process does

    assert redis_cli(port, "DEL products") == ":1\r\n"
    fails_open(machine, "ada")
    # Somebody's BF.ADD brings it back, nearly empty.
    assert redis_cli(port, "BF.ADD products eve") == ":1\r\n"
    assert machine.key("find", "bob") == "found, table asked"
    assert machine.key("find", "carl") == "none, table asked"
    # Half filled: keys can be saved, and are there when it is filled.
    assert machine.key("save", "dora") == "done"
    assert machine("fill") == "done"
    for row in ["ada", "bob", "dora"]:
        assert machine.key("check", row) == "yes"
    assert machine.key("find", "fred") == "none"

    assert redis_cli(port, "SET products text") == "+OK\r\n"
    fails_open(machine, "gina")
    assert machine("fill").startswith("failed: ")


def test_the_script_for_spring(machine, redis):
    port = int(redis().split(":")[1])
    use(machine, "redis", port)
    machine.key("row", "ada")
    [script] = ["".join(lines) for _, kind, lines in blocks(PAGE) if kind == "lua"]

    def ask(key):
        return redis_cli(port, f'EVAL "{script}" 1 products {key} "\\x00filled"')

    assert ask("ada") == "*2\r\n:0\r\n:0\r\n"
    assert machine("fill") == "done"
    assert ask("ada") == "*2\r\n:1\r\n:1\r\n"
    assert ask("eve") == "*2\r\n:0\r\n:1\r\n"


def test_keys_that_are_not_on_disk_are_not_saved(machine, tmp_path):
    with served(tmp_path, "--save-every", "1h") as port:
        use(machine, "http", port)
        assert '"saved":false' in machine.key("save", "new")
        machine.key("row", "row")
        assert machine.key("find", "new") != "found"


def test_a_wrong_token_and_a_key_too_large(machine, tmp_path):
    with served(tmp_path, "--max-body", "1MB") as port:
        machine("http", f"http://127.0.0.1:{port}/v1/filters/products", "wrong")
        assert " 401 " in machine.key("save", "new")
        use(machine, "http", port)
        assert machine.key("save", "x" * 1_000_000).startswith("failed: ")
        machine.key("row", "x" * 1_000_000)
        assert machine.key("find", "x" * 1_000_000) == "found, table asked"


@pytest.mark.parametrize("kind,answer,rows", [("http", 200, 60), ("redis", 12, 500)])
def test_rows_are_found_through_a_bad_line(machine, redis, tmp_path, kind, answer, rows):
    """A line that ends after any number of bytes, about four answers: rows are found, whatever happens."""
    chance = random.Random(30)
    with served(tmp_path) as service:
        real = service if kind == "http" else int(redis().split(":")[1])
        use(machine, kind, real)
        if kind == "redis":
            assert machine("fill") == "done"
        with bad_line(real, lambda: chance.randrange(8 * answer)) as port:
            use(machine, kind, port)
            saved = [row for row in map("row {}".format, range(rows)) if machine.key("save", row) == "done"]
            assert rows / 4 < len(saved) < rows
            assert all(machine.key("find", row) == "found, table asked" for row in saved)
            unknown = [machine.key("find", f"unknown {i}") for i in range(rows)]
            assert {"none", "none, table asked"} == set(unknown)
