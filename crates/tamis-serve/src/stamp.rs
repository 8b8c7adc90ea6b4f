//! Identifies the file at a path well enough to notice a replacement.

use std::fs::Metadata;
use std::time::{Duration, SystemTime};

/// Longer than a clock tick of file systems whose times have fractions of seconds.
pub(crate) const TICK: Duration = Duration::from_millis(20);
/// The same for file systems with whole seconds.
const COARSE_TICK: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Device and inode.
    identity: (u64, u64),
    len: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    /// Whether both are of the same file, perhaps at different times.
    pub(crate) fn is_same_file(&self, other: &Self) -> bool {
        self.identity == other.identity
    }

    /// Whether the file was written so recently that another change now could leave the same stamp.
    pub(crate) fn is_fresh(&self) -> bool {
        let Some(modified) = self.modified else {
            return false;
        };
        let since_1970 = modified.duration_since(SystemTime::UNIX_EPOCH);
        let is_coarse = since_1970.is_ok_and(|time| time.subsec_nanos() == 0);
        let tick = if is_coarse { COARSE_TICK } else { TICK };
        // A time in the future doesn't count: the clock may have been set back.
        modified.elapsed().is_ok_and(|age| age < tick)
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

    fn stamp(modified: Option<SystemTime>) -> Stamp {
        Stamp {
            identity: (1, 2),
            len: 3,
            modified,
        }
    }

    /// Truncates to whole seconds.
    fn seconds_of(time: SystemTime) -> SystemTime {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        SystemTime::UNIX_EPOCH + Duration::from_secs(since.as_secs())
    }

    #[test]
    fn what_was_written_just_now_is_fresh() {
        let now = SystemTime::now();
        let took = |time: Duration| now.elapsed().is_ok_and(|age| age >= time);
        let fraction = Duration::from_nanos(1);
        // Unless this test has taken longer than a tick.
        assert!(stamp(Some(now)).is_fresh() || took(TICK));
        assert!(!stamp(Some(seconds_of(now) - 2 * TICK + fraction)).is_fresh());
        // Whole seconds suggest a coarse clock.
        assert!(stamp(Some(seconds_of(now))).is_fresh() || took(COARSE_TICK / 2));
        assert!(!stamp(Some(seconds_of(now) - COARSE_TICK)).is_fresh());
        // After the clock was set back, a file must still be accepted.
        assert!(!stamp(Some(now + Duration::from_secs(3600))).is_fresh());
        assert!(!stamp(None).is_fresh());
    }
}
