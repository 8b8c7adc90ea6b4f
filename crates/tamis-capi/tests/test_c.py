"""tamis.h and tamis.hpp: compiled by gcc and clang, run under AddressSanitizer and UBSan with the library linked statically,
and as an installed shared library. Golden files answer as alike.json says, and corrupt ones are refused.

TAMIS is the command that must write the same files; TAMIS_CAPI the folder with the library, which is else built in
CARGO_TARGET_DIR; TAMIS_CORRUPT_FILES has files that `cargo test -p tamis --test files corrupt` wrote."""

import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

CRATE = pathlib.Path(__file__).resolve().parent.parent
ROOT = CRATE.parent.parent
TESTS = CRATE / "tests"
GOLDEN = ROOT / "crates/tamis/tests/golden"
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
TAMIS = pathlib.Path(os.environ.get("TAMIS", TARGET / "debug/tamis"))

STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
SANITIZED = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
COMPILERS = [(c, cpp) for c, cpp in [("gcc", "g++"), ("clang", "clang++")] if shutil.which(c)]
# The tests in C that need nothing but a folder.
PROGRAMS = ["test.c", "arguments.c"]
# What a static Rust library needs of the system.
SYSTEM = ["-lpthread", "-ldl", "-lm"]


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(scope="session")
def library():
    if built := os.environ.get("TAMIS_CAPI"):
        return pathlib.Path(built).resolve() / "libtamis_capi.a"
    run("cargo", "build", "--quiet", "--locked", "-p", "tamis-capi", cwd=ROOT)
    return TARGET / "debug/libtamis_capi.a"


@pytest.fixture(scope="session")
def compiled(library, tmp_path_factory):
    """Compiles a source file of this folder, once a compiler."""
    made = {}

    def compile(source, compilers=COMPILERS[0]):
        key = (source, compilers)
        if key not in made:
            program = tmp_path_factory.mktemp("programs") / source.replace(".", "-")
            is_cpp = source.endswith("cpp")
            standard = "-std=c++17" if is_cpp else "-std=c99"
            # Threads are not C99's.
            run(compilers[is_cpp], standard, "-D_POSIX_C_SOURCE=200809L", *STRICT, *SANITIZED, f"-I{CRATE}/include",
                TESTS / source, library, *SYSTEM, "-o", program)
            made[key] = program
        return made[key]

    return compile


def test_gcc_is_here():
    assert COMPILERS, "neither gcc nor clang"


@pytest.mark.parametrize("compilers", COMPILERS, ids=lambda c: c[0])
@pytest.mark.parametrize("header", ["tamis.h", "tamis.hpp"])
def test_headers_compile_alone(compilers, header, tmp_path):
    source = tmp_path / "header.cpp"
    source.write_text(f'#include "{header}"\n#include "{header}"\nint main() {{ return 0; }}\n')
    run(compilers[1], "-std=c++17", *STRICT, f"-I{CRATE}/include", "-c", source, "-o", tmp_path / "header.o")
    if header == "tamis.h":
        source = source.rename(tmp_path / "header.c")
        source.write_text(source.read_text().replace("main()", "main(void)"))
        run(compilers[0], "-std=c99", *STRICT, f"-I{CRATE}/include", "-c", source, "-o", tmp_path / "header.o")


@pytest.mark.parametrize("compilers", COMPILERS, ids=lambda c: c[0])
@pytest.mark.parametrize("source", [*PROGRAMS, "test.cpp"])
def test_calls(compiled, compilers, source, tmp_path):
    assert run(compiled(source, compilers), cwd=tmp_path) == "all is well\n"


def test_golden_files_answer_alike(compiled):
    alike = json.loads((GOLDEN / "alike.json").read_text())
    assert sorted(alike) == sorted(path.name for path in GOLDEN.glob("*.tamis"))
    expected = []
    for name, types in alike.items():
        words = " ".join(f"{kind} {answers['yes']} {answers['digest']}" for kind, answers in types.items())
        expected += [f"{name} {way} {words}" for way in ["open", "load", "bytes", "view"]]
    files = [word for name in alike for word in (name, latest(GOLDEN / name))]
    assert run(compiled("golden.c"), GOLDEN, *files).splitlines() == expected


def latest(path):
    """The latest moment of a window, in microseconds; 0 where there is none."""
    if not path.name.startswith("window"):
        return 0
    moment = json.loads(run(TAMIS, "info", "--json", path))["window"]["latest"]
    return round(datetime.datetime.fromisoformat(moment.replace("Z", "+00:00")).timestamp() * 1e6) if moment else 0


def test_corrupt_files_are_refused(compiled, tmp_path):
    folder = os.environ.get("TAMIS_CORRUPT_FILES")
    if not folder:
        folder = tmp_path
        run("cargo", "test", "--quiet", "--locked", "-p", "tamis", "--test", "files", "corrupt", cwd=ROOT,
            env={**os.environ, "TAMIS_CORRUPT_FILES": str(folder)})
    files = sorted(pathlib.Path(folder).glob("*.tamis"))
    assert len(files) > 100
    # What a header claims is not allocated.
    limits = {**os.environ, "ASAN_OPTIONS": "max_allocation_size_mb=16:hard_rss_limit_mb=1000"}
    assert run(compiled("corrupt.c"), *files, env=limits) == f"{len(files)} files refused\n"


@pytest.mark.parametrize("kind, name", [(1, "bloom"), (2, "blocked"), (3, "counting"), (6, "fuse"), (7, "ribbon")])
def test_files_are_those_of_the_command(compiled, tmp_path, kind, name):
    keys = tmp_path / "keys.txt"
    keys.write_text("".join(f"https://example.org/{i % 97}/{i}\n" for i in range(20_000)))
    run(compiled("alike.c"), kind, 0.01, keys, tmp_path / "c.tamis")
    made = tmp_path / "command.tamis"
    if name in ("fuse", "ribbon"):
        run(TAMIS, "build", "-p", "0.01", *["--smallest"] * (name == "ribbon"), "-o", made, keys)
    else:
        run(TAMIS, "create", "--kind", name, "--capacity", "20000", "-p", "0.01", made)
        run(TAMIS, "add", made, keys)
    assert (tmp_path / "c.tamis").read_bytes() == made.read_bytes()


def test_examples_of_the_docs(library, tmp_path):
    """Those of docs/c.md print what their comments say."""
    page = (ROOT / "docs/c.md").read_text()
    for language, compiler, printed in [
        ("c", ["cc", "-std=c99"], "1\n0\n0\n"),
        ("cpp", ["c++", "-std=c++17"], "10\nopening none.tamis: No such file or directory (os error 2)\n"),
    ]:
        source = tmp_path / f"example.{language}"
        source.write_text(re.search(rf"```{language}\n(#include.*?)```", page, re.S).group(1))
        run(*compiler, *STRICT, f"-I{CRATE}/include", source, library, *SYSTEM, "-o", tmp_path / "example")
        assert run(tmp_path / "example", cwd=tmp_path) == printed


def test_what_is_installed_is_compiled_without_link_time_optimisation(tmp_path):
    """That takes minutes, on a busy machine a quarter of an hour: nobody waits for it who wants to try the library."""
    cargo = tmp_path / "cargo"
    cargo.write_text('#!/bin/sh\necho "$@" >>"$CALLS"\nexit 1\n')
    cargo.chmod(0o755)
    calls = tmp_path / "calls"
    path = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "CALLS": str(calls)}
    subprocess.run([CRATE / "install", tmp_path / "prefix"], env=path, capture_output=True)
    assert "--profile release" in calls.read_text()


def test_installed(library, tmp_path):
    """As users link it: by pkg-config, shared and static."""
    run(CRATE / "install", tmp_path, env={**os.environ, "BUILT": str(library.parent)})
    path = {**os.environ, "PKG_CONFIG_PATH": str(tmp_path / "lib/pkgconfig")}
    shared = run("pkg-config", "--cflags", "--libs", "tamis", env=path).split()
    static = run("pkg-config", "--static", "--cflags", "--libs", "tamis", env=path).replace("-ltamis", "-l:libtamis.a").split()
    program = tmp_path / "test"
    for source in PROGRAMS:
        run("cc", "-std=c99", "-D_POSIX_C_SOURCE=200809L", TESTS / source, *shared, "-lpthread", "-o", program)
        assert "[libtamis.so.0]" in run("readelf", "-d", program)
        here = tmp_path / f"{source}-shared"
        here.mkdir()
        assert run(program, cwd=here, env={**path, "LD_LIBRARY_PATH": str(tmp_path / "lib")}) == "all is well\n"

        run("cc", "-std=c99", "-D_POSIX_C_SOURCE=200809L", TESTS / source, *static, "-o", program)
        assert "libtamis" not in run("readelf", "-d", program)
        here = tmp_path / f"{source}-static"
        here.mkdir()
        assert run(program, cwd=here) == "all is well\n"

    # All that tamis.h declares, and nothing else.
    declared = set(re.findall(r"\b(tamis_\w+)\(", (CRATE / "include/tamis.h").read_text().split("*/", 1)[1]))
    lines = run("nm", "-D", "--defined-only", tmp_path / "lib/libtamis.so").splitlines()
    assert {line.split()[-1] for line in lines} == declared
