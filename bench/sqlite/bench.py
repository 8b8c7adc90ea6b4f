#!/usr/bin/env python3
"""Nanoseconds a row of queries over a million rows: which of their keys are among ten million others? Asked of a filter
(tamis_check), of an indexed table (IN), and of both, which gives the table's exact answer.

    bench.py EXTENSION [KEYS]       prints NAME, tab, nanoseconds

Keys are texts of 16 to 24 bytes in no order, as ids and hashes are. The Python must be able to load extensions: Debian's is."""

import os
import pathlib
import sqlite3
import sys
import tempfile
import time

EXTENSION = pathlib.Path(sys.argv[1]).resolve()
KEYS = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000_000
ROWS = KEYS // 10
TRIES = 3
# Of number i; the product puts them in another order.
KEY = "printf('%08x%08x', i * 2654435761 & 4294967295, i) || substr('........', 1, i % 9)"
SERIES = "WITH RECURSIVE s(i) AS (SELECT {0} UNION ALL SELECT i + 1 FROM s LIMIT {1})"


def connect(path):
    db = sqlite3.connect(path, isolation_level=None)
    if not hasattr(db, "enable_load_extension"):
        sys.exit(f"{sys.executable} can't load extensions of SQLite; Debian's /usr/bin/python3 can")
    db.enable_load_extension(True)
    db.execute("SELECT load_extension(?, 'sqlite3_tamis_init')", (str(EXTENSION),))
    return db


def series(start, count):
    return SERIES.format(start, count)


def make(path, filter):
    db = connect(path)
    db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -500000")
    db.execute("CREATE TABLE known (key TEXT PRIMARY KEY) WITHOUT ROWID")
    db.execute(f"INSERT INTO known {series(0, KEYS)} SELECT {KEY} FROM s ORDER BY 1")
    db.execute("CREATE TABLE indexed (key TEXT)")
    # In the order in which rows come, which is not that of their keys.
    db.execute(f"INSERT INTO indexed {series(0, KEYS)} SELECT {KEY} FROM s")
    db.execute("CREATE UNIQUE INDEX by_key ON indexed (key)")
    # Of the rows, so many in a hundred have a key that is known: taken from all over.
    for present in (50, 1):
        db.execute(f"CREATE TABLE rows{present} (key TEXT)")
        number = f"CASE WHEN i % 100 < {present} THEN i * 7919 % {KEYS} ELSE {KEYS} + i END"
        db.execute(f"INSERT INTO rows{present} {series(0, ROWS)}, n(i) AS (SELECT {number} FROM s) SELECT {KEY} FROM n")
    pathlib.Path(filter).write_bytes(db.execute("SELECT tamis_filter(key, ?, 0.01) FROM known", (KEYS,)).fetchone()[0])
    db.close()


def measure(db, name, sql, *values):
    """Prints the best of some tries, in time of the processor, and gives the answer."""
    best = float("inf")
    for _ in range(TRIES):
        start = time.process_time()
        ((answer,),) = db.execute(sql, values).fetchall()
        best = min(best, time.process_time() - start)
    print(f"{name}\t{best / ROWS * 1e9:.1f}", flush=True)
    return answer


def main():
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        path, filter = f"{folder}/bench.db", f"{folder}/known.tamis"
        make(path, filter)
        for cache, setting in ("", -2_000), (" cached", -2_000_000):
            db = connect(path)
            # SQLite's own default, and one that holds the whole database.
            db.execute(f"PRAGMA cache_size = {setting}")
            for present in (50, 1):
                rows, tail = f"rows{present}", f" {present} %{cache}"
                measure(db, "sqlite scan" + tail, f"SELECT count(*) FROM {rows} WHERE length(key) > 0")
                maybe = measure(db, "sqlite tamis_check" + tail,
                                f"SELECT count(*) FROM {rows} WHERE tamis_check(?, key)", filter)
                exact = measure(db, "sqlite IN, without rowid" + tail,
                                f"SELECT count(*) FROM {rows} WHERE key IN (SELECT key FROM known)")
                other = measure(db, "sqlite IN, index" + tail,
                                f"SELECT count(*) FROM {rows} WHERE key IN (SELECT key FROM indexed)")
                both = measure(db, "sqlite tamis_check and IN" + tail,
                               f"SELECT count(*) FROM {rows} WHERE tamis_check(?, key) AND key IN (SELECT key FROM known)",
                               filter)
                assert exact == other == both == ROWS * present // 100, (exact, other, both)
                # Every known key, and of the others one in a hundred at most.
                others = (ROWS - exact) * 0.01
                assert exact <= maybe <= exact + others + 5 * others**0.5, (exact, maybe)
            db.close()


main()
