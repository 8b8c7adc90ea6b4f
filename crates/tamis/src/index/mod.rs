//! Which of many files can hold the key? One filter per entry, all in one file: [`FileIndex`]
//! queries it, [`IndexBuilder`] makes it.
//!
//! An index is written once and replaced as a whole.

mod build;
mod entry;
mod format;
mod pages;
mod query;
mod read;

pub use build::IndexBuilder;
pub use entry::{EntryFilters, EntryKeys, IndexOptions};
pub use read::{Entry, FileIndex, IndexInfo, Spec};

pub use crate::store::stamp::Stamp;
