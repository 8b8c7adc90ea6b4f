#!/usr/bin/env python3
"""Python's side of `bench -- formats`: formats.py FILTER PRESENT ABSENT, whose keys are lines.

After each line of the standard input, asks all keys by poppy's package, one by one as it takes them, and by ours, and
prints the nanoseconds that a key took and how many were found: poppy's and ours for present keys, then for absent ones."""

import sys
import time

import poppy

import tamis


def timed(work):
    start = time.thread_time_ns()
    found = work()
    return time.thread_time_ns() - start, found


def main():
    path, *lists = sys.argv[1:]
    lists = [open(keys).read().split("\n")[:-1] for keys in lists]
    theirs, ours = poppy.load(path), tamis.open_foreign(path, keys="utf8")

    def one_by_one(keys):
        found, ask = 0, theirs.contains_str
        for key in keys:
            found += ask(key)
        return found

    for _ in sys.stdin:
        for keys in lists:
            for ask in [lambda: one_by_one(keys), lambda: ours.contains_many(keys).count(True)]:
                taken, found = timed(ask)
                print(taken / len(keys), found, end=" ")
        print(flush=True)


main()
