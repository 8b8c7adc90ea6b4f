"""Beyond one machine: partial filters of one shape, built where the rows are and united.

A filter travels as its bytes, or as the path of its file, which each worker maps.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from ._frames import add_rows
from ._tamis import Filter
from .errors import ParameterError

__all__ = ["Sent", "Shape", "key_columns", "shipped", "unshipped"]


class Shape:
    """The arguments that every partial filter is made with."""

    def __init__(self, n: int, p: float, options: dict[str, Any]) -> None:
        refused = [name for name in ("grow", "hash_func", "key_file", "keyed") if options.get(name)]
        if refused:
            raise ParameterError(
                f"options: expected none that lets partial filters differ in shape or hash, got {', '.join(refused)}; say how "
                "many keys there are in all, and give key= for a secret"
            )
        self._arguments = n, p, options
        kind = self.empty().kind
        if kind not in ("blocked", "bloom", "counting"):
            raise ParameterError(f'kind: expected "blocked", "bloom" or "counting", which can be united, got {kind!r}')

    def empty(self) -> Filter:
        n, p, options = self._arguments
        return Filter(n, p, **options)

    def opened(self, data: Any) -> Filter:
        return Filter.from_bytes(data, key=self._arguments[2].get("key"))

    def partial(self, frames: Iterable[Any], subset: str | Sequence[str]) -> Filter | None:
        """The filter of the keys of some frames or tables; None if there are no rows."""
        filter = None
        for frame in frames:
            if len(frame) or getattr(frame, "num_rows", 0):
                filter = self.empty() if filter is None else filter
                add_rows(frame, subset, filter)
        return filter

    def united(self, parts: Iterable[Any]) -> Filter | None:
        """Two filters at a time are in memory: that of all, and the one that is added."""
        all = None
        for data in parts:
            part = self.opened(data)
            if all is None:
                all = part
            else:
                all |= part
        return all


def key_columns(have: Sequence[str], subset: str | Sequence[str]) -> list[str]:
    """The names of the key's columns, each of which the frame has once."""
    names = [subset] if isinstance(subset, str) else list(subset)
    if not names or any(list(have).count(name) != 1 for name in names):
        raise ParameterError(f"subset: expected columns that the frame has once ({', '.join(have)}), got {subset!r}")
    return names


class Sent:
    """A filter on its way to the workers: what they unpickle is the `Filter`."""

    def __init__(self, filter: Any, key: bytes | None) -> None:
        self._arguments = *shipped(filter), key

    def __reduce__(self) -> tuple[Any, ...]:
        return unshipped, self._arguments


def shipped(filter: Any) -> tuple[str, Any]:
    """What is sent to the workers in the place of a filter: a path, or bytes."""
    if isinstance(filter, (str, os.PathLike)):
        return "path", os.fspath(filter)
    if isinstance(filter, Filter):
        if filter.hash_func is not None:
            raise ParameterError("filter: expected one without hash_func, which would have to travel, too, got one")
        return "bytes", bytes(filter)
    raise ParameterError(f"filter: expected a Filter or the path of its file, got {type(filter).__qualname__}")


def unshipped(how: str, what: Any, key: bytes | None = None) -> Filter:
    """The filter, on a worker."""
    return Filter.open(what, key=key) if how == "path" else Filter.from_bytes(what, key=key)
