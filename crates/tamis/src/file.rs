//! Files that appear whole or not at all, locks on them, evidence that they are
//! unchanged, and their words in memory.

pub use crate::secret_file::{mode_for_everyone, read_small};
pub use crate::store::lock::FileLock;
pub use crate::store::mode::Readers;
pub use crate::store::replace::{Existing, Replacement, Unplaced, open_regular, reserve};
pub use crate::store::stamp::Stamp;
pub use crate::store::temporary::TemporaryFolder;
pub use crate::store::words::Words;
