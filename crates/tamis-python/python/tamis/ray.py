"""Filters built and asked by Ray Data, where the rows are.

    from tamis import ray

    seen = ray.build(ds, "url", n=1_000_000_000, p=0.01)     # one filter, from all blocks
    new = ray.not_seen(other, "url", seen)                   # the rows whose key is not in it

Each block of the dataset becomes a filter of the full size of its own rows; tasks unite these, two at a time, until one is
left for the driver. The result is the filter that one process would have built from all keys, bit for bit; only its count
of keys is indeterminate, as after every union.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow
import ray

from ._frames import not_seen as rows_not_seen
from ._partial import Shape, shipped, unshipped
from ._tamis import Filter

if TYPE_CHECKING:
    from ray.data import Dataset

__all__ = ["build", "not_seen"]


def build(ds: Dataset, subset: str | Sequence[str], n: int, p: float = 0.01, **options: Any) -> Filter:
    """One filter of the keys of a dataset's column, or of the tuples of several.

    ``n`` is how many keys to expect in all; ``options`` are those of `Filter`, with ``key=`` for a secret of 16 bytes.
    A null is no key.
    """
    shape = Shape(n, p, options)
    names = [subset] if isinstance(subset, str) else list(subset)

    def partial(rows: pyarrow.Table) -> pyarrow.Table:
        return _table_of(shape.partial([rows], names))

    @ray.remote
    def unite(*parts: pyarrow.Table) -> pyarrow.Table:
        return _table_of(shape.united(data for part in parts for data in _filters_in(part)))

    parts = ds.select_columns(names).map_batches(partial, batch_size=None, batch_format="pyarrow").to_arrow_refs()
    while len(parts) > 1:
        parts = [unite.remote(*parts[i : i + 2]) for i in range(0, len(parts), 2)]
    found = _filters_in(ray.get(parts[0])) if parts else []
    return shape.opened(found[0]) if found else shape.empty()


def not_seen(ds: Dataset, subset: str | Sequence[str], filter: Any, *, key: bytes | None = None) -> Dataset:
    """The rows whose key is not in the filter, and those that have no key: lazy.

    ``filter`` is a `Filter`, whose bytes go to every node once, or the path of a file that every worker can open: it is
    mapped, so that the workers of a machine share its memory. ``key`` is the secret of a filter that keeps it apart.
    """
    names = [subset] if isinstance(subset, str) else list(subset)
    how, what = shipped(filter)

    def choose(rows: pyarrow.Table) -> pyarrow.Table:
        return rows_not_seen(rows, names, unshipped(how, what, key))

    return ds.map_batches(choose, batch_size=None, batch_format="pyarrow")


def _table_of(filter: Filter | None) -> pyarrow.Table:
    """What is kept in Ray's store, from which workers of a machine read without a copy."""
    parts = [] if filter is None else [bytes(filter)]
    return pyarrow.table({"filter": pyarrow.array(parts, pyarrow.large_binary())})


def _filters_in(table: pyarrow.Table) -> list[memoryview]:
    # Of a dataset without rows Ray makes a table without columns.
    return [memoryview(part.as_buffer()) for part in table.column("filter")] if table.num_rows else []
