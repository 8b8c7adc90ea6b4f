"""`tamis.Window`: a filter that forgets."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date, datetime, timedelta, timezone
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple, Union, overload

from ._tamis import (
    Filter,
    _window_add,
    _window_add_many,
    _window_contains,
    _window_contains_many,
    _window_facts,
    _window_generations,
    _window_new,
    _window_remembers,
)

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._tamis import _Column

__all__ = ["Generation", "Window"]

# Most calls of `add`: the method itself, without a way around it.
_add_now = Filter.add

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

_Span = Union[timedelta, float, str]
_Time = Union[date, float]
_Path = Union[str, "PathLike[str]"]
_Progress = Union[bool, Callable[[int], object], None]


def _moment(micros: int) -> datetime:
    """The moment, or the last or first one that Python has: other programs count further."""
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return (datetime.max if micros > 0 else datetime.min).replace(tzinfo=timezone.utc)


class Generation(NamedTuple):
    """A generation of a `Window`: keys that are forgotten together."""

    start: datetime | int
    """When it begins; of a window of the last keys, which key is its first."""
    end: datetime | int
    """When the next one begins."""
    keys: int
    """How many keys were last told new, or renewed, in it."""


class Window(Filter):
    """A filter that forgets: "seen in the last 24 hours", "among the last ten million".

    >>> import tamis
    >>> from datetime import datetime, timedelta, timezone
    >>> seen = tamis.Window(1_000_000, within=timedelta(hours=24))
    >>> noon = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)
    >>> seen.add("event", at=noon)                              # True: it is new
    True
    >>> seen.add("event", at=noon + timedelta(hours=24))        # never missed in 24 hours
    False
    >>> seen.add("event", at=noon + timedelta(hours=28))        # forgotten
    True

    Say what is remembered, one of these:

    - ``within``: a key is new again so long after it was told new.
    - ``quiet``: a key is new again so long after it was last seen; every sighting renews it.
    - ``last``: a key is new again after so many others were told new.

    A length of time is a timedelta, a number of seconds, or a text such as "24h", "7d" or "90s". ``n`` is how many
    keys the window has at most (of ``quiet``, a key counts once for each generation that it is seen in; of ``last``,
    it is that number), and ``p`` how often a new key may look as if seen.

    A key is never missed within the window, and surely forgotten after the window and one generation; in between it may
    be either. ``generations`` (1 to 62) says how fine that is: 8 of them make it an eighth.

    Without ``at``, the time is that of the system's clock. With it, events carry their own, in any order: one that is older
    than the window of the latest one is new, and not remembered. It has all methods of `Filter`, and its other arguments.
    """

    __slots__ = ()
    __module__ = "tamis"

    def __new__(
        cls,
        n: int | None = None,
        p: float = 0.01,
        *,
        within: _Span | None = None,
        quiet: _Span | None = None,
        last: int | None = None,
        generations: int = 8,
        seed: int | None = None,
        keyed: bool = False,
        key: bytes | None = None,
        key_file: _Path | None = None,
        ignore_case: bool = False,
        url: bool = False,
        hash_func: Callable[[Any], str | bytes | int] | None = None,
    ) -> Self:
        hashing = (seed, keyed, key, key_file, ignore_case, url, hash_func)
        return _window_new(cls, None, False, n, p, within, quiet, last, generations, *hashing)

    @classmethod
    def create(  # type: ignore[override]
        cls,
        path: _Path,
        n: int | None = None,
        p: float = 0.01,
        *,
        within: _Span | None = None,
        quiet: _Span | None = None,
        last: int | None = None,
        generations: int = 8,
        seed: int | None = None,
        keyed: bool = False,
        key: bytes | None = None,
        key_file: _Path | None = None,
        ignore_case: bool = False,
        url: bool = False,
        hash_func: Callable[[Any], str | bytes | int] | None = None,
        overwrite: bool = False,
    ) -> Self:
        """Creates the file of an empty window and opens it for adding, memory-mapped; see `Filter.create`.

        >>> import tamis
        >>> with tamis.Window.create("seen.tamis", 1000, within="1h") as seen:
        ...     seen.add("key", at=0)
        True
        >>> with tamis.Window.open("seen.tamis", "r+") as seen:
        ...     seen.add("key", at=3600), seen.add("key", at=3600 * 2)
        (False, True)
        """
        hashing = (seed, keyed, key, key_file, ignore_case, url, hash_func)
        return _window_new(cls, path, overwrite, n, p, within, quiet, last, generations, *hashing)

    def add(self, key: Any, /, at: _Time | None = None) -> bool:
        """Adds a key seen at a time, or now; returns whether it is new in the window that ends then.

        ``at`` is a datetime, or a number of seconds since 1970. A datetime without a time zone is what its own
        ``timestamp()`` says: local time. None is the system's clock, or the latest time that was added, if the clock
        is behind it.

        >>> import tamis
        >>> alerts = tamis.Window(1000, quiet="60s")
        >>> alerts.add("disk full", at=0), alerts.add("disk full", at=50), alerts.add("disk full", at=100)
        (True, False, False)
        >>> alerts.add("disk full", at=170)
        True
        """
        return _add_now(self, key) if at is None else _window_add(self, key, at)

    def contains(self, key: Any, /, at: _Time | None = None) -> bool:
        """Whether the key may have been added in the window that ends at a time, or now; ``key in window`` asks as of
        now.

        >>> import tamis
        >>> seen = tamis.Window(1000, within="60s")
        >>> seen.add("key", at=0)
        True
        >>> seen.contains("key", at=60), seen.contains("key", at=70), "key" in seen
        (True, False, False)
        """
        return key in self if at is None else _window_contains(self, key, at)

    @overload  # type: ignore[override]
    def add_many(
        self, keys: _Column, /, at: Any = None, *, threads: int = 1, progress: _Progress = None
    ) -> Any: ...
    @overload
    def add_many(
        self, keys: Iterable[Any], /, at: Any = None, *, threads: int = 1, progress: _Progress = None
    ) -> list[bool]: ...
    def add_many(self, keys: Any, /, at: Any = None, *, threads: int = 1, progress: _Progress = None) -> Any:
        """Adds many keys, in their order; returns whether each was new. See `Filter.add_many`.

        ``at`` is one time for all, or one for each: a list, an array of numpy's ``datetime64``, or a column of
        timestamps of pandas, polars or Arrow, of any unit and time zone; those without a zone are in UTC. Numbers are
        seconds since 1970. If a time is missing, or something is no key, nothing is added.

        >>> import numpy, tamis
        >>> seen = tamis.Window(1000, within="1h")
        >>> seen.add_many(["a", "b", "a"], at=numpy.array([0, 60, 90], "datetime64[m]"))
        [True, True, True]
        >>> seen.add_many(["a", "b"], at=90 * 60)
        [False, False]
        """
        return _window_add_many(self, keys, at, threads, progress, True)

    def update(self, *keys: Any, at: Any = None, threads: int = 1, progress: _Progress = None) -> None:
        """Adds the keys of all iterables, and answers nothing; ``at`` is as for `add_many`.

        >>> import tamis
        >>> seen = tamis.Window(last=3, generations=1)
        >>> seen.update(["a", "b"], ["c", "d", "e", "f", "g"])
        >>> seen.contains_many(["a", "g"])
        [False, True]
        """
        for each in keys:
            _window_add_many(self, each, at, threads, progress, False)

    @overload  # type: ignore[override]
    def contains_many(
        self, keys: _Column, /, at: Any = None, *, threads: int = 1, progress: _Progress = None
    ) -> Any: ...
    @overload
    def contains_many(
        self, keys: Iterable[Any], /, at: Any = None, *, threads: int = 1, progress: _Progress = None
    ) -> list[bool]: ...
    def contains_many(
        self, keys: Any, /, at: Any = None, *, threads: int = 1, progress: _Progress = None
    ) -> Any:
        """Asks many keys; returns for each whether it may have been added in the window that ends at a time. Keys and
        ``at`` are as for `add_many`.

        >>> import tamis
        >>> seen = tamis.Window(1000, within="60s")
        >>> seen.update(["a", "b"], at=0)
        >>> seen.contains_many(["a", "b", "c"], at=[60, 70, 0])
        [True, False, False]
        """
        return _window_contains_many(self, keys, at, threads, progress)

    def remembers(self, at: _Time | None = None) -> bool:
        """Whether a key of this time would be remembered. If not, it is older than the window that ends at `latest`: it
        is told new, and not kept.

        >>> import tamis
        >>> seen = tamis.Window(1000, within="60s")
        >>> seen.add("key", at=1000)
        True
        >>> seen.remembers(940), seen.remembers(900)
        (True, False)
        """
        return _window_remembers(self, at)

    @property
    def span(self) -> timedelta | int:
        """What it remembers: a length of time, or a number of keys; rounded up, so that its generations are equal.

        >>> import tamis
        >>> tamis.Window(1000, within="24h").span, tamis.Window(last=1000).span
        (datetime.timedelta(days=1), 1000)
        """
        span, _, by_keys, _, _ = _window_facts(self)
        return span if by_keys else timedelta(microseconds=span)

    @property
    def band(self) -> timedelta | int:
        """How much longer than `span` a key may be remembered: what one generation spans."""
        _, band, by_keys, _, _ = _window_facts(self)
        return band if by_keys else timedelta(microseconds=band)

    @property
    def quiet(self) -> bool:
        """Whether every sighting renews a key."""
        return _window_facts(self)[3]

    @property
    def latest(self) -> datetime | None:
        """The latest time that was added, in UTC. None if it is empty, and of a window of the last keys.

        >>> import tamis
        >>> seen = tamis.Window(1000, within="60s")
        >>> seen.add("key", at=0)
        True
        >>> seen.latest.isoformat()
        '1970-01-01T00:00:00+00:00'
        """
        micros = _window_facts(self)[4]
        return None if micros is None else _moment(micros)

    @property
    def generations(self) -> list[Generation]:
        """The generations that are remembered as of `latest` and have keys, the newest first.

        >>> import tamis
        >>> seen = tamis.Window(1000, within="80s")
        >>> seen.update(["a", "b"], at=25)
        >>> newest = seen.generations[0]
        >>> newest.keys, newest.end.isoformat()
        (2, '1970-01-01T00:00:30+00:00')
        """
        by_keys = _window_facts(self)[2]
        return [
            Generation(start if by_keys else _moment(start), end if by_keys else _moment(end), keys)
            for start, end, keys in _window_generations(self)
        ]

    def info(self) -> dict[str, Any]:
        """What the window is and how full, as a dict; reads all of it.

        >>> import tamis
        >>> info = tamis.Window(1000, quiet="24h").info()
        >>> info["kind"], info["span"], info["quiet"], info["latest"]
        ('window', datetime.timedelta(days=1), True, None)
        """
        own = {
            "span": self.span,
            "band": self.band,
            "quiet": self.quiet,
            "latest": self.latest,
            "generations": [generation._asdict() for generation in self.generations],
        }
        return {**super().info(), **own}
