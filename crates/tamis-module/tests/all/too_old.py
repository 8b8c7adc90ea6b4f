"""A server that is too old for the module says so. TAMIS_MODULE_REDIS6 is one."""

import os
import subprocess

MODULE = os.environ["TAMIS_MODULE"]


def test_it_is_said_what_is_needed(tmp_path):
    server = [os.environ["TAMIS_MODULE_REDIS6"], "--port", "0", "--unixsocket", "socket", "--save", ""]
    refused = subprocess.run([*server, "--loadmodule", MODULE], cwd=tmp_path, capture_output=True, text=True)
    assert refused.returncode != 0
    assert "needs Redis 7.0 or newer" in refused.stdout and "panicked" not in refused.stdout + refused.stderr
