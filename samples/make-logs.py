#!/usr/bin/env python3
"""Makes a folder of web server logs to try `tamis index` on: `make-logs.py logs/`.

The same logs every time: 200 files, every tenth gzipped, each line with a request id of its own.
"""

import gzip
import pathlib
import random
import sys

FILES, LINES = 200, 300


def lines(file, rng):
    for n in range(LINES):
        second = file * 360 + n
        at = f"2026-11-15T{second // 3600 % 24:02}:{second // 60 % 60:02}:{second % 60:02}.{rng.randrange(1000):03}Z"
        address = f"10.0.{rng.randrange(256)}.{rng.randrange(256)}:{rng.randrange(1024, 65536)}"
        page = rng.choice(["cart", "item", "search", "login"])
        status = rng.choices([200, 302, 404, 500], [90, 5, 4, 1])[0]
        level = "ERROR" if status == 500 else "INFO"
        yield f"{at} {level} [{rng.randrange(1 << 64):016x}] {address} GET /{page}/{rng.randrange(10_000)} {status}\n"


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "logs")
    folder.mkdir(parents=True)
    for file in range(FILES):
        text = "".join(lines(file, random.Random(file))).encode()
        if file % 10 == 7:
            packed = gzip.compress(text, mtime=0)
            (folder / f"web-{file:03}.log.gz").write_bytes(packed)
        else:
            (folder / f"web-{file:03}.log").write_bytes(text)


main()
