"""Many keys at once, from everything that holds keys."""

import contextlib
import random
import sys

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import tamis

WORDS = ["apple", "é", "", "a word of more than twelve bytes", "🦀 crab", "nul\0inside", "apple"]


def full(keys):
    f = tamis.Filter(100_000, 1e-9)
    f.update(keys)
    return f


def same_answers(make, keys, plain):
    """`make(keys)` answers like the list `plain`, added and asked."""
    f, g = tamis.Filter(100_000, 1e-6), tamis.Filter(100_000, 1e-6)
    mask = f.add_many(make(keys))
    assert list_of(mask) == g.add_many(plain)
    assert f == g and len(f) == len(g)
    half = full(plain[::2])
    assert list_of(half.contains_many(make(keys))) == half.contains_many(plain)
    return mask


def list_of(mask):
    return mask.to_pylist() if isinstance(mask, (pa.Array, pa.ChunkedArray)) else list(mask)


def test_any_iterable():
    for make in (list, tuple, iter, dict.fromkeys, lambda keys: (key for key in keys)):
        keys = list(dict.fromkeys(WORDS))
        assert type(same_answers(make, keys, keys)) is list
    f = tamis.Filter(1000)
    assert f.add_many([]) == [] and f.update(set()) is None
    assert f.add_many(["a", b"a", 1, np.int64(1), bytearray(b"a")]) == [True, False, True, False, False]
    many = [str(i % 70_000) for i in range(100_000)]  # several runs of the GIL
    assert same_answers(iter, many, many) == [i < 70_000 for i in range(100_000)]


def test_one_key_is_not_many():
    f = tamis.Filter(1000)
    for one in ("key", b"key", bytearray(b"key"), memoryview(b"key")):
        for ask in (f.add_many, f.contains_many, f.update, tamis.build):
            with pytest.raises(tamis.KeyTypeError, match="pass a list"):
                ask(one)
    with pytest.raises(TypeError):
        f.update(5)
    assert len(f) == 0


def test_a_list_that_changes_while_it_is_read():
    keys = []
    # Without a GIL, the keys are those that the list had at the beginning.
    has_gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    ends_in = pytest.raises if has_gil else contextlib.nullcontext

    class Shrinks:
        def __index__(self):
            keys.clear()
            return 1

    keys += ["a", Shrinks(), *(str(i) for i in range(1000))]
    with ends_in(IndexError):
        tamis.Filter(1000).add_many(keys)

    class Replaces:
        def __index__(self):
            keys[:] = [object] * len(keys)
            return 1

    keys += ["a", Replaces(), *(str(i) for i in range(1000))]
    with ends_in(tamis.KeyTypeError):
        tamis.Filter(1000).add_many(keys)


@pytest.mark.parametrize("dtype", ["U", ">U40", "<U40", "S", object])
def test_numpy_strings(dtype):
    words = [word for word in WORDS if not word.endswith("\0")]
    if dtype == "S":
        words = [word.encode() for word in words]
    mask = same_answers(lambda keys: np.array(keys, dtype=dtype), words, words)
    assert isinstance(mask, np.ndarray) and mask.dtype == bool and mask.flags.writeable
    # Every second, and backwards: strides.
    for step in (slice(None, None, 2), slice(None, None, -1)):
        same_answers(lambda keys: np.array(keys, dtype=dtype)[step], words, words[step])
    array = np.array(words, dtype=dtype)
    assert list(array[full(words[:2]).contains_many(array)]) == [words[0], words[1], words[-1]]


@pytest.mark.parametrize("size", [1, 2, 4, 8])
@pytest.mark.parametrize("sign", "iu")
@pytest.mark.parametrize("order", "<>")
def test_numpy_integers_are_pythons(size, sign, order):
    dtype = np.dtype(f"{order}{sign}{size}")
    info = np.iinfo(dtype)
    numbers = [info.min, info.max, 0, 1, 100, info.max // 2]
    same_answers(lambda keys: np.array(keys, dtype=dtype), numbers, [int(n) for n in numbers])


def test_numpy_fixed_bytes_and_what_is_no_key():
    raw = np.array([b"ab\0\0", b"cdef"], dtype="V4")
    assert list(full([b"ab\0\0"]).contains_many(raw)) == [True, False]
    variable = np.array(["apple", "pear"], dtype=np.dtypes.StringDType())
    assert list(full(["apple"]).contains_many(variable)) == [True, False]
    f = tamis.Filter(1000)
    for bad in (
        np.array([1.5], dtype="g"),
        np.array([1j]),
        np.array([1], dtype="m8[M]"),
        np.array([["a"]]),
        np.array("a"),
    ):
        with pytest.raises(tamis.KeyTypeError, match="keys: expected"):
            f.add_many(bad)
    with pytest.raises(tamis.KeyTypeError):
        f.add_many(np.array(["a", None], dtype=object))
    with pytest.raises(tamis.KeyEncodingError):
        f.add_many(np.array(["\ud800"]))
    assert f.add_many(np.array([], dtype="U5")).tolist() == []


ARROW_TEXT = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.binary(),
    pa.large_binary(),
    pa.binary_view(),
]


@pytest.mark.parametrize("type", ARROW_TEXT, ids=str)
def test_arrow_text(type):
    def column(keys):
        return pa.array(keys, type)

    assert isinstance(same_answers(column, WORDS, WORDS), pa.BooleanArray)
    many = [f"a word that is not short, number {i}" for i in range(10_000)]
    same_answers(column, many, many)
    # A slice starts inside its buffers.
    same_answers(lambda keys: column(["before", *keys, "after"])[1:-1], WORDS, WORDS)
    same_answers(lambda keys: pa.chunked_array([column(keys[:3]), column([]), column(keys[3:])]), WORDS, WORDS)


@pytest.mark.parametrize("type", [*ARROW_TEXT, pa.int32(), pa.uint64()], ids=str)
def test_arrow_nulls_are_never_in_and_never_added(type):
    keys = [1, None, 2, None] if pa.types.is_integer(type) else ["apple", None, "pear", None]
    f = tamis.Filter(1000, 1e-9)
    assert f.add_many(pa.array(keys, type)).to_pylist() == [True, False, True, False]
    assert len(f) == 2 and "" not in f and 0 not in f
    assert f.contains_many(pa.array(keys, type)[1:]).to_pylist() == [False, True, False]
    assert f.contains_many(pa.array([None, None], type)).to_pylist() == [False, False]


def test_arrow_integers_and_fixed_bytes():
    for type in (pa.int8(), pa.int16(), pa.int32(), pa.int64()):
        same_answers(lambda keys: pa.array(keys, type), [-128, 127, 0, -1], [-128, 127, 0, -1])
    for type in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()):
        same_answers(lambda keys: pa.array(["9", *map(str, keys)]).cast(type)[1:], [255, 0, 7], [255, 0, 7])
    digests = [bytes([i]) * 16 for i in range(100)]
    same_answers(lambda keys: pa.array(keys, pa.binary(16)), digests, digests)


def test_arrow_dictionaries():
    keys = ["apple", "pear", "apple", None, "fig"]
    for type in (pa.int8(), pa.uint32(), pa.int64()):
        column = pa.array(keys).dictionary_encode().cast(pa.dictionary(type, pa.string()))
        f = tamis.Filter(1000)
        assert f.add_many(column).to_pylist() == [True, True, False, False, True]
        assert f.contains_many(column[2:]).to_pylist() == [True, False, True]
    # A null may also be a value of the dictionary.
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array(["apple", None]))
    assert tamis.Filter(1000).add_many(column).to_pylist() == [True, False, False]


def test_arrow_types_that_are_no_keys():
    f = tamis.Filter(1000)
    for bad in (
        pa.array([[1]]),
        pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
        pa.array([{"a": 1}]),
        pa.table({"a": ["x"]}),
        pa.record_batch({"a": ["x"]}),
        pl.DataFrame({"a": ["x"]}),
        pl.Series([[1]]),
    ):
        with pytest.raises(tamis.KeyTypeError, match="column of strings"):
            f.add_many(bad)


def test_polars():
    for series in (
        pl.Series("words", WORDS),
        pl.Series("words", WORDS, dtype=pl.Categorical),
        pl.Series("words", [word.encode() for word in WORDS]),
    ):
        f = tamis.Filter(1000, 1e-6)
        mask = f.add_many(series)
        assert isinstance(mask, pl.Series) and mask.to_list() == [True] * 6 + [False]
        assert series.filter(mask).len() == 6
    assert full([7]).contains_many(pl.Series([7, None, 8])).to_list() == [True, False, False]


def test_pandas_like_objects_and_anything_with_arrow():
    class Column:
        def __init__(self, keys):
            self.array = pa.array(keys)

        def __arrow_c_array__(self, requested_schema=None):
            return self.array.__arrow_c_array__(requested_schema)

    mask = full(["apple"]).contains_many(Column([*WORDS, None]))
    assert isinstance(mask, tamis.Mask) and len(mask) == 8
    assert list(mask) == mask.tolist() == [True] + [False] * 5 + [True, False]
    assert mask[0] is True and mask[-1] is False and repr(mask) == "<tamis.Mask of 8, 2 of them True>"
    with pytest.raises(IndexError):
        mask[8]
    # It is read by others in place, and outlives itself there.
    arrays = [pa.array(mask), pl.Series(mask), np.asarray(mask)]
    expected = mask.tolist()
    del mask
    assert all(list_of(array) == expected for array in arrays)

    class Array:
        def __array__(self, dtype=None, copy=None):
            return np.array(WORDS)

    assert full(["apple"]).contains_many(Array()).tolist() == [True] + [False] * 5 + [True]


def test_an_arrow_stream_that_fails():
    def batches():
        yield pa.record_batch({"a": ["x"]})
        raise RuntimeError("the disk is gone")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"a": pa.string()}), batches())

    class Stream:
        def __arrow_c_stream__(self, requested_schema=None):
            return reader.__arrow_c_stream__(requested_schema)

    with pytest.raises(tamis.KeyTypeError, match="a table"):
        tamis.Filter(10).add_many(Stream())

    class Broken:
        def __arrow_c_array__(self, requested_schema=None):
            return (1, 2)

    with pytest.raises((TypeError, ValueError)):
        tamis.Filter(10).add_many(Broken())


@pytest.mark.parametrize("kind", ["blocked", "bloom", "cuckoo", "growing", "counting"])
def test_threads_give_the_answers_of_one(kind):
    random.seed(1)
    numbers = np.array([random.randrange(40_000) for _ in range(100_000)])
    text = pa.array([str(n) if n % 7 else None for n in numbers])
    # A cuckoo filter takes few copies of one key.
    if kind == "cuckoo":
        numbers, text = np.arange(100_000), pa.array([str(n) for n in range(100_000)])
    for keys in (numbers, text):
        one, many = (tamis.Filter(120_000, 0.001, kind=kind) for _ in range(2))
        expected = list_of(one.add_many(keys))
        assert list_of(many.add_many(keys, threads=4)) == expected
        assert one == many
        assert list_of(many.contains_many(keys, threads=3)) == list_of(one.contains_many(keys, threads=0))
    with pytest.raises(tamis.ParameterError, match="threads: expected"):
        one.add_many(keys, threads=-1)


def test_an_error_in_one_of_several_threads():
    f = tamis.Filter(1000, kind="cuckoo")
    with pytest.raises(tamis.FullError):
        f.add_many(np.arange(1_000_000), threads=4)
    bad = np.array(["x"] * 99_999 + ["\ud800"])
    with pytest.raises(tamis.KeyEncodingError):
        tamis.Filter(1000).add_many(bad, threads=4)
