"""Every link from one page of the repository to another leads somewhere, and so does every picture."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[4]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), ROOT / "crates/tamis-python/README.md"]


def prose(page):
    """The page without its fenced blocks."""
    return re.sub(r"^\s*```.*?^\s*```", "", page.read_text(), flags=re.S | re.M)


def links(text):
    text = re.sub(r"(?<!`)`[^`\n]+`(?!`)", "code", text)
    yield from re.findall(r"\]\(([^)\s]+)\)", text)
    yield from re.findall(r'<img src="([^"]+)"', text)


def anchors(page):
    """What the forge calls the page's headings."""
    for heading in re.findall(r"^#+ (.*)$", prose(page), re.M):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        yield re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    for link in links(prose(page)):
        path, _, anchor = link.partition("#")
        if "://" in path:
            continue
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link}: there is no {target.relative_to(ROOT)}"
        if anchor:
            assert anchor in anchors(target), f"{link}: {target.name} has no such heading"


def test_every_page_of_docs_is_in_its_index():
    index = ROOT / "docs/README.md"
    linked = {(index.parent / link.partition("#")[0]).resolve() for link in links(prose(index))}
    missing = [page.name for page in (ROOT / "docs").rglob("*.md") if page != index and page not in linked]
    assert not missing


def test_links_and_anchors_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A `b`: c, d\n[x](other.md#a-b) <img src=\"p.png\">\n```\n# no heading\n[no](link.md)\n```\n`[no](code.md)`\n")
    assert list(links(prose(page))) == ["other.md#a-b", "p.png"]
    assert list(anchors(page)) == ["a-b-c-d"]
