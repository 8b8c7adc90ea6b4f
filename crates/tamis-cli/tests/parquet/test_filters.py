"""Filters in Parquet files: those that DuckDB and pyarrow write are asked by `tamis grep --candidates`, and those
that `tamis parquet` adds to files are asked by DuckDB and seen by pyarrow, with the data untouched.

TAMIS is the command to test, by default that of a debug build.
"""

import json
import os
import random
import struct
import subprocess
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).resolve().parents[4]
TAMIS = os.environ.get("TAMIS", ROOT / "target/debug/tamis")
ROWS = 3000
# Every type that has a text of its own, and how DuckDB makes a value of the number {i}.
COLUMNS = {
    "tiny": "({i} % 100)::TINYINT",
    "small": "({i} - 1500)::SMALLINT",
    "int": "({i} * 7 - 5000)::INTEGER",
    "large": "({i}::BIGINT * 1000000007 - 1000000000000)",
    "unsigned_small": "({i} + 60000)::USMALLINT",
    "unsigned": "(4294967295 - {i})::UINTEGER",
    "unsigned_large": "(18446744073709551615 - {i}::HUGEINT)::UBIGINT",
    "text": "'user \"' || {i} || '\", Zoë'",
    "bytes": "('\\xFF key ' || {i})::BLOB",
    "price": "({i} / 8)::DECIMAL(8, 3)",
    "money": "({i}::BIGINT * 1000001 / 16)::DECIMAL(16, 4)",
    "huge": "({i}::DECIMAL(38, 10) - 1500) * 7",
    "double": "(({i} - 1500) / 8.0)::DOUBLE",
    "float": "(({i} - 1500) / 4.0)::FLOAT",
    "day": "DATE '1890-01-01' + ({i} * 30)::INTEGER",
    "moment": "TIMESTAMP '1960-02-28 23:59:59.5' + to_milliseconds({i}::BIGINT * 123456789)",
    "exact": "make_timestamp_ns({i}::BIGINT * 987654321987654)",
    "clock": "TIME '00:00:00.25' + to_seconds({i} * 28)",
    "uuid": "md5({i}::VARCHAR)::UUID",
}
NAMES = sorted(COLUMNS)
TEXT = {name: f"CAST({name} AS VARCHAR)" for name in COLUMNS} | {"bytes": "bytes"}


def run(*arguments, folder):
    return subprocess.run([TAMIS, *arguments], cwd=folder, capture_output=True)


def tamis(*arguments, folder):
    ran = run(*arguments, folder=folder)
    assert ran.returncode < 2, (arguments, ran.stderr)
    return ran.stdout.decode().splitlines()


def which(folder, name, key, place="."):
    return tamis("grep", "--candidates", f"--key=parquet:{name}", "-e", key, place, folder=folder)


def as_bytes(key):
    return key if isinstance(key, bytes) else key.encode()


def data(file):
    """The bytes before the footer."""
    whole = file.read_bytes()
    (length,) = struct.unpack("<I", whole[-8:-4])
    return whole[: -8 - length]


def table(database, first, rows):
    columns = ", ".join(f"{value.format(i='i')} AS \"{name}\"" for name, value in COLUMNS.items())
    database.execute(f"CREATE OR REPLACE TABLE t AS SELECT {columns} FROM range({first}, {first + rows}) r(i)")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """plain/: files without filters; duck/: with DuckDB's; ours/: with ours."""
    folder = tmp_path_factory.mktemp("tables")
    for part in ("plain", "duck", "ours"):
        (folder / part).mkdir()
    database = duckdb.connect()
    database.execute("SET threads = 1")
    # Of the encodings of version 2, DuckDB writes one in a way that others refuse.
    for number, (first, rows, compression) in enumerate(
        [(0, 1000, "snappy"), (1000, 1900, "zstd"), (2900, 100, "uncompressed"), (3000, 0, "gzip")]
    ):
        table(database, first, rows)
        name = f"{number}.parquet"
        options = f"FORMAT parquet, COMPRESSION {compression}, ROW_GROUP_SIZE 700"
        database.execute(f"COPY t TO '{folder}/plain/{name}' ({options}, WRITE_BLOOM_FILTER false)")
        database.execute(f"COPY t TO '{folder}/duck/{name}' ({options}, DICTIONARY_SIZE_LIMIT 100000)")
        added = [f"-kparquet:{column}" for column in NAMES]
        tamis("parquet", f"plain/{name}", *added, "-p", "0.01", "-o", f"ours/{name}", folder=folder)
    return folder


def texts(folder, name):
    found = duckdb.sql(
        f"SELECT parse_filename(filename), {TEXT[name]} FROM read_parquet('{folder}/plain/*.parquet', filename = true)"
    ).fetchall()
    places = {}
    for file, text in found:
        places.setdefault(text, set()).add(f"./{file}")
    return places


def test_data_is_untouched_and_everybody_reads_it(folder):
    for number in range(4):
        plain, ours = (folder / part / f"{number}.parquet" for part in ("plain", "ours"))
        before = data(plain)
        assert ours.read_bytes()[: len(before)] == before
        query = "SELECT * FROM read_parquet('{}')"
        assert duckdb.sql(query.format(plain)).fetchall() == duckdb.sql(query.format(ours)).fetchall()
        assert pq.read_table(plain).equals(pq.read_table(ours))
        old, new = pq.read_metadata(plain), pq.read_metadata(ours)
        assert (old.num_rows, old.created_by, old.schema) == (new.num_rows, new.created_by, new.schema)
        length = len(ours.read_bytes())
        for group in range(new.num_row_groups):
            for column in range(new.num_columns):
                offset = new.row_group(group).column(column).bloom_filter_offset
                size = new.row_group(group).column(column).bloom_filter_length
                assert len(before) <= offset and offset + size < length
                assert old.row_group(group).column(column).bloom_filter_offset is None


@pytest.mark.parametrize("name", NAMES)
def test_duckdb_asks_our_filters(folder, name):
    """Nothing that is there is excluded, and most of what is not is, at the rate asked for."""
    asked = wrong = 0
    first = 0

    def probe(file, number):
        """For each row group, whether its filter excludes a value, which is written out: parameters are rounded."""
        value = COLUMNS[name].format(i=number)
        query = f"SELECT row_group_id, bloom_filter_excludes FROM parquet_bloom_probe('{file}', '{name}', {value})"
        return dict(duckdb.sql(query).fetchall())

    for number in range(3):
        file = f"{folder}/ours/{number}.parquet"
        meta = pq.read_metadata(file)
        for group in range(meta.num_row_groups):
            count = meta.row_group(group).num_rows
            for i in range(first, first + count, 29):
                assert not probe(file, i)[group], (number, group, i)
            first += count
        for i in range(4000, 4100):
            excluded = probe(file, i).values()
            asked += len(excluded)
            wrong += sum(not answer for answer in excluded)
    assert first == ROWS
    # All of "tiny" is everywhere, and decimals of 16 bytes DuckDB does not ask filters for.
    if name not in ("tiny", "huge"):
        assert wrong <= 0.01 * asked + 4 * (0.01 * asked) ** 0.5, (wrong, asked)


@pytest.mark.parametrize("part", ["plain", "duck", "ours"])
@pytest.mark.parametrize("name", NAMES)
def test_which_never_says_a_false_no(folder, name, part):
    places = texts(folder, name)
    choose = random.Random(5)
    others = 0
    keys = choose.sample(sorted(places), min(25, len(places)))
    for key in keys:
        candidates = set(which(folder / part, name, as_bytes(key)))
        assert places[key] <= candidates, (name, key)
        others += len(candidates - places[key])
    if part == "ours":
        # 6 row groups at a hundredth each.
        assert others <= 2 + 0.12 * len(keys), (others, len(keys))
    if part == "plain":
        # Without filters, every file with rows is a candidate.
        assert all(len(which(folder / part, name, as_bytes(key))) == 3 for key in keys[:3])


def test_filters_of_pyarrow_are_asked(tmp_path):
    columns = {
        "i32": pa.array(range(0, 2000, 2), pa.int32()),
        "u64": pa.array([2**64 - 1 - i for i in range(1000)], pa.uint64()),
        "s": pa.array([f"key{i}" if i % 3 else None for i in range(1000)]),
        "f": pa.array([i / 4 if i else -0.0 for i in range(1000)], pa.float64()),
        "d": pa.array([i * 100 for i in range(1000)], pa.date32()),
        "fixed": pa.array([b"%04d" % i for i in range(1000)], pa.binary(4)),
    }
    options = {name: {"ndv": 1000, "fpp": 0.01} for name in columns}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet", bloom_filter_options=options, row_group_size=400)
    asked = {
        "i32": ["0", "1998", "1000"],
        "u64": [str(2**64 - 1), str(2**64 - 1000)],
        "s": ["key1", "key998"],
        "f": ["0", "-0.0", "0.0", "0.25", "249.75", "2.5e-1"],
        "d": ["1970-01-01", "2243-07-09"],
        "fixed": ["0000", "0999"],
    }
    absent = {"i32": "1", "u64": "7", "s": "key0x", "f": "0.125", "d": "1970-01-02", "fixed": "1000"}
    for name, keys in asked.items():
        for key in keys:
            assert which(tmp_path, name, key) == ["./a.parquet"], (name, key)
        assert which(tmp_path, name, absent[name]) == [], name
    found = json.loads(tamis("grep", "--candidates", "--json", "--key=parquet:i32", "1998", ".", folder=tmp_path)[0])
    assert found["files"] == [
        {"file": "./a.parquet", "state": "asked", "row_groups": [2], "of_row_groups": 3}
    ], found
    # Two columns together: a row group must have both.
    assert which(tmp_path, "i32,fixed", "2,0001") == ["./a.parquet"]
    assert which(tmp_path, "i32,fixed", "2,0999") == []


def test_what_cannot_be_asked_is_a_candidate(folder, tmp_path):
    whole = (folder / "ours/0.parquet").read_bytes()
    database = duckdb.connect()
    database.execute(f"COPY (SELECT true AS int, [1, 2] AS list) TO '{tmp_path}/bool.parquet'")
    database.execute(f"COPY (SELECT 1 AS other) TO '{tmp_path}/other.parquet'")
    (tmp_path / "good.parquet").write_bytes(whole)
    (tmp_path / "cut.parquet").write_bytes(whole[:-100])
    (tmp_path / "headless.parquet").write_bytes(b"none" + whole[4:])
    (tmp_path / "empty.parquet").write_bytes(b"")
    (tmp_path / "secret.parquet").write_bytes(b"PARE" + whole[4:-4] + b"PARE")
    (tmp_path / "notes.txt").write_text("no table, and no candidate\n")
    ran = run("grep", "--candidates", "--key=parquet:int", "999999", ".", folder=tmp_path)
    named = ran.stdout.decode().split()
    assert named == [f"./{name}.parquet" for name in ("bool", "cut", "empty", "headless", "secret")], ran.stderr
    assert b"cut.parquet: " in ran.stderr and b"it may hold any value" in ran.stderr
    # What is no number can be no value of the column, but nothing proves how its writer would read it.
    assert "./good.parquet" in which(tmp_path, "int", "1e3")
    assert "./other.parquet" not in which(tmp_path, "int", "1e3")
    missing = run("grep", "--candidates", "--key=parquet:int", "1", "nowhere", folder=tmp_path)
    assert missing.returncode == 2 and b"nowhere" in missing.stderr
    for spec in ["csv:int", "word", "prefix:2:parquet:int"]:
        ran = run("grep", "--candidates", f"--key={spec}", "1", ".", folder=tmp_path)
        assert ran.returncode == 2, spec
    assert run("grep", "--candidates", "1", ".", folder=tmp_path).returncode == 2

    # Whatever damage does to a file, a value that is in it is found or it is an error.
    choose = random.Random(9)
    for number in range(150):
        damaged = bytearray(whole)
        for _ in range(choose.choice([1, 3, 20])):
            damaged[choose.randrange(len(damaged) - 3000, len(damaged))] ^= 1 << choose.randrange(8)
        (tmp_path / "good.parquet").write_bytes(damaged)
        for arguments in (
            ["grep", "--candidates", "--key=parquet:int", "-e", "-5000", "good.parquet"],
            ["info", "good.parquet"],
            ["check", "--format", "name=int", "good.parquet", "/dev/null"],
            ["parquet", "good.parquet", "-kparquet:int", "-o", "x.parquet", "--force"],
        ):
            ran = run(*arguments, folder=tmp_path)
            assert ran.returncode in (0, 1, 2), (number, arguments, ran.stderr)


def test_bloom_says_what_it_cannot_do(folder, tmp_path):
    (tmp_path / "a.parquet").write_bytes((folder / "plain/0.parquet").read_bytes())
    duckdb.sql(f"COPY (SELECT true AS flag, [1, 2] AS list, {{'a': 7}} AS s) TO '{tmp_path}/b.parquet'")
    before = sorted(os.listdir(tmp_path))
    for arguments, said in [
        (["a.parquet", "-kparquet:nothing", "-o", "x"], b"no column 'nothing'"),
        (["b.parquet", "-kparquet:flag", "-o", "x"], b"BOOLEAN"),
        (["b.parquet", "-kparquet:s", "-o", "x"], b"group or list"),
        (["a.parquet", "-kparquet:int", "-o", "b.parquet"], b"already exists"),
        (["nothing", "-kparquet:int", "-o", "x"], b"nothing"),
        (["a.parquet", "-o", "x"], b"--key"),
    ]:
        ran = run("parquet", *arguments, folder=tmp_path)
        assert ran.returncode == 2 and said in ran.stderr, ran.stderr
    assert sorted(os.listdir(tmp_path)) == before
    # The elements of a list, and a value inside a group, each have a column.
    tamis("parquet", "b.parquet", "-kparquet:list.list.element", "-kparquet:s.a", "-o", "c.parquet", folder=tmp_path)
    assert which(tmp_path, "s.a", "7", "c.parquet") == ["c.parquet"]
    assert which(tmp_path, "s.a", "8", "c.parquet") == []
    # A file may be replaced by itself, and a second filter takes the place of the first.
    tamis("parquet", "a.parquet", "-kparquet:int", "-o", "a.parquet", "--force", folder=tmp_path)
    first = (tmp_path / "a.parquet").stat().st_size
    tamis("parquet", "a.parquet", "-kparquet:int", "-p", "1e-6", "-o", "a.parquet", "--force", folder=tmp_path)
    assert (tmp_path / "a.parquet").stat().st_size > first
    listed = json.loads("\n".join(tamis("info", "--json", "a.parquet", folder=tmp_path)))
    rates = [column["rate_now"] for column in listed["columns"] if column["column"] == "int"]
    assert rates and all(rate <= 1e-6 for rate in rates)
    assert listed["filters"] == len(rates)


@pytest.mark.parametrize("rate", ["0.1", "0.01", "0.001", "0.0001"])
def test_the_rate_asked_for_is_the_rate_measured(tmp_path, rate):
    """Sizes are powers of two: the counts of values are such that the usual formula just fits, where it is wrong."""
    for count in [1, 30, 837, 1674, 13391, 26500]:
        pq.write_table(pa.table({"s": [f"value {i}" for i in range(count)]}), tmp_path / "a.parquet")
        tamis("parquet", "a.parquet", "-kparquet:s", "-p", rate, "-o", "b.parquet", "--force", folder=tmp_path)
        keys = "".join(f"absent {i}\n" for i in range(100_000))
        ran = subprocess.run([TAMIS, "check", "-c", "--format", "name=s", "b.parquet"], cwd=tmp_path, input=keys, text=True,
                             capture_output=True)
        expected = float(rate) * 100_000
        assert int(ran.stdout) <= expected + 4 * expected**0.5, (count, ran.stdout)
