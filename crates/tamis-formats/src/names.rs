//! The names of formats and of key encodings.

use std::fmt;

/// Defines enums whose variants have names, with `ALL`, `name`, `Display` and
/// `FromStr`.
macro_rules! named {
    ($($(#[$doc:meta])* pub enum $enum:ident {
        $($(#[$of:meta])* $variant:ident = $name:literal,)*
    })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $enum {
            $($(#[$of])* $variant,)*
        }

        impl $enum {
            /// All variants.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name on the command line.
            ///
            /// ```
            /// use tamis_formats::{Format, Keys};
            /// assert_eq!(Format::Guava.name(), "guava");
            /// assert_eq!(Keys::Int64.name(), "int64");
            /// ```
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }

        impl fmt::Display for $enum {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }

        impl std::str::FromStr for $enum {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let found = Self::ALL.iter().find(|one| one.name() == text);
                found.copied().ok_or_else(|| {
                    let names: Vec<&str> = Self::ALL.iter().map(|one| one.name()).collect();
                    format!("expected one of {}, got {text:?}", names.join(", "))
                })
            }
        }
    )*};
}

named! {
    /// The known formats.
    pub enum Format {
        /// abloom, from `to_bytes`.
        Abloom = "abloom",
        /// Bitcoin's BIP 37.
        Bip37 = "bip37",
        /// Go's bits-and-blooms, in binary or JSON.
        BitsAndBlooms = "bits-and-blooms",
        /// A bit string written with SETBIT, without a header.
        Bitmap = "bitmap",
        /// Cassandra's `Filter.db`, from version 4 on.
        Cassandra = "cassandra",
        /// DCSO's bloom, the same as poppy's version 1.
        Dcso = "dcso",
        /// The crate fastbloom, as JSON.
        Fastbloom = "fastbloom",
        /// The crate and Python package fastbloom_rs, with the number of hashes before the bits.
        FastbloomRs = "fastbloom-rs",
        /// FastFilter's xor and binary fuse filters, from C, Go and Rust.
        FastFilter = "fastfilter",
        /// Guava, from `BloomFilter.writeTo`.
        Guava = "guava",
        /// A table of LevelDB.
        LevelDb = "leveldb",
        /// npm's bloom-filters, as JSON.
        Npm = "bloom-filters",
        /// npm's bloomfilter, as JSON.
        NpmBloomfilter = "bloomfilter",
        /// A column of an ORC file.
        Orc = "orc",
        /// Parquet's split-block filters: those of a column in a file, or a
        /// single one.
        Parquet = "parquet",
        /// poppy's version 2.
        Poppy = "poppy",
        /// pybloom_live, from `tofile` of both its classes.
        PybloomLive = "pybloom-live",
        /// pybloomfiltermmap3.
        Pybloomfilter = "pybloomfilter",
        /// pyprobables, from `BloomFilter.export`.
        Pyprobables = "pyprobables",
        /// rbloom, from `save`.
        Rbloom = "rbloom",
        /// RedisBloom's Bloom filter: DUMP, chunks, or in an RDB file.
        RedisBloom = "redisbloom",
        /// RedisBloom's cuckoo filter: DUMP, chunks, or in an RDB file.
        RedisCuckoo = "redisbloom-cuckoo",
        /// Redisson's bit set in Redis.
        Redisson = "redisson",
        /// A table of RocksDB.
        RocksDb = "rocksdb",
        /// Spark, from `BloomFilter.writeTo`.
        Spark = "spark",
        /// A filter from valkey-bloom.
        Valkey = "valkey-bloom",
    }

    /// How keys became bytes. Few files say it, so their users must know.
    pub enum Keys {
        /// The bytes themselves; text as UTF-8.
        Utf8 = "utf8",
        /// Text as UTF-16, little-endian (Guava's `unencodedCharsFunnel`).
        Utf16 = "utf16",
        /// Integers as four bytes, little-endian.
        Int32 = "int32",
        /// Integers as eight bytes, little-endian.
        Int64 = "int64",
        /// Non-negative integers as eight bytes, little-endian.
        Uint64 = "uint64",
        /// Numbers as four-byte IEEE 754, little-endian.
        Float32 = "float32",
        /// Numbers as eight-byte IEEE 754, little-endian.
        Float64 = "float64",
        /// Numbers as their `hash()` in Python, eight bytes, little-endian
        /// (pybloomfiltermmap3); integers may have any size.
        PythonNumber = "python-number",
        /// Text as pickled by Python's `pickle.dumps` with protocol 4.
        PythonPickle = "python-pickle",
        /// Text as hashed by Rust's `Hash` for `str`: UTF-8, followed by the
        /// byte 0xFF.
        RustStr = "rust-str",
        /// Text as written by Kryo 5's `writeClassAndObject` (Redisson's
        /// default codec).
        Kryo5 = "kryo5",
        /// Text as a JSON string written by Jackson, in quotes (Redisson's
        /// JsonJacksonCodec).
        Json = "json",
        /// Text in upper case (hex SHA-1 in CIRCL's hash list).
        Upper = "upper",
        /// Text in lower case.
        Lower = "lower",
    }

    /// The hashes of the versions of pybloomfiltermmap. Their files don't say
    /// which one they use.
    pub enum Hash {
        /// 64-bit MurmurHash3: version 0.3.15 and pybloomfiltermmap3.
        Murmur = "murmur",
        /// The same, truncated to 32 bits: versions 0.3.12 to 0.3.14.
        Murmur32 = "murmur32",
        /// The first 32 bits of SHA-512: versions 0.3.6 to 0.3.11.
        Sha512 = "sha512",
        /// Hsieh's SuperFastHash: versions 0.3.1 and 0.3.2.
        SuperFast = "superfast",
        /// Bernstein's hash: versions up to 0.2.0.
        Djb = "djb",
    }
}

impl Keys {
    /// The number of bytes of a key, if it is fixed.
    ///
    /// ```
    /// assert_eq!(tamis_formats::Keys::Int64.value_len(), Some(8));
    /// assert_eq!(tamis_formats::Keys::Utf8.value_len(), None);
    /// ```
    pub const fn value_len(self) -> Option<usize> {
        match self {
            Self::Utf8 | Self::Utf16 | Self::Upper | Self::Lower => None,
            Self::PythonPickle | Self::RustStr | Self::Kryo5 | Self::Json => None,
            Self::Int32 | Self::Float32 => Some(4),
            Self::Int64 | Self::Uint64 | Self::Float64 | Self::PythonNumber => Some(8),
        }
    }

    pub(crate) const fn expected(self) -> &'static str {
        match self {
            Self::Utf8 | Self::Upper | Self::Lower => "any bytes",
            Self::Utf16 | Self::PythonPickle | Self::RustStr | Self::Kryo5 | Self::Json => {
                "UTF-8 text"
            }
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
