"""A dupefilter for Scrapy: each page is fetched once, in this run and in later ones, also after ``kill -9``.

In the project's settings::

    ADDONS = {"tamis.scrapy.Addon": 0}
    TAMIS_FILTER = "seen.tamis"          # or "redis://127.0.0.1:6379/0/seen"
    TAMIS_KEYS = 10_000_000              # how many pages to expect, about
    TAMIS_RATE = 1e-9                    # about one new page in 1/rate is taken for seen, and not fetched;
                                         # in Redis 1e-6 if nothing is said, and 3e-8 at least

**What is remembered.** A request is added to the filter once its response has gone through the spider's callback. Until
then it is pending: in memory, and in the file of pending requests (``TAMIS_PENDING``, "seen.tamis.pending" by default),
where it is written before the page that it came from counts as fetched. A crawl that begins
takes up what the last one left pending. So a page that was not fetched is never taken for fetched, whenever the process
dies; pages that were being fetched at that moment are fetched again. A page whose download failed, or whose callback
raised, is pending, too. A request that can't be written (its callback is no method of the spider, or its meta can't be
pickled) is logged, and the page that it came from stays pending in its place.

The filter grows beyond ``TAMIS_KEYS`` at the same rate. One crawl at a time uses a file; in Redis several may share a
filter, each with a file of pending requests, and a page that two of them find before either has fetched it is fetched by
both. Items that are still in a pipeline when the process dies are lost.

Requests with ``dont_filter=True`` are always fetched, as Scrapy says. Its default ``start()`` makes such requests: for
start pages to be skipped in later runs, yield them yourself without it.
"""

from __future__ import annotations

import logging
import os
import pickle
import shutil
from collections.abc import AsyncIterator, Iterable, Iterator
from io import FileIO
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from scrapy import Request, signals
from scrapy.dupefilters import BaseDupeFilter
from scrapy.utils.request import request_from_dict

from ._tamis import Filter, RedisFilter, connect
from .errors import BusyError, ParameterError

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.settings import BaseSettings
    from scrapy.spiders import Spider

__all__ = ["Addon", "TamisDupeFilter", "TamisFetched"]

_logger = logging.getLogger(__name__)

# The spider middleware finds the dupefilter of its crawler here.
_of_crawler: WeakKeyDictionary[Any, TamisDupeFilter] = WeakKeyDictionary()


class Addon:
    """Switches both parts on: ``ADDONS = {"tamis.scrapy.Addon": 0}``."""

    def update_settings(self, settings: BaseSettings) -> None:
        settings.set("DUPEFILTER_CLASS", TamisDupeFilter, "addon")
        # Nearest to the engine: it sees what really leaves the spider.
        settings["SPIDER_MIDDLEWARES"].set(TamisFetched, 0, priority="addon")


class TamisDupeFilter(BaseDupeFilter):
    """Knows which requests were fetched, by a filter in a file or in Redis."""

    def __init__(self, filter: Filter | RedisFilter, pending: Pending, crawler: Crawler) -> None:
        self._filter = filter
        self._pending = pending
        self._crawler = crawler
        self._in_flight: set[bytes] = set()
        # In flight, and not yet at the scheduler.
        self._foreseen: set[bytes] = set()
        self._unwritten: set[bytes] = set()
        self._logged = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> TamisDupeFilter:
        settings = crawler.settings
        place = settings.get("TAMIS_FILTER")
        if not place:
            raise ParameterError('TAMIS_FILTER: expected a file or "redis://HOST:PORT/DB/NAME", got nothing')
        if settings.get("JOBDIR"):
            raise ParameterError("JOBDIR: expected none, since pending requests are kept in TAMIS_PENDING; leave it out")
        place = str(place)
        in_redis = "://" in place
        rate = settings.getfloat("TAMIS_RATE") or (1e-6 if in_redis else 1e-9)
        name = place.rpartition("/")[2] if in_redis else place
        pending = Pending(settings.get("TAMIS_PENDING", f"{name}.pending"))
        try:
            filter = opened(place, settings.getint("TAMIS_KEYS", 1_000_000), rate)
        except BaseException:
            pending.close()
            raise
        this = cls(filter, pending, crawler)
        _of_crawler[crawler] = this
        crawler.signals.connect(this._take_up, signal=signals.spider_opened)
        return this

    def _fingerprint(self, request: Request) -> bytes:
        fingerprinter = self._crawler.request_fingerprinter
        assert fingerprinter is not None
        return fingerprinter.fingerprint(request)

    def open(self) -> None:
        if not any(isinstance(part, TamisFetched) for part in self._crawler.engine.scraper.spidermw.middlewares):  # type: ignore[union-attr]
            raise ParameterError(
                'SPIDER_MIDDLEWARES: expected "tamis.scrapy.TamisFetched" among them, which reports what was fetched; '
                'ADDONS = {"tamis.scrapy.Addon": 0} switches both on'
            )

    def _take_up(self, spider: Spider) -> None:
        """Schedules what the last run left pending."""
        engine = self._crawler.engine
        assert engine is not None
        for fingerprint, data in self._pending.left():
            if fingerprint in self._filter or fingerprint in self._in_flight:
                continue
            request = request_from_dict(pickle.loads(data), spider=spider)
            self._in_flight.add(fingerprint)
            self._foreseen.add(fingerprint)
            engine.crawl(request)
        if self._in_flight:
            _logger.info("%d requests were pending and are taken up", len(self._in_flight))
        self._pending.keep_only(self._in_flight)

    def foresee(self, request: Request) -> bool:
        """The spider has made a request: from here on no death loses it. False if it can't be written."""
        fingerprint = self._fingerprint(request)
        if fingerprint in self._in_flight:
            return fingerprint not in self._unwritten
        if fingerprint in self._filter and not request.dont_filter:
            return True
        self._in_flight.add(fingerprint)
        self._foreseen.add(fingerprint)
        try:
            data = pickle.dumps(request.to_dict(spider=self._crawler.spider), protocol=4)
        except Exception as error:  # of whatever class the caller's objects raise
            _logger.warning("%s can't be written, so the page that it came from stays pending: %s", request, error)
            self._unwritten.add(fingerprint)
            return False
        self._pending.write(fingerprint, data, self._in_flight)
        return True

    def request_seen(self, request: Request) -> bool:
        # Those of the spider are foreseen; those of its start and of redirections are not yet.
        fingerprint = self._fingerprint(request)
        if fingerprint not in self._in_flight:
            self.foresee(request)
        if fingerprint in self._foreseen:
            self._foreseen.remove(fingerprint)
            return False
        return True

    def fetched(self, request: Request) -> None:
        """The response has gone through the spider; requests that were redirected to it, with it."""
        before = [request.replace(url=url) for url in request.meta.get("redirect_urls", [])]
        for one in [*before, request]:
            fingerprint = self._fingerprint(one)
            self._filter.add(fingerprint)
            self._in_flight.discard(fingerprint)
            self._foreseen.discard(fingerprint)
            self._unwritten.discard(fingerprint)

    def close(self, reason: str) -> None:
        self._pending.keep_only(self._in_flight)
        self._pending.close()
        self._filter.close()

    def log(self, request: Request, spider: Spider) -> None:
        if not self._logged:
            self._logged = True
            _logger.debug("Filtered a request that was seen: %s; no more are shown", request)
        if self._crawler.stats is not None:
            self._crawler.stats.inc_value("dupefilter/filtered")


def opened(place: str, keys: int, rate: float) -> Filter | RedisFilter:
    """The filter, made if it is not there."""
    if "://" in place:
        return connect(place, keys, rate, grow=True)
    try:
        return Filter.open(place, "r+")
    except FileNotFoundError:
        return Filter.create(place, keys, rate, grow=True)


class TamisFetched:
    """Spider middleware: reports to the dupefilter which responses the spider is done with."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> TamisFetched:
        return cls(crawler)

    def process_spider_output(self, response: Response, result: Iterable[Any]) -> Iterator[Any]:
        watch = Watch(self._crawler)
        for one in result:
            watch.leaves(one)
            yield one
        watch.done(response)

    async def process_spider_output_async(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        watch = Watch(self._crawler)
        async for one in result:
            watch.leaves(one)
            yield one
        watch.done(response)


class Watch:
    """What comes out of the spider for one response."""

    def __init__(self, crawler: Crawler) -> None:
        self._dupefilter = _of_crawler.get(crawler)
        self._whole = True

    def leaves(self, one: Any) -> None:
        """The engine is about to get it."""
        if self._dupefilter is not None and isinstance(one, Request) and not self._dupefilter.foresee(one):
            self._whole = False

    def done(self, response: Response) -> None:
        """That was all."""
        if self._dupefilter is not None and response.request is not None and self._whole:
            self._dupefilter.fetched(response.request)


class Pending:
    """The file of pending requests: what is in it and not in the filter was not fetched.

    Each record is the lengths of fingerprint and request (4 little-endian bytes each) and then these. What a death cut
    short is at the end, and was not scheduled yet. Written to the system at once, so that it outlives the process; the
    death of the machine is noticed by the filter.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = locked(open(path, "ab", buffering=0, opener=private), path)
        self._records = 0

    def left(self) -> Iterator[tuple[bytes, bytes]]:
        """What is in the file: fingerprints and requests."""
        with open(self._path, "rb") as file:
            while len(lengths := file.read(8)) == 8:
                name = int.from_bytes(lengths[:4], "little")
                size = int.from_bytes(lengths[4:], "little")
                fingerprint, data = file.read(name), file.read(size)
                if len(data) < size:
                    return
                yield fingerprint, data

    def write(self, fingerprint: bytes, data: bytes, pending: set[bytes]) -> None:
        self._file.write(record(fingerprint, data))
        self._records += 1
        # Mostly of pages that are fetched by now.
        if self._records > 100_000 + 4 * len(pending):
            self.keep_only(pending | {fingerprint})

    def keep_only(self, pending: set[bytes]) -> None:
        """Replaces the file by one of these alone, which has the lock before it takes the old one's place."""
        # Requests may hold passwords: others may read the new file at most once it is complete, if they could before.
        new = locked(open(f"{self._path}.new", "wb", buffering=0, opener=private), self._path)
        rest = set(pending)
        for fingerprint, data in self.left():
            if fingerprint in rest:
                rest.remove(fingerprint)
                new.write(record(fingerprint, data))
        shutil.copymode(self._path, new.name)
        os.replace(new.name, self._path)
        self._file.close()
        self._file = new
        self._records = len(pending) - len(rest)

    def close(self) -> None:
        self._file.close()


def private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def locked(file: FileIO, path: str) -> FileIO:
    """Of two crawls one has the file."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:  # Windows: two crawls are not kept apart there
        pass
    except OSError as error:
        file.close()
        raise BusyError(f"another crawl has {path}; give each its own TAMIS_PENDING") from error
    return file


def record(fingerprint: bytes, data: bytes) -> bytes:
    return len(fingerprint).to_bytes(4, "little") + len(data).to_bytes(4, "little") + fingerprint + data
