"""The page without a service: `tamis serve --save-page` in a folder of any web server, numbers from WebAssembly, and files that are
dropped on it."""

import http.server
import json
import os
import re
import struct
import subprocess
import threading
import urllib.error
import urllib.request
from functools import partial

import pytest
from conftest import ROOT, TAMIS, Page, tamis
from selenium.webdriver.common.keys import Keys
from test_filters import AXE, DIGEST, DRAWN, PICTURES, WIDTHS, check, digest_of_page, draw, fact, picture_of, window, wrapped

GOLDEN = ROOT / "crates/tamis/tests/golden"
ANSWERS = json.loads((GOLDEN / "answers.json").read_text())
ALIKE = json.loads((GOLDEN / "alike.json").read_text())
# As a key file has it.
SECRET = (GOLDEN / "secret.key").read_bytes().hex()
# Its machine went down while it was written: only those who accept the loss may ask it.
UNCLEAN = {name for name, told in ANSWERS["files"].items() if told["refused"]}


@pytest.fixture(scope="session")
def corrupt(tmp_path_factory):
    """Files that every reader has to refuse, as crates/tamis/tests/golden/README.md says; TAMIS_CORRUPT_FILES may have them already."""
    if there := os.environ.get("TAMIS_CORRUPT_FILES"):
        return there
    folder = tmp_path_factory.mktemp("corrupt")
    subprocess.run(["cargo", "test", "--quiet", "-p", "tamis", "--test", "files", "corrupt"], cwd=ROOT, env={**os.environ, "TAMIS_CORRUPT_FILES": str(folder)}, check=True, capture_output=True)  # fmt: skip
    return folder


class Site:
    """A folder of files on a port of its own, with the page somewhere in it, and what was asked for."""

    def __init__(self, folder):
        tamis("serve", "--save-page", folder / "tools/filters")
        self.folder, self.asked = folder, []
        asked = self.asked

        class Handler(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def log_request(self, *_):
                asked.append(self.path)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.root = f"http://127.0.0.1:{self.server.server_address[1]}/"
        self.address = self.root + "tools/filters/"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    site = Site(tmp_path_factory.mktemp("site"))
    yield site
    site.server.shutdown()


@pytest.fixture
def page(driver, site):
    page = Page(driver, site.address)
    page.leave()
    page.errors()
    site.asked.clear()
    yield page
    page.leave()
    # The browser tells that there is no service; nothing else is wrong.
    assert [entry for entry in page.errors() if "v1/filters" not in entry["message"]] == []


def ask(page, code, *args):
    """Runs code that waits, with the page's modules at hand."""
    wrapped = """const done = arguments[arguments.length - 1], given = [...arguments].slice(0, -1);
        const module = (name) => import(new URL(`page/${name}.js`, document.baseURI));
        (async (...given) => { %s })(...given).then((value) => done([value]), (error) => done([null, String(error.stack)]))""" % code
    value, *wrong = page.driver.execute_async_script(wrapped, *args)
    assert not wrong, wrong
    return value


def calculate(page, call, texts):
    return ask(page, "const { calculate } = await module('tamis'); return Promise.all(given[1].map((text) => calculate(given[0], text)));", call, texts)


def of_service(service, path, body=None):
    """What the service answers: [value], or [None, problem]."""
    headers = {"content-type": "application/json"} if body else {}
    try:
        with urllib.request.urlopen(urllib.request.Request(service.address + path, body, headers)) as response:
            return [json.load(response)]
    except urllib.error.HTTPError as error:
        return [None, json.load(error)["error"]]


def alike(page, service, is_huge=False):
    """Equal, except that logarithms of the system and of WebAssembly differ in the last bit, which in a low rate, being the
    difference of numbers near 1, is not the last digit. Texts are the same, and so are sizes and other whole numbers, except
    that a size of terabytes, being looked for by halving, ends a few kilobytes beside."""
    if isinstance(page, dict):
        is_huge = page.get("bytes", 0) > 10**12
        return page.keys() == service.keys() and all(alike(page[key], service[key], is_huge) for key in page)
    if isinstance(page, list):
        return len(page) == len(service) and all(map(alike, page, service))
    if isinstance(page, float) or is_huge and isinstance(page, int):
        return page == pytest.approx(service, rel=1e-6 if is_huge else 1e-12, abs=1e-15)
    return page == service


def test_every_plan_is_that_of_the_service(page, service):
    page.open("calculator")
    needs = ["", "&need=finished", "&need=delete", "&need=grow", "&need=forget", "&need=forget&generations=24"]
    given = [f"keys={keys}&rate={rate}" for keys in ["1", "37", "1000", "12345", "1M", "10M", "1.5G", "1e12"] for rate in ["20%25", "0.01", "1e-3", "1e-6", "1e-9"]]
    given += [f"keys={keys}&size={size}" for keys in ["1000", "10M", "3G"] for size in ["1MB", "16MB", "2GiB"]] + ["rate=0.01&size=16MB", "keys=10M", "keys=7&rate=0.3&size=1kB"]
    queries = [text + need for text in given for need in needs]
    queries += [f"keys=1M&bits={bits}&hashes={hashes}" for bits in ["1", "10M", "1e15", "x"] for hashes in ["1", "7", "0", "65", "9e99"]]
    # What is wrong is said in the same words.
    queries += ["", "keys=0", "keys=-1", "keys=1e30", "rate=2", "size=", "need=x", "keys=1&keys=2", "%", "keys=%ff", "generations=8", "keys=10&need=forget&generations=0", "x=1"]
    told = calculate(page, "plan", queries)
    assert len(told) > 300 and sum(value[0] is not None for value in told) > 200
    for query, value in zip(queries, told):
        expected = of_service(service, f"v1/plan?{query}")
        assert alike(value, expected), query
    # And that of the command.
    for keys, rate in [("10M", "0.001"), ("12345", "1e-6")]:
        ((value,),) = calculate(page, "plan", [f"keys={keys}&rate={rate}"])
        command = [plan for plan in json.loads(tamis("plan", "--json", "--capacity", keys, "-p", rate)) if "left_out" not in plan]
        assert alike(value["plans"], command)


def test_every_reason_is_that_of_the_service(page, service):
    page.open("why")
    queries = ["", "bits_per_key=10&hashes=7", "bits_per_key=1&hashes=24", "bits_per_key=31.5&hashes=1", "hashes=7", "bits_per_key=33&hashes=1", "x"]
    for query, value in zip(queries, calculate(page, "why", queries)):
        assert alike(value, of_service(service, f"v1/why?{query}")), query


def test_every_playground_is_that_of_the_service(page, service):
    page.open("playground")
    keys = [f"key {i}" for i in range(40)] + ["", "é键", "x" * 1000]
    shapes = [
        {"kind": "bloom", "bits": 16, "hashes": 3}, {"kind": "bloom", "bits": 4096, "hashes": 7},
        {"kind": "blocked", "lines": 3, "hashes_per_line": 2, "lines_per_key": 2}, {"kind": "counting", "lines": 2, "hashes_per_line": 3, "lines_per_key": 1},
        {"kind": "cuckoo", "slots": 64, "window": 2, "width": 8}, {"kind": "bloom", "bits": 0, "hashes": 3}, {"kind": "cuckoo", "slots": 9999, "window": 2, "width": 8}, {"kind": "x"},
    ]  # fmt: skip
    requests = [json.dumps({"shape": shape, "a": keys, "b": keys[:9], "ask": [*keys[:3], "never"], "find": True, "trace": 5}) for shape in shapes]
    requests += [" ", "[]", "{}", json.dumps({"shape": shapes[0], "a": ["x" * 1001]}), json.dumps({"shape": shapes[0], "a": [""] * 1001}), " " * (1 << 18) + "{}"]
    for request, value in zip(requests, calculate(page, "playground", requests)):
        assert alike(value, of_service(service, "v1/playground", request.encode())), request[:200]


def test_nothing_is_asked_for_but_files_and_once_a_service(page, site):
    page.open("calculator")
    page.settles("calculator")
    assert page.all("#kinds tr")
    for tab in ["why", "playground"]:
        page.press(f"#tab-{tab}")
        page.settles(tab)
    page.press("#find")
    page.wait(lambda: "stranger" in page.text("#panel-playground"), "a false yes")
    page.press("#tab-filters")
    page.wait(lambda: page.one("#drop-file").is_displayed(), "the place for files")
    page.one("#drop-file").send_keys(str(GOLDEN / "bloom.tamis"))
    page.wait(lambda: fact(page, "kind") == "bloom", "the file")
    check(page, "added-0\nprobe-0")
    assert "served" not in page.text("#panel-filters") and not page.one("#service").is_displayed() and page.text("#filters-problem") == ""
    page.press("#tab-why")
    page.press("#tab-filters")
    files = {f"/tools/filters/page/{path.name}" for path in (site.folder / "tools/filters/page").iterdir()}
    others = [path for path in site.asked if path not in files and path not in ("/tools/filters/", "/favicon.ico")]
    assert others == ["/tools/filters/v1/filters"]


def test_the_policy_is_that_of_the_service(service, site):
    """But for frames, of which a page can't speak itself."""
    headers = urllib.request.urlopen(service.address).headers
    policy = headers["content-security-policy"].replace("; frame-ancestors 'none'", "")
    assert f'<meta http-equiv="Content-Security-Policy" content="{policy}">' in (site.folder / "tools/filters/index.html").read_text()


def drop(page, *paths):
    page.open("filters")
    page.wait(lambda: page.one("#drop-file").is_displayed(), "the place for files")
    page.one("#drop-file").send_keys("\n".join(map(str, paths)))


def stage(page):
    return page.script("return [...document.querySelectorAll('#drop-files li')].map((item) => item.dataset.stage)")


def open_golden(page, name):
    drop(page, GOLDEN / name)
    if "apart" in name:
        page.wait(lambda: stage(page) == ["locked"], "the question for the key")
        page.one("#drop-files input[type=text]").send_keys(SECRET, Keys.ENTER)
    page.wait(lambda: page.text("#filter-name") == name, f"{name}: {page.text('#drop-files')}")


def ask_file(page, keys, is_hex=False):
    """The file that is open, through its worker: more keys than a box is for."""
    code = """const { open } = await module("dropped");
        const { value, problem } = await open()[0].library.ask({ call: "ask", text: JSON.stringify({ keys: given[0], hex: given[1] }) });
        return value?.found ?? problem"""
    return ask(page, code, keys, is_hex)


def fnv(found):
    digest = 0xCBF29CE484222325
    for answer in found:
        digest = (digest ^ (49 if answer else 48)) * 0x100000001B3 % 2**64
    return {"yes": sum(found), "digest": f"{digest:016x}"}


TYPES = {
    "texts": ([f"{name}-{i}" for name in ("probe", "added") for i in range(5000)], False),
    "bytes": ([bytes((31 * i + 7 * j) % 256 for j in range(i % 300)).hex() for i in range(10_000)], True),
    "integers": ([(i * 0x9E3779B97F4A7C15 % 2**64).to_bytes(8, "little").hex() for i in range(10_000)], True),
}


@pytest.mark.parametrize("name", sorted(ANSWERS["files"]))
def test_a_golden_file_answers_as_everywhere(page, name, tmp_path):
    told = ANSWERS["files"][name]
    if name in UNCLEAN:
        drop(page, GOLDEN / name)
        page.wait(lambda: stage(page) == ["wrong"], "the refusal")
        assert "writing" in page.text("#drop-files")
        return
    open_golden(page, name)
    assert fact(page, "kind") == told["kind"]
    # Every key that was added, and no other stranger than elsewhere.
    special = ask_file(page, ANSWERS["special"], True)
    assert all(special[: told["added"]])
    assert all(ask_file(page, [f"added-{i}" for i in range(told["added"] - len(ANSWERS["special"]))]))
    found = ask_file(page, [f"probe-{i}" for i in range(ANSWERS["probes"])])
    assert [i for i, answer in enumerate(found) if answer] == told["false yes"]
    for kind, (keys, is_hex) in TYPES.items():
        assert fnv(ask_file(page, keys, is_hex)) == ALIKE[name][kind], kind
    # What the command prints of it, word by word.
    (tmp_path / "key").write_text(SECRET)
    key = ["--secret-file", tmp_path / "key"] if "apart" in name else []
    page.script("document.querySelector('#filter-info').open = true")
    assert page.script("return document.querySelector('#filter-info pre').textContent") == tamis("info", GOLDEN / name, *key)
    assert check(page, "added-0\nprobe-0") == {"added-0": "yes" if told["added"] > len(ANSWERS["special"]) else "no", "probe-0": "yes" if 0 in told["false yes"] else "no"}
    page.press("#check-answers tbody tr:last-child button")
    page.wait(lambda: page.one("#check-explained").is_displayed(), "the explanation")
    # A file that lies about is asked as of its latest key.
    at = ["--at", "latest"] if told["kind"] == "window" and name != "window-keys.tamis" else []
    assert page.one("#check-explained").get_property("textContent") == tamis("explain", GOLDEN / name, "probe-0", *key, *at)


def test_keys_of_several_values_and_rules(page, tmp_path):
    (tmp_path / "pairs.csv").write_text("Ada,2026\nBob,1999\n")
    tamis("build", "pairs.tamis", "pairs.csv", "-k", "csv:1,2", "--no-header", "-p", "1e-9", cwd=tmp_path)
    tamis("create", "urls.tamis", "--capacity", "100", "-p", "1e-6", "--url", cwd=tmp_path)
    tamis("add", "urls.tamis", cwd=tmp_path, stdin=b"https://example.org/a/../b\n")
    drop(page, tmp_path / "pairs.tamis", tmp_path / "urls.tamis")
    page.wait(lambda: len(page.all("#opened-list button")) == 2, "both files")
    page.press('#opened-list button[data-name="pairs.tamis"]')
    assert "2 values" in page.text("#check-hint")
    # Not typed: a tab would leave the box.
    page.script("document.querySelector('#check-keys').value = 'Ada\\t2026\\nAda\\t1999'")
    page.one("#check button").click()
    page.wait(lambda: page.all("#check-answers tbody tr"), "answers")
    assert page.script("return [...document.querySelectorAll('#check-answers .badge')].map((badge) => badge.dataset.verdict)") == ["yes", "no"]
    page.type("#check-keys", "Ada")
    page.one("#check button").click()
    page.wait(lambda: "expected 2 values" in page.text("#check-answers"), "what is wrong")
    page.press('#opened-list button[data-name="urls.tamis"]')
    assert page.text("#check-answers") == "" and "URL" in page.text('[data-fact="keys_are"]')
    assert check(page, "HTTPS://Example.org/b\nhttps://example.org/c") == {"HTTPS://Example.org/b": "yes", "https://example.org/c": "no"}
    # Closing one shows the other.
    page.press("#filter-close button")
    page.wait(lambda: page.text("#filter-name") == "pairs.tamis", "the other file")


def test_a_file_is_dropped_on_any_tab(page):
    page.open("calculator")
    page.settles("calculator")
    ask(page, """const file = new File([Uint8Array.from(given[0])], "dropped.tamis");
        const data = new DataTransfer();
        data.items.add(file);
        for (const type of ["dragenter", "dragover", "drop"]) {
            const event = new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true });
            document.body.dispatchEvent(event);
            if (!event.defaultPrevented) throw new Error(`the browser would take the ${type}`);
        }""", list((GOLDEN / "counting-one-line.tamis").read_bytes()))  # fmt: skip
    page.wait(lambda: page.text("#filter-name") == "dropped.tamis", "the file")
    assert page.one("#panel-filters").is_displayed() and fact(page, "kind") == "counting"
    # It stays open when the language changes, and no link has it.
    try:
        page.press("#language")
        page.wait(lambda: page.text("#tab-filters") == "过滤器", "Chinese")
        assert page.text("#filter-name") == "dropped.tamis" and "dropped" not in page.driver.current_url
    finally:
        page.script("localStorage.clear()")


def test_a_secret_key_is_asked_for(page, tmp_path, site):
    drop(page, GOLDEN / "bloom-keyed-apart.tamis")
    page.wait(lambda: stage(page) == ["locked"], "the question for the key")
    problem = "#drop-files .problem"
    for wrong, said in [("0" * 32, "not the secret key"), ("xyz", "32 hexadecimal digits"), ("", "32 hexadecimal digits")]:
        box = page.one("#drop-files input[type=text]")
        box.clear()
        box.send_keys(wrong, Keys.ENTER)
        page.wait(lambda: said in page.text(problem), said)
    # Some other file is no key, and is not read to its end.
    page.one("#drop-files form input[type=file]").send_keys(str(GOLDEN / "bloom.tamis"))
    page.wait(lambda: "other characters" in page.text(problem), "what is wrong")
    key = tmp_path / "key"
    key.write_text(f"{SECRET}\n")
    page.one("#drop-files form input[type=file]").send_keys(str(key))
    page.wait(lambda: fact(page, "kind") == "bloom", "the file")
    assert ask_file(page, ["probe-1", "added-1"])[1]
    assert not any(SECRET in path for path in site.asked)


def test_what_is_no_filter_is_refused(page, tmp_path):
    (tmp_path / "empty.tamis").write_bytes(b"")
    (tmp_path / "text.txt").write_text("apple\npear\n")
    whole = (GOLDEN / "bloom.tamis").read_bytes()
    (tmp_path / "cut.tamis").write_bytes(whole[:-1])
    (tmp_path / "<b>hostile.tamis").write_bytes(whole[:20] + b"\xff" + whole[21:])
    names = ["empty.tamis", "text.txt", "cut.tamis", "<b>hostile.tamis"]
    drop(page, *(tmp_path / name for name in names), GOLDEN / "bloom.tamis")
    page.wait(lambda: stage(page) == ["wrong"] * 4 and fact(page, "kind") == "bloom", "four refusals and a filter")
    for name, item in zip(names, page.all("#drop-files li")):
        done = subprocess.run([TAMIS, "info", name], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 2 and name in item.text and len(item.text.split("\n")[1]) > 20, item.text
        # A file of another system, say: the command may know it.
        assert f"tamis info {name}" in item.text
    for left in (3, 2, 1, 0):
        page.press("#drop-files button")
        page.wait(lambda: len(stage(page)) == left, "one less")
    assert check(page, "added-1") == {"added-1": "yes"}


def test_a_corpus_of_corrupt_files_is_refused(page, site, corrupt):
    """All of them by one worker, which lives on."""
    (site.folder / "corrupt").symlink_to(corrupt)
    names = sorted(name for name in os.listdir(corrupt) if name.endswith(".tamis"))
    assert len(names) > 1000
    page.open("filters")
    code = """const { Library } = await module("tamis");
        const library = (globalThis.living ??= new Library()), accepted = [], dumb = [];
        const file = async (url, name) => new File([await (await fetch(url)).blob()], name);
        for (const name of given[0]) {
            let told = await library.ask({ file: await file(new URL(`/corrupt/${encodeURIComponent(name)}`, location), name) });
            if (told.needsKey) told = await library.ask({ key: given[1] });
            if (told.value) accepted.push(name);
            if (!(told.problem?.length > 20) || !library.isAlive) dumb.push([name, told.problem]);
        }
        const { value } = await library.ask({ file: await file(new URL("/golden/bloom.tamis", location), "bloom.tamis") });
        return [accepted, dumb, value.kind]"""
    (site.folder / "golden").symlink_to(GOLDEN)
    # Some at a time: the driver waits for an answer only so long.
    for at in range(0, len(names), 500):
        assert ask(page, code, names[at : at + 500], SECRET) == [[], [], "bloom"]


def test_a_browser_without_webassembly_is_told(page):
    added = page.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": "delete globalThis.WebAssembly"})
    try:
        page.open("calculator")
        page.wait(lambda: "WebAssembly" in page.text("#plan-problem"), "a sentence")
        drop(page, GOLDEN / "bloom.tamis")
        page.wait(lambda: stage(page) == ["wrong"] and "WebAssembly" in page.text("#drop-files"), "a sentence")
    finally:
        page.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", {"identifier": added["identifier"]})


def test_a_page_that_was_opened_as_a_file_says_why_it_is_empty(page, site):
    page.driver.get((site.folder / "tools/filters/index.html").as_uri())
    page.wait(lambda: "tamis serve --save-page" in page.text("#waiting"), "the sentence")
    page.errors()  # of what the browser does not load from files
    page.open("calculator")
    page.settles("calculator")
    assert page.all("#waiting") == []


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("width", [390, 1400])
def test_dropped_files_fit_and_are_accessible(page, width, language, tmp_path):
    (tmp_path / "wrong.tamis").write_bytes(b"no filter")
    try:
        for scheme in ("dark", "light"):
            window(page, width, scheme)
            page.open(f"filters?lang={language}")
            page.wait(lambda: page.one("#drop-file").is_displayed(), "the place for files")
            page.one("#drop-file").send_keys("\n".join(map(str, [tmp_path / "wrong.tamis", GOLDEN / "blocked-keyed-apart.tamis", GOLDEN / "window.tamis"])))
            page.wait(lambda: stage(page) == ["wrong", "locked"] and fact(page, "kind") == "window", "the files")
            check(page, "added-1\nprobe-1")
            page.press("#check-answers button")
            page.press("#filter-info summary")
            page.wait(lambda: page.one("#check-explained").is_displayed(), "the explanation")
            assert page.script("return document.documentElement.scrollWidth") <= width
            page.wait(lambda: page.script("return document.getAnimations().length === 0"), "colours to stand still")
            page.script(AXE.read_text())
            found = page.driver.execute_async_script("axe.run().then(arguments[0])")
            assert [f"{rule['id']}: {node['html'][:200]}" for rule in found["violations"] for node in rule["nodes"]] == []
    finally:
        page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 0, "height": 0, "deviceScaleFactor": 0, "mobile": False})  # fmt: skip
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.mark.parametrize("width", WIDTHS)
def test_a_dropped_file_is_drawn(page, width, tmp_path):
    tamis("create", "seen.tamis", "--capacity", "10k", "-p", "0.001", cwd=tmp_path)
    tamis("add", "seen.tamis", cwd=tmp_path, stdin="\n".join(f"https://example.org/{i}" for i in range(6400)).encode())
    try:
        window(page, width, "light")
        drop(page, tmp_path / "seen.tamis")
        page.wait(lambda: fact(page, "keys") == "6400", "the file")
        check(page, "https://example.org/7\nhttps://example.org/never")
        page.press("#check-answers button")
        page.wait(lambda: "maybe: " in page.text("#check-explained"), "the explanation")
        assert page.script("return document.documentElement.scrollWidth") <= width
        assert len(page.all("#check-answers td button")) == 2 and wrapped(page) == []
        if os.environ.get("TAMIS_PAGE_PICTURES"):
            draw(page, width, picture_of("dropped", width, "en"), False)
    finally:
        page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 0, "height": 0, "deviceScaleFactor": 0, "mobile": False})  # fmt: skip
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_the_folder_is_a_page_or_nothing(tmp_path):
    def refused(folder):
        done = subprocess.run([TAMIS, "serve", "--save-page", str(folder)], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 2 and done.stdout == ""
        return done.stderr

    tamis("serve", "--save-page", "a/b", cwd=tmp_path)
    files = {path: path.read_bytes() for path in (tmp_path / "a/b").rglob("*") if path.is_file()}
    assert len(files) > 20 and (tmp_path / "a/b/page/tamis.wasm") in files
    # Again, over a page that somebody has changed.
    (tmp_path / "a/b/page/app.js").write_text("old")
    (tmp_path / "a/b/index.html").unlink()
    tamis("serve", "--save-page", "a/b", cwd=tmp_path)
    assert {path: path.read_bytes() for path in (tmp_path / "a/b").rglob("*") if path.is_file()} == files
    (tmp_path / "empty").mkdir()
    tamis("serve", "--save-page", "empty", cwd=tmp_path)
    for foreign in ["notes.txt", "page/notes.txt", "page/sub/x"]:
        path = tmp_path / "empty" / foreign
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
        before = sorted((tmp_path / "empty").rglob("*"))
        (tmp_path / "empty/page/app.js").write_text("untouched")
        said = refused("empty")
        assert foreign.split("/x")[0] in said and "hint:" in said
        assert sorted((tmp_path / "empty").rglob("*")) == before and (tmp_path / "empty/page/app.js").read_text() == "untouched"
        path.unlink()
    assert "expected a folder" in refused("a/b/index.html")
    assert "expected a folder" in refused("a/b/index.html/c")


def test_the_library_of_the_page_is_made_of_these_sources():
    subprocess.run([ROOT / "crates/tamis-serve/page-wasm", "--check"], check=True)


@pytest.mark.skipif(not os.environ.get("TAMIS_PAGE_WASM_AGAIN"), reason="it takes a minute, and the compiler's target wasm32-unknown-unknown")
def test_a_library_that_is_built_again_answers_the_same(page, site):
    subprocess.run([ROOT / "crates/tamis-serve/page-wasm", site.folder / "again.wasm"], check=True)
    page.open("calculator")
    code = """const texts = new TextEncoder(), replies = [];
        for (const url of ["page/tamis.wasm", "/again.wasm"]) {
            const { instance } = await WebAssembly.instantiate(await (await fetch(url)).arrayBuffer(), { tamis: { random: () => 0 } });
            const { memory, allocate, reply_at, reply_length, ...calls } = instance.exports;
            const put = (bytes) => { const at = allocate(bytes.length); new Uint8Array(memory.buffer, at, bytes.length).set(bytes); return [at, bytes.length]; };
            const told = (result) => `${result} ${new TextDecoder().decode(new Uint8Array(memory.buffer, reply_at(), reply_length()))}`;
            const ask = ([call, text]) => told(calls[call](...put(texts.encode(text))));
            const open = (file) => [told(calls.page_open(...put(Uint8Array.from(file)), ...put(texts.encode(given[2])))), ...given[3].map(ask)];
            replies.push([given[0].map(ask), given[1].map(open)]);
        }
        return replies.map((all) => JSON.stringify(all))"""
    calls = [["page_plan", f"keys={keys}&rate={rate}"] for keys in ["0", "7", "1M", "3G"] for rate in ["0.3", "1e-3", "1e-8"]]
    calls += [["page_why", ""], ["page_why", "bits_per_key=9.5&hashes=4"]]
    calls += [["page_playground", json.dumps({"shape": {"kind": "cuckoo", "slots": 64, "window": 2, "width": 8}, "a": ["x", "y"], "ask": ["x"], "find": True})]]
    files = [list((GOLDEN / name).read_bytes()) for name in sorted(ANSWERS["files"])]
    keys = json.dumps({"keys": [f"probe-{i}" for i in range(1000)]})
    before, again = ask(page, code, calls, files, SECRET, [["page_ask", keys], ["page_explain", '{"keys": ["added-1"]}']])
    assert before == again and len(before) > 100_000


def test_the_pictures_are_of_this_page():
    """They are drawn on demand; after any change of the page's files they have to be, see docs/page.md."""
    if os.environ.get("TAMIS_PAGE_PICTURES"):
        DIGEST.write_text(f"{digest_of_page()}\n")
    assert DIGEST.read_text().strip() == digest_of_page(), "the pictures in docs/page are of another page: draw them again, as docs/page.md says"
    names = {picture_of(*which).name for which in DRAWN}
    assert {path.name for path in PICTURES.glob("*.png")} == names
    for tab, width, language in DRAWN:
        data = picture_of(tab, width, language).read_bytes()
        assert struct.unpack(">I", data[16:20])[0] == width and len(data) < 150_000
    shown = re.findall(r'src="page/([^"]+)" alt="[^"]+"', (ROOT / "docs/page.md").read_text())
    assert set(shown) == names
