//! Files that appear whole or not at all: written under another name, synced, then renamed.
//!
//! A process locks its temporary files while it lives. So the next process that writes to the
//! folder can recognise the files of a dead one, and removes only those. On Windows, where a lock
//! blocks readers too, nothing is locked and nothing is removed.
//!
//! Only its owner may read an incomplete file: see [`mode`].

use crate::error::Error;
use crate::store::mode::{self, Readers};
use std::collections::HashSet;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};
use tempfile::NamedTempFile;

/// The names of temporary files. They don't contain the final name, which may already be as long as
/// the system allows.
const PREFIX: &str = ".tamis-";
const SUFFIX: &str = ".tmp";

/// What to do if the destination exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Keep it, and fail.
    Keep,
    /// Replace it, if it is a regular file.
    Replace,
}

/// Writes a file that appears whole or not at all.
pub(crate) fn write_atomically(
    path: &Path,
    existing: Existing,
    readers: Readers,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<File, Error> {
    let (file, synced) = write_and_name(path, existing, readers, write)?;
    synced.map(|()| file)
}

/// The same, but also returns the file if only syncing its folder failed, because the file has its
/// name.
pub(crate) fn write_and_name(
    path: &Path,
    existing: Existing,
    readers: Readers,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(File, Result<(), Error>), Error> {
    let mut replacement = Replacement::begin(path, existing)?.readers(readers);
    write(replacement.file()).map_err(Error::io("writing", path))?;
    replacement.settle()?;
    replacement.name().map_err(|unplaced| unplaced.error)
}

/// A file without its final name. If it is dropped before it is [placed](Self::place), it leaves no
/// trace.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("list.txt");
/// use std::io::Write;
/// use tamis::internals::file::{Existing, Replacement};
/// let mut list = Replacement::begin(&path, Existing::Replace)?;
/// list.file().write_all(b"all of it").unwrap();
/// assert!(!path.exists());
/// list.place()?;
/// assert_eq!(std::fs::read(&path).unwrap(), b"all of it");
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug)]
pub struct Replacement {
    file: NamedTempFile,
    path: PathBuf,
    target: PathBuf,
    existing: Existing,
    readers: Readers,
}

/// The reason why a file didn't get its name, and the file.
#[derive(Debug)]
pub struct Unplaced {
    /// What went wrong.
    pub error: Error,
    /// The file, unless it got its name despite the error.
    pub file: Option<Replacement>,
}

impl Replacement {
    /// Prepares a file for this name. A symbolic link stays a link; the file it points to is
    /// replaced. Anything else that isn't a regular file is an error.
    pub fn begin(path: impl AsRef<Path>, existing: Existing) -> Result<Self, Error> {
        let path = path.as_ref();
        Self::check(path, existing)?;
        let creating = || Error::io("creating", path);
        let target = resolve(path).map_err(creating())?;
        sweep(folder(&target));
        let file = create_in(folder(&target)).map_err(creating())?;
        Ok(Self {
            file,
            path: path.to_owned(),
            target,
            existing,
            readers: Readers::AsUsual,
        })
    }

    /// Checks in advance whether [`begin`](Self::begin) would accept this name.
    pub fn check(path: impl AsRef<Path>, existing: Existing) -> Result<(), Error> {
        let path = path.as_ref();
        let refuse = |kind: io::ErrorKind| Err(Error::io("creating", path)(kind.into()));
        if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            return refuse(io::ErrorKind::IsADirectory);
        }
        match fs::metadata(path) {
            Ok(metadata) => {
                check_regular(&metadata).map_err(Error::io("replacing", path))?;
                match existing {
                    Existing::Keep => refuse(io::ErrorKind::AlreadyExists),
                    Existing::Replace => Ok(()),
                }
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(e) => Err(Error::io("creating", path)(e)),
        }
    }

    /// Whether this is the name of a temporary file, which programs that walk folders should skip.
    ///
    /// ```
    /// use tamis::internals::file::Replacement;
    /// assert!(Replacement::is_temporary("logs/.tamis-Xy12ab.tmp"));
    /// assert!(!Replacement::is_temporary("logs/web.log"));
    /// ```
    pub fn is_temporary(path: impl AsRef<Path>) -> bool {
        let name = path.as_ref().file_name().unwrap_or_default();
        let name = name.as_encoded_bytes();
        name.starts_with(PREFIX.as_bytes()) && name.ends_with(SUFFIX.as_bytes())
    }

    /// Sets who may read the file; the default is [`Readers::AsUsual`].
    pub fn readers(mut self, readers: Readers) -> Self {
        self.readers = readers;
        self
    }

    /// Its final name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file to write to.
    pub fn file(&mut self) -> &mut File {
        self.file.as_file_mut()
    }

    /// Gives the file its name once it is on disk. Returns the file, still locked.
    pub fn place(self) -> Result<File, Error> {
        self.try_place().map_err(|unplaced| unplaced.error)
    }

    /// Like [`place`](Self::place), but a failure returns the written file, for
    /// [`keep_partial`](Self::keep_partial). For example, another program may have taken the name.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("list.txt");
    /// use std::io::Write;
    /// use tamis::internals::file::{Existing, Replacement};
    /// let mut list = Replacement::begin(&path, Existing::Keep)?;
    /// list.file().write_all(b"ours").unwrap();
    /// std::fs::write(&path, "theirs").unwrap();
    /// let unplaced = list.try_place().unwrap_err();
    /// let kept = unplaced.file.unwrap().keep_partial()?;
    /// assert_eq!(std::fs::read(&kept).unwrap(), b"ours");
    /// assert_eq!(std::fs::read(&path).unwrap(), b"theirs");
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn try_place(self) -> Result<File, Box<Unplaced>> {
        if let Err(error) = self.settle() {
            let file = Some(self);
            return Err(Box::new(Unplaced { error, file }));
        }
        let (file, synced) = self.name()?;
        // It has its name, so there is nothing to keep.
        synced.map_err(|error| Box::new(Unplaced { error, file: None }))?;
        Ok(file)
    }

    /// Gives a complete file its name. Returns the file, and whether the folder is on disk.
    fn name(mut self) -> Result<(File, Result<(), Error>), Box<Unplaced>> {
        let syncing = || Error::io("syncing the folder of", &self.path);
        // Open it now, while a failure still changes nothing.
        let dir = match open_dir(folder(&self.target)) {
            Ok(dir) => dir,
            Err(error) => {
                let error = syncing()(error);
                let file = Some(self);
                return Err(Box::new(Unplaced { error, file }));
            }
        };
        let placed = match self.existing {
            Existing::Replace => self.file.persist(&self.target),
            Existing::Keep => self.file.persist_noclobber(&self.target),
        };
        match placed {
            Ok(file) => Ok((file, sync_dir(&dir).map_err(syncing()))),
            Err(e) => {
                let error = Error::io("writing", &self.path)(e.error);
                self.file = e.file;
                let file = Some(self);
                Err(Box::new(Unplaced { error, file }))
            }
        }
    }

    /// Checks the file that it will replace, sets permissions and syncs.
    fn settle(&self) -> Result<(), Error> {
        if let Some(old) = self.replaced() {
            check_regular(&old).map_err(Error::io("replacing", &self.path))?;
        }
        self.let_readers_in()
            .and_then(|()| self.file.as_file().sync_all())
            .map_err(Error::io("writing", &self.path))
    }

    /// Only complete files may be readable by others.
    fn let_readers_in(&self) -> io::Result<()> {
        let file = self.file.as_file();
        match self.replaced() {
            Some(old) => mode::keep(file, &old, self.readers),
            None => mode::as_usual(file, folder(&self.target), temporary(), self.readers),
        }
    }

    /// The file that it will replace, if any.
    fn replaced(&self) -> Option<Metadata> {
        match self.existing {
            Existing::Replace => fs::metadata(&self.target).ok(),
            Existing::Keep => None,
        }
    }

    /// Keeps the bytes written so far under another name: `NAME.partial`, or `NAME.partial-2` if
    /// that exists. `NAME` itself is unchanged. For a failed run whose result is still useful.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("list.txt");
    /// use std::io::Write;
    /// use tamis::internals::file::{Existing, Replacement};
    /// let mut list = Replacement::begin(&path, Existing::Replace)?;
    /// list.file().write_all(b"some of it").unwrap();
    /// let kept = list.keep_partial()?;
    /// assert!(kept.ends_with("list.txt.partial") && !path.exists());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn keep_partial(self) -> Result<PathBuf, Error> {
        let keeping = || Error::io("keeping what was written of", &self.path);
        // Ignore errors: its owner can read it anyway.
        let _ = self.let_readers_in();
        self.file.as_file().sync_all().map_err(keeping())?;
        let mut file = self.file;
        let mut number = 1;
        loop {
            let name = partial_name(&self.target, number);
            match file.persist_noclobber(&name) {
                Ok(_) => return Ok(name),
                Err(e) if e.error.kind() == io::ErrorKind::AlreadyExists => file = e.file,
                Err(e) => return Err(keeping()(e.error)),
            }
            number += 1;
        }
    }
}

/// Sets a file's length and allocates its blocks now. In a sparse mapped file, a full disk would
/// raise a signal in the middle of an insert.
#[cfg(target_os = "linux")]
pub fn reserve(file: &File, len: u64) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let len = libc::off_t::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
    // SAFETY: a system call without pointers, on a descriptor that `file` keeps open.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, len) } {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

/// Sets a file's length.
#[cfg(not(target_os = "linux"))]
pub fn reserve(file: &File, len: u64) -> io::Result<()> {
    if file.metadata()?.len() < len {
        file.set_len(len)?;
    }
    Ok(())
}

fn partial_name(target: &Path, number: u32) -> PathBuf {
    // In bytes; the limit of most file systems.
    const LONGEST_NAME: usize = 255;
    let end = match number {
        1 => ".partial".to_owned(),
        number => format!(".partial-{number}"),
    };
    let mut name = target.file_name().unwrap_or_default().to_owned();
    if name.len() + end.len() > LONGEST_NAME {
        name = format!("tamis-{}", std::process::id()).into();
    }
    name.push(end);
    folder(target).join(name)
}

/// Opens a regular file for reading, and optionally for writing. Opening a device may have side
/// effects, and opening a pipe waits for a partner.
pub fn open_regular(path: &Path, write: bool) -> Result<File, Error> {
    let action = if write {
        "opening for writing"
    } else {
        "opening"
    };
    let opening = || Error::io(action, path);
    fs::metadata(path)
        .and_then(|metadata| check_regular(&metadata))
        .map_err(opening())?;
    let mut options = OpenOptions::new();
    options.read(true).write(write);
    // A pipe may have taken the name since. Miri doesn't support the flag.
    #[cfg(all(unix, not(miri)))]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    let file = options.open(path).map_err(opening())?;
    file.metadata()
        .and_then(|metadata| check_regular(&metadata))
        .map_err(opening())?;
    Ok(file)
}

fn check_regular(metadata: &Metadata) -> io::Result<()> {
    if metadata.is_file() {
        return Ok(());
    }
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        "expected a regular file, got a device, a pipe or a socket",
    ))
}

/// Where the file is, or will be: follows symbolic links, also dangling ones.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    // Linux's limit.
    const MOST_LINKS: usize = 40;
    let mut target = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&target) {
            Ok(next) => target = folder(&target).join(next),
            Err(_) => {
                let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
                return Ok(fs::canonicalize(folder(&target))?.join(name));
            }
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// The folder that a file is in.
fn folder(file: &Path) -> &Path {
    match file.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    }
}

/// Creates temporary files that only their owner can read.
fn temporary() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX);
    builder
}

/// A locked temporary file.
fn create_in(dir: &Path) -> io::Result<NamedTempFile> {
    loop {
        let file = temporary().tempfile_in(dir)?;
        // If files can't be locked, other processes can't mistake it for an abandoned one, either.
        #[cfg(unix)]
        let _ = file.as_file().lock();
        // Another process may have removed it before we took the lock.
        if is_at(file.as_file(), file.path())? {
            return Ok(file);
        }
    }
}

/// Removes the temporary files of dead processes, only once per folder, because it may hold
/// millions of files. Failures are ignored.
fn sweep(dir: &Path) {
    static SWEPT: LazyLock<Mutex<HashSet<PathBuf>>> = LazyLock::new(Mutex::default);
    let first = SWEPT
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(dir.to_owned());
    if !first || !cfg!(unix) {
        return;
    }
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if Replacement::is_temporary(entry.path()) {
            let _ = remove_if_dead(&entry.path());
        }
    }
}

fn remove_if_dead(path: &Path) -> Result<(), Error> {
    let file = open_regular(path, false)?;
    // A live process holds the lock. One that is waiting for it checks the name afterwards.
    if file.try_lock().is_ok() && is_at(&file, path).is_ok_and(|same| same) {
        fs::remove_file(path).map_err(Error::io("removing", path))?;
    }
    Ok(())
}

/// Whether the path still names this file.
#[cfg(unix)]
pub(crate) fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let ours = file.metadata()?;
    match fs::metadata(path) {
        Ok(there) => Ok((ours.dev(), ours.ino()) == (there.dev(), there.ino())),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

#[cfg(not(unix))]
pub(crate) fn is_at(_: &File, _: &Path) -> io::Result<bool> {
    // Only used for locked files, which this system doesn't have.
    Ok(true)
}

#[cfg(unix)]
fn open_dir(dir: &Path) -> io::Result<File> {
    File::open(dir)
}

#[cfg(unix)]
fn sync_dir(dir: &File) -> io::Result<()> {
    dir.sync_all()
}

/// Folders can't be opened on this system.
#[cfg(not(unix))]
fn open_dir(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(not(unix))]
fn sync_dir((): &()) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests;
