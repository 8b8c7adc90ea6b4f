#!/usr/bin/env python3
"""Our pybloomfilter beside pybloomfiltermmap3: 1 M str URLs, p = 0.01, in memory and on file.

    pip install ./crates/tamis-python
    pip install --target PEER --no-deps pybloomfiltermmap3==0.6.3
    python bench/python/pybloomfilter.py PEER

Both do the same work in this process, in turns of 50,000 keys, so that whatever else the machine does meets both. The
clock is the thread's processor time; figures are medians of the rounds.
"""
import argparse
import importlib.util
import pathlib
import random
import sys
import tempfile
import time

import results

# This script has the name of the module it measures.
sys.path.pop(0)
import pybloomfilter as ours  # noqa: E402

KEYS, TURN, RATE, SEEDS = 1_000_000, 50_000, 0.01, [11, 22, 33, 44, 55, 66]


def peer_in(folder):
    """The other module of the same name."""
    (path,) = pathlib.Path(folder).glob("pybloomfilter*.so")
    spec = importlib.util.spec_from_file_location("pybloomfilter", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def urls(n, seed):
    chance = random.Random(seed)
    sites = ["example.com", "shop.example.com", "blog.example.org", "www.bakery.test", "static.recipes.example"]
    sections = ["articles", "products", "category", "users", "archive", "wiki", "images"]
    return [
        f"https://{chance.choice(sites)}/{chance.choice(sections)}/{chance.getrandbits(64):016x}?page={i}"
        for i in range(n)
    ]


def adds(bf, keys):
    add = bf.add
    for key in keys:
        add(key)


def asks(bf, keys):
    found = 0
    for key in keys:
        if key in bf:
            found += 1
    return found


def timed(work, *arguments):
    start = time.thread_time()
    result = work(*arguments)
    return time.thread_time() - start, result


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("peer", help="the folder that pybloomfiltermmap3 was installed to")
    arguments.add_argument("--rounds", type=int, default=7)
    arguments.add_argument("--json", action="store_true", help="write bench/results/pybloomfilter.json too")
    arguments = arguments.parse_args()
    modules = {"tamis": ours, "pybloomfiltermmap3": peer_in(arguments.peer)}
    present, absent = urls(KEYS, 1), urls(KEYS, 2)
    rounds = {}

    with tempfile.TemporaryDirectory() as folder:
        for turn in range(arguments.rounds):
            for place in ("memory", "file"):
                names = {who: f"{folder}/{who}-{turn}.bloom" if place == "file" else None for who in modules}
                filters = {
                    who: module.BloomFilter(KEYS, RATE, names[who], hash_seeds=SEEDS)
                    for who, module in modules.items()
                }
                for what, work, keys in (
                    ("add", adds, present),
                    ("in, present", asks, present),
                    ("in, absent", asks, absent),
                ):
                    seconds = dict.fromkeys(filters, 0.0)
                    for start in range(0, KEYS, TURN):
                        some = keys[start : start + TURN]
                        for who, bf in filters.items():
                            took, found = timed(work, bf, some)
                            seconds[who] += took
                            assert what != "in, present" or found == TURN, f"{who} lost keys"
                    rounds.setdefault((place, what), []).append(seconds)
                for bf in filters.values():
                    bf.close()

    rows = []
    print(f"{'times of ours':<24}{'ours':>8}{'peer':>8}{'ns a key':>12}")
    for (place, what), seconds in rounds.items():
        row = results.row(what, [[s[who] for s in seconds] for who in modules], KEYS, place)
        rows.append(row)
        ns, ratio = row["time"]["ns"], row["time"]["ratio"]
        print(f"{place + ': ' + what:<24}" + "".join(f"{r:>6.2f} ×" for r in ratio) + "".join(f"{n:>8.0f}" for n in ns))
    if arguments.json:
        results.save("pybloomfilter", "1 M URLs one by one from Python, at a rate of 0.01",
                     f"python bench/python/pybloomfilter.py PEER --rounds {arguments.rounds} --json",
                     ["tamis's pybloomfilter", "pybloomfiltermmap3"], rows)


if __name__ == "__main__":
    main()
