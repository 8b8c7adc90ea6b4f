"""A page in Chinese says what its page in English says, and the guide's numbers and pictures come from commands.

A Chinese page has the blocks of its English page: the same commands, output and code, line by line. Only comments
differ, and they are in Chinese. `python test_learn.py` copies the blocks of each page in English into its page in
Chinese, and keeps the comments that stand there behind the same code.
"""

import collections
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[4]
# Both languages in one table, so it has no page in English.
GLOSSARY = ROOT / "docs/glossary.zh-CN.md"
CHINESE = sorted({*ROOT.glob("*.zh-CN.md"), *(ROOT / "docs").rglob("*.zh-CN.md")} - {GLOSSARY})
# A page whose name in Chinese is what its readers search for, and its name in English.
NAMES = {"cache-penetration": "backend"}
# A number of the prose, with what belongs to it: 999,090 or 8.89e-5 or 0.19, not the 3 of `python3` or of [3].
NUMBER = re.compile(r"(?<![\w.,/-])\d+(?:,\d{3})*(?:\.\d+)?(?:e-\d+)?(?![\w/]|\.\d)")
HAN = re.compile(r"[\u4e00-\u9fff]")
# The words by which readers search, of which the glossary has all and each page some.
TERMS = ["位数组", "误判率", "缓存穿透", "去重", "计数布隆过滤器", "布谷鸟过滤器", "缓存行", "垃圾邮件", "静态集合", "滑动窗口"]
COMMENTS = [
    ({"rust", "java", "c", "cpp", "js", "javascript"}, re.compile(r"(.*?)(?:^|(?<=\s))(?://+ (.*)|/\* (.*) \*/)")),
    ({"console", "sh", "toml", "python"}, re.compile(r"(.*?)(?:^|(?<=\s))#+ (.*)")),
]


def english(page):
    name = page.name.removesuffix(".zh-CN.md")
    return page.with_name(f"{NAMES.get(name, name)}.md")


def name_in_english(target):
    """What a link or a picture of a Chinese page is called in English."""
    target = re.sub(r"\.zh-CN|-zh(?=\.(?:png|svg)$)", "", target)
    return re.sub(r"[\w-]+(?=\.md$)", lambda name: NAMES.get(name[0], name[0]), target)


def prose_and_blocks(page):
    """The page's text without its fenced blocks, and those blocks."""
    parts = re.split(r"^(```.*?^```)$", page.read_text(), flags=re.M | re.S)
    return "".join(parts[::2]), parts[1::2]


def code_and_comments(block):
    """[(code, comment)], a line each. What a command prints is code to its end, whatever it looks like."""
    lines = block.splitlines()
    kind = re.match(r"```(\w*)", lines[0])[1]
    pattern = next((pattern for kinds, pattern in COMMENTS if kind in kinds), None)
    found = []
    for line in lines:
        comment = pattern and pattern.fullmatch(line)
        if comment and (kind != "console" or line.startswith("$ ")):
            code, *texts = comment.groups()
            found.append((code.rstrip() or code, "".join(text or "" for text in texts)))
        else:
            found.append((line, None))
    return found


def without_places(prose):
    """Without the targets of links and pictures, code and headings' anchors, in which numbers are names."""
    return re.sub(r"`[^`]*`|\]\([^)]*\)|<[^>]*>|https?://\S+", "", prose)


def numbers(prose):
    """Without single digits: what one language counts with a digit, another does with a word."""
    return {number for number in NUMBER.findall(without_places(prose)) if len(number) > 1}


def headings(prose):
    return re.findall(r"^(#+) ", prose, flags=re.M)


def links(prose):
    """What is linked and shown. An anchor is a heading's, so a page's own."""
    return re.findall(r"\]\(([^)#]*)[^)]*\)", prose) + re.findall(r'src="([^"]*)"', prose)


def targets(prose, page):
    """What is linked and shown, in any order, without the page in the other language, and the glossary."""
    glossary = os.path.relpath(GLOSSARY, page.parent)
    found = collections.Counter(name_in_english(target) for target in links(prose) if target != glossary)
    del found[english(page).name]
    return found


def test_there_are_pages():
    names = {page.relative_to(ROOT).as_posix() for page in CHINESE}
    guide = {f"docs/learn/{page.stem}.zh-CN.md" for page in (ROOT / "docs/learn").glob("*.md") if "." not in page.stem}
    guides = {"docs/guides/cache-penetration.zh-CN.md", "docs/guides/crawler.zh-CN.md"}
    assert names >= {"README.zh-CN.md", *guide, *guides}
    assert all(english(page).exists() for page in CHINESE)


@pytest.mark.parametrize("page", CHINESE, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_languages_are_in_step(page):
    (said, blocks), (said_in_english, blocks_in_english) = prose_and_blocks(page), prose_and_blocks(english(page))
    assert headings(said) == headings(said_in_english)
    assert len(blocks) == len(blocks_in_english)
    for block, block_in_english in zip(blocks, blocks_in_english, strict=True):
        lines, lines_in_english = code_and_comments(block), code_and_comments(block_in_english)
        code, code_in_english = [code for code, _ in lines], [code for code, _ in lines_in_english]
        assert code == code_in_english, "python crates/tamis-cli/tests/console/test_learn.py copies them"
        for (code, comment), (_, comment_in_english) in zip(lines, lines_in_english, strict=True):
            assert (comment is None) == (comment_in_english is None), code
            if comment is not None:
                assert HAN.search(comment) or not re.search("[a-z]{3}", comment_in_english), f"a comment in English: {comment}"
                assert numbers(comment) == numbers(comment_in_english), code
    assert targets(said, page) == targets(said_in_english, page)
    assert numbers(said) == numbers(said_in_english)


@pytest.mark.parametrize("page", CHINESE, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_languages_lead_to_each_other(page):
    """And where there is a page or a picture in Chinese, a Chinese page doesn't lead to the one in English."""
    said = links(prose_and_blocks(page)[0])
    assert page.name in links(prose_and_blocks(english(page))[0])
    assert english(page).name in said
    assert os.path.relpath(GLOSSARY, page.parent) in said
    in_chinese = {english(other): other for other in CHINESE if other != page}
    in_chinese |= {picture.with_name(name_in_english(picture.name)): picture for picture in (ROOT / "docs").rglob("*-zh.*")}
    for target in said:
        other = in_chinese.get((page.parent / target).resolve())
        assert other is None or "://" in target, f"{target} is there in Chinese: {other.name}"


@pytest.mark.parametrize("page", [GLOSSARY, *CHINESE], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_one_word_for_adding(page):
    assert "添加" not in page.read_text(), "加入, here and elsewhere"


@pytest.mark.parametrize("page", [GLOSSARY, ROOT / "docs/learn/README.zh-CN.md"], ids=lambda page: page.name)
@pytest.mark.parametrize("term", TERMS)
def test_words_readers_search_for(page, term):
    assert term in page.read_text()


def test_glossary_has_what_info_prints(tmp_path):
    tamis = os.environ.get("TAMIS", ROOT / "target/debug/tamis")
    subprocess.run([tamis, "create", "a.tamis", "--capacity", "1000"], cwd=tmp_path, check=True, capture_output=True)
    ran = subprocess.run([tamis, "info", "a.tamis"], cwd=tmp_path, check=True, capture_output=True, text=True)
    labels = [re.split(" {2,}", line)[0] for line in ran.stdout.splitlines()]
    assert len(labels) > 5
    assert [label for label in labels if f"`{label}`" not in GLOSSARY.read_text()] == []


def test_comments_are_found():
    block = "```console\n$ tamis add a # to b\n# not ours  # at all\n$ echo '#'\n```"
    assert code_and_comments(block)[1:4] == [("$ tamis add a", "to b"), ("# not ours  # at all", None), ("$ echo '#'", None)]
    block = "```c\nint a; /* all of it */\n```"
    assert code_and_comments(block)[1] == ("int a;", "all of it")
    block = '```rust,no_run\n    // All of it.\nopen("https://a"); // now\n#[test]\n```'
    assert code_and_comments(block)[1:4] == [("    ", "All of it."), ('open("https://a");', "now"), ("#[test]", None)]


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
    """And the chart of README.md in Chinese is that in English: `python3 docs/learn/draw.py TAMIS docs` draws them."""
    tamis = os.environ.get("TAMIS", ROOT / "target/debug/tamis")
    subprocess.run([sys.executable, ROOT / "docs/learn/draw.py", tamis, tmp_path], check=True)
    drawn = {picture.relative_to(tmp_path): picture.read_text() for picture in tmp_path.rglob("*.svg")}
    shown = [*(ROOT / "docs/learn").glob("*.svg"), *(ROOT / "docs").glob("*-zh.svg")]
    assert drawn == {picture.relative_to(ROOT / "docs"): picture.read_text() for picture in shown}


def copied(block, block_in_english):
    """The block in English, with the comments of the other where its code is the same."""
    known = collections.defaultdict(list)
    for code, comment in code_and_comments(block):
        if comment is not None:
            known[code].append(comment)
    lines = []
    for line, (code, comment) in zip(block_in_english.splitlines(), code_and_comments(block_in_english), strict=True):
        if comment is not None and known[code]:
            before, behind = line.rsplit(comment, 1)
            line = before + known[code].pop(0) + behind
        lines.append(line)
    return "\n".join(lines)


if __name__ == "__main__":
    for page in CHINESE:
        parts = re.split(r"^(```.*?^```)$", page.read_text(), flags=re.M | re.S)
        blocks = prose_and_blocks(english(page))[1]
        assert len(parts[1::2]) == len(blocks), f"{page}: {len(parts[1::2])} blocks, and in English {len(blocks)}"
        parts[1::2] = map(copied, parts[1::2], blocks)
        page.write_text("".join(parts))
