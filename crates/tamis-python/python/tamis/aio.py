"""Filters in Redis for asyncio: the calls of `RedisFilter`, awaited."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any, overload

from ._tamis import Filter, RedisFilter, connect
from .errors import ClosedError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable
    from concurrent.futures import ThreadPoolExecutor

    from ._tamis import _Column, _Key

# asyncio is imported by those who use it: whoever does not need not wait for it.

__all__ = ["AsyncRedisFilter", "aconnect"]


async def aconnect(location: str, n: int | None = None, p: float | None = None, **options: Any) -> AsyncRedisFilter:
    """`connect` for asyncio: opens a filter in Redis without holding up the loop.

    The arguments are those of `connect`.
    """
    import asyncio

    thread = _new_thread()
    try:
        call = partial(connect, location, n, p, **options)
        return AsyncRedisFilter(await asyncio.get_running_loop().run_in_executor(thread, call), thread)
    except BaseException:
        thread.shutdown(wait=False)
        raise


def _new_thread() -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(1, thread_name_prefix="tamis")


class AsyncRedisFilter:
    """A filter in Redis, for asyncio: what `aconnect` gives.

    Each call runs on a thread of the filter's own, so that the loop goes on; calls
    are done one after the other, in the order in which they were awaited. **A call
    that is cancelled may be carried out all the same**: whether its keys were
    added is then unknown, and to add them again is right. The calls behind it don't
    wait for it: they go over another connection. Many keys at a time (`add_many`)
    cost one round trip instead of one each.
    """

    def __init__(self, filter: RedisFilter, thread: ThreadPoolExecutor) -> None:
        self._filter = filter
        self._thread = thread
        self._process = os.getpid()
        self._open = True
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turn: asyncio.Lock

    async def _call(self, name: str, *args: Any) -> Any:
        if not self._open:
            raise ClosedError("the filter is closed; connect again, or use it inside its `async with` block")
        return await self._run(name, *args)

    async def _run(self, name: str, *args: Any) -> Any:
        import asyncio

        if self._process != os.getpid():  # forked: the thread is not here
            self._process = os.getpid()
            self._loop = None
            self._start_anew()
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._turn = loop, asyncio.Lock()
        async with self._turn:
            call = self._thread.submit(getattr(self._filter, name), *args)
            try:
                return await asyncio.wrap_future(call)
            except asyncio.CancelledError:
                if call.running():
                    # It can't be stopped; its connection is closed behind it.
                    self._thread.submit(self._filter.close)
                    self._thread.shutdown(wait=False)
                    self._start_anew()
                raise

    def _start_anew(self) -> None:
        self._filter = self._filter._another()
        self._thread = _new_thread()

    async def add(self, key: _Key) -> bool:
        """Adds a key; returns whether it was new, to exactly one of many workers."""
        return await self._call("add", key)

    async def contains(self, key: _Key) -> bool:
        """Whether the key may have been added."""
        return await self._call("__contains__", key)

    @overload
    async def add_many(self, keys: _Column) -> Any: ...
    @overload
    async def add_many(self, keys: Iterable[_Key]) -> list[bool]: ...
    async def add_many(self, keys: Any) -> Any:
        """Adds many keys; returns whether each was new."""
        return await self._call("add_many", keys)

    @overload
    async def contains_many(self, keys: _Column) -> Any: ...
    @overload
    async def contains_many(self, keys: Iterable[_Key]) -> list[bool]: ...
    async def contains_many(self, keys: Any) -> Any:
        """Asks many keys; returns for each whether it may have been added."""
        return await self._call("contains_many", keys)

    async def update(self, keys: Iterable[_Key] | _Column) -> None:
        """Adds many keys, and answers nothing."""
        await self._call("update", keys)

    async def remove(self, key: _Key) -> bool:
        """Undoes one addition of a key; see `RedisFilter.remove`."""
        return await self._call("remove", key)

    async def count(self, key: _Key) -> int:
        """How often a key was added, at most; see `RedisFilter.count`."""
        return await self._call("count", key)

    async def clear(self) -> None:
        """Removes all keys."""
        await self._call("clear")

    async def info(self) -> dict[str, Any]:
        """What the filter is and how full, as a dict."""
        return await self._call("info")

    async def copy(self) -> Filter:
        """A copy in memory, with the same bits."""
        return await self._call("copy")

    async def expire(self, seconds: float | None) -> None:
        """Lets the whole filter end after this many seconds, or never (None)."""
        await self._call("expire", seconds)

    async def delete(self) -> None:
        """Deletes the filter on the server, for everyone."""
        await self._call("delete")

    async def close(self) -> None:
        """Lets go of the connection, after the calls that wait; the filter stays on the server."""
        if self._open:
            self._open = False
            await self._run("close")
            self._thread.shutdown(wait=False)

    async def __aenter__(self) -> AsyncRedisFilter:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return repr(self._filter).replace("RedisFilter", "AsyncRedisFilter")
