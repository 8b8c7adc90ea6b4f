"""A filter remembers how its keys are made, and what it lives in is never destroyed."""

import os
import pickle
import stat
import warnings

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
    command("build", "--csv", "1,2", "--no-header", "joined.tamis", input=b"a,b\n")
    for open in (tamis.Filter.open, tamis.Filter.load):
        with pytest.raises(tamis.UnableError, match="2 values joined"):
            open("joined.tamis")


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
