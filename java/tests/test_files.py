"""Every kind of file is read as the format says, from everywhere; what is not sound is refused."""

import datetime
import json
import os
import pathlib
import stat
import struct
import subprocess

import pytest
from conftest import GOLDEN, ROOT, SECRET, TAMIS, hexes, tamis

FILES = sorted(GOLDEN.glob("*.tamis"))
ANSWERS = json.loads((GOLDEN / "answers.json").read_text())
ALIKE = json.loads((GOLDEN / "alike.json").read_text())
# In segments of 8 bytes every word is at a border.
WAYS = ["load", "map,verify", "bytes", "view", "direct", "8", "16", "64", "1024,verify"]
CORRUPT = pathlib.Path(os.environ.get("TAMIS_CORRUPT_FILES", ROOT / "target/corrupt"))


def way(how, file):
    secret = f",secret={SECRET}" if "apart" in file.name else ""
    return how + secret + (",loss" if "unclean" in file.name else "")


def test_nothing_is_left_out():
    assert {file.name for file in FILES} == set(ANSWERS["files"]) == set(ALIKE)


@pytest.mark.parametrize("how", WAYS)
def test_golden_files_answer_alike(java, how):
    for file in FILES:
        expected = ALIKE[file.name]
        texts = " ".join(f"{expected[kind]['yes']}:{expected[kind]['digest']}" for kind in ["texts", "bytes", "integers"])
        if moment := latest(file):
            assert java("alikeAt", way(how, file), file, moment) == texts, (file.name, how)
            continue
        assert java("alike", way(how, file), file) == texts, (file.name, how)
        assert java("all", way(how, file), file) == texts.split()[1], (file.name, how)


def latest(file):
    """The latest moment of a window of time, in microseconds: as of now, the golden ones have forgotten everything."""
    if not file.name.startswith("window"):
        return None
    moment = json.loads(tamis("info", "--json", file))["window"]["latest"]
    return moment and round(datetime.datetime.fromisoformat(moment.replace("Z", "+00:00")).timestamp() * 1e6)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_golden_answers(java, file):
    expected = ANSWERS["files"][file.name]
    if expected.get("unclean") or "unclean" in file.name:
        assert java("has", "load", file, "61").startswith("refused: UNCLEAN: ")
    added = [bytes.fromhex(key) for key in ANSWERS["special"]]
    added += [f"added-{i}".encode() for i in range(expected["added"] - len(added))]
    moment = latest(file)
    ask = lambda how, keys: java("at", way(how, file), file, moment, *hexes(keys)) if moment else java("has", way(how, file), file, *hexes(keys))
    assert ask("load", added[: expected["added"]]) == "1" * expected["added"]
    allowed = [f"allowed-{i}".encode() for i in range(expected.get("allowed") or 0)]
    if allowed:
        assert java("has", way("load", file), file, *hexes(allowed)) == "0" * len(allowed)
    probes = [f"probe-{i}".encode() for i in range(ANSWERS["probes"])]
    found = ask("map", probes)
    [present] = [value for value in expected.values() if isinstance(value, list)]
    assert [i for i, answer in enumerate(found) if answer == "1"] == present


@pytest.mark.parametrize("file", [file for file in FILES if "unclean" not in file.name], ids=lambda file: file.stem)
def test_what_is_said_about_a_filter_is_what_the_command_says(java, file, tmp_path):
    key_file = tmp_path / "secret.key"
    key_file.write_text(SECRET)
    key = ["--secret-file", key_file] if "apart" in file.name else []
    about = json.loads(tamis("info", "--json", *key, file))
    for how in ["load", "64"]:
        kind, keys, rate_now, capacity, rate, size = java("info", way(how, file), file).split()
        assert (kind, int(keys), int(capacity), float(rate), int(size)) == (about["kind"], about["keys"], about["capacity"], about["rate"], about["bytes"])
        assert float(rate_now) == pytest.approx(about["rate_now"], rel=1e-12)


def test_corrupt_files_are_refused(java):
    files = sorted(CORRUPT.glob("*.tamis"))
    assert len(files) > 5_000, f"{CORRUPT}: expected the corpus that `cargo test -p tamis --test files corrupt` writes"
    for file in files:
        secret = f",secret={SECRET}" if "apart" in file.name else ""
        for how in ["load", "map,verify", "bytes", "view", "8,verify"]:
            assert java("has", how + secret, file, "61").startswith("refused: "), (file.name, how)


def test_errors_are_those_of_the_command(java):
    """One of each sort of corrupt file, by the name without its number."""
    sorts = {file.name.rsplit("-", 1)[0]: file for file in sorted(CORRUPT.glob("*.tamis"))}
    short = {" ".join(name.split("-")[-3:]): file for name, file in sorts.items() if "apart" not in name}
    texts = set()
    for file in list(short.values())[:150]:
        ran = subprocess.run([TAMIS, "info", file], capture_output=True, text=True)
        ours = java("has", "load", file, "61").split(": ", 2)[2]
        assert ran.returncode == 2
        if "magic: expected" in ours:  # of which the command says what it is instead
            assert "not a Tamis filter" in ran.stderr or "not a filter" in ran.stderr, file.name
        elif "went down" in ran.stderr and "file length" in ours:  # both are true of a file that was cut, too
            continue
        elif "accept the loss" not in ours:  # which each library names as it is called there
            assert ours in ran.stderr, file.name
            texts.add(ours)
    assert len(texts) > 20


def test_a_window_is_asked_as_of_a_moment(java, tmp_path):
    file = tmp_path / "w.tamis"
    tamis("create", file, "--within", "1h", "--generations", "4", "--capacity", "1000")
    times = [f"2026-11-17T{hour:02}:30:00Z" for hour in range(8, 14)]
    for number, time in enumerate(times):
        tamis("add", "-k", "tsv:1", "--no-header", "--time", "tsv:2", file, input=f"key-{number}\t{time}\n".encode())
    keys = hexes(f"key-{number}".encode() for number in range(6))
    micros = 1_794_904_200_000_000  # 08:30
    seen = [java("at", "map", file, micros + hour * 3_600_000_000, *keys) for hour in range(-1, 9)]
    # As far as the latest key's window reaches, an older one is still there or already forgotten.
    expected = []
    for hour in range(-1, 9):
        at = f"2026-11-17T{8 + hour:02}:30:00Z"
        found = subprocess.run([TAMIS, "check", "--at", at, file], input="".join(f"key-{i}\n" for i in range(6)), capture_output=True, text=True)
        expected.append("".join("1" if f"key-{i}\n" in found.stdout else "0" for i in range(6)))
    # The command also knows that nothing was there before the first key which is remembered, that of 12:30.
    assert expected[0] == "000000" and all(told in (has, "000000") for has, told in zip(seen, expected))
    assert seen[5:] == expected[5:]
    assert "1" in seen[6] and seen[-1] == "000000"
    assert java("at", "load", file, 2**62, *keys) == "000000"
    # Without a moment, as of now: one that nobody adds to forgets all the same, and a key from ahead is there.
    assert java("has", "map", file, *keys) == "000000"
    assert java("has", "load", file, *keys) == java("has", "bytes", file, *keys) == "000000"
    tamis("add", file, input="now\n")
    assert java("has", "map", file, *hexes([b"now", b"key-5"])) == "10"
    # Where the clock counts keys, and of other kinds, the moment makes no difference.
    last = GOLDEN / "window-keys.tamis"
    assert java("at", "load", last, 0, *hexes([b"added-40", b"a"])) == java("has", "load", last, *hexes([b"added-40", b"a"]))
    assert java("at", "load", GOLDEN / "bloom.tamis", 0, "61") == "1"


BOOT = bytes.fromhex(pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", ""))


@pytest.mark.parametrize("name", ["blocked-one-line", "bloom", "window", "growing-layers"])
def test_a_file_that_is_open_for_writing(java, tmp_path, name):
    """State words are under no checksum: a mark is written as a process does it."""
    file = tmp_path / "marked.tamis"
    there = "0" if name == "window" else "1"  # forgotten by now
    content = bytearray((GOLDEN / f"{name}.tamis").read_bytes())
    for mark, opened in [(BOOT, True), (b"\xff" * 16, False), (b"\x01" * 16, False)]:
        content[112:128] = mark
        file.write_bytes(content)
        for how in ["load", "map", "8"]:
            answer = java("has", how, file, "61")
            assert answer == there if opened else answer.startswith("refused: UNCLEAN: "), (mark, how)
            assert java("has", how + ",loss", file, "61") == there
        # In memory it is a copy, taken at any moment.
        for how in ["bytes", "view", "direct"]:
            assert java("has", how, file, "61").startswith("refused: UNCLEAN: filter: was open for writing")
            assert java("has", how + ",loss", file, "61") == there
    # Its count may be wrong: an estimate is told, and a saved copy has none and no mark.
    content[112:128] = BOOT
    content[96:104] = struct.pack("<Q", 1)
    content[104:112] = bytes(8)
    file.write_bytes(content)
    if name != "window":
        assert int(java("info", "load", file).split()[1]) > 10
    if name in ["blocked-one-line", "bloom"]:
        saved, keys = tmp_path / "saved.tamis", tmp_path / "none"
        keys.write_text("")
        assert java("add", "load", file, keys, saved) == "done"
        assert saved.read_bytes()[96:104] == b"\xff" * 8 and saved.read_bytes()[112:128] == bytes(16)
        tamis("verify", saved)


def test_keys_that_another_process_adds_are_seen_as_they_arrive(java, tmp_path):
    """And the file is not replaced under its hands."""
    file, keys = tmp_path / "shared.tamis", tmp_path / "keys"
    keys.write_text("62\n")
    tamis("create", file, "--capacity", "1000")
    writer = subprocess.Popen([TAMIS, "add", "--shared", "--new", file], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    writer.stdin.write(b"early\n" * 100_000)
    writer.stdin.flush()
    assert writer.stdout.readline() == b"early\n"
    assert file.read_bytes()[112:128] == BOOT
    for how in ["load", "map", "8"]:
        assert java("has", how, file, b"early".hex(), b"late".hex()) == "10"
    busy = java("add", "load", file, keys, file)
    assert busy == f"failed: {file}: another process is writing this filter; wait for it to finish"
    writer.stdin.close()
    assert writer.wait() == 0
    assert java("add", "load", file, keys, file) == "done"
    assert tamis("check", "-c", file, input="early\nb\n") == "2\n"


def test_more_than_two_gigabytes(java, tmp_path):
    """Five segments, of a file that takes hardly any room. The heap is much smaller."""
    file = tmp_path / "large.tamis"
    assert java("sparse", file, 5 * 2**30 // 64 - 3) == "done"
    keys = [f"key-{i}" for i in range(200)]
    tamis("add", "--shared", file, input="\n".join(keys) + "\n")
    found = java("has", "map", file, *hexes(key.encode() for key in keys))
    assert found == "1" * 200
    assert java("has", "map", file, *hexes(f"other-{i}".encode() for i in range(200))) == "0" * 200
    assert java("has", "load", file, "61").startswith("refused: TOO_LARGE: allocating the filter: out of memory: it needs 5368708928 bytes")


def test_what_is_not_a_file(java, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in [tmp_path / "pipe", tmp_path, "/dev/zero", "/dev/stdin"]:
        for how in ["load", "map"]:
            assert "expected a regular file" in java("has", how, path, "61")
    assert java("has", "load", tmp_path / "none", "61").startswith("failed: ")


def test_a_secret_that_is_kept_apart(java):
    file = GOLDEN / "blocked-keyed-apart.tamis"
    for how in ["load", "map", "bytes", "view"]:
        assert java("has", how, file, "61").startswith("refused: KEY_NEEDED: the filter is keyed")
        assert java("has", f"{how},secret={'00' * 16}", file, "61").startswith("refused: WRONG_KEY: this is not the secret key")


@pytest.mark.parametrize("seed", range(4))
def test_changed_bytes_never_crash(java, seed):
    opened = java("fuzz", seed, 25_000, *FILES)
    assert int(opened.split()[2]) > 5_000, opened


def test_modes_and_links(java, tmp_path):
    mode = lambda path: stat.S_IMODE(path.stat().st_mode)  # noqa: E731
    (tmp_path / "sub").mkdir()
    file, link, dangling = tmp_path / "sub/f.tamis", tmp_path / "link", tmp_path / "dangling"
    link.symlink_to("sub/f.tamis")
    dangling.symlink_to("link")
    assert java("make", "", "BLOCKED", 100, 0.01, dangling) == "0 new"
    assert file.is_file() and link.is_symlink() and dangling.is_symlink()
    file.chmod(0o604)
    assert java("make", "", "BLOCKED", 200, 0.01, link) == "0 new"
    assert mode(file) == 0o604 and tamis("info", "--json", file)
    if os.geteuid() == 0:  # whoever is not root can only keep what is theirs
        os.chown(file, 1234, 1234)
    owner = (file.stat().st_uid, file.stat().st_gid)
    assert java("make", "", "BLOCKED", 300, 0.01, file) == "0 new"
    assert (file.stat().st_uid, file.stat().st_gid, mode(file)) == (*owner, 0o604)
    # With its secret it is for the owner's eyes only, until the owner decides otherwise.
    secret = f"secret={SECRET}"
    assert java("make", secret, "BLOCKED", 100, 0.01, file) == "0 new" and mode(file) == 0o600
    file.chmod(0o640)
    assert java("make", secret, "BLOCKED", 100, 0.01, file) == "0 new" and mode(file) == 0o640
    assert java("make", secret, "BLOCKED", 100, 0.01, tmp_path / "new") == "0 new" and mode(tmp_path / "new") == 0o600
    (tmp_path / "usual").touch()
    assert java("make", f"apart={SECRET}", "BLOCKED", 100, 0.01, tmp_path / "apart") == "0 new"
    assert mode(tmp_path / "apart") == mode(tmp_path / "usual")
    assert sorted(os.listdir(tmp_path / "sub")) == ["f.tamis"]
    # Whoever could open it before it is complete would read all of it.
    file.chmod(0o600)
    assert java("written", file) == "rw-------" and mode(file) == 0o600
    file.chmod(0o644)
    assert java("written", file) == "rw-------" and mode(file) == 0o644


def test_only_regular_files_are_replaced(java, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    for path in [tmp_path / "pipe", tmp_path / "folder", "/dev/null", tmp_path / "loop", tmp_path / "none/f", ""]:
        assert java("make", "", "BLOCKED", 100, 0.01, path).startswith("failed: "), path
    assert sorted(os.listdir(tmp_path)) == ["folder", "loop", "pipe"]


def test_a_save_that_fails_leaves_what_was_there(java, tmp_path):
    file = tmp_path / "f.tamis"
    assert java("make", "", "BLOCKED", 100, 0.01, file) == "0 new"
    before = file.read_bytes()
    # A larger one, where files may have no more than a few blocks.
    line = "\t".join(["make", "", "BLOCKED", "10000000", "0.01", str(file)]) + "\n"
    limited = ["sh", "-c", 'ulimit -f 64 && trap "" XFSZ && exec "$@"', "sh", *java.command[:1], "-XX:-UsePerfData", *java.command[1:]]
    ran = subprocess.run(limited, input=line, capture_output=True, text=True, cwd=tmp_path)
    assert ran.stdout.startswith("failed: "), (ran.stdout, ran.stderr)
    assert file.read_bytes() == before and os.listdir(tmp_path) == ["f.tamis"]
