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
//! # Which kind
//!
//! | | for | size | adding | removing |
//! |---|---|---|---|---|
//! | [`Blocked`] | a known number of keys: the default | small | `&self`, from many threads | |
//! | [`Bloom`] | the same, as in the textbook | small | `&self`, from many threads | |
//! | [`Counting`] | keys that come and go, in any number of copies | four times `Blocked` | `&self`, from many threads | yes |
//! | [`Cuckoo`] | keys that come and go | small | `&mut`, an error when full | yes |
//! | [`Growing`] | an unknown number of keys | up to 2.5 times `Blocked` | `&mut` | |
//! | [`Window`] | a stream: keys of the last hours, or the last so many | 2.3 times `Blocked` | `&self`, at a moment | forgets by itself |
//! | [`Fuse`] | a finished list, fast | smaller | | |
//! | [`Ribbon`] | a finished list | smallest | | |
//! | [`Cascade`] | a block list with an allow list: never wrong about a key on either | smaller | | |
//! | [`AnyFilter`] | a kind that is known at run time | | `&mut` | where the kind can |
//!
//! # What they can do
//!
//! | | `Bloom`, `Blocked` | `Counting` | `Cuckoo` | `Growing` | `Fuse`, `Ribbon`, `Cascade` |
//! |---|---|---|---|---|---|
//! | `new`, `with_hasher`, `from_plan`, `template`, `clear` | yes | yes | yes | yes | `build` |
//! | `contains`, `contains_many`, `contains_all`, `contains_hash`, `contains_hashes` | yes | yes | yes | yes | yes |
//! | `insert`, `insert_many`, `insert_all`, `insert_hash`, `insert_hashes` | yes | yes | `Result` | `Result` | |
//! | `insert_mut`, `insert_many_shared` | yes | yes | | | |
//! | `remove`, `remove_many`, `count` | | yes | yes | | |
//! | `union_with` | yes | yes | while there is room | while there is room | |
//! | `intersect_with` | yes | yes | yes | | |
//! | `keys`, `rate_now`, `bytes`, `hasher`, `header` | yes | yes | yes | yes | yes |
//! | `save`, `load`, `open`, `to_bytes`, `from_bytes`, `view` | yes | yes | yes | yes | yes |
//! | `share`: a file mapped for adding | many processes | many processes | | one process | |
//!
//! A [`Window`] has the methods of `Bloom` that ask and save, and `insert_at`, `contains_at` and their like, which take a
//! [`Moment`].
//!
//! The methods of all kinds but `Growing` are those of [`Filter`].
//!
//! # And around them
//!
//! - [`Plan`] reports size and rate before anything is built.
//! - [`ListBuilder`] builds finished lists that are larger than memory.
//! - [`Guard`] puts a filter in front of a slow store.
//! - [`FileIndex`](index::FileIndex) finds the files, of many, that can contain a
//!   key.
//! - [`Open`] has options for opening a filter.
//!
//! Keys are bytes, hashed once to 128 bits ([`Hasher`]); use
//! [`Hasher::keyed`] when an adversary may choose the keys. Filters live on the
//! heap, in a memory-mapped file, or in bytes that you own ([`Filter`]).
//!
//! # Features
//!
//! - `files` (on by default): everything that has a path, and the module `file`. Without it
//!   the crate compiles for `wasm32-unknown-unknown`, with filters, lists and indexes
//!   in memory and as bytes.
//! - `random` (part of `files`): `SecretKey::random`. Without it, callers bring
//!   the secrets of keyed filters, and a cascade needs a keyed hasher.
//! - `wasm-js`: `random` in browsers and Node.js.
//! - `url`: keys that are URLs can be normalised (`KeyRule::url`).
//! - `url-by-caller`: the same rule, but the caller has normalised the keys, by other means than the crate `url`.
//! - `text`: filters whose keys are units of text can be opened (`KeyRule::text`); the caller makes the units.
//! - `plain-heap`: all memory comes from the global allocator, and can be listed
//!   and moved (`allocations`, `relocate`), for servers that account for it.

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
mod moment;
#[cfg(doctest)]
mod pages;
pub mod plan;
pub mod raw;
#[cfg(feature = "files")]
mod secret_file;
mod store;

pub use error::Error;
pub use filter::any::AnyFilter;
pub use filter::counting::Counting;
pub use filter::cuckoo::Cuckoo;
pub use filter::draft::Draft;
pub use filter::growing::Growing;
pub use filter::in_order::InOrder;
pub use filter::keys::KeyCount;
pub use filter::kinds::{Blocked, Bloom, Cascade, Fuse, Ribbon};
pub use filter::open::Open;
pub use filter::shell::Filter;
pub use filter::window::{Generation, Window};
pub use guard::{FalseAlarms, Guard, GuardCounts};
pub use hash::Hash;
pub use hasher::{Hasher, SecretKey};
pub use key_rule::{KeyRule, TextRule, TextUnit};
pub use kind::Kind;
pub use list::{Both, Contradiction, ListBuilder};
pub use moment::{Moment, calendar};
pub use plan::Plan;
pub use plan::growing::Expansion;
pub use raw::window::{At, Renewal, Span, WindowOptions};
pub use store::body::{Body, Bytes, Map};

// Their home is `file`.
#[cfg(feature = "files")]
#[doc(hidden)]
pub use file::{Existing, FileLock, Readers, Replacement, Unplaced, open_regular};

/// The examples of README.md compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
