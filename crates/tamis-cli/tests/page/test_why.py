"""The tab "Why": its numbers are the textbook's, and its filling is that of a real filter."""

import math
import re

import pytest
from selenium.webdriver.common.keys import Keys


def rate(m, k):
    """(1 - e^(-k·n/m))^k, written down once more."""
    return (1 - math.exp(-k / m)) ** k


def dots(page):
    """The points of the curve: k and rate."""
    return page.script("""return [...document.querySelectorAll("#why-curve .dot")].map((dot) => [Number(dot.dataset.k), Number(dot.dataset.rate)])""")  # fmt: skip


def test_the_curve_has_its_minimum_marked(page):
    for m, best in [(2, 1), (5, 3), (9.5, 7), (10, 7), (20, 14), (32, 22)]:
        page.open(f"why?m={m}")
        page.settles("why")
        points = dots(page)
        assert [k for k, _ in points] == list(range(1, 25))
        assert all(shown == pytest.approx(rate(m, k)) for k, shown in points)
        assert min(points, key=lambda point: point[1])[0] == best
        assert page.one("#why-curve .lowest").get_attribute("data-k") == str(best)
        assert f"k = {best}" in page.text("#why-follows") or f"so {best}." in page.text("#why-follows")
        # It is marked where it is: no point of the drawing is lower.
        low = page.script("""return Math.max(...[...document.querySelectorAll("#why-curve .dot")].map((dot) => Number(dot.getAttribute("cy"))))""")  # fmt: skip
        assert float(page.one("#why-curve .lowest").get_attribute("cy")) == pytest.approx(low)


def test_the_table_marks_the_minimum_of_each_row(page):
    page.open("why")
    page.settles("why")
    cells = page.script("""return [...document.querySelectorAll("#why-table tbody tr")].map((row) => [Number(row.dataset.m),
        [...row.querySelectorAll("td")].map((cell) => [Number(cell.dataset.k), Number(cell.dataset.rate), cell.classList.contains("is-lowest"), cell.firstChild.textContent])])""")  # fmt: skip
    assert len(cells) == 16
    for m, row in cells:
        assert [k for k, _, lowest, _ in row if lowest] == [min(row, key=lambda cell: cell[1])[0]]
        # One notation: decimals and powers of ten next to each other can't be compared at a glance.
        assert not any("e" in text for *_, text in row)
        assert all(shown == pytest.approx(rate(m, k)) and float(text) == pytest.approx(shown, rel=0.006) for k, shown, _, text in row)
    texts = {(m, k): text for m, row in cells for k, _, _, text in row}
    assert texts[20, 10] == "0.0000889" and texts[10, 7] == "0.00819"


def test_a_filter_fills_beyond_what_it_was_made_for(page):
    page.open("why?m=10&k=7&keys=3000")
    page.settles("why")
    told = page.text("#why-fill-reading").replace(",", "")
    keys, bits, all_, yes, strangers = map(int, re.search(r"^(\d+) keys: (\d+) of (\d+) bits.* (\d+) of (\d+) strangers", told).groups())
    assert (keys, all_, strangers) == (3000, 10_000, 10_000)
    set_ = 1 - math.exp(-7 * 0.3)
    assert bits / all_ == pytest.approx(set_, abs=0.02) and yes / strangers == pytest.approx(set_**7, abs=0.04)
    rows = page.script("""return [...document.querySelectorAll("#why-fill-table tbody tr")].map((row) => [...row.cells].map((cell) => cell.textContent.replace(/[,%]/g, "").trim()).map(Number))""")  # fmt: skip
    assert [row[0] for row in rows] == list(range(0, 3001, 125))
    # Bits are only ever set, and strangers only ever get more of a "yes".
    for column in range(1, 5):
        assert [row[column] for row in rows] == sorted(row[column] for row in rows)
    assert rows[0][1:] == [0, 0, 0, 0] and rows[8][1] == pytest.approx(50.3) and rows[8][3] == pytest.approx(0.819)


def test_sliders_work_with_keys_alone(page):
    page.open("why?m=10")
    page.settles("why")
    slider = page.one("#why-m")
    slider.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    page.wait(lambda: "m=11" in page.driver.current_url, "its address")
    page.settles("why")
    assert dots(page)[7][1] == pytest.approx(rate(11, 8)) and "k = 8" in page.text("#why-best")
    page.one("#why-k").send_keys(Keys.HOME)
    page.wait(lambda: "k=1" in page.driver.current_url.partition("m=11")[2], "its address")
    page.settles("why")
    assert page.text("#why-best") == "Take the best: k = 8"
    assert f"rate of {rate(11, 1):.3g}".rstrip("0") in page.text("#why-reading")
    page.one("#why-best").send_keys(Keys.ENTER)
    page.settles("why")
    assert page.text("#why-best") == "k = 8 is the best" and page.one("#why-k").get_attribute("value") == "8"
    page.one("#why-keys").send_keys(Keys.END)
    page.wait(lambda: page.text("#why-fill-reading").startswith("3,000 keys"), "the last step")


def test_pressing_on_the_curve_chooses_k(page):
    page.open("why?m=10")
    page.settles("why")
    page.script("""
        const dot = document.querySelector('#why-curve .dot[data-k="3"]').getBoundingClientRect();
        document.querySelector("#why-curve svg").dispatchEvent(new PointerEvent("pointerdown", {clientX: dot.x + dot.width / 2, clientY: dot.y, buttons: 1, bubbles: true}));""")
    page.settles("why")
    assert page.one("#why-k").get_attribute("value") == "3" and "k=3" in page.driver.current_url


@pytest.mark.parametrize("state", ["m=1e9", "m=NaN&k=-1", "m=10.25", "k=7.5&keys=1", "m=<b>&k=&keys=", "m=Infinity"])
def test_numbers_that_no_slider_has_are_left_out(page, state):
    page.open(f"why?{state}")
    page.settles("why")
    assert page.one("#why-m").get_attribute("value") == "10" and page.one("#why-k").get_attribute("value") == "7"
    assert page.text("#why-problem") == ""
