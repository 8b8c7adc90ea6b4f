"""Resident memory: of an opened file, and of a batch.

TAMIS_LONG=1 takes the sizes of the promise: a file of 10 GB, 100 M keys.
"""

import os
import subprocess
import sys
import textwrap

LONG = bool(os.environ.get("TAMIS_LONG"))


def run(script, *args):
    """Runs the script in a process of its own, whose memory it measures."""
    head = """
        import re, sys, time
        import tamis

        def resident(field="VmRSS"):
            with open("/proc/self/status") as status:
                return int(re.search(field + r":\\s+(\\d+)", status.read()).group(1)) * 1024
    """
    text = textwrap.dedent(head) + textwrap.dedent(script)
    done = subprocess.run([sys.executable, "-c", text, *map(str, args)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    print(done.stdout, end="")


def test_a_large_file_opens_at_no_cost():
    script = """
        size, modes = int(sys.argv[1]), ("r", "r+")
        tamis.Filter.create("large.tamis", size, size=size).close()
        before = resident()
        for mode in modes:
            start = time.perf_counter()
            f = tamis.Filter.open("large.tamis", mode)
            seconds = time.perf_counter() - start
            assert "key" not in f
            opened = resident() - before
            asked = [f"key {i}" for i in range(1000)]
            strings = resident() - before
            f.contains_many(asked)
            touched = resident() - before - strings
            print(f"{mode}: opened in {seconds * 1000:.2f} ms, {opened / 1e6:.2f} MB more; "
                  f"1000 keys touched {touched / 1e6:.2f} MB")
            assert opened < 4e6, opened
            # A page a key, or what the kernel maps around one.
            assert touched < 1000 * 65536 + 1e6, touched
            f.close()
    """
    run(script, 10_000_000_000 if LONG else 500_000_000)


def test_a_column_is_added_within_filter_and_input():
    script = """
        import numpy, pyarrow

        n, step = int(sys.argv[1]), 1_000_000
        tamis.Filter(1000).update(pyarrow.array(["warm"]))
        # 'https://example.org/00000000': 28 bytes and an offset of 8.
        data = numpy.empty((n, 28), dtype="u1")
        data[:, :20] = numpy.frombuffer(b"https://example.org/", dtype="u1")
        for at in range(0, n, step):
            rows = numpy.arange(at, min(n, at + step))
            for digit in range(8):
                data[at : at + step, 27 - digit] = rows // 10**digit % 10 + 48
        offsets = numpy.arange(0, 28 * n + 1, 28, dtype="i8")
        buffers = [None, pyarrow.py_buffer(offsets), pyarrow.py_buffer(data)]
        keys = pyarrow.Array.from_buffers(pyarrow.large_string(), n, buffers)
        assert keys[n - 1].as_py() == f"https://example.org/{n - 1:08}"
        # What making the keys has left behind is neither input nor filter.
        before = resident() - keys.nbytes
        with open("/proc/self/clear_refs", "w") as peak:
            peak.write("5")  # the peak counts from here
        f = tamis.Filter(n, 0.01)
        new = f.add_many(keys)
        bound = (f.nbytes + keys.nbytes) * 1.1
        used = resident("VmHWM") - before
        print(f"{n:,} keys: {used / 1e6:.0f} MB at the peak; filter and input "
              f"{(f.nbytes + keys.nbytes) / 1e6:.0f} MB, and a tenth: {bound / 1e6:.0f} MB")
        assert used <= bound, (used, bound)
        assert len(new) == n and len(f) > 0.99 * n
        assert pyarrow.compute.all(f.contains_many(keys)).as_py()
    """
    run(script.replace("import numpy, pyarrow", "import numpy, pyarrow, pyarrow.compute"), 100_000_000 if LONG else 5_000_000)
