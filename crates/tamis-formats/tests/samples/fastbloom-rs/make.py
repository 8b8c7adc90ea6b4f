"""Makes the samples: pip install fastbloom-rs==0.5.10 && python make.py"""

import pathlib

from fastbloom_rs import FilterBuilder

here = pathlib.Path(__file__).parent
words = [f"key{i}" for i in range(500)] + ["é", "日本", "x" * 300, "🌾"]
for name, keys in ("words", words), ("numbers", range(500)):
    made = FilterBuilder(1000, 0.01).build_bloom_filter()
    for key in keys:
        made.add(key)
    made.save_to_file_with_hashes(str(here / f"{name}_n1000_p01.bloom"))
