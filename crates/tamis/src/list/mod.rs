//! Building finished lists: static filters from all their keys at once, in memory or on disk.

mod builder;
mod keyset;
mod lists;
mod parts;
#[cfg(feature = "files")]
mod spill;

pub use builder::ListBuilder;
pub use lists::{Both, Contradiction};
