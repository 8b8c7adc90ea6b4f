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
//! # The kinds
//!
//! | kind | for | size | `insert` | `remove`, `count` | `union_with` | `intersect_with` | `share` |
//! |---|---|---|---|---|---|---|---|
//! | [`Blocked`] | a known number of keys: the default | 1 | `&self` | | yes | yes | many processes |
//! | [`Bloom`] | the same, as in the textbook | 1 | `&self` | | yes | yes | many processes |
//! | [`Counting`] | keys that come and go, in any number of copies | 4 | `&self` | yes | yes | yes | many processes |
//! | [`Cuckoo`] | keys that come and go | 1 | `&mut`, `Result` | yes | while there is room | yes | |
//! | [`Growing`] | an unknown number of keys | to 2.5 | `&mut`, `Result` | | while there is room | | one process |
//! | [`Window`] | keys of the last hours, or the last so many | 2.3 | `&self`, at a moment | forgets by itself | windows of time | | many processes |
//! | [`Fuse`] | a finished list, fast | under 1 | `build` | | | | |
//! | [`Ribbon`] | a finished list, smallest | under 1 | `build` | | | | |
//! | [`Cascade`] | a block list with an allow list, with no mistake on either | under 1 | `build` | | | | |
//! | [`AnyFilter`] | a kind known at run time | | `&mut`, `Result` | where it can | where it can | where it can | where it can |
//!
//! Four rules hold for all of them:
//!
//! - A key is anything that is [`Key`]: bytes, or a [`struct@Hash`] if it is already hashed.
//! - `insert` and `insert_many` on `&self` work while other threads add, without locks, and never
//!   fail. `insert_mut` and `insert_many_mut` need exclusive access and are several times as fast.
//!   Kinds that may run out of room take `&mut self` and return a `Result`.
//! - `contains_many`, `insert_many` and `remove_many` take slices and write the answer for
//!   `keys[i]` to index `i` of another; much faster than a loop on a filter larger than the cache.
//! - `open` maps a file for reading, `load` and `from_bytes` copy to the heap and verify, `share`
//!   maps a file for adding, `view` borrows bytes, `save` replaces a file as a whole or not at all.
//!
//! # And around them
//!
//! - [`Plan`] computes size and rate before anything is built.
//! - [`ListBuilder`] builds finished lists that are larger than memory.
//! - [`Guard`](guard::Guard) puts a filter in front of a slow store.
//! - [`FileIndex`](index::FileIndex) finds which of many files can contain a key.
//! - [`Open`] has options for opening a filter.
//!
//! Keys are bytes, hashed once to 128 bits ([`Hasher`]); use
//! [`Hasher::keyed`] when an adversary may choose the keys. Filters live on the
//! heap, in a memory-mapped file, or in bytes that you own ([`Filter`]).
//!
//! # Features
//!
//! - `files` (on by default): everything that takes a path. Without it the crate compiles for
//!   `wasm32-unknown-unknown`, with filters, lists and indexes in memory and as bytes.
//! - `random` (part of `files`): `SecretKey::random`. Without it, callers provide the secrets of
//!   keyed filters, and a cascade needs a keyed hasher.
//! - `wasm-js`: `random` in browsers and Node.js.
//! - `url`: keys that are URLs can be normalised (`KeyRule::url`).
//! - `url-by-caller`: the same rule, but the caller normalises the keys without the crate `url`.
//! - `text`: filters whose keys are units of text can be opened (`KeyRule::text`); the caller makes the units.
//! - `plain-heap`: all memory comes from the global allocator and can be listed and moved
//!   (`allocations`, `relocate`), for servers that track their memory.

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
#[cfg(not(any(target_pointer_width = "64", target_arch = "wasm32")))]
compile_error!(
    "tamis supports 64-bit targets and wasm32: elsewhere a 64-bit word of a mapped file may be \
     read in two pieces, while another process changes it"
);

mod error;
#[cfg(feature = "files")]
pub mod file;
mod filter;
pub mod guard;
mod hash;
mod hasher;
pub mod index;
#[doc(hidden)]
pub mod internals;
mod key;
mod key_rule;
mod kind;
mod list;
mod moment;
#[cfg(doctest)]
mod pages;
mod plan;
mod raw;
#[cfg(feature = "files")]
mod secret_file;
mod store;
pub mod window;

pub use error::Error;
pub use filter::any::AnyFilter;
pub use filter::counting::Counting;
pub use filter::cuckoo::Cuckoo;
pub use filter::growing::Growing;
pub use filter::keys::KeyCount;
pub use filter::kinds::{Blocked, Bloom, Cascade, Fuse, Ribbon};
pub use filter::open::Open;
pub use filter::shell::Filter;
pub use filter::window::Window;
pub use hash::Hash;
pub use hasher::{Hasher, SecretKey};
pub use key::{Id, Key};
pub use key_rule::KeyRule;
pub use kind::Kind;
pub use list::ListBuilder;
pub use moment::Moment;
pub use plan::Plan;

/// Who owns a filter's bytes.
pub mod body {
    pub use crate::store::body::{Body, Bytes, Map};
}

/// The examples of README.md compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
