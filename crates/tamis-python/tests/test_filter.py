"""One key at a time, and the filter as a whole."""

import copy
import pickle

import pytest

import tamis

KINDS = ["blocked", "bloom", "counting", "cuckoo", "growing"]


def filled(keys, **options):
    f = tamis.Filter(1000, 0.01, **options)
    f.update(keys)
    return f


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("p", [0.1, 0.01, 1e-6])
def test_what_was_added_is_in_and_the_rate_is_kept(kind, p):
    n = 20_000
    f = tamis.Filter(n, p, kind=kind)
    new = sum(f.add(f"key {i}") for i in range(n))
    assert all(f"key {i}" in f for i in range(n))
    assert f.kind == kind and len(f) >= new >= n * (1 - 2 * p)
    wrong = sum(f.contains_many([f"other {i}" for i in range(50_000)]))
    # Four standard errors.
    assert wrong / 50_000 <= p + 4 * (p / 50_000) ** 0.5
    assert f.p_now <= p * 1.05 and f.p == p


def test_keys_are_their_bytes():
    f = tamis.Filter(1000, 1e-9)
    assert f.add("é") and not f.add("é".encode())
    assert bytearray("é".encode()) in f and memoryview("é".encode()) in f
    assert f.add("") and b"" in f
    assert f.add(258) and (258).to_bytes(8, "little") in f and "258" not in f
    assert f.add(-1) and b"\xff" * 8 in f and 2**64 - 1 in f
    assert f.add(-(2**63)) and 2**63 in f
    # A str whose UTF-8 is not in it yet, and one of every width.
    for text in ["ascii", "latin ÿ", "wide €", "wider 🦀", "nul \0 inside", "x" * 100_000]:
        assert f.add(text) and text.encode() in f

    class Text(str):
        pass

    class Number:
        def __index__(self):
            return 258

    assert Text("é") in f and Number() in f


@pytest.mark.parametrize("bad", [None, object(), ["key"], {}, 1j, {"key"}])
def test_what_is_no_key_says_how_to_encode_it(bad):
    f = tamis.Filter(1000)
    for ask in (f.add, f.__contains__, lambda key: f.add_many([key]), lambda key: f.contains_many([key])):
        with pytest.raises(tamis.KeyTypeError, match="str, bytes, int, float.*encode") as error:
            ask(bad)
        assert isinstance(error.value, TypeError) and isinstance(error.value, tamis.TamisError)
    assert len(f) == 0


@pytest.mark.parametrize("bad", [2**64, -(2**63) - 1, 10**100])
def test_integers_have_64_bits(bad):
    with pytest.raises(tamis.KeyRangeError, match="2\\*\\*64-1.*encode") as error:
        tamis.Filter(1000).add(bad)
    assert isinstance(error.value, OverflowError)


def test_text_without_utf8():
    f = tamis.Filter(1000)
    with pytest.raises(tamis.KeyEncodingError, match="surrogate"):
        f.add("\ud800")
    with pytest.raises(tamis.KeyEncodingError):
        f.contains_many(["fine", "\udcff"])


def test_an_error_of_a_key_is_handed_on():
    class Broken:
        def __index__(self):
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        tamis.Filter(1000).add(Broken())


def test_the_kind_follows_from_the_need(tmp_path):
    assert tamis.Filter(1000).kind == "blocked"
    assert tamis.Filter(1000, delete=True).kind == "cuckoo"
    assert tamis.Filter(1000, grow=True).kind == "growing"
    assert tamis.Filter(1000, delete=True, kind="counting").kind == "counting"
    assert tamis.Filter(1000, size=10_000).nbytes <= 10_000
    # Only counting filters can be changed in their file and remove keys.
    assert tamis.Filter.create(tmp_path / "f", 1000, delete=True).kind == "counting"
    for options, text in [
        (dict(delete=True, grow=True), "delete, grow"),
        (dict(delete=True, kind="bloom"), "kind"),
        (dict(kind="magic"), "kind: expected one of bloom"),
        (dict(p=1.5), "rate"),
        (dict(p=0.01, size=1000), "p, size"),
        (dict(seed=1, keyed=True), "seed"),
        (dict(key=b"short"), "16 bytes"),
        (dict(seed=-1), "0 to 2"),
    ]:
        with pytest.raises(tamis.ParameterError, match=text) as error:
            tamis.Filter(1000, **options)
        assert isinstance(error.value, ValueError)
    with pytest.raises(tamis.UnableError, match="build"):
        tamis.Filter(1000, kind="fuse")
    with pytest.raises(tamis.ParameterError):
        tamis.Filter(-1)
    with pytest.raises(TypeError):
        tamis.Filter("many")
    with pytest.raises(tamis.TamisError):
        tamis.Filter(2**60, 1e-9)


def test_a_growing_filter_keeps_its_rate():
    f = tamis.Filter(1000, 0.001, grow=True)
    f.update(range(50_000))
    assert all(f.contains_many(list(range(50_000)))) and f.p_now <= 0.001
    # A copy has the layers in one piece.
    assert f.copy() == f and tamis.Filter.from_bytes(bytes(f)) == f


@pytest.mark.parametrize("kind", ["cuckoo", "counting"])
def test_removing(kind):
    f = tamis.Filter(1000, 1e-4, kind=kind)
    assert f.add("key") and not f.add("key")
    assert f.count("key") == 2
    assert f.remove("key") and "key" in f
    assert f.remove("key") and "key" not in f
    assert not f.remove("key")
    for ask in (tamis.Filter(10).remove, tamis.Filter(10).count):
        with pytest.raises(tamis.UnableError, match="cuckoo") as error:
            ask("key")
        assert isinstance(error.value, TypeError)


def test_a_full_filter_refuses_and_loses_nothing():
    f = tamis.Filter(100, 0.01, kind="cuckoo")
    taken = []
    with pytest.raises(tamis.FullError):
        for i in range(10_000):
            f.add(i)
            taken.append(i)
    assert all(f.contains_many(taken)) and len(taken) >= 100
    f.clear()
    with pytest.raises(tamis.TooManyCopiesError):
        for _ in range(100):
            f.add("key")


@pytest.mark.parametrize("kind", ["blocked", "bloom", "counting", "cuckoo"])
def test_sets(kind):
    a, b = filled(["left", "both"], kind=kind), filled(["right", "both"], kind=kind)
    union, common = a | b, a & b
    assert all(union.contains_many(["left", "right", "both"]))
    assert "both" in common and "left" not in common and "right" not in common
    assert len(a) == 2 and "right" not in a
    if kind != "cuckoo":  # which counts its entries
        for f in (union, common):
            with pytest.raises(tamis.IndeterminateCountError, match="estimate") as error:
                len(f)
            assert isinstance(error.value, ValueError)
            assert f and not f.info()["keys_counted"]
    same = a
    same |= b
    assert same is a and a == union
    a &= b
    assert "both" in a and "left" not in a
    assert (a | a) == a and (a & a) == a
    a |= a
    assert a == a.copy()


def test_unlike_filters_are_not_combined():
    a = filled(["key"])
    for b in [
        tamis.Filter(2000, 0.01),
        tamis.Filter(1000, 0.01, seed=1),
        tamis.Filter(1000, 0.01, kind="bloom"),
        tamis.Filter(1000, 0.01, keyed=True),
    ]:
        for combine in (a.__or__, a.__and__, a.__ior__, a.__iand__):
            with pytest.raises(tamis.UnlikeError, match="differ") as error:
                combine(b)
            assert isinstance(error.value, ValueError)
        assert a != b
    with pytest.raises(TypeError):
        a | {"key"}
    assert a != {"key"} and len(a) == 1
    with pytest.raises(tamis.UnableError):
        tamis.Filter(10, grow=True) & tamis.Filter(10, grow=True)


@pytest.mark.parametrize("kind", KINDS)
def test_copies_are_equal_and_apart(kind):
    f = filled(range(500), kind=kind)
    for g in [
        f.copy(),
        copy.copy(f),
        copy.deepcopy(f),
        pickle.loads(pickle.dumps(f)),
        pickle.loads(pickle.dumps(f, protocol=0)),
        tamis.Filter.from_bytes(bytes(f)),
        tamis.Filter.from_bytes(bytearray(bytes(f))),
        tamis.Filter.from_base64(f.to_base64()),
    ]:
        assert g == f and len(g) == len(f) and g.kind == kind
        g.add("new")
        assert g != f and "new" not in f
    with pytest.raises(TypeError):
        hash(f)


def test_clear_len_bool_repr_and_info():
    f = filled(["apple", "pear", "apple"])
    assert len(f) == 2 and f and f.fill == 0.002 and f.capacity == 1000
    assert repr(f) == "<tamis.Filter blocked, 2 of 1000 keys, p=0.01>"
    assert {"kind": "blocked", "keys": 2, "keys_counted": True, "seed": 0}.items() <= f.info().items()
    f.clear()
    assert len(f) == 0 and not f and "apple" not in f and f.p_now == 0
    assert f.path is None and not f.closed


def test_keyed_filters():
    key = bytes(range(16))
    f = tamis.Filter(1000, key=key)
    f.add("key")
    data = bytes(f)
    assert key not in data
    with pytest.raises(tamis.KeyNeededError):
        tamis.Filter.from_bytes(data)
    with pytest.raises(tamis.WrongKeyError):
        tamis.Filter.from_bytes(data, key=bytes(16))
    assert "key" in tamis.Filter.from_bytes(data, key=key)
    assert f.copy() == f
    with pytest.raises(tamis.KeyNeededError, match="from_bytes"):
        pickle.dumps(f)
    inside = tamis.Filter(1000, keyed=True)
    inside.add("key")
    assert "key" in pickle.loads(pickle.dumps(inside))
    assert inside != tamis.Filter(1000, keyed=True) and inside.info()["seed"] is None


def test_finished_lists():
    keys = [f"key {i}" for i in range(5000)]
    for kind in (None, "fuse", "ribbon"):
        f = tamis.build(keys + keys, 0.001, kind=kind)
        assert all(f.contains_many(keys)) and len(f) == 5000
        assert sum(f.contains_many(range(100_000))) < 200
        for change in (lambda: f.add("x"), lambda: f.update(["x"]), f.clear, lambda: f.remove("x")):
            with pytest.raises(tamis.UnableError):
                change()
    allow = [f"friend {i}" for i in range(20_000)]
    f = tamis.build(keys, 0.1, allow=allow)
    assert all(f.contains_many(keys)) and not any(f.contains_many(allow))
    with pytest.raises(tamis.ContradictionError, match="both="):
        tamis.build(keys, allow=[*allow, keys[0]])
    assert keys[0] in tamis.build(keys, allow=[keys[0]], both="block")
    assert keys[0] not in tamis.build(keys, allow=[keys[0]], both="allow")
    assert tamis.build(keys) == tamis.build(reversed(keys)) == tamis.build(keys, memory=1000)
    assert len(tamis.build([])) == 0
    for options in (dict(kind="fuse", allow=[]), dict(both="x"), dict(p=2.0)):
        with pytest.raises(tamis.ParameterError):
            tamis.build(keys, **options)
    with pytest.raises(tamis.UnableError):
        tamis.build(keys, kind="blocked")


def test_plans():
    plan = tamis.plan(1_000_000, 0.01)
    assert plan.kind == "blocked" and plan.n == 1_000_000 and plan.p <= 0.01
    assert plan.bytes == tamis.Filter(1_000_000, 0.01).nbytes
    assert plan.p_at(2_000_000) > plan.p and plan.bits_per_key == plan.bytes * 8 / plan.n
    assert tamis.plan(p=0.01, size=plan.bytes).n == pytest.approx(1_000_000, rel=0.01)
    assert tamis.plan(1000, finished=True).kind == "fuse"
    assert tamis.plan(1000, kind="ribbon").kind == "ribbon"
    for wrong in (dict(), dict(p=0.01), dict(n=1, p=0.1, size=1), dict(n=1, delete=True, finished=True)):
        with pytest.raises(tamis.ParameterError):
            tamis.plan(**wrong)


def test_a_guard_skips_what_is_not_there():
    store = {f"user {i}": i for i in range(1000)}
    f = tamis.Filter(1000, 0.1)
    f.update(store)
    guard = tamis.Guard(f)
    looked_up = []

    def load(key):
        looked_up.append(key)
        return store.get(key)

    assert all(guard.get(key, load) == value for key, value in store.items())
    looked_up.clear()
    absent = [f"stranger {i}" for i in range(1000)]
    assert all(guard.get(key, load) is None for key in absent)
    first = len(looked_up)
    assert 0 < first < 200  # a false alarm in ten
    assert all(guard.get(key, load) is None for key in absent)
    assert len(looked_up) == first  # each only once
    counts = guard.counts()
    assert counts["asked"] == 3000 and counts["false_alarms"] == counts["remembered"] == first
    assert counts["loaded"] == 1000 + first

    key = looked_up[0]
    store[key] = 7
    guard.add(key)
    assert guard.get(key, load) == 7 and key in guard.filter
    guard.forget_all()
    guard.forget("anything")

    def fails(key):
        raise ConnectionError("down")

    with pytest.raises(ConnectionError):
        guard.get("user 1", fails)
    f.close()
    with pytest.raises(tamis.ClosedError):
        guard.get("user 1", load)


def test_every_exception_is_a_tamis_error():
    for name in tamis.errors.__all__:
        assert issubclass(getattr(tamis, name), tamis.TamisError), name


def test_counting_becomes_the_blocked_filter_of_its_keys():
    counting = tamis.Filter(1000, kind="counting")
    blocked = tamis.Filter(1000, kind="blocked")
    counting.update(["apple", "pear", "fig"])
    counting.remove("pear")
    blocked.update(["apple", "fig"])
    assert counting.to_blocked() == blocked
    assert bytes(counting.to_blocked()) == bytes(blocked)
    with pytest.raises(tamis.UnableError, match="only a counting filter"):
        blocked.to_blocked()


def test_keys_that_somebody_made_collide_are_refused():
    """Two keys with one XXH3-128 hash: where the lower half of eight bytes is a public number, only the sum counts."""

    def colliding(which):
        key = bytearray(b"x" * 256)
        key[:8] = bytes.fromhex("b8fe6c39") + (0x61414141 + which).to_bytes(4, "little")
        key[64:72] = bytes.fromhex("7c01812c") + (0x61414141 - which).to_bytes(4, "little")
        return bytes(key)

    one, other = colliding(1), colliding(2)
    for both in [None, "block", "allow"]:
        for make in [list, iter]:
            with pytest.raises(tamis.CollisionError, match="keyed"):
                tamis.build(make([one, b"a"]), allow=make([other]), both=both)
        blocked = tamis.build([one, b"a"], allow=[other], both=both, keyed=True)
        assert one in blocked and other not in blocked
    assert one in tamis.build(iter([one, other])) and other in tamis.build([one, other])


def test_a_textbook_filter_of_given_numbers():
    toy = tamis.Filter(kind="bloom", bits=16, hashes=3, seed=7)
    assert (toy.capacity, toy.info()["bytes"]) == (4, 64)
    assert toy.add("apple") and "apple" in toy
    assert toy.p == tamis.plan(kind="bloom", bits=16, hashes=3).p == pytest.approx(0.165, abs=0.001)
    assert tamis.Filter(4, kind="bloom", bits=16).p == toy.p  # the best hashes follow
    assert tamis.Filter(kind="bloom", size=2, hashes=3).p == toy.p
    assert tamis.plan(1_000_000, kind="bloom", bits=20_000_000, hashes=10).p == pytest.approx(8.89e-5, rel=1e-3)
    for wrong, text in [
        (dict(bits=16, hashes=3), "kind="),
        (dict(kind="cuckoo", bits=16, hashes=3), "kind="),
        (dict(kind="bloom", hashes=3), "bits or size"),
        (dict(kind="bloom", bits=16), "hashes"),
        (dict(kind="bloom", bits=16, hashes=3, p=0.1), "p: expected none"),
        (dict(kind="bloom", bits=16, hashes=3, size=2), "bits, size"),
        (dict(kind="bloom", bits=0, hashes=3), "bits"),
        (dict(kind="bloom", bits=16, hashes=65), "hashes"),
        (dict(kind="bloom", bits=16, hashes=3, n=0), "keys"),
    ]:
        for make in (tamis.Filter, tamis.plan):
            with pytest.raises(ValueError, match=text):
                make(**wrong)
    with pytest.raises(TypeError, match="n: expected how many keys"):
        tamis.Filter()


def test_a_textbook_filter_in_a_file(tmp_path):
    with tamis.Filter.create(tmp_path / "toy.tamis", kind="bloom", bits=16, hashes=3) as toy:
        toy.add("apple")
    with tamis.Filter.open(tmp_path / "toy.tamis") as toy:
        assert "apple" in toy and toy.capacity == 4


def test_a_count_that_is_too_low_is_told():
    seen = tamis.Filter(1000, 0.01)
    seen.update(range(1000))
    assert seen.info()["keys_estimated"] is None
    seen.update(range(5000))
    info = seen.info()
    assert info["keys"] < 4500 and 4750 < info["keys_estimated"] < 5250 and info["fill"] > 4.7


@pytest.mark.parametrize("kind", ["bloom", "blocked", "counting", "cuckoo", "growing", "fuse", "ribbon"])
def test_an_explanation_ends_with_the_answer(kind):
    keys = [f"key{n}" for n in range(300)]
    if kind in ("fuse", "ribbon"):
        seen = tamis.build(keys, 0.1, kind=kind)
    else:
        seen = tamis.Filter(300, 0.1, kind=kind)
        seen.update(keys)
    for key in [f"key{n}" for n in range(900)]:
        told = seen.explain(key)
        assert (told["answer"] == "maybe") == (key in seen), told
        assert told["looks"] and told["kind"] == kind
    if kind == "bloom":
        bits = told["looks"][0]["bits"]
        assert len(bits) == 3 and all(bit["value"] in (0, 1) for bit in bits)
