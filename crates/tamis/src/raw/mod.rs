//! The meaning of the bytes: headers, shapes and words, for filters stored elsewhere than in memory
//! and files, such as in a database.
//!
//! A filter is a [`Header`] and a body. The header has the [`Shape`]; the body is a slice of
//! little-endian [`Word`]s. A [`BlockedShape`] or a [`CountingShape`] gives a key's places, which
//! is enough to query and change a body anywhere; [`Draft`](crate::internals::Draft) makes a filter
//! from a header and a body.

// Geometry and kernels over slices of words, a folder for each kind: `shape.rs` is the geometry,
// `mod.rs` the kernels. Rates, files and memory owners are elsewhere.

pub(crate) mod blocked;
pub(crate) mod bloom;
pub(crate) mod cascade;
pub(crate) mod counting;
pub(crate) mod cuckoo;
pub(crate) mod explain;
pub(crate) mod fuse;
pub(crate) mod header;
pub(crate) mod isa;
pub(crate) mod layers;
pub(crate) mod layout;
#[cfg(test)]
mod model;
pub(crate) mod order;
#[cfg(test)]
mod order_model;
pub(crate) mod ribbon;
pub(crate) mod roomy;
pub(crate) mod shape;
pub(crate) mod sorted;
pub(crate) mod window;
pub(crate) mod word;

/// The primitives that `order` waits with.
mod sync {
    pub(crate) use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
    pub(crate) use std::sync::{Condvar, Mutex};

    /// How often a thread checks again before it sleeps.
    pub(crate) const SPINS: u32 = 140;

    /// Doesn't yield: on a busy machine a yielding thread comes back after all others, while a sleeping one is
    /// woken.
    pub(crate) fn pause() {
        std::hint::spin_loop();
    }
}

/// A number for a test: `usual`, or `few` under Miri, which is several hundred times slower.
#[cfg(test)]
pub(crate) const fn usual_or<T: Copy>(usual: T, few: T) -> T {
    if cfg!(miri) { few } else { usual }
}

pub use blocked::BlockedShape;
pub use bloom::BloomShape;
pub use cascade::CascadeShape;
pub use counting::CountingShape;
pub use cuckoo::CuckooShape;
pub use cuckoo::table::Entry as CuckooEntry;
pub use explain::{Cell, Explanation, Joined, Look, Slot, sum};
pub use fuse::FuseShape;
pub use header::{HEADER_LEN, Header};
#[doc(hidden)]
pub use isa::prefetch;
pub use layers::{GrowingLayer, GrowingShape};
pub use ribbon::RibbonShape;
pub use shape::Shape;
pub use window::WindowShape;
pub use word::{ReadOnly, Word};
