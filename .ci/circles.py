#!/usr/bin/env python3
"""Fails when modules of a crate import each other in a circle, and names the imports that close it.

Two levels are checked: the top-level modules of a crate, and its files. A file uses another if a path in its code,
or a `use` of its own, leads to an item that the other defines. Paths are followed through re-exports, globs and
imported modules to the file with the definition, so a `mod.rs` that only re-exports a child does not use it.
A file may use what the modules above it define (`super::`): they are one thing in several files, and only circles
between neighbours count. Declaring a module is no use, and neither is importing a module without a path through it.
Tests may look at anything. Methods and macros are not paths: a call of a method is not seen.

    circles.py [--crate NAME]..."""

import argparse
import re
import sys
from collections import deque
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
VISIBILITY = r"(?P<visibility>pub(?:\([^)]*\))?\s+)?"
ITEM = re.compile(
    r"^[ \t]*" + VISIBILITY + r"(?:(?:default|const|async|unsafe|safe|extern(?:\s*\"\s*\")?)\s+)*"
    r"(?:fn|struct|enum|union|trait|type|const|static(?:\s+mut)?)\s+(?P<name>[A-Za-z_]\w*)",
    re.M,
)
MODULE = re.compile(r"^[ \t]*" + VISIBILITY + r"mod\s+(?P<name>\w+)\s*(?P<end>[;{])", re.M)
USE = re.compile(r"^[ \t]*" + VISIBILITY + r"use\s+(?P<tree>[^;]+);", re.M)
PATH = re.compile(r"(?<![\w:.])(?:::)?[A-Za-z_]\w*(?:::[A-Za-z_]\w*)+")


def blank(text):
    return re.sub(r"[^\n]", " ", text)


def block_end(text, start):
    """Behind the brace that closes the one before `start`."""
    depth = 1
    while depth:
        depth += {"{": 1, "}": -1}.get(text[start], 0)
        start += 1
    return start


def code(path):
    """The file without comments, strings and what is compiled for tests only; lines stay where they are."""
    text = path.read_text()
    literal = r'//[^\n]*|/\*.*?\*/|r(#*)".*?"\1|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\''
    text = re.sub(literal, lambda match: blank(match[0]), text, flags=re.S)
    for found in re.finditer(r"#\[cfg\((?:all\()?test\b[^\]]*\)\]", text):
        end = re.compile(r"[;{]").search(text, found.end()).end()
        if text[end - 1] == "{":
            end = block_end(text, end)
        text = text[: found.start()] + blank(text[found.start() : end]) + text[end:]
    return text


def leaves(tree):
    """`a::{b as x, c::*}` as [(["a", "b"], "x"), (["a", "c", "*"], None)]."""
    head, brace, rest = tree.partition("{")
    if not brace:
        path, _, alias = tree.partition(" as ")
        path = [part.strip() for part in path.split("::") if part.strip()]
        if path[-1:] == ["self"] and len(path) > 1:
            path.pop()
        return [(path, alias.strip() or path[-1])]
    head = [part.strip() for part in head.split("::") if part.strip()]
    parts, depth, start = [], 0, 0
    rest = rest[: rest.rindex("}")]
    for i, letter in enumerate(rest + ","):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append(rest[start:i])
            start = i + 1
    found = [leaf for part in parts if part.strip() for leaf in leaves(part)]
    return [(head + path if path != ["self"] else head, head[-1] if path == ["self"] else name) for path, name in found]


class Module:
    """A file of a crate, and the module that it is."""

    def __init__(self, path, name, parent):
        self.path, self.name, self.parent = path, name, parent
        self.text = code(path)
        folder = path.parent if path.stem in ("mod", "lib", "main") else path.with_suffix("")
        self.children, self.items, self.inline = {}, set(), []
        for found in MODULE.finditer(self.text):
            if found["end"] == "{":
                self.items.add(found["name"])
                self.inline.append((found.end(), block_end(self.text, found.end())))
                continue
            places = [folder / f"{found['name']}.rs", folder / found["name"] / "mod.rs"]
            for place in (place for place in places if place.exists()):
                self.children[found["name"]] = Module(place, (*name, found["name"]), self)
        self.items |= {found["name"] for found in ITEM.finditer(self.text)}
        self.uses = []
        body = self.text
        for found in USE.finditer(self.text):
            # An inline module sees what its file does, one step further up.
            depth = sum(start <= found.start() < end for start, end in self.inline)
            for path, alias in leaves(found["tree"]):
                self.uses.append((path[depth:] if path[0] == "super" else path, alias, found))
            body = body[: found.start()] + blank(found[0]) + body[found.end() :]
        self.body = body

    def all(self):
        yield self
        for child in self.children.values():
            yield from child.all()

    def above(self):
        return (self.parent, *self.parent.above()) if self.parent else ()

    def __repr__(self):
        return str(self.path.relative_to(self.root().path.parent))

    def lead(self, path, seen=frozenset()):
        """Where a path from this module leads: a module that it ends at or is defined in, and whether the latter."""
        here = self
        for i, part in enumerate(path):
            if part == "crate":
                here = here.root()
            elif part == "super":
                here = here.parent or here
            elif part == "self":
                continue
            elif part in here.children:
                here = here.children[part]
            elif part in here.items:
                return here, True
            else:
                return here.lead_imported(part, path[i + 1 :], seen)
        return here, False

    def lead_imported(self, part, rest, seen):
        if (self, part) in seen:
            return None
        seen |= {(self, part)}
        for target, alias, _ in self.uses:
            if alias == part and target != [part]:
                return self.lead(target + rest, seen)
        for target, _, _ in self.uses:
            if target[-1] == "*" and (found := self.lead(target[:-1] + [part] + rest, seen)):
                return found
        return None

    def root(self):
        return self.parent.root() if self.parent else self

    def mentions(self, name):
        return re.search(rf"(?<![\w.]){name}\b", self.body)

    def imports(self):
        """The files whose items this one uses: {module: "file:line"}."""
        found = {}

        def note(target, at):
            if target and target[1] and target[0] is not self:
                line = self.text.count("\n", 0, at) + 1
                found.setdefault(target[0], f"{self}:{line}")

        for path, alias, use in self.uses:
            if path[-1] == "*":
                target = self.lead(path[:-1])
                if target and not target[1] and not use["visibility"]:
                    self.note_glob(target[0], note)
            elif not use["visibility"] or self.mentions(alias):
                note(self.lead(path), use.start())
        for path in PATH.finditer(self.body):
            parts = path[0].split("::")
            depth = sum(start <= path.start() < end for start, end in self.inline)
            if parts[0] == "super":
                parts = parts[depth:]
            # A bare name is of this file, or its `use` was noted.
            if parts[0] in ("crate", "self", "super") or parts[0] in self.children or self.is_module(parts[0]):
                note(self.lead(parts), path.start())
        return found

    def is_module(self, name):
        return any(alias == name and (at := self.lead(path)) and not at[1] for path, alias, _ in self.uses)

    def note_glob(self, other, note):
        names = other.items | {alias for _, alias, _ in other.uses if alias != "*"}
        for name in names - self.items:
            if at := self.mentions(name):
                note(other.lead([name]), at.start())


def shortest_circle(imports):
    """Of a graph {node: {node: why}}, or None."""
    best = None
    for start in imports:
        came_from = {start: None}
        queue = deque([start])
        while queue:
            node = queue.popleft()
            if start in imports[node]:
                circle = [start]
                while node is not None:
                    circle.append(node)
                    node = came_from[node]
                if best is None or len(circle) < len(best):
                    best = circle[::-1]
                break
            for other in imports[node]:
                if other not in came_from:
                    came_from[other] = node
                    queue.append(other)
    return best


def print_circles(imports, what):
    """Prints circles, the shortest first, no import twice; how many."""
    count = 0
    imports = {node: dict(others) for node, others in imports.items()}
    while circle := shortest_circle(imports):
        count += 1
        print(f"  circle {count} of {what}:")
        for node, other in zip(circle, circle[1:]):
            print(f"    {node} -> {other}  ({imports[node].pop(other)})")
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--crate", action="append", metavar="NAME", help="only this one, by the name of its folder")
    args = parser.parse_args()
    roots = [r for name in ("lib", "main") for r in sorted(REPOSITORY.glob(f"crates/*/src/{name}.rs"))]
    roots = [r for r in roots if not args.crate or r.parts[-3] in args.crate]
    if not roots:
        sys.exit("no crate found")
    failed = False
    for path in roots:
        files = list(Module(path, (), None).all())
        imports = {file: file.imports() for file in files}
        for file, others in imports.items():
            for above in set(others) & set(file.above()):
                del others[above]
        modules = {file.name[0]: {} for file in files if file.name}
        for file, others in imports.items():
            for other, why in others.items():
                if file.name[:1] != other.name[:1] and file.name and other.name:
                    modules[file.name[0]].setdefault(other.name[0], why)
        print(f"{path.relative_to(REPOSITORY)}: {len(modules)} modules, {len(files)} files")
        failed |= print_circles(modules, "modules") > 0
        failed |= print_circles(imports, "files") > 0
    sys.exit(failed)


if __name__ == "__main__":
    main()
