//! Other systems' filter files, opened and queried in place.
//!
//! ```
//! use tamis_formats::{Create, Format};
//! let mut guava = tamis_formats::create(Create::guava(), 1_000, 0.01)?;
//! guava.insert(b"key")?;
//! let file = guava.to_bytes(); // what a Java program reads
//!
//! let opened = tamis_formats::open(&file, Format::Guava)?;
//! assert!(opened.contains(b"key"));
//! # Ok::<(), tamis_formats::Error>(())
//! ```
//!
//! Few formats identify themselves, and fewer say how their keys became bytes.
//! [`open`] recognises formats by magic numbers and exact lengths, and asks for
//! more with an error if that isn't enough; [`Keys`] turns text written by
//! people into bytes.

mod about;
mod bits;
mod bytes;
mod detect;
mod error;
mod facts;
mod fields;
mod filter;
mod foreign;
mod format;
mod hash;
mod keys;
mod layers;
mod names;
mod plain;
mod plain_file;
mod probe;
mod protobuf;
mod slices;
mod thrift;
mod wrap;

/// RedisBloom's filters as kept by a server; use [`open`] for files.
pub mod redisbloom {
    pub use crate::format::redis::chain::Chain;
    pub use crate::format::redis::cuckoo::Cuckoo;
    pub use crate::format::redis::rdb::{Sink, Source};
}

/// valkey-bloom's filters as kept by a server.
pub mod valkeybloom {
    pub use crate::format::valkey_chain::Chain;
}

pub use bytes::Bytes;
pub use error::Error;
pub use facts::Facts;
pub use foreign::{Create, Foreign, Hint, bitmap, create, may_be, open, open_owned, redisson};
pub use format::bitmap::{BitmapHash, BitmapShape};
pub use format::guava::Strategy;
pub use format::parquet::{
    Addition as ParquetAddition, Chunk as ParquetChunk, NewFilter as ParquetFilter,
    chunks as parquet_chunks, with_filters as parquet_with_filters,
};
pub use format::poppy::Optimise;
pub use format::pybloomfilter;
pub use format::redisson::Shape as RedissonShape;
pub use names::{Format, Keys};
pub use wrap::Wrap;

/// Compiles the examples of README.md.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
