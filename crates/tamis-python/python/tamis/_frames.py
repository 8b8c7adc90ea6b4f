"""Columns and frames of pandas, polars and pyarrow: asked, and freed of rows that were seen.

None of these libraries is imported here before the caller has: an object of theirs is what asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from ._tamis import _Rows
from .errors import ArgumentTypeError, ParameterError

if TYPE_CHECKING:
    from ._tamis import Filter, RedisFilter

__all__ = ["add_rows", "dedup", "isin", "not_seen"]

_Frame = TypeVar("_Frame")


def library_of(value: object) -> str:
    """The library of an object's class, or of one that it is derived from."""
    for base in type(value).__mro__:
        library = base.__module__.partition(".")[0]
        if library in ("numpy", "pandas", "polars", "pyarrow"):
            return library
    return type(value).__module__.partition(".")[0]


def is_a(value: object, *classes: str) -> bool:
    """Whether a value of one of these libraries is of a class of that name, or of one derived from it."""
    return any(base.__name__ in classes for base in type(value).__mro__)


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


def dedup(frame: _Frame, subset: str | Sequence[str] | None = None, *, filter: Filter | RedisFilter) -> _Frame:
    """The rows of a pandas or polars data frame, or a pyarrow table, whose key is
    new to the filter, which then knows it: of equal keys in the frame the first
    row stays.

    ``subset`` names the column that is the key, or several; all of them if it is
    left out. Of several columns the key is the tuple of their values, with None
    for a null. **A row that has no key stays**: one with a null in the only column,
    or with nulls in all of several. A NaN is a null here.

    About one row in ``1/p`` whose key is new looks as if seen and is dropped, so
    make the filter with a small ``p``. The filter is a `Filter` or a `RedisFilter`.
    Keys are added when the result is made: a call that fails has added none.

    Of a lazy frame of polars or a reader of record batches the result is one, too:
    what it reads is freed of seen rows batch by batch, as it is collected or read.

    >>> import pandas, tamis
    >>> seen = tamis.Filter(1000, 1e-9)
    >>> frame = pandas.DataFrame({"url": ["a", "b", "a"], "size": [1, 2, 3]})
    >>> tamis.dedup(frame, "url", filter=seen)["size"].tolist()
    [1, 2]
    >>> len(tamis.dedup(frame, "url", filter=seen))
    0
    """
    _Rows.check_writable(filter)
    if library_of(frame) == "polars" and is_a(frame, "LazyFrame"):
        return dedup_lazy(frame, subset, filter)
    if library_of(frame) == "pyarrow" and is_a(frame, "RecordBatchReader"):
        return dedup_reader(frame, subset, filter)
    rows = rows_of(frame, columns_of(frame, subset), filter)
    result = chosen(frame, rows.unseen(frame, True))
    others = rows.add(frame)
    return result if others is None else chosen(frame, others)


def dedup_lazy(frame: Any, subset: str | Sequence[str] | None, filter: Any) -> Any:
    named(frame.collect_schema().names(), subset, False)

    def fresh(batch: Any) -> Any:
        return dedup(batch, subset, filter=filter)

    # What happens after it may not happen before it: other rows would be added.
    return frame.map_batches(
        fresh,
        predicate_pushdown=False,
        projection_pushdown=False,
        slice_pushdown=False,
        streamable=True,
    )


def dedup_reader(reader: Any, subset: str | Sequence[str] | None, filter: Any) -> Any:
    pyarrow = import_module("pyarrow")
    named(reader.schema.names, subset, False)

    def batches() -> Iterator[Any]:
        for batch in reader:
            yield dedup(batch, subset, filter=filter)

    return pyarrow.RecordBatchReader.from_batches(reader.schema, batches())


def not_seen(frame: Any, subset: str | Sequence[str] | None, filter: Any) -> Any:
    """The rows whose key is not in the filter, and those that have no key."""
    return chosen(frame, rows_of(frame, columns_of(frame, subset), filter).unseen(frame, False))


def add_rows(frame: Any, subset: str | Sequence[str] | None, filter: Any) -> None:
    """Adds the keys of all rows that have one."""
    rows_of(frame, columns_of(frame, subset), filter).add_all()


def columns_of(frame: Any, subset: str | Sequence[str] | None) -> list[Any]:
    """The names of the key's columns."""
    library = library_of(frame)
    if (library == "pandas" or library == "polars") and is_a(frame, "DataFrame"):
        have = list(frame.columns)
    elif library == "pyarrow" and is_a(frame, "Table", "RecordBatch"):
        have = list(frame.schema.names)
    else:
        raise ArgumentTypeError(
            "frame: expected a data frame of pandas or polars, or a table of pyarrow, got "
            f"{type(frame).__module__}.{type(frame).__qualname__}"
        )
    return named(have, subset, library == "pandas")


def named(have: list[Any], subset: str | Sequence[str] | None, tuples: bool) -> list[Any]:
    """The columns that a subset names, each of which the frame has once. Names may be tuples."""
    if subset is None:
        names = have
    elif isinstance(subset, (list, tuple)) and not (tuples and subset in have):
        names = list(subset)
    else:
        names = [subset]
    missing = [name for name in names if name not in have]
    if missing or not names:
        raise ParameterError(f"subset: expected columns of the frame ({have}), got {missing or names}")
    if any(have.count(name) > 1 for name in names):
        raise ParameterError("subset: expected columns of different names, got two of one name")
    return names


def rows_of(frame: Any, names: list[Any], filter: Any) -> _Rows:
    """The keys of the rows; whatever is no key is said here."""
    if getattr(filter, "hash_func", None) is None:
        columns = [column_of(frame, name) for name in names]
        return _Rows(filter, columns, frame.num_rows if library_of(frame) == "pyarrow" else len(frame))
    if len(names) == 1:
        return _Rows.of_objects(filter, plain(frame, names[0]))
    rows = zip(*(plain(frame, name) for name in names))
    return _Rows.of_objects(filter, [None if all(value is None for value in row) else row for row in rows])


def column_of(frame: Any, name: Any) -> Any:
    return frame.column(name) if library_of(frame) == "pyarrow" else frame[name]


def plain(frame: Any, name: Any) -> list[Any]:
    """The values of a column as Python's, with None for nulls: for functions that make keys of them."""
    column = column_of(frame, name)
    library = library_of(frame)
    if library == "pandas":
        return [None if null else value for value, null in zip(column.tolist(), column.isna().tolist())]
    values = column.to_list() if library == "polars" else column.to_pylist()
    return [None if value != value else value for value in values]


def chosen(frame: Any, mask: Any) -> Any:
    if library_of(frame) == "pandas":
        return frame[mask]
    return frame.filter(mask)
