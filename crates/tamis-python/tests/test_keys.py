"""Floats, tuples, and keys that a function makes: exactly the bytes that docs/python.md says."""

import hashlib
import itertools
import math
import pickle
import struct

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tamis


def exact():
    return tamis.Filter(10_000, 1e-12)


def bytes_of(value):
    """The encoding, written a second time."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    if value is None:
        return b"\xffn"
    if isinstance(value, tuple):
        parts = [bytes_of(part) for part in value]
        return b"".join(struct.pack("<Q", len(part)) + part for part in parts)
    if isinstance(value, float) and not (value.is_integer() and -(2**63) <= value < 2**64):
        return b"\xfff" + struct.pack("<d", value)
    return (int(value) % 2**64).to_bytes(8, "little")


FLOATS = [0.5, -0.5, 1e-300, 5e-324, 1.1, math.pi, math.inf, -math.inf, 2.0**64, -(2.0**63) * 2, 1e300, -1.5]
WHOLE = [0.0, -0.0, 1.0, -1.0, 2.0**53, 2.0**63, -(2.0**63), 2.0**64 - 2048]
TUPLES = [
    ("a", "b"),
    ("ab", ""),
    ("", "ab"),
    ("a", "b", ""),
    (1, 2),
    (1, 2.5),
    (None, None),
    (None, "a"),
    ("a", None),
    (("a", "b"), "c"),
    ("a", ("b", "c")),
    (b"\xffn", "x"),
    tuple("abcdefgh"),
]


@pytest.mark.parametrize("value", [*FLOATS, *WHOLE, *TUPLES], ids=repr)
def test_the_bytes_are_those_said(value):
    f = exact()
    assert f.add(value) and bytes_of(value) in f and value in f
    g = exact()
    assert g.add(bytes_of(value)) and value in g
    assert g.contains_many([value]) == [True] and len(g) == 1


def test_keys_are_apart():
    keys = [*FLOATS, *TUPLES, *range(-5, 300), "1", "1.5", "0.5", "", b"", "a", "ab", "(1, 2)", 2**64 - 5]
    keys = [key for key in keys if key not in (-5, b"")]
    encoded = {bytes_of(key) for key in keys}
    assert len(encoded) == len(keys)
    f = exact()
    for key in keys:
        assert f.add(key), key


def test_tuples_are_prefix_free():
    parts = ["", "a", b"\0" * 8, 0, 1, None, 0.5, ("", ""), "\1\0\0\0\0\0\0\0a"]
    tuples = [t for n in (2, 3) for t in itertools.product(parts, repeat=n)]
    # The one pair of equal values among the parts is equal in a tuple, too.
    distinct = {tuple(b"\0" * 8 if part == 0 and part is not None else part for part in t) for t in tuples}
    assert len({bytes_of(t) for t in tuples}) == len(distinct)


def test_a_float_that_is_an_integer_is_that_integer():
    f = exact()
    for whole in WHOLE:
        f.add(whole)
        assert int(whole) in f
    f.update([258, -7])
    assert 258.0 in f and -7.0 in f and np.float64(258) in f and np.float32(258) in f and 258.5 not in f
    assert f.contains_many(pd.Series([258, None, -7])).tolist() == [True, False, True], "ints that became floats"


@pytest.mark.parametrize("make", [np.array, pd.Series, pa.array, pl.Series], ids=lambda m: m.__module__)
def test_columns_of_floats(make):
    values = [1.5, math.nan, 2.0, -0.0, math.inf, 1e300]
    f = exact()
    assert list(map(bool, f.add_many(make(values)))) == [True, False, True, True, True, True]
    assert len(f) == 5 and all(value in f for value in values if value == value)
    assert [bool(x) for x in f.contains_many(make([0.0, 1.25, math.nan]))] == [True, False, False]


def test_floats_of_other_widths():
    f = exact()
    f.update(np.array([0.1, 2.5], dtype="f4"))
    assert float(np.float32(0.1)) in f and 0.1 not in f and 2.5 in f and np.float32(0.1) in f and np.float16(2.5) in f
    f.update(np.array([0.1], dtype=">f8"), pa.array([7.25], pa.float32()), np.array([1.0, 3.5, 9.0])[::2])
    assert 0.1 in f and 7.25 in f and 1 in f and 9 in f and 3.5 not in f
    masked = np.ma.array([0.25, 0.75], mask=[True, False])
    assert f.add_many(masked).tolist() == [False, True]
    dictionary = pa.array([0.125, None, math.nan, 0.125]).dictionary_encode()
    assert f.add_many(dictionary).to_pylist() == [True, False, False, False]


@pytest.mark.parametrize("bad", [math.nan, (), ("a",), ("a", object()), ("a", math.nan), ("a", ["b"]), ("a", ("b",))], ids=repr)
def test_what_is_no_key(bad):
    f = exact()
    for ask in (f.add, f.__contains__, lambda key: f.update([key]), lambda key: f.contains_many((key,))):
        with pytest.raises(tamis.KeyTypeError):
            ask(bad)
    with pytest.raises(tamis.KeyRangeError):
        f.add(("a", 2**64))
    with pytest.raises(tamis.KeyEncodingError):
        f.add(("a", "\ud800"))
    assert len(f) == 0


def test_tuples_of_tuples_end():
    deep = ("a", "b")
    for _ in range(100_000):
        deep = (deep, "b")
    with pytest.raises(tamis.KeyTypeError, match="deeper"):
        exact().add(deep)
    fine = ("a", "b")
    for _ in range(60):
        fine = (fine, "b")
    assert exact().add(fine)
    while isinstance(deep, tuple):  # taken apart: Python's own way is recursive
        deep = deep[0]


def test_rules_apply_to_the_text_of_a_tuple():
    f = tamis.Filter(1000, 1e-9, ignore_case=True)
    f.add(("Ada", 1, b"X"))
    assert ("ADA", 1, b"x") in f and ("ADA", 2, b"x") not in f
    g = tamis.Filter(1000, 1e-9, url=True)
    g.add(("HTTP://Example.org:80/a#top", "x"))
    assert ("http://example.org/a", "x") in g


def digest(key):
    """As rbloom's documentation has it: 128 bits, signed."""
    return int.from_bytes(hashlib.sha256(pickle.dumps(key)).digest()[:16], "big", signed=True)


def test_hash_func():
    f = tamis.Filter(1000, 1e-9, hash_func=digest)
    things = [{"a": 1}, [1, 2], None, object, frozenset([3]), "text", 1.5, True]
    assert f.add_many(things) == [True] * len(things)
    assert all(thing in f for thing in things) and {"a": 2} not in f and f.hash_func is digest
    assert f.contains_many(iter([[1, 2], [1]])) == [True, False]
    # What is stored is the key that the function made.
    plain = tamis.Filter.from_bytes(bytes(f))
    number = digest([1, 2])
    assert number.to_bytes(16, "little", signed=True) in plain and plain.hash_func is None
    assert [1, 2] in tamis.Filter.from_bytes(bytes(f), hash_func=digest)
    again = pickle.loads(pickle.dumps(f))
    assert again.hash_func is digest and [1, 2] in again and again == f
    for made in (f.copy(), f | f.copy(), f.union([{"new": 1}])):
        assert made.hash_func is digest and [1, 2] in made
    f.save("f.tamis")
    with tamis.Filter.open("f.tamis", "r+", hash_func=digest) as opened:
        assert [1, 2] in opened and opened.add({"b": 1})
    online = tamis.Filter(1000, delete=True, hash_func=repr)
    assert online.add({1: 2}) and online.count({1: 2}) == 1 and online.remove({1: 2}) and {1: 2} not in online


def test_hash_func_is_asked_and_believed():
    small = tamis.Filter(1000, 1e-9, hash_func=lambda key: key)
    small.update([1, "a", 2**63, -(2**63), 2**100])
    plain = tamis.Filter.from_bytes(bytes(small))
    assert 1 in plain and "a" in plain and 2**63 in plain and -(2**63) in plain
    assert (2**100).to_bytes(16, "little") in plain
    # Digests are read as unsigned numbers or as signed ones.
    small.update([2**127, 2**128 - 5, -(2**127)])
    assert (2**128 - 5).to_bytes(16, "little") in small and -5 not in small
    plain = tamis.Filter.from_bytes(bytes(small))
    assert (2**127).to_bytes(16, "little") in plain and (2**128 - 5).to_bytes(16, "little") in plain
    for beyond in (2**128, -(2**127) - 1):
        with pytest.raises(tamis.KeyRangeError, match="hash_func: expected an int from -2.*127 to 2.*128-1"):
            small.add(beyond)
    unsigned = tamis.Filter(1000, 1e-9, hash_func=lambda key: int.from_bytes(hashlib.md5(key).digest(), "big"))
    assert all(unsigned.add(b"%d" % i) for i in range(100)) and all(b"%d" % i in unsigned for i in range(100))
    with pytest.raises(tamis.KeyTypeError):
        small.add([])
    with pytest.raises(ZeroDivisionError):
        tamis.Filter(10, hash_func=lambda key: 1 / 0).add("x")
    for wrong in ("repr", 3, ()):
        with pytest.raises(tamis.ParameterError, match="hash_func"):
            tamis.Filter(10, hash_func=wrong)
        with pytest.raises(tamis.ParameterError, match="hash_func"):
            tamis.Filter.create("never.tamis", 10, hash_func=wrong)
    with pytest.raises(FileNotFoundError):
        open("never.tamis")
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(small)
    other = tamis.Filter(1000, 1e-9, hash_func=repr)
    assert small != other
    for combine in (small.union, small.intersection, small.issubset, small.__or__, small.__ior__):
        with pytest.raises(tamis.UnlikeError, match="hash_func"):
            combine(other)


def test_hash_func_of_columns_sees_their_values():
    f = tamis.Filter(1000, 1e-9, hash_func=repr)
    for column in (np.array(["a"]), pd.Series(["b"]), pa.array(["c"]), pl.Series(["d"])):
        f.update(column)
    assert all(key in f for key in "bcd")
    assert isinstance(f.isin(pd.Series(["b", "x"], name="n")), pd.Series)
    assert f.isin(pa.array(["c", "x"])).to_pylist() == [True, False]
    with pytest.raises(tamis.KeyTypeError):
        f.update("one")
