#!/usr/bin/env python3
"""Fails when top-level modules of a crate import each other in a circle, and names the imports that close it.

Reads the paths that start at `crate::`, or get there by `super::`, in every file of every crate. Names that the
crate's root re-exports count for the module that they come from; tests may look at anything."""

import re
import sys
from collections import deque
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent


def code(path):
    """The file without comments, strings and what is compiled for tests only; lines stay where they are."""

    def blank(match):
        return re.sub(r"[^\n]", " ", match[0])

    text = path.read_text()
    text = re.sub(r'//[^\n]*|/\*.*?\*/|r(#*)".*?"\1|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'', blank, text, flags=re.S)
    for found in re.finditer(r"#\[cfg\(test\)\]", text):
        end = re.compile(r"[;{]").search(text, found.end()).end()
        depth = int(text[end - 1] == "{")
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        text = text[: found.start()] + re.sub(r"[^\n]", " ", text[found.start() : end]) + text[end:]
    return text


def leaves(tree):
    """`a::{b, c::d}` as [["a", "b"], ["a", "c", "d"]]."""
    head, brace, rest = tree.partition("{")
    head = [part.split(" as ")[0].strip() for part in head.split("::") if part.strip()]
    if not brace:
        return [head]
    parts, depth, start = [], 0, 0
    rest = rest[: rest.rindex("}")]
    for i, letter in enumerate(rest + ","):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append(rest[start:i])
            start = i + 1
    return [head + leaf for part in parts if part.strip() for leaf in leaves(part)]


def tree_at(text, start):
    """The path, with its braces, that begins here."""
    end = re.compile(r"(?:\w+(?:::)?)*").match(text, start).end()
    if text[end : end + 1] == "{":
        depth = 1
        end += 1
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
    return text[start:end]


def files_of(source, module):
    files = [source / f"{module}.rs", *(source / module).rglob("*.rs")]
    files = [file for file in files if file.exists()]
    declared_for_tests = set()
    for file in files:
        folder = file.parent if file.stem == "mod" else file.with_suffix("")
        for name in re.findall(r"#\[cfg\(test\)\]\s*(?:pub(?:\(\w+\))? )?mod (\w+);", file.read_text()):
            declared_for_tests.add(folder / name)
    return [f for f in files if not {f.with_suffix(""), *f.parents} & declared_for_tests]


def imports_of(source, root):
    """What each top-level module imports: {module: {other: "file:line"}}."""
    text = code(root)
    modules = re.findall(r"^\s*(?:pub(?:\([^)]*\))? )?mod (\w+);", text, flags=re.M)
    home = {module: module for module in modules}
    for found in re.finditer(r"\buse ([^;]+);", text):
        for leaf in leaves(re.sub(r"^crate::", "", found[1])):
            if leaf[0] in modules:
                home.setdefault(leaf[-1], leaf[0])
        for name, alias in re.findall(r"(\w+) as (\w+)", found[1]):
            if name in home:
                home[alias] = home[name]
    imports = {module: {} for module in modules}
    for module in modules:
        for file in files_of(source, module):
            depth = len(file.relative_to(source).with_suffix("").parts) - (file.stem == "mod")
            text = code(file)
            to_root = r"\b(?:crate|super(?:::super){%d})::" % (depth - 1)
            for found in re.finditer(to_root, text):
                for leaf in leaves(tree_at(text, found.end())):
                    other = home.get(leaf[0]) if leaf else None
                    if other not in (None, module):
                        line = text.count("\n", 0, found.start()) + 1
                        imports[module].setdefault(other, f"{file.relative_to(REPOSITORY)}:{line}")
    return imports


def shortest_circle(imports, start):
    came_from = {start: None}
    queue = deque([start])
    while queue:
        module = queue.popleft()
        for other in imports[module]:
            if other == start:
                circle = [start]
                while module is not None:
                    circle.append(module)
                    module = came_from[module]
                return circle[::-1]
            if other not in came_from:
                came_from[other] = module
                queue.append(other)
    return None


def main():
    roots = [r for name in ("lib", "main") for r in sorted(REPOSITORY.glob(f"crates/*/src/{name}.rs"))]
    if not roots:
        sys.exit("no crate found")
    failed = False
    for root in roots:
        crate = root.relative_to(REPOSITORY).parts[1]
        imports = imports_of(root.parent, root)
        circles = [c for c in (shortest_circle(imports, module) for module in imports) if c]
        if not circles:
            print(f"{crate}: {len(imports)} modules, no circle")
            continue
        failed = True
        print(f"{crate}: {len(circles)} of {len(imports)} modules import each other in a circle; the shortest:")
        circle = min(circles, key=len)
        for module, other in zip(circle, circle[1:]):
            print(f"  {module} -> {other}  ({imports[module][other]})")
    sys.exit(failed)


if __name__ == "__main__":
    main()
