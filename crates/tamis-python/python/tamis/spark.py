"""Filters built and asked by Spark, where the rows are.

    from tamis import spark

    seen = spark.build(df, "url", n=1_000_000_000, p=0.01)     # one filter, from all partitions
    new = spark.not_seen(other, "url", seen)                   # the rows whose key is not in it

Each partition builds a filter of the full size from its own rows; the executors unite these, round by round, until one is
left for the driver. The result is the filter that one process would have built from all keys, bit for bit; only its count
of keys is indeterminate, as after every union.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow

from ._frames import not_seen as rows_not_seen
from ._partial import Sent, Shape, key_columns
from ._tamis import Filter
from .errors import ParameterError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["build", "not_seen"]

# A task reads one partial filter after the other and holds two, however many there are. Four halve the rounds of two.
_UNITED_AT_ONCE = 4
# A value of Spark's is an array of the JVM's, with a few bytes around it.
_LARGEST_VALUE = 2**31 - 2**16


def build(df: DataFrame, subset: str | Sequence[str], n: int, p: float = 0.01, **options: Any) -> Filter:
    """One filter of the keys of a frame's column, or of the tuples of several.

    ``n`` is how many keys to expect in all; ``options`` are those of `Filter`, with ``key=`` for a secret of 16 bytes.
    A null is no key.
    """
    shape = Shape(n, p, options)
    rows, names = _numbered(df, subset)
    _refuse_what_spark_can_not_carry(shape.empty().nbytes, df)

    def partial(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        filter = shape.partial(batches, names)
        if filter is not None:
            yield pyarrow.record_batch([pyarrow.array([bytes(filter)], pyarrow.binary())], ["filter"])

    def unite(numbered: Iterable[tuple[int, bytes]]) -> Iterator[bytes]:
        filter = shape.united(part for _, part in numbered)
        if filter is not None:
            yield bytes(filter)

    def to_the_next_round(partition: int, parts: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
        return ((partition // _UNITED_AT_ONCE, part) for part in parts)

    parts = rows.select(names).mapInArrow(partial, "filter binary").rdd.map(lambda row: bytes(row.filter))
    while parts.getNumPartitions() > 1:
        left = -(-parts.getNumPartitions() // _UNITED_AT_ONCE)
        parts = parts.mapPartitionsWithIndex(to_the_next_round).partitionBy(left, lambda number: number).mapPartitions(unite)
    found = parts.collect()
    return shape.opened(found[0]) if found else shape.empty()


def not_seen(df: DataFrame, subset: str | Sequence[str], filter: Any, *, key: bytes | None = None) -> DataFrame:
    """The rows whose key is not in the filter, and those that have no key: lazy.

    ``filter`` is a `Filter`, whose bytes are broadcast, or the path of a file that every worker can open: it is mapped, so
    that the workers of a machine share its memory. ``key`` is the secret of a filter that keeps it apart.
    """
    rows, names = _numbered(df, subset)
    sent = df.sparkSession.sparkContext.broadcast(Sent(filter, key))

    def choose(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        for batch in batches:
            yield rows_not_seen(batch, names, sent.value)

    return rows.mapInArrow(choose, df.schema)


def _numbered(df: DataFrame, subset: str | Sequence[str]) -> tuple[DataFrame, list[str]]:
    """The frame with names that Spark's functions over Arrow can resolve, and those of the key's columns: they fail on a dot
    in a name, and on two columns of one name."""
    keys = key_columns(df.columns, subset)
    return df.toDF(*(f"c{i}" for i in range(len(df.columns)))), [f"c{df.columns.index(name)}" for name in keys]


def _refuse_what_spark_can_not_carry(size: int, df: DataFrame) -> None:
    """Before the rows are read, rather than after."""
    if size > _LARGEST_VALUE:
        raise ParameterError(
            f"n, p: expected a filter of at most {_LARGEST_VALUE:,} bytes, which is what fits a value of Spark's, got one of "
            f"{size:,}; shard the keys by hash and build one filter a shard (docs/scaling.md)"
        )
    setting = df.sparkSession.sparkContext.getConf().get("spark.driver.maxResultSize", "1g")
    limit = _bytes_of(setting)
    if 0 < limit < size:
        raise ParameterError(
            f"spark.driver.maxResultSize: expected more than the filter's {size:,} bytes, got {setting}; start the session with "
            "a larger one, or shard the keys by hash (docs/scaling.md)"
        )


def _bytes_of(setting: str) -> int:
    """A size as Spark's settings have it: "512m", "1g"."""
    number, unit = re.fullmatch(r"(\d+)([kmgtp]?)b?", setting.strip().lower()).groups()  # type: ignore[union-attr]
    return int(number) << 10 * " kmgtp".index(unit or " ")
