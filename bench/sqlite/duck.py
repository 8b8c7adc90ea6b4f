#!/usr/bin/env python3
"""Nanoseconds a row of DuckDB's queries over a million rows: which of their keys are among ten million others? Asked of a
filter, through a Python function that gets whole columns, and of a table, by a join.

    duck.py [KEYS]       prints NAME, tab, nanoseconds; needs duckdb, pyarrow and tamis"""

import sys
import time

import duckdb
import tamis

KEYS = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
ROWS = KEYS // 10
TRIES = 3
KEY = "printf('%08x%08x', (i * 2654435761) & 4294967295, i) || substr('........', 1, (i % 9)::INT)"


def main():
    db = duckdb.connect()
    db.execute(f"CREATE TABLE known AS SELECT {KEY} AS key FROM range({KEYS}) t(i)")
    seen = tamis.Filter(n=KEYS, p=0.01)
    for batch in db.sql("SELECT key FROM known").to_arrow_reader(1_000_000):
        seen.update(batch.column("key"))
    db.create_function("seen", lambda keys: seen.contains_many(keys), ["VARCHAR"], "BOOLEAN", type="arrow")
    for present in (50, 1):
        number = f"CASE WHEN i % 100 < {present} THEN i * 7919 % {KEYS} ELSE {KEYS} + i END"
        db.execute(f"CREATE OR REPLACE TABLE rows AS WITH n(i) AS (SELECT {number} FROM range({ROWS}) t(i)) SELECT {KEY} AS key FROM n")
        exact = ROWS * present // 100
        others = (ROWS - exact) * 0.01
        for name, sql, most in [
            ("duckdb filter", "SELECT count(*) FROM rows WHERE seen(key)", exact + others + 5 * others**0.5),
            ("duckdb join", "SELECT count(*) FROM rows SEMI JOIN known USING (key)", exact),
            ("duckdb filter and join", "SELECT count(*) FROM (SELECT key FROM rows WHERE seen(key)) SEMI JOIN known USING (key)", exact),
        ]:
            best = float("inf")
            for _ in range(TRIES):
                start = time.perf_counter()
                answer = db.execute(sql).fetchone()[0]
                best = min(best, time.perf_counter() - start)
            assert exact <= answer <= most, (name, answer)
            print(f"{name} {present} %\t{best / ROWS * 1e9:.1f}", flush=True)


main()
