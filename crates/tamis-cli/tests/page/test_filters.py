"""The filters that are being served, as the page shows them; the keyboard, the names that readers hear, and the
pictures in docs/."""

import hashlib
import json
import os
import subprocess
import time

import pytest
from conftest import ROOT, Page, Service, tamis
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

HOSTILE = "<img src=x onerror=document.title='owned'>"
WIDTHS = (390, 1400)
PICTURES = ROOT / "docs/page"
# `npm install --prefix target/npm axe-core`
AXE = ROOT / "target/npm/node_modules/axe-core/axe.min.js"
TABS = {
    "why": "why?m=10",
    "calculator": "calculator?keys=10M&rate=0.001",
    # The false "yes" of the smallest filter, explained.
    "playground": "playground?ask=apple%0Abanana%0Astranger+11&walk=ask&key=stranger+11&step=5",
    "filters": "filters?name=seen",
}
# Other states of the same tabs, which have to fit and to be accessible as well.
STATES = {
    **TABS,
    "calculator of a window": "calculator?keys=10M&rate=0.001&need=forget&generations=24",
    "a window": "filters?name=events",
}
LANGUAGES = ("en", "zh")
# One picture of each tab and width, and of a file that was dropped (test_static.py); and two in Chinese.
DRAWN = {*((tab, width, "en") for tab in [*TABS, "dropped"] for width in WIDTHS), ("why", 1400, "zh"), ("playground", 390, "zh")}
# Of which page the pictures are.
DIGEST = PICTURES / "page.sha256"


def state_of(state, language):
    return f"{STATES[state]}&lang={language}"


def tab_of(state):
    return STATES[state].partition("?")[0]


def digest_of_page():
    """Of every file that the browser gets, and their names, in order; but for the library, which changes numbers, not looks."""
    files = sorted(path for path in (ROOT / "crates/tamis-serve/src/page").iterdir() if path.suffix != ".wasm")
    return hashlib.sha256(b"".join(b"%s %d\n%s" % (path.name.encode(), path.stat().st_size, path.read_bytes()) for path in files)).hexdigest()


def picture_of(tab, width, language):
    return PICTURES / f"{tab}-{width}{'' if language == 'en' else f'-{language}'}.png"


TOKEN = "0123456789-of-the-tests-alone-abcdef"


def writing(folder):
    """Options that let clients add."""
    (folder / "token").write_text(TOKEN)
    (folder / "token").chmod(0o600)
    return "--write", "--token-file", "token"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("filters")
    tamis("create", "seen.tamis", "--capacity", "10k", "-p", "0.001", cwd=folder)
    tamis("add", "seen.tamis", cwd=folder, stdin="\n".join(f"https://example.org/{i}" for i in range(6400)).encode())
    tamis("build", "words.tamis", cwd=folder, stdin=b"\n".join(b"word %d" % i for i in range(2000)))
    # A name of a file that is markup.
    tamis("create", f"{HOSTILE}.tamis".replace("/", ""), "--capacity", "100", cwd=folder)
    tamis("create", "online.tamis", "--capacity", "500", "--kind", "counting", cwd=folder)
    tamis("create", "events.tamis", "--capacity", "8k", "-p", "0.001", "--within", "24h", cwd=folder)
    tamis("create", "last.tamis", "--capacity", "800", "-p", "1e-9", "--kind", "window", cwd=folder)
    service = Service(folder, *writing(folder), "seen.tamis", "online.tamis", "words.tamis", "events.tamis", "last.tamis")
    # A day that began quietly: 900, 800, … keys, 3 hours apart, as many as a generation is long.
    now = int(time.time())
    for age in range(9):
        keys = "\n".join(f"event {age} {i}" for i in range(900 - 100 * age))
        post(service, f"v1/filters/events/add?at={now - age * 3 * 3600}", keys.encode())
    yield service
    service.end()


@pytest.fixture
def page(driver, served):
    page = Page(driver, served.address)
    page.leave()
    page.errors()
    yield page
    driver.set_window_size(1400, 1000)
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 0, "height": 0, "deviceScaleFactor": 0, "mobile": False})  # fmt: skip
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert page.errors() == []


def fact(page, name):
    return page.script("return document.querySelector(`[data-fact='${arguments[0]}']`)?.dataset.value", name)


def post(service, path, body):
    done = subprocess.run(
        ["curl", "-sS", "--fail-with-body", "--data-binary", "@-", "-H", f"Authorization: Bearer {TOKEN}", service.address + path],
        input=body,
        capture_output=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.decode()


def check(page, text):
    """Asks the box; the answers by key."""
    page.type("#check-keys", text)
    page.one("#check button").click()
    keys = text.split("\n")
    shown = """return [...document.querySelectorAll("#check-answers tbody tr")].map((row) => [row.dataset.key, row.querySelector(".badge").dataset.verdict])"""
    page.wait(lambda: [key for key, _ in page.script(shown)] == keys, "answers")
    return dict(page.script(shown))


def test_a_key_added_by_curl_a_moment_ago_is_there(page, served):
    page.open("filters?name=seen")
    page.wait(lambda: fact(page, "keys"), "the facts")
    before = int(fact(page, "keys"))
    assert check(page, "https://example.org/1\nmoment") == {"https://example.org/1": "yes", "moment": "no"}
    assert post(served, "v1/filters/seen/add", b"moment\n").split() == ["new"]
    assert check(page, "moment") == {"moment": "yes"}
    # The page finds out by itself, without a reload.
    page.wait(lambda: int(fact(page, "keys")) == before + 1, "the new number of keys")
    recent = lambda sort: int(page.text(f'[data-recent="{sort}"]'))  # noqa: E731
    page.wait(lambda: recent("new") == 1 and recent("yes") >= 2 and recent("no") >= 1, "the last minutes")
    assert len(page.all("#filter-recent .column")) >= 3


def test_facts_equal_those_of_the_command(page, served):
    page.open("filters?name=seen")
    page.wait(lambda: fact(page, "keys"), "the facts")
    info = json.loads(tamis("info", "--json", "seen.tamis", cwd=served.folder))
    for name in ["kind", "keys", "capacity", "rate", "rate_now", "bytes"]:
        assert fact(page, name) == str(info[name]) or float(fact(page, name)) == info[name], name
    assert 0.3 < float(fact(page, "fill")) < 0.5
    # Lines of a filter that is two thirds full are neither empty nor full.
    histogram = page.script("""return [...document.querySelectorAll("#filter-lines tbody tr")].map((row) => [...row.cells].map((cell) => cell.textContent))""")  # fmt: skip
    assert sum(int(lines.replace(",", "")) for _, lines in histogram) == info["shape"]["lines"]
    assert all(10 < float(full.split()[0]) < 65 for full, _ in histogram)


def test_every_filter_has_its_place(page):
    page.open("filters")
    page.wait(lambda: len(page.all("#filter-list button")) == 5, "five filters")
    page.press('#filter-list button[data-name="words"]')
    assert page.text("#filter-name") == "words" and fact(page, "kind") == "fuse"
    page.wait(lambda: "name=words" in page.driver.current_url, "its address")
    assert "no lines" in page.text("#filter-lines")
    page.driver.back()
    page.wait(lambda: page.text("#filter-name") == "events", "the first filter")


def test_a_window_shows_what_it_remembers(page, served):
    page.open("filters?name=events")
    page.wait(lambda: fact(page, "window"), "the facts")
    assert fact(page, "kind") == "window" and fact(page, "window") == "within"
    assert page.text('[data-fact="window"]') == "1 d since first seen"
    assert page.text('[data-fact="generations"]') == "8, of 3 h each"
    told = json.loads(subprocess.check_output(["curl", "-sS", served.address + "v1/filters/events"]))["window"]["generations"]
    assert len(told) == 9
    table = page.script("""return [...document.querySelectorAll("#filter-lines tbody tr")].map((row) => [...row.cells].map((cell) => cell.textContent))""")  # fmt: skip
    assert [int(keys) for _, keys, *_ in table] == [one["keys"] for one in told]
    assert all(3 * 3600 * i <= one["age"] < 3 * 3600 * (i + 1) for i, one in enumerate(told))
    # A generation may have begun since the keys were added.
    held = [one for one in told if one["keys"]]
    assert [one["keys"] for one in held][:8] == [900, 800, 700, 600, 500, 400, 300, 200] and len(held) >= 8
    # A bar each, the newest at the right, as high as it is full.
    bars = page.script("""return [...document.querySelectorAll("#filter-lines rect")].map((bar) => [bar.x.baseVal.value, bar.height.baseVal.value])""")
    assert bars == sorted(bars) and [high for _, high in bars] == sorted(high for _, high in bars)
    # The key of a minute ago is there, and one of two days ago is not.
    assert check(page, "event 0 1\nevent 7 1\nnever") == {"event 0 1": "yes", "event 7 1": "yes", "never": "no"}


def test_a_window_of_the_last_keys(page, served):
    post(served, "v1/filters/last/add", "\n".join(f"key {i}" for i in range(1250)).encode())
    page.open("filters?name=last")
    page.wait(lambda: fact(page, "window"), "the facts")
    assert page.text('[data-fact="window"]') == "the last 800 keys"
    assert page.text('[data-fact="generations"]') == "8, of 100 keys each"
    rows = lambda: page.script("""return [...document.querySelectorAll("#filter-lines tbody tr")].map((row) => [...row.cells].slice(0, 2).map((cell) => cell.textContent))""")  # noqa: E731  # fmt: skip
    page.wait(lambda: rows() == [[f"{50 + 100 * i} keys", "50" if i == 0 else "100"] for i in range(9)], "the generations")


def test_a_dropped_file_is_not_among_those_being_served(page):
    page.open("filters")
    page.wait(lambda: len(page.all("#filter-list button")) == 5, "five filters")
    assert not page.one("#opened").is_displayed()
    page.one("#drop-file").send_keys(str(ROOT / "crates/tamis/tests/golden/window.tamis"))
    page.wait(lambda: page.text("#filter-name") == "window.tamis", "the file")
    assert len(page.all("#filter-list button")) == 5 and len(page.all("#opened-list button")) == 1
    assert page.text("#opened-title") == "Open files" and page.text("#filters-title") == "Being served"
    # It is described as of its latest key, long ago: its axis doesn't end now.
    ends = page.script("""return [...document.querySelectorAll("#filter-lines .tick")].map((text) => text.textContent)""")
    assert ends[1].startswith("latest key 2000-01-01T"), ends
    page.press("#filter-close button")
    page.wait(lambda: not page.one("#opened").is_displayed(), "no open file")


def test_no_card_is_empty(page):
    """Neither while nothing is known of a service, nor where there are no keys."""
    page.open("filters")
    page.wait(lambda: len(page.all("#filter-list button")) == 5, "five filters")
    page.open("playground?a=&b=&ask=")
    page.settles("playground")
    cards = page.script("""return [...document.querySelectorAll(".card")].filter((card) => card.offsetParent !== null).map((card) => card.innerText.trim().split("\\n").length)""")
    assert cards and min(cards) > 1, cards


def test_keys_that_can_be_pressed_are_large_enough(page):
    """24 pixels, as WCAG 2.2 has it."""
    for state, what in ("playground?a=a%0Ab&ask=x", "button.key"), ("calculator", ".kinds th button"):
        page.open(state)
        page.settles(state.partition("?")[0])
        sizes = page.script("return [...document.querySelectorAll(arguments[0])].map((one) => one.getBoundingClientRect()).map((box) => [box.width, box.height])", what)
        assert sizes and all(wide >= 24 and high >= 24 for wide, high in sizes), (what, sizes)


def test_markup_stays_text(driver, tmp_path):
    (name, key) = (HOSTILE, "<script>document.title='owned'</script>")
    tamis("create", f"{name}.tamis", "--capacity", "100", cwd=tmp_path)
    service = Service(tmp_path, *writing(tmp_path), f"trap={name}.tamis")
    page = Page(driver, service.address)
    page.leave()
    page.errors()
    try:
        post(service, "v1/filters/trap/add", key.encode())
        page.open("filters")
        page.wait(lambda: fact(page, "place"), "the facts")
        assert name in page.text('[data-fact="place"]')
        assert check(page, f"{key}\n{name}") == {key: "yes", name: "no"}
        page.open(f"filters?name={name}").wait(lambda: fact(page, "place"), "the facts")
        assert page.all("main img, main script") == [] and "owned" not in driver.title
        assert page.errors() == []
    finally:
        service.end()


def test_a_service_that_ended_is_said(driver, tmp_path):
    service = Service(tmp_path)
    page = Page(driver, service.address).open("filters")
    page.wait(lambda: "None" in page.text("#filter-list"), "the list")
    service.end()
    page.wait(lambda: "does not answer" in page.text("#filters-problem"), "the problem")
    # The browser tells of what it could not load.
    assert all("net::ERR_" in entry["message"] for entry in page.errors())


def test_the_keyboard_reaches_everything(page):
    page.open("calculator")
    page.wait(lambda: page.all("#kinds tr"), "the table")
    page.one("#tab-calculator").send_keys(Keys.ARROW_RIGHT)
    assert page.driver.switch_to.active_element.get_attribute("id") == "tab-playground"
    page.wait(lambda: page.one("#panel-playground").is_displayed() and not page.one("#panel-calculator").is_displayed())
    page.driver.switch_to.active_element.send_keys(Keys.END)
    page.wait(lambda: page.one("#panel-filters").is_displayed())
    page.driver.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    page.wait(lambda: page.one("#panel-why").is_displayed())
    page.driver.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    page.wait(lambda: page.one("#panel-calculator").is_displayed())
    # Only the chosen tab is a stop of the Tab key; its panel is the next.
    assert [tab.get_attribute("tabindex") for tab in page.all("[role=tab]")] == ["-1", "0", "-1", "-1"]
    for tool in ("share", "language"):
        page.driver.switch_to.active_element.send_keys(Keys.TAB)
        assert page.driver.switch_to.active_element.get_attribute("id") == tool
    page.driver.switch_to.active_element.send_keys(Keys.TAB)
    assert page.script("return document.getElementById('panel-calculator').contains(document.activeElement)")


def test_everything_has_a_name(page):
    for tab, state in ((tab_of(state), address) for state, address in STATES.items()):
        page.open(state)
        page.wait(lambda: page.all(f"#panel-{tab} svg"), f"the drawing of {tab}")
        for element in page.all(f"#panel-{tab} :is(input, textarea, button, svg, section, nav, [role])"):
            if element.is_displayed() and element.tag_name != "output":
                assert element.accessible_name or element.get_attribute("role") in ("status", "alert"), element.get_attribute("outerHTML")[:200]  # fmt: skip
        assert page.script("return document.querySelectorAll(':is(input, textarea):not([type=radio])').length") == page.script("return [...document.querySelectorAll(':is(input, textarea):not([type=radio])')].filter((box) => box.labels.length || box.ariaLabel).length")  # fmt: skip
        ids = page.script("return [...document.querySelectorAll('[id]')].map((element) => element.id)")
        assert len(ids) == len(set(ids))


def window(page, width, scheme):
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": width < 500})  # fmt: skip
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})  # fmt: skip


def covered(page):
    """Titles of axes that lie on the numbers of the axis."""
    return page.script("""
        const over = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
        return [...document.querySelectorAll("svg")].flatMap((svg) => [...svg.querySelectorAll(".axis")].filter((title) =>
            [...svg.querySelectorAll(".tick")].some((tick) => over(title.getBoundingClientRect(), tick.getBoundingClientRect()))).map((title) => title.textContent));""")  # fmt: skip


def wrapped(page):
    """Buttons in tables whose word is broken."""
    return page.script("""
        const lines = (button) => { const range = document.createRange(); range.selectNodeContents(button); return range.getClientRects().length; };
        return [...document.querySelectorAll("td button")].filter((button) => lines(button) > 1).map((button) => button.textContent);""")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("state", STATES)
def test_it_fits_and_is_drawn(page, served, state, width, language):
    tab = tab_of(state)
    if tab == "filters":
        post(served, "v1/filters/seen/check", "\n".join(f"https://example.org/{i}" for i in range(6000, 7000)).encode())
    for scheme in ("dark", "light"):
        window(page, width, scheme)
        page.open(state_of(state, language))
        page.wait(lambda: page.all(f"#panel-{tab} svg"), "the drawing")
        if tab != "filters":
            page.settles(tab)
        # Nothing is wider than the screen.
        assert page.script("return document.documentElement.scrollWidth") <= width
        assert covered(page) == []
        ground = page.script("return getComputedStyle(document.documentElement).backgroundColor")
        assert (sum(map(int, ground[4:-1].split(","))) < 200) == (scheme == "dark"), ground
        is_drawn = os.environ.get("TAMIS_PAGE_PICTURES") and (state, width, language) in DRAWN
        if is_drawn and (scheme == "dark") == (state == "playground" and language == "en"):
            draw(page, width, picture_of(state, width, language))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("state", STATES)
def test_an_audit_of_accessibility_finds_nothing(page, state, width, language):
    """By axe-core: names, roles, contrast and what else a program can judge."""
    tab = tab_of(state)
    for scheme in ("dark", "light"):
        window(page, width, scheme)
        page.open(state_of(state, language))
        page.wait(lambda: page.all(f"#panel-{tab} svg"), "the drawing")
        page.wait(lambda: page.script("return document.getAnimations().length === 0"), "colours to stand still")
        page.script(AXE.read_text())
        found = page.driver.execute_async_script("axe.run().then(arguments[0])")
        assert len(found["passes"]) > 20
        assert [
            f"{rule['id']}: {rule['help']}: {node['html'][:200]}" for rule in found["violations"] for node in rule["nodes"]
        ] == [], f"{state}, {width}, {scheme}, {language}"


def draw(page, width, picture, asks=True):
    """`TAMIS_PAGE_PICTURES=1` draws the pictures anew; needs `pip install pillow` and a font for Chinese."""
    import base64
    import io

    from PIL import Image

    assert subprocess.run(["fc-list", ":lang=zh"], capture_output=True).stdout, "install fonts-wqy-microhei: without it, Chinese is drawn as boxes"
    if asks and page.all("#check-keys"):
        visible = page.one("#check-keys").is_displayed()
        if visible:
            check(page, "https://example.org/7\nhttps://example.org/never")
    page.wait(lambda: page.script("return document.getAnimations().length === 0"), "colours to stand still")
    page.script("document.activeElement?.blur()")
    height = page.script("return document.documentElement.scrollHeight")
    height = min(height, 1800)
    shot = page.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": True, "clip": {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}})  # fmt: skip
    image = Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")
    # The 256 colours that are seen most; the edges of letters take the nearest.
    seen = sorted(image.getcolors(1 << 24), reverse=True)[:256]
    palette = Image.new("P", (1, 1))
    palette.putpalette([part for _, colour in seen for part in colour])
    image = image.quantize(palette=palette, dither=Image.Dither.NONE)
    picture.parent.mkdir(exist_ok=True)
    image.save(picture, optimize=True)
