"""Files that are no paths: objects that are open, and addresses that fsspec knows; and files of keys, a line each."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from .errors import ArgumentTypeError, ForbiddenError, IoError, NotFoundError, ParameterError, UnableError

__all__ = ["lines", "read", "write"]

# Between two of these, Ctrl-C is heard.
_PIECE = 1 << 24


def _opened(place: Any, mode: str) -> AbstractContextManager[Any]:
    """The file at an address or a path, or the file object itself, which stays open."""
    if hasattr(place, "read") or hasattr(place, "write"):
        return nullcontext(place)
    if isinstance(place, str) and "://" in place:
        # No message repeats a password, nor does the error that caused it.
        shown = re.sub("(?<=://)[^/]*@", "***@", place)
        if place.lower().startswith("redis"):
            raise ParameterError(f"path: expected a path, got {shown!r}; tamis.connect() opens a filter in Redis")
        try:
            import fsspec
        except ImportError:
            raise ParameterError(f"path: expected a path, or fsspec to be installed, got {shown!r}") from None
        try:
            file: AbstractContextManager[Any] = fsspec.open(place, mode)
        except (ImportError, ValueError) as error:
            raise ParameterError(f"path: expected an address that fsspec can open, got {shown!r}: {error}") from error
        return file
    try:
        path = os.fspath(place)
    except TypeError:
        raise ArgumentTypeError(f"path: expected a path or a file object, got {type(place).__qualname__}") from None
    return open(path, mode)


def _ours(error: OSError) -> IoError:
    """The system's error, as one of ours."""
    for theirs, ours in ((FileNotFoundError, NotFoundError), (PermissionError, ForbiddenError)):
        if isinstance(error, theirs):
            return ours(*error.args)
    return error if isinstance(error, IoError) else IoError(*error.args)


def read(place: Any) -> bytes:
    """All bytes."""
    pieces = []
    try:
        with _opened(place, "rb") as file:
            while piece := file.read(_PIECE):
                if not isinstance(piece, (bytes, bytearray, memoryview)):
                    raise ArgumentTypeError('path: expected a file of bytes, open with "rb", got one of text')
                pieces.append(bytes(piece))
    except OSError as error:
        raise _ours(error) from error
    return b"".join(pieces)


def write(place: Any, data: bytes) -> None:
    """All bytes, also to a file that takes only some at a time."""
    left = memoryview(data)
    try:
        with _opened(place, "wb") as file:
            while left:
                try:
                    taken = file.write(left[:_PIECE])
                except TypeError as error:
                    raise ArgumentTypeError('path: expected a file of bytes, open with "wb", got one of text') from error
                left = left[_PIECE if taken is None else taken :]
    except OSError as error:
        raise _ours(error) from error


def lines(path: Any) -> Iterator[bytes]:
    r"""The lines of a file as keys, as the command reads them: without LF or CR LF,
    without a byte order mark at the start, and unpacked if the file is gzip, bzip2, xz or zstd. ``path`` is a path, an
    address that fsspec knows, or a file object of bytes.

    >>> import gzip, tamis
    >>> with gzip.open("keys.gz", "wb") as file:
    ...     _ = file.write(b"apple\npear\r\nplum")
    >>> list(tamis.lines("keys.gz"))
    [b'apple', b'pear', b'plum']
    >>> seen = tamis.Filter(1000)
    >>> seen.update(tamis.lines("keys.gz"))

    zstd takes Python 3.14 or the package ``zstandard``.
    """
    try:
        with _opened(path, "rb") as file:
            for number, line in enumerate(_unpacked(file)):
                if number == 0:
                    line = line.removeprefix(b"\xef\xbb\xbf")
                if line.endswith(b"\n"):
                    line = line[:-2] if line.endswith(b"\r\n") else line[:-1]
                yield line
    except EOFError as error:
        raise IoError(f"reading lines: {error}") from error
    except OSError as error:
        raise _ours(error) from error


def _unpacked(file: Any) -> Any:
    import bz2
    import gzip
    import io
    import lzma

    if not hasattr(file, "peek"):
        try:
            # An empty read tells bytes from text, whatever the class.
            text = isinstance(file.read(0), str)
            file = file if text else io.BufferedReader(file)
        except (AttributeError, TypeError):
            got = type(file).__qualname__
            raise ArgumentTypeError(f'path: expected a path, or a file of bytes, open with "rb", got {got}') from None
        if text:
            raise ArgumentTypeError(
                'path: expected a path, or a file of bytes, open with "rb", got one of text; '
                "its buffer has the bytes (sys.stdin.buffer), and lines in memory are keys as they are"
            )
    head = file.peek(6)[:6]
    if head.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=file)
    if head.startswith(b"BZh"):
        return bz2.BZ2File(file)
    if head.startswith(b"\xfd7zXZ\0"):
        return lzma.LZMAFile(file)
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        return _unpacked_zstd(file)
    return file


def _unpacked_zstd(file: Any) -> Any:
    import io
    from importlib import import_module

    try:
        return import_module("compression.zstd").ZstdFile(file)
    except ImportError:
        pass
    try:
        zstandard = import_module("zstandard")
    except ImportError:
        raise UnableError(
            "path: a zstd file takes Python 3.14 or the package zstandard; install it, or unpack the file first"
        ) from None
    return io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True))
