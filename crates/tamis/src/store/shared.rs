//! A file mapped for writing, next to other processes.

#[cfg(test)]
mod model;

use crate::error::Error;
use crate::kind::Kind;
use crate::raw::header::{
    BODY_CHECKSUM_WORD, BOOT_WORDS, BootId, HEADER_LEN, Header, KEYS_UNKNOWN, KEYS_WORD, is_marked,
};
use crate::raw::layers;
use crate::raw::shape::Shape;
use crate::raw::word::{SharedWord, Word};
use crate::store::check::{Terms, verify};
use crate::store::lock::{check_lockable, is_still};
use crate::store::replace::{open_regular, reserve};
use crate::store::words::Words;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Release},
    fence,
};
use std::time::{Duration, Instant};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// How long a mapping waits for a lock that another process holds briefly.
const PATIENCE: Duration = Duration::from_secs(5);

/// A body up to this size is summed up whenever a writer that maps it comes or goes, which takes a
/// few milliseconds. For a larger one, that would cost what mapping saves.
const SUMMED_AT_ONCE: u64 = 16 << 20;

/// Reads the header of an open file, and checks it by `sound`; `file` is left at the body.
pub(crate) fn read_header(
    mut file: &File,
    path: &Path,
    sound: impl Fn(&[u8]) -> Result<Header, Error>,
) -> Result<Header, Error> {
    let read_error = || Error::io("reading", path);
    let read = || {
        let mut bytes = Vec::with_capacity(HEADER_LEN);
        file.seek(SeekFrom::Start(0))
            .and_then(|_| (&mut file).take(HEADER_LEN as u64).read_to_end(&mut bytes))
            .map_err(read_error())?;
        Ok(bytes)
    };
    let header = settled(read, sound, || {
        std::thread::sleep(Duration::from_millis(1));
    })?;
    // The layers that the header counts are seen as they were before it was written.
    fence(Acquire);
    // Asked after the header was read: a growing file gets longer first.
    let meta = file.metadata().map_err(read_error())?;
    header.check_file_len(meta.len())?;
    Ok(header)
}

/// How often a header is read that is marked and seems damaged.
const LOOKS: u32 = 20;

/// A header that a writer may be changing. A write that replaces it isn't one step for readers,
/// nor is a mark of two words, so they may see half of either: what seems damaged is read again
/// if it is marked.
pub(crate) fn settled(
    mut read: impl FnMut() -> Result<Vec<u8>, Error>,
    sound: impl Fn(&[u8]) -> Result<Header, Error>,
    pause: impl Fn(),
) -> Result<Header, Error> {
    for _ in 1..LOOKS {
        let bytes = read()?;
        match sound(&bytes) {
            Err(Error::Corrupt { .. } | Error::Unclean { .. }) if is_marked(&bytes) => pause(),
            done => return done,
        }
    }
    sound(&read()?)
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
    words: Words,
    file: File,
    path: PathBuf,
    /// Whether other processes may map the file for writing, too.
    joinable: bool,
    /// The process that opened it. A child made by `fork` has the same lock and
    /// the same mark, but only its parent may release them.
    process: u32,
    /// How often this process had forked when it opened the file.
    forks: u64,
    left: bool,
}

/// A part of a mapped file beyond the end of its [`SharedMap`]. It is dropped
/// first, because the mark in the file must be cleared last.
#[derive(Debug)]
pub(crate) struct Tail {
    words: Words,
    path: PathBuf,
}

impl Tail {
    pub(crate) fn words(&self) -> &[AtomicU64] {
        writable(&self.words)
    }

    pub(crate) fn sync(&self) -> Result<(), Error> {
        self.words.flush().map_err(Error::io("syncing", &self.path))
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        let _ = self.sync();
    }
}

fn writable(words: &Words) -> &[AtomicU64] {
    words
        .writable()
        .expect("a shared file is mapped for writing")
}

impl SharedMap {
    pub(crate) fn open(path: &Path, terms: Terms<'_>) -> Result<(Header, Self), Error> {
        let patience = Instant::now() + PATIENCE;
        loop {
            match Self::try_open(path, terms) {
                // Replaced meanwhile, or somebody is just coming or leaving.
                Err(Error::Busy { .. }) if Instant::now() < patience => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                done => return done,
            }
        }
    }

    fn try_open(path: &Path, terms: Terms<'_>) -> Result<(Header, Self), Error> {
        let (file, alone) = open_shared(path)?;
        let mut header = read_header(&file, path, |bytes| Header::decode(bytes, terms.key))?;
        header.check_shareable()?;
        // Next to a living writer, a mark that names no boot is that writer's.
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
        let len = HEADER_LEN as u64 + header.body_len();
        let words = Words::map(&file, 0, len).map_err(Error::io("mapping", path))?;
        let mut shared = Self {
            words,
            file,
            path: path.into(),
            joinable,
            process: std::process::id(),
            forks: forks(),
            left: false,
        };
        // The checksum ends here: what is damaged now would never be noticed.
        if alone && (terms.verify != Some(false) || header.body_len() <= SUMMED_AT_ONCE) {
            verify(&header, shared.body()).inspect_err(|_| shared.left = true)?;
        }
        if let Shape::Growing(shape) = header.shape {
            layers::check(&shape, header.rate, shared.body())
                .inspect_err(|_| shared.left = true)?;
            // What a writer that died did not finish.
            let shortened = shared.file.set_len(len);
            shortened.map_err(Error::io("shortening", path))?;
        }
        shared.mark_open(&header, alone)?;
        Ok((header, shared))
    }

    /// Puts the mark on disk before any key is added; otherwise a power loss
    /// could leave a file that lacks pages but looks whole.
    fn mark_open(&self, header: &Header, alone: bool) -> Result<(), Error> {
        if alone {
            self.words()[KEYS_WORD].put(header.state.keys);
            self.words()[BODY_CHECKSUM_WORD].put(0);
            store_boot(self.words(), this_boot());
            self.words
                .flush_first(HEADER_LEN)
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
        writable(&self.words)
    }

    pub(crate) fn body(&self) -> &[AtomicU64] {
        &self.words()[HEADER_LEN / 8..]
    }

    /// The count of keys, shared with the other processes.
    pub(crate) fn keys(&self) -> &AtomicU64 {
        &self.words()[KEYS_WORD]
    }

    /// Appends zeros to the file and maps them. They count once
    /// [`commit`](Self::commit) has been called.
    pub(crate) fn append(&self, body_len: u64, more: u64) -> Result<Tail, Error> {
        // The parent would not see the layer, and add another in its place.
        if self.process != std::process::id() {
            return Err(Error::Busy {
                path: self.path.clone(),
            });
        }
        let end = HEADER_LEN as u64 + body_len;
        let map = || {
            // What an earlier attempt may have left.
            self.file.set_len(end)?;
            reserve(&self.file, end + more)?;
            Words::map(&self.file, end, more)
        };
        let words = map().map_err(|e: io::Error| {
            let _ = self.file.set_len(end);
            Error::io("adding a layer to", &self.path)(e)
        })?;
        Ok(Tail {
            words,
            path: self.path.clone(),
        })
    }

    /// Replaces the header in one write, which the death of this process
    /// can't tear.
    pub(crate) fn commit(&self, header: &Header) -> Result<(), Error> {
        let mut header = *header;
        header.state.open_under = Some(this_boot());
        // A reader of this header must see the line of the layer that it counts.
        fence(Release);
        let mut file = &self.file;
        file.seek(SeekFrom::Start(0))
            .and_then(|_| file.write_all(&header.encode()))
            .map_err(Error::io("writing", &self.path))
    }

    /// Waits until everything added so far is on disk.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        self.words.flush().map_err(Error::io("syncing", &self.path))
    }

    /// Leaves; the last writer to leave clears the mark.
    pub(crate) fn close(mut self) -> Result<(), Error> {
        self.leave()
    }

    fn leave(&mut self) -> Result<(), Error> {
        if std::mem::replace(&mut self.left, true) || self.process != std::process::id() {
            return Ok(());
        }
        self.sync()?;
        // Alone in one step; otherwise an opener in between would take the mark
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
                if let Some(sum) = self.sum_at_once() {
                    self.words()[BODY_CHECKSUM_WORD].put(sum);
                }
                store_boot(self.words(), BootId::default());
                let flushed = self.words.flush_first(HEADER_LEN);
                self.file
                    .unlock()
                    .map_err(Error::io("unlocking", &self.path))?;
                flushed.map_err(Error::io("syncing", &self.path))
            }
            Err(TryLockError::WouldBlock) => Ok(()),
            Err(TryLockError::Error(e)) => Err(Error::io("locking", &self.path)(e)),
        }
    }

    /// The checksum of a body that is small enough. Nobody else may have the file. The lock
    /// ensures that, except for a forked child: it has the lock, too, and may still be adding.
    fn sum_at_once(&self) -> Option<u64> {
        if self.forks != forks() {
            return None;
        }
        let header = encode_words(&self.words()[..HEADER_LEN / 8]);
        let header = Header::decode_without_key(&header).ok()?;
        if header.body_len() > SUMMED_AT_ONCE {
            return None;
        }
        // Not from the mapping, which a growing filter has several of.
        let mut body = Vec::new();
        let mut file = &self.file;
        file.seek(SeekFrom::Start(HEADER_LEN as u64)).ok()?;
        file.take(header.body_len()).read_to_end(&mut body).ok()?;
        let whole = body.len() as u64 == header.body_len();
        whole.then(|| xxh3_64_with_seed(&body, header.state.keys))
    }
}

/// How often this process has forked since it first asked.
#[cfg(unix)]
fn forks() -> u64 {
    use std::sync::atomic::Ordering::Relaxed;
    static FORKS: AtomicU64 = AtomicU64::new(0);
    static COUNTING: std::sync::Once = std::sync::Once::new();
    extern "C" fn count() {
        FORKS.fetch_add(1, Relaxed);
    }
    COUNTING.call_once(|| {
        // It fails only where memory for one entry is missing, which ends a process soon.
        // SAFETY: the handler is a function that lives as long as the process. It changes an
        // atomic and nothing else, which is allowed in a handler of `fork`.
        unsafe { libc::pthread_atfork(Some(count), None, None) };
    });
    FORKS.load(Relaxed)
}

#[cfg(not(unix))]
fn forks() -> u64 {
    0
}

/// Marks a file as open for writing under this boot, or as closed.
fn store_boot<W: SharedWord>(words: &[W], boot: BootId) {
    for (word, bytes) in BOOT_WORDS.into_iter().zip(boot.as_chunks().0) {
        words[word].put(u64::from_le_bytes(*bytes));
    }
}

fn encode_words<W: Word>(words: &[W]) -> Vec<u8> {
    words
        .iter()
        .flat_map(|word| word.get().to_le_bytes())
        .collect()
}

impl Drop for SharedMap {
    fn drop(&mut self) {
        // An error leaves the mark, which is the safe side.
        let _ = self.leave();
    }
}

/// The file under a lock, and whether no other process has it mapped.
fn open_shared(path: &Path) -> Result<(File, bool), Error> {
    let file = open_regular(path, true)?;
    check_lockable(path)?;
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

/// The mark where the boot can't be identified: such a file is always refused
/// once its writers are gone.
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
