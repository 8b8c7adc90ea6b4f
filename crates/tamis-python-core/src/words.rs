//! Until `tamis::file` has them: words of mapped files, and how files are opened.

use memmap2::{MmapMut, MmapOptions, MmapRaw};
use std::alloc::{Layout, alloc_zeroed};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// 64-bit words in memory, or in a mapped file that other processes may change.
#[derive(Debug)]
pub struct Words {
    owner: Owner,
    /// The owner's words, which stay in place as long as it lives: no access
    /// has to find out who owns them.
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
    Huge(MmapRaw),
    File { map: MmapRaw, writable: bool },
}

/// A cache line, so that no key's line straddles two.
#[derive(Debug)]
#[repr(C, align(64))]
struct Line([AtomicU64; 8]);

/// Zeros as the allocator has them: fresh pages of the system are not touched.
/// `None` if there is no memory.
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
    /// Zeros in memory, enough for `len` bytes: a multiple of 64, aligned to 64,
    /// and on huge pages where the system has them.
    pub fn zeroed(len: u64) -> io::Result<Self> {
        let refuse = || io::Error::from(io::ErrorKind::OutOfMemory);
        let lines = usize::try_from(len.div_ceil(64)).map_err(|_| refuse())?;
        if len >= 1 << 20 {
            let bytes = lines.checked_mul(64).ok_or_else(refuse)?;
            let map = MmapMut::map_anon(bytes).map_err(|_| refuse())?;
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

    /// Maps `len` bytes of a file from `at` on, a multiple of 8, for reading and
    /// writing. A last word that reaches beyond `len` is part of it.
    pub fn map(file: &File, at: u64, len: u64) -> io::Result<Self> {
        Self::map_file(file, at, len, true)
    }

    /// [`map`](Self::map) for reading.
    pub fn map_read_only(file: &File, at: u64, len: u64) -> io::Result<Self> {
        Self::map_file(file, at, len, false)
    }

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
        // A mapping begins at a page, so that a word's alignment is its offset's.
        let words = slice(map.as_mut_ptr(), words);
        let owner = Owner::File { map, writable };
        Ok(Self { owner, words })
    }

    /// The words, for reading.
    #[inline]
    pub fn get(&self) -> &[AtomicU64] {
        // SAFETY: the owner is alive and has these words, initialised and
        // aligned. It is accessed through atomics as long as it is shared, and a
        // `ReadOnly` is never written to, so that it may be mapped for reading.
        unsafe { self.words.as_ref() }
    }

    /// The words, for writing, too. `None` if they are mapped for reading.
    #[inline]
    pub fn writable(&self) -> Option<&[AtomicU64]> {
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

    /// The words without atomics. `None` if they are in a file, where other
    /// processes see them, too.
    #[inline]
    pub fn exclusive(&mut self) -> Option<&mut [u64]> {
        if matches!(self.owner, Owner::File { .. }) {
            return None;
        }
        // SAFETY: `AtomicU64` has the layout of `u64`, and `&mut self` excludes
        // every other access to memory that this process alone has.
        Some(unsafe { &mut *(self.words.as_ptr() as *mut [u64]) })
    }

    /// Waits until the words of a file are on disk.
    pub fn flush(&self) -> io::Result<()> {
        match &self.owner {
            Owner::File { map, .. } => map.flush(),
            Owner::Heap(_) | Owner::Huge(_) => Ok(()),
        }
    }
}

fn slice(first: *mut u8, len: usize) -> NonNull<[AtomicU64]> {
    let first = NonNull::new(first).unwrap_or(NonNull::<AtomicU64>::dangling().cast());
    NonNull::slice_from_raw_parts(first.cast(), len)
}

/// Gives a file its blocks on disk now.
pub fn reserve(file: &File, len: u64) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let len = libc::off_t::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
    // SAFETY: a system call without pointers, on a descriptor that `file` keeps open.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, len) } {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

/// Opens a regular file.
pub fn open_regular(path: &Path, write: bool) -> Result<File, tamis::Error> {
    let opened = fs::metadata(path).and_then(|about| {
        if !about.is_file() {
            let text = "expected a regular file, got a device, a pipe or a socket";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        OpenOptions::new().read(true).write(write).open(path)
    });
    opened.map_err(|source| tamis::Error::Io {
        action: "opening",
        path: Some(path.to_owned()),
        source,
    })
}
