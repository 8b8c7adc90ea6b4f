"""What Java makes is what the other libraries make of the same keys, to the last byte."""

import json
import random
import struct
import subprocess

import pytest
from conftest import ROOT, SECRET, TAMIS, hexes, tamis

KINDS = ["BLOCKED", "BLOOM", "COUNTING"]
# Of every length up to 300, where XXH3 is another function at 4, 9, 17, 129 and 241, and of many blocks of 1024.
LENGTHS = [*range(301), 1023, 1024, 1025, 1087, 1088, 1089, 2048, 2049, 4096, 65_537, 1_000_000]


def key_of(length, salt=0):
    return bytes((salt + 31 * length + 7 * i + i // 251) % 256 for i in range(length))


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """A file of keys in hex: all lengths, some of them twice."""
    file = tmp_path_factory.mktemp("keys") / "keys.hex"
    each = [key_of(length) for length in LENGTHS if length > 0]
    each += [f"user-{i}@example.org".encode() for i in range(3_000)] + each[:50]
    file.write_text("".join(key.hex() + "\n" for key in each))
    return file


def header(file):
    return file.read_bytes()[:128]


OPTIONS = {
    "": [],
    "seed=1": ["--seed", "1"],
    "seed=18446744073709551615": ["--seed", "18446744073709551615"],
    "apart": ["--secret-file", "secret.key"],
    "secret": ["--secret"],
    "case": ["-i"],
    "values=3": ["--values", "3"],
}


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_files_are_the_same(java, tmp_path, keys, kind, options):
    (tmp_path / "secret.key").write_text(SECRET)
    words = [tmp_path / word if word == "secret.key" else word for word in OPTIONS[options]]
    secret = words if options == "apart" else []
    theirs, ours = tmp_path / "theirs.tamis", tmp_path / "ours.tamis"
    tamis("create", theirs, "--kind", kind.lower(), "--capacity", "5000", "-p", "0.003", *words)
    made = {"apart": f"apart={SECRET}", "secret": f"secret={header(theirs)[32:48].hex()}"}.get(options, options)
    assert java("make", made, kind, 5000, 0.003, ours) == "0 new"
    assert ours.read_bytes() == theirs.read_bytes()
    how = f"load,secret={SECRET}"
    if options == "values=3":  # of which a line of hex is no key
        return
    tamis("add", "-j", "1", *secret, "--hex", theirs, keys)
    assert java("make", made, kind, 5000, 0.003, ours, keys).endswith(" new")
    assert ours.read_bytes() == theirs.read_bytes()
    assert tamis("check", "-c", *secret, "--hex", ours, keys) == f"{len(keys.read_text().splitlines())}\n"
    # What one has begun, the other continues.
    more = tmp_path / "more.hex"
    more.write_text("".join(key_of(length, 5).hex() + "\n" for length in LENGTHS if length))
    assert java("add", how, theirs, more, ours) == "done"
    tamis("add", "-j", "1", *secret, "--hex", theirs, more)
    assert ours.read_bytes() == theirs.read_bytes()
    if kind == "COUNTING":
        tamis("remove", "-j", "1", *secret, "--hex", theirs, more)
        assert java("remove", how, ours, more, ours) == str(len(LENGTHS) - 1)
        assert ours.read_bytes() == theirs.read_bytes()
    else:
        assert java("remove", how, ours, more, ours).startswith(f"failed: {kind.lower()} filters can't be removed from: ")


@pytest.mark.parametrize("count", [0, 3, 2**64 - 3, 2**64 - 1])
def test_counts_stay_numbers(java, tmp_path, keys, count):
    """A count that is wrong becomes neither less than none nor more than a header can say."""
    file, ours, theirs, some = (tmp_path / name for name in ["f.tamis", "ours.tamis", "theirs.tamis", "some.hex"])
    some.write_text("".join(keys.read_text().splitlines(keepends=True)[:20]))
    assert java("make", "", "COUNTING", 5000, 0.003, file, some) == "20 new"
    content = bytearray(file.read_bytes())
    content[96:112] = struct.pack("<QQ", count, 0)
    for change in ["add", "remove"]:
        for copy in [file, theirs]:
            copy.write_bytes(content)
        which = keys if change == "add" else some
        tamis(change, "-q", "-j", "1", "--hex", theirs, which)
        assert not java(change, "load", file, which, ours).startswith("failed")
        assert ours.read_bytes() == theirs.read_bytes()
        assert int(java("info", "load", ours).split()[1]) >= 0


def test_the_empty_key(java, tmp_path):
    empty, file = tmp_path / "empty", tmp_path / "f.tamis"
    empty.write_text("\n")
    assert java("make", "seed=7", "BLOOM", 100, 0.01, file, empty) == "1 new"
    assert tamis("check", "-c", file, input="\n") == "1\n"


@pytest.mark.parametrize("kind", KINDS)
def test_merged_files_are_the_same(java, tmp_path, kind):
    a, b, ours, theirs = (tmp_path / name for name in ["a.tamis", "b.tamis", "ours.tamis", "theirs.tamis"])
    for file, start in [(a, 0), (b, 700)]:
        tamis("create", file, "--kind", kind.lower(), "--capacity", "2000", "-p", "0.01")
        # Of some counters more than 15: those stay.
        lines = [f"key-{i}\n" for i in range(start, start + 1000)] + ["often\n"] * 9
        tamis("add", "-q", file, input="".join(lines))
    tamis("merge", "--union", a, b, "-o", theirs)
    assert java("merge", "load", a, b, ours) == "done"
    assert ours.read_bytes() == theirs.read_bytes()
    assert abs(int(java("info", "load", ours).split()[1]) - 1701) < 60
    assert java("merge", "map", a, b, ours).startswith("failed: the filter is open for asking only")


def test_filters_that_differ_are_not_merged(java, tmp_path):
    def made(name, *words):
        file = tmp_path / name
        tamis("create", file, *words)
        return file

    base = ["--capacity", "1000", "-p", "0.01"]
    one = made("one", *base)
    others = [
        ("kind", made("kind", *base, "--kind", "counting")),
        ("lines", made("lines", "--capacity", "2000", "-p", "0.01")),
        ("the seed is 0", made("seed", *base, "--seed", "9")),
        ("the hash is xxh3-128", made("hash", *base, "--secret")),
        ("the rule for keys is exact", made("rule", *base, "-i")),
    ]
    before = one.read_bytes()
    for text, other in others:
        ours = java("merge", "load", one, other, tmp_path / "out")
        assert ours.startswith("failed: the filters differ and can't be combined") and text in ours
        ran = subprocess.run([TAMIS, "merge", "--union", one, other, "-o", tmp_path / "out"], capture_output=True, text=True)
        assert ran.returncode == 2
        if text != "kind":
            assert ours.removeprefix("failed: ") in ran.stderr
    assert one.read_bytes() == before and not (tmp_path / "out").exists()


def plan(keys, rate):
    """(lines, hashes, lines a key) of blocked, (bits, hashes) of bloom, as the command plans them; None where it can't."""
    kinds = {row["kind"]: row for row in json.loads(tamis("plan", "--json", "--capacity", str(keys), "-p", repr(rate)))}
    blocked, bloom = kinds.get("blocked"), kinds.get("bloom")
    return (
        blocked and "bytes" in blocked and (blocked["bytes"] // 64, blocked["hashes_per_line"], blocked["lines_per_key"]),
        bloom and "bits" in bloom and (bloom["bits"], bloom["hashes"]),
    )


def planned_alike(java, keys, rate):
    blocked, bloom = plan(keys, rate)
    for kind, expected, line in [("BLOCKED", blocked, 64), ("COUNTING", blocked, 256)]:
        got = java("plan", kind, keys, repr(rate))
        if not expected:
            assert got.startswith("failed: size: expected below 2^60 bytes"), (keys, rate, got)
            continue
        lines, hashes, per_key, size = map(int, got.split())
        assert (lines, hashes, per_key, size) == (*expected, lines * line), (kind, keys, rate)
    got = java("plan", "BLOOM", keys, repr(rate))
    if bloom:
        assert tuple(map(int, got.split()[:2])) == bloom, (keys, rate)
    else:
        assert got.startswith("failed: size: expected below 2^60 bytes"), (keys, rate, got)


def test_plans_are_the_same(java):
    for keys in [1, 2, 3, 10, 100, 777, 1_000, 65_536, 1_000_000, 50_000_000, 123_456_789, 10**10, 10**12, 10**15]:
        for rate in [0.999, 0.9, 0.5, 0.3, 0.1, 0.05, 0.01, 0.003, 1e-3, 1e-6, 1e-9, 1e-12, 1e-15]:
            planned_alike(java, keys, rate)


def test_plans_of_any_numbers_are_the_same(java):
    chance = random.Random(31)
    for _ in range(100):
        planned_alike(java, int(10 ** chance.uniform(0, 13)), 10 ** chance.uniform(-15, -0.01))


def test_plans_that_nobody_can_make(java):
    for keys, rate, text in [
        (0, "0.01", "number of keys: expected at least 1, got 0"),
        (-5, "0.01", "number of keys: expected at least 1, got -5"),
        (1, "0", "rate: expected at least 1e-15 and below 1, got 0"),
        (1, "1", "rate: expected at least 1e-15 and below 1, got 1"),
        (1, "NaN", "rate: expected at least 1e-15 and below 1, got NaN"),
        (1, "2e-16", "rate: expected at least 1e-15 and below 1, got 2e-16"),
        (2**62, "1e-15", "size: expected below 2^60 bytes, got more for 4611686018427387904 keys at a rate of 1e-15"),
    ]:
        assert java("plan", "BLOCKED", keys, rate) == f"failed: {text}"
    # More than the heap, or than an array, is an error and not the end of the program.
    for keys in [10**9, 10**12, 10**15]:
        assert java("make", "", "BLOCKED", keys, 0.01, "none").startswith("failed: allocating the filter: out of memory: it needs ")
    for kind in ["FUSE", "RIBBON", "CASCADE", "CUCKOO", "GROWING", "WINDOW"]:
        assert java("plan", kind, 1000, 0.01).startswith(f"failed: {kind.lower()} filters can't be created ")


def test_functions_are_the_same(java):
    """Sizes are computed with them: to the last bit as in the library."""
    digests = json.loads((ROOT / "crates/tamis/tests/golden/functions.json").read_text())
    assert {name: java("math", name) for name in digests} == digests


@pytest.mark.parametrize("kind", KINDS)
def test_threads_add_at_once(java, kind):
    assert java("threads", kind) == "done"


def test_case_is_ignored_alike(java, tmp_path):
    """Every character: asked by one where the other has added it."""
    characters = [chr(c) for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000 and chr(c) not in "\r\n"]
    # Long enough that the rate of four million questions is none.
    texts = [f"{c}{c}ΑΣΟΣ" for c in characters] + ["ÀΣ\u0130", "STRASSE", "ǅ"]
    (tmp_path / "keys.hex").write_text("".join(text.encode().hex() + "\n" for text in texts))
    (tmp_path / "bytes.hex").write_text("".join(hexes_line(b"\xff" + bytes([b]) + b"Az" + bytes([b])) for b in range(256)))
    for keys in ["keys.hex", "bytes.hex"]:
        theirs, ours = tmp_path / f"theirs-{keys}", tmp_path / f"ours-{keys}"
        count = len((tmp_path / keys).read_text().splitlines())
        tamis("create", "-i", theirs, "--capacity", "1200000", "-p", "1e-6")
        tamis("add", "-j", "1", "--hex", theirs, tmp_path / keys)
        assert java("make", "case", "BLOCKED", 1_200_000, 1e-6, ours, tmp_path / keys).endswith(" new")
        assert ours.read_bytes() == theirs.read_bytes()
        assert java("count", "map", theirs, tmp_path / keys) == str(count)


def hexes_line(key):
    return key.hex() + "\n"


def test_half_of_a_surrogate_pair_is_an_error(java):
    """As in Python and JavaScript: it has no UTF-8, and a replacement would make one key of many."""
    for text, where in [("\ud83d", 0), ("a\ud83d", 1), ("\ude00b", 0), ("\ude00\ud83d", 0), ("😀\ud83dx", 2), ("\ud83d\ud83d\ude00", 0)]:
        units = text.encode("utf-16-be", "surrogatepass")
        surrogate = units[2 * where : 2 * where + 2].hex().upper()
        told = f"key: expected text that has UTF-8, got the surrogate U+{surrogate} in it, at index {where}; encode it yourself, in a way that stays the same"
        assert java("text", units.hex()).split(" | ") == [told] * 6, text
    for text in ["", "?", "\ufffd", "a😀b", "\ud7ff\ue000"]:
        assert java("text", text.encode("utf-16-be").hex()).split(" | ") == ["false", "false", "true", "true", "true", "true"], text


def test_keys_of_several_values(java, tmp_path):
    theirs, ours = tmp_path / "theirs.tamis", tmp_path / "ours.tamis"
    tamis("create", "-i", "--values", "2", theirs, "--capacity", "1000", "-p", "1e-6")
    tamis("add", "-k", "tsv:1,2", "--no-header", theirs, input="Ada\t2026-İ\nab\tc\n")
    assert java("makeJoined", "case,values=2", "BLOCKED", 1000, 1e-6, ours, *hexes(["ada".encode(), "2026-İ".encode()])) == "done"
    assert java("hasJoined", "load", theirs, *hexes(["ADA".encode(), "2026-İ".encode()])) == "1"
    assert tamis("check", "-k", "tsv:1,2", "--no-header", ours, input="aDA\t2026-İ\n") == "aDA\t2026-İ\n"
    assert java("hasJoined", "load", theirs, *hexes([b"AB", b"C"])) == "1"
    assert java("hasJoined", "load", theirs, *hexes([b"a", b"bc"])) == "0"
    assert java("hasJoined", "load", theirs, *hexes([b"ab"])) == "failed: values of a key: expected 2, got 1"


def test_urls_are_never_answered_wrongly(java, tmp_path):
    file = tmp_path / "urls.tamis"
    tamis("create", "--url", file, "--capacity", "1000", "-p", "1e-6")
    tamis("add", file, input="HTTP://Example.org:80/x/../a#b\n")
    for how in ["load", "map"]:
        assert java("has", how, file, b"http://example.org/a".hex()).startswith("failed: the filter normalises URLs")
        assert java("hasExact", how, file, b"http://example.org/a".hex(), b"HTTP://Example.org:80/x/../a#b".hex()) == "10"
    keys = tmp_path / "keys"
    keys.write_text("61\n")
    assert java("add", "load", file, keys, file).startswith("failed: the filter normalises URLs")


@pytest.mark.parametrize("kind", ["fuse", "cuckoo", "growing", "window"])
def test_kinds_that_java_reads_are_saved_as_they_are(java, tmp_path, kind):
    theirs, ours, none = tmp_path / "theirs.tamis", tmp_path / "ours.tamis", tmp_path / "none"
    none.write_text("")
    if kind == "fuse":
        tamis("build", theirs, input="a\nb\n")
    else:
        words = ["--last", "100"] if kind == "window" else ["--capacity", "100", "--kind", kind]
        tamis("create", theirs, *words)
        tamis("add", theirs, input="a\nb\n")
    assert java("add", "load", theirs, none, ours) == "done"
    assert ours.read_bytes() == theirs.read_bytes()
    none.write_text("61\n")
    assert java("add", "load", theirs, none, ours).startswith(f"failed: {kind} filters can't be added to")


def test_the_documentation_is_complete(tmp_path):
    sources = [ROOT / "java/src/module-info.java", *(ROOT / "java/src/io/tamis").glob("*.java")]
    subprocess.run(["javadoc", "-quiet", "--release", "11", "-Xdoclint:all", "-Werror", "-d", tmp_path / "doc", *sources], check=True)


def test_the_jar(java, tmp_path):
    """It has a module, no dependency but Java's base, and the same bytes whenever it is made."""
    described = subprocess.run(["jar", "--describe-module", "--file", java.jar], check=True, capture_output=True, text=True).stdout
    assert [line for line in described.splitlines()[1:] if line.strip()] == ["exports io.tamis", "requires java.base mandated"]
    again = subprocess.run([ROOT / "java/build", tmp_path / "again"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    assert open(again, "rb").read() == open(java.jar, "rb").read()
