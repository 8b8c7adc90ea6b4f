"""Filters of other systems: the real files that the library's own tests have."""

import gzip
import pathlib
import threading

import pytest

import tamis

SAMPLES = pathlib.Path(__file__).resolve().parents[2] / "tamis-formats/tests/samples"
GUAVA = SAMPLES / "guava/guava_string_utf8_n1000_p01_key0-499.mitz64.bin"
DCSO = SAMPLES / "dcso/debian_cli_0.2.4_n1000_p01_key0-499.bloom"
WORDS = [f"key{i}" for i in range(500)]
ABSENT = [f"absent{i}" for i in range(10_000)]
FLOATS = [i + 0.5 for i in range(500)]


@pytest.mark.parametrize(
    "path,options,format,keys",
    [
        (GUAVA, {"format": "guava", "keys": "utf8"}, "guava", WORDS),
        ("guava/guava_unencodedchars_n1000_p01_key0-499.mitz64.bin", {"keys": "utf16"}, "guava", WORDS),
        ("guava/guava_int_n1000_p01_0-499.mitz64.bin", {"keys": "int32"}, "guava", range(500)),
        ("guava/guava_long_n1000_p01_0-499.mitz64.bin", {"keys": "int64"}, "guava", range(500)),
        (DCSO, {"keys": "utf8"}, "dcso", WORDS),
        ("dcso/dcso_v1_n1000_p01_key0-499.bloom.gz", {"keys": "utf8"}, "dcso", WORDS),
        ("poppy/poppy_v2_n1000_p01_key0-499.bloom", {"keys": "utf8"}, "poppy", WORDS),
        ("parquet/pyarrow.parquet", {"name": "s"}, "parquet", WORDS),
        ("parquet/pyarrow.parquet", {"name": "i64"}, "parquet", [7 * i for i in range(500)]),
        ("parquet/pyarrow.parquet", {"name": "f64"}, "parquet", FLOATS),
        ("orc/pyarrow26.orc", {"name": "s"}, "orc", WORDS),
        ("redisbloom/bfscale.dump", {}, "redisbloom", [f"key{i}" for i in range(1000)]),
        ("redisbloom/cfbig.dump", {}, "redisbloom-cuckoo", WORDS),
        ("redisbloom/all.rdb", {"name": "bffixed"}, "redisbloom", WORDS),
        ("bitsandblooms/bb_v3_n1000_p01_key0-499.bin", {}, "bits-and-blooms", WORDS),
        ("bitsandblooms/bb_v3_n1000_p01_key0-499.json", {}, "bits-and-blooms", WORDS),
        ("npm-bloom-filters/bloom_n1000_p01_key0-499.json", {}, "bloom-filters", WORDS),
        ("spark/spark_v2_string_key0-499_bits9600.bin", {"format": "spark", "keys": "utf8"}, "spark", WORDS),
        ("leveldb/leveldb_bloom10_key0000-0499.ldb", {}, "leveldb", [f"key{i:04}" for i in range(500)]),
        ("rocksdb/rocksdb_fastlocalbloom10_key0000-0499.sst", {}, "rocksdb", [f"key{i:04}" for i in range(500)]),
    ],
)
def test_keys_are_found(path, options, format, keys):
    seen = tamis.open_foreign(SAMPLES / path, **options)
    assert seen.format == format
    keys = list(keys)
    assert all(key in seen for key in keys)
    assert seen.contains_many(keys) == [True] * len(keys)
    absent = [key for key in (f"absent{i}".encode() for i in range(10_000)) if key in seen]
    assert len(absent) < 600
    assert [key in seen for key in keys[:100]] == seen.contains_many(keys[:100])
    info = seen.info()
    assert info["format"] == format and info["key_encoding"] == seen.key_encoding
    assert info["keys"] == pytest.approx(len(keys), rel=0.15)
    assert 0 < info["fill"] < 1 and 0 < info["p_now"] < 0.05
    assert format in repr(seen) and str(path) in repr(seen)


def test_what_is_added_is_saved_for_its_own_system(tmp_path):
    seen = tamis.open_foreign(DCSO, keys="utf8")
    assert seen.add("one more") and not seen.add("one more") and "one more" in seen
    assert seen.add_many(["a", "b", "a", "key7"]) == [True, True, False, False]
    seen.update(ABSENT[:100])
    assert not tamis.open_foreign(DCSO, keys="utf8").contains_many(ABSENT[:100]) == [True] * 100, "the file is as it was"
    seen.save(tmp_path / "more.bloom")
    again = tamis.open_foreign(tmp_path / "more.bloom", keys="utf8")
    assert all(again.contains_many([*WORDS, "one more", "a", "b", *ABSENT[:100]]))
    assert bytes(again) == bytes(seen) == (tmp_path / "more.bloom").read_bytes()
    assert again.info()["keys"] > 500 and again.info()["keys_counted"]
    # Over the file it is mapped from.
    again.add("over")
    again.save(again.path)
    assert "over" in tamis.open_foreign(again.path, keys="utf8")


def test_the_file_is_written_as_it_was_read():
    for path, options in [(GUAVA, {"keys": "utf8"}), (DCSO, {"keys": "upper"})]:
        assert bytes(tamis.open_foreign(path, **options)) == path.read_bytes()


def test_cuckoo_keys_can_be_removed():
    seen = tamis.open_foreign(SAMPLES / "redisbloom/cfbig.dump")
    assert seen.remove("key7") and seen.info()["keys"] == 499
    with pytest.raises(tamis.UnableError, match="cuckoo"):
        tamis.open_foreign(GUAVA, keys="utf8").remove("key7")


def test_case_and_bytes(tmp_path):
    seen = tamis.open_foreign(DCSO, keys="upper")
    seen.update(["a9fe", b"0bfe"])
    assert all(seen.contains_many(["A9FE", "a9fe", b"a9Fe", "0BFE"]))
    plain = tamis.open_foreign(DCSO, keys="utf8")
    assert plain.contains_many([b"key7", bytearray(b"key7"), memoryview(b"key7"), "key7"]) == [True] * 4
    utf16 = tamis.open_foreign(GUAVA, keys="utf16")
    for key in ["", "\0", "\U0001f33e", "half a pair \ud83c"]:
        utf16.add(key)
        assert key in utf16 and key.encode("utf-16-le", "surrogatepass") in utf16
    ints = tamis.open_foreign(GUAVA, keys="int64")
    ints.update([-1, 2**63])
    assert all(ints.contains_many([2**64 - 1, -(2**63), b"\xff" * 8]))


def test_columns():
    numpy, pyarrow, polars = (pytest.importorskip(name) for name in ["numpy", "pyarrow", "polars"])
    pandas = pytest.importorskip("pandas")
    words = tamis.open_foreign(GUAVA, keys="utf8")
    keys = ["key7", "nowhere near", "key8"]
    found = [True, False, True]
    answer = words.contains_many(numpy.array(keys))
    assert isinstance(answer, numpy.ndarray) and answer.dtype == bool and answer.tolist() == found
    assert words.contains_many(pyarrow.array(["key7", None, "key8"])).to_pylist() == found
    assert words.contains_many(polars.Series(["key7", None, "key8"])).to_list() == found
    for series in [pandas.Series(keys), pandas.Series(["key7", None, "key8"]), pandas.Series(["key7", float("nan"), "key8"])]:
        answer = words.contains_many(series)
        assert isinstance(answer, numpy.ndarray) and answer.tolist() == found
    masked = numpy.ma.masked_array(keys, mask=[False, True, False])
    assert words.contains_many(masked).tolist() == found
    assert words.add_many(pyarrow.chunked_array([["new"], [None]])).to_pylist() == [True, False]
    assert words.contains_many(iter(keys)) == found
    longs = tamis.open_foreign(SAMPLES / "guava/guava_long_n1000_p01_0-499.mitz64.bin", keys="int64")
    assert all(longs.contains_many(numpy.arange(500)))
    assert words.contains_many([]) == []


def test_more_keys_than_a_block():
    seen = tamis.open_foreign(GUAVA, keys="utf8")
    many = [*WORDS, *ABSENT] * 5
    assert seen.contains_many(many) == [key in seen for key in many]


@pytest.mark.parametrize(
    "options,keys,error,text",
    [
        ({"keys": "utf8"}, [None], tamis.KeyTypeError, "got NoneType"),
        ({"keys": "utf8"}, [7], tamis.KeyTypeError, "expected str or bytes.*utf8.*got int"),
        ({"keys": "int64"}, ["7"], tamis.KeyTypeError, "expected int or bytes.*got str"),
        ({"keys": "int64"}, [True], tamis.KeyTypeError, "got bool"),
        ({"keys": "int64"}, [2**64], tamis.KeyRangeError, r"2\*\*64-1"),
        ({"keys": "int32"}, [2**31], tamis.KeyRangeError, r"2\*\*31-1"),
        ({"keys": "float64"}, ["1.5"], tamis.KeyTypeError, "expected float"),
        ({"keys": "utf8"}, ["\ud83c"], tamis.KeyEncodingError, "UTF-8"),
        ({"keys": "utf8"}, "key", tamis.KeyTypeError, "many keys"),
    ],
)
def test_what_is_no_key(options, keys, error, text):
    seen = tamis.open_foreign(GUAVA, **options)
    for method in [seen.contains_many, seen.add_many, seen.update]:
        with pytest.raises(error, match=text):
            method(keys)
    if isinstance(keys, list):
        with pytest.raises(error, match=text):
            keys[0] in seen
    # Keys before one that is none are in, as in a loop.
    if options["keys"] == "utf8" and isinstance(keys, list):
        with pytest.raises(error):
            seen.update(["before", *keys, "after"])
        assert "before" in seen and "after" not in seen


def test_what_cannot_be_opened(tmp_path):
    with pytest.raises(tamis.ParameterError, match=r"utf8, utf16, int32, int64.*keys="):
        tamis.open_foreign(GUAVA)
    with pytest.raises(tamis.ParameterError, match=r"bfscale.*name="):
        tamis.open_foreign(SAMPLES / "redisbloom/all.rdb")
    with pytest.raises(tamis.ParameterError, match="format: expected one of abloom, bip37.*guavaa"):
        tamis.open_foreign(GUAVA, "guavaa")
    with pytest.raises(tamis.ParameterError, match="keys: expected one of utf8.*utf-8"):
        tamis.open_foreign(GUAVA, keys="utf-8")
    with pytest.raises(tamis.NotFoundError) as caught:
        tamis.open_foreign(tmp_path / "none")
    assert caught.value.filename == str(tmp_path / "none")
    with pytest.raises(tamis.IoError):
        tamis.open_foreign(tmp_path)
    empty = tmp_path / "empty"
    empty.write_bytes(b"")
    with pytest.raises(tamis.CorruptError, match="not a known filter format"):
        tamis.open_foreign(empty)
    cut = tmp_path / "cut"
    cut.write_bytes(GUAVA.read_bytes()[:-1])
    with pytest.raises(tamis.CorruptError, match="expected 1200 bytes, got 1199"):
        tamis.open_foreign(cut, "guava", "utf8")
    cut.write_bytes(gzip.compress(DCSO.read_bytes())[:-100])
    with pytest.raises(tamis.CorruptError):
        tamis.open_foreign(cut, keys="utf8")


def test_read_only_formats():
    seen = tamis.open_foreign(SAMPLES / "leveldb/leveldb_bloom10_key0000-0499.ldb")
    for change in [lambda: seen.add("key"), lambda: seen.update(["key"])]:
        with pytest.raises(tamis.UnableError, match="leveldb.*store"):
            change()


def test_a_full_filter_says_so():
    seen = tamis.open_foreign(SAMPLES / "redisbloom/bffixed.dump")
    with pytest.raises(tamis.FullError, match="1000 keys"):
        seen.update(ABSENT)


def test_threads():
    seen = tamis.open_foreign(GUAVA, keys="utf8")
    wrong = []

    def ask():
        for _ in range(20):
            if not all(seen.contains_many(WORDS)):
                wrong.append(1)

    def add(part):
        seen.update(ABSENT[part::4])

    threads = [threading.Thread(target=ask), *(threading.Thread(target=add, args=(part,)) for part in range(4))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and all(seen.contains_many(ABSENT))


def test_it_cannot_be_made_by_hand():
    with pytest.raises(TypeError):
        tamis.ForeignFilter()


def test_a_hash_is_named_or_doubted():
    old = SAMPLES / "pybloomfilter/pbfm_0.3.11_sha512.bloom"
    seen = tamis.open_foreign(old, keys="utf8", hash="sha512")
    assert all(key in seen for key in WORDS)
    with pytest.warns(RuntimeWarning, match="does not say how its keys were hashed.*sha512"):
        tamis.open_foreign(old, keys="utf8")
    with pytest.raises(tamis.ParameterError, match="hash"):
        tamis.open_foreign(old, keys="utf8", hash="md5")
    with pytest.raises(tamis.TamisError, match="only pybloomfilter"):
        tamis.open_foreign(GUAVA, format="guava", keys="utf8", hash="djb")
