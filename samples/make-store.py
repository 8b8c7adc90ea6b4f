#!/usr/bin/env python3
"""Writes the files of a small LSM store into a folder: what was in memory each time it was full, sorted by row.

make-store.py FOLDER: 20 files of 4,000 cells, `row,qualifier,value`. A row is one of 20,000 users, a qualifier one of four.
Always the same cells."""
import pathlib
import random
import sys

folder = pathlib.Path(sys.argv[1])
folder.mkdir()
chance = random.Random(43)
for number in range(20):
    cells = {}
    while len(cells) < 4_000:
        row = f"user-{chance.randrange(20_000):05}"
        qualifier = chance.choice(["name", "mail", "cart", "seen", "seen", "seen"])
        cells[row, qualifier] = f"{chance.getrandbits(32):08x}"
    lines = [f"{row},{qualifier},{value}\n" for (row, qualifier), value in sorted(cells.items())]
    (folder / f"sf{number:02}.csv").write_text("row,qualifier,value\n" + "".join(lines))
