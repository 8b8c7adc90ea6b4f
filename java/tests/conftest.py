import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TAMIS = pathlib.Path(os.environ.get("TAMIS", ROOT / "target/debug/tamis"))
GOLDEN = ROOT / "crates/tamis/tests/golden"
SECRET = (GOLDEN / "secret.key").read_bytes().hex()


def tamis(*words, input=None, code=0):
    """What the command prints."""
    ran = subprocess.run([TAMIS, *map(str, words)], input=input, capture_output=True, text=input is None or isinstance(input, str))
    assert ran.returncode == code, ran.stderr
    return ran.stdout


def hexes(keys):
    return [key.hex() for key in keys]


class Java:
    """The library in a small Java machine, behind Driver.java."""

    def __init__(self, folder):
        jar = subprocess.run([ROOT / "java/build", folder / "java"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        sources = (ROOT / "java/tests/io/tamis").glob("*.java")
        subprocess.run(["javac", "--release", "11", "-Xlint:all", "-Werror", "-cp", jar, "-d", folder / "tests", *sources], check=True)
        self.jar = jar
        self.command = ["java", "-Xmx192m", "-cp", f"{folder}/tests:{jar}", "io.tamis.Driver"]
        self.process = subprocess.Popen(self.command, cwd=folder, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __call__(self, *words):
        self.process.stdin.write("\t".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().rstrip("\n")
        assert answer and not answer.startswith("CRASH"), (words[:4], answer)
        return answer


@pytest.fixture(scope="session")
def java(tmp_path_factory):
    java = Java(tmp_path_factory.mktemp("java"))
    yield java
    java.process.stdin.close()
    assert java.process.wait(60) == 0
