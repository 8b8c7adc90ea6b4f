"""`tamis` beside its Python peers: 1 M str URLs, or ints, at p = 0.01.

    python bench/python/bench.py [--keys N] [--rounds N] [--threads N] [--json]

Needs a virtual environment with this package, abloom, rbloom and pyarrow.
Within a round all peers take turns; what is shown is the median over the
rounds of each round's ratio, so that a busy moment meets all of them. The
clock is the thread's processor time (for more than one thread, the wall's).

Every pass gets strings of its own, as a program that reads them does: a str
remembers its hash() from its first use on, and rbloom is built on hash().
`--warm` uses one list of strings for all passes instead.
"""

import argparse
import time

import abloom
import pyarrow
import rbloom
import results

import tamis

P = 0.01


def urls_of(n):
    """N different URLs as one text, a line each."""
    return "\n".join(
        f"https://www.example{i % 977}.org/section/{i * 7919 % 1000003}/page-{i}.html?ref=abc"
        for i in range(n)
    )


def add_loop(filter, keys):
    add = filter.add
    for key in keys:
        add(key)


def in_loop(filter, keys):
    for key in keys:
        key in filter


def measured(clock, work, *args):
    start = clock()
    work(*args)
    return clock() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2, help="for the passes that use several")
    parser.add_argument("--warm", action="store_true", help="one list of strings for all passes")
    parser.add_argument("--json", action="store_true", help="write bench/results/python.json too")
    args = parser.parse_args()
    n = args.keys
    text = urls_of(n)
    shared = text.split("\n")
    keys = (lambda: shared) if args.warm else (lambda: text.split("\n"))
    column = pyarrow.array(shared)
    numbers = [i * 1_000_003 for i in range(n)]
    short = "\n".join(f"key-{i:016}" for i in range(n))
    kinds = {
        "short str": lambda: short.split("\n"),
        "bytes": lambda: text.encode().split(b"\n"),
        "int": lambda: [i * 1_000_003 for i in range(n)],
    }

    makers = {
        "tamis": lambda: tamis.Filter(n, P),
        "abloom": lambda: abloom.BloomFilter(n, P, serializable=True),
        "rbloom": lambda: rbloom.Bloom(n, P),
    }
    cpu, wall = time.thread_time, time.perf_counter
    times = {}

    def record(what, who, seconds):
        times.setdefault(what, {}).setdefault(who, []).append(seconds)

    for _ in range(args.rounds):
        filters = {}
        for who, make in makers.items():
            filters[who] = make()
            record("add, loop", who, measured(cpu, add_loop, filters[who], keys()))
        for who, filter in filters.items():
            record("in, loop", who, measured(cpu, in_loop, filter, keys()))
        for name, made in kinds.items():
            for who, make in makers.items():
                filter = make()
                record(f"add, loop of {name}", who, measured(cpu, add_loop, filter, made()))
                record(f"in, loop of {name}", who, measured(cpu, in_loop, filter, made()))
        for who, make in makers.items():
            seconds = measured(cpu, make().update, keys())
            record("update, list", who, seconds)
            if who != "tamis":
                others = ("add many, list", "contains many, list", "update, Arrow", "add many, Arrow",
                          "contains many, Arrow")
                for what in others:
                    record(what, who, seconds)  # their one bulk call
        for who, make in makers.items():
            record("update, list of int", who, measured(cpu, make().update, numbers))
        seen = makers["tamis"]()
        record("update, Arrow", "tamis", measured(cpu, seen.update, column))
        record("add many, list", "tamis", measured(cpu, makers["tamis"]().add_many, keys()))
        record("contains many, list", "tamis", measured(cpu, seen.contains_many, keys()))
        record("add many, Arrow", "tamis", measured(cpu, makers["tamis"]().add_many, column))
        record("contains many, Arrow", "tamis", measured(cpu, seen.contains_many, column))
        # By the wall, since several threads work.
        threads = args.threads
        what = f"add many, Arrow, {threads} threads (wall)"
        fresh = makers["tamis"]()
        record(what, "tamis", measured(wall, lambda: fresh.add_many(column, threads=threads)))
        record(what, "abloom", measured(wall, makers["abloom"]().update, keys()))
        what = f"contains many, Arrow, {threads} threads (wall)"
        record(what, "tamis", measured(wall, lambda: seen.contains_many(column, threads=threads)))
        record(what, "abloom", measured(wall, makers["abloom"]().update, keys()))
        assert all(seen.contains_many(shared)) and len(seen) > 0.99 * n

    rows = []
    print(f"{n:,} keys, {args.rounds} rounds; nanoseconds a key, and how many times Tamis's time")
    for what, by in times.items():
        peers, cells = [who for who in makers if who in by], []
        row = results.row(what, [by[who] for who in peers], n)
        for who, ns, ratio, (low, high) in zip(peers, *row["time"].values()):
            cells.append(f"{who} {ns:6.1f} ns {ratio:5.2f} x ({low:.2f}-{high:.2f})")
        print(f"{what:<44}", "   ".join(cells))
        rows.append(row)
    if args.json:
        results.save("python", f"{n / 1e6:g} M URLs from Python, at a rate of {P}",
                     f"target/venv-bench/bin/python bench/python/bench.py --rounds {args.rounds} --json",
                     list(makers), rows)


if __name__ == "__main__":
    main()
