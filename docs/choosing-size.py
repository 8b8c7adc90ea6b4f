#!/usr/bin/env python3
"""Draws choosing-size.svg from what `tamis plan` says: python3 docs/choosing-size.py TAMIS > docs/choosing-size.svg"""

import json
import math
import subprocess
import sys

KINDS = {  # colours that also the colour-blind tell apart (Okabe and Ito); of a light page and of a dark one
    "blocked": ("#0072b2", "#4ba3e3"),
    "bloom": ("#56b4e9", "#9ad4f5"),
    "cuckoo": ("#d55e00", "#f0883e"),
    "fuse": ("#009e73", "#2ec798"),
    "ribbon": ("#cc79a7", "#e5a3c8"),
}
INK, GRID, GROUND = ("#333", "#e6edf3"), ("#e4e4e4", "#30363d"), ("#fff", "#0d1117")
LEFT, TOP, WIDTH, HEIGHT = 76, 46, 600, 380
BITS, DECADES = 44, (1, 8)  # up and across
KEYS = "10M"


def x(rate):
    return LEFT + (-math.log10(rate) - DECADES[0]) / (DECADES[1] - DECADES[0]) * WIDTH


def y(bits):
    return TOP + HEIGHT - bits / BITS * HEIGHT


def style(page):
    """The colours of a page: 0 is light, 1 dark."""
    rules = [
        f".ground {{ fill: {GROUND[page]} }}",
        f"text {{ fill: {INK[page]} }}",
        f".grid {{ stroke: {GRID[page]} }}",
        f"polyline.bound {{ stroke: {INK[page]} }}",
    ]
    for kind, colours in KINDS.items():
        rules += [f"polyline.{kind} {{ stroke: {colours[page]} }}", f"text.{kind} {{ fill: {colours[page]} }}"]
    return "\n".join(rules)


def line(points, style):
    path = " ".join(f"{x(rate):.1f},{y(bits):.1f}" for rate, bits in points)
    return f'<polyline points="{path}" fill="none" {style}/>'


def text(at_x, at_y, words, anchor="middle", more=""):
    return f'<text x="{at_x:.1f}" y="{at_y:.1f}" text-anchor="{anchor}" {more}>{words}</text>'


curves = {kind: [] for kind in KINDS}
rates = [10 ** -(d / 10) for d in range(10 * DECADES[0], 10 * DECADES[1] + 1)]
# Fingerprints have whole bits: their size jumps at powers of two.
jumps = [2.0**-bits for bits in range(4, 27)]
for rate in sorted(rates + jumps + [0.99999 * jump for jump in jumps], reverse=True):
    told = subprocess.check_output([sys.argv[1], "plan", "--capacity", KEYS, "-p", repr(rate), "--json"])
    for plan in json.loads(told):
        if plan["kind"] in curves:
            curves[plan["kind"]].append((rate, plan["bits_per_key"]))
curves["log2(1/p)"] = [(rate, -math.log2(rate)) for rate in (10 ** -DECADES[0], 10 ** -DECADES[1])]

out = [
    f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 100} {TOP + HEIGHT + 54}" '
    'font-family="system-ui, sans-serif" font-size="13">',
    "<title>Bits per key by rate of false yes, for each kind of filter</title>",
    f"<style>\n{style(0)}\n@media (prefers-color-scheme: dark) {{\n{style(1)}\n}}\n</style>",
    '<rect width="100%" height="100%" class="ground"/>',
    text(LEFT, 24, f"Bits per key, {KEYS} keys", "start", 'font-size="16" font-weight="600"'),
]
for bits in range(0, BITS + 1, 4):
    out.append(line([(10 ** -DECADES[0], bits), (10 ** -DECADES[1], bits)], 'class="grid"'))
    out.append(text(LEFT - 8, y(bits) + 4, bits, "end"))
for decade in range(DECADES[0], DECADES[1] + 1):
    out.append(line([(10**-decade, 0), (10**-decade, BITS)], 'class="grid"'))
    label = {1: "10 %", 2: "1 %", 3: "0.1 %"}.get(decade, f"1e-{decade}")
    out.append(text(x(10**-decade), TOP + HEIGHT + 18, label))
out.append(text(LEFT + WIDTH / 2, TOP + HEIGHT + 42, "rate of false “yes”"))
middle = TOP + HEIGHT / 2
out.append(text(22, middle, "bits per key", more=f'transform="rotate(-90 22 {middle:.0f})"'))
low = 0.0  # labels must not overlap: from the lowest curve up
for kind, points in sorted(curves.items(), key=lambda curve: curve[1][-1][1]):
    name = kind if kind in KINDS else "bound"
    dashes = "" if kind in KINDS else ' stroke-dasharray="5 4"'
    out.append(line(points, f'class="{name}" stroke-width="2"{dashes}'))
    low = max(points[-1][1], low + 1.7)
    out.append(text(LEFT + WIDTH + 8, y(low) + 4, kind, "start", f'class="{name}" font-weight="600"'))
out.append("</svg>")
print("\n".join(out))
