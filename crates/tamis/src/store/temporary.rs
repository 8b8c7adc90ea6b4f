//! Folders that are removed with their process.

use std::fs::File;
use std::io;
use std::path::Path;

/// A folder for temporary files. The process locks it while it lives, so that the next one can
/// remove the folders of killed processes, and only those.
///
/// ```
/// use tamis::internals::file::TemporaryFolder;
/// let folder = TemporaryFolder::new("tamis-example-")?;
/// std::fs::write(folder.path().join("file"), "content")?;
/// let path = folder.path().to_owned();
/// drop(folder);
/// assert!(!path.exists());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct TemporaryFolder {
    folder: tempfile::TempDir,
    /// `None` on systems that can't lock folders; no folders are removed there, either.
    _lock: Option<File>,
}

impl TemporaryFolder {
    /// A new folder in the system's folder for temporary files. Its name begins with
    /// `prefix`; abandoned ones with the same prefix are removed.
    pub fn new(prefix: &str) -> io::Result<Self> {
        loop {
            let folder = tempfile::Builder::new().prefix(prefix).tempdir()?;
            let lock = File::open(folder.path()).ok();
            let lock = lock.filter(|opened| opened.lock().is_ok());
            // Another process may have removed it before we took the lock.
            if folder.path().exists() {
                #[cfg(unix)]
                sweep(folder.path(), prefix);
                return Ok(Self {
                    folder,
                    _lock: lock,
                });
            }
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Tries to remove this user's folders next to `mine` whose processes are dead.
#[cfg(unix)]
fn sweep(mine: &Path, prefix: &str) {
    use std::os::unix::fs::MetadataExt;
    let Ok(me) = mine.metadata().map(|about| about.uid()) else {
        return;
    };
    let parent = mine.parent().unwrap_or(mine);
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(prefix.as_bytes())
            && (entry.metadata()).is_ok_and(|about| about.is_dir() && about.uid() == me)
            && let Ok(folder) = File::open(entry.path())
            && folder.try_lock().is_ok()
        {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
