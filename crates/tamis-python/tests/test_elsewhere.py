"""Filters and keys in file objects, at addresses, in shared memory; and hashes that many filters take."""

import bz2
import gzip
import io
import lzma
import pathlib
import sys
from multiprocessing.shared_memory import SharedMemory

import pytest

import tamis


def full(keys=("apple", "pear"), **options):
    f = tamis.Filter(1000, 1e-9, **options)
    f.update(keys)
    return f


class Slow(io.BytesIO):
    """Takes a few bytes at a time, as sockets and raw files may."""

    def write(self, data):
        return super().write(bytes(data[:100]))

    def read(self, size=-1):
        return super().read(min(size, 77) if size >= 0 else 77)


@pytest.mark.parametrize("kind", [io.BytesIO, Slow])
def test_file_objects(kind):
    f, file = full(), kind()
    f.save(file)
    assert file.getvalue() == bytes(f) and not file.closed
    file.seek(0)
    assert tamis.Filter.load(file) == f
    with open("f.tamis", "wb") as real:
        f.save(real)
    assert tamis.Filter.load("f.tamis") == f
    with pytest.raises(tamis.ArgumentTypeError, match="path: expected a file of bytes"):
        f.save(io.StringIO())
    with pytest.raises(tamis.ArgumentTypeError, match="path: expected a file of bytes"):
        tamis.Filter.load(io.StringIO("text"))
    with pytest.raises(tamis.CorruptError):
        tamis.Filter.load(io.BytesIO(bytes(f)[:-1]))
    with pytest.raises(tamis.IoError), open("f.tamis", "rb") as real:
        f.save(real)


def test_addresses():
    pytest.importorskip("fsspec")
    f = full(key=bytes(16))
    f.save("memory://folder/f.tamis")
    assert tamis.Filter.load("memory://folder/f.tamis", key=bytes(16)) == f
    assert list(tamis.lines("memory://folder/f.tamis"))
    with pytest.raises(tamis.NotFoundError):
        tamis.Filter.load("memory://nowhere.tamis")
    with pytest.raises(tamis.ParameterError, match="path: expected an address"):
        f.save("no-such-protocol://x")


def test_addresses_without_fsspec(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(tamis.ParameterError, match="fsspec"):
        full().save("memory://x")


def test_memoryview_and_shared_memory():
    f = full()
    view = memoryview(f)
    assert bytes(view) == bytes(f) and view.readonly
    f.add("later")
    assert bytes(view) != bytes(f), "it is as it was"
    data = memoryview(f)
    memory = SharedMemory(create=True, size=len(data))
    try:
        memory.buf[: len(data)] = data
        there = tamis.Filter.from_buffer(memory.buf[: len(data)])
        assert there == f and "later" in there and there.contains_many(["apple", "x"]) == [True, False]
        assert there.copy().add("mine") and len(there) == 3 and there.path is None
        for change in (lambda: there.add("x"), lambda: there.update(["x"]), there.clear):
            with pytest.raises(tamis.ReadOnlyError):
                change()
        with pytest.raises(BufferError):
            memory.close()
        there.close()
        with pytest.raises(tamis.ClosedError):
            "apple" in there
    finally:
        memory.close()
        memory.unlink()
    for damaged in (b"", b"x" * 4096, bytes(f)[:-8]):
        with pytest.raises(tamis.CorruptError):
            tamis.Filter.from_buffer(damaged)
    for wrong in (5, "text", [1, 2]):
        for make in (tamis.Filter.from_buffer, tamis.Filter.from_bytes):
            with pytest.raises(tamis.ArgumentTypeError, match="data: expected bytes"):
                make(wrong)


def test_one_hash_for_many_filters():
    days = [full(), full(["pear"]), tamis.Filter(50_000, 0.1, kind="bloom"), tamis.Filter(100, delete=True)]
    hash = days[0].hash("apple")
    assert [hash in day for day in days] == [True, False, False, False]
    assert [day.add(hash) for day in days] == [False, True, True, True]
    assert all("apple" in day for day in days)
    assert days[1].contains_many([hash, "pear", days[0].hash("x")]) == [True, True, False]
    assert days[3].count(hash) == 1 and days[3].remove(hash) and "apple" not in days[3]
    assert hash == days[2].hash("apple") != days[2].hash("pear") and len({hash, days[1].hash(b"apple")}) == 1
    assert "Hash" in repr(hash) and days[0].hash(hash) == hash
    for other in ({"seed": 1}, {"ignore_case": True}, {"url": True}, {"key": bytes(16)}, {"keyed": True}):
        f = full(**other)
        for use in (f.add, f.__contains__, f.hash):
            with pytest.raises(tamis.UnlikeError, match="hashes as this one does"):
                use(hash)
        assert f.hash("apple") in f and f.hash("apple") != hash
    made = tamis.Filter(1000, hash_func=str.upper)
    made.add("apple")
    assert made.hash("apple") in made and full(["APPLE"]).hash("APPLE") in made
    with pytest.raises(tamis.KeyTypeError):
        days[0].add((hash, 1))


PACKED = {"plain": bytes, "gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress}


@pytest.mark.parametrize("pack", PACKED.values(), ids=PACKED)
def test_lines_are_those_of_the_command(pack, command, tmp_path):
    text = b"apple\npear\r\n\n caf\xe9 \nlone\rreturn\nx\r\r\n" + b"long" * 50_000 + b"\nlast"
    path = tmp_path / "keys"
    path.write_bytes(pack(text))
    found = list(tamis.lines(path))
    assert found == [b"apple", b"pear", b"", b" caf\xe9 ", b"lone\rreturn", b"x\r", b"long" * 50_000, b"last"]
    assert list(tamis.lines(str(path))) == found == list(tamis.lines(io.BytesIO(pack(text))))
    f = tamis.Filter(1000, 1e-9)
    f.update(tamis.lines(path))
    f.save(tmp_path / "f.tamis")
    assert command("check", "--count", tmp_path / "f.tamis", path).split()[0] == b"%d" % len(found)


def test_lines_that_end_early():
    packed = gzip.compress(b"line\n" * 1000)
    with pytest.raises(tamis.IoError):
        list(tamis.lines(io.BytesIO(packed[: len(packed) // 2])))
    with pytest.raises(tamis.NotFoundError):
        list(tamis.lines("nowhere"))
    with pytest.raises(tamis.ArgumentTypeError, match="path"):
        list(tamis.lines(5))
    # Text has been decoded already, and its line ends may be others.
    pathlib.Path("keys.txt").write_text("a\nb\n")
    with open("keys.txt") as file:
        for text in (io.StringIO("a"), io.StringIO(), file):
            with pytest.raises(tamis.ArgumentTypeError, match='path: expected a path, or a file of bytes, open with "rb"'):
                list(tamis.lines(text))
        assert list(tamis.lines(file.buffer)) == [b"a", b"b"]

    class OnlyRead:
        def read(self, size=-1):
            return b""

    with pytest.raises(tamis.ArgumentTypeError, match="a file of bytes.*got .*OnlyRead"):
        list(tamis.lines(OnlyRead()))
    marked = io.BytesIO(b"\xef\xbb\xbfa\n\xef\xbb\xbfb")
    assert list(tamis.lines(marked)) == [b"a", b"\xef\xbb\xbfb"], "a mark is one at the start alone"
    assert list(tamis.lines(io.BytesIO())) == [] and list(tamis.lines(io.BytesIO(b"\n"))) == [b""]


# What is wrong with an argument is said under its name, and is a TamisError.

WRONG = [
    (lambda: tamis.Filter("10"), "n"),
    (lambda: tamis.Filter(-1), "n"),
    (lambda: tamis.Filter(2**64), "n"),
    (lambda: tamis.Filter(10.5), "n"),
    (lambda: tamis.Filter(10, "x"), "p"),
    (lambda: tamis.Filter(10, size=-1), "size"),
    (lambda: tamis.Filter(10, kind=5), "kind"),
    (lambda: tamis.Filter(10, delete="yes"), "delete"),
    (lambda: tamis.Filter(10, seed=1.5), "seed"),
    (lambda: tamis.Filter(10, key_file=5), "key_file"),
    (lambda: tamis.Filter(10, values=0), "values"),
    (lambda: tamis.Filter(10, values=256), "values"),
    (lambda: tamis.Filter(10, values="2"), "values"),
    (lambda: tamis.Filter(10).update(["a"], threads=-1), "threads"),
    (lambda: tamis.Filter(10).add_many(["a"], threads="2"), "threads"),
    (lambda: tamis.Filter(10).contains_many(["a"], threads=-1), "threads"),
    (lambda: tamis.Filter(10).isin(["a"], threads=-1), "threads"),
    (lambda: tamis.Filter(10).save(5), "path"),
    (lambda: tamis.Filter.load(None), "path"),
    (lambda: tamis.Filter.open(5), "path"),
    (lambda: tamis.Filter.create(5, 10), "path"),
    (lambda: tamis.Filter.create("x.tamis", "10"), "n"),
    (lambda: tamis.Filter.from_base64(5), "text"),
    (lambda: tamis.Filter(10).issubset(5), "other"),
    (lambda: tamis.build(["a"], "x"), "p"),
    (lambda: tamis.build(["a"], threads=-1), "threads"),
    (lambda: tamis.build(["a"], memory=-1), "memory"),
    (lambda: tamis.plan("x"), "n"),
    (lambda: tamis.plan(10, 0.1).p_at(-1), "n"),
    (lambda: tamis.connect(5), "location"),
    (lambda: tamis.connect("redis://127.0.0.1:1/x", 10, timeout="x"), "timeout"),
    (lambda: tamis.open_foreign(5), "path"),
    (lambda: tamis.Guard(5), "filter"),
    (lambda: tamis.Guard(tamis.Filter(10), remember=-1), "remember"),
]


@pytest.mark.parametrize("call,name", WRONG, ids=[f"{i}-{name}" for i, (_, name) in enumerate(WRONG)])
def test_a_wrong_argument_is_named(call, name):
    with pytest.raises(tamis.TamisError) as raised:
        call()
    text = str(raised.value)
    assert text.startswith(f"{name}: expected") and "got" in text, text
    assert not {word for word in text.replace("(", " ").split() if word.startswith("_")}, text


def test_no_private_names():
    for call in (lambda: tamis.Filter(), lambda: tamis.Filter(10, no=1), lambda: tamis.Filter(10).add(), lambda: tamis.Filter.add(5, 5)):
        with pytest.raises(TypeError) as raised:
            call()
        assert "_Filter" not in str(raised.value) and "_tamis" not in str(raised.value)
