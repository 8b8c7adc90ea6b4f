"""Filters built and asked by a real Spark: a cluster of four workers, each with a JVM and a Python of its own."""

import os
import pathlib
import re
import sys

import pyspark
import pytest
from pyspark.sql import SparkSession, functions
from reference import URLS, alone, united_with_nothing

import tamis
from tamis import spark as tamis_spark

SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.maxResultSize": "64m",
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    # The first job waits for all four: a cluster expects as many cores as this, and none if nothing is said.
    "spark.cores.max": "4",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "600s",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.sql.shuffle.partitions": "4",
    "spark.ui.enabled": "false",
}


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    # Workers write to Spark's home: one of ours, with what the package installed.
    home, installed = tmp_path_factory.mktemp("spark"), pathlib.Path(pyspark.__file__).parent
    for part in ("bin", "jars"):
        (home / part).symlink_to(installed / part)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("SPARK_HOME", str(home))
        environment.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        # The workers' Python is this one, which has Tamis.
        environment.setenv("PYSPARK_PYTHON", sys.executable)
        environment.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
        builder = SparkSession.builder.master("local-cluster[4,1,512]")
        session = builder.config(map=SETTINGS).getOrCreate()
    yield session
    session.stop()


def pages(spark, partitions):
    number = functions.col("id")
    url = functions.concat(functions.lit("https://example.org/"), number.cast("string"))
    return spark.range(0, len(URLS), 1, partitions).select(url.alias("url"), (number % 100).alias("site"))


def test_there_are_four_workers(spark):
    def process(_):
        yield os.getpid(), os.getppid(), sys.executable

    found = set(spark.sparkContext.parallelize(range(64), 64).mapPartitions(process).collect())
    assert len({parent for _, parent, _ in found}) == 4 and {python for *_, python in found} == {sys.executable}


# Of 17, five are left after a round, then two, then one.
@pytest.mark.parametrize("partitions", [1, 2, 7, 17])
def test_the_union_is_the_filter_that_one_process_builds(spark, partitions):
    built = tamis_spark.build(pages(spark, partitions), "url", n=30_000, p=0.01)
    assert partitions == 1 or bytes(built) == alone(URLS, 30_000)
    assert united_with_nothing(built, 30_000) == alone(URLS, 30_000)


def test_many_shapes(spark):
    frame = pages(spark, 5)
    for options in ({"kind": "bloom", "seed": 7}, {"kind": "counting"}):
        assert bytes(tamis_spark.build(frame, "url", 30_000, **options)) == alone(URLS, 30_000, **options)
    pairs = [(url, i % 100) for i, url in enumerate(URLS)]
    assert bytes(tamis_spark.build(frame, ["url", "site"], 30_000)) == alone(pairs, 30_000)
    assert bytes(tamis_spark.build(frame, "site", 1000)) == alone(range(100), 1000)


def test_rows_that_were_shuffled_before(spark):
    """The number of partitions is known only when the shuffle has run."""
    distinct = pages(spark, 6).union(pages(spark, 3)).distinct()
    assert united_with_nothing(tamis_spark.build(distinct, "url", 30_000), 30_000) == alone(URLS, 30_000)


def test_not_seen(spark, tmp_path):
    seen = tamis.Filter(20_000, 1e-9)
    seen.update(URLS[::2])
    path = tmp_path / "seen.tamis"
    seen.save(path)
    frame = pages(spark, 6).withColumn("tags", functions.array("url", functions.lit(None)))
    for filter in (seen, path, str(path)):
        left = tamis_spark.not_seen(frame, "url", filter)
        assert left.schema == frame.schema
        assert [row.asDict() for row in left.collect()] == [
            {"url": url, "site": i % 100, "tags": [url, None]} for i, url in enumerate(URLS) if i % 2
        ]


def test_tuples_are_not_seen(spark):
    seen = tamis_spark.build(pages(spark, 4).where("site < 60"), ["site", "url"], 20_000, 1e-9)
    left = tamis_spark.not_seen(pages(spark, 3), ["site", "url"], seen)
    assert {row.site for row in left.collect()} == set(range(60, 100))
    assert tamis_spark.not_seen(pages(spark, 3), ["url", "site"], seen).count() == 20_000


def test_a_secret_that_is_kept_apart(spark):
    secret = bytes(range(16))
    frame = pages(spark, 3)
    built = tamis_spark.build(frame, "url", 30_000, key=secret)
    assert bytes(built) == alone(URLS, 30_000, key=secret)
    assert tamis_spark.not_seen(frame, "url", built, key=secret).count() == 0


def test_the_examples_of_the_page_run(spark, tmp_path):
    page = pathlib.Path(__file__).resolve().parents[4] / "docs" / "scaling.md"
    whole, shards = re.findall(r"^```py\n(.*?)^```$", page.read_text(), re.S | re.M)
    known = {"df": pages(spark, 3).where("site < 5"), "other": pages(spark, 2).where("site < 7")}
    new = URLS[5::100] + URLS[6::100]
    exec(whole.replace("/shared/", f"{tmp_path}/").replace("1_000_000_000", "1_000"), known)
    assert set(new) >= {row.url for row in known["new"].collect()} > set()
    exec(shards.replace("/shared/", f"{tmp_path}/").replace("1024, 10**12", "8, 10**4"), known)
    assert set(new) >= {row.url for row in known["new"].collect()} > set()
    assert len(list(tmp_path.glob("seen-*.tamis"))) == 8


def test_nothing_and_nulls(spark):
    frame = spark.createDataFrame([("a", 1.5), (None, float("nan")), ("b", None)], "`the.url` string, `a``b` double")
    built = tamis_spark.build(frame, "the.url", 1000, 1e-9)
    assert built.contains_many(["a", "b", "", "None", "nan"]) == [True, True, False, False, False]
    assert [row[0] for row in tamis_spark.not_seen(frame, "the.url", built).collect()] == [None]
    floats = tamis_spark.build(frame, "a`b", 1000, 1e-9)
    assert floats.contains_many([1.5, 0.0]) == [True, False]
    assert tamis_spark.not_seen(frame, "a`b", floats).count() == 2
    pairs = tamis_spark.build(frame, ["a`b", "the.url"], 1000, 1e-9)
    assert pairs.contains_many([(1.5, "a"), (None, "b"), (None, None)]) == [True, True, False]
    joined = frame.join(frame.withColumnRenamed("the.url", "url"), functions.lit(True))
    left = tamis_spark.not_seen(joined, "url", built)
    assert left.columns == ["the.url", "a`b", "url", "a`b"] and left.count() == 3
    for none in (frame.where("false"), spark.createDataFrame([], "`the.url` string")):
        assert not tamis_spark.build(none, "the.url", 1000)
        assert tamis_spark.not_seen(none, "the.url", built).collect() == []


def test_mistakes_are_said(spark, tmp_path):
    frame = pages(spark, 2)
    for options in ({"grow": True}, {"keyed": True}, {"key_file": tmp_path / "key"}, {"hash_func": str}, {"kind": "cuckoo"}):
        with pytest.raises(tamis.ParameterError):
            tamis_spark.build(frame, "url", 1000, **options)
    twice = frame.select("url", "url")
    for have, subset in ((frame, "link"), (frame, []), (frame, ["url", "link"]), (twice, "url")):
        with pytest.raises(tamis.ParameterError, match="subset: expected"):
            tamis_spark.build(have, subset, 1000)
        with pytest.raises(tamis.ParameterError, match="subset: expected"):
            tamis_spark.not_seen(have, subset, tamis.Filter(10))
    with pytest.raises(tamis.ParameterError, match="filter: expected"):
        tamis_spark.not_seen(frame, "url", {"a"})


def test_filters_that_spark_can_not_carry_are_refused_at_once(spark):
    unread = pages(spark, 2).select(functions.raise_error(functions.lit("rows were read")).alias("url"))
    with pytest.raises(tamis.ParameterError, match=r"maxResultSize: expected more than .* got 64m"):
        tamis_spark.build(unread, "url", 60_000_000)
    with pytest.raises(tamis.ParameterError, match="a value of Spark's.*shard"):
        tamis_spark.build(unread, "url", 2_000_000_000)


@pytest.mark.parametrize(
    "setting,size", [("0", 0), ("17", 17), ("17b", 17), ("3k", 3 << 10), ("512m", 512 << 20), ("1g", 1 << 30), ("2TB", 2 << 40)]
)
def test_sizes_in_settings(setting, size):
    assert tamis_spark._bytes_of(setting) == size
