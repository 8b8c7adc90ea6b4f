"""Tables of RocksDB and LevelDB, by their packages for Python."""

import plyvel
import pytest
from conftest import ABSENT, BINARY, TEXTS, WORDS
from rocksdict import BlockBasedOptions, DBCompressionType, Options, Rdict

import tamis

KEYS = [*(text.encode() for text in [*WORDS, *TEXTS]), *BINARY]


def rocksdb(folder):
    options, blocks = Options(raw_mode=True), BlockBasedOptions()
    blocks.set_bloom_filter(10, False)
    options.set_block_based_table_factory(blocks)
    options.set_compression_type(DBCompressionType.none())
    store = Rdict(str(folder), options=options)
    for key in KEYS:
        store[key] = b"value"
    store.flush()
    store.close()
    return folder.glob("*.sst")


def leveldb(folder):
    store = plyvel.DB(str(folder), create_if_missing=True, bloom_filter_bits=10, compression=None)
    for key in KEYS:
        store.put(key, b"value")
    store.compact_range()
    store.close()
    return folder.glob("*.ldb")


@pytest.mark.parametrize("store", [rocksdb, leveldb])
def test_every_key_of_a_store_is_in_one_of_its_tables(store, tmp_path):
    tables = [tamis.open_foreign(table) for table in store(tmp_path / "store")]
    assert tables and {table.format for table in tables} == {store.__name__}
    answers = [table.contains_many(KEYS) for table in tables]
    assert all(map(any, zip(*answers)))
    filters = max(1, len(tables) * 40)
    assert sum(any(answer) for answer in zip(*(table.contains_many(ABSENT) for table in tables))) < 250 * filters
