#!/usr/bin/env python3
"""Whether all packages have one version, that of [workspace.package] in Cargo.toml; --set VERSION writes it everywhere.

Prints the version. A file that names a version this script doesn't know of is found by `FORGOTTEN`."""

import pathlib
import re
import subprocess
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
NUMBER = r"(\d+\.\d+\.\d+(?:-[0-9A-Za-z.]+)?)"
# The file, and what stands around its version. Each is there as often as it says.
PLACES = [
    ("Cargo.toml", rf'(?m)^\[workspace\.package\]\nversion = "{NUMBER}"', 1),
    ("Cargo.toml", rf'(?m)^tamis[a-z-]* = {{ path = "crates/[a-z-]*", version = "{NUMBER}"', None),
    ("crates/tamis-formats/Cargo.toml", rf'(?m)^tamis = {{ path = "../tamis", version = "{NUMBER}"', 1),
    ("crates/tamis-report/Cargo.toml", rf'(?m)^tamis = {{ path = "../tamis", version = "{NUMBER}"', 1),
    *((f"crates/tamis-{name}/Cargo.toml", rf'(?m)^version = "{NUMBER}"', 1) for name in ("module", "sqlite", "wasm")),
    ("crates/tamis-wasm/js/package.json", rf'"version": "{NUMBER}"', 1),
    ("examples/bad-domains/extension/manifest.json", rf'"version": "{NUMBER}"', 1),
    ("java/pom.xml", rf"<artifactId>tamis-java</artifactId>\n  <version>{NUMBER}</version>", 1),
    *((name, rf"tamis-java-{NUMBER}\.jar", None) for name in (
        "docs/installing.md", "docs/guides/java.md", "examples/java/debian.args")),
]
# Manifests of packages without a version of their own, or that nobody gets.
NONE = {"bench/Cargo.toml", "examples/Cargo.toml", "fuzz/Cargo.toml", ".ci/npm/package.json"}
MANIFEST = re.compile(r"(?:^|/)(?:Cargo\.toml|package\.json|pom\.xml|manifest\.json)$")


def forgotten(files):
    """Manifests that have a version of their own, and that PLACES lacks."""
    known = {place for place, _, _ in PLACES} | NONE
    for file in files:
        if MANIFEST.search(file) and file not in known:
            text = (REPOSITORY / file).read_text()
            if re.search(rf'(?m)^version = "{NUMBER}"|"version": "{NUMBER}"', text):
                yield file


def main():
    expected = sys.argv[2] if sys.argv[1:2] == ["--set"] else None
    if expected and not re.fullmatch(NUMBER, expected):
        sys.exit(f"expected a version such as 1.2.3, got {expected}")
    wrong = []
    for file, pattern, times in PLACES:
        path = REPOSITORY / file
        text = path.read_text()
        found = list(re.finditer(pattern, text))
        if not found or times not in (None, len(found)):
            wrong.append(f"{file}: expected {times or 'some'} of {pattern}, got {len(found)}")
        if sys.argv[1:2] == ["--set"]:
            for match in reversed(found):
                text = text[:match.start(1)] + expected + text[match.end(1):]
            path.write_text(text)
            continue
        expected = expected or found[0][1]
        wrong += [f"{file}: expected {expected}, got {match[1]}" for match in found if match[1] != expected]
    listed = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True)
    if listed.returncode == 0:
        wrong += [f"{file}: has a version that .ci/versions.py doesn't know of" for file in forgotten(listed.stdout.split("\n"))]
    if wrong:
        sys.exit("\n".join(wrong))
    print(expected)


main()
