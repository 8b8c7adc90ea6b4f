"""The playground draws what the library sets. The truth is twofold: files that the command made, and where the reader
that was written from docs/format.md alone says that a key lies."""

import re
from collections import Counter

import pytest
from conftest import tamis
from read_tamis import Filter, HEADER, blocked, bloom, cuckoo

HOSTILE = ["<img src=x onerror=alert(1)>", "</textarea><script>alert(2)</script>", "\"'`&amp;&lt;", "javascript:alert(3)"]
KEYS = [
    *HOSTILE, " leading and trailing ", "ключ", "鍵", "🔑", "a", "A", "0", "x" * 300,
    *(f"https://example.org/{i * i}?q={i}" for i in range(80)), *(str(i) for i in range(1, 109)),
]  # fmt: skip
assert len(set(KEYS)) == 200


class File:
    """A filter that the command made, as the reader sees it."""

    def __init__(self, folder, kind, keys, *options):
        path = folder / f"{kind}-{len(list(folder.iterdir()))}.tamis"
        tamis("create", path, "--kind", kind, *options)
        # Few at a time: a large batch may put a cuckoo filter's entries elsewhere.
        for start in range(0, len(keys), 20):
            tamis("add", path, stdin="\n".join(keys[start : start + 20]).encode())
        self.path = path
        self.read()

    def read(self):
        data = self.path.read_bytes()
        header = HEADER.unpack_from(data)
        self.filter = Filter(data)
        self.kind, self.shape = self.filter.kind, header[9:12]

    @property
    def url_shape(self):
        one, two, three = self.shape
        return {"bloom": f"{one},{two}"}.get(self.kind, f"{one},{two},{three}")

    def cells(self):
        """Bits, counters, or the values of slots."""
        one, _, width = self.shape
        size, bits = {
            "bloom": (one, 1), "blocked": (one * 512, 1), "counting": (one * 512, 4), "cuckoo": (one, width),
        }[self.kind]  # fmt: skip
        return [self.filter.bits(i * bits, bits) for i in range(size)]

    def at(self, key):
        """Where the key's bits, counters or slots are, by the reader."""
        hash_ = self.filter.hash(key.encode())
        where = {"bloom": bloom, "blocked": blocked, "counting": blocked, "cuckoo": cuckoo}[self.kind]
        shape = self.shape[:2] if self.kind == "bloom" else self.shape
        return list(where(hash_ >> 64, hash_ & 2**64 - 1, *shape))


def drawn(page, name="a"):
    """The cells of a picture: values; of a cuckoo filter, fingerprint and places."""
    return page.script(
        """
        return [...document.querySelectorAll(`figure[data-set="${arguments[0]}"] :is(.cell, .slot)`)].map((cell, i) => {
            if (Number(cell.dataset.i) !== i) throw new Error("cells out of order");
            // A cell that is set must also look it.
            const looks = getComputedStyle(cell).fill;
            return {...cell.dataset, looks};
        })""",
        name,
    )


def values(page, name="a"):
    return [int(cell["v"]) for cell in drawn(page, name)]


def listed(page, which="a"):
    """The keys of a table, with where they lie."""
    return page.script(
        """return [...document.querySelectorAll(`table[data-list="${arguments[0]}"] tbody tr`)].map((row) => ({
            key: row.dataset.key, seen: row.querySelector("th").textContent, at: row.dataset.at.split(" ").map(Number),
            fingerprint: Number(row.dataset.fingerprint), answer: row.querySelector("[data-answer]")?.dataset.answer,
            refused: row.textContent.includes("refused")}))""",
        which,
    )


def fill(page, box, keys):
    """Pastes keys into a box."""
    page.script(
        """const box = document.querySelector(`#box-${arguments[0]}`);
        box.value = arguments[1];
        box.dispatchEvent(new Event("input", {bubbles: true}));
        box.dispatchEvent(new Event("change", {bubbles: true}));""",
        box,
        "\n".join(keys),
    )
    page.settles("playground")


def start(page, kind, shape):
    page.open(f"playground?kind={kind}&shape={shape}&a=&b=&removed=&ask=")
    page.settles("playground")


CASES = [
    ("bloom", ["--capacity", "200", "-p", "0.05"]),
    ("bloom", ["--capacity", "30", "-p", "0.2"]),
    ("blocked", ["--capacity", "200", "-p", "0.01"]),
    ("blocked", ["--capacity", "100", "-p", "1e-5"]),
    ("counting", ["--capacity", "200", "-p", "0.01"]),
    ("counting", ["--capacity", "60", "-p", "0.05"]),
    ("cuckoo", ["--capacity", "200", "-p", "0.01"]),
    ("cuckoo", ["--capacity", "200", "-p", "0.2"]),
]


@pytest.mark.parametrize("kind, options", CASES)
def test_bits_equal_the_librarys(page, tmp_path, kind, options):
    file = File(tmp_path, kind, KEYS, *options)
    start(page, kind, file.url_shape)
    fill(page, "a", KEYS)
    # What a key sets, by the independent reader.
    rows = listed(page)
    assert [row["key"] for row in rows] == [row["seen"] for row in rows] == KEYS
    for row in rows:
        expected = file.at(row["key"])
        assert row["at"] == [slot for slot, _ in expected] if kind == "cuckoo" else row["at"] == expected, row["key"]
    # What the whole filter holds, by the file that the command made.
    if kind == "cuckoo":
        _, window, width = file.shape
        fingerprints = (2**width - 1) // window
        read = [(value - 1) % fingerprints + 1 if value else None for value in file.cells()]
        cells = drawn(page)
        assert [int(cell["fingerprint"]) if "fingerprint" in cell else None for cell in cells] == read
        places = [(i - (value - 1) // fingerprints) if value else None for i, value in enumerate(file.cells())]
        assert [int(cell["places"].split()[0]) if "places" in cell else None for cell in cells] == places
        assert Counter(row["fingerprint"] for row in rows) == Counter(value for value in read if value)
    else:
        assert values(page) == file.cells()
        # It also looks like it: set cells have another colour than those that are not.
        looks = {bool(int(cell["v"])): set() for cell in drawn(page)}
        page.wait(lambda: is_settled(page), "colours to stand still")
        for cell in drawn(page):
            looks[bool(int(cell["v"]))].add(cell["looks"])
        assert len(looks) == 2 and not looks[True] & looks[False] and len(looks[False]) == 1
    # One key is looked at: its cells are marked.
    key = KEYS[42]
    page.script("""[...document.querySelectorAll('table[data-list="a"] tr')].find((row) => row.dataset.key === arguments[0]).querySelector("button").focus()""", key)  # fmt: skip
    marked = page.script("""return [...document.querySelectorAll('figure[data-set="a"] :is(.mine, .other)')].map((cell) => Number(cell.dataset.i))""")  # fmt: skip
    expected = file.at(key)
    assert set(marked) == ({slot for slot, _ in expected} if kind == "cuckoo" else set(expected))


def is_settled(page):
    return page.script("return document.getAnimations().every((animation) => animation.playState === 'finished')")


@pytest.mark.parametrize("kind, options", [("bloom", ["--capacity", "60"]), ("blocked", ["--capacity", "60"]), ("counting", ["--capacity", "60"])])
def test_union_and_intersection(page, tmp_path, kind, options):
    ours, theirs = KEYS[:30], KEYS[20:60]
    a, b = File(tmp_path, kind, ours, *options), File(tmp_path, kind, theirs, *options)
    start(page, kind, a.url_shape)
    fill(page, "a", ours)
    fill(page, "b", theirs)
    join, meet = (lambda x, y: min(x + y, 15), min) if kind == "counting" else (lambda x, y: x | y, lambda x, y: x & y)
    assert values(page, "a") == a.cells() and values(page, "b") == b.cells()
    assert values(page, "union") == [join(x, y) for x, y in zip(a.cells(), b.cells())]
    assert values(page, "intersection") == [meet(x, y) for x, y in zip(a.cells(), b.cells())]


def test_union_of_cuckoo_filters(page):
    start(page, "cuckoo", "128,2,10")
    fill(page, "a", KEYS[:40])
    fill(page, "b", KEYS[30:70])
    held = lambda name: Counter((cell["fingerprint"], tuple(sorted(map(int, cell["places"].split())))) for cell in drawn(page, name) if "fingerprint" in cell)  # fmt: skip # noqa: E731
    assert held("union") == held("a") + held("b")
    assert held("intersection") == held("a") & held("b") and sum(held("intersection").values()) >= 10


def test_a_false_yes_happens(page, tmp_path):
    for kind in ["bloom", "blocked", "counting", "cuckoo"]:
        file = File(tmp_path, kind, KEYS[:40], "--capacity", "40", "-p", "0.3")
        start(page, kind, file.url_shape)
        fill(page, "a", KEYS[:40])
        page.one("#find").click()
        page.wait(lambda: page.all('#asked [data-verdict="false yes"]'), "a false yes")
        (found,) = [row.get_attribute("data-key") for row in page.all("#asked tbody tr")]
        # The command's own filter is wrong about the same stranger.
        assert found not in KEYS and found.encode() in file.filter
        assert tamis("check", file.path, stdin=found.encode()).strip() == found
        assert found in page.text("#asked .why")


def test_answers_are_those_of_the_filter(page, tmp_path):
    file = File(tmp_path, "bloom", KEYS[:40], "--capacity", "40", "-p", "0.2")
    start(page, "bloom", file.url_shape)
    fill(page, "a", KEYS[:40])
    fill(page, "ask", KEYS)
    rows = page.script("""return [...document.querySelectorAll("#asked tbody tr")].map((row) => [row.dataset.key, row.querySelector(".badge").textContent])""")  # fmt: skip
    expected = {(True, True): "yes", (True, False): "false yes", (False, False): "no"}
    assert rows == [[key, expected[key.encode() in file.filter, key in KEYS[:40]]] for key in KEYS]
    assert {answer for _, answer in rows} == set(expected.values())


@pytest.mark.parametrize("kind", ["counting", "cuckoo"])
def test_removing_keys(page, tmp_path, kind):
    file = File(tmp_path, kind, KEYS[:60], "--capacity", "60", "-p", "0.01")
    start(page, kind, file.url_shape)
    fill(page, "a", KEYS[:60])
    removed = KEYS[10:30]
    fill(page, "removed", removed)
    for key in removed:
        tamis("remove", file.path, stdin=key.encode())
    file.read()
    if kind == "counting":
        assert values(page) == file.cells()
    assert sum(1 for cell in drawn(page) if int(cell.get("v", 0)) or "fingerprint" in cell) == sum(map(bool, file.cells()))
    assert [row["answer"] for row in listed(page, "removed")] == ["yes"] * 20
    # Removing a stranger that seems present takes a key along, and the page says so.
    if kind == "counting":
        start(page, kind, "1,2,1")
        fill(page, "a", KEYS[:60])
        page.one("#find").click()
        page.wait(lambda: page.all('#asked [data-verdict="false yes"]'), "a false yes")
        fill(page, "removed", [page.one("#asked tbody tr").get_attribute("data-key")])
        assert "A false “no”" in page.text("#play-told")


def test_kicks_in_a_cuckoo_filter(page):
    """Keys fill the table one by one; what moved is told, and every key stays where it may lie."""
    start(page, "cuckoo", "16,2,8")
    kicked = 0
    for count in range(8, 17):
        fill(page, "a", KEYS[12 : 12 + count])
        rows = [row for row in listed(page) if not row["refused"]]
        cells = drawn(page)
        free = [i for i, cell in enumerate(cells) if "fingerprint" in cell]
        assert len(free) == len(rows)
        for row in rows:
            assert any(cells[slot].get("fingerprint") == str(row["fingerprint"]) for slot in row["at"]), row
        told = page.script("""return [...document.querySelectorAll('table[data-list="a"] .kicks li')].map((step) => step.textContent)""")  # fmt: skip
        kicked = max(kicked, sum(bool(re.search(r"\d+ → \d+", step)) for step in told))
    assert kicked >= 3, "a nearly full table without a kick"
    assert "were refused" in page.text("#play-told") or len(rows) == 16


def test_typing_is_enough(page):
    """Keys come from the keyboard; the key of the cursor's line is the one that is marked."""
    page.open("playground")
    page.settles("playground")
    page.type("#box-a", "")
    page.one("#box-a").send_keys("one\ntwo\nthree")
    page.wait(lambda: [row["key"] for row in listed(page)] == ["one", "two", "three"], "the keys typed")
    assert page.script("return document.getElementById('panel-playground').dataset.looking") == "three"
    page.one("#more").click()
    page.wait(lambda: len(listed(page)) == 8, "five keys more")
    page.travel("back")
    page.settles("playground")
    assert [row["key"] for row in listed(page)] == ["one", "two", "three"]


def test_bounds_are_told(page):
    page.open("playground?kind=bloom&shape=100000,3")
    page.wait(lambda: "at most 4096" in page.text("#error-shape-bits"), "a refusal")
    assert page.one("#shape-bits").get_attribute("aria-invalid") == "true"
    assert "error-shape-bits" in page.one("#shape-bits").get_attribute("aria-describedby")
    assert all("status of 400" in entry["message"] for entry in page.errors())
    page.type("#shape-bits", "100")
    page.wait(lambda: len(drawn(page)) == 100, "the picture")
    assert page.text("#error-shape-bits") == ""
    # What is wrong while one types does not take the picture away.
    page.type("#shape-bits", "0")
    page.wait(lambda: page.text("#error-shape-bits"), "a refusal")
    assert len(drawn(page)) == 100 and page.all("#panel-playground .results.is-stale")
    assert all("status of 400" in entry["message"] for entry in page.errors())


ALL = ["bloom", "blocked", "counting", "cuckoo"]


@pytest.mark.parametrize("kind", ALL)
def test_a_false_yes_is_found_as_it_opens(page, kind):
    page.open(f"playground?kind={kind}")
    page.settles("playground")
    page.one("#find").click()
    page.wait(lambda: page.all("#asked .why"), "a false yes")
    told = re.search(r"stranger (\d+), the ([\d,]+)(st|nd|rd|th) stranger, was never added", page.text("#asked .why"))
    assert told and int(told[2].replace(",", "")) == int(told[1]), page.text("#asked .why")


CONTRAST = """
const luminance = (colour) => {
    const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ratio = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
};
const style = (element) => getComputedStyle(element);
const card = style(document.querySelector("#panel-playground .picture")).backgroundColor;
const found = [];
const note = (what, colours, least) => found.push([what, ratio(...colours), least]);
const free = document.querySelector(".cell:not([data-of]), .slot:not([data-of])");
for (const cell of document.querySelectorAll(".cell[data-of]")) {
    note(`${cell.dataset.of} on the card`, [style(cell).fill, card], 3);
    note(`${cell.dataset.of} beside a free one`, [style(cell).fill, style(free).fill], 3);
}
for (const cell of document.querySelectorAll(":is(.cell, .slot).mine, .slot.other")) {
    note("mark on the card", [style(cell).stroke, card], 3);
    note("mark on its cell", [style(cell).stroke, style(cell).fill], cell.matches(".here") ? 0 : 3);
}
for (const cell of document.querySelectorAll(".slot.here")) note("the key's slot", [style(cell).fill, card], 3);
for (const text of document.querySelectorAll(".counter, .print, .number")) {
    let under = text.previousElementSibling;
    while (!under.matches("rect")) under = under.previousElementSibling;
    note(`${text.getAttribute("class")} "${text.textContent}"`, [style(text).fill, style(under).fill], 4.5);
}
for (const text of document.querySelectorAll(".cells .tick")) note("number of a row", [style(text).fill, card], 4.5);
return found;
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", ALL)
def test_contrast(page, kind, scheme):
    """Marks can be told from what they lie on (3:1), and digits be read (4.5:1)."""
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
        {"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}]})  # fmt: skip
    try:
        page.open(f"playground?kind={kind}&b=plum%0Afig%0Aquince")
        page.settles("playground")
        page.wait(lambda: page.all(".mine"), "a mark")
        found = page.script(CONTRAST)
        assert len(found) > 10
        assert [(what, round(ratio, 2)) for what, ratio, least in found if ratio < least] == []
    finally:
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.mark.parametrize("kind", ALL)
def test_cells_have_numbers_tooltips_and_a_legend(page, kind):
    page.open(f"playground?kind={kind}&a=apple%0Apear")
    page.settles("playground")
    titles = page.script("""return [...document.querySelectorAll('figure[data-set="a"] :is(.cell, .slot)')].map((cell) => cell.querySelector("title").textContent)""")  # fmt: skip
    what = {"counting": "counter", "cuckoo": "slot"}.get(kind, "bit")
    assert all(title.startswith(f"{what} {i}: ") for i, title in enumerate(titles))
    apple = next(row for row in listed(page) if row["key"] == "apple")
    if kind != "cuckoo":
        assert all("apple" in titles[i] for i in apple["at"])
        assert page.script("""return document.querySelector('figure[data-set="a"] .tick').textContent""") == "0"
    legend = page.text('figure[data-set="a"] .legend')
    assert "selected key" in legend
    if kind == "cuckoo":
        assert all(part in legend for part in ["first place", "second place", "fingerprint", "free slot"])


def test_on_a_phone_the_picture_comes_before_the_lists(page):
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True})  # fmt: skip
    try:
        page.open("playground")
        page.settles("playground")
        top = lambda selector: page.script("return document.querySelector(arguments[0]).getBoundingClientRect().top", selector)  # fmt: skip # noqa: E731
        assert top("#find") < top("#pictures") < top("#box-a") < top("#asked") < top("#keys")
        assert page.script("return document.documentElement.scrollWidth <= innerWidth")
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_link_to_the_page_has_a_card(page):
    page.open()
    meta = page.script("""return Object.fromEntries([...document.querySelectorAll("meta[name], meta[property]")].map((meta) => [meta.getAttribute("name") ?? meta.getAttribute("property"), meta.content]))""")  # fmt: skip
    assert all(meta.get(name) for name in ["description", "og:title", "og:description", "og:image", "og:image:alt"])
    size = page.driver.execute_async_script(
        "const [at, done] = arguments; const image = new Image(); image.onload = () => done([image.naturalWidth, image.naturalHeight]); image.src = at;",
        meta["og:image"],
    )
    assert size == [1200, 630]
