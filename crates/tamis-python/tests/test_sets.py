"""Filters as sets, and as Python objects: united, compared, derived from, pickled, shown."""

import copy
import gc
import pickle
import random
import sys
import weakref

import pytest

import tamis

BITS = ["blocked", "bloom", "counting"]


def of(keys, **options):
    f = tamis.Filter(1000, 1e-9, **options)
    f.update(keys)
    return f


@pytest.mark.parametrize("kind", BITS)
def test_union_and_intersection_are_those_of_sets(kind):
    random.seed(kind)
    for _ in range(20):
        sets = [set(random.sample(range(60), random.randrange(40))) for _ in range(3)]
        filters = [of(s, kind=kind) for s in sets]
        a, b, c = filters
        before = [bytes(f) for f in filters]
        either, both = a.union(b, c), a.intersection(b, c)
        assert {k for k in range(60) if k in either} == sets[0] | sets[1] | sets[2]
        assert sets[0] & sets[1] & sets[2] <= {k for k in range(60) if k in both}
        # Lists of keys in the place of filters.
        assert a.union(list(sets[1]), c) == either
        assert a.intersection(list(sets[1]), c) == both
        assert [bytes(f) for f in filters] == before, "nobody was changed"
    assert a.union() == a and a.intersection() == a


@pytest.mark.parametrize("kind", BITS)
def test_subsets_are_those_of_sets(kind):
    random.seed(kind)
    for _ in range(50):
        x, y = (set(random.sample(range(8), random.randrange(8))) for _ in range(2))
        a, b = of(x, kind=kind), of(y, kind=kind)
        assert (a <= b, a < b, a >= b, a > b, a == b) == (x <= y, x < y, x >= y, x > y, x == y)
        assert a.issubset(b) == (x <= y) and a.issuperset(b) == (x >= y)
        assert a <= a and a >= a and not a < a


def test_a_counter_is_no_bit():
    a, b = of(["x", "x", "x"], kind="counting"), of(["x"], kind="counting")
    assert a <= b and b <= a


def test_what_is_not_comparable():
    a = of(["x"])
    for other in (of(["x"], seed=1), tamis.Filter(2000, 1e-9), of(["x"], kind="bloom"), of(["x"], ignore_case=True)):
        with pytest.raises(tamis.UnlikeError):
            a <= other
    for kind in ("cuckoo", "growing"):
        f = of(["x"], kind=kind)
        with pytest.raises(tamis.UnableError):
            f.issubset(f.copy())
        with pytest.raises(tamis.UnableError):
            f <= f
    for other in ({"x"}, None, "x"):
        with pytest.raises(TypeError):
            a <= other
        with pytest.raises(TypeError):
            a.issubset(other)
    closed = of([])
    closed.close()
    with pytest.raises(tamis.ClosedError):
        a <= closed


def test_growing_filters_are_united_where_there_is_room():
    a, b = (tamis.Filter(1000, 1e-6, grow=True) for _ in range(2))
    a.update(range(500))
    b.update(range(400, 900))
    both = a | b
    assert all(both.contains_many(range(900))) and a.union(b) == both
    assert sum(both.contains_many(range(1000, 50_000))) <= 3
    a.update(range(1000, 1400))
    before = bytes(a)
    with pytest.raises(tamis.FullError):
        a |= b
    assert bytes(a) == before


def test_update_takes_several():
    f = tamis.Filter(1000)
    f.update()
    f.update(["a"], ("b",), iter(["c"]), {"d": 1}, threads=2)
    assert len(f) == 4
    with pytest.raises(tamis.KeyTypeError):
        f.update(["e"], "one key")
    assert "e" in f


@pytest.mark.parametrize("kind", [*BITS, "cuckoo", "growing"])
def test_approx_items(kind):
    f = tamis.Filter(10_000, 0.001, kind=kind)
    assert f.approx_items == 0
    f.update(range(5000))
    assert f.approx_items == pytest.approx(5000, rel=0.05)


class Seen(tamis.Filter):
    """A class with attributes of its own."""

    def __init__(self, n, p=None, **options):
        self.name = "unnamed"

    def add(self, key):
        return super().add(key.lower())


class Named(tamis.Filter):
    """A class with arguments of its own."""

    def __new__(cls, name):
        this = super().__new__(cls, 1000)
        this.name = name
        return this


def test_derived_classes():
    seen = Seen(1000, 0.01)
    seen.name = ["mine"]
    assert seen.add("KEY") and "key" in seen and "KEY" not in seen
    seen.save("seen.tamis")
    assert isinstance(Seen.open("seen.tamis"), Seen) and isinstance(Seen.load("seen.tamis"), Seen)
    assert isinstance(Seen.create("new.tamis", 10), Seen)
    assert isinstance(Seen.from_bytes(bytes(seen)), Seen) and isinstance(Seen.from_base64(seen.to_base64()), Seen)
    for made in (seen | seen.copy(), seen & seen, seen.union(["x"]), seen.intersection(["key"])):
        assert type(made) is Seen and "key" in made
    for again in (copy.copy(seen), seen.copy(), copy.deepcopy(seen), pickle.loads(pickle.dumps(seen))):
        assert type(again) is Seen and again == seen and again.name == ["mine"]
    assert copy.copy(seen).name is seen.name and copy.deepcopy(seen).name is not seen.name
    assert repr(seen).startswith("<") and "Seen blocked" in repr(seen)
    named = Named("n")
    assert named.name == "n" and pickle.loads(pickle.dumps(named)).name == "n" and named.copy().name == "n"
    assert isinstance(Named.from_bytes(bytes(named)), Named)
    assert tamis.Guard(seen).filter is seen
    with pytest.raises(AttributeError):
        tamis.Filter(10).name = "no"


def test_made_is_not_taken_twice():
    for wrong in ("1000", 1.5, None, b"x", object()):
        with pytest.raises(TypeError):
            tamis.Filter(wrong)
    with pytest.raises(TypeError):
        tamis.Filter.__new__(dict, 10)


def test_weak_references_and_cycles():
    f = tamis.Filter(10)
    known = weakref.WeakValueDictionary({"f": f})
    assert known["f"] is f
    g = tamis.Filter(10, hash_func=lambda key, hold=[]: hold.append(g) or repr(key))
    g.add(1)
    gone = weakref.ref(g)
    del f, g
    gc.collect()
    assert not known and gone() is None


def test_sizes():
    small, large = tamis.Filter(10), tamis.Filter(1_000_000)
    assert sys.getsizeof(large) - sys.getsizeof(small) == large.nbytes - small.nbytes
    with tamis.Filter.create("f.tamis", 1_000_000) as mapped:
        assert sys.getsizeof(mapped) < 1000
    assert sys.getsizeof(mapped) < 1000, "closed"


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("kind", [*BITS, "cuckoo", "growing"])
def test_pickles(protocol, kind):
    f = of(["a", 1, 2.5, ("x", 1)], kind=kind)
    again = pickle.loads(pickle.dumps(f, protocol))
    assert again == f and len(again) == 4 and again.add("b") and "b" not in f


def test_pickles_with_the_bytes_beside_them():
    f = tamis.Filter(1_000_000)
    f.update(range(1000))
    buffers = []
    data = pickle.dumps(f, 5, buffer_callback=buffers.append)
    assert len(data) < 200 and sum(len(b.raw()) for b in buffers) == len(bytes(f))
    for beside in (buffers, [bytes(b) for b in buffers], [bytearray(b) for b in buffers]):
        assert pickle.loads(data, buffers=beside) == f
    with pytest.raises(tamis.CorruptError):
        pickle.loads(data, buffers=[b"something else"])
    assert len(pickle.dumps(f, 5)) > f.nbytes


def test_filters_are_updated_with_others_and_with_keys():
    a, b = of(["left", "both"]), of(["right", "both"])
    a.update(b, ["third"])
    assert a.contains_many(["left", "right", "both", "third"]) == [True] * 4
    a.update(a)
    a.intersection_update(b, ["right", "else"])
    assert a.contains_many(["left", "right", "both", "else"]) == [False, True, False, False]
    with pytest.raises(tamis.UnlikeError):
        a.update(tamis.Filter(5, 0.1))
    with pytest.raises(tamis.UnlikeError):
        a.intersection_update(tamis.Filter(5, 0.1))
    a.save("a.tamis")
    with tamis.Filter.open("a.tamis") as read_only, pytest.raises(tamis.ReadOnlyError):
        read_only.update(b)
    assert tamis.Filter.load_bytes(b.save_bytes()) == b and b.save_bytes() == bytes(b)


def test_old_pickles_are_read():
    f = of(["key"])

    class Old:
        """As they were made before there was `hash_func`."""

        def __reduce__(self):
            return tamis.Filter.from_bytes, (bytes(f),)

    assert pickle.loads(pickle.dumps(Old())) == f


def test_pictures():
    f = tamis.Filter(1000)
    f.update(range(500))
    picture = f._repr_html_()
    assert "500 of 1000" in picture and 'width="60.0"' in picture and "<svg" in picture
    f.update(range(5000))
    assert "#c0392b" in f._repr_html_(), "above its capacity"
    with tamis.Filter.create("<script>&'\".tamis", 10) as f:
        picture = f._repr_html_()
        assert "<script>" not in picture and "&lt;script&gt;&amp;" in picture
    assert "closed" in f._repr_html_()
    assert "about" in (of(["x"]) | of(["y"]))._repr_html_()


def test_version():
    assert tamis.__version__.count(".") == 2


def test_nothing_is_imported_that_was_not_asked_for():
    import subprocess

    heavy = "pandas polars numpy pyarrow scrapy dask pyspark asyncio".split()
    code = f"import sys, tamis; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_progress():
    for keys in (range(2_000_000), list(range(100)), iter([])):
        told = []
        f = tamis.Filter(1000)
        n = len(list(keys)) if hasattr(keys, "__len__") else 0
        f.update(keys, progress=told.append)
        assert told[-1] == n and told == sorted(told)
    told = []
    tamis.Filter(10).update([1, 2], [3], progress=told.append)
    assert told[-1] == 3
    assert tamis.build(range(10), progress=told.append) and told[-1] == 10
    tamis.Filter(10).update([1], progress=False)
    with pytest.raises(tamis.ParameterError, match="progress"):
        tamis.Filter(10).update([1], progress=3)

    def stop(done):
        raise RuntimeError("enough")

    f = tamis.Filter(10)
    with pytest.raises(RuntimeError, match="enough"):
        f.add_many(["a"], progress=stop)
    assert "a" in f


def test_progress_on_stderr(capfd):
    tamis.Filter(10).update([1, 2, 3], progress=True)
    assert "3 keys" in capfd.readouterr().err
