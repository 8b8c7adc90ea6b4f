"""Real crawls of a local server: once, twice, and killed in the middle."""

import gc
import http.server
import multiprocessing
import os
import pathlib
import runpy
import signal
import sys
import threading

import pytest

import tamis

# Every crawl is a process of its own, forked from one that has imported what takes a crawl longest to start.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["pytest", "scrapy.crawler", "aiohttp.web", "tldextract"])

SPIDER = """
import os, sys
import scrapy
from scrapy.crawler import CrawlerProcess

class Pages(scrapy.Spider):
    name = "pages"
    allowed_domains = ["127.0.0.1"]

    async def start(self):
        yield scrapy.Request(sys.argv[1] + "/0")

    def parse(self, response):
        BEFORE
        with open("parsed", "a") as parsed:
            parsed.write(response.url.rpartition("/")[2] + "\\n")
        yield {"url": response.url}
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link, EXTRA)

if __name__ == "__main__":
    settings = {
        "ADDONS": {"tamis.scrapy.Addon": 0},
        "TAMIS_FILTER": sys.argv[2],
        "TAMIS_KEYS": 100,          # too few: it grows
        "LOG_LEVEL": "INFO",
        "TELNETCONSOLE_ENABLED": False,
        "DOWNLOAD_DELAY": 0,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
        "RETRY_ENABLED": False,
        **SETTINGS,
    }
    process = CrawlerProcess(settings)
    process.crawl(Pages)
    process.start()
"""


def crawl(folder, *arguments):
    """Runs the spider of the folder, as `python spider.py` would."""
    os.chdir(folder)
    log = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    sys.argv = ["spider.py", *arguments]
    runpy.run_path("spider.py", run_name="__main__")
    # Errors that nobody handled are logged when their objects end, and a fork ends without that.
    gc.collect()


class Site(http.server.ThreadingHTTPServer):
    """Page i links to three others that nobody else links to, to the first, and to one far away."""

    daemon_threads = True
    # All that the crawler asks at once may wait for a thread that has no time.
    request_queue_size = 128

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Page)
        self.lock = threading.Lock()
        self.fetched = []
        self.enough = threading.Event()
        self.gone = threading.Event()
        self.limit = None
        self.pages = 100

    def run(self, folder, place, settings=None, extra="self.parse", before="", kill_after=None):
        """Crawls; returns the pages fetched. A crawl that is to be killed gets this many, and waits for others until it is."""
        with self.lock:
            self.fetched = []
            self.limit = kill_after
            self.enough.clear()
            self.gone = threading.Event()
        source = SPIDER.replace("SETTINGS", repr(settings or {})).replace("EXTRA", extra).replace("BEFORE", before)
        (folder / "spider.py").write_text(source)
        url = f"http://127.0.0.1:{self.server_address[1]}"
        process = PROCESSES.Process(target=crawl, args=(folder, url, place))
        process.start()
        if kill_after is not None:
            while not self.enough.wait(0.1):
                assert process.is_alive(), (folder / "log").read_text()
            process.kill()
        process.join(600)
        self.gone.set()
        assert process.exitcode == (0 if kill_after is None else -signal.SIGKILL), (folder / "log").read_text()
        with self.lock:
            return list(self.fetched)


def links(page, pages):
    return [link for link in range(3 * page + 1, 3 * page + 4) if link < pages] + [(page * 7 + 13) % pages]


class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        number = int(self.path[1:])
        site = self.server
        body = "".join(f'<a href="/{link}">{link}</a>' for link in [0, *links(number, site.pages)]).encode()
        with site.lock:
            gone, held = site.gone, site.limit is not None and len(site.fetched) >= site.limit
            if not held:
                site.fetched.append(number)
            if len(site.fetched) == site.limit:
                site.enough.set()
        if held:
            gone.wait()
            self.close_connection = True
            return
        self.send_response(404 if number == 5 else 200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


# The subtree of the page that answers 404 is found by the links from far away only, or not at all.
def reachable(pages):
    found, left = {0}, [0]
    while left:
        page = left.pop()
        if page == 5:
            continue
        for link in links(page, pages):
            if link not in found:
                found.add(link)
                left.append(link)
    return found


@pytest.fixture
def site():
    with Site() as site:
        thread = threading.Thread(target=site.serve_forever)
        thread.start()
        yield site
        site.shutdown()
        thread.join()


@pytest.mark.parametrize("pages", [100, pytest.param(2000, marks=pytest.mark.heavy)])
def test_a_second_crawl_fetches_nothing(site, tmp_path, pages):
    site.pages = pages
    first = site.run(tmp_path, "seen.tamis")
    assert sorted(first) == sorted(reachable(site.pages))
    assert len(first) > pages * 0.9
    assert site.run(tmp_path, "seen.tamis") == []
    assert (tmp_path / "seen.tamis.pending").read_bytes() == b""


@pytest.mark.parametrize("after,pages", [(1, 100), (150, 300), pytest.param(700, 2000, marks=pytest.mark.heavy)])
def test_nothing_is_skipped_after_a_kill(site, tmp_path, after, pages):
    site.pages = pages
    first = site.run(tmp_path, "seen.tamis", kill_after=after)
    assert len(first) == after
    second = site.run(tmp_path, "seen.tamis")
    assert set(first) | set(second) == reachable(site.pages)
    # Only those are fetched again that were on their way, or not yet parsed.
    assert len(set(first) & set(second)) <= 64
    parsed = {int(line) for line in (tmp_path / "parsed").read_text().splitlines()}
    assert parsed == reachable(site.pages) - {5}
    assert site.run(tmp_path, "seen.tamis") == []


def test_killed_many_times(site, tmp_path):
    pages = set()
    for _ in range(4):
        pages.update(site.run(tmp_path, "seen.tamis", kill_after=12))
    pages.update(site.run(tmp_path, "seen.tamis"))
    assert pages == reachable(site.pages)


def test_in_redis(site, tmp_path, server):
    place = f"redis://{server}/scrapy"
    first = site.run(tmp_path, place, kill_after=40)
    second = site.run(tmp_path, place)
    assert set(first) | set(second) == reachable(site.pages)
    assert site.run(tmp_path, place) == []
    tamis.connect(place).delete()


def test_what_a_crawl_refuses_holds_up_nothing(site, tmp_path):
    before = "yield scrapy.Request('http://elsewhere.invalid/')"
    assert set(site.run(tmp_path, "seen.tamis", before=before)) == reachable(site.pages)
    assert site.run(tmp_path, "seen.tamis") == []


def test_a_callback_that_raises_leaves_its_page_pending(site, tmp_path):
    first = site.run(tmp_path, "seen.tamis", before="1 / (not response.url.rpartition('/')[2].startswith('7'))")
    assert any(str(page).startswith("7") for page in first)
    second = site.run(tmp_path, "seen.tamis")
    assert set(first) | set(second) == reachable(site.pages)
    assert {page for page in first if str(page).startswith("7")} <= set(second)


def test_requests_that_cannot_be_written_keep_their_page_pending(site, tmp_path):
    first = site.run(tmp_path, "seen.tamis", extra="callback=lambda response: self.parse(response)", kill_after=40)
    assert "can't be written" in (tmp_path / "log").read_text()
    second = site.run(tmp_path, "seen.tamis")
    assert set(first) | set(second) == reachable(site.pages)


@pytest.mark.parametrize(
    "settings,text",
    [
        ({"TAMIS_FILTER": None}, "TAMIS_FILTER: expected a file"),
        ({"JOBDIR": "job"}, "JOBDIR: expected none"),
        ({"ADDONS": {}, "DUPEFILTER_CLASS": "tamis.scrapy.TamisDupeFilter"}, "SPIDER_MIDDLEWARES: expected"),
    ],
)
def test_mistakes_are_said(site, tmp_path, settings, text):
    assert site.run(tmp_path, "seen.tamis", settings) == []
    assert text in (tmp_path / "log").read_text()


def test_two_crawls_do_not_share_a_file(tmp_path):
    from tamis.scrapy import Pending

    first = Pending("pending")
    with pytest.raises(tamis.BusyError, match="TAMIS_PENDING"):
        Pending("pending")
    first.write(b"a", b"1", set())
    first.keep_only({b"a"})
    with pytest.raises(tamis.BusyError):
        Pending("pending")
    first.close()
    second = Pending("pending")
    assert list(second.left()) == [(b"a", b"1")]
    second.write(b"b", b"22", {b"a"})
    second.close()
    whole = pathlib.Path("pending").read_bytes()
    for cut in range(len(whole)):
        pathlib.Path("pending").write_bytes(whole[:cut])
        third = Pending("pending")
        assert list(third.left()) == ([(b"a", b"1")] if cut >= 10 else [])
        third.close()


@pytest.mark.skipif(os.name == "nt", reason="no modes there")
def test_requests_are_for_the_eyes_of_their_owner(monkeypatch, tmp_path):
    from tamis.scrapy import Pending

    mode = lambda path: pathlib.Path(path).stat().st_mode & 0o777  # noqa: E731
    monkeypatch.chdir(tmp_path)
    pending = Pending("pending")
    assert mode("pending") == 0o600
    for chosen in 0o600, 0o640:
        os.chmod("pending", chosen)
        pending.write(b"a", b"1", set())
        seen = []
        left = pending.left
        monkeypatch.setattr(pending, "left", lambda: (seen.append(mode("pending.new")), left())[1])
        pending.keep_only({b"a"})
        monkeypatch.undo()
        monkeypatch.chdir(tmp_path)
        assert seen == [0o600] and mode("pending") == chosen
    pending.close()
