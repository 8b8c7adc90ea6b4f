#!/usr/bin/env python3
"""Prints the licences of everything that is compiled into the command, or into the package that is named: their texts ask
to come along with it.

The same text is printed once, below the names of all packages that have it."""

import json
import pathlib
import re
import subprocess
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = sys.argv[1] if len(sys.argv) > 1 else "tamis-cli"
LICENCE = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicense)", re.IGNORECASE)


def cargo(*arguments):
    return subprocess.run(["cargo", *arguments, "--locked"], cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout


compiled = set(cargo("tree", "-p", PACKAGE, "-e", "normal", "--prefix", "none", "-f", "{p}").splitlines())
compiled = {tuple(line.split()[:2]) for line in compiled if str(REPOSITORY) not in line}
texts = {}
for package in json.loads(cargo("metadata", "--format-version", "1"))["packages"]:
    name = package["name"], "v" + package["version"]
    if name not in compiled:
        continue
    folder = pathlib.Path(package["manifest_path"]).parent
    files = sorted(file for file in folder.iterdir() if file.is_file() and LICENCE.match(file.name))
    # C libraries have their own.
    files += sorted(file for file in folder.glob("*/*") if file.is_file() and LICENCE.match(file.name))
    found = [file.read_text(errors="replace").strip() for file in files]
    for text in found or [f"(no text of its own: {package['license']})"]:
        names = texts.setdefault(text, [])
        title = f"{name[0]} {name[1]} ({package['license']})"
        if title not in names:
            names.append(title)
for text, names in sorted(texts.items(), key=lambda item: item[1]):
    print("\n".join(names), "", text, "", "-" * 80, "", sep="\n")
