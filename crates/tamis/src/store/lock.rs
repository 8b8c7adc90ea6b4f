//! Advisory locks on filter files.
//!
//! There are two kinds of writer. One loads, changes and saves: it holds the lock *exclusively* and
//! replaces the file by a rename. The others map the file and share it: they hold the lock
//! *shared*, and the last to leave clears the "open for writing" mark. So the two kinds never meet
//! on one file.

use crate::error::Error;
use crate::raw::header::{HEADER_LEN, Header};
use crate::store::mode::Readers;
use crate::store::replace::{Existing, is_at, open_regular, write_and_name};
use std::fs::{File, Metadata, TryLockError};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// An exclusive advisory lock on a filter file, to load, change and save it.
///
/// Without it, if two programs load, add and save at the same time, the later one overwrites the
/// keys of the other: a false "no".
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("seen.tamis");
/// use tamis::Blocked;
/// use tamis::internals::file::FileLock;
/// Blocked::new(1_000, 0.01)?.save_new(&path)?;
///
/// let mut lock = FileLock::acquire(&path)?; // waits for other writers
/// let seen = Blocked::load(&path)?;
/// seen.insert("key");
/// seen.save_under(&mut lock)?;
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug)]
pub struct FileLock {
    path: PathBuf,
    // Holds the lock, which ends when the file is closed.
    file: File,
    /// Whether the name of a saved file is on disk.
    pub(super) is_synced: bool,
}

impl FileLock {
    /// Waits until no other writer holds the file.
    pub fn acquire(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        Self::with(path, |file| file.lock().map_err(Error::io("locking", path)))
    }

    /// Fails with [`Error::Busy`] if another writer holds the file.
    pub fn try_acquire(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        Self::with(path, |file| match file.try_lock() {
            Ok(()) => Ok(()),
            Err(TryLockError::WouldBlock) => Err(Error::Busy { path: path.into() }),
            Err(TryLockError::Error(e)) => Err(Error::io("locking", path)(e)),
        })
    }

    fn with(path: &Path, lock: impl Fn(&File) -> Result<(), Error>) -> Result<Self, Error> {
        loop {
            let file = open_regular(path, false)?;
            check_lockable(path)?;
            lock(&file)?;
            // Otherwise the previous lock holder has renamed a new file over this one.
            if is_still(&file, path)? {
                return Ok(Self {
                    path: path.into(),
                    file,
                    is_synced: true,
                });
            }
        }
    }

    /// The locked file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The metadata of the locked file, even if its path now names another: a program that takes no
    /// locks may have replaced it.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("seen.tamis");
    /// use tamis::Blocked;
    /// use tamis::internals::file::FileLock;
    /// Blocked::new(1_000, 0.01)?.save_new(&path)?;
    /// let lock = FileLock::acquire(&path)?;
    /// assert_eq!(lock.metadata()?.len(), std::fs::metadata(&path).unwrap().len());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn metadata(&self) -> Result<Metadata, Error> {
        let path = &self.path;
        self.file.metadata().map_err(Error::io("reading", path))
    }

    /// Replaces the locked file. Locks the new one before it takes the old one's name, so that no
    /// other writer slips in between.
    pub(crate) fn replace(
        &mut self,
        readers: Readers,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<(), Error> {
        let (file, synced) = write_and_name(&self.path, Existing::Replace, readers, write)?;
        // The new file has the name, even if that isn't on disk.
        self.file = file;
        self.is_synced = synced.is_ok();
        synced
    }

    /// Whether a filter with this header is already saved.
    pub(crate) fn holds(&self, old: Option<&[u8; HEADER_LEN]>, new: &Header) -> bool {
        self.is_synced && old == Some(&new.encode())
    }

    /// Switches to the lock of a file that has replaced this one.
    pub(crate) fn adopt(&mut self, file: File) {
        self.file = file;
    }

    pub(crate) const fn file(&self) -> &File {
        &self.file
    }

    /// The file's first bytes; `None` if there are too few for a header.
    pub(crate) fn header(&mut self) -> Option<[u8; HEADER_LEN]> {
        let mut header = [0; HEADER_LEN];
        self.file.seek(SeekFrom::Start(0)).ok()?;
        self.file.read_exact(&mut header).ok()?;
        Some(header)
    }
}

/// Locks work differently on Windows: they block readers too, even in this process, and an
/// exclusive lock can't become a shared one. So we refuse operations that need locks.
pub(super) fn check_lockable(path: &Path) -> Result<(), Error> {
    if cfg!(unix) {
        return Ok(());
    }
    Err(Error::io("locking", path)(io::Error::new(
        io::ErrorKind::Unsupported,
        "files can't be locked against other writers on this system; \
         save the filter under a new name, or keep it in Redis",
    )))
}

pub(super) fn is_still(file: &File, path: &Path) -> Result<bool, Error> {
    is_at(file, path).map_err(Error::io("reading", path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Operations that need a lock change nothing on systems without them.
    #[cfg(not(unix))]
    #[test]
    fn what_needs_a_lock_is_refused() {
        use crate::{AnyFilter, Blocked};
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f.tamis");
        let filter = Blocked::new(1_000, 0.01).unwrap();
        filter.insert("key");
        filter.save(&path).unwrap();
        let bytes = fs::read(&path).unwrap();
        let refused = [
            FileLock::acquire(&path).map(drop),
            FileLock::try_acquire(&path).map(drop),
            Blocked::share(&path).map(drop),
            filter.save(&path),
        ];
        for refused in refused {
            let refused = refused.unwrap_err().to_string();
            assert!(
                refused.contains("save the filter under a new name"),
                "{refused}"
            );
        }
        assert_eq!(fs::read(&path).unwrap(), bytes);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert!(AnyFilter::open(&path).unwrap().contains("key"));
        assert!(Blocked::load(&path).unwrap().contains("key"));
    }

    #[cfg(unix)]
    #[test]
    fn a_lock_excludes_and_follows_a_rename() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        fs::write(&path, "1").unwrap();
        let lock = FileLock::acquire(&path).unwrap();
        assert!(matches!(
            FileLock::try_acquire(&path),
            Err(Error::Busy { .. })
        ));
        let (_, synced) =
            write_and_name(&path, Existing::Replace, Readers::AsUsual, |_| Ok(())).unwrap();
        synced.unwrap();
        // The lock on the new file is independent of the old one's.
        drop(FileLock::try_acquire(&path).unwrap());
        drop(lock);
    }
}
