"""Columns and frames of pandas, polars and pyarrow: asked, and freed of rows that were seen.

None of these libraries is imported here before the caller has: an object of theirs is what asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from .errors import ParameterError

__all__ = ["dedup", "isin", "keys_of", "not_seen"]


def library_of(value: object) -> str:
    return type(value).__module__.partition(".")[0]


def isin(filter: Any, keys: Any, threads: int = 1) -> Any:
    """`Filter.isin`."""
    answers = filter.contains_many(keys, threads=threads)
    return like(keys, answers)


def like(keys: Any, answers: Any) -> Any:
    """The answers as an object of the keys' type, with its name and index."""
    library = library_of(keys)
    if library == "pandas":
        numpy = import_module("numpy")
        pandas = import_module("pandas")

        array = numpy.asarray(answers, dtype=bool)
        if isinstance(keys, pandas.Series):
            return pandas.Series(array, index=keys.index, name=keys.name)
        return array
    if library == "numpy":
        numpy = import_module("numpy")

        return numpy.asarray(answers, dtype=bool)
    if library == "polars":
        polars = import_module("polars")

        return polars.Series(keys.name, answers, dtype=polars.Boolean)
    if library == "pyarrow":
        pyarrow = import_module("pyarrow")

        array = pyarrow.array(answers, pyarrow.bool_())
        if not isinstance(keys, pyarrow.ChunkedArray):
            return array
        ends = [0]
        for chunk in keys.chunks:
            ends.append(ends[-1] + len(chunk))
        chunks = [array.slice(start, end - start) for start, end in zip(ends, ends[1:])]
        return pyarrow.chunked_array(chunks, pyarrow.bool_())
    return answers


def dedup(frame: Any, subset: str | Sequence[str] | None = None, *, filter: Any) -> Any:
    """The rows of a pandas or polars data frame, or a pyarrow table, whose key is
    new to the filter, which then knows it: of equal keys in the frame the first
    row stays.

    ``subset`` names the column that is the key, or several; all of them if it is
    left out. Of several columns the key is the tuple of their values, with None
    for a null. **A row that has no key stays**: one with a null in the only column,
    or with nulls in all of several. A NaN is a null here, and a bool is 0 or 1.

    About one row in ``1/p`` whose key is new looks as if seen and is dropped, so
    make the filter with a small ``p``. The filter is a `Filter` or a `RedisFilter`.

    >>> import pandas, tamis
    >>> seen = tamis.Filter(1000, 1e-9)
    >>> frame = pandas.DataFrame({"url": ["a", "b", "a"], "size": [1, 2, 3]})
    >>> tamis.dedup(frame, "url", filter=seen)["size"].tolist()
    [1, 2]
    >>> len(tamis.dedup(frame, "url", filter=seen))
    0
    """
    return rows_where(frame, columns_of(frame, subset), filter.add_many)


def not_seen(frame: Any, subset: str | Sequence[str] | None, filter: Any) -> Any:
    """The rows whose key is not in the filter, and those that have no key."""
    return rows_where(frame, columns_of(frame, subset), lambda keys: inverted(filter.contains_many(keys)))


def columns_of(frame: Any, subset: str | Sequence[str] | None) -> list[Any]:
    """The names of the key's columns."""
    library = library_of(frame)
    if library == "pandas" and type(frame).__name__ != "Series":
        have = list(frame.columns)
    elif library == "polars" and type(frame).__name__ == "DataFrame":
        have = list(frame.columns)
    elif library == "pyarrow" and hasattr(frame, "column_names"):
        have = list(frame.column_names)
    elif library == "pyarrow" and hasattr(frame, "schema"):
        have = list(frame.schema.names)
    else:
        raise ParameterError(
            "frame: expected a data frame of pandas or polars, or a table of pyarrow, got "
            f"{type(frame).__module__}.{type(frame).__qualname__}; collect a lazy one first"
        )
    if subset is None:
        names = have
    elif isinstance(subset, (list, tuple)) and not (library == "pandas" and subset in have):
        names = list(subset)
    else:
        names = [subset]
    missing = [name for name in names if name not in have]
    if missing or not names:
        raise ParameterError(f"subset: expected columns of the frame ({have}), got {missing or names}")
    if any(have.count(name) > 1 for name in names):
        raise ParameterError("subset: expected columns of different names, got two of one name")
    return names


def rows_where(frame: Any, names: list[Any], ask: Callable[[Any], Any]) -> Any:
    """The rows of whose keys `ask` answers True, and those that have no key."""
    if len(names) == 1:
        column = single_column(frame, names[0])
        return chosen(frame, either(frame, ask(column), nulls_of(column)))
    rows = tuples_of(frame, names)
    keyless = [all(value is None for value in row) for row in rows]
    answers = iter(ask([row for row, none in zip(rows, keyless) if not none]))
    return chosen(frame, [none or next(answers) for none in keyless])


def keys_of(frame: Any, names: list[Any]) -> Any:
    """The keys of the rows, without those that have none."""
    if len(names) == 1:
        return single_column(frame, names[0])
    return [row for row in tuples_of(frame, names) if any(value is not None for value in row)]


def tuples_of(frame: Any, names: list[Any]) -> list[tuple[Any, ...]]:
    return list(zip(*(plain(frame, name) for name in names)))


def inverted(answers: Any) -> Any:
    library = library_of(answers)
    if library == "pyarrow":
        compute = import_module("pyarrow.compute")

        return compute.invert(answers)
    return [not answer for answer in answers] if library == "builtins" else ~answers


def nulls_of(column: Any) -> Any:
    """Which rows have no key: nulls and NaN."""
    library = library_of(column)
    if library == "pandas":
        return column.isna().to_numpy()
    if library == "polars":
        nulls = column.is_null()
        return nulls | column.is_nan().fill_null(True) if column.dtype.is_float() else nulls
    compute = import_module("pyarrow.compute")

    nulls = compute.is_null(column, nan_is_null=True)
    return nulls.combine_chunks() if hasattr(nulls, "combine_chunks") else nulls


def either(frame: Any, answers: Any, nulls: Any) -> Any:
    library = library_of(frame)
    if library == "pandas":
        numpy = import_module("numpy")

        return numpy.asarray(answers, dtype=bool) | nulls
    if library == "polars":
        polars = import_module("polars")

        return polars.Series(answers, dtype=polars.Boolean) | nulls
    compute = import_module("pyarrow.compute")

    return compute.or_(import_module("pyarrow").array(answers), nulls)


def single_column(frame: Any, name: Any) -> Any:
    library = library_of(frame)
    column = frame.column(name) if library == "pyarrow" else frame[name]
    if library == "pandas" and str(column.dtype) in ("bool", "boolean"):
        return column.astype("Int8")
    if library == "polars":
        polars = import_module("polars")

        if column.dtype == polars.Boolean:
            return column.cast(polars.Int8)
    if library == "pyarrow":
        pyarrow = import_module("pyarrow")

        if column.type == pyarrow.bool_():
            return column.cast(pyarrow.int8())
    return column


def plain(frame: Any, name: Any) -> list[Any]:
    """The values of a column as Python's, with None for nulls."""
    column = single_column(frame, name)
    library = library_of(frame)
    if library == "pandas":
        return [None if null else value for value, null in zip(column.tolist(), column.isna().tolist())]
    if library == "polars":
        return [None if value != value else value for value in column.to_list()]
    return [None if value != value else value for value in column.to_pylist()]


def chosen(frame: Any, mask: Any) -> Any:
    library = library_of(frame)
    if library == "pandas":
        numpy = import_module("numpy")

        return frame[numpy.asarray(mask, dtype=bool)]
    if library == "polars":
        polars = import_module("polars")

        return frame.filter(polars.Series(mask, dtype=polars.Boolean))
    pyarrow = import_module("pyarrow")

    return frame.filter(pyarrow.array(mask, pyarrow.bool_()))
