"""The functions of the extension; see docs/sql.md."""

import ctypes
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading

import pytest
from conftest import GOLDEN, ROOT, TAMIS

TEXT_KEYS = [f"probe-{i}" for i in range(5000)] + [f"added-{i}" for i in range(5000)]
BYTE_KEYS = [bytes((31 * i + 7 * j) % 256 for j in range(i % 300)) for i in range(10_000)]
INTEGER_KEYS = [i * 0x9E3779B97F4A7C15 % 2**64 for i in range(10_000)]
LENGTHS = [0, 1, 3, 4, 8, 9, 16, 17, 128, 129, 240, 241, 1_000_000]


def digest(answers):
    value = 0xCBF29CE484222325
    for answer in answers:
        value = (value ^ ord("1" if answer else "0")) * 0x100000001B3 % 2**64
    return {"yes": sum(answers), "digest": f"{value:016x}"}


def signed(number):
    return number - 2**64 if number >= 2**63 else number


@pytest.fixture
def asked(db):
    """A database with the keys of alike.json."""
    for table, keys in ("texts", TEXT_KEYS), ("bytes", BYTE_KEYS), ("integers", map(signed, INTEGER_KEYS)):
        db.rows(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, key)")
        db.rows("BEGIN")
        for i, key in enumerate(keys):
            db.rows(f"INSERT INTO {table} VALUES (?, ?)", i, key)
        db.rows("COMMIT")
    return db


def test_golden_files_answer_alike(asked, tmp_path):
    alike = json.loads((GOLDEN / "alike.json").read_text())
    assert len(alike) > 30
    secret = tmp_path / "secret.key"
    secret.write_text((GOLDEN / "secret.key").read_bytes().hex() + "\n")
    for name, expected in alike.items():
        path = GOLDEN / name
        more = [str(secret)] if "apart" in name else []
        third = ", ?3" * len(more)
        if "unclean" in name:
            asked.fails("machine went down", "SELECT tamis_check(?1, 'key')", str(path))
            asked.fails("machine went down", "SELECT tamis_has(?1, 'key')", path.read_bytes())
            continue
        for kind, key in ("texts", "key"), ("bytes", "key"), ("integers", "tamis_int(key)"):
            for function, source in ("tamis_check", str(path)), ("tamis_has", path.read_bytes()):
                # ?2 is nothing, so that ?3 is the third for both.
                sql = f"SELECT {function}(?1, {key}{third}) FROM {kind} WHERE ?2 IS NULL ORDER BY id"
                answers = [answer for (answer,) in asked.rows(sql, source, None, *more)]
                # The keys of windows of time are from the year 2000, and SQL asks as of now; the others count keys.
                is_over = name in ("window.tamis", "window-wide.tamis")
                assert digest(answers) == (digest([0] * 10_000) if is_over else expected[kind]), (name, kind, function)


def test_corrupt_files_are_refused(db, tmp_path):
    folder = os.environ.get("TAMIS_CORRUPT_FILES")
    if not folder:
        folder = tmp_path
        subprocess.run(["cargo", "test", "--quiet", "--locked", "-p", "tamis", "--test", "files", "corrupt"], cwd=ROOT, check=True,
                       capture_output=True, env={**os.environ, "TAMIS_CORRUPT_FILES": str(folder)})
    files = sorted(pathlib.Path(folder).glob("*.tamis"))
    assert len(files) > 100
    for path in files:
        db.fails("", "SELECT tamis_has(?, 'key')", path.read_bytes())
        db.fails("", "SELECT tamis_info(?)", path.read_bytes())
        # A map does not look at every byte: whatever it makes of the rest, it ends.
        try:
            db.rows("SELECT tamis_check(?, 'key')", str(path))
        except db.errors as error:
            assert len(str(error)) > 10


def test_keys(db, made):
    path = made("seen.tamis", ["apple", "", "42", "-7", "crème"])
    check = lambda key: db.one("SELECT tamis_check(?, ?)", path, key)
    assert [check(key) for key in ("apple", "", "crème", b"apple", "crème".encode(), "pear", "Apple")] == [1] * 5 + [0] * 2
    # An integer is its text, as in a list of them.
    assert [check(key) for key in (42, -7, "42", 43, -42)] == [1, 1, 1, 0, 0]
    assert db.one("SELECT tamis_check(?, NULL)", path) is None
    assert db.one("SELECT tamis_check(NULL, 'apple')") is None
    db.fails("got the real number 4.5", "SELECT tamis_check(?, 4.5)", path)
    db.fails("wrong number of arguments", "SELECT tamis_check(?)", path)
    db.fails("filter: expected the name of a file, got", "SELECT tamis_check(7, 'apple')")
    db.fails("none.tamis: No such file", "SELECT tamis_check('none.tamis', 'apple')")
    db.fails("", "SELECT tamis_check('', 'apple')")
    db.fails("", "SELECT tamis_check(?, 'apple')", str(pathlib.Path(path).parent))
    # UTF-16 databases have the same keys.
    db.rows("PRAGMA encoding = 'UTF-16le'")
    db.rows("CREATE TABLE t (key TEXT)")
    db.rows("INSERT INTO t VALUES ('crème'), ('creme')")
    assert db.rows("SELECT tamis_check(?, key) FROM t", path) == [(1,), (0,)]


@pytest.mark.parametrize("length", LENGTHS)
def test_keys_of_all_lengths(db, length):
    key = bytes(i * 7 % 251 for i in range(length))
    db.rows("CREATE TABLE t (key)")
    db.rows("INSERT INTO t VALUES (?)", key)
    blob = db.one("SELECT tamis_filter(key, 10, 1e-9) FROM t")
    assert db.one("SELECT tamis_has(?, ?)", blob, key) == 1
    assert db.one("SELECT tamis_has(?, ?)", blob, key + b"x") == 0


def test_integers(db):
    numbers = [0, 1, -1, 42, 2**63 - 1, -(2**63)]
    for number in numbers:
        assert db.one("SELECT tamis_int(?)", number) == number.to_bytes(8, "little", signed=True)
    assert db.one("SELECT tamis_int(NULL)") is None
    db.fails("tamis_int: expected an integer, got", "SELECT tamis_int('5')")
    db.rows("CREATE TABLE t (key INTEGER)")
    for number in numbers:
        db.rows("INSERT INTO t VALUES (?)", number)
    blob = db.one("SELECT tamis_filter(tamis_int(key), 10, 1e-9) FROM t")
    assert db.rows("SELECT tamis_has(?, tamis_int(key)), tamis_has(?, key) FROM t", blob, blob) == [(1, 0)] * len(numbers)
    # What is its text is another key.
    blob = db.one("SELECT tamis_filter(key, 10, 1e-9) FROM t")
    assert db.rows("SELECT tamis_has(?, key), tamis_has(?, CAST(key AS TEXT)) FROM t", blob, blob) == [(1, 1)] * len(numbers)


def test_rules_for_keys(db, made, tamis, tmp_path):
    path = made("rules.tamis", ["HTTP://Example.org:80/A#top"], "--url", "--ignore-case")
    assert db.one("SELECT tamis_check(?, 'http://EXAMPLE.org/a')", path) == 1
    assert db.one("SELECT tamis_has(?, 'http://EXAMPLE.org/a')", pathlib.Path(path).read_bytes()) == 1
    two = tmp_path / "two.tamis"
    tamis("create", "--capacity", "100", "--values", "2", two)
    db.fails("made of 2 values", "SELECT tamis_check(?, 'a')", str(two))
    db.fails("made of 2 values", "SELECT tamis_has(?, 'a')", two.read_bytes())


def test_secrets_apart(db, made, tmp_path):
    key, other = str(tmp_path / "secret.key"), tmp_path / "other.key"
    path = made("apart.tamis", ["apple"], "--secret-file", key)
    blob = pathlib.Path(path).read_bytes()
    other.write_text("0" * 32)
    for function, source in ("tamis_check", path), ("tamis_has", blob):
        db.fails("its secret key is not in the file", f"SELECT {function}(?, 'apple')", source)
        assert db.one(f"SELECT {function}(?, 'apple', ?)", source, key) == 1
        assert db.one(f"SELECT {function}(?, 'pear', ?)", source, key) == 0
        db.fails("not the secret key", f"SELECT {function}(?, 'apple', ?)", source, str(other))
        db.fails("none.key", f"SELECT {function}(?, 'apple', 'none.key')", source)
        # Also when the key file changes from row to row.
        rows = "(SELECT 1 AS row, ?2 AS file UNION ALL SELECT 2, ?3)"
        db.fails("not the secret key", f"SELECT {function}(?1, 'apple', file) FROM {rows}", source, key, str(other))
    assert json.loads(db.one("SELECT tamis_info(?, ?)", path, key))["hash"] == "siphash-2-4-128"
    assert json.loads(db.one("SELECT tamis_info(?, ?)", blob, key))["keys"] == 1


def test_replaced_files(db, made, tmp_path):
    one, other = made("one.tamis", ["one"]), made("other.tamis", ["other"])
    path = str(tmp_path / "live.tamis")
    shutil.copy(one, path)
    ask = "SELECT tamis_check(?, 'one'), tamis_check(?, 'other')"
    # The same statement, which is prepared once: the next time it sees the file that is there then.
    for _ in range(3):
        assert db.rows(ask, path, path) == [(1, 0)]
        os.replace(shutil.copy(other, tmp_path / "new.tamis"), path)
        assert db.rows(ask, path, path) == [(0, 1)]
        os.replace(shutil.copy(one, tmp_path / "new.tamis"), path)
    # While a statement runs, it asks the file that it began with.
    db.rows("CREATE TABLE t (key)")
    db.rows("INSERT INTO t VALUES ('one'), ('one'), ('one')")
    found = []
    for (answer,) in db.connection.execute("SELECT tamis_check(?, key) FROM t", (path,)):
        found.append(answer)
        os.replace(shutil.copy(other, tmp_path / "new.tamis"), path)
    assert found == [1, 1, 1]
    assert db.rows(ask, path, path) == [(0, 1)]
    os.remove(path)
    db.fails("No such file", ask, path, path)


def test_truncated_files(db, made):
    path = made("seen.tamis", ["apple"], n=100_000)
    length = os.path.getsize(path)
    blob = pathlib.Path(path).read_bytes()
    for cut in [length - 1, length // 2, 129, 128, 127, 1, 0]:
        os.truncate(path, cut)
        db.fails("", "SELECT tamis_check(?, 'apple')", path)
        db.fails("", "SELECT tamis_has(?, 'apple')", blob[:cut])
    assert db.one("SELECT tamis_has(?, 'apple')", blob) == 1


def test_names_from_a_column(db, made):
    db.rows("CREATE TABLE filters (name, path)")
    for name in ("apple", "pear"):
        db.rows("INSERT INTO filters VALUES (?, ?)", name, made(f"{name}.tamis", [name]))
    assert db.rows("SELECT name, tamis_check(path, 'pear') FROM filters ORDER BY name") == [("apple", 0), ("pear", 1)]


def series(n):
    return f"WITH RECURSIVE s(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM s LIMIT {n})"


def test_filters_of_columns(db, tamis, tmp_path):
    """The file that the command would make of the same keys."""
    blob = db.one(f"{series(20_000)} SELECT tamis_filter('key ' || i, 20000, 0.01) FROM s")
    path = tmp_path / "command.tamis"
    tamis("create", "--capacity", "20000", "-p", "0.01", path)
    tamis("add", path, text="".join(f"key {i}\n" for i in range(20_000)))
    assert blob == path.read_bytes()
    # No false "no", and the promised rate on other keys: 2,000 of them, and 45 is the standard deviation.
    asked = f"{series(220_000)} SELECT i < 20000, tamis_has(?, 'key ' || i), count(*) FROM s GROUP BY 1, 2 ORDER BY 1, 2"
    (_, _, right), (_, _, wrong), (_, _, present) = db.rows(asked, blob)
    assert (present, right + wrong) == (20_000, 200_000) and wrong < 2_000 + 5 * 45
    # Stored and asked by whoever has the file.
    path.write_bytes(blob)
    assert db.one("SELECT tamis_check(?, 'key 19999')", str(path)) == 1
    assert tamis("check", path, text="key 5\n") == "key 5\n"


def test_a_number_of_keys_that_is_wrong(db):
    # A thousand times too few: the rate could not be kept.
    db.fails("more than 100 different keys", f"{series(100_000)} SELECT tamis_filter(i, 100, 0.01) FROM s")
    # As many as were said, each often.
    keys = f"{series(1000)} SELECT tamis_filter(i % 100, 100, 0.01) FROM s"
    assert json.loads(db.one("SELECT tamis_info(?)", db.one(keys)))["keys"] == 100
    # A thousand times too many: larger than need be, and right.
    blob = db.one(f"{series(100)} SELECT tamis_filter(i, 100000, 0.01) FROM s")
    assert 120_000 < len(blob) < 130_000
    assert db.one(f"{series(100)} SELECT min(tamis_has(?, i)) FROM s", blob) == 1
    # More than a blob can be.
    db.fails("and a blob at most", "SELECT tamis_filter(1, 1000000000000, 0.01)")
    db.fails("", "SELECT tamis_filter(1, 9223372036854775807, 0.01)")
    for keys in ("0", "-5", "1.5", "1e300"):
        db.fails("keys: expected a number from 1" if keys != "0" else "keys", f"SELECT tamis_filter(1, {keys}, 0.01)")
    db.fails("keys: expected a number, or NULL, got", "SELECT tamis_filter(1, 'many', 0.01)")
    for rate in ("0", "1", "-0.5", "2.0", "9e999"):
        db.fails("rate", f"SELECT tamis_filter(1, 100, {rate})")
    db.fails("rate: expected a number between 0 and 1, got", "SELECT tamis_filter(1, 100, 'small')")
    assert len(db.one("SELECT tamis_filter(1, 1e6, 0.01)")) > 1_000_000
    db.fails("the same for all rows", f"{series(10)} SELECT tamis_filter(i, 100 + i, 0.01) FROM s")


@pytest.mark.parametrize("rate", [0.9, 0.5, 0.2, 0.05, 0.01])
def test_the_rate_is_kept_however_high(db, rate):
    """Where many new keys seem present, and can't be counted."""
    for start in range(0, 1_000_000, 100_000):
        sql = f"{series(5000)} SELECT tamis_filter(i + {start}, {{}}, {rate}) FROM s"
        blob = db.one(sql.format(5000))
        wrong = db.one(f"{series(20_000)} SELECT sum(tamis_has(?, -i - 1)) FROM s", blob)
        assert wrong < 20_000 * rate * 1.03 + 5 * (20_000 * rate * (1 - rate)) ** 0.5
        db.fails("more than 3000 different keys", sql.format(3000))


def test_filters_that_grow(db):
    for call in "tamis_filter(i, NULL, 0.01)", "tamis_filter(i)", "tamis_filter(i, NULL)":
        blob = db.one(f"{series(50_000)} SELECT {call} FROM s")
        assert json.loads(db.one("SELECT tamis_info(?)", blob))["kind"] == "growing"
        wrong = f"{series(150_000)} SELECT sum(tamis_has(?1, i)), sum(i >= 50000 AND tamis_has(?1, i)) FROM s"
        ((yes, wrong),) = db.rows(wrong, blob)
        assert yes - wrong == 50_000 and wrong < 1_000 + 5 * 32


def test_groups_nulls_and_nothing(db):
    db.rows("CREATE TABLE t (team, key)")
    db.rows("INSERT INTO t VALUES ('a', 'x'), ('a', NULL), ('a', 'y'), ('b', 'z'), ('c', NULL)")
    db.rows("CREATE TABLE filters AS SELECT team, tamis_filter(key, 10, 1e-6) AS filter FROM t GROUP BY team")
    has = "SELECT team, tamis_has(filter, 'x'), tamis_has(filter, 'z') FROM filters ORDER BY team"
    assert db.rows(has) == [("a", 1, 0), ("b", 0, 1), ("c", 0, 0)]
    assert db.rows("SELECT json_extract(tamis_info(filter), '$.keys') FROM filters ORDER BY team") == [(2,), (1,), (0,)]
    assert db.one("SELECT tamis_filter(key, 10, 0.01) FROM t WHERE 0") is None
    assert db.one("SELECT tamis_has(NULL, 'x')") is None
    db.fails("filter: expected a blob, got", "SELECT tamis_has('seen.tamis', 'x')")
    db.fails("not a valid Tamis filter", "SELECT tamis_has(x'', 'x')")
    db.fails("got the real number", "SELECT tamis_filter(2.5, 10, 0.01)")


def test_filters_in_columns_are_told_apart(db):
    """More of them than are kept, row by row, in every order, also unequal ones of equal size and number of keys."""
    db.rows("CREATE TABLE filters (id, filter)")
    for i in range(9):
        db.rows("INSERT INTO filters SELECT ?, tamis_filter(?, 10, 1e-6)", i, f"key {i}")
    pairs = "SELECT f.id = k.id, tamis_has(f.filter, 'key ' || k.id), count(*) FROM filters f, filters k GROUP BY 1, 2"
    assert db.rows(pairs) == [(0, 0, 72), (1, 1, 9)]


def test_a_damaged_blob_behind_its_whole_one_is_refused(db):
    """Cut, zeroed or changed by a bit, it has the header of the one that is kept."""
    good = db.one("SELECT tamis_filter('key', 10, 1e-6)")
    header = good[:128]
    damaged = {"cut": good[:-64], "cut to its header": header, "zeroed": header + bytes(len(good) - 128), "a bit": good[:-1] + bytes([good[-1] ^ 1]),
               "longer": good + bytes(64)}
    db.rows("CREATE TABLE filters (id INTEGER PRIMARY KEY, filter)")
    for name, bad in damaged.items():
        assert db.one("SELECT tamis_has(?, 'key')", good) == 1
        db.fails("", "SELECT tamis_has(?, 'key')", bad)
        # The same in two rows of one statement, and by a subquery.
        db.rows("DELETE FROM filters")
        db.rows("INSERT INTO filters VALUES (1, ?), (2, ?)", good, bad)
        assert db.rows("SELECT tamis_has(filter, 'key') FROM filters WHERE id = 1") == [(1,)]
        db.fails("", "SELECT tamis_has(filter, 'key') FROM filters ORDER BY id")
        db.fails("", "SELECT tamis_has((SELECT filter FROM filters WHERE id = 2), 'key')")
        assert db.one("SELECT tamis_has((SELECT filter FROM filters WHERE id = 1), 'key')") == 1, name


def test_a_window_is_asked_as_of_now(db, tamis, tmp_path):
    """A window that nobody adds to forgets all the same. Before the latest key it is never asked."""
    for name, when, answer in ("past", "2001-02-03T04:05:06Z", 0), ("ahead", None, 1):
        path = tmp_path / f"{name}.tamis"
        tamis("create", "--within", "1h", "--capacity", 100, "-p", "1e-6", path)
        times = ["-k", "tsv:1", "--no-header", "--time", "tsv:2"] if when else []
        tamis("add", *times, path, text=f"key\t{when}\n" if when else "key\n")
        assert db.one("SELECT tamis_check(?, 'key')", str(path)) == answer
        assert db.one("SELECT tamis_has(?, 'key')", path.read_bytes()) == answer
    # So its answers change, and no index may have them.
    db.rows("CREATE TABLE t (key)")
    db.fails("non-deterministic", f"CREATE INDEX x ON t (tamis_has(x'{path.read_bytes()[:8].hex()}', key))")


def test_info(db, made, tamis):
    path = made("seen.tamis", ["apple", "pear"])
    told = json.loads(tamis("info", "--json", path))
    assert json.loads(db.one("SELECT tamis_info(?)", path)) == told
    # A blob has no file to describe.
    assert told.pop("file_bytes") == pathlib.Path(path).stat().st_size
    assert json.loads(db.one("SELECT tamis_info(?)", pathlib.Path(path).read_bytes())) == {**told, "sealed": None}
    assert db.one("SELECT tamis_info(NULL)") is None
    db.fails("none.tamis", "SELECT tamis_info('none.tamis')")
    db.fails("filter: expected the name of a file, got", "SELECT tamis_info(5)")


@pytest.fixture
def index(tamis, tmp_path, monkeypatch):
    """An index of three logs; the command is on the path."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "tamis").symlink_to(TAMIS)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    logs = tmp_path / "logs"
    logs.mkdir()
    for name in "abc":
        (logs / f"{name}.log").write_text(f"request {name}1234567 ok\nrequest 4711 shared\n")
    tamis("index", "-p", "0.000001", "logs.index", "logs")
    return "logs.index"


def test_which(db, index, tamis, tmp_path):
    which = "SELECT file FROM tamis_which(?, ?) ORDER BY file"
    assert db.rows(which, index, "b1234567") == [("logs/b.log",)]
    assert db.rows(which, index, "4711") == db.rows(which, index, 4711) == [(f"logs/{name}.log",) for name in "abc"]
    assert db.rows(which, index, "missing") == db.rows(which, index, None) == []
    assert "\n".join(file for (file,) in db.rows(which, index, "shared")) + "\n" == tamis("grep", "--candidates", "shared", index)
    # A file that is new may contain anything, and so may one that has changed.
    (tmp_path / "logs/new.log").write_text("anything\n")
    answers = db.rows("SELECT file, state FROM tamis_which(?, 'missing')", index)
    told = json.loads(tamis("grep", "--candidates", "--json", "missing", index))["files"]
    assert answers == [(file["file"], file["state"]) for file in told] and [file for file, _ in answers] == ["logs/new.log"]
    # Joined with a table of keys, in any order.
    db.rows("CREATE TABLE wanted (key)")
    db.rows("INSERT INTO wanted VALUES ('a1234567'), ('c1234567'), (NULL)")
    joined = "SELECT wanted.key, file FROM wanted JOIN tamis_which('logs.index', wanted.key) WHERE file <> 'logs/new.log'"
    assert sorted(db.rows(joined)) == [("a1234567", "logs/a.log"), ("c1234567", "logs/c.log")]
    joined = "SELECT count(*) FROM tamis_which('logs.index', wanted.key), wanted WHERE file <> 'logs/new.log'"
    assert db.one(joined) == 2


def test_which_by_columns(db, index, tamis, tmp_path):
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows/one.csv").write_text("row,qualifier\nr1,q1\nr2,q2\n")
    tamis("index", "-p", "0.000001", "-k", "csv:row,qualifier", "rows.index", "rows")
    which = "SELECT file FROM tamis_which('rows.index', ?, 'csv:row,qualifier')"
    assert db.rows(which, "r1,q1") == [("rows/one.csv",)]
    assert db.rows(which, "r1,q2") == []


def test_which_fails_with_the_commands_words(db, index, monkeypatch):
    db.fails("none.index", "SELECT * FROM tamis_which('none.index', 'a')")
    db.fails("", "SELECT * FROM tamis_which(?, '')", "logs")
    db.fails("expected a key", "SELECT * FROM tamis_which('logs.index')")
    db.fails("expected an index", "SELECT * FROM tamis_which")
    db.fails("got the real number", "SELECT * FROM tamis_which('logs.index', 1.5)")
    # Nothing of it is an option, or another command.
    assert db.rows("SELECT * FROM tamis_which(?, ?)", index, "--help") == []
    db.fails("", "SELECT * FROM tamis_which(?, ?)", "--help", "x")
    assert db.rows("SELECT * FROM tamis_which(?, ?)", index, "$(touch owned); `touch owned`") == []
    assert not os.path.exists("owned")
    monkeypatch.setenv("PATH", "/nowhere")
    db.fails("must be on the PATH", "SELECT * FROM tamis_which(?, 'a')", index)


def test_schemas_of_others(connect, made, tmp_path):
    """What reads files is for statements only: no view or trigger of a database may do so."""
    path = made("seen.tamis", ["apple"])
    db = connect(str(tmp_path / "sent.db"))
    db.rows("CREATE TABLE t (key)")
    db.rows(f"CREATE VIEW v AS SELECT tamis_check('{path}', 'apple')")
    db.rows(f"CREATE VIEW i AS SELECT tamis_info('{path}')")
    db.rows("CREATE VIEW w AS SELECT * FROM tamis_which('logs.index', 'a')")
    db.rows(f"CREATE VIEW h AS SELECT tamis_has(x'00', 'a', '{path}')")
    for view in "vih":
        db.fails("unsafe use of tamis_", f"SELECT * FROM {view}")
    db.fails("unsafe use of virtual table", "SELECT * FROM w")
    db.rows(f"CREATE TRIGGER r AFTER INSERT ON t BEGIN SELECT tamis_check('{path}', NEW.key); END")
    db.fails("unsafe use of tamis_check", "INSERT INTO t VALUES ('apple')")
    # Nor an index, which needs what never changes; the reason differs between versions.
    db.fails("", f"CREATE INDEX x ON t (tamis_check('{path}', key))")
    db.rows("DROP TRIGGER r")
    # What computes is harmless anywhere, also where nothing is trusted.
    db.rows("PRAGMA trusted_schema = OFF")
    blob = db.one("SELECT tamis_filter('apple', 10, 1e-6)").hex()
    db.rows(f"CREATE VIEW b AS SELECT key FROM t WHERE tamis_has(x'{blob}', key)")
    db.rows("CREATE INDEX x ON t (tamis_int(7))")
    db.rows("INSERT INTO t VALUES ('apple'), ('pear')")
    assert db.rows("SELECT key FROM b") == [("apple",)]


def test_connections_in_threads(connect, made):
    path = made("seen.tamis", range(1000), n=1000, p=0.001)
    failures = []

    def ask():
        try:
            db = connect()
            for _ in range(5):
                assert db.one(f"{series(1000)} SELECT sum(tamis_check(?, i)) FROM s", path) == 1000
                blob = db.one(f"{series(1000)} SELECT tamis_filter(i, 1000, 0.001) FROM s")
                assert db.one(f"{series(1000)} SELECT sum(tamis_has(?, i)) FROM s", blob) == 1000
        except BaseException as error:  # of another thread, where nobody would hear of it
            failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_the_shell(extension, made):
    """`.load ./tamis_sqlite`, as users write it."""
    path = made("seen.tamis", ["apple"])
    done = subprocess.run(["sqlite3", ":memory:", ".load ./tamis_sqlite", f"SELECT tamis_check('{path}', 'apple')"],
                          cwd=extension.parent, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("1\n", 0), done.stderr


def test_python_still_imports_tamis_next_to_it(extension, tmp_path):
    """A file tamis.so would be taken for the package. Any other name may be given: what SQLite calls is the same."""
    page = (ROOT / "docs/sql.md").read_text()
    ((name,),) = [re.findall(r"^cp \S+/libtamis_sqlite.so (\S+)$", page, re.M)]
    shutil.copy(extension.with_suffix(".so"), tmp_path / name)
    done = subprocess.run([sys.executable, "-c", "import tamis; print(tamis.Filter(10).add('key'))"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("True\n", 0), done.stderr
    other = shutil.copy(extension.with_suffix(".so"), tmp_path / "filters-4.so")
    done = subprocess.run(["sqlite3", ":memory:", f".load {other}", "SELECT tamis_int(1)"], capture_output=True)
    assert done.returncode == 0, done.stderr


def test_examples_of_the_docs(extension, index, tmp_path):
    """docs/sql.md: each statement that ends with a comment prints what the comment says."""
    page = (ROOT / "docs/sql.md").read_text()
    shutil.copy(extension.with_suffix(".so"), tmp_path)
    run = 0
    for kind, block in re.findall(r"```(\w+)\n(.*?)```", page, re.S):
        if kind == "sh" and "cargo" not in block:
            subprocess.run(["bash", "-euc", block], check=True, capture_output=True)
        elif kind == "sql":
            done = subprocess.run(["sqlite3", ":memory:"], input=block, capture_output=True, text=True)
            expected = re.findall(r"; +-- (.*)", block)
            assert (done.stdout.splitlines(), done.stderr) == (expected, "")
            run += len(expected)
    assert run == 7


def test_an_older_sqlite(extension):
    """Is refused with a reason. It stands here for itself: a table of functions with the two that are called, at the places
    that they have had since the first version with extensions."""
    version, mprintf, functions = 67, 69, 300
    said = []

    @ctypes.CFUNCTYPE(ctypes.c_int)
    def old():
        return 3_031_001

    @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int)
    def say(text, number):
        said.append(text.decode() % number)
        return 0

    api = (ctypes.c_void_p * functions)()
    api[version] = ctypes.cast(old, ctypes.c_void_p).value
    api[mprintf] = ctypes.cast(say, ctypes.c_void_p).value
    library = ctypes.CDLL(str(extension.with_suffix(".so")))
    assert library.sqlite3_extension_init(None, ctypes.byref(ctypes.c_void_p()), api) == 1
    assert said == ["tamis needs SQLite 3.34.1 or newer, and this is 3031001"]
