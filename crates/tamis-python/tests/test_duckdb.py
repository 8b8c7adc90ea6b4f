"""The example of docs/sql.md for DuckDB."""

import pathlib
import re

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs/sql.md"


def test_the_example_of_the_docs():
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    exec(example, {})
