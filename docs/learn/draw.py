#!/usr/bin/env python3
"""Draws the guide's pictures from what the command says: python3 docs/learn/draw.py TAMIS FOLDER

toy.svg and hashes.svg show what `tamis explain` and `tamis plan --table` print; cuckoo.svg is a sketch.
"""

import json
import math
import pathlib
import subprocess
import sys
import tempfile

BLUE, ORANGE, GREEN, PINK, GREY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#767676"


def tamis(*words, given=None):
    # `explain` ends with 1 if the answer is no.
    return subprocess.run([sys.argv[1], *words], input=given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


def text(x, y, words, anchor="middle", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{words}</text>'


def box(x, y, size, label="", fill="#fff", colour="#333"):
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{size}" height="{size}" fill="{fill}" stroke="#555"/>'
        + text(x + size / 2, y + size / 2 + 5, label, more=f'fill="{colour}"')
    )


def line(x1, y1, x2, y2, colour, more=""):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="2" {more}/>'


def svg(name, title, width, height, parts):
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="system-ui, sans-serif" '
        f'font-size="15" fill="#333">'
    )
    arrow = (
        '<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="context-stroke"/></marker></defs>'
    )
    page = [head, f"<title>{title}</title>", arrow, '<rect width="100%" height="100%" fill="#fff"/>', *parts, "</svg>"]
    (pathlib.Path(sys.argv[2]) / name).write_text("\n".join(page) + "\n")


def toy():
    """Two keys, one that was never added, and one that gets a false yes."""
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/toy.tamis"
        tamis("create", file, "--kind", "bloom", "--bits", "16", "--hashes", "3")
        tamis("add", "-q", file, given="apple\npear\n")
        said = tamis("explain", "--json", file, "apple", "pear", "cherry", "b")
    looks = {key["key"]: key["looks"][0] for key in map(json.loads, said.splitlines())}
    bits = looks["apple"]["all"]
    left, size = 20, 40

    def middle(bit):
        return left + bit * size + size / 2

    parts = []
    for bit, value in enumerate(bits):
        parts.append(box(left + bit * size, 120, size, value, "#dcecf7" if value else "#fff"))
        parts.append(text(middle(bit), 176, bit, more=f'font-size="11" fill="{GREY}"'))
    places = {"apple": (200, 40, BLUE), "pear": (480, 40, GREEN), "cherry": (480, 250, ORANGE), "b": (200, 250, PINK)}
    for key, (x, y, colour) in places.items():
        down = y < 120
        parts.append(text(x, y, key, more=f'font-weight="600" fill="{colour}"'))
        for bit in {bit["at"]: bit for bit in looks[key]["bits"]}.values():
            dashed = "" if bit["value"] else 'stroke-dasharray="5 4"'
            ends = (y + 8, 118) if down else (y - 18, 184)
            parts.append(line(x, ends[0], middle(bit["at"]), ends[1], colour, f'marker-end="url(#end)" {dashed}'))
    svg("toy.svg", "Sixteen bits, and where three hashes send four keys", 2 * left + 16 * size, 270, parts)


def hashes():
    """The rate against k, of the table's rows."""
    rows = {}
    for row in tamis("plan", "--table").splitlines()[3:]:
        bits, _, *rates = row.split()
        rows[int(bits)] = [float(rate) for rate in rates]
    left, top, width, height, most = 70, 30, 560, 300, 16

    def at(k, rate):
        return left + (k - 1) / (most - 1) * width, top - math.log10(rate) / 5 * height

    parts = []
    for decade in range(6):
        _, y = at(1, 10**-decade)
        parts.append(line(left, y, left + width, y, "#e4e4e4"))
        parts.append(text(left - 8, y + 5, ["1", "0.1", "0.01", "0.001", "1e-4", "1e-5"][decade], "end"))
    for k in range(1, most + 1):
        parts.append(text(at(k, 1)[0], top + height + 22, k))
    parts.append(text(left + width / 2, top + height + 46, "k"))
    parts.append(text(left - 8, top - 12, "p", "end"))
    for bits, colour in ((8, BLUE), (10, GREEN), (16, ORANGE), (20, PINK)):
        rates = rows[bits][:most]
        points = [at(k, rate) for k, rate in enumerate(rates, 1)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        x, y = points[rates.index(min(rates))]
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{colour}"/>')
        x, y = points[-1]
        parts.append(text(x + 8, y + 5, f"m/n = {bits}", "start", f'fill="{colour}"'))
    svg("hashes.svg", "The rate against the number of hashes", left + width + 100, top + height + 60, parts)


def cuckoo():
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
            parts.append(box(left + slot * size, y, size, key, "#fff", colours.get(key, "#333")))
        for key, slot, takes in moving:
            start = left + (moved[0] if moved else 3) * size + size / 2
            parts.append(text(start, y - 32, key, more=f'font-weight="600" fill="{colours[key]}"'))
            parts.append(
                line(start, y - 24, left + slot * size + size / 2, y - 2, colours[key],
                     'marker-end="url(#end)"' + ("" if takes else ' stroke-dasharray="5 4"'))
            )
    svg("cuckoo.svg", "A new fingerprint, and two that move", left + 8 * size + 30, 60 + 4 * 110 - 40, parts)


toy()
hashes()
cuckoo()
