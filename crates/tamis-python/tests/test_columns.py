"""Columns that are not what they seem: objects, masks, nulls, and forged Arrow."""

import ctypes
import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tamis


def full(keys):
    f = tamis.Filter(100_000, 1e-9)
    f.update(keys)
    return f


def test_polars_objects_are_their_keys_not_their_addresses():
    words = ["".join(["ap", "ple"]), b"pear", 7, None]
    f = tamis.Filter(1000, 1e-9)
    new = f.add_many(pl.Series(words, dtype=pl.Object))
    assert isinstance(new, pl.Series) and new.to_list() == [True, True, True, False]
    assert len(f) == 3 and "apple" in f and "pear" in f and 7 in f
    # Equal keys in other objects.
    again = pl.Series(["".join(["appl", "e"]), "cherry"], dtype=pl.Object)
    assert f.contains_many(again).to_list() == [True, False]
    with pytest.raises(tamis.KeyTypeError):
        f.add_many(pl.Series([object()], dtype=pl.Object))
    assert f.contains_many(pl.Series([], dtype=pl.Object)).to_list() == []


PANDAS = """
    import numpy as np, pandas as pd, tamis

    f = tamis.Filter(1000, 1e-9)
    new = f.add_many(pd.Series(["apple", None, "pear", "apple"]))
    assert isinstance(new, np.ndarray) and new.tolist() == [True, False, True, False], new
    f.update(pd.Series([1, 2, 3]))
    f.update(pd.Series([4, None], dtype="Int64"))
    assert f.contains_many(pd.Series([3, 4, 5])).tolist() == [True, True, False]
    assert f.contains_many(pd.Series(["pear", float("nan"), pd.NA], dtype=object)).tolist() == [True, False, False]
    assert f.contains_many(pd.Index(["pear", "fig"])).tolist() == [True, False]
    assert f.contains_many(pd.Series(["pear", "fig"], dtype="category")).tolist() == [True, False]
    assert f.contains_many(pd.Series([b"pear", 3, "fig"], dtype=object)).tolist() == [True, True, False]
    assert f.contains_many(pd.Series([], dtype=object)).tolist() == []
    assert f.contains_many(pd.Series([None, None], dtype=object)).tolist() == [False, False]
    assert len(f) == 6
    for bad in (pd.Series([[1]]), pd.DataFrame({"a": ["x"]}), pd.Series([object()])):
        try:
            f.add_many(bad)
        except tamis.KeyTypeError:
            continue
        raise AssertionError(bad)
"""


@pytest.mark.parametrize("pyarrow", [True, False])
def test_pandas_with_and_without_pyarrow(pyarrow):
    script = "" if pyarrow else "import sys; sys.modules['pyarrow'] = None\n"
    done = subprocess.run(
        [sys.executable, "-c", script + textwrap.dedent(PANDAS)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "column",
    [
        pa.nulls(5),
        pa.chunked_array([pa.nulls(2), pa.nulls(3)]),
        pl.Series([None] * 5),
        pa.array([None] * 5, pa.string()),
        pa.nulls(5).dictionary_encode(),
        pd.Series([None] * 5),
        np.ma.masked_all(5, dtype="U3"),
    ],
    ids=lambda column: f"{type(column).__module__}.{type(column).__name__}",
)
def test_a_column_of_nulls_is_answered(column):
    f = full(["", 0, "None"])
    assert list(map(bool, pa.array(f.contains_many(column)).to_pylist())) == [False] * 5
    assert list(map(bool, pa.array(f.add_many(column, threads=2)).to_pylist())) == [False] * 5
    f.update(column)
    assert len(f) == 3


@pytest.mark.parametrize("dtype", ["U5", "S5", "V5", object, "i8"])
def test_masked_values_of_numpy_are_nulls(dtype):
    plain = np.array([11, 12, 13, 14, 15] if dtype == "i8" else [b"11", b"12", b"13", b"14", b"15"])
    keys = np.ma.masked_array(plain.astype(dtype), mask=[0, 1, 0, 0, 1])
    f = tamis.Filter(1000, 1e-9)
    assert f.add_many(keys).tolist() == [True, False, True, True, False]
    assert len(f) == 3
    plain = plain.astype(dtype)
    assert f.contains_many(plain).tolist() == [True, False, True, True, False]
    assert f.contains_many(keys[1:]).tolist() == [False, True, True, False]
    unmasked = np.ma.masked_array(plain)
    assert f.contains_many(unmasked).tolist() == [True, False, True, True, False]
    many = np.ma.masked_array(np.arange(50_000), mask=np.arange(50_000) % 3 == 0)
    new = tamis.Filter(100_000, 1e-9).add_many(many, threads=3)
    assert (new == (np.arange(50_000) % 3 != 0)).all()


def test_structured_arrays_are_tuples():
    """Not their memory, of which padding, other fields and addresses are part."""
    padded = np.dtype([("a", "i1"), ("b", "f8"), ("c", "U3")], align=True)
    rows = [(1, 0.5, "x"), (2, 2.0, "yy"), (1, 0.5, "x")]
    memory = np.frombuffer(np.random.default_rng(1).bytes(3 * padded.itemsize), dtype=padded).copy()
    for name, values in zip("abc", zip(*rows)):
        memory[name] = values
    f = tamis.Filter(1000, 1e-12)
    assert f.add_many(memory).tolist() == [True, True, False]
    assert f == full_of(rows) and memory[0] in f and rows[1] in f and rows[1][:2] not in f
    assert f.contains_many(np.array(rows, dtype=padded)).tolist() == [True] * 3
    assert f.contains_many(memory[::-1]).tolist() == [True] * 3
    assert f.contains_many(np.array(rows, dtype=[("a", ">i4"), ("b", ">f4"), ("c", ">U9")])).tolist() == [True] * 3
    # Some of the fields.
    assert tamis.Filter(1000, 1e-12).add_many(memory[["a", "c"]]).tolist() == [True, True, False]
    assert full_of([(1, "x"), (2, "yy")]).contains_many(memory[["a", "c"]]).tolist() == [True] * 3
    # Objects, and structures in structures.
    objects = np.array([("".join(["ap", "ple"]), 1), (None, 2)], dtype=[("a", object), ("b", int)])
    assert full_of([("apple", 1), (None, 2)]).contains_many(objects).tolist() == [True, True]
    inner = np.array([((1, "x"), 2)], dtype=[("p", [("a", int), ("b", "U1")]), ("q", int)])
    assert full_of([((1, "x"), 2)]).contains_many(inner).tolist() == [True]
    # Masks of fields, and what stands for nothing.
    masked = np.ma.masked_array(memory, mask=[(0, 1, 0), (1, 1, 1), (0, 0, 0)])
    assert full_of([(1, None, "x"), rows[2]]).contains_many(masked).tolist() == [True, False, True]
    for bad in (memory[["a"]], np.zeros(2, [("a", "i4", (2,)), ("b", "i4")]), np.zeros(2, [("a", "c8"), ("b", "i4")])):
        with pytest.raises(tamis.KeyTypeError, match="expected"):
            f.update(bad)
    # Bytes without fields are the bytes.
    assert full_of([b"ab\0"]).contains_many(np.array([b"ab\0"], dtype="V3")).tolist() == [True]


def full_of(keys):
    f = tamis.Filter(1000, 1e-12)
    f.update(keys)
    return f


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="this numpy has no StringDType")
def test_strings_of_variable_length():
    words = ["", "short", "a word of more than fifteen bytes", "é" * 200, "z" * 70_000, "nul\0s"]
    f = full_of(words)
    for dtype in (np.dtypes.StringDType(), np.dtypes.StringDType(na_object=None), np.dtypes.StringDType(na_object=np.nan)):
        column = np.array(words, dtype=dtype)
        assert f.contains_many(column).tolist() == [True] * len(words)
        assert f.contains_many(column[::-2]).tolist() == [True] * 3
        assert f.contains_many(np.array(["other"], dtype=dtype)).tolist() == [False]
    holes = np.array(["short", None], dtype=np.dtypes.StringDType(na_object=None))
    assert f.contains_many(holes).tolist() == [True, False]
    many = np.array([f"key number {i}" for i in range(5000)], dtype=np.dtypes.StringDType())
    f = tamis.Filter(10_000, 1e-9)
    assert f.add_many(many, threads=2).all() and f.contains_many(many.tolist()) == [True] * 5000


def test_numpy_texts_beyond_ascii():
    words = ["", "a", "é", "日本", "x" * 40, "😀", "mixed é and 😀"]
    assert full_of(words).contains_many(np.array(words)).tolist() == [True] * 7
    assert full_of(words).contains_many(np.array(words).astype(">U40")).tolist() == [True] * 7
    with pytest.raises(tamis.KeyEncodingError, match="D800"):
        tamis.Filter(10).update(np.array(["a", "\ud800"]))


def test_a_pandas_column_of_objects_has_one_meaning():
    """That of its objects, whatever the others are."""
    import datetime as dt
    import uuid
    from decimal import Decimal

    values = ["a", b"b", 3, 4.5, ("t", 1), True, dt.date(2026, 1, 1), Decimal("1.0"), Decimal("1.00"), uuid.UUID(int=1)]
    f = full_of(values)
    assert f.contains_many(pd.Series([*values, None, float("nan"), pd.NaT, pd.NA])).tolist() == [True] * 10 + [False] * 4
    for value in values:
        assert f.contains_many(pd.Series([value], dtype=object)).tolist() == [True], value
        assert f.contains_many(pd.Series([value, None], dtype=object)).tolist() == [True, False], value
        assert f.contains_many(pd.Index([value], dtype=object, tupleize_cols=False)).tolist() == [True], value
        assert full_of([(value, 1)]).contains_many(pd.Series([(value, 1)])).tolist() == [True]
        if not isinstance(value, tuple):
            assert f.contains_many(pd.Series([value], dtype=object).astype("category")).tolist() == [True], value
    assert len(full_of(pd.Series([Decimal("1.0"), Decimal("1.00")]))) == 2
    assert full_of([("x", 1)]).contains_many(pd.MultiIndex.from_tuples([("x", 1), ("x", 2)])).tolist() == [True, False]


def test_integers_that_pandas_rounded_are_told():
    f = tamis.Filter(1000)
    with pytest.warns(UserWarning, match="2\\*\\*53.*Int64"):
        f.update(pd.Series([2**53 + 1, None]))
    with pytest.warns(UserWarning, match="rounded"):
        tamis.dedup(pd.DataFrame({"id": [-(2**60) - 1, None], "x": [1, 2]}), filter=f)
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f.update(pd.Series([2**52, None]))
        f.update(pd.Series([2**53 + 1, None], dtype="Int64"))
        f.update(pd.Series([1e300, None, float("inf")]))
        f.update(pd.Series([float("nan")]))
        f.update(pd.Series([], dtype=float))
    assert 2**53 + 1 in f


# Arrow that is wrong. Buffers are as long as the array says, as the interface
# has no other way to tell; everything else may be anything.


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


class Stream(ctypes.Structure):
    pass


pointer = ctypes.c_void_p
Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", pointer),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", pointer),
    ("dictionary", ctypes.POINTER(Schema)),
    ("release", pointer),
    ("private_data", pointer),
]
Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(pointer)),
    ("children", pointer),
    ("dictionary", ctypes.POINTER(Array)),
    ("release", pointer),
    ("private_data", pointer),
]
Stream._fields_ = [(name, pointer) for name in ("get_schema", "get_next", "get_last_error", "release", "private_data")]

RELEASE = ctypes.CFUNCTYPE(None, pointer)(lambda _: None)
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [pointer, ctypes.c_char_p, pointer]


def release():
    return ctypes.cast(RELEASE, pointer)


class Forged:
    """An object with the Arrow C data interface, made of whatever one likes."""

    def __init__(self, format, length=0, buffers=(), offset=0, nulls=0, dictionary=None, released=False):
        self.kept = [None if b is None else ctypes.create_string_buffer(bytes(b), max(len(b), 1)) for b in buffers]
        addresses = [None if b is None else ctypes.addressof(b) for b in self.kept]
        self.pointers = (pointer * max(len(buffers), 1))(*addresses)
        self.dictionary = dictionary
        self.schema = Schema(format=format, release=None if released else release())
        self.array = Array(
            length=length,
            offset=offset,
            null_count=nulls,
            n_buffers=len(buffers),
            buffers=self.pointers,
            release=None if released else release(),
        )
        if dictionary is not None:
            self.schema.dictionary = ctypes.pointer(dictionary.schema)
            self.array.dictionary = ctypes.pointer(dictionary.array)

    def __arrow_c_array__(self, requested_schema=None):
        return (
            new_capsule(ctypes.addressof(self.schema), b"arrow_schema", None),
            new_capsule(ctypes.addressof(self.array), b"arrow_array", None),
        )


def i32(*numbers):
    return np.array(numbers, dtype="i4").tobytes()


def i64(*numbers):
    return np.array(numbers, dtype="i8").tobytes()


def view(length, buffer=0, offset=0):
    return i32(length, 0, buffer, offset)


def self_containing():
    forged = Forged(b"i", 1, [None, i32(0)])
    forged.schema.dictionary = ctypes.pointer(forged.schema)
    forged.array.dictionary = ctypes.pointer(forged.array)
    return forged


WORDS = Forged(b"u", 2, [None, i32(0, 1, 2), b"ab"])
INVALID = {
    "released": lambda: Forged(b"u", 1, [None, i32(0, 1), b"a"], released=True),
    "no format": lambda: Forged(None, 1, [None, i32(0, 1), b"a"]),
    "no rows less than none": lambda: Forged(b"u", -1, [None, i32(0, 1), b"a"]),
    "negative offset": lambda: Forged(b"u", 1, [None, i32(0, 1), b"a"], offset=-1),
    "too many rows": lambda: Forged(b"l", 2**62, [None, i64(0)]),
    "rows that overflow": lambda: Forged(b"l", 2**62, [None, i64(0)], offset=2**62 + 1),
    "wide rows that overflow": lambda: Forged(b"w:9223372036854775807", 2, [None, b""]),
    "no buffers": lambda: Forged(b"u", 1, []),
    "no offsets": lambda: Forged(b"u", 1, [None, None, b"a"]),
    "no data": lambda: Forged(b"u", 1, [None, i32(0, 1), None]),
    "too few buffers": lambda: Forged(b"i", 1, [None]),
    "descending offsets": lambda: Forged(b"u", 2, [None, i32(0, 2, 1), b"ab"]),
    "negative offsets": lambda: Forged(b"u", 2, [None, i32(0, -1, 1), b"ab"]),
    "a negative end": lambda: Forged(b"u", 1, [None, i32(0, -1), b"ab"]),
    "large descending offsets": lambda: Forged(b"U", 2, [None, i64(0, 2, 1), b"ab"]),
    "a large negative end": lambda: Forged(b"Z", 1, [None, i64(0, -(2**63)), b"ab"]),
    "a view of no buffer": lambda: Forged(b"vu", 1, [None, view(20, 1), b"a" * 20, i64(20)]),
    "a view beyond its buffer": lambda: Forged(b"vu", 1, [None, view(20, 0, 1), b"a" * 20, i64(20)]),
    "a negative view": lambda: Forged(b"vz", 1, [None, view(-1), b"a" * 20, i64(20)]),
    "a view of less than nothing": lambda: Forged(b"vz", 1, [None, view(20), b"a" * 20, i64(-20)]),
    "views alone": lambda: Forged(b"vz", 1, [None, view(20)]),
    "an index beyond the dictionary": lambda: Forged(b"i", 1, [None, i32(2)], dictionary=WORDS),
    "a negative index": lambda: Forged(b"i", 1, [None, i32(-1)], dictionary=WORDS),
    "a dictionary without indices": lambda: Forged(b"u", 1, [None, i32(0, 1), b"a"], dictionary=WORDS),
    "a dictionary of itself": self_containing,
    "a damaged dictionary": lambda: Forged(
        b"i", 1, [None, i32(0)], dictionary=Forged(b"u", 2, [None, i32(0, 2, 1), b"ab"])
    ),
}


@pytest.mark.parametrize("name", INVALID)
@pytest.mark.parametrize("threads", [1, 3])
def test_invalid_arrow_is_an_exception(name, threads):
    f = tamis.Filter(1000, 1e-9)
    with pytest.raises(tamis.CorruptError, match="valid Arrow column"):
        f.add_many(INVALID[name](), threads=threads)
    assert f.add("still works")


@pytest.mark.parametrize("format", [b"", b"w:", b"w:0", b"w:-1", b"w:x", b"+l", b"+s", b"\xff", b"vx", b"tiM", b"td", b"tsx:", b"d:1", b"d:1,1,7", b"d:1,9999"])
def test_formats_that_are_no_keys(format):
    with pytest.raises(tamis.KeyTypeError, match="column of strings, bytes, numbers"):
        tamis.Filter(10).add_many(Forged(format, 1, [None, b"\0" * 64, b"\0" * 64]))


def test_rows_without_end():
    for column in (Forged(b"n", 2**55), Forged(b"l", 2**55 - 1, [None, i64(0)], dictionary=Forged(b"n", 2**55))):
        with pytest.raises(tamis.OutOfMemoryError):
            tamis.Filter(10).contains_many(column)


def test_arrow_that_is_unusual_and_right():
    f = full(["a", "b", b"\0\0", 7])
    assert list(f.contains_many(Forged(b"u", 0, [None, None, None]))) == []
    assert list(f.contains_many(Forged(b"u", 0, []))) == []
    assert list(f.contains_many(Forged(b"u", 2, [b"\2", i32(9, 9, 10), b"........." + b"b"], nulls=1))) == [False, True]
    # A null may have any bytes behind it.
    assert list(f.contains_many(Forged(b"i", 2, [b"\1", i32(1, 99)], nulls=-1, dictionary=WORDS))) == [True, False]
    # Not aligned.
    odd = Forged(b"l", 1, [None, b"\0" + i64(7)])
    odd.pointers[1] += 1
    assert list(f.contains_many(odd)) == [True]
    odd = Forged(b"u", 1, [None, b"\0" + i32(0, 1), b"a"])
    odd.pointers[1] += 1
    assert list(f.contains_many(odd)) == [True]


def test_a_capsule_is_used_once():
    class Again:
        def __init__(self, keys):
            self.capsules = keys.__arrow_c_array__()
            self.stream = pa.chunked_array([keys]).__arrow_c_stream__()

    class AgainArray(Again):
        def __arrow_c_array__(self, requested_schema=None):
            return self.capsules

    class AgainStream(Again):
        def __arrow_c_stream__(self, requested_schema=None):
            return self.stream

    for again in (AgainArray(pa.array(["a"])), AgainStream(pa.array(["a"]))):
        f = tamis.Filter(1000)
        assert list(f.add_many(again)) == [True]
        with pytest.raises(tamis.CorruptError, match="used already"):
            f.add_many(again)


def test_streams_without_functions():
    for missing in ("get_schema", "get_next"):
        get_schema = ctypes.CFUNCTYPE(ctypes.c_int, pointer, pointer)(
            lambda _, to: ctypes.memmove(to, ctypes.addressof(WORDS.schema), ctypes.sizeof(Schema)) and 0
        )
        stream = Stream(get_schema=ctypes.cast(get_schema, pointer), release=release())
        setattr(stream, missing, None)

        class Object:
            def __arrow_c_stream__(self, requested_schema=None):
                return new_capsule(ctypes.addressof(stream), b"arrow_array_stream", None)

        with pytest.raises(tamis.CorruptError, match=missing):
            tamis.Filter(10).add_many(Object())
