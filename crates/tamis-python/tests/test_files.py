"""Filters in files: mapped, loaded, damaged, and shared with the command."""

import io
import json
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

import tamis

PATH = "seen.tamis"
GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tamis" / "tests" / "golden"


def test_create_open_and_add():
    with tamis.Filter.create(PATH, 1000, 0.01) as f:
        assert f.add("key") and len(f) == 1 and str(f.path) == PATH
        assert "in seen.tamis" in repr(f)
    assert f.closed
    with tamis.Filter.open(PATH) as f:
        assert "key" in f and len(f) == 1 and f.contains_many(["key", "no"]) == [True, False]
    with tamis.Filter.open(PATH, "r+") as f, tamis.Filter.open(pathlib.Path(PATH), "r+") as g:
        assert f.add("other") and "other" in g and not g.add("other")
        f.sync()
        assert f.add_many(["key", "a", "b"]) == [False, True, True]
    with tamis.Filter.open(PATH) as f:
        assert len(f) == 4
    loaded = tamis.Filter.load(PATH)
    loaded.add("in memory only")
    assert "in memory only" not in tamis.Filter.open(PATH)
    loaded.save(PATH)
    assert "in memory only" in tamis.Filter.open(PATH)


@pytest.mark.parametrize("kind", ["blocked", "bloom", "counting", "growing"])
def test_every_kind_that_can_live_in_a_file(kind):
    with tamis.Filter.create(PATH, 1000, 0.001, kind=kind) as f:
        f.update(range(3000))
    with tamis.Filter.open(PATH) as f:
        assert f.kind == kind and all(f.contains_many(list(range(3000))))
        copied = f.copy()
        assert copied == f and f == copied
        copied.add("new")
        assert copied != f
        if kind != "growing":
            assert "new" in f | copied and "new" not in f & f


def test_cuckoo_filters_are_loaded_and_saved():
    with pytest.raises(tamis.UnableError, match="save it"):
        tamis.Filter.create(PATH, 1000, kind="cuckoo")
    assert not os.path.exists(PATH)
    f = tamis.Filter(1000, kind="cuckoo")
    f.add("key")
    f.save(PATH)
    assert "key" in tamis.Filter.open(PATH)
    with pytest.raises(tamis.UnableError):
        tamis.Filter.open(PATH, "r+")


def test_read_only_filters_refuse_changes():
    tamis.Filter.create(PATH, 1000, delete=True).close()
    f, g = tamis.Filter.open(PATH), tamis.Filter(1000, kind="counting")
    for change in (
        lambda: f.add("x"),
        lambda: f.add_many(["x"]),
        lambda: f.update(["x"]),
        lambda: f.remove("x"),
        f.clear,
        lambda: f.__ior__(g),
        lambda: f.__iand__(f),
    ):
        with pytest.raises(tamis.ReadOnlyError, match=r"r\+") as error:
            change()
        assert isinstance(error.value, io.UnsupportedOperation)
        assert isinstance(error.value, OSError) and isinstance(error.value, ValueError)
    f.sync()


@pytest.mark.parametrize("make", [lambda: tamis.Filter(1000), lambda: tamis.Filter.create(PATH, 1000)])
def test_closed_filters_say_so(make):
    f, other = make(), tamis.Filter(1000)
    f.close()
    f.close()
    for ask in (
        lambda: f.add("x"),
        lambda: "x" in f,
        lambda: len(f),
        lambda: bool(f),
        lambda: f.add_many(["x"]),
        lambda: f.contains_many(["x"]),
        lambda: f.update([]),
        lambda: f.remove("x"),
        lambda: f.count("x"),
        lambda: f.save("elsewhere"),
        lambda: bytes(f),
        lambda: f | other,
        lambda: other | f,
        lambda: other == f,
        lambda: f.__enter__(),
        f.clear,
        f.copy,
        f.info,
        f.sync,
        f.to_base64,
        f.__reduce__,
        *(lambda name=name: getattr(f, name) for name in ("p", "p_now", "fill", "capacity", "kind", "nbytes")),
    ):
        with pytest.raises(tamis.ClosedError, match="closed") as error:
            ask()
        assert isinstance(error.value, ValueError)
    assert f.closed and repr(f) == "<tamis.Filter, closed>"


def test_files_that_are_not_there_or_may_not_be():
    for ask in (tamis.Filter.open, tamis.Filter.load, lambda path: tamis.Filter.open(path, "r+")):
        with pytest.raises(FileNotFoundError) as error:
            ask("missing.tamis")
        assert isinstance(error.value, tamis.NotFoundError)
        assert error.value.filename == "missing.tamis" and error.value.errno == 2
        with pytest.raises(tamis.IoError):
            ask(".")
    tamis.Filter.create(PATH, 1000).close()
    with pytest.raises(FileExistsError) as error:
        tamis.Filter.create(PATH, 1000)
    assert isinstance(error.value, tamis.ExistsError)
    tamis.Filter.create(PATH, 2000, overwrite=True).close()
    assert tamis.Filter.open(PATH).capacity == 2000
    with pytest.raises(tamis.ParameterError, match="mode"):
        tamis.Filter.open(PATH, "w")
    with pytest.raises(tamis.NotFoundError):
        tamis.Filter(10).save("no/such/folder")
    if os.geteuid() != 0:
        os.chmod(PATH, 0)
        with pytest.raises(tamis.ForbiddenError):
            tamis.Filter.open(PATH)


def test_damaged_and_foreign_files():
    f = tamis.Filter(1000)
    f.update(range(900))
    whole = bytes(f)
    damaged = [whole[:length] for length in (0, 1, 4, 127, 128, 129, len(whole) - 1)]
    damaged += [whole + b"x", b"x" * len(whole), b"\x89PNG\r\n\x1a\n" + bytes(1000)]
    for at in [*range(0, 128, 3), 200, len(whole) - 1]:
        damaged.append(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
    for data in damaged:
        with pytest.raises(tamis.TamisError):
            tamis.Filter.from_bytes(data)
        pathlib.Path(PATH).write_bytes(data)
        with pytest.raises(tamis.TamisError):
            tamis.Filter.load(PATH)
    for text in ("", "????", "aGVsbG8="):
        with pytest.raises(tamis.CorruptError, match="not a valid Tamis"):
            tamis.Filter.from_base64(text)
    for wrong in (None, 5, "text"):
        with pytest.raises(TypeError):
            tamis.Filter.from_bytes(wrong)
    pathlib.Path(PATH).write_bytes(whole[:1000])
    for mode in ("r", "r+"):
        with pytest.raises(tamis.CorruptError, match="expected"):
            tamis.Filter.open(PATH, mode)


def test_golden_files_answer_as_ever():
    answers = json.loads((GOLDEN / "answers.json").read_text())
    special = [bytes.fromhex(key) for key in answers["special"]]
    key = (GOLDEN / "secret.key").read_bytes()
    for name, file in answers["files"].items():
        options = dict(key=key) if "apart" in name else {}
        if file["refused"]:
            with pytest.raises(tamis.UncleanError) as error:
                tamis.Filter.open(GOLDEN / name, **options)
            assert isinstance(error.value, OSError)
            continue
        f = tamis.Filter.open(GOLDEN / name, **options)
        # Those of windows are as of their latest moment.
        when = {"at": f.latest} if f.kind == "window" else {}
        added = special + [f"added-{i}" for i in range(file["added"])]
        assert f.kind == file["kind"] and all(f.contains_many(added[: file["added"]], **when)), name
        probes = f.contains_many([f"probe-{i}" for i in range(answers["probes"])], **when)
        assert [i for i, found in enumerate(probes) if found] == file["false yes"], name
        if file["keys"] is None:
            with pytest.raises(tamis.IndeterminateCountError):
                len(f)
        else:
            assert len(f) == file["keys"]


def fnv(answers):
    digest = 0xCBF29CE484222325
    for yes in answers:
        digest = ((digest ^ (ord("0") + yes)) * 0x100000001B3) % 2**64
    return f"{digest:016x}"


def test_golden_files_answer_as_in_other_languages():
    alike = json.loads((GOLDEN / "alike.json").read_text())
    key = (GOLDEN / "secret.key").read_bytes()
    keys = {
        "texts": [f"probe-{i}" for i in range(5000)] + [f"added-{i}" for i in range(5000)],
        "bytes": [bytes((i * 31 + j * 7) % 256 for j in range(i % 300)) for i in range(10_000)],
        "integers": [i * 0x9E3779B97F4A7C15 % 2**64 for i in range(10_000)],
    }
    for name, digests in alike.items():
        options = dict(key=key) if "apart" in name else {}
        if "unclean" in name:  # refused, as the test above has it
            continue
        f = tamis.Filter.load(GOLDEN / name, **options)
        when = {"at": f.latest} if f.kind == "window" else {}
        for type_, expected in digests.items():
            answers = f.contains_many(keys[type_], **when)
            assert {"yes": sum(answers), "digest": fnv(answers)} == expected, (name, type_)
            if not when:
                assert answers == [key in f for key in keys[type_]], (name, type_)


def test_files_that_every_language_refuses():
    """Those of the library's own tests, which writes them for everyone."""
    folder = os.environ.get("TAMIS_CORRUPT_FILES")
    if not folder:
        pytest.fail("TAMIS_CORRUPT_FILES: expected the folder that crates/tamis/tests/golden/README.md tells of")
    key = (GOLDEN / "secret.key").read_bytes()
    files = sorted(pathlib.Path(folder).glob("*.tamis"))
    assert len(files) > 1000
    for file in files:
        for options in ({}, dict(key=key)):
            with pytest.raises(tamis.TamisError):
                tamis.Filter.load(file, **options)


def test_busy_files():
    tamis.Filter(1000, grow=True).save(PATH)
    with tamis.Filter.open(PATH, "r+") as f:
        with pytest.raises(tamis.BusyError) as error:
            f.copy().save(PATH)
        assert isinstance(error.value, OSError)


def test_a_full_disk_is_an_exception():
    # A limit on the size of files is met like a full disk, without root.
    script = """
        import resource, tamis
        tamis.Filter(1000, 0.001, grow=True).save("small.tamis")
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        big = tamis.Filter(1_000_000)
        for full in (
            lambda: tamis.Filter.create("big.tamis", 1_000_000),
            lambda: big.save("big.tamis"),
        ):
            try:
                full()
            except tamis.IoError as error:
                assert error.errno and error.filename == "big.tamis", error
            else:
                raise AssertionError("no error")
        grows = tamis.Filter.open("small.tamis", "r+")
        taken = []
        try:
            for i in range(1_000_000):
                grows.add(i)
                taken.append(i)
        except tamis.IoError:
            pass
        assert 1000 <= len(taken) < 1_000_000
        assert all(grows.contains_many(taken))
        grows.close()
        assert all(tamis.Filter.open("small.tamis").contains_many(taken))
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True)
    assert os.listdir() == ["small.tamis"]


def test_too_little_memory_is_an_exception():
    script = """
        import resource, tamis
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        try:
            tamis.Filter(4_000_000_000, 0.001)
        except MemoryError as error:
            assert isinstance(error, tamis.OutOfMemoryError)
        else:
            raise AssertionError("no error")
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True)


LINES = ["apple", "é", "", "日本語", "a line of some more words", "x" * 10_000]


def test_a_line_of_the_command_is_the_same_key(command):
    text = "".join(f"{line}\n" for line in LINES).encode()
    command("create", PATH, "--capacity", "1000", "-p", "1e-6")
    command("add", PATH, input=text)
    with tamis.Filter.open(PATH, "r+") as f:
        assert all(f.contains_many(LINES)) and all(line.encode() in f for line in LINES)
        assert len(f) == len(LINES) and f.add("from python")
    assert command("check", PATH, input=b"from python\nnever\n") == b"from python\n"
    info = json.loads(command("info", "--json", PATH))
    assert info["keys"] == len(LINES) + 1 and info["rate"] == 1e-6


@pytest.mark.parametrize("kind", ["blocked", "bloom", "counting", "cuckoo", "growing"])
def test_files_of_python_are_the_commands(command, kind):
    f = tamis.Filter(1000, 1e-6, kind=kind, seed=42)
    f.update(LINES)
    f.save(PATH)
    text = "".join(f"{line}\n" for line in LINES).encode()
    assert command("check", PATH, input=text + b"never\n") == text
    command("verify", PATH)
    command("create", "theirs.tamis", "--capacity", "1000", "-p", "1e-6", "--kind", kind, "--seed", "42")
    command("add", "theirs.tamis", input=text)
    assert tamis.Filter.load("theirs.tamis") == f
    assert tamis.Filter.open("theirs.tamis") == f


def test_finished_lists_and_key_files_of_the_command(command):
    text = "".join(f"{line}\n" for line in LINES).encode()
    command("build", "list.tamis", "--secret-file", "secret.key", input=text)
    theirs = tamis.Filter.open("list.tamis", key_file="secret.key")
    assert theirs == tamis.build(LINES, key_file="secret.key")
    secret = bytes.fromhex(pathlib.Path("secret.key").read_text())
    assert theirs == tamis.Filter.load("list.tamis", key=secret)
    with pytest.raises(tamis.KeyNeededError):
        tamis.Filter.open("list.tamis")
    # A key file that Python made.
    with tamis.Filter.create(PATH, 1000, key_file="new.key") as f:
        f.add("key")
    assert command("check", PATH, "--secret-file", "new.key", input=b"key\nno\n") == b"key\n"
    pathlib.Path("bad.key").write_text("hello")
    for make in (lambda: tamis.Filter(10, key_file="bad.key"), lambda: tamis.Filter.open(PATH, key_file="bad.key")):
        with pytest.raises(tamis.ParameterError, match="32 hexadecimal digits"):
            make()
    with pytest.raises(tamis.ParameterError, match="both"):
        tamis.Filter(10, key=secret, key_file="new.key")
    with pytest.raises(tamis.NotFoundError):
        tamis.Filter.open(PATH, key_file="missing.key")


@pytest.mark.parametrize("text", ["redis://:hunter2@host/0/f", "redis:/:hunter2@host/0/f", "redis//u:hunter2@host/f", "redis+unix:/s?name=a&pass=hunter2"])
def test_a_location_instead_of_a_path_is_said_without_its_password(text):
    seen = tamis.Filter(100)
    for call in (
        lambda path: tamis.Filter.open(path),
        lambda path: tamis.Filter.load(path),
        lambda path: tamis.Filter.create(path, 100),
        lambda path: seen.save(path),
        lambda path: tamis.open_foreign(path),
        lambda path: tamis.Filter(100, key_file=path),
    ):
        # A Path has no empty parts: of `redis//` it makes a folder.
        for path in (text, pathlib.Path(text)) if ":/" in text else (text,):
            with pytest.raises(tamis.ParameterError, match="tamis.connect") as caught:
                call(path)
            assert "hunter2" not in str(caught.value)
