//! Files: atomic replacement, advisory locks, and the shared writable mapping.
//!
//! Two kinds of writer exist. One that loads, works and saves holds the lock
//! *exclusively* and replaces the file by a rename. Those that map the file
//! share it: they hold the lock *shared*, and the last one to leave takes the
//! "open for writing" mark away. So the two can never meet on one file.

use crate::error::Error;
use crate::hasher::SecretKey;
use crate::kind::Kind;
use crate::raw::layers;
use crate::raw::shape::Shape;
use crate::store::header::{
    BODY_CHECKSUM_WORD, BOOT_WORDS, BootId, HEADER_LEN, Header, KEYS_UNKNOWN, KEYS_WORD,
};
use memmap2::{MmapOptions, MmapRaw};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How long a mapping waits for a lock that another process holds briefly.
const PATIENCE: Duration = Duration::from_secs(5);

/// An exclusive advisory lock on a filter file, for load-work-save.
///
/// Without it two programs that each load, add and save would each keep only
/// their own keys: a false "no" for the other's.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("seen.tamis");
/// use tamis::{Blocked, FileLock};
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
    // Held for its lock, which goes when the file is closed.
    file: File,
}

impl FileLock {
    /// Waits until no other writer has the file.
    pub fn acquire(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        Self::with(path, |file| file.lock().map_err(Error::io("locking", path)))
    }

    /// Fails with [`Error::Busy`] when another writer has the file.
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
            let file = File::open(path).map_err(Error::io("opening", path))?;
            lock(&file)?;
            // The writer we waited for has renamed a new file over this one.
            if is_still(&file, path)? {
                return Ok(Self {
                    path: path.into(),
                    file,
                });
            }
        }
    }

    /// The locked file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the locked file. The new one is locked before it takes the
    /// old one's name, so that no other writer slips in between.
    pub(crate) fn replace(
        &mut self,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<(), Error> {
        self.file = write_atomically(&self.path, Existing::Replace, |file| {
            file.lock()?;
            write(file)
        })?;
        Ok(())
    }
}

#[cfg(unix)]
fn is_still(file: &File, path: &Path) -> Result<bool, Error> {
    use std::os::unix::fs::MetadataExt;
    let ours = file.metadata().map_err(Error::io("reading", path))?;
    match fs::metadata(path) {
        Ok(there) => Ok((ours.dev(), ours.ino()) == (there.dev(), there.ino())),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(Error::io("reading", path)(e)),
    }
}

#[cfg(not(unix))]
fn is_still(_: &File, _: &Path) -> Result<bool, Error> {
    // Elsewhere an open file can't be replaced by a rename.
    Ok(true)
}

/// What happens when the destination exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existing {
    Keep,
    Replace,
}

/// Writes a file that appears whole or not at all: a temporary file beside it,
/// synced, then renamed over it (or linked, where it must not replace).
pub(crate) fn write_atomically(
    path: &Path,
    existing: Existing,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<File, Error> {
    let mut replacement = Replacement::begin(path, existing)?;
    write(replacement.file()).map_err(Error::io("writing", path))?;
    replacement.place()
}

/// A file on its way to a name. Dropped before it is [placed](Self::place), it
/// leaves no trace.
#[derive(Debug)]
pub(crate) struct Replacement {
    file: Option<File>,
    path: PathBuf,
    target: PathBuf,
    temporary: PathBuf,
    existing: Existing,
}

impl Replacement {
    pub(crate) fn begin(path: &Path, existing: Existing) -> Result<Self, Error> {
        // A symbolic link stays a link; the file it names is replaced.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if existing == Existing::Keep && target.exists() {
            // Said again by the link below, but before the work is done.
            return Err(Error::io("creating", path)(
                io::ErrorKind::AlreadyExists.into(),
            ));
        }
        let (file, temporary) = create_beside(&target).map_err(Error::io("creating", path))?;
        Ok(Self {
            file: Some(file),
            path: path.to_owned(),
            target,
            temporary,
            existing,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What is written before it gets its name.
    pub(crate) fn file(&mut self) -> &mut File {
        self.file.as_mut().expect("until it is placed")
    }

    /// Gives the file its name, once all of it is on disk.
    pub(crate) fn place(mut self) -> Result<File, Error> {
        let file = self.file.take().expect("until it is placed");
        let written = match fs::metadata(&self.target) {
            Ok(old) => file.set_permissions(old.permissions()),
            Err(_) => Ok(()),
        }
        .and_then(|()| file.sync_all());
        let placed = written.and_then(|()| match self.existing {
            Existing::Replace => fs::rename(&self.temporary, &self.target),
            Existing::Keep => fs::hard_link(&self.temporary, &self.target),
        });
        placed.map_err(Error::io("writing", &self.path))?;
        sync_dir(folder(&self.target)).map_err(Error::io("syncing the folder of", &self.path))?;
        Ok(file)
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        // After a rename it is not there; else its content lives on under the
        // other name, or is of no use.
        let _ = fs::remove_file(&self.temporary);
    }
}

fn folder(file: &Path) -> &Path {
    match file.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    }
}

fn create_beside(target: &Path) -> io::Result<(File, PathBuf)> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let dir = folder(target);
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    loop {
        let unique = NEXT.fetch_add(1, Relaxed);
        let path = dir.join(format!(".{name}.{}-{unique}.tmp", std::process::id()));
        match OpenOptions::new()
            .write(true)
            .read(true)
            .create_new(true)
            .open(&path)
        {
            Ok(file) => return Ok((file, path)),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
}

#[cfg(unix)]
fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

#[cfg(not(unix))]
fn sync_dir(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Gives the file its full length on disk now: a mapping of a sparse file
/// would meet a full disk as a signal in the middle of an insert.
#[cfg(target_os = "linux")]
pub(crate) fn reserve(file: &File, len: u64) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let len = libc::off_t::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
    // SAFETY: a plain system call on a descriptor that `file` keeps open.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, len) } {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn reserve(file: &File, len: u64) -> io::Result<()> {
    file.set_len(len)
}

/// Reads and checks the header of an open file; `file` is left at the body.
pub(crate) fn read_header(
    mut file: &File,
    path: &Path,
    key: Option<&SecretKey>,
) -> Result<Header, Error> {
    let read_error = || Error::io("reading", path);
    let meta = file.metadata().map_err(read_error())?;
    if meta.is_dir() {
        return Err(read_error()(io::ErrorKind::IsADirectory.into()));
    }
    let mut bytes = Vec::with_capacity(HEADER_LEN);
    (&mut file)
        .take(HEADER_LEN as u64)
        .read_to_end(&mut bytes)
        .map_err(read_error())?;
    let header = Header::decode(&bytes, key)?;
    // Asked after the header was read: a growing file gets longer first.
    let meta = file.metadata().map_err(read_error())?;
    header.check_file_len(meta.len())?;
    Ok(header)
}

/// The length of the file as its header says, for a mapping.
pub(crate) fn len_here(header: &Header, path: &Path) -> Result<usize, Error> {
    usize::try_from(header.body_len() + HEADER_LEN as u64)
        .map_err(|_| Error::io("mapping", path)(io::ErrorKind::OutOfMemory.into()))
}

/// Refuses a file that was open for writing when the machine went down.
pub(crate) fn check_clean(header: &Header, path: &Path) -> Result<(), Error> {
    match header.state.open_under {
        Some(boot) if boot != this_boot() || boot == UNKNOWN_BOOT => Err(Error::Unclean {
            path: Some(path.into()),
        }),
        _ => Ok(()),
    }
}

/// A file mapped for writing, shared with the other processes that map it.
#[derive(Debug)]
pub(crate) struct SharedMap {
    map: MmapRaw,
    file: File,
    path: PathBuf,
    /// Whether other processes may map the file for writing, too.
    joinable: bool,
    left: bool,
}

/// A part of a mapped file behind the end of its [`SharedMap`]. It must go
/// first: the mark in the file is taken away last.
#[derive(Debug)]
pub(crate) struct Tail {
    map: MmapRaw,
    path: PathBuf,
}

impl Tail {
    pub(crate) fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping starts at a multiple of 64 in the file, lives as
        // long as `self`, and is accessed through atomics only.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().cast(), self.map.len() / 8) }
    }

    pub(crate) fn sync(&self) -> Result<(), Error> {
        self.map.flush().map_err(Error::io("syncing", &self.path))
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        let _ = self.sync();
    }
}

impl SharedMap {
    pub(crate) fn open(path: &Path, key: Option<&SecretKey>) -> Result<(Header, Self), Error> {
        let patience = Instant::now() + PATIENCE;
        loop {
            match Self::try_open(path, key) {
                // Replaced meanwhile, or somebody is just coming or leaving.
                Err(Error::Busy { .. }) if Instant::now() < patience => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                done => return done,
            }
        }
    }

    fn try_open(path: &Path, key: Option<&SecretKey>) -> Result<(Header, Self), Error> {
        let (file, alone) = open_shared(path)?;
        let mut header = read_header(&file, path, key)?;
        header.check_shareable()?;
        // Beside a living writer a mark that names no boot is that writer's.
        if alone || header.state.open_under != Some(UNKNOWN_BOOT) {
            check_clean(&header, path)?;
        }
        if alone && header.state.open_under.is_some() {
            // A writer of this boot died. Its bits are all here, its count
            // may be short.
            header.state.keys = KEYS_UNKNOWN;
        }
        // Another process would not see the layers that this one adds.
        let joinable = header.shape.kind() != Kind::Growing;
        if !joinable && !alone {
            return Err(Error::Busy { path: path.into() });
        }
        let len = len_here(&header, path)?;
        let map = MmapOptions::new()
            .len(len)
            .map_raw(&file)
            .map_err(Error::io("mapping", path))?;
        let mut shared = Self {
            map,
            file,
            path: path.into(),
            joinable,
            left: false,
        };
        if let Shape::Growing(shape) = header.shape {
            layers::check(&shape, header.rate, shared.body())
                .inspect_err(|_| shared.left = true)?;
            // What a writer that died did not finish.
            let shortened = shared.file.set_len(len as u64);
            shortened.map_err(Error::io("shortening", path))?;
        }
        shared.mark_open(&header, alone)?;
        Ok((header, shared))
    }

    /// On disk before any key is added, or a power loss could leave a file
    /// that lacks pages and looks whole.
    fn mark_open(&self, header: &Header, alone: bool) -> Result<(), Error> {
        if alone {
            self.store(KEYS_WORD, header.state.keys);
            self.store(BODY_CHECKSUM_WORD, 0);
            self.store_boot(this_boot());
            self.map
                .flush_range(0, HEADER_LEN)
                .map_err(Error::io("syncing", &self.path))?;
            // Others may join now, where they may at all. To share a lock that
            // was exclusive is to let it go for a moment, in which the file
            // may be replaced.
            if self.joinable
                && (self.file.try_lock_shared().is_err() || !is_still(&self.file, &self.path)?)
            {
                return Err(Error::Busy {
                    path: self.path.clone(),
                });
            }
        }
        Ok(())
    }

    /// All words of the file.
    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is page-aligned, lives as long as `self`, and is
        // accessed through atomics only, here and in other processes.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().cast(), self.map.len() / 8) }
    }

    pub(crate) fn body(&self) -> &[AtomicU64] {
        &self.words()[HEADER_LEN / 8..]
    }

    /// The count of keys, shared with the other processes.
    pub(crate) fn keys(&self) -> &AtomicU64 {
        &self.words()[KEYS_WORD]
    }

    fn store(&self, word: usize, value: u64) {
        self.words()[word].store(value.to_le(), Relaxed);
    }

    fn store_boot(&self, boot: BootId) {
        for (word, bytes) in BOOT_WORDS.into_iter().zip(boot.as_chunks().0) {
            self.store(word, u64::from_le_bytes(*bytes));
        }
    }

    /// Makes the file longer, by zeros, and maps those. They count when
    /// [`commit`](Self::commit) has said so.
    pub(crate) fn append(&self, body_len: u64, more: u64) -> Result<Tail, Error> {
        let end = HEADER_LEN as u64 + body_len;
        let map = || {
            // What an earlier attempt may have left.
            self.file.set_len(end)?;
            reserve(&self.file, end + more)?;
            MmapOptions::new()
                .offset(end)
                .len(usize::try_from(more).map_err(|_| io::ErrorKind::OutOfMemory)?)
                .map_raw(&self.file)
        };
        let map = map().map_err(|e| {
            let _ = self.file.set_len(end);
            Error::io("adding a layer to", &self.path)(e)
        })?;
        Ok(Tail {
            map,
            path: self.path.clone(),
        })
    }

    /// Replaces the header in one write, which the death of this process
    /// can't tear.
    pub(crate) fn commit(&self, header: &Header) -> Result<(), Error> {
        let mut header = *header;
        header.state.open_under = Some(this_boot());
        let mut file = &self.file;
        file.seek(SeekFrom::Start(0))
            .and_then(|_| file.write_all(&header.encode()))
            .map_err(Error::io("writing", &self.path))
    }

    /// Waits until everything added so far is on disk.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        self.map.flush().map_err(Error::io("syncing", &self.path))
    }

    /// Leaves; the last writer to leave takes the mark away.
    pub(crate) fn close(mut self) -> Result<(), Error> {
        self.leave()
    }

    fn leave(&mut self) -> Result<(), Error> {
        if std::mem::replace(&mut self.left, true) {
            return Ok(());
        }
        self.sync()?;
        // Alone in one step, or else an opener in between would take the mark
        // for that of a dead writer and doubt the count. Where others have the
        // file, giving up our share first: of two that leave at once, the
        // later then finds itself alone.
        let mut alone = self.file.try_lock();
        if alone.is_err() {
            self.file
                .unlock()
                .map_err(Error::io("unlocking", &self.path))?;
            alone = self.file.try_lock();
        }
        match alone {
            Ok(()) => {
                self.store_boot(BootId::default());
                let flushed = self.map.flush_range(0, HEADER_LEN);
                self.file
                    .unlock()
                    .map_err(Error::io("unlocking", &self.path))?;
                flushed.map_err(Error::io("syncing", &self.path))
            }
            Err(TryLockError::WouldBlock) => Ok(()),
            Err(TryLockError::Error(e)) => Err(Error::io("locking", &self.path)(e)),
        }
    }
}

impl Drop for SharedMap {
    fn drop(&mut self) {
        // An error leaves the mark, which is the safe side.
        let _ = self.leave();
    }
}

/// The file under a lock, and whether no other process has it mapped.
fn open_shared(path: &Path) -> Result<(File, bool), Error> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .map_err(Error::io("opening for writing", path))?;
    let alone = match file.try_lock() {
        Err(TryLockError::WouldBlock) => file.try_lock_shared().map(|()| false),
        alone => alone.map(|()| true),
    };
    match alone {
        Ok(alone) if is_still(&file, path)? => Ok((file, alone)),
        Ok(_) | Err(TryLockError::WouldBlock) => Err(Error::Busy { path: path.into() }),
        Err(TryLockError::Error(e)) => Err(Error::io("locking", path)(e)),
    }
}

/// The mark where the boot can't be told: such a file is always refused once
/// its writers are gone.
const UNKNOWN_BOOT: BootId = [0xff; 16];

/// This run of this machine's kernel.
fn this_boot() -> BootId {
    let Ok(text) = fs::read_to_string("/proc/sys/kernel/random/boot_id") else {
        return UNKNOWN_BOOT;
    };
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    match u128::from_str_radix(&digits, 16) {
        Ok(id) if id != 0 => id.to_be_bytes(),
        _ => UNKNOWN_BOOT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file_and_no_litter() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        fs::write(&path, "old").unwrap();
        let result = write_atomically(&path, Existing::Replace, |_| {
            Err(io::ErrorKind::StorageFull.into())
        });
        assert!(result.is_err());
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn keep_refuses_what_exists() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        write_atomically(&path, Existing::Keep, |_| Ok(())).unwrap();
        let again = write_atomically(&path, Existing::Keep, |_| Ok(()));
        assert!(again.unwrap_err().to_string().contains("exists"));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

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
        write_atomically(&path, Existing::Replace, |_| Ok(())).unwrap();
        // The new file under the old name is free while the old one is held.
        drop(FileLock::try_acquire(&path).unwrap());
        drop(lock);
    }
}
