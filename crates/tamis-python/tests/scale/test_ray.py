"""Filters built and asked by a real Ray of four processes."""

import os

# Ray looks at these when it is imported. It gives its processes some seconds to start, and a busy machine needs more.
os.environ |= {"RAY_raylet_start_wait_time_s": "300", "RAY_agent_register_timeout_ms": "300000"}

import pyarrow  # noqa: E402
import pytest  # noqa: E402
import ray  # noqa: E402
from reference import URLS, alone, united_with_nothing  # noqa: E402

import tamis  # noqa: E402
from tamis import ray as tamis_ray  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def four_processes():
    ray.init(num_cpus=4, include_dashboard=False, object_store_memory=256 << 20, configure_logging=False)
    yield
    ray.shutdown()


def pages(blocks):
    ends = [len(URLS) * i // blocks for i in range(blocks + 1)]
    table = pyarrow.table({"url": URLS, "site": [i % 100 for i in range(len(URLS))]})
    return ray.data.from_arrow([table.slice(start, end - start) for start, end in zip(ends, ends[1:])])


@pytest.mark.parametrize("blocks", [1, 2, 7])
def test_the_union_is_the_filter_that_one_process_builds(blocks):
    assert pages(blocks).num_blocks() == blocks
    built = tamis_ray.build(pages(blocks), "url", n=30_000, p=0.01)
    assert blocks == 1 or bytes(built) == alone(URLS, 30_000)
    assert united_with_nothing(built, 30_000) == alone(URLS, 30_000)


def test_tuples_and_a_secret():
    secret = bytes(range(16))
    pairs = [(url, i % 100) for i, url in enumerate(URLS)]
    built = tamis_ray.build(pages(3), ["url", "site"], 30_000, kind="bloom", key=secret)
    assert bytes(built) == alone(pairs, 30_000, kind="bloom", key=secret)
    assert tamis_ray.not_seen(pages(2), ["url", "site"], built, key=secret).count() == 0


def test_not_seen(tmp_path):
    seen = tamis.Filter(20_000, 1e-9)
    seen.update(URLS[::2])
    path = tmp_path / "seen.tamis"
    seen.save(path)
    for filter in (seen, path):
        left = tamis_ray.not_seen(pages(6), "url", filter).take_all()
        assert sorted(row["url"] for row in left) == sorted(URLS[1::2])
        assert all(row["url"].endswith(str(row["site"] % 10)) for row in left)


def test_nothing_and_nulls():
    rows = ray.data.from_arrow([pyarrow.table({"url": ["a", None]}), pyarrow.table({"url": ["b"]})])
    built = tamis_ray.build(rows, "url", 1000, 1e-9)
    assert built.contains_many(["a", "b", "", "None", "nan"]) == [True, True, False, False, False]
    assert tamis_ray.not_seen(rows, "url", built).take_all() == [{"url": None}]
    assert not tamis_ray.build(ray.data.from_arrow(pyarrow.table({"url": pyarrow.array([], pyarrow.string())})), "url", 1000)


def test_mistakes_are_said():
    with pytest.raises(tamis.ParameterError, match="options: expected"):
        tamis_ray.build(pages(2), "url", 1000, grow=True)
    with pytest.raises(tamis.ParameterError, match="filter: expected"):
        tamis_ray.not_seen(pages(2), "url", {"a"})
