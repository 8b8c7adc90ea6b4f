"""What can go wrong: one class for each error, all of them a `TamisError`.

Where Python has a class that people catch for the same reason, the error is
one of those, too: ``except ValueError`` and ``except FileNotFoundError`` work
as anywhere else.
"""

import io

__all__ = [
    "TamisError",
    "ArgumentTypeError",
    "BusyError",
    "ClosedError",
    "CollisionError",
    "ContradictionError",
    "CorruptError",
    "ExistsError",
    "ForbiddenError",
    "FullError",
    "IndeterminateCountError",
    "IoError",
    "KeyEncodingError",
    "KeyNeededError",
    "KeyRangeError",
    "KeyTypeError",
    "NotFoundError",
    "OutOfMemoryError",
    "ParameterError",
    "RandomError",
    "ReadOnlyError",
    "ServerError",
    "TooManyCopiesError",
    "UnableError",
    "UncleanError",
    "UnconfirmedError",
    "UnlikeError",
    "UnsolvableError",
    "WrongKeyError",
]


class TamisError(Exception):
    """Every error of this package."""


class ParameterError(TamisError, ValueError):
    """An argument is out of its range."""


class ArgumentTypeError(TamisError, TypeError):
    """An argument is of a type that it can't have."""


class KeyTypeError(TamisError, TypeError):
    """An object is no key."""


class KeyRangeError(TamisError, OverflowError):
    """An integer key does not fit in 64 bits."""


class KeyEncodingError(TamisError, ValueError):
    """A text has no UTF-8, because of a lone surrogate in it."""


class IndeterminateCountError(TamisError, ValueError):
    """How many keys there are is not known, after a union or an intersection."""


class ClosedError(TamisError, ValueError):
    """The filter is closed."""


class ReadOnlyError(TamisError, io.UnsupportedOperation):
    """The file was opened for reading only."""


class UnableError(TamisError, TypeError):
    """This kind of filter can't do that."""


class UnlikeError(TamisError, ValueError):
    """Two filters differ in shape or hash, so they can't be combined."""


class FullError(TamisError, ValueError):
    """A cuckoo filter, or one of another system, has no room for the key."""


class TooManyCopiesError(TamisError, ValueError):
    """A cuckoo filter holds the key as often as it can."""


class UnsolvableError(TamisError, ValueError):
    """A finished list can't be built, because its keys' hashes are not spread."""


class CollisionError(TamisError, ValueError):
    """Different keys, one on each list of a cascade, have the same hash: somebody chose them."""


class ContradictionError(TamisError, ValueError):
    """Keys are on the list and on its allow list."""


class CorruptError(TamisError, ValueError):
    """The bytes are no sound filter: truncated, damaged, or of something else."""


class KeyNeededError(TamisError, ValueError):
    """The filter's secret key is kept apart from it, and was not given."""


class WrongKeyError(TamisError, ValueError):
    """The secret key is not the one that the filter was made with."""


class IoError(TamisError, OSError):
    """The operating system refused; `errno` and `filename` say what and where."""


class NotFoundError(IoError, FileNotFoundError):
    """There is no such file, or no such filter in Redis."""


class ExistsError(IoError, FileExistsError):
    """The file, or filter in Redis, exists, and was not to be replaced."""


class ForbiddenError(IoError, PermissionError):
    """The file may not be read or written."""


class BusyError(TamisError, OSError):
    """Another process writes the filter."""


class UncleanError(TamisError, OSError):
    """The file was being written when the machine went down: keys may be missing."""


class ServerError(TamisError, ConnectionError):
    """A Redis server refused, was silent, or could not be reached."""


class UnconfirmedError(ServerError):
    """Some keys may be in the filter or not: an answer did not come. Add all of
    the batch again; that does no harm, except to counts."""


class RandomError(TamisError, OSError):
    """The system's random source failed."""


class OutOfMemoryError(TamisError, MemoryError):
    """There is not enough memory for the filter."""
