#!/usr/bin/env python3
"""Makes a small corpus to try `tamis clean` on: `make-corpus.py corpus/ tests.jsonl`.

The same every time: 600 records in three packed files, among them copies, near-copies and footers that pages share, and
a test set of 20 questions, of which some are in the corpus.
"""

import gzip
import json
import pathlib
import random
import sys

FILES, RECORDS, QUESTIONS = 3, 200, 20
FOOTERS = [
    "Subscribe to our newsletter and never miss a recipe again.",
    "All rights reserved. No part of this page may be copied without asking first.",
    "Share this page with your friends, or print it for the kitchen.",
]
STARTS = "The baker|Every miller|A good cook|The old mill|Fresh flour|My grandmother|The sieve|Nobody".split("|")
VERBS = "presses|weighs|remembers|sells|loses|turns|warms|carries".split("|")
THINGS = "flour|sugar|a wooden bowl|rye|the second batch|butter|salt|a tamis|yeast|eleven loaves|dough|the oven".split("|")
ENDS = "before sunrise|in a cold kitchen|without a word|for the whole village|twice a week|by hand|as the book says".split("|")


def sentence(rng):
    return f"{rng.choice(STARTS)} {rng.choice(VERBS)} {rng.choice(THINGS)} and {rng.choice(THINGS)} {rng.choice(ENDS)}."


def text(rng):
    paragraphs = [" ".join(sentence(rng) for _ in range(rng.randint(2, 5))) for _ in range(rng.randint(1, 4))]
    if rng.random() < 0.4:
        paragraphs.append(rng.choice(FOOTERS))
    return "\n\n".join(paragraphs)


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "corpus")
    tests = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "tests.jsonl")
    folder.mkdir(parents=True)
    rng = random.Random(1)
    questions = [" ".join(sentence(rng) for _ in range(3)) for _ in range(QUESTIONS)]
    tests.write_text("".join(json.dumps({"id": n, "text": question}) + "\n" for n, question in enumerate(questions)))
    texts = []
    for _ in range(FILES * RECORDS):
        chance = rng.random()
        if texts and chance < 0.08:  # a copy
            texts.append(rng.choice(texts))
        elif texts and chance < 0.14:  # a copy in which one word differs
            words = rng.choice(texts).split(" ")
            words[rng.randrange(len(words))] = "indeed"
            texts.append(" ".join(words))
        elif chance < 0.16:  # a question of the tests
            texts.append(rng.choice(questions))
        else:
            texts.append(text(rng))
    for file in range(FILES):
        part = range(file * RECORDS, (file + 1) * RECORDS)
        records = "".join(json.dumps({"id": f"page-{n}", "text": texts[n]}) + "\n" for n in part)
        # Without a time, the same text packs to the same bytes.
        (folder / f"{file + 1}.jsonl.gz").write_bytes(gzip.compress(records.encode(), mtime=0))


main()
