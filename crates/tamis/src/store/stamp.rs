//! Proof that a file is still the one that was read.

use std::fs::Metadata;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A file's metadata, to detect later changes: its size, the times of its last modification and
/// last change, and its inode number.
///
/// Programs can't set the time of the last change (Unix `ctime`), so it also reveals a replacement
/// of the same size and modification time. Other systems use the creation time instead, and inode
/// 0.
///
/// If a file was written at about the time it was read, it could be written again without a visible
/// difference, because file system clocks tick. Such a stamp is [racy](Self::is_racy) and
/// [proves](Self::proves) nothing.
///
/// ```
/// use std::time::SystemTime;
/// use tamis::internals::file::Stamp;
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("file.log");
/// # std::fs::write(&path, "a line").unwrap();
/// # std::thread::sleep(std::time::Duration::from_millis(50));
/// let began = SystemTime::now();
/// let before = Stamp::of(&std::fs::metadata(&path)?);
/// // ... read the file ...
/// let after = Stamp::of(&std::fs::metadata(&path)?);
/// let stamp = before.after_reading(&after, began); // goes into the index
///
/// let now = Stamp::of(&std::fs::metadata(&path)?);
/// assert!(stamp.proves(&now));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    size: u64,
    /// In nanoseconds since 1970.
    modified: i64,
    changed: i64,
    inode: u64,
    racy: bool,
}

/// File system clocks advance by 10 ms at most, if their times have fractions of seconds ...
const TICK: Duration = Duration::from_millis(20);
/// ... and by 2 seconds if they have none.
const COARSE_TICK: Duration = Duration::from_secs(2);

const SECOND: i64 = 1_000_000_000;

impl Stamp {
    /// The stamp of a file as it is now. Take the metadata from the open file
    /// ([`File::metadata`](std::fs::File::metadata)), so that it belongs to the file being read.
    #[cfg(unix)]
    pub fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        let time = |seconds: i64, nanos: i64| seconds.saturating_mul(SECOND).saturating_add(nanos);
        Self {
            size: metadata.size(),
            modified: time(metadata.mtime(), metadata.mtime_nsec()),
            changed: time(metadata.ctime(), metadata.ctime_nsec()),
            inode: metadata.ino(),
            racy: false,
        }
    }

    /// The stamp of a file as it is now.
    #[cfg(not(unix))]
    pub fn of(metadata: &Metadata) -> Self {
        Self {
            size: metadata.len(),
            modified: metadata.modified().map_or(0, nanos),
            changed: metadata.created().map_or(0, nanos),
            inode: 0,
            racy: false,
        }
    }

    /// A stamp from known values; times are in nanoseconds since 1970.
    pub const fn new(size: u64, modified: i64, changed: i64, inode: u64) -> Self {
        Self {
            size,
            modified,
            changed,
            inode,
            racy: false,
        }
    }

    /// The stamp to record for a file that was read: `self` was taken before reading it, `after`
    /// when done, and `began` is a time before the reading. The result is racy if the file changed
    /// in between, or so shortly before that a later change could carry the same times.
    pub fn after_reading(self, after: &Self, began: SystemTime) -> Self {
        // Every write sets the time of change. On systems without it, use the time of modification,
        // which programs can set.
        let last = if cfg!(unix) {
            self.changed
        } else {
            self.modified
        };
        let tick = match last % SECOND {
            0 => COARSE_TICK,
            _ => TICK,
        };
        let settled = nanos(began).saturating_sub(tick.as_nanos() as i64);
        Self {
            racy: self.racy || self != *after || last >= settled,
            ..self
        }
    }

    /// Marks the stamp racy: use it if you know a reason why the file could change without a
    /// visible difference.
    pub const fn racy(self) -> Self {
        Self { racy: true, ..self }
    }

    /// Whether the file could have changed without a visible difference.
    pub const fn is_racy(&self) -> bool {
        self.racy
    }

    /// Whether the file, now with the stamp `now`, looks the same as when this stamp was recorded.
    /// For a [racy](Self::is_racy) stamp that proves nothing.
    pub fn is_like(&self, now: &Self) -> bool {
        Self {
            racy: now.racy,
            ..*self
        } == *now
    }

    /// Whether the file, now with the stamp `now`, is certainly unchanged since this stamp was
    /// recorded.
    pub fn proves(&self, now: &Self) -> bool {
        !self.racy && self == now
    }

    /// The file's size in bytes.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// When it was last modified, in nanoseconds since 1970.
    pub const fn modified(&self) -> i64 {
        self.modified
    }

    /// When it was last changed, in nanoseconds since 1970.
    pub const fn changed(&self) -> i64 {
        self.changed
    }

    /// Its inode number.
    pub const fn inode(&self) -> u64 {
        self.inode
    }

    pub(crate) const fn encode(&self) -> [u64; 4] {
        [
            self.size,
            self.modified.cast_unsigned(),
            self.changed.cast_unsigned(),
            self.inode,
        ]
    }

    pub(crate) const fn decode([size, modified, changed, inode]: [u64; 4], racy: bool) -> Self {
        Self {
            size,
            modified: modified.cast_signed(),
            changed: changed.cast_signed(),
            inode,
            racy,
        }
    }
}

fn nanos(time: SystemTime) -> i64 {
    let nanos = |duration: Duration| i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => nanos(since),
        Err(before) => -nanos(before.duration()),
    }
}
