"""The candidates of `tamis grep --candidates` and the matches of `tamis grep` in random Parquet files, against DuckDB's own answers.

TAMIS is the command to test, by default that of a debug build.
"""

import csv
import io
import os
import random
import subprocess
from pathlib import Path

import duckdb
import pytest

ROOT = Path(__file__).resolve().parents[4]
TAMIS = os.environ.get("TAMIS", ROOT / "target/debug/tamis")
RATE = 0.01
FILES = 60
# Every type that has a text of its own; the random numbers are seeded, so every run has the same files.
COLUMNS = {
    "small": "(random() * 5000)::INTEGER",
    "large": "(random() * 4000)::BIGINT * 1000000007 - 1000000000000",
    "unsigned_int": "({most} - (random() * 3000)::UINTEGER)::UINTEGER",
    "name": "CASE WHEN random() < 0.1 THEN NULL ELSE 'user \"' || (random() * 3000)::INTEGER || '\", Zoë' END",
    "price": "((random() * 500000)::INTEGER / 1000)::DECIMAL(12, 3)",
    "huge": "(random() * 3000)::INTEGER::DECIMAL(38, 10) / 7",
    "half": "(random() * 3000)::INTEGER / 8.0::DOUBLE",
    "single": "((random() * 3000)::INTEGER / 4.0)::FLOAT",
    "day": "DATE '1890-01-01' + (random() * 90000)::INTEGER",
    "moment": "TIMESTAMP '1960-02-28 23:59:59.5' + to_milliseconds((random() * 4e12)::BIGINT)",
    "exact": "make_timestamp_ns((random() * 2e18)::BIGINT)",
    "clock": "TIME '00:00:00' + to_seconds((random() * 86399)::INTEGER)",
    "uuid": "md5((random() * 3000)::INTEGER::VARCHAR)::UUID",
    "flag": "random() < 0.02",
    "nested": "{'a': CASE WHEN random() < 0.2 THEN NULL ELSE (random() * 2000)::INTEGER END, 'b': 'x'}",
}
COMPRESSIONS = ["uncompressed", "snappy", "gzip", "zstd", "lz4", "lz4_raw", "brotli"]
# What is asked, and how DuckDB names it.
SPECS = {name: [name] for name in COLUMNS if name != "nested"}
SPECS |= {"nested.a": ["nested.a"], "small,name": ["small", "name"], "flag,day,uuid": ["flag", "day", "uuid"]}


def tamis(*arguments, folder):
    ran = subprocess.run([TAMIS, *arguments], cwd=folder, capture_output=True, text=True)
    assert ran.returncode < 2, (arguments, ran.stderr)
    return ran.stdout.splitlines()


def row(values):
    """The values as a row of CSV; one value is itself."""
    if len(values) == 1:
        return values[0]
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(values)
    return line.getvalue()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    database = duckdb.connect()
    database.execute("SET threads = 1; SELECT setseed(0.42)")
    choose = random.Random(7)
    for number in range(FILES):
        rows = choose.choice([0, 1, 100, 2000, 3000])
        version = choose.choice(["V1", "V2"])
        # DuckDB writes the delta encoding of larger ones in a way that others refuse.
        values = COLUMNS | {"unsigned_int": COLUMNS["unsigned_int"].format(most=2**32 - 1 if version == "V1" else 2**31 - 1)}
        columns = ", ".join(f"{value} AS {name}" for name, value in values.items())
        database.execute(f"CREATE OR REPLACE TABLE t AS SELECT {columns} FROM range({rows})")
        compression, group = choose.choice(COMPRESSIONS), choose.choice([2048, 100_000])
        database.execute(
            f"COPY t TO '{folder}/{number:02}.parquet' (FORMAT parquet, COMPRESSION {compression}, "
            f"ROW_GROUP_SIZE {group}, PARQUET_VERSION {version})"
        )
        if number < 3:
            database.execute(f"COPY t TO '{folder}/{number:02}.csv' (HEADER)")
    (folder / "notes.txt").write_text("no table\n")
    tamis("index", "ix", "-p", str(RATE), *(f"--key=parquet:{spec}" for spec in SPECS), ".", folder=folder)
    return folder


@pytest.mark.parametrize("spec", SPECS)
def test_candidates_and_matches_are_those_of_duckdb(folder, spec):
    database = duckdb.connect()
    text = ", ".join(f"CAST({name} AS VARCHAR)" for name in SPECS[spec])
    table = f"read_parquet('{folder}/*.parquet', filename = true, file_row_number = true)"
    found = database.execute(f"SELECT parse_filename(filename), file_row_number + 1, {text} FROM {table}").fetchall()
    places = {}
    for file, number, *values in found:
        if None not in values:
            places.setdefault(tuple(values), []).append((f"./{file}", number))
    choose = random.Random(11)
    asked = choose.sample(sorted(places), min(20, len(places)))
    absent = [tuple(f"{value}9" for value in values) for values in asked]

    others = 0
    for values in asked + absent:
        key = row(values)
        expected = sorted(places.get(values, []))
        candidates = tamis("grep", "--candidates", f"--key=parquet:{spec}", "-e", key, "ix", folder=folder)
        holding = {file for file, _ in expected}
        assert holding <= set(candidates), key
        others += len(set(candidates) - holding)
        lines = tamis("grep", "-n", f"--key=parquet:{spec}", "-e", key, "ix", folder=folder)
        assert sorted(lines) == sorted(f"{file}:{number}:{key}" for file, number in expected)
    # Four standard errors and a bit: files without the key that were named.
    probes = (len(asked) + len(absent)) * FILES
    assert others <= RATE * probes + 4 * (RATE * probes) ** 0.5 + 3


@pytest.mark.parametrize("name", [name for name in SPECS if name in COLUMNS and name != "exact"])
def test_one_text_finds_a_value_in_csv_and_parquet(folder, name):
    index = f"csv-{name}"
    files = [f"{number:02}.{kind}" for number in range(3) for kind in ("csv", "parquet")]
    keys = [f"--key=csv:{name}", f"--key=parquet:{name}"]
    tamis("index", f"../{index}", *keys, *files, folder=folder)
    table = f"read_parquet('{folder}/0[012].parquet', filename = true)"
    sample = f"SELECT DISTINCT CAST({name} AS VARCHAR) FROM {table} WHERE {name} IS NOT NULL ORDER BY 1 LIMIT 8"
    for (key,) in duckdb.execute(sample).fetchall():
        answers = [
            tamis("grep", "-c", f"--key={kind}:{name}", "-e", key, f"../{index}", folder=folder)
            for kind in ("csv", "parquet")
        ]
        assert answers[0] == [line.replace(".parquet", ".csv") for line in answers[1]], key
        assert answers[0], key


def test_lists_and_damage_are_told_and_never_skipped(folder, tmp_path):
    duckdb.execute(f"COPY (SELECT [1, 2] AS id) TO '{tmp_path}/list.parquet'")
    duckdb.execute(f"COPY (SELECT 7 AS id) TO '{tmp_path}/good.parquet'")
    whole = (folder / "59.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[:-100])
    ran = subprocess.run([TAMIS, "index", "ix", "--key=parquet:id", "."], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 2, ran.stderr
    assert "list.parquet: Parquet error: column 'id' is a group or list" in ran.stderr
    assert "cut.parquet: Parquet error" in ran.stderr
    assert tamis("grep", "--candidates", "7", "ix", folder=tmp_path) == ["./cut.parquet", "./good.parquet", "./list.parquet"]
    assert tamis("grep", "--candidates", "8", "ix", folder=tmp_path) == ["./cut.parquet", "./list.parquet"]

    # Whatever a damaged file does to its reader, the run goes on and the file is not forgotten.
    choose = random.Random(3)
    for number in range(60):
        damaged = bytearray(whole)
        for _ in range(choose.choice([1, 5, 50])):
            damaged[choose.randrange(4, len(damaged))] = choose.randrange(256)
        (tmp_path / f"damaged-{number}.parquet").write_bytes(damaged)
    keys = [f"--key=parquet:{spec}" for spec in SPECS]
    ran = subprocess.run([TAMIS, "index", "ix", *keys, "."], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 2, ran.stderr
    assert "ix: 63 files" in ran.stderr, ran.stderr
