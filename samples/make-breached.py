#!/usr/bin/env python3
"""Makes a folder of breached passwords in the form in which such lists are published: `make-breached.py breached/`.

Each file is named after the first five digits of SHA-1 hashes, and has a line for each hash with them: the other 35
digits, and how often the password was seen. The same every time: `password1` to `password5000`, and a few that are worse.
"""

import collections
import hashlib
import pathlib
import sys


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "breached")
    folder.mkdir(parents=True)
    passwords = ["123456", "qwerty", "letmein", *(f"password{n}" for n in range(1, 5001))]
    files = collections.defaultdict(list)
    for seen, password in enumerate(reversed(passwords), 1):
        digest = hashlib.sha1(password.encode()).hexdigest().upper()
        files[digest[:5]].append(f"{digest[5:]}:{seen}\r\n")
    for prefix, lines in files.items():
        (folder / f"{prefix}.txt").write_bytes("".join(sorted(lines)).encode())


main()
