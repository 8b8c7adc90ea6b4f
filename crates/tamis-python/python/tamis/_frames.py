"""Columns and frames of pandas, polars, pyarrow and datasets: asked, and freed of rows that were seen; so are lists and
iterators.

None of these libraries is imported here before the caller has: an object of theirs is what asks for it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ._tamis import Filter, _Rows
from .errors import ArgumentTypeError, ParameterError

if TYPE_CHECKING:
    from datetime import timedelta

    from ._tamis import RedisFilter

__all__ = ["add_rows", "dedup", "isin", "not_seen"]

_Frame = TypeVar("_Frame")
_Item = TypeVar("_Item")


def library_of(value: object) -> str:
    """The library of an object's class, or of one that it is derived from."""
    for base in type(value).__mro__:
        library = base.__module__.partition(".")[0]
        if library in ("datasets", "numpy", "pandas", "polars", "pyarrow"):
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


@overload
def dedup(
    frame: Iterator[_Item],
    subset: str | Sequence[str] | None = None,
    *,
    filter: Filter | RedisFilter | None = None,
    at: Any = None,
    within: timedelta | float | str | None = None,
    quiet: timedelta | float | str | None = None,
    last: int | None = None,
    n: int | None = None,
    p: float | None = None,
) -> Iterator[_Item]: ...
@overload
def dedup(
    frame: _Frame,
    subset: str | Sequence[str] | None = None,
    *,
    filter: Filter | RedisFilter | None = None,
    at: Any = None,
    within: timedelta | float | str | None = None,
    quiet: timedelta | float | str | None = None,
    last: int | None = None,
    n: int | None = None,
    p: float | None = None,
) -> _Frame: ...
def dedup(
    frame: Any,
    subset: str | Sequence[str] | None = None,
    *,
    filter: Filter | RedisFilter | None = None,
    at: Any = None,
    within: timedelta | float | str | None = None,
    quiet: timedelta | float | str | None = None,
    last: int | None = None,
    n: int | None = None,
    p: float | None = None,
) -> Any:
    """The rows of a pandas or polars data frame, a pyarrow table or a Hugging Face
    ``Dataset`` whose key is new to the filter, which then knows it: of equal keys
    in the frame the first row stays. Also the items of a list, or of an iterator.

    ``subset`` names the column that is the key, or several; all of them if it is
    left out. Of several columns the key is the tuple of their values, with None
    for a null. **A row that has no key stays**: one with a null in the only column,
    or with nulls in all of several. A NaN is a null here.

    About one row in ``1/p`` whose key is new looks as if seen and is dropped, so
    make the filter with a small ``p``. The filter is a `Filter` or a `RedisFilter`;
    with ``p`` in its place, one is made for this call, of ``n`` keys (as many as
    there are rows). Keys are added when the result is made: a call that fails has
    added none.

    Of a lazy frame of polars or a reader of record batches the result is one, too.
    A reader is freed of seen rows batch by batch, as it is read. A lazy frame is
    read as a whole when the result is collected, because polars' streaming engine
    keeps no order among batches. A filter that is made for the call is then made
    for each time it is collected.

    Items of a list or an iterator are keys themselves; with ``subset`` they are dicts
    that have the key under these names. None is no key, and stays. Of an iterator the
    result is one, too: it takes an item when it is asked for one, and adds it then, so
    it can be endless. A filter made for it takes an ``n``, unless ``last`` says it.

    With a `Window` as the filter, a row is dropped if its key was seen in the window
    that ends at its time: ``at`` names the column of times, or is the times
    themselves as in `Window.add_many`; without it they are the clock's. Rows are
    judged and added one after the other, in their order. ``within``, ``quiet`` or
    ``last`` make a window for this call, of ``n`` keys (as many as there are rows)
    at the rate ``p`` (1e-6). Rows that are older than the window of the latest one
    stay, and times of the future are taken for the latest one before them, both
    with a warning.

    >>> import pandas, tamis
    >>> seen = tamis.Filter(1000, 1e-9)
    >>> frame = pandas.DataFrame({"url": ["a", "b", "a"], "size": [1, 2, 3]})
    >>> tamis.dedup(frame, "url", filter=seen)["size"].tolist()
    [1, 2]
    >>> len(tamis.dedup(frame, "url", filter=seen))
    0
    >>> frame["time"] = pandas.to_datetime(["2026-01-30", "2026-01-31", "2026-02-01"])
    >>> tamis.dedup(frame, "url", at="time", within="24h")["size"].tolist()
    [1, 2, 3]
    >>> tamis.dedup(["a", "b", "a"], within="24h")
    ['a', 'b']
    >>> next(tamis.dedup(iter(["a", "b", "a"]), within="24h", n=1_000_000))
    'a'
    """
    lazy = library_of(frame) == "polars" and is_a(frame, "LazyFrame")
    judge: Filter | RedisFilter
    wish: dict[str, Any] = {"within": within, "quiet": quiet, "last": last, "n": n, "p": p}
    if filter is None:
        # That of a lazy frame is made once there are rows; what is wrong with it is said now.
        judge = filter_for(1 if lazy else row_count(frame), **wish)
    elif any(argument is not None for argument in wish.values()):
        raise ParameterError("filter: expected none beside within, quiet, last, n or p, got one; it has its own")
    else:
        judge, wish = filter, {"filter": filter}
    _Rows.check_writable(judge)
    window = isinstance(judge, Filter) and judge.kind == "window"
    if at is not None and not window:
        raise ParameterError("at: expected a Window as the filter, got another, which has no time")
    if lazy:
        return dedup_lazy(frame, subset, at, wish)
    if is_reader(frame):
        return dedup_reader(frame, subset, judge, at)
    if is_iterator(frame):
        return dedup_iterator(frame, subset, judge, at)
    source = source_of(frame, subset, at)
    rows = rows_of(source, columns_of(source, subset), judge)
    if window:
        return chosen(frame, in_window(source, rows, at))
    result = chosen(frame, rows.unseen(source, True))
    others = rows.add(source)
    return result if others is None else chosen(frame, others)


def row_count(frame: Any) -> int | None:
    """How many rows there are; None for a reader or an iterator, which have to be read to know."""
    if is_reader(frame) or is_iterator(frame):
        return None
    try:
        return frame.num_rows if library_of(frame) == "pyarrow" else len(frame)
    except (AttributeError, TypeError):
        raise no_frame(frame) from None


def filter_for(
    rows: int | None, within: Any, quiet: Any, last: int | None, n: int | None, p: float | None
) -> Filter:
    """A filter for the rows of a frame, or a window."""
    from ._window import Window

    window = within is not None or quiet is not None or last is not None
    if not window and n is None and p is None:
        raise ArgumentTypeError(
            "filter: expected a Filter or a RedisFilter; or p, within, quiet or last, to make one; got none of them"
        )
    if n is None and last is None:
        if rows is None:
            raise ParameterError(
                "n: expected how many keys there are at most, got nothing; a reader or an iterator doesn't say"
            )
        n = max(1, rows)
    p = 1e-6 if p is None else p
    return Window(n, p, within=within, quiet=quiet, last=last) if window else Filter(n, p)


def source_of(frame: Any, subset: str | Sequence[str] | None, at: Any) -> Any:
    """Where the keys are read from: the frame, or a Dataset's columns as a table of pyarrow."""
    if not is_dataset(frame):
        return frame
    names = named(frame.column_names, subset, False)
    if isinstance(at, str):
        names = names + [name for name in named(frame.column_names, [at], False, "at") if name not in names]
    return frame.select_columns(names).with_format("arrow")[:]


def is_dataset(frame: Any) -> bool:
    return library_of(frame) == "datasets" and is_a(frame, "Dataset")


def is_reader(frame: Any) -> bool:
    return library_of(frame) == "pyarrow" and is_a(frame, "RecordBatchReader")


def is_iterator(frame: Any) -> bool:
    return isinstance(frame, Iterator) and not is_reader(frame)


def no_frame(frame: Any) -> ArgumentTypeError:
    return ArgumentTypeError(
        "frame: expected a data frame of pandas or polars, a table of pyarrow, a Dataset of datasets, a list or an "
        f"iterator, got {type(frame).__module__}.{type(frame).__qualname__}"
    )


def in_window(frame: Any, rows: _Rows, at: Any) -> Any:
    """Which rows stay, after they were added to a window at their times."""
    if isinstance(at, str):
        at = column_of(frame, columns_of(frame, [at], "at")[0])
    mask, old, ahead = rows.add_at(frame, at)
    if old:
        text = f"{old} rows are older than the window of the latest one: they stay, and are not remembered"
        warnings.warn(text, stacklevel=3)
    if ahead:
        text = f"{ahead} rows have times of the future: they are taken for those of the latest one before them"
        warnings.warn(text, stacklevel=3)
    return mask


def dedup_lazy(frame: Any, subset: str | Sequence[str] | None, at: Any, wish: dict[str, Any]) -> Any:
    names = frame.collect_schema().names()
    named(names, subset, False)
    check_column_of_times(names, at)

    def fresh(whole: Any) -> Any:
        return dedup(whole, subset, at=at, **wish)

    # What happens after it may not happen before it: other rows would be added. Batches of the streaming engine
    # come in any order and at the same time, and it stops after those that are needed: which row is the first
    # would be left to chance.
    return frame.map_batches(
        fresh,
        predicate_pushdown=False,
        projection_pushdown=False,
        slice_pushdown=False,
        streamable=False,
    )


def dedup_reader(reader: Any, subset: str | Sequence[str] | None, filter: Any, at: Any) -> Any:
    pyarrow = import_module("pyarrow")
    named(reader.schema.names, subset, False)
    check_column_of_times(reader.schema.names, at)

    def batches() -> Iterator[Any]:
        for batch in reader:
            yield dedup(batch, subset, filter=filter, at=at)

    return pyarrow.RecordBatchReader.from_batches(reader.schema, batches())


def dedup_iterator(items: Iterator[Any], subset: str | Sequence[str] | None, filter: Any, at: Any) -> Iterator[Any]:
    """One item after the other: the next one may be long in coming."""
    # Others look first, so that what they count is added once.
    at_once = subset is None and at is None and filter.kind not in ("counting", "cuckoo")
    for item in items:
        if not at_once or is_missing(item):
            yield from dedup([item], subset, filter=filter, at=at)
        elif filter.add(item):
            yield item


def check_column_of_times(have: list[Any], at: Any) -> None:
    """Of batches to come, only a column has the times."""
    if at is not None and at not in have:
        raise ParameterError(f"at: expected a column of the frame ({have}), got {at!r}")


def not_seen(frame: Any, subset: str | Sequence[str] | None, filter: Any) -> Any:
    """The rows whose key is not in the filter, and those that have no key."""
    return chosen(frame, rows_of(frame, columns_of(frame, subset), filter).unseen(frame, False))


def add_rows(frame: Any, subset: str | Sequence[str] | None, filter: Any) -> None:
    """Adds the keys of all rows that have one."""
    rows_of(frame, columns_of(frame, subset), filter).add_all()


def columns_of(frame: Any, subset: str | Sequence[str] | None, argument: str = "subset") -> list[Any]:
    """The names of the key's columns, or of those that another argument names. None if the items of a list are keys."""
    if isinstance(frame, list):
        return [] if subset is None else list(subset) if isinstance(subset, (list, tuple)) else [subset]
    library = library_of(frame)
    if (library == "pandas" or library == "polars") and is_a(frame, "DataFrame"):
        have = list(frame.columns)
    elif library == "pyarrow" and is_a(frame, "Table", "RecordBatch"):
        have = list(frame.schema.names)
    else:
        raise no_frame(frame)
    return named(have, subset, library == "pandas", argument)


def named(have: list[Any], subset: str | Sequence[str] | None, tuples: bool, argument: str = "subset") -> list[Any]:
    """The columns that a subset names, each of which the frame has once. Names may be tuples."""
    if subset is None:
        names = have
    elif isinstance(subset, (list, tuple)) and not (tuples and subset in have):
        names = list(subset)
    else:
        names = [subset]
    missing = [name for name in names if name not in have]
    if missing or not names:
        raise ParameterError(f"{argument}: expected columns of the frame ({have}), got {missing or names}")
    if any(have.count(name) > 1 for name in names):
        raise ParameterError(f"{argument}: expected columns of different names, got two of one name")
    return names


def rows_of(frame: Any, names: list[Any], filter: Any) -> _Rows:
    """The keys of the rows; whatever is no key is said here."""
    if getattr(filter, "hash_func", None) is None and not isinstance(frame, list):
        columns = [column_of(frame, name) for name in names]
        return _Rows(filter, columns, frame.num_rows if library_of(frame) == "pyarrow" else len(frame))
    if not names:
        return _Rows.of_objects(filter, [None if is_missing(item) else item for item in frame])
    if len(names) == 1:
        return _Rows.of_objects(filter, plain(frame, names[0]))
    rows = zip(*(plain(frame, name) for name in names))
    return _Rows.of_objects(filter, [None if all(value is None for value in row) else row for row in rows])


def column_of(frame: Any, name: Any) -> Any:
    if isinstance(frame, list):
        try:
            return [item[name] for item in frame]
        except KeyError:
            raise ParameterError(f"frame: expected dicts that all have {name!r}, got one without") from None
        except TypeError:
            raise ArgumentTypeError(f"frame: expected dicts, each with {name!r}, got other items") from None
    return frame.column(name) if library_of(frame) == "pyarrow" else frame[name]


def plain(frame: Any, name: Any) -> list[Any]:
    """The values of a column as Python's, with None for nulls: for functions that make keys of them."""
    column = column_of(frame, name)
    library = library_of(frame)
    if library == "pandas":
        return [None if null else value for value, null in zip(column.tolist(), column.isna().tolist())]
    if library == "polars":
        column = column.to_list()
    elif library == "pyarrow":
        column = column.to_pylist()
    return [None if is_missing(value) else value for value in column]


def is_missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and value != value)


def chosen(frame: Any, mask: Any) -> Any:
    if isinstance(frame, list):
        return [item for item, stays in zip(frame, mask) if stays]
    if library_of(frame) == "pandas":
        return frame[mask]
    if is_dataset(frame):
        return frame.select(mask.to_numpy(zero_copy_only=False).nonzero()[0])
    return frame.filter(mask)
