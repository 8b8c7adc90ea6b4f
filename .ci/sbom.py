#!/usr/bin/env python3
"""Prints what is compiled into the command, or into the package that is named, as a bill of materials (CycloneDX 1.6).

    .ci/sbom.py [PACKAGE]

Versions and checksums are those of Cargo.lock. The same sources give the same text: it has no time and no serial number."""

import json
import pathlib
import subprocess
import sys
import tomllib

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = sys.argv[1] if len(sys.argv) > 1 else "tamis-cli"


def cargo(*arguments):
    ran = subprocess.run(["cargo", *arguments, "--locked"], cwd=REPOSITORY, check=True, capture_output=True, text=True)
    return ran.stdout


def purl(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def component(package, checksums):
    about = {
        "type": "application" if package["name"] == PACKAGE else "library",
        "bom-ref": purl(package),
        "name": package["name"],
        "version": package["version"],
        "purl": purl(package),
    }
    if package["license"]:
        about["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    checksum = checksums.get((package["name"], package["version"]))
    if checksum:
        about["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    if package["repository"]:
        about["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return about


def main():
    locked = tomllib.loads((REPOSITORY / "Cargo.lock").read_text())["package"]
    checksums = {(package["name"], package["version"]): package.get("checksum") for package in locked}
    tree = cargo("tree", "-p", PACKAGE, "--all-features", "-e", "normal", "--prefix", "none", "-f", "{p}")
    compiled = {tuple(line.split()[:2]) for line in tree.splitlines()}
    metadata = json.loads(cargo("metadata", "--all-features", "--format-version", "1"))
    packages = {package["id"]: package for package in metadata["packages"]
                if (package["name"], "v" + package["version"]) in compiled}
    components = sorted((component(package, checksums) for package in packages.values()), key=lambda it: it["bom-ref"])
    needs = [{"ref": purl(packages[node["id"]]), "dependsOn": sorted({purl(packages[on]) for on in node["dependencies"] if on in packages})}
             for node in metadata["resolve"]["nodes"] if node["id"] in packages]
    print(json.dumps({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": next(it for it in components if it["name"] == PACKAGE)},
        "components": [it for it in components if it["name"] != PACKAGE],
        "dependencies": sorted(needs, key=lambda it: it["ref"]),
    }, indent=1))


main()
