"""Columns of Parquet and ORC files, by pyarrow and DuckDB."""

import struct

import duckdb
import pyarrow
import pyarrow.orc
import pyarrow.parquet
import pytest
from conftest import ABSENT, LONGS, NUMBERS, TEXTS, WORDS

import tamis

COLUMNS = {
    "s": ("utf8", pyarrow.string(), [*WORDS, *TEXTS]),
    "i32": ("int32", pyarrow.int32(), [*range(3, 1503, 3), *NUMBERS]),
    "i64": ("int64", pyarrow.int64(), [*range(7, 3507, 7), *LONGS]),
    "f32": ("float32", pyarrow.float32(), [i + 0.25 for i in range(500)]),
    "f64": ("float64", pyarrow.float64(), [i + 0.5 for i in range(500)]),
}


@pytest.mark.parametrize("column", COLUMNS)
def test_parquet_of_pyarrow(tmp_path, column):
    encoding, type, values = COLUMNS[column]
    path = tmp_path / "theirs.parquet"
    table = pyarrow.table({column: pyarrow.array(values, type)})
    options = {column: {"ndv": 200, "fpp": 0.01}}
    pyarrow.parquet.write_table(table, path, row_group_size=200, bloom_filter_options=options)
    filter = tamis.open_foreign(path)
    assert (filter.format, filter.key_encoding) == ("parquet", encoding)
    assert all(filter.contains_many(values))
    with pytest.raises(tamis.UnableError):
        filter.add(values[0])


def duckdb_file(path, column):
    encoding, type, values = COLUMNS[column]
    rows = pyarrow.table({column: pyarrow.array([value for value in values for _ in range(3)], type)})  # noqa: F841
    duckdb.sql(f"copy rows to '{path}' (format parquet, row_group_size 100000, dictionary_size_limit 100000)")


def excluded(path, key):
    """Whether DuckDB, by the file's filter, knows that the key is not in it."""
    [(answer,)] = duckdb.sql(
        f"select bloom_filter_excludes from parquet_bloom_probe('{path}', 's', '{key}')"
    ).fetchall()
    return answer


@pytest.mark.parametrize("column", COLUMNS)
def test_parquet_of_duckdb(tmp_path, column):
    encoding, _, values = COLUMNS[column]
    path = tmp_path / "theirs.parquet"
    duckdb_file(path, column)
    filter = tamis.open_foreign(path)
    assert (filter.format, filter.key_encoding) == ("parquet", encoding)
    assert all(filter.contains_many(values))
    if encoding != "utf8":
        return
    answers = [excluded(path, key) for key in ABSENT[:300]]
    assert answers == [key not in filter for key in ABSENT[:300]] and sum(answers) > 280


def test_our_filter_in_the_place_of_duckdbs(tmp_path):
    """DuckDB asks bits that we set, and finds our keys instead of its own."""
    path = tmp_path / "file.parquet"
    duckdb_file(path, "s")
    places = duckdb.sql(f"select bloom_filter_offset, bloom_filter_length from parquet_metadata('{path}')")
    [(offset, length)] = places.fetchall()
    file = bytearray(path.read_bytes())
    blob = file[offset : offset + length]
    bits = len(blob) % 32
    alone = tmp_path / "alone"
    alone.write_bytes(blob[:bits] + bytes(len(blob) - bits))
    filter = tamis.open_foreign(alone, format="parquet", keys="utf8")
    filter.update(ABSENT[:400])
    file[offset : offset + length] = bytes(filter)
    path.write_bytes(file)

    assert not any(excluded(path, key) for key in ABSENT[:400])
    gone = [excluded(path, key) for key in WORDS]
    assert sum(gone) > 480
    assert gone == [key not in filter for key in WORDS]


@pytest.mark.parametrize("column,encoding", [("s", "utf8"), ("i64", "int64"), ("i32", "int64"), ("f64", "float64"), ("f32", "float64")])
def test_orc_of_pyarrow(tmp_path, column, encoding):
    _, type, values = COLUMNS[column]
    path = tmp_path / "theirs.orc"
    table = pyarrow.table({column: pyarrow.array(values, type)})
    pyarrow.orc.write_table(table, path, bloom_filter_columns=[1], bloom_filter_fpp=0.01, compression="uncompressed")
    filter = tamis.open_foreign(path)
    assert (filter.format, filter.key_encoding) == ("orc", encoding)
    if type == pyarrow.float32():
        values = [struct.unpack("f", struct.pack("f", value))[0] for value in values]
    assert all(filter.contains_many(values))
    if encoding == "utf8":
        assert sum(filter.contains_many(ABSENT)) < 300
