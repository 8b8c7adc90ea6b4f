//! Which format a file is of.

use crate::Keys;
use crate::foreign::fits;
use crate::format::{
    bip37, bits_and_blooms, cassandra, dcso, guava, npm, orc, parquet, poppy, pybloomfilter, redis,
    redisson, spark, sst, valkey,
};
use std::fmt;

/// The formats that are known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Bitcoin's BIP 37.
    Bip37,
    /// Go's bits-and-blooms, binary or JSON.
    BitsAndBlooms,
    /// Cassandra's `Filter.db`, from version 4 on.
    Cassandra,
    /// DCSO's bloom, and poppy's version 1.
    Dcso,
    /// Guava's `BloomFilter.writeTo`.
    Guava,
    /// A table of LevelDB.
    LevelDb,
    /// npm's bloom-filters, as JSON.
    Npm,
    /// A column of an ORC file.
    Orc,
    /// Parquet's split-block filters: a column's in a file, or one by itself.
    Parquet,
    /// poppy's version 2.
    Poppy,
    /// pybloomfiltermmap3.
    Pybloomfilter,
    /// RedisBloom's Bloom filter: DUMP, chunks, or in an RDB file.
    RedisBloom,
    /// RedisBloom's cuckoo filter: DUMP, chunks, or in an RDB file.
    RedisCuckoo,
    /// Redisson's bit set in Redis.
    Redisson,
    /// A table of RocksDB.
    RocksDb,
    /// Spark's `BloomFilter.writeTo`.
    Spark,
    /// A filter out of valkey-bloom.
    Valkey,
}

impl Format {
    /// Every format.
    pub const ALL: &[Self] = &[
        Self::Bip37,
        Self::BitsAndBlooms,
        Self::Cassandra,
        Self::Dcso,
        Self::Guava,
        Self::LevelDb,
        Self::Npm,
        Self::Orc,
        Self::Parquet,
        Self::Poppy,
        Self::Pybloomfilter,
        Self::RedisBloom,
        Self::RedisCuckoo,
        Self::Redisson,
        Self::RocksDb,
        Self::Spark,
        Self::Valkey,
    ];

    /// The name on the command line.
    ///
    /// ```
    /// assert_eq!(tamis_formats::Format::Guava.name(), "guava");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bip37 => "bip37",
            Self::BitsAndBlooms => "bits-and-blooms",
            Self::Cassandra => "cassandra",
            Self::Dcso => "dcso",
            Self::Guava => "guava",
            Self::LevelDb => "leveldb",
            Self::Npm => "bloom-filters",
            Self::Orc => "orc",
            Self::Parquet => "parquet",
            Self::Poppy => "poppy",
            Self::Pybloomfilter => "pybloomfilter",
            Self::RedisBloom => "redisbloom",
            Self::RedisCuckoo => "redisbloom-cuckoo",
            Self::Redisson => "redisson",
            Self::RocksDb => "rocksdb",
            Self::Spark => "spark",
            Self::Valkey => "valkey-bloom",
        }
    }

    /// How this format's users make bytes of keys. If there are several ways,
    /// the file does not say which was taken.
    ///
    /// ```
    /// use tamis_formats::{Format, Keys};
    /// assert_eq!(Format::Spark.keys(), [Keys::Utf8, Keys::Int64]);
    /// ```
    pub const fn keys(self) -> &'static [Keys] {
        match self {
            Self::Bip37 => bip37::KEYS,
            Self::BitsAndBlooms => bits_and_blooms::KEYS,
            Self::Cassandra => cassandra::KEYS,
            Self::Dcso => dcso::KEYS,
            Self::Guava => guava::KEYS,
            Self::LevelDb | Self::RocksDb => sst::KEYS,
            Self::Npm => npm::KEYS,
            Self::Orc => &[Keys::Utf8, Keys::Int64, Keys::Float64],
            Self::Parquet => &[
                Keys::Utf8,
                Keys::Int32,
                Keys::Int64,
                Keys::Float32,
                Keys::Float64,
            ],
            Self::Poppy => poppy::KEYS,
            Self::Pybloomfilter => pybloomfilter::KEYS,
            Self::RedisBloom | Self::RedisCuckoo => redis::KEYS,
            Self::Redisson => redisson::KEYS,
            Self::Spark => spark::KEYS,
            Self::Valkey => valkey::KEYS,
        }
    }
}

/// The formats that these bytes can be of. A magic number settles it; without
/// one, all whose numbers agree with the length to the byte.
pub(crate) fn detect(file: &[u8]) -> Vec<Format> {
    if file.starts_with(pybloomfilter::MAGIC) {
        return vec![Format::Pybloomfilter];
    }
    if file.starts_with(parquet::MAGIC) {
        return vec![Format::Parquet];
    }
    if file.starts_with(orc::MAGIC) {
        return vec![Format::Orc];
    }
    match sst::magic(file) {
        Some(sst::LEVELDB_MAGIC) => return vec![Format::LevelDb],
        Some(sst::ROCKSDB_MAGIC) => return vec![Format::RocksDb],
        _ => {}
    }
    if redis::is_like(file) {
        return match redis::read(Format::RedisBloom, file, None) {
            Ok((value, _)) => vec![value.format()],
            Err(_) => vec![Format::RedisBloom],
        };
    }
    let fits = |format: &Format| fits(*format, file);
    Format::ALL.iter().copied().filter(fits).collect()
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|format| format.name() == text);
        found.copied().ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|format| format.name()).collect();
            format!("expected one of {}, got {text:?}", names.join(", "))
        })
    }
}
