"""Every example runs, and the stubs are those of the built module."""

import ast
import doctest
import importlib.util
import pathlib
import re
import shutil
import subprocess
import sys

import mypy.defaults
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


def blocks(page):
    """(line, source) of the page's Python blocks."""
    for block in re.finditer(r"^```python\n(.*?)^```$", page.read_text(), re.S | re.M):
        yield page.read_text()[: block.start()].count("\n") + 2, block[1]


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), ROOT / "crates/tamis-python/README.md"]
PAGES = [page for page in PAGES if any(blocks(page))]


def test_there_are_pages():
    assert {"README.md", "python.md", "pybloomfilter.md"} <= {page.name for page in PAGES}


def name_of(page):
    return str(page.relative_to(ROOT))


def java_service_writes(path):
    """The filter of Guava's that docs/formats.md makes with the command."""
    pathlib.Path(path).write_bytes(bytes([1, 7, 0, 0, 0, 75]) + bytes(600))
    customers = tamis.open_foreign(path, format="guava", keys="utf8")
    customers.update((ROOT / "samples/customers.txt").read_text().splitlines())
    customers.save(path)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_example_of_the_pages_runs(page, server, tmp_path):
    # What the pages take for granted.
    java_service_writes("customers.bin")
    shutil.copy(ROOT / "crates/tamis-formats/tests/samples/pybloomfilter/pbfm_0.3.11_sha512.bloom", "old.bloom")
    shutil.copytree(ROOT / "samples", "samples")
    known = {"tamis": tamis, "urls": ["https://example.org/"]}
    known |= {name: pathlib.Path(f"samples/{name}.txt").read_text().splitlines() for name in ("senders", "today")}
    session = doctest.DocTestRunner()
    for line, source in blocks(page):
        source = re.sub(r"redis://127\.0\.0\.1(:6379)?/", f"redis://{server}/", source)
        source = source.replace("/tmp/", f"{tmp_path}/")
        if ">>> " in source:
            test = doctest.DocTestParser().get_doctest(source, known, page.name, str(page), line)
            assert test.examples and session.run(test, clear_globs=False).failed == 0
            known = test.globs
        else:
            run_as_said(source, known, f"{page.name}:{line}")


def run_as_said(source, known, place):
    """Runs the statements; the value of an expression is that in the comment behind it, if one is."""
    lines = source.splitlines()
    for statement in ast.parse(source).body:
        if not isinstance(statement, ast.Expr):
            exec(compile(ast.Module([statement], []), place, "exec"), known)
            continue
        value = eval(compile(ast.Expression(statement.value), place, "eval"), known)
        comment = lines[statement.end_lineno - 1][statement.end_col_offset :].partition("#")[2]
        try:
            said = ast.literal_eval(re.split("[;:]", comment)[0].strip())
        except (SyntaxError, ValueError):
            continue
        assert value == said, f"{place}: {lines[statement.end_lineno - 1]}"


@pytest.mark.parametrize("kind", [tamis.Filter, tamis.RedisFilter])
def test_every_method_has_words_of_its_own(kind):
    said = {}
    for name in (name for name in dir(kind) if not name.startswith("_")):
        said.setdefault(getattr(kind, name).__doc__, []).append(name)
    assert None not in said, said[None]
    assert [names for names in said.values() if len(names) > 1] == []


def test_the_stubs_are_the_modules(tmp_path):
    # Libraries that the package works with need not be installed, nor have types. To read the types of the largest
    # takes longer than to compare ours.
    config = tmp_path / "mypy.ini"
    large = "cryptography.*,dask.*,numpy.*,pandas.*,polars.*,pyarrow.*,ray.*,twisted.*"
    config.write_text(f"[mypy]\nignore_missing_imports = True\n[mypy-{large}]\nfollow_imports = skip\n")
    command = [sys.executable, "-m", "mypy.stubtest", "tamis", "--mypy-config-file", str(config)]
    # What can't be compared without them: tamis.spark imports without PySpark, but then has not its types.
    names = {"dask": "dask", "ray": "ray", "scrapy": "scrapy", "pyspark": r"spark\.DataFrame"}
    absent = [name for library, name in names.items() if importlib.util.find_spec(library) is None]
    allowed = tmp_path / "allowed"
    allowed.write_text("".join(f"tamis\\.{name}\n" for name in absent))
    command += ["--allowlist", str(allowed)] if absent else []
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


SUPPORTED = re.findall(r"Python :: (3\.\d+)", (ROOT / "crates/tamis-python/pyproject.toml").read_text())
# mypy leaves versions behind sooner than we do.
VERSIONS = {
    "mypy": [v for v in SUPPORTED if tuple(map(int, v.split("."))) >= mypy.defaults.PYTHON3_VERSION_MIN],
    "pyright": SUPPORTED,
}


def checkers():
    """Every checker at every version; those between the oldest and the newest are for --heavy."""
    for checker, versions in VERSIONS.items():
        for version in versions:
            ends = version in (versions[0], versions[-1])
            yield pytest.param(checker, version, marks=[] if ends else pytest.mark.heavy)


RIGHT = """
import pybloomfilter
import tamis

seen = tamis.Filter(1000, values=2, hash_func=repr)
other: tamis.Filter = seen.copy() | seen
seen.update(other, ["text"], [b"bytes"])
seen.intersection_update(other, ["text"])
again: tamis.Filter = tamis.Filter.load_bytes(other.save_bytes())
with tamis.Filter.open("seen.tamis") as opened:
    found: bool = (tamis.Json(3), tamis.Json()) in opened
seen |= other
window: tamis.Window = tamis.Window(10, within="1h").copy()
old: pybloomfilter.BloomFilter = pybloomfilter.BloomFilter(10, 0.1).copy("old.bloom")
"""


@pytest.mark.parametrize("checker,version", list(checkers()))
def test_the_stubs_are_right_at_every_version(checker, version, tmp_path):
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(RIGHT)
    wrong.write_text("import tamis\nseen: str = tamis.Filter(10).copy()\n")
    options = {
        "mypy": ["--strict", "--python-version", version, "--cache-dir", str(tmp_path)],
        "pyright": ["--pythonversion", version, "--pythonpath", sys.executable],
    }
    errors = found(checker, *options[checker], right, wrong)
    assert "Filter" in errors.pop("wrong.py", "") and not errors, errors


def found(checker, *arguments):
    """The errors that a type checker finds, by the names of files."""
    command = [sys.executable, "-m", checker, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    errors = {}
    for path, line in re.findall(r"^\s*(\S+?\.pyi?):\d+.* error: (.*)", done.stdout, re.M):
        errors[pathlib.Path(path).name] = errors.get(pathlib.Path(path).name, "") + line + "\n"
    assert bool(errors) == bool(done.returncode), done.stdout + done.stderr
    return errors


def test_the_stubs_type_a_program(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        """
from collections.abc import Iterator
from datetime import datetime, timedelta

import numpy as np
import polars as pl
import tamis

with tamis.Filter.create("seen.tamis", 1000, 0.01) as seen:
    new: bool = seen.add("key")
    found: bool = b"key" in seen
    mask: list[bool] = seen.add_many(["a", b"b", 3])
    array = seen.contains_many(np.array(["a"]))
    seen |= seen
    size: int = len(seen)
with tamis.Window.create("window.tamis", 1000, within=timedelta(hours=24)) as window:
    window |= tamis.Window(1000, 0.01, quiet="24h", generations=4)
    again: bool = window.add("key", at=datetime.now()) or window.contains("key", at=5.0)
    news: list[bool] = window.add_many(["a"], at=[datetime.now()])
    latest: datetime | None = window.latest
    counts: list[int] = [generation.keys for generation in window.generations]
lately: pl.DataFrame = tamis.dedup(pl.DataFrame({"a": [1]}), "a", at="time", within="24h")
value: int | None = tamis.Guard(seen).get("key", {"key": 1}.get)
blocked = tamis.build(pl.Series(["a"]), allow=["b"])
left: pl.DataFrame = tamis.dedup(pl.DataFrame({"a": [1]}), "a", filter=seen)
words: list[str] = tamis.dedup(["a"], within="24h")
stream: Iterator[str] = tamis.dedup((word for word in words), within="24h", n=1000)

async def ask(remote: tamis.AsyncRedisFilter) -> list[bool]:
    return await remote.add_many(["a", b"b"])
try:
    pass
except tamis.TamisError:
    pass
"""
    )
    argument, frame = tmp_path / "argument.py", tmp_path / "frame.py"
    argument.write_text("import tamis\ntamis.Filter(\"10\")\n")
    frame.write_text("import polars as pl\nimport tamis\nx: int = tamis.dedup(pl.DataFrame(), filter=tamis.Filter(1))\n")
    errors = found("mypy", "--strict", "--cache-dir", tmp_path, program, argument, frame)
    assert "incompatible type" in errors.pop("argument.py", "")
    assert re.search(r"\[(arg-type|assignment)\]", errors.pop("frame.py", "")) and not errors, errors
