#!/usr/bin/env python3
"""Makes customers.bloom: the addresses of customers.txt in a filter of the original pybloomfiltermmap3 (0.6.3), which must be
installed in place of Tamis's `pybloomfilter`. The seeds of its hashes are fixed, so the file is always the same."""
import pathlib

import pybloomfilter

here = pathlib.Path(__file__).parent
path = here / "customers.bloom"
path.unlink(missing_ok=True)
customers = pybloomfilter.BloomFilter(1000, 0.001, str(path), perm=0o644, hash_seeds=[3 ** n for n in range(1, 10)])
customers.update((here / "customers.txt").read_text().splitlines())
customers.close()
