"""Every method and property, and what happens when they are used wrongly."""
import array
import gc
import inspect
import math
import pickle
import random
import threading

import pytest

import pybloomfilter
from pybloomfilter import BloomFilter, IndeterminateCountError

SEEDS = [1, 2, 3]


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "a.bloom")


@pytest.fixture(params=["memory", "file"])
def bf(request, path):
    # Its seeds are drawn from there: in one run of hundreds, two bits of a key would fall together.
    random.seed(1)
    return BloomFilter(1000, 0.01, path if request.param == "file" else None)


def test_module():
    assert pybloomfilter.VERSION == (0, 6, 3) == pybloomfilter.__VERSION__
    assert BloomFilter.__module__ == "pybloomfilter"
    names = ["capacity", "error_rate", "filename", "perm", "hash_seeds", "data_array", "hash"]
    assert list(inspect.signature(BloomFilter).parameters) == names
    assert str(inspect.signature(BloomFilter.add)) == "(self, item, /)"
    for name in dir(BloomFilter):
        if not name.startswith("_"):
            assert getattr(BloomFilter, name).__doc__, name


def test_add_says_whether_it_was_there(bf):
    assert bf.add("apple") is False
    assert bf.add("apple") is True
    assert "apple" in bf and "pear" not in bf
    assert len(bf) == 1
    bf.clear_all()
    assert len(bf) == 0 == bf.bit_count
    assert bf.add("apple") is False


def test_keys(bf):
    keys = ["", "é", "\u2131\u3184", b"", b"\x00\xff", 0, -7, 2**70, 1.5, True, (1, "a"), frozenset([1]), object(), int]
    for key in keys:
        bf.add(key)
        assert key in bf
    # A str is its UTF-8 bytes.
    assert "é".encode() in bf


class Text(str):
    pass


class Raw(bytes):
    pass


def test_subclasses_of_str_and_bytes_are_their_bytes(bf):
    bf.add(Text("apple"))
    bf.add(Raw(b"pear"))
    assert "apple" in bf and b"apple" in bf and "pear" in bf


class Unhashable:
    __hash__ = None


class Failing:
    def __hash__(self):
        raise ZeroDivisionError


@pytest.mark.parametrize("key, error", [
    ([], TypeError), ({}, TypeError), (bytearray(b"x"), TypeError), (Unhashable(), TypeError),
    ("\udc80", UnicodeEncodeError), (Failing(), ZeroDivisionError),
])
def test_what_is_no_key(bf, key, error):
    with pytest.raises(error):
        bf.add(key)
    with pytest.raises(error):
        key in bf
    with pytest.raises(error):
        bf.update(["fine", key])
    assert len(bf) == 1  # "fine" came before


def test_wrong_calls(bf):
    for call in (lambda: bf.add(), lambda: bf.add(1, 2), lambda: bf.update(5), lambda: bf.union(5), lambda: bf.union(None),
                 lambda: bf.intersection("x"), lambda: bf.__class__.add(5, 6), lambda: BloomFilter(10),
                 lambda: BloomFilter("10", 0.1), lambda: BloomFilter(None, 0.1), lambda: BloomFilter(10, "0.1"),
                 lambda: BloomFilter(10, 0.1, 5), lambda: BloomFilter.open(5), lambda: BloomFilter.open(None),
                 lambda: BloomFilter(10, 0.1, hash_seeds=5), lambda: BloomFilter(10, 0.1, perm="x"),
                 lambda: BloomFilter(10, 0.1, hash_seeds=[1], data_array="abc")):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(TypeError):
        bf |= 5
    with pytest.raises(TypeError):
        bf &= {1}
    with pytest.raises(TypeError):
        bf | bf


@pytest.mark.parametrize("arguments, keywords", [
    ((10, 0), {}), ((10, 1), {}), ((10, 1.5), {}), ((10, -0.1), {}), ((10, math.nan), {}), ((10, 1e-300), {}), ((-1, 0.1), {}),
    ((math.nan, 0.1), {}),
    ((10, 0.1), {"hash_seeds": [-1]}), ((10, 0.1), {"hash_seeds": [2**32]}), ((10, 0.1), {"hash_seeds": ["A"]}),
    ((10, 0.1), {"hash_seeds": [1.5]}), ((10, 0.1), {"hash_seeds": range(257)}),
    ((10, 0.1), {"data_array": b"123"}), ((10, 0.1, "x.bloom"), {"data_array": b"123", "hash_seeds": [1]}),
    ((10, 0.1), {"data_array": b"", "hash_seeds": [1]}), ((10, 0.1, "a\0b"), {}),
])
def test_wrong_values(arguments, keywords):
    with pytest.raises(ValueError):
        BloomFilter(*arguments, **keywords)


def test_too_large():
    with pytest.raises(OverflowError):
        BloomFilter(2**70, 0.1)
    with pytest.raises(OverflowError):
        BloomFilter(2**62, 0.001)
    with pytest.raises(MemoryError):
        BloomFilter(2**56, 0.1)


@pytest.mark.parametrize("capacity, rate, hashes, bits", [
    (1000, 0.01, 6, 9592), (0, 0.1, 3, 128), (1, 0.9999, 1, 128), (100.5, 0.1, 3, 488), (True, 0.5, 1, 128),
    (100_000, 0.001, 9, 1437760), (1_000_000, 0.01, 6, 9585064),
])
def test_sizes(capacity, rate, hashes, bits):
    bf = BloomFilter(capacity, rate)
    assert (bf.num_hashes, bf.num_bits) == (hashes, bits)
    assert (bf.capacity, bf.error_rate) == (int(capacity), rate)
    assert len(bf.data_array) * 8 == bits


def test_properties(bf):
    assert bf.hash_seeds.typecode == "I" and len(bf.hash_seeds) == bf.num_hashes == 6
    assert repr(bf) == str(bf) == "<BloomFilter capacity: 1000, error: 0.010, num_hashes: 6>"
    bf.add("apple")
    assert bf.bit_count == 6 == bin(bf.bit_array).count("1")
    assert bf.bit_array == int.from_bytes(bf.data_array, "big")
    assert bf.read_only is False
    with pytest.raises(AttributeError):
        bf.capacity = 5


def test_file_properties(path):
    bf = BloomFilter(10, 0.1, path)
    assert bf.filename == path and isinstance(bf.filename, str)
    with pytest.warns(PendingDeprecationWarning):
        assert bf.name == path.encode()
    assert bf.fileno() > 2
    memory = BloomFilter(10, 0.1)
    for use in (lambda: memory.filename, lambda: memory.copy(path + "2"), memory.to_base64, memory.fileno):
        with pytest.raises(NotImplementedError, match="in-memory"):
            use()
    memory.sync()


def test_random_seeds_are_those_of_random():
    random.seed(7)
    drawn = BloomFilter(10, 0.01).hash_seeds.tolist()
    random.seed(7)
    assert drawn == [random.getrandbits(32) for _ in range(6)]


@pytest.mark.parametrize("seeds", [[1, 2], (1, 2), array.array("I", [1, 2]), iter([1, 2]), range(1, 3)])
def test_seeds_from_any_iterable(seeds):
    assert BloomFilter(10, 0.1, hash_seeds=seeds).hash_seeds.tolist() == [1, 2]


@pytest.mark.parametrize("convert", [bytes, bytearray, memoryview])
def test_data_array(convert):
    one = BloomFilter(100, 0.01)
    one.update(range(50))
    two = BloomFilter(100, 0.01, hash_seeds=one.hash_seeds, data_array=convert(one.data_array))
    assert two.data_array == one.data_array
    assert all(key in two for key in range(50))
    assert len(two) == two.approx_len
    odd = BloomFilter(100, 0.01, hash_seeds=[1], data_array=b"\xff\x00\x01")
    assert (odd.num_bits, odd.bit_count) == (24, 9)


def test_pickle(bf):
    bf.update(["apple", "pear"])
    again = pickle.loads(pickle.dumps(bf))
    assert "apple" in again and "mike" not in again
    assert again.data_array == bf.data_array and again.hash_seeds == bf.hash_seeds
    assert (again.capacity, again.error_rate, len(again)) == (1000, 0.01, 2)
    with pytest.raises(NotImplementedError):
        again.filename


def test_subclass_overrides_add(path):
    class Counting(BloomFilter):
        def add(self, item):
            self.calls = getattr(self, "calls", 0) + 1
            return super().add(item)

    bf = Counting(100, 0.1, path)
    bf.update("abc")
    assert bf.calls == 3 and len(bf) == 3
    assert type(Counting.open(path)) is Counting
    assert type(bf.copy_template(path + "2")) is Counting
    assert repr(bf).startswith("<Counting capacity")


def test_union_and_intersection(path):
    a = BloomFilter(1000, 0.001, path, hash_seeds=SEEDS)
    b = BloomFilter(1000, 0.001, hash_seeds=SEEDS)  # in memory
    a.update(range(100))
    b.update(range(50, 150))
    both = a.copy_template(path + "2")
    assert both.union(a) is both and both.bit_count == a.bit_count
    both &= b
    assert all(key in both for key in range(50, 100))
    a |= b
    assert all(key in a for key in range(150))
    assert abs(len(a) - 150) < 8 and len(a) == a.approx_len
    before = b.data_array
    b |= b
    b.intersection(b)
    assert b.data_array == before and len(b) == 100


@pytest.mark.parametrize("other", [
    dict(capacity=1000, error_rate=0.01, hash_seeds=[1, 2, 4]), dict(capacity=2000, error_rate=0.01, hash_seeds=SEEDS),
    dict(capacity=1000, error_rate=0.01),
])
def test_unlike_filters_do_not_unite(bf, other):
    this, other = BloomFilter(1000, 0.01, hash_seeds=SEEDS), BloomFilter(**other)
    other.add("x")
    for combine in (this.union, this.intersection, this.__ior__, this.__iand__):
        with pytest.raises(ValueError, match="copy_template"):
            combine(other)
    assert len(this) == 0 == this.bit_count


def test_a_full_filter_has_no_estimate():
    bf = BloomFilter(1, 0.5, hash_seeds=[1], data_array=b"\xff" * 16)
    for ask in (lambda: bf.approx_len, lambda: len(bf)):
        with pytest.raises(IndeterminateCountError):
            ask()
    assert bf.bit_count == 128 and "anything" in bf


def test_closed(bf):
    other = BloomFilter(1000, 0.01)
    bf.close()
    bf.close()
    uses = [lambda: bf.add("x"), lambda: "x" in bf, lambda: len(bf), lambda: bf.update("x"), lambda: repr(bf), lambda: str(bf),
            lambda: bf.union(other), lambda: other.union(bf), lambda: bf.__ior__(other), lambda: pickle.dumps(bf), bf.sync,
            bf.clear_all, bf.fileno, bf.to_base64, lambda: bf.copy("x"), lambda: bf.copy_template("x"), lambda: bf.union(bf)]
    for name in ("capacity", "error_rate", "num_hashes", "num_bits", "bit_count", "approx_len", "hash_seeds", "data_array",
                 "bit_array", "filename", "read_only"):
        uses.append(lambda name=name: getattr(bf, name))
    for use in uses:
        with pytest.raises(ValueError, match="closed"):
            use()


def test_closed_while_in_use(bf):
    class Closing:
        def __hash__(self):
            bf.close()
            return 1

    def keys():
        yield "a"
        bf.close()
        yield "b"

    with pytest.raises(ValueError, match="closed"):
        bf.update(keys())
    bf = BloomFilter(10, 0.1)
    with pytest.raises(ValueError, match="closed"):
        bf.add(Closing())


def test_a_key_whose_hash_uses_the_filter(bf):
    class Nested:
        def __hash__(self):
            bf.add("inner")
            return 5

    bf.add(Nested())
    assert "inner" in bf and 5 in bf


def test_threads(bf):
    def work(part):
        for i in range(2000):
            bf.add(f"{part}-{i}")

    threads = [threading.Thread(target=work, args=(part,)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(f"{part}-{i}" in bf for part in range(4) for i in range(2000))


def test_many_small_filters_and_no_leaks(path):
    import resource

    def churn(n):
        for _ in range(n):
            BloomFilter(100_000, 0.01).add("x")
        gc.collect()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    first = churn(200)
    assert churn(2000) < first + 20_000
    kept = [BloomFilter(10, 0.1) for _ in range(70_000)]  # more than a process may have mappings
    assert len(kept) == 70_000
