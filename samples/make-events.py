#!/usr/bin/env python3
"""Makes events/: three Parquet files of fictitious events, 400 rows in two row groups each, without filters. Needs pyarrow.
Always the same rows; the bytes depend on the version of pyarrow."""
import pathlib

import pyarrow
import pyarrow.parquet

here = pathlib.Path(__file__).parent
users = [line.split("@")[0] for line in (here / "senders.txt").read_text().splitlines()]
(here / "events").mkdir(exist_ok=True)
for number, day in enumerate(["monday", "tuesday", "wednesday"]):
    rows = range(number * 400, number * 400 + 400)
    table = pyarrow.table({
        "id": pyarrow.array([100_000 + 7 * row for row in rows], pyarrow.int64()),
        "user": [users[row] for row in rows],
    })
    pyarrow.parquet.write_table(table, here / "events" / f"{day}.parquet", row_group_size=200, compression="zstd",
                                write_statistics=False, store_schema=False)
