"""One key at a time: what each step says is what the service told, and the last step leaves what the filter holds."""

import re

import pytest
from conftest import tamis
from selenium.webdriver.common.keys import Keys
from test_playground import KEYS, File, drawn, fill, listed, start, values


def told(page):
    return page.text("#step-told")


def count(page):
    return [int(n) for n in re.findall(r"\d+", page.text("#step-count"))]


def walk(page):
    """Every step's text, from the first to the last, by the button."""
    texts = [told(page)]
    while (at := count(page))[0] < at[1]:
        page.press("#step-next")
        assert count(page)[0] == at[0] + 1
        texts.append(told(page))
    return texts


def picture(page):
    """The cells of the walk's drawing."""
    return page.script("""return [...document.querySelectorAll("#step-picture .cell")].map((cell) => Number(cell.dataset.v))""")


def test_the_toy_of_every_picture(page):
    page.open("playground")
    page.settles("playground")
    assert page.one("#shape-bits").get_attribute("value") == "16" and page.one("#shape-hashes").get_attribute("value") == "3"
    assert len(picture(page)) == 16 and picture(page) == [0] * 16  # before the first key
    texts = walk(page)
    apple = listed(page)[0]
    assert len(texts) == 3 + 3 + 1
    assert "61 70 70 6c 65" in texts[0]
    assert re.search(r"\b[0-9a-f]{32}\b", texts[1])
    assert " ".join(map(str, apple["at"])) in texts[2]
    assert [i for i, value in enumerate(picture(page)) if value] == sorted(set(apple["at"]))
    assert "apple is in" in texts[-1]
    page.press("#step-next")  # from the start
    assert count(page)[0] == 1 and picture(page) == [0] * 16


@pytest.mark.parametrize("kind, shape", [("bloom", "16,3"), ("bloom", "40,5"), ("blocked", "2,2,2"), ("counting", "2,2,2"), ("counting", "1,8,1")])
def test_adding_leaves_what_the_filter_holds(page, kind, shape):
    keys = [f"key {i}" for i in range(6)]
    page.open(f"playground?kind={kind}&shape={shape}&a={'%0A'.join(keys)}&walk=a&key={keys[-1]}")
    page.settles("playground")
    before = picture(page)
    at = listed(page)[-1]["at"]
    walk(page)
    assert picture(page) == values(page) and before != picture(page)
    changed = {i for i, (x, y) in enumerate(zip(before, picture(page))) if x != y}
    assert changed <= set(at)
    # Back again, step by step, is what it was.
    for _ in range(count(page)[1] - 1):
        page.press("#step-back")
    assert count(page)[0] == 1 and picture(page) == before


def test_asking_tells_who_set_each_bit(page):
    page.open("playground")
    page.settles("playground")
    page.one("#find").click()
    page.wait(lambda: "stranger" in page.text("#step-goal"), "a walk with the stranger")
    texts = walk(page)
    rows = listed(page)
    (stranger,) = page.script("""return [...document.querySelectorAll("#asked tr[data-key^=stranger]")].map((row) => row.dataset.at.split(" ").map(Number))""")  # fmt: skip
    looked = list(dict.fromkeys(stranger))
    assert len(texts) == 3 + len(looked) + 1
    for i, text in zip(looked, texts[3:]):
        setters = [row["key"] for row in rows if i in row["at"]]
        assert text.startswith(f"Bit {i}") and f"set by {', '.join(setters)}." in text
        assert f"{i} by {', '.join(setters)}" in texts[-1] and f"{i} by {', '.join(setters)}" in page.text("#asked .why")
    assert "A false “yes”" in texts[-1]
    # A "no" ends at the first bit that is not set.
    page.open("playground?walk=ask&key=banana")
    page.settles("playground")
    texts = walk(page)
    assert "It is 0" in texts[-2] and all("It is 1" in text for text in texts[3:-2])
    zero = re.search(r"Bit (\d+)", texts[-2])[1]
    assert values(page)[int(zero)] == 0 and f"would have set bit {zero}" in texts[-1]


def slots(page):
    """What lies where in the walk's drawing: slot to fingerprint; and what is lifted."""
    found = page.script("""return [...document.querySelectorAll("#step-picture .token")].map((token) => [token.dataset.slot, token.textContent, token.classList.contains("is-lifted"), token.classList.contains("is-away")])""")  # fmt: skip
    lying = [(int(slot), text) for slot, text, lifted, _ in found if slot != "" and not lifted]
    assert len({slot for slot, _ in lying}) == len(lying), "two in one slot"
    return dict(lying), [text for _, text, lifted, away in found if lifted and not away]


def test_kicks_go_from_the_table_before_to_the_table_after(page):
    """Each step moves one fingerprint; at most one has no slot; the last table is the filter's."""
    seen = 0
    for shape in ["16,2,8", "24,2,6", "12,3,8"]:
        page.open(f"playground?kind=cuckoo&shape={shape}")
        page.settles("playground")
        for _ in range(3):
            goal = page.text("#step-goal")
            page.one("#kick").click()
            ended = lambda: page.text("#play-told").startswith("No key")  # noqa: E731
            page.wait(lambda: ended() or page.text("#step-goal") != goal, "a walk")  # noqa: B023
            if ended():
                break
            page.settles("playground")
            before, _ = slots(page)
            place = {row["key"]: row for row in listed(page)}
            key = page.text("#step-goal").removeprefix("Adding ")
            page.press("#step-next"), page.press("#step-next")
            tables = []
            while count(page)[0] < count(page)[1]:
                page.press("#step-next")
                tables.append(slots(page))
            assert tables[0][1], "the walk of a kick without a kick"
            assert all(len(lifted) <= 1 for _, lifted in tables) and tables[-1][1] == []
            after = {i: f"{int(cell['fingerprint']):x}" for i, cell in enumerate(drawn(page)) if "fingerprint" in cell}
            if key == listed(page)[-1]["key"]:
                assert tables[-1][0] == after
            assert len(after) == len(before) + 1
            assert f"{place[key]['fingerprint']:x}" in told(page)
            seen += len(tables) - 2
    assert seen >= 5


@pytest.mark.parametrize("kind", ["bloom", "blocked", "counting", "cuckoo"])
def test_the_command_says_the_same(page, tmp_path, kind):
    """`tamis explain` of a filter of that shape, to the letter."""
    file = File(tmp_path, kind, KEYS[:20], "--capacity", "60")
    start(page, kind, file.url_shape)
    fill(page, "a", KEYS[:20])
    fill(page, "ask", ["banana", KEYS[15]])
    for key in ["banana", KEYS[15]]:
        page.type("#step-key", key)
        page.press("#step-ask")
        page.wait(lambda: page.text("#step-goal") == f"Asking for {key}", "its walk")  # noqa: B023
        page.settles("playground")
        said = page.script("return document.querySelector('#step-explained pre').textContent")
        assert said.strip() == tamis("explain", file.path, key).strip() and key in said


def test_a_full_filter_refuses_in_words(page):
    keys = "%0A".join(f"key {i}" for i in range(20))
    page.open(f"playground?kind=cuckoo&shape=8,2,8&a={keys}&walk=a&key=key 19")
    page.settles("playground")
    assert "is refused" in walk(page)[-1]


def test_removed_by_mistake(page):
    start(page, "counting", "1,2,1")
    fill(page, "a", KEYS[:60])
    page.one("#find").click()
    page.wait(lambda: "stranger" in page.text("#step-goal"), "a stranger")
    stranger = page.text("#step-goal").removeprefix("Asking for ")
    fill(page, "removed", [stranger])
    page.wait(lambda: "A false “no”" in page.text("#play-told"), "a key that went missing")
    lost = re.search(r"A false “no”: ([^,]+)(?:, .*)? went", page.text("#play-told"))[1]
    page.type("#step-key", lost)
    page.press("#step-ask")
    page.wait(lambda: page.text("#step-goal") == f"Asking for {lost}", "its walk")
    page.settles("playground")
    assert "A false “no”" in walk(page)[-1]


def test_keys_alone_take_every_step(page):
    """Type a key, add it, walk there and back with arrows, ask for it."""
    page.open("playground")
    page.settles("playground")
    box = page.one("#step-key")
    box.send_keys("cherry", Keys.TAB)
    page.driver.switch_to.active_element.send_keys(Keys.SPACE)  # "Add it"
    page.wait(lambda: page.text("#step-goal") == "Adding cherry", "its walk")
    page.settles("playground")
    assert listed(page)[-1]["key"] == "cherry" and count(page)[0] == 1
    for expected in ["step-key", "step-add", "step-ask", "step-back", "step-next"][2:]:
        page.driver.switch_to.active_element.send_keys(Keys.TAB)
        assert page.driver.switch_to.active_element.get_attribute("id") == expected
    focus = page.driver.switch_to.active_element
    focus.send_keys(Keys.ENTER)
    assert count(page)[0] == 2
    focus.send_keys(Keys.ARROW_RIGHT)
    assert count(page)[0] == 3
    focus.send_keys(Keys.ARROW_LEFT)
    focus.send_keys(Keys.END)
    assert count(page) == [7, 7] and "cherry is in" in told(page)
    assert page.driver.switch_to.active_element.get_attribute("id") == "step-next"
    focus.send_keys(Keys.HOME)
    assert count(page)[0] == 1
    # Where one types, arrows move the cursor.
    page.one("#step-key").send_keys(Keys.ARROW_RIGHT, Keys.ENTER)
    page.wait(lambda: page.text("#step-goal") == "Asking for cherry", "its walk")
    page.settles("playground")
    assert "probably added" in walk(page)[-1]


def test_less_motion_on_request(page):
    """What moves does so only for those who do not mind."""
    moves = "return getComputedStyle(document.querySelector('#step-picture .token')).transitionDuration"
    for wish, is_still in [("no-preference", False), ("reduce", True)]:
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-reduced-motion", "value": wish}]})
        try:
            page.open("playground?kind=cuckoo")
            page.settles("playground")
            assert (page.script(moves) == "0s") == is_still
        finally:
            page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
