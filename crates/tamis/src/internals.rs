//! Internals that the crates of this repository share and users don't need: the bytes of filters,
//! files and locks, plans for servers. They may change in any release, so dependent crates pin the
//! exact version.

pub use crate::filter::draft::Draft;
pub use crate::filter::in_order::InOrder;
pub use crate::guard::FalseAlarms;
pub use crate::key_rule::{TextRule, TextUnit};
pub use crate::list::{Both, Contradiction};
pub use crate::moment::calendar;
pub use crate::plan::growing::Expansion;

/// Files that appear whole or not at all, proof that they are unchanged, and their words in memory.
#[cfg(feature = "files")]
pub mod file {
    pub use crate::secret_file::{mode_for_everyone, read_small};
    pub use crate::store::lock::FileLock;
    pub use crate::store::mode::Readers;
    pub use crate::store::replace::{Existing, Replacement, Unplaced, open_regular, reserve};
    pub use crate::store::stamp::Stamp;
    pub use crate::store::temporary::TemporaryFolder;
    pub use crate::store::words::Words;
}

/// Numbers behind a plan, and plans for servers.
pub mod plan {
    pub use crate::plan::*;
}

/// The meaning of the bytes: headers, shapes and words.
pub mod raw {
    pub use crate::raw::*;
}
