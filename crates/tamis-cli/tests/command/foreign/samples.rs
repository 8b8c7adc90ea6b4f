//! Files written by other systems' own programs, and their keys.

use std::path::PathBuf;

/// A file of another system, and its properties.
pub(crate) struct Sample {
    pub(crate) file: &'static str,
    pub(crate) format: &'static str,
    /// The options needed to query it.
    pub(crate) flags: &'static str,
    pub(crate) keys: fn() -> Vec<String>,
    pub(crate) can: Can,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Can {
    /// It can only be queried.
    Ask,
    /// It can be added to.
    Add,
    /// Keys can also be removed.
    Remove,
}

pub(crate) fn words() -> Vec<String> {
    (0..500).map(|i| format!("key{i}")).collect()
}

/// Keys of FastFilter, which are often hashes.
pub(crate) fn hashes() -> Vec<String> {
    (0..500u64)
        .map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_string())
        .collect()
}

pub(crate) fn numbers() -> Vec<String> {
    (0..500).map(|i| i.to_string()).collect()
}

const fn sample(
    file: &'static str,
    format: &'static str,
    flags: &'static str,
    keys: fn() -> Vec<String>,
    can: Can,
) -> Sample {
    Sample {
        file,
        format,
        flags,
        keys,
        can,
    }
}

pub(crate) const SAMPLES: &[Sample] = &[
    sample(
        "abloom/abloom_1.1.0_n1000_p01.bin",
        "abloom",
        "",
        words,
        Can::Add,
    ),
    sample(
        "fastbloom/fastbloom_0.17_n1000_p01.json",
        "fastbloom",
        "--format keys=rust-str",
        words,
        Can::Add,
    ),
    sample("fastfilter/c_fuse8.bin", "fastfilter", "", hashes, Can::Ask),
    sample(
        "fastfilter/go_fuse16.bin",
        "fastfilter",
        "",
        hashes,
        Can::Ask,
    ),
    sample(
        "fastfilter/xorf_xor8.json",
        "fastfilter",
        "",
        hashes,
        Can::Ask,
    ),
    sample(
        "pyprobables/pyprobables_0.7.0_n1000_p01.blm",
        "pyprobables",
        "",
        words,
        Can::Ask,
    ),
    sample(
        "pybloom-live/xxh128_n1000_p01.bloom",
        "pybloom-live",
        "",
        words,
        Can::Ask,
    ),
    sample(
        "pybloom-live/scalable_n100_p01.bloom",
        "pybloom-live",
        "",
        words,
        Can::Ask,
    ),
    sample(
        "npm-bloomfilter/n1000_p01.json",
        "bloomfilter",
        "",
        words,
        Can::Add,
    ),
    sample(
        "npm-bloom-filters/scalable_n100_p01_key0-499.json",
        "bloom-filters",
        "",
        words,
        Can::Ask,
    ),
    sample(
        "npm-bloom-filters/xor8.json",
        "bloom-filters",
        "",
        words,
        Can::Ask,
    ),
    sample(
        "bip37/bip37_n100_p01_tweak0_key0-49.bin",
        "bip37",
        "",
        || words()[..50].to_vec(),
        Can::Add,
    ),
    sample(
        "bitsandblooms/bb_v3_n1000_p01_key0-499.bin",
        "bits-and-blooms",
        "",
        words,
        Can::Add,
    ),
    sample(
        "bitsandblooms/bb_v3_n1000_p01_key0-499.json",
        "bits-and-blooms",
        "",
        words,
        Can::Add,
    ),
    sample(
        "cassandra/cassandra4_Filter.db",
        "cassandra",
        "",
        words,
        Can::Ask,
    ),
    sample(
        "dcso/dcso_v1_n1000_p01_key0-499.bloom",
        "dcso",
        "--format keys=utf8",
        words,
        Can::Add,
    ),
    sample(
        "dcso/dcso_v1_n1000_p01_key0-499.bloom.gz",
        "dcso",
        "--format keys=utf8",
        words,
        Can::Ask,
    ),
    sample(
        "dcso/debian_cli_0.2.4_n1000_p01_key0-499.bloom",
        "dcso",
        "--format keys=utf8",
        words,
        Can::Add,
    ),
    sample(
        "guava/guava_bytes_n1000_p01_key0-499.mitz64.bin",
        "guava",
        "--format keys=utf8",
        words,
        Can::Add,
    ),
    sample(
        "guava/guava_string_utf8_n1000_p01_key0-499.mitz32.bin",
        "guava",
        "--format keys=utf8",
        words,
        Can::Add,
    ),
    sample(
        "guava/guava_unencodedchars_n1000_p01_key0-499.mitz64.bin",
        "guava",
        "--format keys=utf16",
        words,
        Can::Add,
    ),
    sample(
        "guava/guava_int_n1000_p01_0-499.mitz64.bin",
        "guava",
        "--format keys=int32",
        numbers,
        Can::Add,
    ),
    sample(
        "guava/guava_long_n1000_p01_0-499.mitz64.bin",
        "guava",
        "--format keys=int64",
        numbers,
        Can::Add,
    ),
    sample(
        "leveldb/leveldb_bloom10_key0000-0499.ldb",
        "leveldb",
        "",
        padded,
        Can::Ask,
    ),
    sample(
        "rocksdb/rocksdb_fastlocalbloom10_key0000-0499.sst",
        "rocksdb",
        "",
        padded,
        Can::Ask,
    ),
    sample(
        "npm-bloom-filters/bloom_n1000_p01_key0-499.json",
        "bloom-filters",
        "",
        words,
        Can::Add,
    ),
    sample(
        "orc/pyarrow26.orc",
        "orc",
        "--format name=s",
        words,
        Can::Ask,
    ),
    sample(
        "orc/spark43_orc2.3.orc",
        "orc",
        "--format name=i64",
        sevens,
        Can::Ask,
    ),
    sample(
        "parquet/duckdb.parquet",
        "parquet",
        "--format name=s",
        words,
        Can::Ask,
    ),
    sample(
        "parquet/pyarrow.parquet",
        "parquet",
        "--format name=i64",
        sevens,
        Can::Ask,
    ),
    sample(
        "parquet/parquet-mr-1.17.parquet",
        "parquet",
        "--format keys=utf8,name=s",
        words,
        Can::Ask,
    ),
    sample(
        "poppy/poppy_v1_n1000_p01_key0-499.bloom",
        "dcso",
        "--format keys=utf8",
        words,
        Can::Add,
    ),
    sample(
        "poppy/poppy_v2_n1000_p01_key0-499.bloom",
        "poppy",
        "--format keys=utf8",
        words,
        Can::Add,
    ),
    sample(
        "poppy/poppy_v2_opt3_n20000_p001.bloom",
        "poppy",
        "--format keys=utf8",
        poppies,
        Can::Add,
    ),
    sample(
        "pybloomfilter/pbfm3_0.6.3_cap1000_p01_seeds.bloom",
        "pybloomfilter",
        "--format keys=utf8",
        words,
        Can::Add,
    ),
    sample(
        "redisbloom/bfscale.dump",
        "redisbloom",
        "",
        || (0..1000).map(|i| format!("key{i}")).collect(),
        Can::Add,
    ),
    sample("redisbloom/bffixed.dump", "redisbloom", "", words, Can::Add),
    sample(
        "redisbloom/cfbig.dump",
        "redisbloom-cuckoo",
        "",
        words,
        Can::Remove,
    ),
    sample(
        "redisbloom/cfkick.nolzf.dump",
        "redisbloom-cuckoo",
        "",
        kicked,
        Can::Remove,
    ),
    sample(
        "redisbloom/all.rdb",
        "redisbloom-cuckoo",
        "--format name=cfkick",
        kicked,
        Can::Remove,
    ),
    sample(
        "redisbloom/all.rdb",
        "redisbloom",
        "--format name=bffixed",
        words,
        Can::Add,
    ),
    sample(
        "spark/spark_default_string_key0-499.bin",
        "spark",
        "--format keys=utf8",
        words,
        Can::Add,
    ),
    sample(
        "spark/spark_v1_long_0-499_bits9600.bin",
        "spark",
        "--format keys=int64",
        numbers,
        Can::Add,
    ),
    sample(
        "valkey-bloom/bloomfilter3_asslice_fixedseed_n1000_p01_key0-499.bin",
        "valkey-bloom",
        "",
        words,
        Can::Ask,
    ),
];

fn padded() -> Vec<String> {
    (0..500).map(|i| format!("key{i:04}")).collect()
}

fn sevens() -> Vec<String> {
    (0..500).map(|i| (7 * i).to_string()).collect()
}

pub(crate) fn kicked() -> Vec<String> {
    (40..600).map(|i| format!("key{i}")).collect()
}

fn poppies() -> Vec<String> {
    let key = |i: u32| match i % 2 {
        1 => format!("some-long-key-{i}"),
        _ => format!("k{i}"),
    };
    (0..5000).map(key).collect()
}

pub(crate) fn sample_path(name: &str) -> PathBuf {
    let samples = "../tamis-formats/tests/samples";
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join(samples)
        .join(name)
}
