"""Have I seen this key before?

>>> import tamis
>>> seen = tamis.Filter(n=1_000_000, p=0.01)
>>> seen.add("https://example.org/")
True
>>> "https://example.org/" in seen
True

Filters answer with the memory of a few bits a key, never with a false "no",
and with a rate of false "yes" that is promised and kept.
"""

from . import errors
from ._files import lines
from ._frames import dedup
from ._tamis import (
    Filter,
    ForeignFilter,
    Guard,
    Hash,
    Json,
    Mask,
    Plan,
    RedisFilter,
    __version__,
    build,
    connect,
    open_foreign,
    plan,
)
from ._window import Generation, Window
from .aio import AsyncRedisFilter, aconnect
from .errors import (
    ArgumentTypeError,
    BusyError,
    ClosedError,
    CollisionError,
    ContradictionError,
    CorruptError,
    ExistsError,
    ForbiddenError,
    FullError,
    IndeterminateCountError,
    IoError,
    KeyEncodingError,
    KeyNeededError,
    KeyRangeError,
    KeyTypeError,
    NotFoundError,
    OutOfMemoryError,
    ParameterError,
    RandomError,
    ReadOnlyError,
    ServerError,
    TamisError,
    TooManyCopiesError,
    UnableError,
    UncleanError,
    UnconfirmedError,
    UnlikeError,
    UnsolvableError,
    WrongKeyError,
)

__all__ = [
    "ArgumentTypeError",
    "AsyncRedisFilter",
    "BusyError",
    "ClosedError",
    "CollisionError",
    "ContradictionError",
    "CorruptError",
    "ExistsError",
    "Filter",
    "ForbiddenError",
    "ForeignFilter",
    "FullError",
    "Generation",
    "Guard",
    "Hash",
    "IndeterminateCountError",
    "IoError",
    "Json",
    "KeyEncodingError",
    "KeyNeededError",
    "KeyRangeError",
    "KeyTypeError",
    "Mask",
    "NotFoundError",
    "OutOfMemoryError",
    "ParameterError",
    "Plan",
    "RandomError",
    "ReadOnlyError",
    "RedisFilter",
    "ServerError",
    "TamisError",
    "TooManyCopiesError",
    "UnableError",
    "UncleanError",
    "UnconfirmedError",
    "UnlikeError",
    "UnsolvableError",
    "Window",
    "WrongKeyError",
    "__version__",
    "aconnect",
    "build",
    "connect",
    "dedup",
    "errors",
    "lines",
    "open_foreign",
    "plan",
]
