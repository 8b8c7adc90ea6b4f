//! The formats, and the ways to make bytes of keys, by name.

use std::fmt;

/// Enums whose variants have names, with `ALL`, `name`, `Display` and `FromStr`.
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
            /// Every one.
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
    /// The formats that are known here.
    pub enum Format {
        /// abloom's `to_bytes`.
        Abloom = "abloom",
        /// Bitcoin's BIP 37.
        Bip37 = "bip37",
        /// Go's bits-and-blooms, binary or JSON.
        BitsAndBlooms = "bits-and-blooms",
        /// A string of bits as SETBIT makes it, and nothing else.
        Bitmap = "bitmap",
        /// Cassandra's `Filter.db`, from version 4 on.
        Cassandra = "cassandra",
        /// DCSO's bloom, and poppy's version 1.
        Dcso = "dcso",
        /// The crate fastbloom, as JSON.
        Fastbloom = "fastbloom",
        /// The crate and Python package fastbloom_rs, with the number of hashes before the bits.
        FastbloomRs = "fastbloom-rs",
        /// FastFilter's xor and binary fuse filters, of C, Go and Rust.
        FastFilter = "fastfilter",
        /// Guava's `BloomFilter.writeTo`.
        Guava = "guava",
        /// A table of LevelDB.
        LevelDb = "leveldb",
        /// npm's bloom-filters, as JSON.
        Npm = "bloom-filters",
        /// npm's bloomfilter, as JSON.
        NpmBloomfilter = "bloomfilter",
        /// A column of an ORC file.
        Orc = "orc",
        /// Parquet's split-block filters: a column's in a file, or one by itself.
        Parquet = "parquet",
        /// poppy's version 2.
        Poppy = "poppy",
        /// pybloom_live's `tofile`, of both its classes.
        PybloomLive = "pybloom-live",
        /// pybloomfiltermmap3.
        Pybloomfilter = "pybloomfilter",
        /// pyprobables' `BloomFilter.export`.
        Pyprobables = "pyprobables",
        /// rbloom's `save`.
        Rbloom = "rbloom",
        /// RedisBloom's Bloom filter: DUMP, chunks, or in an RDB file.
        RedisBloom = "redisbloom",
        /// RedisBloom's cuckoo filter: DUMP, chunks, or in an RDB file.
        RedisCuckoo = "redisbloom-cuckoo",
        /// Redisson's bit set in Redis.
        Redisson = "redisson",
        /// A table of RocksDB.
        RocksDb = "rocksdb",
        /// Spark's `BloomFilter.writeTo`.
        Spark = "spark",
        /// A filter out of valkey-bloom.
        Valkey = "valkey-bloom",
    }

    /// How keys became bytes. Few files say it; their users must know.
    pub enum Keys {
        /// The bytes themselves; text as UTF-8.
        Utf8 = "utf8",
        /// Text as UTF-16, little-endian (Guava's `unencodedCharsFunnel`).
        Utf16 = "utf16",
        /// Whole numbers as four bytes, little-endian.
        Int32 = "int32",
        /// Whole numbers as eight bytes, little-endian.
        Int64 = "int64",
        /// Whole numbers that are not negative, as eight bytes, little-endian.
        Uint64 = "uint64",
        /// Numbers as four bytes of IEEE 754, little-endian.
        Float32 = "float32",
        /// Numbers as eight bytes of IEEE 754, little-endian.
        Float64 = "float64",
        /// Numbers as Python's `hash()` of them, eight bytes, little-endian
        /// (pybloomfiltermmap3); whole numbers of any size.
        PythonNumber = "python-number",
        /// Text as Python's `pickle.dumps` of it, by protocol 4.
        PythonPickle = "python-pickle",
        /// Text as Rust's `Hash` of `str` has it: UTF-8, and a byte of ones.
        RustStr = "rust-str",
        /// Text as Kryo 5's `writeClassAndObject` has it (Redisson's default codec).
        Kryo5 = "kryo5",
        /// Text as Jackson writes it in JSON, in quotes (Redisson's JsonJacksonCodec).
        Json = "json",
        /// Text in upper case (hex SHA-1 in CIRCL's hash list).
        Upper = "upper",
        /// Text in lower case.
        Lower = "lower",
    }

    /// How the versions of pybloomfiltermmap hash. Their files don't say it.
    pub enum Hash {
        /// MurmurHash3 of 64 bits: version 0.3.15 and pybloomfiltermmap3.
        Murmur = "murmur",
        /// The same, cut to 32 bits: versions 0.3.12 to 0.3.14.
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
    /// How many bytes every key has, if all have as many.
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
