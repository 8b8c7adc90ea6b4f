#!/usr/bin/env python3
"""What is shipped depends on: may it be used, and where does it come from?

The part of `cargo deny check licenses sources bans` that deny.toml asks for, without the minutes that cargo-deny takes to
compile. `.ci/dependencies` runs cargo-deny itself, and looks for known vulnerabilities, too: a workflow does that."""

import json
import pathlib
import re
import subprocess
import sys
import tomllib

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
MANIFESTS = ["Cargo.toml", "crates/tamis-module/Cargo.toml", "crates/tamis-sqlite/Cargo.toml", "crates/tamis-wasm/Cargo.toml"]
CRATES_IO = {"registry+https://github.com/rust-lang/crates.io-index", "sparse+https://index.crates.io/"}

# All that this script knows of deny.toml. Whatever else stands there, it would not check.
KNOWN = {
    "graph": {"all-features": True, "exclude": list},
    "licenses": {"allow": list},
    "bans": {"multiple-versions": "allow", "wildcards": "deny", "allow-wildcard-paths": True, "deny": list},
    "sources": {"unknown-registry": "deny", "unknown-git": "deny"},
    "advisories": {"yanked": "deny"},  # only cargo-deny checks this
}


def is_allowed(expression, allowed):
    """Whether one may choose of an SPDX expression such that all is allowed. `/` is what OR was called before.

    >>> is_allowed("MIT/GPL-3.0", {"MIT"}), is_allowed("MIT AND GPL-3.0", {"MIT"})
    (True, False)
    >>> is_allowed("(MIT OR Apache-2.0) AND NCSA", {"MIT"}), is_allowed("(GPL-3.0 OR MIT) AND ISC", {"MIT", "ISC"})
    (False, True)
    >>> is_allowed("Apache-2.0 WITH LLVM-exception", {"Apache-2.0"})
    False
    >>> is_allowed("MIT OR GPL-3.0 AND ISC", {"MIT"}), is_allowed(None, {"MIT"}), is_allowed("MIT OR", {"MIT"})
    (True, False, False)
    """
    words = re.findall(r"[()]|[\w.+-]+(?: WITH [\w.-]+)?", (expression or "").replace("/", " OR "))
    words.reverse()

    def term():
        word = words.pop()
        if word != "(":
            return word in allowed
        inside = either()
        return words.pop() == ")" and inside

    def both():
        answer = term()
        while words and words[-1] == "AND":
            words.pop()
            answer &= term()
        return answer

    def either():
        answer = both()
        while words and words[-1] == "OR":
            words.pop()
            answer |= both()
        return answer

    try:
        return either() and not words
    except IndexError:
        return False


def unknown(config):
    """What deny.toml says and this script doesn't check.

    >>> list(unknown({"bans": {"multiple-versions": "deny", "deny": []}, "output": {}}))
    ['bans.multiple-versions', 'output']
    """
    for section, settings in config.items():
        for name, value in settings.items() if section in KNOWN else ():
            known = KNOWN[section].get(name)
            if not (known is list and isinstance(value, list)) and known != value:
                yield f"{section}.{name}"
        if section not in KNOWN:
            yield section


def wrong(manifest, config):
    """What is wrong with a workspace's dependencies, in sentences."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--all-features", "--manifest-path", manifest]
    metadata = json.loads(subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    edges = {node["id"]: node["dependencies"] for node in metadata["resolve"]["nodes"]}
    excluded = {name for name in config["graph"]["exclude"]}
    banned = {entry["crate"] for entry in config["bans"]["deny"]}
    allowed = set(config["licenses"]["allow"])

    # Those that something reaches without passing what is excluded.
    reached, left = set(), list(metadata["workspace_members"])
    while left:
        member = left.pop()
        if member not in reached and packages[member]["name"] not in excluded:
            reached.add(member)
            left += edges[member]
    for package in (packages[member] for member in sorted(reached)):
        name = f"{package['name']} {package['version']}"
        if not is_allowed(package["license"], allowed):
            yield f"{name}: licence {package['license']}"
        if package["source"] is not None and package["source"] not in CRATES_IO:
            yield f"{name}: comes from {package['source']}"
        if package["name"] in banned:
            yield f"{name}: banned"
        if package["source"] is not None:
            continue
        # An own package. One that is published may have paths without a version in its tests alone.
        for needed in package["dependencies"]:
            may = needed.get("path") and (package["publish"] == [] or needed["kind"] == "dev")
            if needed["req"] == "*" and not may:
                yield f"{name}: any version of {needed['name']}"
    print(f"{manifest}: {len(reached)} packages")


def main():
    config = tomllib.loads((REPOSITORY / "deny.toml").read_text())
    faults = [f"deny.toml: {setting} is not checked by {pathlib.Path(__file__).name}" for setting in unknown(config)]
    for manifest in MANIFESTS:
        faults += wrong(manifest, config)
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
