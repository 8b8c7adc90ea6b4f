"""Tamis in polars' expressions: importing this registers the namespace ``tamis``.

>>> import polars as pl, tamis, tamis.polars
>>> seen = tamis.Filter(1000)
>>> seen.update(["a", "b"])
>>> frame = pl.DataFrame({"url": ["a", "c", None]})
>>> frame.filter(~pl.col("url").tamis.isin(seen))["url"].to_list()
['c', None]
"""

from __future__ import annotations

from typing import Any

import polars

__all__ = ["TamisExpr"]


@polars.api.register_expr_namespace("tamis")
class TamisExpr:
    """What expressions have as ``.tamis``."""

    def __init__(self, expr: polars.Expr) -> None:
        self._expr = expr

    def isin(self, filter: Any) -> polars.Expr:
        """Whether the filter may have the key; False for a null. The filter is a
        `Filter` or a `RedisFilter`."""

        def ask(keys: polars.Series) -> polars.Series:
            return polars.Series(keys.name, filter.contains_many(keys), dtype=polars.Boolean)

        return self._expr.map_batches(ask, return_dtype=polars.Boolean, is_elementwise=True)
