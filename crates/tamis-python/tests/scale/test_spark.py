"""Filters built and asked by a real Spark: a local cluster of four workers, each a process."""

import os
import secrets
import sys

import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

import tamis
from tamis import spark

URLS = [f"https://example.org/{i}" for i in range(20_000)]


@pytest.fixture(scope="module")
def session():
    # The workers' Python is this one, not the system's.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local-cluster[4,1,1024]").appName("tamis")
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "4",
        "spark.executor.memory": "512m",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def alone(keys, n, p, **options):
    """The filter of one process. A union's count is indeterminate: so is that of a union with nothing."""
    filter = tamis.Filter(n, p, **options)
    filter.update(keys)
    return bytes(filter | tamis.Filter(n, p, **options))


@pytest.fixture(scope="module")
def pages(session):
    return session.createDataFrame([(url, i % 100) for i, url in enumerate(URLS)], "url string, site int")


@pytest.mark.parametrize("partitions", [1, 2, 7, 17])
def test_the_union_is_the_filter_that_one_process_builds(pages, partitions):
    built = spark.build(pages.repartition(partitions), "url", n=30_000, p=0.01, partitions=partitions)
    assert bytes(spark.build(pages.repartition(partitions), "url", n=30_000))[128:] == bytes(built)[128:]
    if partitions == 1:
        built = built | tamis.Filter(30_000, 0.01)
    assert bytes(built) == alone(URLS, 30_000, 0.01)


def test_many_shapes(pages):
    frame = pages.repartition(5)
    assert bytes(spark.build(frame, "url", 30_000, 0.001, kind="bloom", seed=7)) == alone(URLS, 30_000, 0.001, kind="bloom", seed=7)
    rows = [(url, i % 100) for i, url in enumerate(URLS)]
    assert bytes(spark.build(frame, ["url", "site"], 30_000)) == alone(rows, 30_000, 0.01)
    assert bytes(spark.build(frame, "site", 1000)) == alone(range(100), 1000, 0.01)
    counted = spark.build(frame, "site", 1000, kind="counting")
    assert counted.contains_many(range(100)) == [True] * 100
    key = secrets.token_bytes(16)
    assert bytes(spark.build(frame, "url", 30_000, key=key)) == alone(URLS, 30_000, 0.01, key=key)


def test_nothing_and_nulls(session):
    frame = session.createDataFrame([], "url string")
    assert not spark.build(frame.repartition(3), "url", 1000)
    frame = session.createDataFrame([("a",), (None,), ("b",)], "url string").repartition(3)
    built = spark.build(frame, "url", 1000, 1e-9)
    assert built.contains_many(["a", "b", "", "None"]) == [True, True, False, False]
    left = spark.not_seen(frame, "url", built)
    assert [row.url for row in left.collect()] == [None], "a row without a key stays"


def test_not_seen(pages, tmp_path, session):
    seen = tamis.Filter(20_000, 1e-9)
    seen.update(URLS[::2])
    left = spark.not_seen(pages.repartition(6), "url", seen)
    assert left.schema == pages.schema
    assert sorted(row.url for row in left.collect()) == sorted(URLS[1::2])
    path = tmp_path / "seen.tamis"
    seen.save(path)
    assert spark.not_seen(pages.repartition(6), "url", str(path)).count() == 10_000
    assert spark.not_seen(pages, "url", path).filter("site = 1").count() == 200
    pairs = tamis.Filter(20_000, 1e-9)
    pairs.update([(url, i % 100) for i, url in enumerate(URLS[:500])])
    assert spark.not_seen(pages, ["url", "site"], pairs).count() == 19_500


def test_from_files(session, tmp_path):
    for i in range(6):
        table = pa.table({"url": URLS[i::6]})
        pyarrow.parquet.write_table(table, tmp_path / f"{i}.parquet")
    built = spark.build(session.read.parquet(str(tmp_path)), "url", 30_000)
    assert bytes(built) == alone(URLS, 30_000, 0.01)


def test_mistakes_are_said(pages):
    for options in ({"grow": True}, {"keyed": True}, {"delete": True, "kind": "cuckoo"}):
        with pytest.raises(tamis.ParameterError):
            spark.build(pages, "url", 1000, **options)
    with pytest.raises(tamis.ParameterError, match="filter: expected"):
        spark.not_seen(pages, "url", {"a"})
    with pytest.raises(tamis.ParameterError, match="hash_func"):
        spark.not_seen(pages, "url", tamis.Filter(10, hash_func=repr))
    with pytest.raises(Exception, match="nowhere"):
        spark.build(pages, "nowhere", 1000)
