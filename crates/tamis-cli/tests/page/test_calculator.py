"""The calculator shows what `tamis plan` says, to the last digit."""

import json
import math
import re

import pytest
from conftest import plan_json, tamis

# Numbers as people type them, from the smallest to beyond every slider.
KEYS = ["1", "37", "1000", "65_536", "1e6", "10M", "1.5G", "250G", "1e15"]
RATES = ["0.5", "10%", "1%", "1/300", "0.001", "1e-6", "1e-9", "1e-12"]
SIZES = ["64", "1000", "4KiB", "16MB", "1.2MB", "2GiB", "3TB"]
NEEDS = ["", "delete", "grow", "finished"]


def settings():
    """50 of them: (what is given, what is needed)."""
    found = []
    for i in range(22):
        found.append(({"keys": KEYS[i % 9], "rate": RATES[(i * 3 + i // 9) % 8]}, NEEDS[i % 4]))
    for i in range(14):
        keys, size = ["100", "9_999", "1e6", "3M", "2G"][i % 5], ["1.2MB", "16MB", "2GiB", "3TB"][(i * 3) % 4]
        found.append(({"keys": keys, "size": size}, NEEDS[(i // 3) % 4]))
    for i in range(14):
        found.append(({"rate": RATES[i % 6], "size": SIZES[(i * 2 + 3) % 7]}, NEEDS[(i // 2) % 4]))
    return found


def arguments(given, need):
    options = {"keys": "--capacity", "rate": "-p", "size": "--size"}
    return [part for name, text in given.items() for part in (options[name], text)] + [f"--{need}"] * bool(need)


def enter(page, given, need):
    """As a user would: what to find, what is needed, and the two numbers."""
    (find,) = {"keys", "rate", "size"} - given.keys()
    page.choose("find", find)
    page.choose("need", need)
    for name, text in given.items():
        page.type(f"#number-{name}", text)
    page.settles("calculator")


def rows(page):
    """The table's numbers, by kind."""
    return page.script("""
        return [...document.querySelectorAll("#kinds tr")].map((row) => ({
            ...row.dataset,
            ...Object.fromEntries([...row.querySelectorAll("td")].map((cell) => [cell.dataset.name, cell.dataset.value])),
            texts: [...row.querySelectorAll("td")].map((cell) => cell.textContent),
        }))""")


def is_stale(page):
    """Whether the results are marked as those of other numbers."""
    return bool(page.all("#panel-calculator .results.is-stale"))


def assert_only_refusals(page):
    """The browser itself tells of each 400, and nothing else went wrong."""
    assert [entry for entry in page.errors() if "status of 400" not in entry["message"]] == []


def number_in(text):
    """`1,234` and `8-bit`."""
    return int(text.replace(",", "").removesuffix("-bit"))


def number(text):
    return None if text is None else float(text)


def test_numbers_equal_those_of_the_command(page):
    page.open()
    page.wait(lambda: rows(page), "the first table")
    compared = refused = 0
    for given, need in settings():
        enter(page, given, need)
        try:
            plans = plan_json(arguments(given, need))
        except AssertionError as refusal:
            # What no kind can serve is refused in the command's own words.
            said = re.search(r"^tamis: (?:error: )?(.*)", str(refusal), re.M)[1]
            beside = " ".join(page.text(f"#error-number-{name}").lower() for name in given)
            assert said in page.text("#plan-problem") or said.partition(": ")[2].lower() in beside, given
            assert is_stale(page)
            refused += 1
            continue
        shown = rows(page)
        assert [row["kind"] for row in shown] == [plan["kind"] for plan in plans], given
        for row, plan in zip(shown, plans):
            for name in ["keys", "bytes", "bits", "bits_per_key", "hashes", "lines_per_key", "hashes_per_line", "rate"]:
                assert number(row.get(name)) == plan[name], (given, need, plan["kind"], name)
        # What people read is what the command prints for people.
        printed = tamis("plan", *arguments(given, need))
        table, _, advice = printed.partition("\n\n")
        for row, line in zip(shown, table.splitlines()[1:]):
            assert line.split()[1:][: len(" ".join(row["texts"]).split())] == " ".join(row["texts"]).split(), line
        read = page.text("#advice").lower()
        for line in advice.splitlines():
            assert re.sub(r"^Pick [a-z]+: ", "", line).lower() in read, (given, line)
        compared += 1
    # A refusal is one, too, but the numbers are what this is about.
    assert compared + refused == 50 and compared >= 45, (compared, refused)
    assert_only_refusals(page)


def test_a_window_costs_what_the_command_says(page):
    page.open("calculator")
    page.settles("calculator")
    assert not page.one("#number-generations").is_displayed()
    page.choose("need", "forget")
    page.settles("calculator")
    assert page.one("#number-generations").is_displayed()
    for keys, rate, generations in [("10M", "0.01", "8"), ("1M", "1e-4", "24"), ("37", "1e-9", "1"), ("1.5G", "0.001", "62")]:
        page.type("#number-keys", keys)
        page.type("#number-rate", rate)
        page.type("#number-generations", generations)
        page.settles("calculator")
        # However long the window is.
        for span in ["--within", "1m"], ["--renew", "--within", "52w"]:
            (told,) = json.loads(tamis("plan", "--json", "--capacity", keys, "-p", rate, *span, "--generations", generations))
            row = rows(page)[0]
            assert row["kind"] == "window" and [row["kind"] for row in rows(page)][1:] == ["blocked"]
            for name in ["keys", "bytes", "bits_per_key"]:
                assert number(row[name]) == told[name], (keys, name)
            # The page's logarithms are WebAssembly's, the command's the system's: they differ in the last bit.
            assert number(row["rate"]) == pytest.approx(told["rate"], rel=1e-12), keys
        assert f"1/{generations} of it more" in page.text("#advice")
        assert ("generations" in page.driver.current_url) == (generations != "8")
        command = page.text("#command")
        assert "--within 24h" in command and (f"--generations {generations}" in command) == (generations != "8")
    # What is wrong with the generations is said beside them, and a link holds them.
    page.type("#number-generations", "63")
    page.settles("calculator")
    assert page.text("#error-number-generations") == "Expected 1 to 62, got 63" and is_stale(page)
    page.type("#number-generations", "16")
    page.settles("calculator")
    assert page.text("#error-number-generations") == "" and not is_stale(page)
    page.choose("find", "rate")
    page.settles("calculator")
    assert "where a size is given" in page.text("#error-number-generations")
    page.open("calculator?keys=1M&rate=0.001&need=forget&generations=5")
    page.settles("calculator")
    assert page.one("#number-generations").get_attribute("value") == "5" and "--generations 5" in page.text("#command")
    assert_only_refusals(page)


def test_bits_and_hashes_fit_the_formula(page):
    """m and k as textbooks have them: what they give for these keys is the rate."""
    page.open("calculator?keys=10M&rate=0.001")
    page.settles("calculator")
    columns = [cell.text for cell in page.all(".kinds thead th")]
    assert columns[-2:] == ["Bits (m)", "Hashes (k)"]
    shown = {row["kind"]: [*map(number_in, row["texts"][-2:])] for row in rows(page)}
    m, k = shown["bloom"]
    assert (1 - math.exp(-k * 10e6 / m)) ** k == pytest.approx(0.001, rel=0.01)
    # The kind that is advised; a phone has no room for the columns.
    m, k = shown["blocked"]
    assert f"m = {m:,} · k = {k}" in page.text("#advice .figures")
    # A fingerprint is no number of hashes.
    page.choose("need", "finished")
    page.settles("calculator")
    assert "10-bit fingerprints" in page.text("#advice .figures")
    assert {row["kind"]: row["texts"][-1] for row in rows(page)}["fuse"] == "10-bit"


def test_the_command_line_makes_what_was_promised(page, tmp_path):
    page.open()
    for n, (given, need, kind) in enumerate([
        ({"keys": "20_000", "rate": "0.001"}, "forget", "window"),
        ({"keys": "20_000", "size": "100kB"}, "forget", "window"),
        ({"keys": "123_456", "rate": "1e-4"}, "", "blocked"),
        ({"keys": "123_456", "rate": "1e-4"}, "", "bloom"),
        ({"keys": "50k", "size": "100kB"}, "", "blocked"),
        ({"keys": "50k", "size": "100kB"}, "delete", "cuckoo"),
        ({"rate": "0.003", "size": "250kB"}, "delete", "counting"),
        ({"rate": "1%", "size": "250kB"}, "", "blocked"),
        ({"keys": "20k", "rate": "0.5%"}, "finished", "fuse"),
        ({"keys": "20k", "size": "30kB"}, "finished", "ribbon"),
    ]):  # fmt: skip
        enter(page, given, need)
        page.one(f'#kinds tr[data-kind="{kind}"] button').click()
        page.settles("calculator")
        (row,) = [row for row in rows(page) if row["kind"] == kind]
        command = page.text("#command").split()
        folder = tmp_path / str(n)
        folder.mkdir()
        (folder / "keys.txt").write_text("\n".join(f"key {i}" for i in range(int(float(row["keys"])))))
        tamis(*command[1:], cwd=folder)
        (made,) = folder.glob("*.tamis")
        info = json.loads(tamis("info", "--json", made))
        assert info["kind"] == kind
        # Of a finished list the plan is what is expected of its build.
        assert info["bytes"] == pytest.approx(int(row["bytes"]), rel=0.02 if need == "finished" else 0), command
        # What it promises is at least what is expected; bloom's hashes are rounded, at up to 1 %.
        # A window's slots have one of four widths, so that less may be expected of it.
        most = 5 if kind == "window" else 1.35
        assert float(row["rate"]) * 0.99 <= info["rate"] <= float(row["rate"]) * most, command


def test_the_address_holds_the_choice(page):
    page.open("calculator?keys=5M&rate=1e-4&need=delete")
    page.settles("calculator")
    assert page.one("#number-keys").get_attribute("value") == "5M"
    assert page.one('input[name="need"][value="delete"]').is_selected()
    before = rows(page)
    page.type("#number-keys", "6M")
    page.settles("calculator")
    page.wait(lambda: "keys=6M" in page.driver.current_url, "its address")
    assert rows(page) != before
    page.choose("find", "rate")
    page.settles("calculator")
    # Back, and back again: each finished change is one step.
    page.travel("back")
    page.settles("calculator")
    page.wait(lambda: "keys=6M" in page.driver.current_url and "rate=" in page.driver.current_url, "its address")
    page.travel("back")
    page.settles("calculator")
    assert rows(page) == before and page.one("#number-keys").get_attribute("value") == "5M"
    page.travel("forward")
    page.settles("calculator")
    assert page.one("#number-keys").get_attribute("value") == "6M"


def test_sliders_move_the_numbers(page):
    page.open("calculator?keys=1M&rate=0.01")
    page.settles("calculator")
    page.script("""
        const slider = document.querySelector("#slider-keys");
        slider.value = 8;
        slider.dispatchEvent(new Event("input", {bubbles: true}));
        slider.dispatchEvent(new Event("change", {bubbles: true}));""")
    page.settles("calculator")
    assert page.one("#number-keys").get_attribute("value") == "100M"
    assert {row["keys"] for row in rows(page)} == {"100000000"}


def test_the_curve_is_the_librarys(page):
    """Twice the keys: the table of the curve has what the command says of it."""
    page.open("calculator?keys=1M&rate=0.01")
    page.settles("calculator")
    said = re.search(r"Twice the keys .* rate to (\S+)\.", tamis("plan", "--capacity", "1M", "-p", "0.01"))[1]
    table = page.script("""
        const [head, ...rows] = [...document.querySelectorAll("#curve table tr")];
        return rows.map((row) => Object.fromEntries([...row.cells].map((cell, i) => [head.cells[i].textContent, cell.textContent])))""")
    by_keys = {row["Keys"]: row for row in table}
    assert by_keys["2,000,000"]["blocked"] == said
    assert by_keys["2,000,000"]["fuse"] == by_keys["2,000,000"]["cuckoo"] == "takes no more"
    assert float(by_keys["16,000,000"]["growing"]) <= 0.01
    assert len(page.all("#curve polyline")) == 7


def test_nonsense_is_refused_beside_its_field(page):
    """In words that a screen reader reads with the field; what was there stays, dimmed, and comes back."""
    page.open("calculator?keys=1M&rate=0.01")
    page.settles("calculator")
    before = rows(page)
    for name, text in [("keys", "many"), ("rate", "2"), ("keys", "<img src=x onerror=alert(1)>"), ("keys", "1,5")]:
        box = f"#number-{name}"
        right = page.one(box).get_attribute("value")
        page.type(box, text)
        page.wait(lambda: page.text(f"#error-number-{name}"), "a refusal")  # noqa: B023
        assert page.one(box).get_attribute("aria-invalid") == "true"
        assert f"error-number-{name}" in page.one(box).get_attribute("aria-describedby").split()
        others = {"keys", "rate", "size"} - {name}
        assert all(page.one(f"#number-{other}").get_attribute("aria-invalid") is None for other in others)
        assert is_stale(page) and rows(page) == before and page.all("#panel-calculator img") == []
        page.type(box, right)
        page.wait(lambda: not is_stale(page), "the numbers again")
        assert page.text(f"#error-number-{name}") == "" and page.one(box).get_attribute("aria-invalid") is None
    assert_only_refusals(page)


def test_redis_is_what_the_command_says(page):
    page.open("calculator?keys=1M&rate=1e-5")
    page.settles("calculator")
    told = [row for row in json.loads(tamis("plan", "--capacity", "1M", "-p", "1e-5", "--redis", "--json")) if "left_out" not in row]
    shown = page.script("""return [...document.querySelectorAll("#redis-rows tr")].map((row) => [row.dataset.way, row.dataset.kind, row.querySelector("[data-name=memory]").textContent])""")  # fmt: skip
    assert shown == [[row["way"], row["kind"], row["memory"]] for row in told] and len(shown) >= 6
    assert {way for way, _, _ in shown} == {"strings", "module", "redisbloom", "redisson"}
    # A size leaves open what a server would take.
    page.choose("find", "rate")
    page.settles("calculator")
    assert not page.one("#redis").is_displayed()


def test_kinds_that_are_missing_are_explained(page):
    page.open("calculator?keys=1M&rate=1e-15")
    page.settles("calculator")
    missing = [plan for plan in json.loads(tamis("plan", "--capacity", "1M", "-p", "1e-15", "--json")) if "left_out" in plan]
    assert missing and all(f"{plan['kind']}: {plan['left_out']}" in page.text("#left-out") for plan in missing)
    assert not {plan["kind"] for plan in missing} & {row["kind"] for row in rows(page)}


def test_thousands_may_have_commas(page):
    page.open("calculator?keys=1M&rate=0.01")
    page.settles("calculator")
    page.type("#number-keys", "10,000,000")
    page.settles("calculator")
    assert {row["keys"] for row in rows(page)} == {"10000000"}


def test_m_and_k_can_be_typed(page):
    page.open("calculator?keys=1M&rate=0.01")
    page.settles("calculator")
    page.type("#own-bits", "10M")
    page.type("#own-hashes", "7")
    page.wait(lambda: "rate" in page.text("#own-told"), "its rate")
    rate = float(re.search(r"rate of (\S+)\.$", page.text("#own-told"))[1])
    assert rate == pytest.approx((1 - math.exp(-7 * 1e6 / 1e7)) ** 7, rel=0.01)
    page.wait(lambda: "bits=10M&hashes=7" in page.driver.current_url, "its address")
    page.type("#own-hashes", "99")
    page.wait(lambda: "1 to 64" in page.text("#error-own-hashes"), "a refusal")
    assert page.one("#own-hashes").get_attribute("aria-invalid") == "true"
    assert not is_stale(page)  # the plan above has nothing to do with it
    assert_only_refusals(page)
