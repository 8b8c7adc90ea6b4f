//! Have I seen this key before? Filters that answer from a few bits of memory
//! per key: never with a false "no", and with a false "yes" only at the promised
//! rate.
//!
//! ```
//! use tamis::Blocked;
//!
//! // A million keys, one false "yes" in a hundred: 1.2 MB.
//! let seen = Blocked::new(1_000_000, 0.01)?;
//! assert!(seen.insert("https://example.org/"));   // new
//! assert!(!seen.insert("https://example.org/"));  // seen
//! seen.save(std::env::temp_dir().join("seen.tamis"))?;
//! # std::fs::remove_file(std::env::temp_dir().join("seen.tamis")).unwrap();
//! # Ok::<(), tamis::Error>(())
//! ```
//!
//! - [`Blocked`] is the default kind: one or two cache misses per key.
//! - [`Bloom`] is the textbook filter.
//! - [`Counting`] and [`Cuckoo`] can remove keys. A counting filter accepts any
//!   number of copies of a key and takes four times the memory; a cuckoo filter
//!   is small.
//! - [`Growing`] is for an unknown number of keys.
//! - [`Fuse`] and [`Ribbon`] are smaller, for finished lists; [`Cascade`] is a
//!   block list with an allow list, never wrong about a key on either.
//! - [`Guard`] puts a filter in front of a slow store.
//! - [`FileIndex`](index::FileIndex) finds the files, of many, that can contain a
//!   key.
//! - [`AnyFilter`] opens filters of every kind.
//! - [`Plan`] reports size and rate before anything is built.
//!
//! Keys are bytes, hashed once to 128 bits ([`Hasher`]); use
//! [`Hasher::keyed`] when an adversary may choose the keys. Filters live on the
//! heap, in a memory-mapped file, or in bytes that you own ([`Filter`]).

#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(missing_docs)]
#![cfg_attr(
    not(feature = "files"),
    allow(dead_code, unreachable_pub, reason = "used for files")
)]
#[cfg(not(target_has_atomic = "64"))]
compile_error!(
    "tamis reads and writes 64-bit words that threads and processes share: \
     it needs a target with 64-bit atomic instructions"
);

mod error;
#[cfg(feature = "files")]
pub mod file;
mod filter;
mod guard;
mod hash;
mod hasher;
pub mod index;
mod key_rule;
mod kind;
mod list;
#[cfg(doctest)]
mod pages;
pub mod plan;
pub mod raw;
mod store;

pub use error::Error;
pub use filter::any::AnyFilter;
pub use filter::counting::Counting;
pub use filter::cuckoo::Cuckoo;
pub use filter::draft::Draft;
pub use filter::growing::Growing;
pub use filter::keys::KeyCount;
pub use filter::kinds::{Blocked, Bloom, Cascade, Fuse, Ribbon};
pub use filter::open::Open;
pub use filter::shell::Filter;
pub use guard::{FalseAlarms, Guard, GuardCounts};
pub use hash::Hash;
pub use hasher::{Hasher, SecretKey};
pub use key_rule::KeyRule;
pub use kind::Kind;
pub use list::{Both, Contradiction, ListBuilder};
pub use plan::Plan;
pub use plan::growing::Expansion;
pub use store::body::{Body, Bytes, Map};

// Their home is `file`.
#[cfg(feature = "files")]
#[doc(hidden)]
pub use file::{Existing, FileLock, Readers, Replacement, Unplaced};

/// The examples of README.md compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
