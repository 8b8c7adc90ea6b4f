"""Every example runs, and the stubs are those of the built module."""

import doctest
import pathlib
import subprocess
import sys

import pytest

import tamis

ROOT = pathlib.Path(__file__).resolve().parents[3]


def documented():
    yield "tamis", tamis.__doc__
    for name in tamis.__all__:
        value = getattr(tamis, name)
        yield name, value.__doc__
        if isinstance(value, type) and not issubclass(value, Exception):
            for member, method in vars(value).items():
                if not member.startswith("_"):
                    yield f"{name}.{member}", method.__doc__


@pytest.mark.parametrize("name,text", list(documented()))
def test_everything_is_documented_and_its_examples_run(name, text):
    assert text, f"{name} has no documentation"
    if name == "errors":
        return
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    assert doctest.DocTestRunner().run(test).failed == 0


@pytest.mark.parametrize("path", ["docs/python.md", "crates/tamis-python/README.md"])
def test_the_pages_run(path):
    result = doctest.testfile(str(ROOT / path), module_relative=False)
    assert result.attempted > 5 and result.failed == 0


def test_the_stubs_are_the_modules(tmp_path):
    command = [sys.executable, "-m", "mypy.stubtest", "tamis"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_stubs_type_a_program(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        """
import numpy as np
import pyarrow as pa
import tamis

with tamis.Filter.create("seen.tamis", 1000, 0.01) as seen:
    new: bool = seen.add("key")
    found: bool = b"key" in seen
    mask: list[bool] = seen.add_many(["a", b"b", 3])
    array = seen.contains_many(np.array(["a"]))
    seen |= seen
    size: int = len(seen)
value: int | None = tamis.Guard(seen).get("key", {"key": 1}.get)
blocked = tamis.build(pa.array(["a"]), allow=["b"])
try:
    pass
except tamis.TamisError:
    pass
"""
    )
    check = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), str(program)]
    done = subprocess.run(check, capture_output=True, text=True)
    ours = [line for line in done.stdout.splitlines() if "pyarrow" not in line and ": error" in line]
    assert not ours, ours
    program.write_text("import tamis\ntamis.Filter(10).add(1.5)\n")
    done = subprocess.run(check, capture_output=True, text=True)
    assert "incompatible type" in done.stdout
