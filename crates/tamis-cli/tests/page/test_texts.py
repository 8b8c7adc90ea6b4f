"""Both languages, and links that hold what is shown."""

import json
import re
import subprocess

import pytest
from conftest import ROOT, TAMIS
from selenium.webdriver.common.keys import Keys

SOURCES = ROOT / "crates/tamis-serve/src/page"
TABS = ["why", "calculator", "playground", "filters"]
HOSTILE = "<img src=x onerror=document.title='owned'>"


@pytest.fixture
def tables(page):
    page.open()
    read = "const done = arguments[0]; Promise.all(['en', 'zh'].map((name) => import(new URL(`page/${name}.js`, location.origin)))).then((all) => done(all.map((it) => it.default)))"
    return page.driver.execute_async_script(read)


def test_both_languages_are_in_step(tables):
    """The same keys, names in braces, and numbers. 0 and 1 are left out: Chinese says them of a bit that is set or not."""
    en, zh = tables
    assert list(en) == list(zh) and len(en) > 300
    for key in en:
        names, numbers = r"\{\w+\}", r"\d+(?:[.,]\d+)*"
        assert sorted(re.findall(names, en[key])) == sorted(re.findall(names, zh[key])), key
        counted = lambda text: sorted(set(re.findall(numbers, re.sub(names, "", text))) - {"0", "1"})  # noqa: E731
        assert counted(en[key]) == counted(zh[key]), key
        assert en[key].strip() and zh[key].strip(), key
    # What is translated is no copy: the few that are the same have no words.
    same = [key for key in en if en[key] == zh[key] and re.search(r"[A-Za-z]{3}", re.sub(r"\{\w+\}", "", en[key]))]
    assert same == []


def test_every_text_is_used_and_every_use_has_a_text(tables):
    en, _ = tables
    source = "\n".join(path.read_text() for path in sorted(SOURCES.glob("*.js")) if path.name not in ("en.js", "zh.js"))
    source += (SOURCES / "index.html").read_text()
    quoted = set(re.findall(r'"([a-z]+\.[^"\s]*)"', source))
    # `play.told.${...}`: what begins like it.
    begun = re.findall(r"`([a-z]+\.[^`$]*)\$\{[^`]*`", source)
    assert len(begun) > 10
    used = lambda key: key in quoted or key.startswith("said.") or any(key.startswith(start) for start in begun)  # noqa: E731
    drawn = {f"{label}.{noun}" for label in ("play.drawn", "step.picture") for noun in ("bits", "counters", "slots")}
    assert [key for key in en if not used(key) and key not in drawn] == []
    called = set(re.findall(r'\b(?:t|parts)\("([^"]+)"', source)) | set(re.findall(r'data-(?:text|label)="([^"]+)"', source))
    assert len(called) > 100 and [key for key in called if key not in en] == []


# What stays as it is in every language: names of kinds, of the program, of units and formulas, and the keys of the example.
KEPT = set("""blocked bloom fuse ribbon cuckoo counting growing window Tamis tamis English apple pear plum banana seen online words create build
    smallest stranger fig quince medlar Ribbon GiB Redis RedisBloom Redisson explain""".split())


@pytest.mark.parametrize("tab", ["why", "calculator?need=delete", "calculator?need=finished", "calculator?need=grow", "calculator?need=forget", "playground", "playground?kind=cuckoo&b=fig", "playground?kind=counting&removed=apple"])
def test_chinese_has_no_english_left(page, tab):
    page.open(f"{tab}{'&' if '?' in tab else '?'}lang=zh")
    page.settles(re.match("[a-z]+", tab)[0])
    assert page.script("return document.documentElement.lang") == "zh-CN"
    texts = page.script("""
        const found = [];
        const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        while (walker.nextNode()) {
            const parent = walker.currentNode.parentElement;
            if (!parent.closest("[hidden], code, pre, textarea, noscript, script, [lang=en]")) found.push(walker.currentNode.textContent);
        }
        for (const element of document.querySelectorAll("[aria-label], [title], [aria-valuetext]")) for (const name of ["aria-label", "title", "aria-valuetext"]) if (!element.closest("[hidden]")) found.push(element.getAttribute(name) ?? "");
        return found;""")
    assert sum(bool(re.search("[\u4e00-\u9fff]", text)) for text in texts) > 40
    assert [text for text in texts if set(re.findall(r"[A-Za-z]{3,}", text)) - KEPT] == []


def test_advice_is_translated(tables):
    """Each sentence that `tamis plan` can say has its Chinese: a new one would stay English unseen."""
    en, _ = tables
    patterns = [re.compile("".join(re.escape(part) if i % 2 == 0 else "(.+?)" for i, part in enumerate(re.split(r"\{\w+\}", text)))) for key, text in en.items() if key.startswith("said.")]  # fmt: skip
    said = set()
    for keys in ["1", "1000", "10M", "1e12"]:
        for given in [["-p", "0.2"], ["-p", "0.01"], ["-p", "1e-6"], ["-p", "1e-9"], ["--size", "2GiB"]]:
            for need in [[], ["--delete"], ["--grow"], ["--finished"]]:
                done = subprocess.run([TAMIS, "plan", "-n", keys, *given, *need], capture_output=True, text=True)
                if done.returncode == 0:
                    advice = done.stdout.partition("\n\n")[2]
                    said |= {sentence for line in advice.splitlines() for sentence in re.split(r"(?<=\.) (?=[A-Z])", re.sub(r"^Pick [a-z]+: ", "", line))}
    assert len(said) > 40
    assert [text for text in said if text and not any(pattern.fullmatch(text) for pattern in patterns)] == []


def test_the_language_is_switched_by_key_and_remembered(page):
    page.open("why?m=12")
    page.settles("why")
    page.one("#language").send_keys(Keys.ENTER)
    page.wait(lambda: page.text("#tab-why") == "原理", "Chinese")
    page.settles("why")
    try:
        assert page.driver.switch_to.active_element.get_attribute("id") == "language"
        assert page.one("#why-m").get_attribute("value") == "12" and "每个键 12 位" in page.text("#why-reading")
        assert page.driver.title.startswith("原理")
        page.open("playground")
        page.settles("playground")
        assert page.text("#step-next") == "下一步"
        # A link in English shows English, once.
        page.open("playground?lang=en")
        page.settles("playground")
        assert page.text("#step-next") == "Next" and page.script("return document.documentElement.lang") == "en"
        page.press("#step-next")
        assert "lang=en" in page.driver.current_url
        page.open("playground")
        page.settles("playground")
        assert page.text("#step-next") == "下一步"
    finally:
        page.script("localStorage.clear()")


def test_what_was_typed_stays_when_the_language_changes(page):
    page.open("playground?kind=counting&a=one%0Atwo&walk=a&key=two&step=4")
    page.settles("playground")
    try:
        page.press("#language")
        page.wait(lambda: page.text("#step-goal") == "加入 two", "Chinese")
        page.settles("playground")
        assert page.one("#box-a").get_attribute("value") == "one\ntwo" and "5" in page.text("#step-count")
        assert page.one('input[name="play-kind"][value="counting"]').is_selected()
    finally:
        page.script("localStorage.clear()")


def shared(page):
    """The link, by the keyboard, as the clipboard gets it."""
    page.script("""window.copied = null; Object.defineProperty(navigator, "clipboard", {configurable: true, value: {writeText: async (text) => { window.copied = text; }}})""")  # fmt: skip
    page.one("#share").send_keys(Keys.ENTER)
    page.wait(lambda: page.script("return window.copied") or page.text("#shared"), "a link")
    return page.script("return window.copied")


STATES = {
    "why": "why?m=14.5&k=3&keys=2500",
    "calculator": "calculator?keys=5M&rate=1e-4&need=delete&kind=counting",
    "playground": "playground?kind=bloom&shape=24%2C4&a=one%0A" + "%C3%A9%E9%94%AE" + "&ask=x&walk=ask&key=x&step=3",
    "filters": "filters",
}


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("tab", TABS)
def test_a_link_opens_what_was_seen(page, tab, lang):
    page.open(STATES[tab] + ("&" if "?" in STATES[tab] else "?") + f"lang={lang}")
    ready = lambda: page.settles(tab) if tab != "filters" else page.wait(lambda: page.text("#filter-list"), "the list")  # noqa: E731
    ready()
    seen = page.text("main")
    link = shared(page)
    assert link.startswith(page.address) and f"lang={lang}" in link
    page.open("about")
    page.leave()
    page.driver.get(link)
    ready()
    page.wait(lambda: page.text("main") == seen, "the same page")


def test_a_link_without_a_clipboard(page):
    """It is shown, selected, for the keyboard."""
    page.open("why?m=7")
    page.settles("why")
    page.script("""Object.defineProperty(navigator, "clipboard", {configurable: true, value: {writeText: async () => { throw new Error("not allowed"); }}})""")  # fmt: skip
    page.one("#share").send_keys(Keys.ENTER)
    page.wait(lambda: page.all("#shared-link"), "the link")
    assert page.one("#shared-link").get_attribute("value").endswith("#why?m=7&lang=en")
    assert page.driver.switch_to.active_element.get_attribute("id") == "shared-link"
    assert page.script("return getSelection().toString() || document.activeElement.selectionEnd") not in ("", 0)


def test_what_is_too_long_is_neither_shared_nor_read(page):
    long = "%0A".join(f"a rather long key of number {i}" for i in range(900))
    page.open(f"playground?a={long}")
    page.wait(lambda: "too long" in page.text("#shared"), "a word about it")
    assert page.one("#panel-calculator").is_displayed()
    page.press("#tab-playground")
    page.settles("playground")
    assert page.one("#box-a").get_attribute("value") == "apple\npear\nplum"
    # Typed, they are played with, and not in the address; no tab or language loses them.
    typed = long.replace("%0A", "\n").replace("%20", " ")
    page.script("""const box = document.querySelector("#box-a"); box.value = arguments[0]; for (const name of ["input", "change"]) box.dispatchEvent(new Event(name, {bubbles: true}))""", typed)  # fmt: skip
    page.wait(lambda: page.text("#play-told").startswith("A: 900 keys"), "the keys")
    assert shared(page) is None and "too long for a link" in page.text("#shared")
    page.press("#tab-why")
    page.press("#tab-playground")
    page.wait(lambda: page.text("#play-told").startswith("A: 900 keys"), "the keys again")
    try:
        page.press("#language")
        page.wait(lambda: page.text("#play-told").startswith("A：900 个键"), "the keys in Chinese")
    finally:
        page.script("localStorage.clear()")


@pytest.mark.parametrize("state", [
    f"{HOSTILE}", f"why?m={HOSTILE}&k={HOSTILE}&keys={HOSTILE}", f"playground?walk={HOSTILE}&key={HOSTILE}&step={HOSTILE}", f"playground?kind={HOSTILE}&shape={HOSTILE}&a={HOSTILE}&walk=a&key={HOSTILE}&step=3",
    "playground?a=%E0%A4%A&b=%&ask=%00&walk=a&key=&step=99999999999999999999", "playground?walk=a&key=nobody&step=-1", "playground?walk=__proto__&key=x", "constructor?lang=constructor", "why?lang=__proto__", "?&&&===", f"calculator?lang={HOSTILE}", "playground?step=9999",
])  # fmt: skip
def test_hostile_links_break_nothing(page, state):
    page.open(state)
    page.wait(lambda: page.script("return [...document.querySelectorAll('[role=tabpanel]')].filter((panel) => !panel.hidden && panel.dataset.shown === location.hash).length") == 1, "the page")  # fmt: skip
    assert page.all("main img, main script, main iframe") == [] and "owned" not in page.driver.title
    assert page.script("return document.documentElement.lang") == "en"
    # It still works: a key is added and asked for.
    page.press("#tab-playground")
    page.wait(lambda: page.text("#step-count"), "the walk")
    assert [entry for entry in page.errors() if "status of 400" not in entry["message"]] == []


def test_texts_are_not_made_of_markup(tables):
    assert [text for table in tables for text in table.values() if re.search(r"<\w|&\w+;", text)] == []
    assert json.dumps(tables)  # nothing but texts
