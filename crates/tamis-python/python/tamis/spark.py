"""Filters built and asked by Spark, as far out as the rows are.

    from tamis import spark

    seen = spark.build(df, "url", n=1_000_000_000, p=0.01)     # one filter, from all partitions
    new = spark.not_seen(other, "url", seen)                   # the rows whose key is not in it

Each partition builds a filter of the full size from its own rows, as Arrow batches; these are united four at a time, on
the workers, until one is left for the driver, which never holds more than that and its bytes. The result is the filter
that one process would have built from all keys, bit for bit; only its count of keys is indeterminate, as after every
union. A filter travels whole, so this is for filters of up to 2 GB; docs/scaling.md says what to do beyond.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ._frames import not_seen as rows_not_seen
from ._partial import Shape, shipped, unshipped
from ._tamis import Filter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["build", "not_seen"]

# How many filters a worker unites at a time.
_FAN_IN = 4


def build(
    df: DataFrame,
    subset: str | Sequence[str],
    n: int,
    p: float = 0.01,
    *,
    partitions: int | None = None,
    **options: Any,
) -> Filter:
    """One filter of the keys of a DataFrame's column, or of the tuples of several.

    ``n`` is how many keys to expect in all; ``options`` are those of `Filter`, with ``key=`` for a secret of 16 bytes.
    A null is no key. Each partial filter has the full size, so partitions beyond ``partitions`` are read by fewer tasks:
    Spark's default parallelism if nothing is said, which is one a core.
    """
    shape = Shape(n, p, options)
    names = [subset] if isinstance(subset, str) else list(subset)

    def partial(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow
        from pyspark import TaskContext

        filter = shape.partial(batches, names)
        if filter is not None:
            context = TaskContext.get()
            assert context is not None
            yield pyarrow.record_batch({"part": [context.partitionId()], "filter": [bytes(filter)]})

    def unite(parts: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
        number = 0

        def filters() -> Iterator[bytes]:
            nonlocal number
            for number, data in parts:
                yield data

        all = shape.united(filters())
        if all is not None:
            yield number, bytes(all)

    keys = df.select(*names)
    keys = keys.coalesce(partitions or df.sparkSession.sparkContext.defaultParallelism)
    parts = keys.mapInArrow(partial, "part int, filter binary").rdd.map(lambda row: (row[0], bytes(row[1])))
    count = parts.getNumPartitions()
    while count > 1:
        count = -(-count // _FAN_IN)
        parts = parts.map(lambda part: (part[0] // _FAN_IN, part[1])).partitionBy(count, int).mapPartitions(unite)
    all = shape.united(data for _, data in parts.toLocalIterator())
    return shape.empty() if all is None else all


def not_seen(df: DataFrame, subset: str | Sequence[str], filter: Any, *, key: bytes | None = None) -> DataFrame:
    """The rows whose key is not in the filter, and those that have no key: lazy, and over Arrow.

    ``filter`` is a `Filter`, which is broadcast, or the path of a file that every worker can open: it is mapped, so that
    the workers of a machine share its memory. ``key`` is the secret of a filter that keeps it apart.
    """
    names = [subset] if isinstance(subset, str) else list(subset)
    how, what = shipped(filter)
    sent = df.sparkSession.sparkContext.broadcast(what) if how == "bytes" else None

    def choose(batches: Iterable[Any]) -> Iterator[Any]:
        filter = unshipped(how, what if sent is None else sent.value, key)
        for batch in batches:
            yield rows_not_seen(batch, names, filter)

    if sent is not None:
        what = None  # it goes by the broadcast alone
    return df.mapInArrow(choose, df.schema)
