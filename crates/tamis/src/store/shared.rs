//! A file mapped for writing, shared with other processes.

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

/// How long opening waits for a lock that another process holds briefly.
const PATIENCE: Duration = Duration::from_secs(5);

/// Up to this size, the first writer verifies a body's checksum and the last one writes it, which
/// takes a few milliseconds. For larger bodies that would cost what mapping saves.
const SUMMED_AT_ONCE: u64 = 16 << 20;

/// Reads the header of an open file and checks it with `sound`. Leaves `file` at the body.
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
    // The layers that the header counts were written before it.
    fence(Acquire);
    // After reading the header, because a growing file gets longer first.
    let meta = file.metadata().map_err(read_error())?;
    header.check_file_len(meta.len())?;
    Ok(header)
}

/// How often to reread a marked header that seems damaged.
const LOOKS: u32 = 20;

/// Reads a header that a writer may be changing. Readers may see half of a write that replaces it,
/// or half of a two-word mark. So a marked header that seems damaged is read again.
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

/// Refuses a file that was open for writing when the machine crashed.
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
    /// The process that opened it. A child made by `fork` has the same lock and mark, but only its
    /// parent may release them.
    process: u32,
    /// How often this process had forked by then.
    forks: u64,
    left: bool,
}

/// A part of a mapped file beyond the end of its [`SharedMap`]. Dropped first, because the mark in
/// the file must be cleared last.
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
                // The file was replaced, or another process is just opening or closing it.
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
        // If a writer is alive, a mark without a boot id is that writer's.
        if alone || header.state.open_under != Some(UNKNOWN_BOOT) {
            check_clean(&header, path)?;
        }
        if alone && header.state.open_under.is_some() {
            // A writer of this boot died. All its bits are here, but its count may be too low.
            header.state.keys = KEYS_UNKNOWN;
        }
        // Another process wouldn't see the layers that this one adds.
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
        // Verify before dropping the checksum; later, damage would go unnoticed.
        if alone && (terms.verify != Some(false) || header.body_len() <= SUMMED_AT_ONCE) {
            verify(&header, shared.body()).inspect_err(|_| shared.left = true)?;
        }
        if let Shape::Growing(shape) = header.shape {
            layers::check(&shape, header.rate, shared.body())
                .inspect_err(|_| shared.left = true)?;
            // Drop the unfinished layer of a dead writer.
            let shortened = shared.file.set_len(len);
            shortened.map_err(Error::io("shortening", path))?;
        }
        shared.mark_open(&header, alone)?;
        Ok((header, shared))
    }

    /// Writes the mark to disk before any key is added. Otherwise a power loss could leave a file
    /// that lacks pages but looks complete.
    fn mark_open(&self, header: &Header, alone: bool) -> Result<(), Error> {
        if alone {
            self.words()[KEYS_WORD].put(header.state.keys);
            self.words()[BODY_CHECKSUM_WORD].put(0);
            store_boot(self.words(), this_boot());
            self.words
                .flush_first(HEADER_LEN)
                .map_err(Error::io("syncing", &self.path))?;
            // Now others may join, if the kind allows it. Turning an exclusive lock into a shared
            // one releases it for a moment, in which the file may be replaced.
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

    /// Appends zeros to the file and maps them. They count only after [`commit`](Self::commit).
    pub(crate) fn append(&self, body_len: u64, more: u64) -> Result<Tail, Error> {
        // The parent wouldn't see the layer, and would add another in its place.
        if self.process != std::process::id() {
            return Err(Error::Busy {
                path: self.path.clone(),
            });
        }
        let end = HEADER_LEN as u64 + body_len;
        let map = || {
            // Cut off the remains of an earlier attempt.
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

    /// Replaces the header in one write, which can't be torn by the death of this process.
    pub(crate) fn commit(&self, header: &Header) -> Result<(), Error> {
        let mut header = *header;
        header.state.open_under = Some(this_boot());
        // A reader of this header must see the line of every layer that it counts.
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

    /// Closes the file; the last writer clears the mark.
    pub(crate) fn close(mut self) -> Result<(), Error> {
        self.leave()
    }

    fn leave(&mut self) -> Result<(), Error> {
        if std::mem::replace(&mut self.left, true) || self.process != std::process::id() {
            return Ok(());
        }
        self.sync()?;
        // If we are alone, lock exclusively in one step. Otherwise an opener in between would take
        // the mark for a dead writer's and doubt the count. If others hold the file, release our
        // share first: of two that leave at once, the later one then finds itself alone.
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

    /// The checksum of a body that is small enough. Needs exclusive access, which the lock ensures
    /// except for a forked child: it shares the lock and may still be adding.
    fn sum_at_once(&self) -> Option<u64> {
        if self.forks != forks() {
            return None;
        }
        let header = encode_words(&self.words()[..HEADER_LEN / 8]);
        let header = Header::decode_without_key(&header).ok()?;
        if header.body_len() > SUMMED_AT_ONCE {
            return None;
        }
        // From the file, because a growing filter has several mappings.
        let mut body = Vec::new();
        let mut file = &self.file;
        file.seek(SeekFrom::Start(HEADER_LEN as u64)).ok()?;
        file.take(header.body_len()).read_to_end(&mut body).ok()?;
        let whole = body.len() as u64 == header.body_len();
        whole.then(|| xxh3_64_with_seed(&body, header.state.keys))
    }
}

/// How often this process has forked since the first call.
#[cfg(unix)]
fn forks() -> u64 {
    use std::sync::atomic::Ordering::Relaxed;
    static FORKS: AtomicU64 = AtomicU64::new(0);
    static COUNTING: std::sync::Once = std::sync::Once::new();
    extern "C" fn count() {
        FORKS.fetch_add(1, Relaxed);
    }
    COUNTING.call_once(|| {
        // Fails only if memory for one entry is missing, and the process then won't live long.
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

/// Marks a file as open for writing in this boot, or as closed.
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
        // On an error the mark stays, which is safe.
        let _ = self.leave();
    }
}

/// The locked file, and whether no other process has it mapped.
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

/// The mark used if the boot can't be identified: such a file is always refused once its writers
/// are gone.
const UNKNOWN_BOOT: BootId = [0xff; 16];

/// The current boot of this machine.
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
