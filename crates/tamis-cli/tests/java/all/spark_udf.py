"""The Spark section of docs/guides/java.md: its commands, run with the jars that the package pyspark carries.

Its name keeps it out of runs that have no pyspark: it is run by `./test --all`, which names it.
"""

import os
import pathlib
import subprocess
import sys

import pyspark

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from conftest import ROOT  # noqa: E402
from test_console import blocks  # noqa: E402

PAGE = ROOT / "docs/guides/java.md"


def run(command, home):
    spark = pathlib.Path(pyspark.__file__).parent
    env = {**os.environ, "SPARK_HOME": str(spark), "SPARK_LOCAL_IP": "127.0.0.1", "PATH": f"{spark}/bin:{home.parent / 'bin'}:{os.environ['PATH']}"}
    ran = subprocess.run(["bash", "-ec", command], cwd=home, env=env, text=True, capture_output=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_job(home):
    [(commands, said)] = [
        (code, text)
        for (_, kind, code), (_, next_kind, text) in zip(list(blocks(PAGE)), list(blocks(PAGE))[1:])
        if (kind, next_kind) == ("sh", "text")
    ]
    run("java/build jar", home)
    run("tamis build customers.tamis samples/customers.txt", home)
    assert run("\n".join(commands), home).splitlines() == said
    # Of lines that nobody knows, hardly any is seen.
    (home / "others.txt").write_text("".join(f"other-{i}\n" for i in range(10_000)))
    [*_, job] = commands
    denied, seen = run(job.replace("samples/customers.txt", "others.txt"), home).splitlines()
    assert denied.startswith("seen false: ") and seen.startswith("seen true: ") and int(seen.split()[-1]) < 200
