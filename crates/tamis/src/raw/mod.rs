//! What the bytes mean: headers, shapes and words, for those who keep a filter
//! elsewhere than in memory or a file of this crate, as in a database.
//!
//! A filter is a [`Header`] and a body. The header has the [`Shape`]; the body
//! is a slice of little-endian [`Word`]s. What a [`BlockedShape`] or a
//! [`CountingShape`] says of a key is enough to ask and change a body that
//! lies anywhere; [`Draft`](crate::Draft) makes a filter of one that was
//! brought here.

// Geometry and kernels over slices of words, one kind a file. No rate, no file
// and no owner of memory is known here.

pub(crate) mod blocked;
pub(crate) mod bloom;
pub(crate) mod cascade;
pub(crate) mod counting;
pub(crate) mod cuckoo;
pub(crate) mod fuse;
pub(crate) mod header;
pub(crate) mod isa;
pub(crate) mod layers;
pub(crate) mod layout;
pub(crate) mod ribbon;
pub(crate) mod roomy;
pub(crate) mod shape;
pub(crate) mod sorted;
pub(crate) mod word;

pub use blocked::BlockedShape;
pub use bloom::BloomShape;
pub use cascade::CascadeShape;
pub use counting::CountingShape;
pub use cuckoo::CuckooShape;
pub use cuckoo::table::Entry as CuckooEntry;
pub use fuse::FuseShape;
pub use header::{HEADER_LEN, Header};
#[doc(hidden)]
pub use isa::prefetch;
pub use layers::{GrowingLayer, GrowingShape};
pub use ribbon::RibbonShape;
pub use shape::Shape;
pub use word::{ReadOnly, Word};
