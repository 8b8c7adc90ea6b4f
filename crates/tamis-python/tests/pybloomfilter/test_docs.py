"""The examples in docstrings run, and the stubs are those of the built module."""
import doctest
import subprocess
import sys

import pytest

import pybloomfilter
import pybloomfilter.strict


@pytest.mark.parametrize("module", [pybloomfilter, pybloomfilter.strict])
def test_examples(module):
    failed, attempted = doctest.testmod(module, optionflags=doctest.IGNORE_EXCEPTION_DETAIL)
    assert attempted >= 4 and failed == 0


def test_stubs():
    ran = subprocess.run([sys.executable, "-m", "mypy.stubtest", "pybloomfilter"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
