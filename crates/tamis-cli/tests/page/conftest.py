"""A service and a browser for the tests of the page.

TAMIS is the command to test, by default that of a debug build; CHROMIUM and CHROMEDRIVER are the browser's programs, by
default Debian's.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

ROOT = Path(__file__).resolve().parents[4]
# In seconds, for what takes a moment unless the machine is busy.
PATIENCE = float(os.environ.get("PATIENCE", 300))
TAMIS = os.environ.get("TAMIS", ROOT / "target/debug/tamis")
# The reader that was written from docs/format.md alone.
sys.path.insert(0, str(ROOT / "crates/tamis/tests/golden"))


def tamis(*args, cwd=None, stdin=None):
    done = subprocess.run([TAMIS, *map(str, args)], cwd=cwd, input=stdin, capture_output=True)
    assert done.returncode in (0, 1), done.stderr.decode()
    return done.stdout.decode()


class Service:
    """`tamis serve` on a port of its own, in a folder of its own."""

    def __init__(self, folder, *args):
        self.folder = folder
        self.process = subprocess.Popen(
            [TAMIS, "serve", "--listen", "127.0.0.1:0", *args], cwd=folder, stderr=subprocess.PIPE, text=True
        )
        said = []
        for line in self.process.stderr:
            said.append(line)
            if found := re.search(r"http://\S+", line):
                self.address = found[0].rstrip("/") + "/"
                return
        raise AssertionError(f"the service did not start: {''.join(said)}")

    def end(self):
        self.process.terminate()
        self.process.communicate(timeout=PATIENCE)


class Page:
    """The page in a browser, asked as a user would."""

    def __init__(self, driver, address):
        self.driver, self.address = driver, address

    def open(self, state=""):
        # The address alone would be no new page.
        self.leave()
        self.driver.get(self.address + (f"#{state}" if state else ""))
        return self

    def leave(self):
        """What is open asks its service for news, also one that has ended."""
        self.driver.get("about:blank")

    def travel(self, direction):
        """`back` or `forward`, which only begin it."""
        before = self.script("return location.hash")
        getattr(self.driver, direction)()
        self.wait(lambda: self.script("return location.hash") != before, f"a step {direction}")

    def script(self, code, *args):
        return self.driver.execute_script(code, *args)

    def one(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def wait(self, condition, why="the page to change"):
        return WebDriverWait(self.driver, PATIENCE, 0.02).until(lambda _: condition(), f"waited for {why}")

    def settles(self, panel):
        """Waits until a tab shows what the address bar says."""
        shown = "return document.getElementById(`panel-${arguments[0]}`).dataset.shown === location.hash"
        self.wait(lambda: self.script(shown, panel), f"{panel} to show its address")

    def choose(self, name, value):
        self.script("arguments[0].click()", self.one(f'input[name="{name}"][value="{value}"]'))

    def type(self, selector, text):
        """Replaces what a box holds."""
        box = self.one(selector)
        box.send_keys(Keys.CONTROL, "a")
        if text == "":
            box.send_keys(Keys.DELETE)
        else:
            # At once, as from the clipboard: the page asks about half a number if the other half is slow to come.
            self.driver.execute_cdp_cmd("Input.insertText", {"text": text})
        # As leaving the box would.
        self.script("arguments[0].dispatchEvent(new Event('change', {bubbles: true}))", box)

    def text(self, selector):
        """What is seen of an element; nothing of one that is not there."""
        # In one step: the page may draw another between finding an element and reading it.
        return self.script("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def press(self, selector):
        """A button that is drawn anew from time to time, in one step as well."""
        self.script("document.querySelector(arguments[0]).click()", selector)

    def errors(self):
        """What the console was told since the last time: also of refused markup and missing files."""
        return [entry for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]


@pytest.fixture(scope="session")
def driver():
    options = webdriver.ChromeOptions()
    options.binary_location = os.environ.get("CHROMIUM", shutil.which("chromium") or "/usr/bin/chromium")
    for argument in ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1400,1000",
                     "--force-device-scale-factor=1", "--hide-scrollbars", "--lang=en-US"]:  # fmt: skip
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    program = os.environ.get("CHROMEDRIVER", shutil.which("chromedriver") or "/usr/bin/chromedriver")
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(program))
    driver.set_script_timeout(PATIENCE)
    yield driver
    driver.quit()


@pytest.fixture(scope="session")
def service(tmp_path_factory):
    """Without filters: the calculator and the playground need none."""
    service = Service(tmp_path_factory.mktemp("service"))
    yield service
    service.end()


@pytest.fixture
def page(driver, service):
    page = Page(driver, service.address)
    page.leave()
    page.errors()
    yield page
    assert page.errors() == []


def plan_json(setting):
    """The kinds that serve; the command lists the others behind them, with the reason."""
    return [plan for plan in json.loads(tamis("plan", "--json", *setting)) if "left_out" not in plan]
