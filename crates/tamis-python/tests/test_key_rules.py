"""A filter remembers how its keys are made, and what it lives in is never destroyed."""

import decimal
import json
import os
import pickle
import stat
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tamis


def test_case_and_urls(command):
    f = tamis.Filter(1000, 1e-9, ignore_case=True, url=True)
    assert (f.ignore_case, f.url) == (True, True)
    assert f.info()["ignore_case"] and f.info()["url"]
    assert f.add("HTTP://Example.org:80/A#top")
    for same in ("http://example.org/a", b"http://EXAMPLE.org/A"):
        assert same in f
        assert not f.add(same)
        assert list(f.contains_many([same, "other"])) == [True, False]
    f.save("f.tamis")
    assert command("check", "f.tamis", input=b"http://example.ORG/A\nno\n") == b"http://example.ORG/A\n"
    for again in (tamis.Filter.open("f.tamis"), tamis.Filter.load("f.tamis"), tamis.Filter.from_bytes(bytes(f))):
        assert "http://example.org/a#b" in again and again.url
    with pytest.raises(tamis.UnlikeError, match="rule for keys"):
        f | tamis.Filter(1000, 1e-9)
    plain = tamis.Filter(1000)
    assert (plain.ignore_case, plain.url) == (False, False)
    assert "KEY" in tamis.build(["key"], ignore_case=True)


def test_numbers_have_no_case():
    f = tamis.Filter(1000, 1e-9, ignore_case=True)
    # 65 and 97 are the bytes of A and a.
    assert f.add(65)
    assert 97 not in f
    assert list(f.contains_many([65, 97])) == [True, False]


def test_files_of_the_command(command):
    command("build", "-i", "list.tamis", input=b"Key\n")
    f = tamis.Filter.open("list.tamis")
    assert f.ignore_case and "KEY" in f


PAIRS = b'name,day\nAda,1\n"Bob, B.",2\nAda,\n'


@pytest.mark.parametrize("how", [[], ["-i"]], ids=["exact", "ignore case"])
def test_filters_of_several_columns_come_from_the_command_and_go_there(command, how):
    command("build", *how, "-k", "csv:name,day", "theirs.tamis", input=PAIRS)
    ours = tamis.Filter.create("ours.tamis", 1000, 1e-9, values=2, ignore_case=bool(how))
    ours.update([("Ada", "1"), ("Bob, B.", b"2"), ("Ada", "")])
    ours.close()
    built = tamis.build([("Ada", "1"), ("Bob, B.", "2"), ("Ada", "")], 1e-9, values=2, ignore_case=bool(how))
    built.save("built.tamis")
    for path in ("theirs.tamis", "ours.tamis", "built.tamis"):
        for f in (tamis.Filter.open(path), tamis.Filter.load(path), tamis.Filter.from_bytes(open(path, "rb").read())):
            assert f.contains_many([("Ada", "1"), ("Bob, B.", "2"), ("Ada", ""), ("Bob", "2")]) == [True] * 3 + [False]
            assert ("Ada", b"1") in f and ("Ada", 1) not in f and f.info()["values"] == 2
            assert (("ADA", "1") in f) == bool(how)
            assert f.contains_many(iter([("Ada", "1")])) == [True] and f.hash(("Ada", "1")) in f
        asked = command("check", "-k", "csv:name,day", path, input=PAIRS + b"Ada,2\n")
        assert asked == PAIRS


def test_keys_of_another_number_of_values_are_refused():
    """The filter would deny all it holds."""
    f = tamis.Filter(1000, 1e-9, values=2)
    f.add(("a", "b"))
    columns = {"a": ["a", "x"], "b": ["b", None]}
    for wrong in ("a", b"a", 1, 1.5, True, ("a", "b", "c"), (("a", "b"), "c", "d"), np.str_("a"), tamis.Json(1)):
        for use in (f.add, f.__contains__, f.hash, f.explain):
            with pytest.raises(tamis.KeyTypeError, match="key: expected a tuple of 2 values"):
                use(wrong)
        for many in ([wrong], iter([("a", "b"), wrong])):
            with pytest.raises(tamis.KeyTypeError, match="key: expected a tuple of 2 values"):
                f.contains_many(many)
    for column in (pa.array(["a"]), np.array(["a"]), np.array([1]), pl.Series(["a"]), pa.array(["a"]).dictionary_encode()):
        for use in (f.contains_many, f.update):
            with pytest.raises(tamis.KeyTypeError, match="keys: expected 2 values in a row.*got 1"):
                use(column)
    with pytest.raises(tamis.KeyTypeError, match="expected a tuple of 2 values"):
        f.contains_many(pd.Series(["a"], dtype=object))
    with pytest.raises(tamis.KeyTypeError, match="keys: expected 2 values in a row.*got 3"):
        tamis.dedup(pd.DataFrame({**columns, "c": [1, 2]}), filter=f)
    for make in (pd.DataFrame, pl.DataFrame, pa.table):
        with pytest.raises(tamis.KeyTypeError, match="expected"):
            tamis.dedup(make(columns), "a", filter=f)
    assert len(f) == 1
    # Rows, tuples in columns, and tuples in tuples are keys of two values.
    assert f.contains_many(pd.Series([("a", "b"), None], dtype=object)).tolist() == [True, False]
    assert f.contains_many(np.array([("a", "b"), ("x", "y")], dtype=[("a", "U1"), ("b", "U1")])).tolist() == [True, False]
    assert f.add((("a", "b"), "c")) and (("a", "b"), "c") in f
    for make in (pd.DataFrame, pl.DataFrame, pa.table):
        g = tamis.Filter(1000, 1e-9, values=2)
        g.add(("a", "b"))
        assert len(tamis.dedup(make(columns), filter=g)) == 1 and ("x", None) in g
    objects = pd.DataFrame({"a": ["a", "q"], "b": ["b", "r"]}, dtype=object)
    assert len(tamis.dedup(objects, filter=f)) == 1 and ("q", "r") in f
    # Others take tuples of any number.
    any_number = tamis.Filter(1000, 1e-9)
    any_number.update(["a", ("a", "b"), ("a", "b", "c")])
    assert len(any_number) == 3 and any_number.info()["values"] == 1
    with pytest.raises(tamis.UnlikeError, match="rule for keys"):
        any_number | f


VALUES = """true false null 0 -0 0.0 1 1.0 10e-1 -3 3.25e10 1e400 1E+2 100 0.1 -1.5e-7 123456789012345678901234567890
    0.1000000000000000055511151231257827 5e-324 1.7976931348623157e308 "" "text" "É" [] {} [1,2.0,[true]] {"b":1,"a":[null]}
    {"a":"\\"\\\\\\n\\u0001\\u007f\\u00e9\\ud83d\\ude00"} {"é":{"z":1e1},"z":"É"} {"A":"B"} [[],{}]""".split()


@pytest.mark.parametrize("how", [[], ["-i"]], ids=["exact", "ignore case"])
def test_values_of_json_are_those_that_the_command_read(command, how):
    records = [json.loads(value, parse_float=decimal.Decimal) for value in VALUES]
    command("build", *how, "-p", "1e-9", "-k", "jsonl:/v", "v.tamis", input="".join(f'{{"v":{value}}}\n' for value in VALUES).encode())
    theirs = tamis.Filter.open("v.tamis")
    assert [value for value, record in zip(VALUES, records) if tamis.Json(record) not in theirs] == []
    assert tamis.Json(2) not in theirs and tamis.Json([1, 2]) not in theirs and tamis.Json("true") not in theirs
    assert tamis.Json(3.25e10) in theirs and tamis.Json((1, 2.0, [True])) in theirs
    assert (tamis.Json({"a": "b"}) in theirs) is False, "case counts in what is no text"
    ours = tamis.Filter(1000, 1e-9)
    ours.update(tamis.Json(record) for record in records)
    assert len(ours) == len(theirs) if not how else True
    # Several pointers, of which a record may lack some.
    lines = b'{"id":3,"name":"Ada"}\n{"name":"Bob"}\n{"id":null,"name":"Eve"}\n'
    command("build", *how, "-p", "1e-9", "-k", "jsonl:/id,/name", "two.tamis", input=lines)
    two = tamis.Filter.open("two.tamis")
    for key in ((3, "Ada"), (None, "Eve")):
        assert (tamis.Json(key[0]), key[1]) in two and (tamis.Json(key[0]), tamis.Json(key[1])) in two and key not in two
    assert (tamis.Json(), "Bob") in two and (tamis.Json(None), "Bob") not in two


def test_what_is_no_json():
    cycle = []
    cycle.append(cycle)
    for wrong in (float("nan"), float("inf"), decimal.Decimal("nan"), {1: 2}, {1, 2}, b"bytes", object(), [object()], cycle):
        with pytest.raises(tamis.KeyTypeError, match="key: expected"):
            tamis.Json(wrong)
    with pytest.raises(tamis.KeyEncodingError):
        tamis.Json("\ud800")
    with pytest.raises(tamis.ArgumentTypeError, match="value: expected one"):
        tamis.Json(1, 2)
    with pytest.raises(tamis.KeyTypeError, match="only in a tuple"):
        tamis.Filter(10).add(tamis.Json())
    assert repr(tamis.Json(1.5)) == "tamis.Json(1.5)" and repr(tamis.Json()) == "tamis.Json()"


def test_only_regular_files_are_opened_and_replaced():
    os.mkfifo("pipe")
    f = tamis.Filter(100)
    for call in (
        lambda: f.save("pipe"),
        lambda: tamis.Filter.create("pipe", 100, overwrite=True),
        lambda: tamis.Filter.open("pipe"),
        lambda: tamis.Filter.open("pipe", "r+"),
        lambda: tamis.Filter.load("pipe"),
    ):
        with pytest.raises(OSError, match="regular file"):
            call()
    assert stat.S_ISFIFO(os.stat("pipe").st_mode)


def test_a_damaged_file_is_not_opened_for_adding():
    tamis.Filter(10_000).save("f.tamis")
    data = bytearray(open("f.tamis", "rb").read())
    data[1000] ^= 1
    open("f.tamis", "wb").write(data)
    with pytest.raises(tamis.CorruptError, match="checksum"):
        tamis.Filter.open("f.tamis", "r+")
    with pytest.raises(tamis.CorruptError, match="checksum"):
        tamis.Filter.open("f.tamis", verify=True)
    tamis.Filter.open("f.tamis").close()
    assert open("f.tamis", "rb").read() == data
    # A small file that was written in place is sealed when it is closed.
    with tamis.Filter.create("g.tamis", 1000) as g:
        g.add("key")
    assert "key" in tamis.Filter.open("g.tamis", verify=True)


def test_secrets():
    f = tamis.Filter(100, keyed=True)
    with pytest.warns(UserWarning, match="secret"):
        data = pickle.dumps(f)
    assert pickle.loads(data) == f
    f.save("f.tamis")
    assert stat.S_IMODE(os.stat("f.tamis").st_mode) == 0o600
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pickle.dumps(tamis.Filter(100))


def test_keys_of_several_columns_in_redis(command, server):
    place = f"redis://{server}/0/pairs"
    command("create", place, "--capacity", "1000", "-p", "1e-9", "--values", "2")
    with tamis.connect(place) as pairs:
        assert pairs.add(("Ada", "1")) and pairs.contains_many([("Ada", "1"), ("Ada", "2")]) == [True, False]
        for use in (pairs.add, pairs.__contains__, lambda key: pairs.add_many([key])):
            with pytest.raises(tamis.KeyTypeError, match="key: expected a tuple of 2 values"):
                use("Ada")
        assert len(tamis.dedup(pd.DataFrame({"name": ["Ada", "Bob"], "day": ["1", "2"]}), filter=pairs)) == 1
        assert command("check", "-k", "csv:1,2", "--no-header", place, input=b"Ada,1\nBob,2\nBob,1\n") == b"Ada,1\nBob,2\n"
        pairs.delete()
