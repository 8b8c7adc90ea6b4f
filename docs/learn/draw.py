#!/usr/bin/env python3
"""Draws the guide's pictures from what the command says: python3 docs/learn/draw.py TAMIS FOLDER

toy.svg and hashes.svg show what `tamis explain` and `tamis plan --table` print; cuckoo.svg is a sketch. Each picture
has a second one in Chinese: toy-zh.svg and so on. FOLDER is docs, or another folder to compare with it: the pictures go
to its folder learn/, and next to it the chart that README.md shows, with its words in Chinese (the names of programs and
commands stay).
"""

import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

# The classes of STYLE, which choose a colour for light and for dark pages.
BLUE, ORANGE, GREEN, PINK, GREY, INK = "blue", "orange", "green", "pink", "grey", "ink"
STYLE = (
    "<style>svg{--paper:#fff;--ink:#333;--edge:#555;--faint:#e4e4e4;--one:#dcecf7;--blue:#0072b2;--orange:#d55e00;"
    "--green:#009e73;--pink:#a8447c;--grey:#676767}"
    "@media(prefers-color-scheme:dark){svg{--paper:#16181b;--ink:#e6e6e6;--edge:#9aa0a6;--faint:#3a3f45;--one:#1f4560;"
    "--blue:#6db3f2;--orange:#fb923c;--green:#34d399;--pink:#f0a6cf;--grey:#a8adb3}}"
    "text{fill:var(--ink)}.paper{fill:var(--paper)}.edge{stroke:var(--edge)}.one{fill:var(--one)}"
    ".grid{stroke:var(--faint)}.line{fill:none;stroke-width:2}.name{paint-order:stroke;stroke:var(--paper);stroke-width:5}"
    + "".join(f"text.{name},.dot.{name}{{fill:var(--{name})}}.line.{name}{{stroke:var(--{name})}}"
              for name in (BLUE, ORANGE, GREEN, PINK, GREY))
    + "</style>"
)

TEXTS = {
    "": {
        "toy": "Sixteen bits, and where three hashes send four keys",
        "toy.apple": "added", "toy.pear": "added",
        "toy.cherry": "never added: two bits are 0, so certainly not",
        "toy.b": "never added, but its bits are 1: a false yes",
        "toy.dashed": "dashed: the bit is 0",
        "hashes": "The rate against the number of hashes",
        "hashes.k": "k, the number of hashes", "hashes.p": "p, the rate of false yes",
        "cuckoo": "A new fingerprint, and two that move",
        "cuckoo.steps": ["x: both of its places are taken", "x takes one; a goes to its other place",
                         "a takes it; c goes to its other place", "that place was empty: done"],
    },
    "-zh": {
        "toy": "16 位的位数组：四个键各由三个哈希定位",
        "toy.apple": "已加入", "toy.pear": "已加入",
        "toy.cherry": "没加入过：有两位是 0，肯定没见过",
        "toy.b": "没加入过，可它的位都是 1：误判",
        "toy.dashed": "虚线：这一位是 0",
        "hashes": "误判率随哈希函数个数的变化",
        "hashes.k": "哈希函数的个数 k", "hashes.p": "误判率 p",
        "cuckoo": "布谷鸟过滤器：新指纹踢走旧指纹",
        "cuckoo.steps": ["x 的两个位置都被占了", "x 占下一个，踢走 a；a 去另一个位置",
                         "a 踢走 c；c 去另一个位置", "那里是空的，到此结束"],
    },
}  # fmt: skip


# What README's picture says, which is drawn by bench/src/chart.rs.
CHART = {
    r"Removing repeated lines: tamis dedup": "去掉重复的行：tamis dedup",
    r"million lines a second, .*; longer is faster": "每秒多少百万行（M/s），从页缓存读，写到内存里的文件：越长越快",
    r"(.*) lines of about 60 bytes, (.*) of them repeated; (.*), (.*) cores": r"\1 行，每行约 60 字节，其中 \2 重复；\3，\4 核",
    r"(tamis dedup.*), (.*) threads?": r"\1，\2 线程",
    r"cat \(only copies\)": "cat（只复制）",
}  # fmt: skip


def tamis(*words, given=None):
    # `explain` ends with 1 if the answer is no.
    return subprocess.run([sys.argv[1], *words], input=given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


def text(x, y, words, anchor="middle", colour=INK, more=""):
    return f'<text class="{colour}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{words}</text>'


def box(x, y, size, label="", fill="paper", colour=INK):
    return (
        f'<rect class="{fill} edge" x="{x:.1f}" y="{y:.1f}" width="{size}" height="{size}"/>'
        + text(x + size / 2, y + size / 2 + 5, label, colour=colour)
    )


def arrow(x1, y1, x2, y2, colour, dashed):
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    return f'<line class="line {colour}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" marker-end="url(#end)"{dash}/>'


def svg(name, title, width, height, parts):
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="system-ui, sans-serif" font-size="15">'
    )
    marker = (
        '<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="context-stroke"/></marker></defs>'
    )
    page = [head, f"<title>{title}</title>", STYLE, marker, '<rect class="paper" width="100%" height="100%"/>', *parts, "</svg>"]
    (FOLDER / "learn" / f"{name}.svg").write_text("\n".join(page) + "\n")


def toy(language, words):
    """Two keys, one that was never added, and one that gets a false yes."""
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/toy.tamis"
        tamis("create", file, "--kind", "bloom", "--bits", "16", "--hashes", "3")
        tamis("add", "-q", file, given="apple\npear\n")
        said = tamis("explain", "--json", file, "apple", "pear", "cherry", "b")
    looks = {key["key"]: key["looks"][0] for key in map(json.loads, said.splitlines())}
    bits = looks["apple"]["all"]
    left, top, size = 20, 140, 40

    def middle(bit):
        return left + bit * size + size / 2

    parts = []
    for bit, value in enumerate(bits):
        parts.append(box(left + bit * size, top, size, value, "one" if value else "paper"))
        parts.append(text(middle(bit), top + 56, bit, colour=GREY, more=' font-size="11"'))
    places = {"apple": (200, True, BLUE), "pear": (480, True, GREEN), "b": (170, False, PINK), "cherry": (510, False, ORANGE)}
    for key, (x, above, colour) in places.items():
        for bit in {bit["at"]: bit for bit in looks[key]["bits"]}.values():
            ends = (66, top - 2) if above else (262, top + 64)
            parts.append(arrow(x, ends[0], middle(bit["at"]), ends[1], colour, not bit["value"]))
        parts.append(text(x, 58 if above else 280, key, colour=colour, more=' font-weight="600"'))
        parts.append(text(x, 38 if above else 300, words[f"toy.{key}"], colour=colour, more=' font-size="13"'))
    parts.append(text(left + 16 * size, 20, words["toy.dashed"], "end", GREY, ' font-size="12"'))
    svg(f"toy{language}", words["toy"], 2 * left + 16 * size, 316, parts)


def hashes(language, words):
    """The rate against k, of the table's rows."""
    rows = {}
    for row in tamis("plan", "--table").splitlines()[3:]:
        bits, _, *rates = row.split()
        rows[int(bits)] = [float(rate) for rate in rates]
    left, top, width, height, most = 70, 52, 560, 300, 16

    def at(k, rate):
        return left + (k - 1) / (most - 1) * width, top - math.log10(rate) / 5 * height

    parts = []
    for decade in range(6):
        _, y = at(1, 10**-decade)
        parts.append(f'<line class="grid" x1="{left}" y1="{y:.1f}" x2="{left + width}" y2="{y:.1f}"/>')
        parts.append(text(left - 8, y + 5, ["1", "0.1", "0.01", "0.001", "1e-4", "1e-5"][decade], "end"))
    for k in range(1, most + 1):
        parts.append(text(at(k, 1)[0], top + height + 22, k))
    parts.append(text(left + width / 2, top + height + 50, words["hashes.k"]))
    parts.append(text(20, 24, words["hashes.p"], "start"))
    for bits, colour in ((8, BLUE), (10, GREEN), (16, ORANGE), (20, PINK)):
        rates = rows[bits][:most]
        points = [at(k, rate) for k, rate in enumerate(rates, 1)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline class="line {colour}" points="{path}"/>')
        x, y = points[rates.index(min(rates))]
        parts.append(f'<circle class="dot {colour}" cx="{x:.1f}" cy="{y:.1f}" r="5"/>')
        x, y = points[-1]
        parts.append(text(x + 8, y + 5, f"m/n = {bits}", "start", f"name {colour}"))
    svg(f"hashes{language}", words["hashes"], left + width + 100, top + height + 64, parts)


def cuckoo(language, words):
    """x may go to 1 or 5, a to 1 or 3, c to 3 or 6: x takes 1, a moves to 3, c to 6."""
    rows = [
        ({1: "a", 3: "c", 5: "b"}, [("x", 1, True), ("x", 5, False)], None),
        ({1: "x", 3: "c", 5: "b"}, [("a", 3, True)], (1, 3)),
        ({1: "x", 3: "a", 5: "b"}, [("c", 6, True)], (3, 6)),
        ({1: "x", 3: "a", 5: "b", 6: "c"}, [], None),
    ]
    colours = {"a": BLUE, "b": GREY, "c": GREEN, "x": ORANGE}
    left, size, parts = 60, 46, []
    for number, (slots, moving, moved) in enumerate(rows):
        y = 60 + number * 110
        parts.append(text(30, y + 28, f"{number + 1}."))
        for slot in range(8):
            key = slots.get(slot, "")
            parts.append(box(left + slot * size, y, size, key, colour=colours.get(key, INK)))
        for key, slot, takes in moving:
            start = left + (moved[0] if moved else 3) * size + size / 2
            parts.append(text(start, y - 32, key, colour=colours[key], more=' font-weight="600"'))
            parts.append(arrow(start, y - 24, left + slot * size + size / 2, y - 2, colours[key], not takes))
        parts.append(text(left + 8 * size + 20, y + 28, words["cuckoo.steps"][number], "start"))
    svg(f"cuckoo{language}", words["cuckoo"], left + 8 * size + 310, 60 + 4 * 110 - 40, parts)


def chart(path):
    """The chart with its words in Chinese."""

    def translated(found):
        words = found[0]
        for english, chinese in CHART.items():
            words = re.sub(f"(?<=>){english}(?=<)", chinese, words)
        return words

    drawn = re.sub(r">[^<]*</text>", translated, path.read_text())
    left = [words for words in re.findall(r">([^<]*)</text>", drawn)[:2] if words.isascii()]
    assert not left, f"{path.name}: CHART doesn't say how to translate {left}"
    (FOLDER / f"{path.stem}-zh.svg").write_text(drawn)


FOLDER = pathlib.Path(sys.argv[2])
(FOLDER / "learn").mkdir(exist_ok=True)
for language, words in TEXTS.items():
    toy(language, words)
    hashes(language, words)
    cuckoo(language, words)
chart(pathlib.Path(__file__).parents[1] / "readme-speed.svg")
