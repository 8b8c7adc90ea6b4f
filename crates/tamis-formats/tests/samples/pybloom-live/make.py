"""Makes the samples with the pybloom_live that is installed: 4.0.0 those without a version, 3.1.0 the one by MD5.

    pip install pybloom_live==4.0.0 && python make.py     # and again with 3.1.0
"""

import importlib.metadata
import pathlib

from pybloom_live import BloomFilter, ScalableBloomFilter

here = pathlib.Path(__file__).parent
words = [f"key{i}" for i in range(500)] + ["", "é", "日本", "x" * 300, "🌾"]


def save(name, made):
    for word in words:
        made.add(word)
    for number in [12345, -7, 0.5]:
        made.add(number)
    with open(here / f"{name}.bloom", "wb") as file:
        made.tofile(file)


if importlib.metadata.version("pybloom_live").startswith("3."):
    save("md5_3.1_n1000_p01", BloomFilter(1000, 0.01))
else:
    # The hash follows from the number of slices and their length.
    save("xxh128_n1000_p01", BloomFilter(1000, 0.01))
    save("sha1_n1000_p001", BloomFilter(1000, 0.001))
    save("sha256_n600_p1e-4", BloomFilter(600, 1e-4))
    save("sha384_n23000_p001", BloomFilter(23_000, 0.001))
    save("sha512_n600_p1e-10", BloomFilter(600, 1e-10))
    save("scalable_n100_p01", ScalableBloomFilter(100, 0.01, ScalableBloomFilter.SMALL_SET_GROWTH))
