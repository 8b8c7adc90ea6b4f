//! Which file lies at a path: enough to see that another one does.

use std::fs::Metadata;
use std::time::SystemTime;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Device and number.
    identity: (u64, u64),
    len: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    /// Whether both are of one file, at different times perhaps.
    pub(super) fn is_same_file(&self, other: &Self) -> bool {
        self.identity == other.identity
    }
}

impl From<&Metadata> for Stamp {
    fn from(file: &Metadata) -> Self {
        Self {
            identity: identity(file),
            len: file.len(),
            modified: file.modified().ok(),
        }
    }
}

#[cfg(unix)]
fn identity(file: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (file.dev(), file.ino())
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> (u64, u64) {
    (0, 0)
}
