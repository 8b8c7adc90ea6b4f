"""Files: the samples of the original, modes, permissions, what was there before, and broken ones."""
import base64
import os
import pathlib
import random
import resource
import shutil
import stat
import subprocess
import sys
import warnings
import zlib

import pytest

from pybloomfilter import BloomFilter

SAMPLES = pathlib.Path(__file__).parent / "samples"
SEEDS = [1, 2, 3, 0xDEADBEEF, 5, 6]
KEYS = [f"key{i}" for i in range(500)] + [12345, -7, b"\x00\xff"]


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "a.bloom")


@pytest.fixture
def sample(tmp_path):
    return shutil.copy(SAMPLES / "pbfm3_0.6.3_cap1000_p01_seeds.bloom", tmp_path / "sample.bloom")


def test_samples_are_read():
    for name, keys in (("seeds", KEYS), ("randseeds", KEYS[:500])):
        bf = BloomFilter.open(SAMPLES / f"pbfm3_0.6.3_cap1000_p01_{name}.bloom", "r")
        assert all(key in bf for key in keys)
        assert sum(f"absent{i}" in bf for i in range(10_000)) < 20
        assert abs(len(bf) - len(keys)) < 5


def test_samples_are_written(sample, path):
    bf = BloomFilter(1000, 0.01, path, hash_seeds=SEEDS)
    bf.update(KEYS)
    bf.close()
    assert pathlib.Path(path).read_bytes() == sample.read_bytes()


def test_base64_of_the_sample(sample, path):
    bf = BloomFilter.from_base64(path, (SAMPLES / "pbfm3_0.6.3.base64").read_text())
    assert pathlib.Path(path).read_bytes() == sample.read_bytes()
    again = BloomFilter.from_base64(path + "2", bf.to_base64(), perm=0o600)
    assert again.data_array == bf.data_array
    # Python 2 broke the text, and that inside it, into lines.
    inner = base64.encodebytes(zlib.compress(sample.read_bytes(), 9))
    old = BloomFilter.from_base64(path + "3", base64.encodebytes(zlib.compress(inner)))
    assert old.data_array == bf.data_array


def keeps_records(path):
    """Whether the file system of a folder has extended attributes, and so an exact count."""
    try:
        os.setxattr(os.path.dirname(path), "user.test", b"1")
        return True
    except (OSError, AttributeError):
        return False


@pytest.mark.parametrize("bits_more", [0, 1, 8, 40])
def test_len_after_reopening(path, bits_more):
    bf = BloomFilter(1000 + bits_more, 0.01, path)
    bf.update(range(503))
    exact = len(bf)
    bf.close()
    if not keeps_records(path):
        assert abs(len(BloomFilter.open(path)) - exact) < 25
        return
    for mode in ("r", "rw", "r"):
        bf = BloomFilter.open(path, mode)
        assert len(bf) == exact
        if mode == "rw":
            exact += not bf.add("one more")
            assert len(bf) == exact
            bf.close()
    copy = bf.copy(path + "2")
    assert len(copy) == exact


def test_len_of_a_file_that_somebody_else_wrote_to(path):
    bf = BloomFilter(1000, 0.01, path)
    bf.update(range(300))
    bf.close()
    other = shutil.copyfile(path, path + "2")  # without the record
    assert abs(len(BloomFilter.open(other)) - 300) < 15
    with open(path, "r+b") as file:  # some more bits, and the record doesn't know
        file.seek(1280)
        file.write(b"\xff" * 20)
    bf = BloomFilter.open(path)
    assert len(bf) == bf.approx_len != 300


def test_bytes_never_say_the_count(path):
    # The original compares all that precedes the bits before it unites two files.
    bf = BloomFilter(1000, 0.01, path, hash_seeds=SEEDS)
    before = pathlib.Path(path).read_bytes()[:1280]
    bf.update(KEYS)
    bf |= bf.copy_template(path + "2")
    bf.close()
    assert pathlib.Path(path).read_bytes()[:1280] == before == pathlib.Path(path + "2").read_bytes()[:1280]


def test_modes(path):
    BloomFilter(100, 0.01, path).add("apple")
    for mode, read_only in (("r", True), ("rw", False), ("w", False), ("rb", True), ("r+", True), ("rw+", False)):
        bf = BloomFilter.open(path, mode)
        assert bf.read_only is read_only and "apple" in bf
    bf = BloomFilter.open(path, "r")
    memory = BloomFilter(100, 0.01, hash_seeds=bf.hash_seeds)
    for change in (lambda: bf.add("x"), lambda: bf.update("x"), bf.clear_all, bf.sync, lambda: bf.union(memory),
                   lambda: bf.__iand__(memory), lambda: bf.union(bf)):
        with pytest.raises(ValueError, match="read-only"):
            change()
    memory |= bf
    assert "apple" in memory
    assert bf.copy(path + "2").read_only is False


def test_file_without_write_permission(path):
    BloomFilter(100, 0.01, path, perm=0o444).add("apple")
    assert "apple" in BloomFilter.open(path, "r")
    if os.geteuid() != 0:
        with pytest.raises(PermissionError):
            BloomFilter.open(path, "rw")


def test_permissions(path):
    old = os.umask(0o022)
    try:
        def mode(bf):
            return stat.S_IMODE(os.stat(bf.filename).st_mode)

        bf = BloomFilter(10, 0.1, path)
        assert mode(bf) == 0o755
        assert mode(BloomFilter(10, 0.1, path + "1", 0o666)) == 0o644
        assert mode(bf.copy_template(path + "2", perm=0o600)) == 0o600
        assert mode(bf.copy(path + "3")) == 0o755
        assert mode(BloomFilter.from_base64(path + "4", bf.to_base64(), 0o640)) == 0o640
    finally:
        os.umask(old)


def test_paths(tmp_path):
    for name in (tmp_path / "a", str(tmp_path / "é").encode(), str(tmp_path / "ü"), os.fsdecode(bytes(tmp_path) + b"/\xff")):
        BloomFilter(10, 0.1, name).add("x")
        bf = BloomFilter.open(name)
        assert "x" in bf and bf.filename == os.fsdecode(name)


def test_sync(path):
    bf = BloomFilter(100, 0.01, path)
    bf.add("apple")
    bf.sync()
    assert "apple" in BloomFilter.open(path, "r")
    os.fsync(bf.fileno())


ADDING = """
import sys
from pybloomfilter import BloomFilter
keys = [f"{sys.argv[2]}-{i}" for i in range(20_000)]
bf = BloomFilter.open(sys.argv[1])
for _ in sys.stdin:
    bf.update(keys)
    print("added", flush=True)
"""


def test_processes_that_share_a_file_lose_no_keys(path):
    bf = BloomFilter(40_000, 0.3, path)
    processes = [
        subprocess.Popen([sys.executable, "-c", ADDING, path, who], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for who in "ab"
    ]
    # One bit a key, three of ten in use: a bit that one overwrites is missed. It takes luck to, so there are many rounds.
    for _ in range(100):
        bf.clear_all()
        for process in processes:
            process.stdin.write("go\n")
            process.stdin.flush()
        assert [process.stdout.readline() for process in processes] == ["added\n"] * 2
        assert all(f"{who}-{i}" in bf for who in "ab" for i in range(20_000))
    for process in processes:
        process.communicate()
        assert process.returncode == 0
    bf.close()
    bf = BloomFilter.open(path)
    assert len(bf) == bf.approx_len  # nobody knew of the others' keys


def test_a_filter_is_replaced_and_says_so(path):
    bf = BloomFilter(100, 0.01, path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bf = BloomFilter(100, 0.01, path)  # it was empty
    bf.add("apple")
    with pytest.warns(RuntimeWarning, match="replacing .*a.bloom"):
        new = BloomFilter(100, 0.01, path)
    assert "apple" not in new
    assert "apple" in bf  # still has its file, without a name
    bf.add("pear")
    assert len(new) == 0
    os.truncate(path, 1300)  # nobody can tell whether it holds keys
    with pytest.warns(RuntimeWarning, match="replacing"):
        new = BloomFilter(100, 0.01, path)


def makers(path):
    other = BloomFilter(100, 0.01, path + ".other")
    return [lambda: BloomFilter(100, 0.01, path), lambda: other.copy_template(path), lambda: other.copy(path),
            lambda: BloomFilter.from_base64(path, other.to_base64())]


def test_other_files_are_not_replaced(path):
    for content in (b"my thesis", b"MBIT", b"\0" * 5000):
        pathlib.Path(path).write_bytes(content)
        for make in makers(path):
            with pytest.raises(FileExistsError, match="not a BloomFilter"):
                make()
            assert pathlib.Path(path).read_bytes() == content
    os.unlink(path)
    os.mkdir(path)
    for make in makers(path):
        with pytest.raises(IsADirectoryError):
            make()
    os.rmdir(path)
    pathlib.Path(path).touch()
    for make in makers(path):
        make()
    assert os.listdir(os.path.dirname(path)) in (["a.bloom", "a.bloom.other"], ["a.bloom.other", "a.bloom"])


def test_wrong_arguments_leave_the_old_filter(path):
    BloomFilter(100, 0.01, path).add("apple")
    for arguments in ((100, 2.0, path), (100, 0.01, path, 0o755, [-1]), (2**62, 0.01, path), ("x", 0.1, path)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises((ValueError, OverflowError, TypeError)):
                BloomFilter(*arguments)
    assert "apple" in BloomFilter.open(path)
    assert os.listdir(os.path.dirname(path)) == ["a.bloom"]


def test_onto_itself(path):
    bf = BloomFilter(100, 0.01, path)
    bf.add("apple")
    with pytest.raises(shutil.SameFileError):
        bf.copy(path)
    with pytest.raises(OSError):
        bf.copy_template(path)
    assert "apple" in BloomFilter.open(path)


def test_template_of_a_filter_in_memory(path):
    memory = BloomFilter(100, 0.01)
    memory.add("apple")
    saved = memory.copy_template(path)
    saved |= memory
    saved.close()
    assert "apple" in BloomFilter.open(path)


@pytest.mark.parametrize("mode", ["r", "rw"])
def test_missing(tmp_path, mode):
    with pytest.raises(FileNotFoundError) as error:
        BloomFilter.open(str(tmp_path / "missing"), mode)
    assert error.value.filename == str(tmp_path / "missing")
    assert str(error.value) == f"[Errno 2] No such file or directory: '{tmp_path}/missing'"
    with pytest.raises(FileNotFoundError):
        BloomFilter(10, 0.1, str(tmp_path / "missing" / "a.bloom"))


@pytest.mark.parametrize("mode", ["r", "rw"])
def test_broken_files(sample, mode):
    whole = sample.read_bytes()

    def patched(at, field):
        return whole[:at] + field + whole[at + len(field):]

    broken = [whole[:length] for length in (0, 1, 8, 9, 20, 50, 1279, 1280, 1281, len(whole) - 1)]
    broken += [
        b"MBITARRAX" + whole[9:], b"x" * 5000,
        patched(9, b"\0" * 8),              # no bits
        patched(9, b"\xff" * 8),            # more bits than there are
        patched(9, (9593).to_bytes(8, "little")),
        patched(17, (1199).to_bytes(4, "little")),
        patched(17, b"\xff\xff\xff\xff"),
        patched(37, b"\0" * 4),             # no hashes
        patched(37, (257).to_bytes(4, "little")),
        patched(37, b"\xff" * 4),
    ]
    for content in broken:
        sample.write_bytes(content)
        with pytest.raises(ValueError, match="Invalid BloomFilter file.*sample.bloom: "):
            BloomFilter.open(sample, mode)
        assert sample.read_bytes() == content


def test_no_header_crashes(sample):
    whole = sample.read_bytes()
    chance = random.Random(1)
    opened = 0
    for _ in range(600):
        content = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            content[chance.choice([chance.randrange(61), chance.randrange(1280)])] = chance.randrange(256)
        sample.write_bytes(content)
        try:
            bf = BloomFilter.open(sample, chance.choice(["r", "rw"]))
        except ValueError:
            continue
        opened += 1
        if not bf.read_only:
            bf.add("x")
            assert "x" in bf
            assert repr(bf) and len(bf) >= 0 and bf.bit_count >= 0
        assert ("y" in bf) in (True, False)
    assert 0 < opened < 600


def test_bits_that_do_not_fill_a_byte(sample):
    # The older pybloomfiltermmap writes such files.
    whole = sample.read_bytes()
    sample.write_bytes(whole[:9] + (9589).to_bytes(8, "little") + whole[17:] + b"trailing data of somebody else")
    bf = BloomFilter.open(sample)
    bf.clear_all()
    bf.update(range(300))
    bf &= bf.copy(f"{sample}2")
    assert all(key in bf for key in range(300))
    assert len(bf.data_array) == 1199
    bf.close()
    assert sample.read_bytes().endswith(b"trailing data of somebody else")


def test_other_things_than_files(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for name in (tmp_path, fifo, "/dev/null"):
        for mode in ("r", "rw"):
            with pytest.raises(ValueError, match="not a regular file"):
                BloomFilter.open(name, mode)
    for name in (fifo, "/dev/null"):
        with pytest.raises(FileExistsError):
            BloomFilter(10, 0.1, name)


@pytest.mark.parametrize("text", ["", "####", b"\xff", "aGVsbG8=", "eJwDAAAAAAE="])
def test_broken_base64(path, text):
    with pytest.raises(Exception) as error:
        BloomFilter.from_base64(path, text)
    assert type(error.value).__module__ + type(error.value).__name__ in ("zliberror", "binasciiError", "builtinsValueError")
    assert not os.path.exists(path)


def test_base64_of_something_else(path):
    for content in (b"hello", (SAMPLES / "pbfm3_0.6.3_cap1000_p01_seeds.bloom").read_bytes()[:-1]):
        text = base64.b64encode(zlib.compress(base64.b64encode(zlib.compress(content))))
        with pytest.raises(ValueError, match="Invalid BloomFilter text"):
            BloomFilter.from_base64(path, text)
        assert not os.path.exists(path)


def test_a_file_that_may_not_grow(path):
    BloomFilter(100, 0.01, path).add("apple")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(OSError):
                BloomFilter(1_000_000, 0.01, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "apple" in BloomFilter.open(path)
    assert os.listdir(os.path.dirname(path)) == ["a.bloom"]


FULL_DISK = """
import errno, os, sys
from pybloomfilter import BloomFilter
folder = sys.argv[1]
def full(call):
    try:
        call()
    except OSError as error:
        assert error.errno == errno.ENOSPC, error
    else:
        raise AssertionError("no error")
small = BloomFilter(1000, 0.01, folder + "/small")
small.add("apple")
full(lambda: BloomFilter(10_000_000, 0.01, folder + "/large"))
# A file with holes, as the original makes them, for which there is no room.
with open(folder + "/sparse", "wb") as file:
    start = bytearray(open(folder + "/small", "rb").read()[:1280])
    start[9:17] = (8 << 20).to_bytes(8, "little")
    file.write(start)
    file.truncate(1280 + (1 << 20))
full(lambda: BloomFilter.open(folder + "/sparse"))
sparse = BloomFilter.open(folder + "/sparse", "r")
assert "x" not in sparse
full(lambda: sparse.copy(folder + "/copy"))
assert "apple" in small and sorted(os.listdir(folder)) == ["small", "sparse"], os.listdir(folder)
print("all is well")
"""


def test_full_disk(tmp_path):
    if "TAMIS_NO_MOUNT" in os.environ:
        pytest.skip("TAMIS_NO_MOUNT: no small disk can be mounted here")
    command = 'mount -t tmpfs -o size=256k none "$1" && exec "$2" -c "$3" "$1"'
    ran = subprocess.run(["unshare", "-rm", "sh", "-c", command, "sh", tmp_path, sys.executable, FULL_DISK],
                         capture_output=True, text=True)
    assert (ran.returncode, ran.stdout.strip()) == (0, "all is well"), ran.stderr
