//! Memory for 64-bit words that other threads or processes may change: on the heap, or in a mapped
//! file.

use crate::error::Error;
use crate::raw::word::ReadOnly;
#[cfg(feature = "files")]
use memmap2::{MmapOptions, MmapRaw};
use std::alloc::{Layout, alloc_zeroed};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
#[cfg(feature = "files")]
use std::{fs::File, io};

/// 64-bit words in memory, or in a mapped file that other processes may change.
///
/// A file must not be truncated while it is mapped: as with every mapping, the system would kill
/// the program with a signal.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("words");
/// use std::sync::atomic::Ordering::Relaxed;
/// use tamis::internals::file::Words;
/// use tamis::internals::raw::Word;
/// std::fs::write(&path, [0; 24]).unwrap();
/// let file = std::fs::File::options().read(true).write(true).open(&path)?;
/// let words = Words::map(&file, 8, 16)?;
/// words.writable().unwrap()[1].store(7u64.to_le(), Relaxed);
/// assert_eq!(Words::map_read_only(&file, 16, 8)?.get()[0].get(), 7);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Words {
    owner: Owner,
    /// The owner's words, which don't move while it lives, so that accesses needn't check who owns
    /// them.
    words: NonNull<[AtomicU64]>,
}

// SAFETY: `words` are the owner's, which is `Send` itself.
unsafe impl Send for Words {}
// SAFETY: a shared reference gives access to atomics only.
unsafe impl Sync for Words {}

#[derive(Debug)]
#[allow(dead_code, reason = "owners keep the words alive")]
enum Owner {
    Heap(Vec<Line>),
    #[cfg(feature = "files")]
    Huge(MmapRaw),
    #[cfg(feature = "files")]
    File {
        map: MmapRaw,
        writable: bool,
    },
}

/// A cache line. Alignment keeps a key's line from straddling two.
#[derive(Debug)]
#[repr(C, align(64))]
struct Line([AtomicU64; 8]);

/// Zeros from the allocator, which doesn't touch fresh pages. `None` if there is no memory.
fn zeroed_lines(len: usize) -> Option<Vec<Line>> {
    let layout = Layout::array::<Line>(len).ok()?;
    if layout.size() == 0 {
        return Some(Vec::new());
    }
    // SAFETY: the layout has a size.
    let lines = unsafe { alloc_zeroed(layout) }.cast::<Line>();
    // SAFETY: the allocation has the layout of `len` lines, and zeros are a
    // valid `Line`.
    (!lines.is_null()).then(|| unsafe { Vec::from_raw_parts(lines, len, len) })
}

impl Words {
    /// Zeros in memory for at least `len` bytes: a multiple of 64, aligned to 64, and on huge pages
    /// if the system has them.
    pub fn zeroed(len: u64) -> Result<Self, Error> {
        let refuse = || Error::no_memory(len);
        let lines = usize::try_from(len.div_ceil(64)).map_err(|_| refuse())?;
        #[cfg(all(feature = "files", not(feature = "plain-heap")))]
        if len >= crate::raw::roomy::HUGE_FROM {
            let bytes = lines.checked_mul(64).ok_or_else(refuse)?;
            let map = memmap2::MmapMut::map_anon(bytes).map_err(|_| refuse())?;
            // Best effort: without huge pages the filter is only slower.
            #[cfg(target_os = "linux")]
            let _ = map.advise(memmap2::Advice::HugePage);
            let map = MmapRaw::from(map);
            let words = slice(map.as_mut_ptr(), bytes / 8);
            let owner = Owner::Huge(map);
            return Ok(Self { owner, words });
        }
        Ok(Self::of_lines(zeroed_lines(lines).ok_or_else(refuse)?))
    }

    fn of_lines(mut lines: Vec<Line>) -> Self {
        let words = slice(lines.as_mut_ptr().cast(), lines.len() * 8);
        let owner = Owner::Heap(lines);
        Self { owner, words }
    }

    /// Maps `len` bytes of a file from `at` on, a multiple of 8, for reading and writing. Includes
    /// a last word that extends beyond `len`.
    #[cfg(feature = "files")]
    pub fn map(file: &File, at: u64, len: u64) -> io::Result<Self> {
        Self::map_file(file, at, len, true)
    }

    /// [`map`](Self::map) for reading.
    #[cfg(feature = "files")]
    pub fn map_read_only(file: &File, at: u64, len: u64) -> io::Result<Self> {
        Self::map_file(file, at, len, false)
    }

    #[cfg(feature = "files")]
    fn map_file(file: &File, at: u64, len: u64, writable: bool) -> io::Result<Self> {
        if !at.is_multiple_of(8) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let words = usize::try_from(len.div_ceil(8)).map_err(|_| io::ErrorKind::OutOfMemory)?;
        if words == 0 {
            return Ok(Self::of_lines(Vec::new()));
        }
        let mut options = MmapOptions::new();
        options.offset(at).len(words * 8);
        let map = if writable {
            options.map_raw(file)
        } else {
            options.map_raw_read_only(file)
        }?;
        // A mapping starts at a page, so words are aligned if their offset is.
        let words = slice(map.as_mut_ptr(), words);
        let owner = Owner::File { map, writable };
        Ok(Self { owner, words })
    }

    /// The words, for reading.
    #[inline]
    pub fn get(&self) -> &[ReadOnly<AtomicU64>] {
        // SAFETY: the owner is alive and has these words, initialised and
        // aligned. It is accessed through atomics as long as it is shared, and a
        // `ReadOnly` is never written to, so that it may be mapped for reading.
        ReadOnly::slice(unsafe { self.words.as_ref() })
    }

    /// The words, also for writing. `None` if they are mapped for reading.
    #[inline]
    pub fn writable(&self) -> Option<&[AtomicU64]> {
        #[cfg(feature = "files")]
        if matches!(
            self.owner,
            Owner::File {
                writable: false,
                ..
            }
        ) {
            return None;
        }
        // SAFETY: as in `get`; the memory can be written to.
        Some(unsafe { self.words.as_ref() })
    }

    /// The words without atomics. `None` if they are in a file, which other processes may share.
    #[inline]
    pub fn exclusive(&mut self) -> Option<&mut [u64]> {
        #[cfg(feature = "files")]
        if matches!(self.owner, Owner::File { .. }) {
            return None;
        }
        // SAFETY: `AtomicU64` has the layout of `u64`, and `&mut self` excludes
        // every other access to memory that this process alone has.
        Some(unsafe { &mut *(self.words.as_ptr() as *mut [u64]) })
    }

    /// Drops all words but the first `len`.
    pub(crate) fn truncate(&mut self, len: usize) {
        if len < self.words.len() {
            self.words = NonNull::slice_from_raw_parts(self.words.cast(), len);
        }
    }

    /// Has the system allocate the memory of these words now: the first use of a huge page takes a few hundred
    /// microseconds. A hint: without it, the first keys are slower.
    pub(crate) fn populate(&mut self) {
        #[cfg(feature = "files")]
        if let Owner::Huge(_map) = &self.owner {
            #[cfg(target_os = "linux")]
            match _map.advise(memmap2::Advice::PopulateWrite) {
                // Linux is older than 5.14.
                Err(e) if e.raw_os_error() == Some(libc::EINVAL) => {}
                _ => return,
            }
            const PAGE: usize = 4096 / 8;
            // SAFETY: as in `exclusive`. They are zeros as long as nothing was added.
            for word in unsafe { self.words.as_ref() }.iter().step_by(PAGE) {
                word.fetch_or(0, std::sync::atomic::Ordering::Relaxed);
            }
        }
    }

    /// Waits until the words of a file are on disk.
    #[cfg(feature = "files")]
    pub fn flush(&self) -> io::Result<()> {
        match &self.owner {
            Owner::File { map, .. } => map.flush(),
            Owner::Heap(_) | Owner::Huge(_) => Ok(()),
        }
    }

    /// [`flush`](Self::flush) for the first `len` bytes.
    #[cfg(feature = "files")]
    pub(crate) fn flush_first(&self, len: usize) -> io::Result<()> {
        match &self.owner {
            Owner::File { map, .. } => map.flush_range(0, len),
            Owner::Heap(_) | Owner::Huge(_) => Ok(()),
        }
    }

    /// Keys are spread evenly, so reading ahead would only evict other pages.
    #[cfg(feature = "files")]
    pub(crate) fn advise_random(&self) {
        #[cfg(unix)]
        if let Owner::File { map, .. } = &self.owner {
            let _ = map.advise(memmap2::Advice::Random);
        }
    }

    /// Has `mover` move an allocation on the plain heap. It gets the address and length, and
    /// returns the new address.
    ///
    /// # Safety
    /// - `mover` returns the address it was given, or memory of the global
    ///   allocator with the same length, alignment (64 bytes) and content.
    /// - In the second case it has freed the old memory.
    /// - It does not panic.
    #[cfg(feature = "plain-heap")]
    pub(crate) unsafe fn relocate(&mut self, mover: &mut dyn FnMut(*mut u8, usize) -> *mut u8) {
        #[cfg_attr(not(feature = "files"), allow(irrefutable_let_patterns))]
        let Owner::Heap(lines) = &mut self.owner else {
            return;
        };
        let mut old = std::mem::ManuallyDrop::new(std::mem::take(lines));
        let (len, capacity) = (old.len(), old.capacity());
        if capacity == 0 {
            return;
        }
        let new = mover(old.as_mut_ptr().cast(), capacity * size_of::<Line>());
        // SAFETY: the caller promises memory with the layout of `capacity` lines
        // and the content of `old`, which is not freed here.
        *self = Self::of_lines(unsafe { Vec::from_raw_parts(new.cast(), len, capacity) });
    }
}

fn slice(first: *mut u8, len: usize) -> NonNull<[AtomicU64]> {
    let first = NonNull::new(first).unwrap_or(NonNull::<AtomicU64>::dangling().cast());
    NonNull::slice_from_raw_parts(first.cast(), len)
}
