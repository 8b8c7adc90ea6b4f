//! The formats, and the ways to make bytes of keys, by name.

use std::fmt;

/// The formats that are known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// abloom's `to_bytes`.
    Abloom,
    /// Bitcoin's BIP 37.
    Bip37,
    /// Go's bits-and-blooms, binary or JSON.
    BitsAndBlooms,
    /// Cassandra's `Filter.db`, from version 4 on.
    Cassandra,
    /// DCSO's bloom, and poppy's version 1.
    Dcso,
    /// The crate fastbloom, as JSON.
    Fastbloom,
    /// FastFilter's xor and binary fuse filters, of C, Go and Rust.
    FastFilter,
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
    /// pyprobables' `BloomFilter.export`.
    Pyprobables,
    /// rbloom's `save`.
    Rbloom,
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
        Self::Abloom,
        Self::Bip37,
        Self::BitsAndBlooms,
        Self::Cassandra,
        Self::Dcso,
        Self::Fastbloom,
        Self::FastFilter,
        Self::Guava,
        Self::LevelDb,
        Self::Npm,
        Self::Orc,
        Self::Parquet,
        Self::Poppy,
        Self::Pybloomfilter,
        Self::Pyprobables,
        Self::Rbloom,
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
            Self::Abloom => "abloom",
            Self::Bip37 => "bip37",
            Self::BitsAndBlooms => "bits-and-blooms",
            Self::Cassandra => "cassandra",
            Self::Dcso => "dcso",
            Self::Fastbloom => "fastbloom",
            Self::FastFilter => "fastfilter",
            Self::Guava => "guava",
            Self::LevelDb => "leveldb",
            Self::Npm => "bloom-filters",
            Self::Orc => "orc",
            Self::Parquet => "parquet",
            Self::Poppy => "poppy",
            Self::Pybloomfilter => "pybloomfilter",
            Self::Pyprobables => "pyprobables",
            Self::Rbloom => "rbloom",
            Self::RedisBloom => "redisbloom",
            Self::RedisCuckoo => "redisbloom-cuckoo",
            Self::Redisson => "redisson",
            Self::RocksDb => "rocksdb",
            Self::Spark => "spark",
            Self::Valkey => "valkey-bloom",
        }
    }
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

/// How keys became bytes. Few files say it; their users must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Keys {
    /// The bytes themselves; text as UTF-8.
    Utf8,
    /// Text as UTF-16, little-endian (Guava's `unencodedCharsFunnel`).
    Utf16,
    /// Whole numbers as four bytes, little-endian.
    Int32,
    /// Whole numbers as eight bytes, little-endian.
    Int64,
    /// Whole numbers that are not negative, as eight bytes, little-endian.
    Uint64,
    /// Numbers as four bytes of IEEE 754, little-endian.
    Float32,
    /// Numbers as eight bytes of IEEE 754, little-endian.
    Float64,
    /// Numbers as Python's `hash()` of them, eight bytes, little-endian
    /// (pybloomfiltermmap3); whole numbers of any size.
    PythonNumber,
    /// Text as Python's `pickle.dumps` of it, by protocol 4.
    PythonPickle,
    /// Text as Rust's `Hash` of `str` has it: UTF-8, and a byte of ones.
    RustStr,
    /// Text in upper case (hex SHA-1 in CIRCL's hash list).
    Upper,
    /// Text in lower case.
    Lower,
}

impl Keys {
    /// Every way.
    pub const ALL: &[Self] = &[
        Self::Utf8,
        Self::Utf16,
        Self::Int32,
        Self::Int64,
        Self::Uint64,
        Self::Float32,
        Self::Float64,
        Self::PythonNumber,
        Self::PythonPickle,
        Self::RustStr,
        Self::Upper,
        Self::Lower,
    ];

    /// The name on the command line.
    ///
    /// ```
    /// assert_eq!(tamis_formats::Keys::Int64.name(), "int64");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "utf8",
            Self::Utf16 => "utf16",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Uint64 => "uint64",
            Self::Float32 => "float32",
            Self::Float64 => "float64",
            Self::PythonNumber => "python-number",
            Self::PythonPickle => "python-pickle",
            Self::RustStr => "rust-str",
            Self::Upper => "upper",
            Self::Lower => "lower",
        }
    }

    /// How many bytes every key has, if all have as many.
    ///
    /// ```
    /// assert_eq!(tamis_formats::Keys::Int64.value_len(), Some(8));
    /// assert_eq!(tamis_formats::Keys::Utf8.value_len(), None);
    /// ```
    pub const fn value_len(self) -> Option<usize> {
        match self {
            Self::Utf8 | Self::Utf16 | Self::Upper | Self::Lower => None,
            Self::PythonPickle | Self::RustStr => None,
            Self::Int32 | Self::Float32 => Some(4),
            Self::Int64 | Self::Uint64 | Self::Float64 | Self::PythonNumber => Some(8),
        }
    }

    pub(crate) const fn expected(self) -> &'static str {
        match self {
            Self::Utf8 | Self::Upper | Self::Lower => "any bytes",
            Self::Utf16 | Self::PythonPickle | Self::RustStr => "UTF-8 text",
            Self::Int32 => "a whole number of 32 bits",
            Self::Int64 => "a whole number of 64 bits",
            Self::Uint64 => "a whole number from 0 to 2^64 - 1",
            Self::Float32 | Self::Float64 => "a number",
            Self::PythonNumber => {
                "a number that Python can write, and not NaN, whose hash is another each time"
            }
        }
    }
}

impl fmt::Display for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Keys {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|keys| keys.name() == text);
        found.copied().ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|keys| keys.name()).collect();
            format!("expected one of {}, got {text:?}", names.join(", "))
        })
    }
}
