"""The summary of docs/benchmarks.md has the numbers of the tables that it links to."""

import re

from test_links import ROOT

PAGE = (ROOT / "docs/benchmarks.md").read_text()
TIME = re.compile(r"(\d+\.\d+) ×")


def anchor(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def sections():
    """Anchor -> text, of the page's sections."""
    _, *parts = re.split(r"^## (.*)\n", PAGE, flags=re.M)
    return {anchor(name): text for name, text in zip(parts[::2], parts[1::2])}


def cells(text):
    """The times in the tables between the markers, which `bench -- report` writes."""
    tables = re.findall(r"<!-- (\w+) -->(.*?)<!-- /\1 -->", text, re.S)
    return {time for _, table in tables for time in re.findall(r"\| (\d+\.\d+) ×", table)}


def claims(summary):
    """(section, time) of the summary. A line without a link goes on with the section of the line above."""
    section = None
    for line in summary.splitlines():
        if link := re.search(r"\]\(#([\w-]+)\)", line):
            section = link[1]
        for time in TIME.findall(line):
            yield section, time


def test_the_summary_is_that_of_the_tables():
    known = sections()
    found = list(claims(known["summary"]))
    assert len(found) >= 30
    wrong = [(section, time) for section, time in found if time not in cells(known[section])]
    assert not wrong, f"docs/benchmarks.md, summary: {wrong}"
