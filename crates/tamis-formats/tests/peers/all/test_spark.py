"""Spark's sketches, Parquet and ORC files, and a newer Guava, by the package pyspark."""

import pathlib
import sys

import pyspark
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import java  # noqa: E402
from conftest import ABSENT, HERE, LONGS, TEXTS, WORDS  # noqa: E402

import tamis  # noqa: E402

JARS = ":".join(map(str, (pathlib.Path(pyspark.__file__).parent / "jars").glob("*.jar")))
# A line is a key.
STRINGS = [*WORDS, *(text for text in TEXTS if text)]


@pytest.fixture(scope="session")
def sketch(tmp_path_factory):
    source = pathlib.Path(__file__).with_name("SparkPeer.java")
    with java.running(source, "SparkPeer", JARS, tmp_path_factory.mktemp("classes")) as call:
        yield call


@pytest.mark.parametrize("version,format", [(1, "spark"), (2, "spark2")])
@pytest.mark.parametrize(
    "kind,encoding,keys,absent",
    [("string", "utf8", STRINGS, ABSENT), ("long", "int64", [*range(500), *LONGS], range(10_000, 30_000))],
)
def test_sketches_cross(sketch, ours, tmp_path, version, format, kind, encoding, keys, absent):
    def written(name, keys):
        path = tmp_path / name
        path.write_text("".join(f"{key}\n" for key in keys), newline="")
        return path

    theirs = tmp_path / "theirs"
    assert sketch("make", version, kind, 1000, 0.01, theirs, written("keys", keys)) == "made"
    filter = tamis.open_foreign(theirs, format="spark", keys=encoding)
    assert all(filter.contains_many(keys))

    mine = ours(format, 1000, 0.01, keys, encoding)
    assert mine.read_bytes() == theirs.read_bytes()
    asked = [*keys, *absent]
    answers = sketch("ask", kind, mine, written("asked", asked), tmp_path / "again")
    assert [answer == "1" for answer in answers] == filter.contains_many(asked)
    assert sum(filter.contains_many(absent)) < 300
    assert (tmp_path / "again").read_bytes() == mine.read_bytes()


def test_guava_chooses_hashes_by_the_rate_since_33_4(ours, tmp_path):
    """For few keys that is another number than before."""
    keys = tmp_path / "keys"
    keys.write_text("".join(f"{key.encode().hex()}\n" for key in WORDS[:5]))
    theirs = tmp_path / "theirs"
    with java.running(HERE / "GuavaPeer.java", "com.google.common.hash.GuavaPeer", JARS, tmp_path / "classes") as guava:
        assert guava("make", "utf8", "mitz64", 5, 0.011, theirs, keys) == "made"
    assert ours("guava", 5, 0.011, WORDS[:5], "utf8").read_bytes() == theirs.read_bytes()


@pytest.fixture(scope="session")
def spark():
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").getOrCreate()
    yield session
    session.stop()


@pytest.mark.parametrize(
    "format,options",
    [
        ("parquet", {f"parquet.bloom.filter.enabled#{column}": "true" for column in ["s", "i64", "f64"]}),
        ("orc", {"orc.bloom.filter.columns": "s,i64,f64", "orc.compress": "none"}),
    ],
)
def test_columns_of_files(spark, tmp_path, format, options):
    # The empty text stands in its place, too; Spark writes it as any other.
    strings = [*WORDS, *TEXTS]
    longs = [*LONGS, *range(1000, 1000 + len(strings) - len(LONGS))]
    floats = [i + 0.5 for i in range(len(strings))]
    rows = spark.createDataFrame(list(zip(strings, longs, floats)), "s string, i64 long, f64 double").coalesce(1)
    rows.write.format(format).options(**options).save(str(tmp_path / "out"))
    [file] = (tmp_path / "out").glob(f"*.{format}")
    for column, encoding, values in [("s", "utf8", strings), ("i64", "int64", longs), ("f64", "float64", floats)]:
        filter = tamis.open_foreign(file, name=column)
        assert (filter.format, filter.key_encoding) == (format, encoding)
        assert all(filter.contains_many(values))
    filter = tamis.open_foreign(file, name="s")
    assert sum(filter.contains_many(ABSENT)) < 2000
