"""A page in Chinese says what its page in English says, and the guide's numbers and pictures come from commands.

`python test_learn.py` copies the blocks of each page in English into its page in Chinese.
"""

import collections
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[4]
CHINESE = sorted([*ROOT.glob("*.zh-CN.md"), *(ROOT / "docs").rglob("*.zh-CN.md")])
# A number of the prose, with what belongs to it: 999,090 or 8.89e-5 or 0.19, not the 3 of `python3` or of [3].
NUMBER = re.compile(r"(?<![\w.,/-])\d+(?:,\d{3})*(?:\.\d+)?(?:e-\d+)?(?![\w/]|\.\d)")


def english(page):
    return page.with_name(page.name.replace(".zh-CN", ""))


def prose_and_blocks(page):
    """The page's text without its fenced blocks, and those blocks."""
    parts = re.split(r"^(```.*?^```)$", page.read_text(), flags=re.M | re.S)
    return "".join(parts[::2]), parts[1::2]


def without_places(prose):
    """Without the targets of links and pictures, code and headings' anchors, in which numbers are names."""
    return re.sub(r"`[^`]*`|\]\([^)]*\)|<[^>]*>|https?://\S+", "", prose)


def numbers(prose):
    """Without single digits: what one language counts with a digit, another does with a word."""
    return {number for number in NUMBER.findall(without_places(prose)) if len(number) > 1}


def headings(prose):
    return re.findall(r"^(#+) ", prose, flags=re.M)


def targets(prose):
    """What is linked and shown, in any order: languages have their own. An anchor is a heading's, so a page's own."""
    found = re.findall(r"\]\(([^)#]*)[^)]*\)", prose) + re.findall(r'src="([^"]*)"', prose)
    return collections.Counter(re.sub(r"\.zh-CN|-zh(?=\.png)", "", target) for target in found)


def test_there_are_pages():
    names = {page.relative_to(ROOT).as_posix() for page in CHINESE}
    guide = {f"docs/learn/{page.stem}.zh-CN.md" for page in (ROOT / "docs/learn").glob("*.md") if "." not in page.stem}
    assert names >= {"README.zh-CN.md", *guide}
    assert all(english(page).exists() for page in CHINESE)


@pytest.mark.parametrize("page", CHINESE, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_languages_are_in_step(page):
    (said, blocks), (said_in_english, blocks_in_english) = prose_and_blocks(page), prose_and_blocks(english(page))
    assert headings(said) == headings(said_in_english)
    assert blocks == blocks_in_english, "python crates/tamis-cli/tests/console/test_learn.py copies them"
    assert targets(said) == targets(said_in_english)
    assert numbers(said) == numbers(said_in_english)


@pytest.mark.parametrize("name", ["README", "tutorials", "myths", "lsm", "paste-your-class"])
def test_numbers_of_the_guide_are_printed_by_its_commands(name):
    prose, blocks = prose_and_blocks(ROOT / f"docs/learn/{name}.md")
    printed = "\n".join(blocks)
    known = set(re.findall(r"\d+(?:,\d{3})*(?:\.\d+)?(?:e-\d+)?", printed))
    known |= {number.replace(",", "") for number in known} | {f"{int(number):,}" for number in known if number.isdigit()}
    # Small whole numbers count things, and the reader sees them; 128 bits have a digest, and 1970 is Bloom's year.
    told = {number for number in numbers(prose) if not (number.isdigit() and (int(number) < 100 or number in ("128", "1970")))}
    assert told <= known


def test_pictures_of_the_guide_are_what_the_command_says(tmp_path):
    tamis = os.environ.get("TAMIS", ROOT / "target/debug/tamis")
    subprocess.run([sys.executable, ROOT / "docs/learn/draw.py", tamis, tmp_path], check=True)
    drawn = {picture.name: picture.read_text() for picture in tmp_path.iterdir()}
    shown = {picture.name: picture.read_text() for picture in (ROOT / "docs/learn").glob("*.svg")}
    assert drawn == shown


if __name__ == "__main__":
    for page in CHINESE:
        parts = re.split(r"^(```.*?^```)$", page.read_text(), flags=re.M | re.S)
        blocks = prose_and_blocks(english(page))[1]
        assert len(parts[1::2]) == len(blocks), f"{page}: {len(parts[1::2])} blocks, and in English {len(blocks)}"
        parts[1::2] = blocks
        page.write_text("".join(parts))
