#!/usr/bin/env python3
"""Whether the commands and flags that packaging, workflows and front pages name are the program's: commands.py PROGRAM

Alerts, a dashboard, units, the compose file, workflows and READMEs are read or run where no test of ours sees them, so
what they say of the command is compared with its help."""

import functools
import pathlib
import re
import subprocess
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
FILES = ["packaging", ".github/workflows", "crates/*/README.md"]
# What a line is about: the command itself, the workflow's way to run it, or an image that has nothing else.
BEGIN = re.compile(r"(?<![\w.-])(?<!# )tamis (?=[a-z])|cargo run [^\n]*?-- |image: tamis:latest\n +command: \[\"")
END = re.compile(r"[;|&>`)\n]|\. |\"[\]}]")


def named(text):
    """The commands of a text, each with its flags.

    >>> list(named('`tamis list --metrics` says; ["CMD", "/tamis", "serve", "--health"]'))
    [('list', ['--metrics']), ('serve', ['--health'])]
    >>> list(named("image: tamis:latest\\n  command: [\\"serve\\", \\"--host\\", \\"tamis\\", \\"redis://a\\"]"))
    [('serve', ['--host'])]
    >>> list(named("TAMIS_SERVE=--write x\\ncargo run --locked -- dedup a -o b\\nthe folder tamis: tamis:latest"))
    [('serve', ['--write']), ('dedup', ['-o'])]
    """
    text = text.replace('", "', " ").replace("TAMIS_SERVE=", "tamis serve ")
    for begin in BEGIN.finditer(text):
        words = END.split(text[begin.end():], maxsplit=1)[0].split()
        if words and re.fullmatch(r"[a-z-]+", words[0]):
            yield words[0], [word.split("=")[0] for word in words[1:] if re.match(r"--?[a-z]", word)]


@functools.cache
def flags(program, command):
    """The flags of a command, or None where the program has no such command."""
    ran = subprocess.run([program, command, "--help"], capture_output=True, text=True)
    if ran.returncode != 0:
        return None
    lines = re.findall(r"(?m)^ +(-.*)$", ran.stdout)
    return {flag for line in lines for flag in re.findall(r"(?:^|, )(--?[A-Za-z0-9][\w-]*)", line)}


def main():
    problems, count = [], 0
    files = subprocess.run(["git", "ls-files", *FILES], cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout
    for file in files.splitlines():
        # What checks is run, and fails by itself.
        if file.startswith("packaging/check/"):
            continue
        for command, given in named((REPOSITORY / file).read_text()):
            count += 1
            known = flags(sys.argv[1], command)
            if known is None:
                problems.append(f"{file}: names `tamis {command}`, which the program doesn't have")
            else:
                problems += [f"{file}: tamis {command} has no {flag}" for flag in given if flag not in known]
    if not count:
        problems.append("expected commands in packaging and workflows, got none")
    print(f"{count} commands named")
    sys.exit("\n".join(problems) or 0)


if __name__ == "__main__":
    main()
