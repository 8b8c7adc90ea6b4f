"""`progress=True`: a line on stderr."""

import sys
import time


class Line:
    """Rewrites its line with the number of keys and the speed; the last call ends it."""

    def __init__(self) -> None:
        self.start = time.monotonic()
        self.width = 0

    def __call__(self, done: int) -> None:
        seconds = time.monotonic() - self.start
        text = f"{done:,} keys, {done / seconds / 1e6 if seconds else 0:.1f} M/s"
        sys.stderr.write("\r" + text.ljust(self.width))
        sys.stderr.flush()
        self.width = len(text)

    def __del__(self) -> None:
        if self.width and sys.stderr is not None:
            sys.stderr.write("\n")
