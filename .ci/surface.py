#!/usr/bin/env python3
"""Counts what the library's documentation shows: functions, and names at the root. Fails when either is above its bar.

A reader learns what rustdoc shows, so that is counted: the methods of each type and trait, once each, and functions;
not what is hidden, nor what implements a trait of another crate. Run after `cargo doc -p tamis --no-deps`.

    surface.py [--list] [FOLDER]"""

import re
import sys
from pathlib import Path

FUNCTIONS, NAMES = 230, 24
# What a type has by itself stands before what it implements, and what it derefs to or gets from blankets behind.
OWN = re.compile(r'id="implementations-list">(.*?)(?:<h2 id="(?:deref-methods|trait-implementations|synthetic)|$)', re.S)
METHOD = re.compile(r'<section id="(?:ty)?method\.([a-z_0-9]+?)(?:-\d+)?" class="method')


def functions(folder):
    """Every function that is shown, as `module::Type::name`."""
    for page in sorted(folder.rglob("*.html")):
        kind, _, name = page.stem.partition(".")
        place = "::".join((*page.relative_to(folder).parent.parts, name))
        if kind == "fn":
            yield place
        elif kind in ("struct", "enum", "union"):
            own = OWN.search(page.read_text())
            for method in METHOD.findall(own[1]) if own else ():
                yield f"{place}::{method}"
        elif kind == "trait":
            for method in METHOD.findall(page.read_text()):
                yield f"{place}::{method}"


def names(folder):
    """The items at the root, modules not counted."""
    kinds = ("struct", "enum", "trait", "fn", "type", "constant", "macro")
    pages = (page.stem.partition(".") for page in folder.glob("*.html"))
    return sorted(name for kind, _, name in pages if kind in kinds)


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--list"]
    folder = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent / "target/doc/tamis"
    if not (folder / "index.html").exists():
        sys.exit(f"{folder} has no documentation: run `cargo doc -p tamis --no-deps` first")
    shown, root = list(functions(folder)), names(folder)
    if "--list" in sys.argv:
        print(*shown, *root, sep="\n")
    print(f"{len(shown)} functions are shown, at most {FUNCTIONS}; {len(root)} names at the root, at most {NAMES}")
    sys.exit(len(shown) > FUNCTIONS or len(root) > NAMES)


if __name__ == "__main__":
    main()
