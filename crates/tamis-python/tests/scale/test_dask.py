"""Filters built and asked by a real Dask: a local cluster of four workers, each a process."""

import dask
import dask.dataframe
import pandas as pd
import pytest
from dask.distributed import Client, LocalCluster
from reference import URLS, alone, united_with_nothing

import tamis
from tamis import dask as tamis_dask


@pytest.fixture(scope="module", autouse=True)
def client():
    # Four processes start at once, on a machine that may be busy.
    patience = dask.config.set({"distributed.comm.timeouts.connect": "300s", "distributed.comm.timeouts.tcp": "300s"})
    with patience, LocalCluster(n_workers=4, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        with Client(cluster) as client:
            yield client


def pages(partitions):
    frame = pd.DataFrame({"url": URLS, "site": [i % 100 for i in range(len(URLS))]})
    return dask.dataframe.from_pandas(frame, npartitions=partitions)


@pytest.mark.parametrize("partitions", [1, 2, 7, 16])
def test_the_union_is_the_filter_that_one_process_builds(partitions):
    built = tamis_dask.build(pages(partitions), "url", n=30_000, p=0.01)
    assert partitions == 1 or bytes(built) == alone(URLS, 30_000)
    assert united_with_nothing(built, 30_000) == alone(URLS, 30_000)


def test_many_shapes():
    frame = pages(5)
    assert bytes(tamis_dask.build(frame, "url", 30_000, kind="bloom", seed=7)) == alone(URLS, 30_000, kind="bloom", seed=7)
    rows = [(url, i % 100) for i, url in enumerate(URLS)]
    assert bytes(tamis_dask.build(frame, ["url", "site"], 30_000)) == alone(rows, 30_000)
    assert bytes(tamis_dask.build(frame, "site", 1000)) == alone(range(100), 1000)


def test_not_seen(tmp_path):
    seen = tamis.Filter(20_000, 1e-9)
    seen.update(URLS[::2])
    left = tamis_dask.not_seen(pages(6), "url", seen).compute()
    assert left["url"].tolist() == URLS[1::2] and left.index.tolist() == list(range(1, 20_000, 2))
    path = tmp_path / "seen.tamis"
    seen.save(path)
    assert len(tamis_dask.not_seen(pages(6), "url", path)) == 10_000


def test_nothing_and_nulls():
    frame = dask.dataframe.from_pandas(pd.DataFrame({"url": ["a", None, "b"]}), npartitions=3)
    built = tamis_dask.build(frame, "url", 1000, 1e-9)
    assert built.contains_many(["a", "b", "", "None", "nan"]) == [True, True, False, False, False]
    assert tamis_dask.not_seen(frame, "url", built).compute()["url"].isna().tolist() == [True]
    assert not tamis_dask.build(frame[frame["url"] == "none"], "url", 1000)


def test_mistakes_are_said():
    for options in ({"grow": True}, {"keyed": True}, {"key_file": "key"}, {"hash_func": str}, {"delete": True, "kind": "cuckoo"}):
        with pytest.raises(tamis.ParameterError):
            tamis_dask.build(pages(2), "url", 1000, **options)
    with pytest.raises(tamis.ParameterError, match="filter: expected"):
        tamis_dask.not_seen(pages(2), "url", {"a"})
