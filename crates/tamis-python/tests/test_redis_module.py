"""`tamis.connect` to filters that a module of the server keeps. TAMIS_MODULE names the module; `-m "not module"` leaves
these out."""

import os

import numpy
import pandas
import pyarrow
import pytest
from conftest import redis_server

import tamis

pytestmark = pytest.mark.module


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The address of a server with the module."""
    module = os.environ.get("TAMIS_MODULE")
    assert module, "TAMIS_MODULE is not set: it names libtamis_module.so (crates/tamis-module)"
    with redis_server(tmp_path_factory.mktemp("redis"), "--loadmodule", module) as address:
        yield address


def test_it_is_a_filter(server, tmp_path):
    with tamis.connect(f"redis://{server}/seen", 100, 0.001, module=True) as seen:
        assert seen.add("key") and not seen.add(b"key") and not seen.add(bytearray(b"key"))
        assert "key" in seen and "other" not in seen
        keys = [f"key{i}" for i in range(5000)]
        assert sum(seen.add_many(keys)) > 4980 and not any(seen.add_many(keys))
        assert all(seen.contains_many(keys))
        info = seen.info()
        assert info["module"] and info["hash"] is None and info["kind"] == seen.kind == "growing"
        assert info["keys_counted"] and 4980 < info["keys"] <= 5001
        assert seen.p == 0.001 and seen.capacity >= 5000 and seen.nbytes > 0
        # The same answers of a copy in memory, and in a file.
        copy = seen.copy()
        asked = keys + [f"absent{i}" for i in range(20_000)]
        assert copy.contains_many(asked) == seen.contains_many(asked)
        seen.save(tmp_path / "seen.tamis")
        assert tamis.Filter.open(tmp_path / "seen.tamis").contains_many(asked) == seen.contains_many(asked)
        # Whoever connects finds it where it is.
        with tamis.connect(f"redis://{server}/seen") as same:
            assert same.info()["module"] and "key7" in same
        seen.expire(100)
        assert 0 < seen.info()["seconds_to_live"] <= 100
        seen.expire(None)
        seen.clear()
        assert "key" not in seen
        with pytest.raises(tamis.UnableError):
            seen.remove("key")
        seen.delete()
    with pytest.raises(tamis.NotFoundError):
        tamis.connect(f"redis://{server}/seen")


def test_every_sort_of_keys(server):
    """Keys are the bytes that they are in a filter of our own."""
    with tamis.connect(f"redis://{server}/sorts", 10_000, 0.0001, module=True) as seen:
        for key in ["text", b"bytes", 7, -1, 2**63, 1.5, True, numpy.int32(12), memoryview(b"view")]:
            assert seen.add(key) and key in seen and key in seen.copy()
        for key in [None, 2**64, [1]]:
            with pytest.raises(tamis.TamisError):
                seen.add(key)
        numbers = list(range(100, 600))
        new = seen.add_many(numpy.array(numbers, dtype="uint16"))
        assert isinstance(new, numpy.ndarray) and new.sum() > 495
        assert all(seen.contains_many(numbers)) and all(seen.copy().contains_many(numbers))
        arrow = pyarrow.array(["a", None, "b"])
        assert seen.add_many(arrow).to_pylist() == [True, False, True]
        assert seen.contains_many(arrow).to_pylist() == [True, False, True]
        assert list(seen.contains_many(pandas.Series(["a", None, "c"]))) == [True, False, False]
        seen.update(f"made {i}" for i in range(10))
        assert all(seen.contains_many([f"made {i}" for i in range(10)]))
        # Keys before one that is none are in, as in a loop.
        with pytest.raises(TypeError):
            seen.add_many(["before", None, "after"])
        assert "before" in seen and "after" not in seen
        seen.delete()


def test_keys_are_counted_and_removed(server):
    with tamis.connect(f"redis://{server}/online", 10_000, 0.001, delete=True, module=True) as online:
        assert online.kind == "cuckoo"
        assert online.add("ada") and not online.add("ada") and online.count("ada") == 2
        assert online.remove("ada") and "ada" in online and online.remove("ada")
        assert "ada" not in online and not online.remove("ada")
        online.delete()


def test_what_a_module_does_not_take(server):
    at = f"redis://{server}/new"
    for options in [{"keyed": True}, {"seed": 7}, {"kind": "blocked"}, {"url": True}, {"ignore_case": True}]:
        with pytest.raises(tamis.TamisError):
            tamis.connect(at, 100, module=True, **options)
    with pytest.raises(ValueError):
        tamis.connect(at, module=True)
    with pytest.raises(tamis.NotFoundError):
        tamis.connect(at)
