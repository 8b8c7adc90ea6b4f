//! Which file lies at a path: enough to see that another one does.

use std::fs::Metadata;
use std::time::{Duration, SystemTime};

/// Longer than the clocks of file systems take to tick.
const TICK: Duration = Duration::from_millis(20);

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

    /// Whether the file was written so short a time ago that another change now could leave the
    /// same stamp.
    pub(super) fn is_fresh(&self) -> bool {
        let age = |modified| SystemTime::now().duration_since(modified);
        let age = self.modified.and_then(|modified| age(modified).ok());
        age.is_some_and(|age| age < TICK)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_just_now_is_fresh() {
        let stamp = |modified| Stamp {
            identity: (1, 2),
            len: 3,
            modified,
        };
        let now = SystemTime::now();
        // Until this test has taken as long as a tick.
        assert!(stamp(Some(now)).is_fresh() || now.elapsed().is_ok_and(|age| age >= TICK));
        assert!(!stamp(Some(now - TICK)).is_fresh());
        // A clock that was set back must not keep a file from being taken.
        assert!(!stamp(Some(now + Duration::from_secs(3600))).is_fresh());
        assert!(!stamp(None).is_fresh());
    }
}
