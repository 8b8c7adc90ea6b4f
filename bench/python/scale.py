#!/usr/bin/env python3
"""The example of docs/scaling.md: one filter of 10^8 URLs, built by Spark on this machine and by one process.

The URLs are made in the partitions. Prints the seconds of both builds, the bytes that Spark moved between its stages,
whether the two filters are equal byte for byte, and how many of 10^7 new URLs `not_seen` drops."""

import argparse
import os
import sys
import time

import pyarrow
import pyarrow.compute
from pyspark.sql import SparkSession, functions

import tamis
from tamis import spark as tamis_spark

PREFIX = "https://example.org/page/"


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--keys", type=int, default=10**8)
    options.add_argument("--new", type=int, default=10**7, help="URLs that are asked and were not added")
    options.add_argument("--partitions", type=int, default=8)
    options.add_argument("-p", type=float, default=0.01)
    wanted = options.parse_args()

    spark = session()
    seen, seconds = timed(lambda: tamis_spark.build(urls(spark, 0, wanted.keys, wanted.partitions), "url", wanted.keys, wanted.p))
    print(f"Spark, {wanted.partitions} partitions: {seconds:.1f} s; a filter of {len(bytes(seen)):,} bytes, {moved(spark):,} bytes moved")

    alone, seconds = timed(lambda: built_alone(wanted.keys, wanted.p))
    print(f"one process: {seconds:.1f} s")
    print(f"equal, byte for byte: {bytes(seen) == bytes(alone | tamis.Filter(wanted.keys, wanted.p))}")

    new = urls(spark, wanted.keys, wanted.keys + wanted.new, wanted.partitions)
    kept, seconds = timed(lambda: tamis_spark.not_seen(new, "url", seen).count())
    print(f"not_seen of {wanted.new:,} new URLs: {seconds:.1f} s; false yes: {1 - kept / wanted.new:.4%}")
    spark.stop()


def session():
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "6g")
    for setting in ("spark.driver.bindAddress", "spark.driver.host"):
        builder = builder.config(setting, "127.0.0.1")
    return builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()


def urls(spark, start, end, partitions):
    url = functions.concat(functions.lit(PREFIX), functions.col("id").cast("string"))
    return spark.range(start, end, 1, partitions).select(url.alias("url"))


def built_alone(keys, p, at_once=1_000_000):
    filter = tamis.Filter(keys, p)
    for start in range(0, keys, at_once):
        numbers = pyarrow.array(range(start, min(start + at_once, keys))).cast(pyarrow.string())
        filter.update(pyarrow.compute.binary_join_element_wise(PREFIX, numbers, ""))
    return filter


def moved(spark):
    """What the tasks wrote for those of the next stage."""
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    stages = context.statusStore().stageList(None, False, False, spark.sparkContext._gateway.new_array(spark._jvm.double, 0), None)
    return sum(stages.apply(i).shuffleWriteBytes() for i in range(stages.size()))


def timed(work):
    start = time.monotonic()
    result = work()
    return result, time.monotonic() - start


main()
