"""Filters built and asked by Dask, as far out as the rows are.

    from tamis import dask

    seen = dask.build(ddf, "url", n=1_000_000_000, p=0.01)     # one filter, from all partitions
    new = dask.not_seen(other, "url", seen)                    # the rows whose key is not in it

Each partition builds a filter of the full size from its own rows; these are united two at a time, on the workers, until
one is left for the client. The result is the filter that one process would have built from all keys, bit for bit; only
its count of keys is indeterminate, as after every union.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dask import delayed

from ._frames import not_seen as rows_not_seen
from ._partial import Shape, shipped, unshipped
from ._tamis import Filter

if TYPE_CHECKING:
    from dask.dataframe import DataFrame

__all__ = ["build", "not_seen"]


def build(ddf: DataFrame, subset: str | Sequence[str], n: int, p: float = 0.01, **options: Any) -> Filter:
    """One filter of the keys of a frame's column, or of the tuples of several.

    ``n`` is how many keys to expect in all; ``options`` are those of `Filter`, with ``key=`` for a secret of 16 bytes.
    A null is no key.
    """
    shape = Shape(n, p, options)
    names = [subset] if isinstance(subset, str) else list(subset)

    def partial(frame: Any) -> bytes | None:
        filter = shape.partial([frame], names)
        return None if filter is None else bytes(filter)

    def unite(*parts: bytes | None) -> bytes | None:
        some = [part for part in parts if part is not None]
        if len(some) < 2:
            return some[0] if some else None
        all = shape.united(some)
        return None if all is None else bytes(all)

    parts = [delayed(partial)(part) for part in ddf[names].to_delayed()]
    while len(parts) > 1:
        parts = [delayed(unite)(*parts[i : i + 2]) for i in range(0, len(parts), 2)]
    data = parts[0].compute() if parts else None
    return shape.empty() if data is None else shape.opened(data)


def not_seen(ddf: DataFrame, subset: str | Sequence[str], filter: Any, *, key: bytes | None = None) -> DataFrame:
    """The rows whose key is not in the filter, and those that have no key: lazy.

    ``filter`` is a `Filter`, whose bytes go to every worker once, or the path of a file that every worker can open: it is
    mapped, so that the workers of a machine share its memory. ``key`` is the secret of a filter that keeps it apart.
    """
    names = [subset] if isinstance(subset, str) else list(subset)
    how, what = shipped(filter)
    sent = delayed(what) if how == "bytes" else what

    def choose(frame: Any, what: Any) -> Any:
        return rows_not_seen(frame, names, unshipped(how, what, key))

    return ddf.map_partitions(choose, sent, meta=ddf._meta)
