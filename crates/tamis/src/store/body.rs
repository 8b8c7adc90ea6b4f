//! Who owns a filter's body: the heap, a memory-mapped file, or the caller.
//!
//! A body is a slice of little-endian 64-bit words, the same in memory and in
//! the file. There is no storage trait to implement: the three owners are here.

use crate::error::Error;
use crate::raw::roomy::HUGE_FROM;
use crate::raw::word::Word;
use crate::store::file::{SharedMap, Tail};
use memmap2::{Mmap, MmapMut, MmapRaw};
use std::alloc::{Layout, alloc_zeroed};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// An owner of a body: [`Bytes`], [`Map`] or `&[u8]`.
pub trait Body: sealed::Sealed {
    /// How the words are read.
    type Word: Word;
    /// The body.
    fn words(&self) -> &[Self::Word];
    /// The count of keys, where processes share it.
    #[doc(hidden)]
    fn shared_keys(&self) -> Option<&AtomicU64> {
        None
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Bytes {}
    impl Sealed for super::Map {}
    impl Sealed for &[u8] {}
}

/// A body that can be written: on the heap, or a file mapped for writing and
/// shared with other processes.
#[derive(Debug)]
pub struct Bytes {
    owner: Owner,
    /// The owner's words, which stay in place as long as it lives, so that
    /// single keys need not find out who owns them.
    words: NonNull<[AtomicU64]>,
}

// SAFETY: `words` are the owner's, and that is both.
unsafe impl Send for Bytes {}
// SAFETY: likewise.
unsafe impl Sync for Bytes {}

#[derive(Debug)]
enum Owner {
    Small(Vec<Line>),
    Huge(MmapRaw),
    Shared(SharedMap),
    Tail(Tail),
}

/// A cache line, so that no key's line straddles two.
#[derive(Debug)]
#[repr(C, align(64))]
struct Line([AtomicU64; 8]);

/// Zeros as the allocator has them: fresh pages of the system are not touched.
/// None if there is no memory.
fn zeroed_lines(len: usize) -> Option<Vec<Line>> {
    let layout = Layout::array::<Line>(len).ok()?;
    if layout.size() == 0 {
        return Some(Vec::new());
    }
    // SAFETY: the layout has a size, and zeros are a `Line`.
    unsafe {
        let lines = alloc_zeroed(layout).cast::<Line>();
        (!lines.is_null()).then(|| Vec::from_raw_parts(lines, len, len))
    }
}

impl Bytes {
    fn new(owner: Owner) -> Self {
        let (first, len): (*const AtomicU64, usize) = match &owner {
            Owner::Small(lines) => (lines.as_ptr().cast(), lines.len() * 8),
            Owner::Huge(map) => (map.as_ptr().cast(), map.len() / 8),
            Owner::Shared(map) => (map.body().as_ptr(), map.body().len()),
            Owner::Tail(tail) => (tail.words().as_ptr(), tail.words().len()),
        };
        // SAFETY: `first` points to `len` initialised words (a `Line` is eight
        // `AtomicU64`; a mapping is zeroed and page-aligned).
        let words = NonNull::from(unsafe { std::slice::from_raw_parts(first, len) });
        Self { owner, words }
    }

    /// A zeroed body on the heap; `len` is a multiple of 64.
    pub(crate) fn zeroed(len: u64) -> Result<Self, Error> {
        debug_assert!(len.is_multiple_of(64));
        let refuse = || Error::no_memory(len);
        let len_here = usize::try_from(len).map_err(|_| refuse())?;
        if len >= HUGE_FROM && !cfg!(feature = "plain-heap") {
            let map = MmapMut::map_anon(len_here).map_err(|_| refuse())?;
            // Best effort: without huge pages the filter is only slower.
            #[cfg(target_os = "linux")]
            let _ = map.advise(memmap2::Advice::HugePage);
            return Ok(Self::new(Owner::Huge(MmapRaw::from(map))));
        }
        let lines = zeroed_lines(len_here / 64).ok_or_else(refuse)?;
        Ok(Self::new(Owner::Small(lines)))
    }

    pub(crate) fn shared(map: SharedMap) -> Self {
        Self::new(Owner::Shared(map))
    }

    pub(crate) fn tail(tail: Tail) -> Self {
        Self::new(Owner::Tail(tail))
    }

    /// Waits until this part of a mapped file is on disk.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        match &self.owner {
            Owner::Shared(map) => map.sync(),
            Owner::Tail(tail) => tail.sync(),
            Owner::Small(_) | Owner::Huge(_) => Ok(()),
        }
    }

    #[inline]
    pub(crate) fn as_shared(&self) -> Option<&SharedMap> {
        match &self.owner {
            Owner::Shared(map) => Some(map),
            _ => None,
        }
    }

    pub(crate) fn into_shared(self) -> Option<SharedMap> {
        match self.owner {
            Owner::Shared(map) => Some(map),
            _ => None,
        }
    }

    /// The words without atomics, unless other processes see them too.
    #[inline]
    pub(crate) fn exclusive(&mut self) -> Option<&mut [u64]> {
        if matches!(self.owner, Owner::Shared(_) | Owner::Tail(_)) {
            return None;
        }
        // SAFETY: `AtomicU64` has the layout of `u64`, and `&mut self` excludes
        // every other access to the heap.
        Some(unsafe { &mut *(self.words.as_ptr() as *mut [u64]) })
    }

    /// Has `mover` move the allocation of a body on the plain heap: it gets the
    /// address and length, and returns the new address.
    ///
    /// # Safety
    /// `mover` must return memory of the global allocator with the same layout
    /// (64-byte alignment) and content, and must free the old memory.
    pub(crate) unsafe fn relocate(&mut self, mover: &mut dyn FnMut(*mut u8, usize) -> *mut u8) {
        let Owner::Small(lines) = &mut self.owner else {
            return;
        };
        let mut old = std::mem::ManuallyDrop::new(std::mem::take(lines));
        let (len, capacity) = (old.len(), old.capacity());
        if capacity == 0 {
            return;
        }
        let new = mover(old.as_mut_ptr().cast(), capacity * size_of::<Line>());
        // SAFETY: as the caller promises.
        let lines = unsafe { Vec::from_raw_parts(new.cast::<Line>(), len, capacity) };
        *self = Self::new(Owner::Small(lines));
    }

    /// The body as plain bytes, to be filled from a file.
    pub(crate) fn exclusive_bytes(&mut self) -> Option<&mut [u8]> {
        let words = self.exclusive()?;
        // SAFETY: any byte pattern is a valid u64 and the other way round.
        Some(unsafe {
            std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), size_of_val(words))
        })
    }
}

impl Body for Bytes {
    type Word = AtomicU64;

    #[inline]
    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the owner is alive, and a shared borrow of it allows atomic
        // access only.
        unsafe { self.words.as_ref() }
    }

    #[inline]
    fn shared_keys(&self) -> Option<&AtomicU64> {
        self.as_shared().map(SharedMap::keys)
    }
}

/// A body in a file mapped for reading. Pages are read from disk when they are
/// first used, so opening takes the same time at any size.
///
/// The file must not be truncated while it is mapped: as with every mapping,
/// the system would stop the program with a signal.
#[derive(Debug)]
pub struct Map {
    map: Mmap,
    body_at: usize,
}

impl Map {
    pub(crate) fn new(map: Mmap, body_at: usize) -> Self {
        debug_assert!(body_at.is_multiple_of(8) && map.len() >= body_at);
        Self { map, body_at }
    }

    /// Keys are spread evenly: reading ahead would only evict other pages.
    pub(crate) fn advise_random(&self) {
        #[cfg(unix)]
        let _ = self.map.advise(memmap2::Advice::Random);
    }
}

impl Body for Map {
    // Another process may be adding keys to the file.
    type Word = AtomicU64;

    #[inline]
    fn words(&self) -> &[AtomicU64] {
        // SAFETY: a mapping is page-aligned, so the body is aligned to its
        // offset; it is only ever loaded from, which relaxed atomics allow on
        // memory mapped for reading.
        unsafe {
            std::slice::from_raw_parts(
                self.map.as_ptr().add(self.body_at).cast(),
                (self.map.len() - self.body_at) / 8,
            )
        }
    }
}

/// The body alone, without its header.
impl Body for &[u8] {
    type Word = [u8; 8];

    #[inline]
    fn words(&self) -> &[[u8; 8]] {
        self.as_chunks().0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::word::for_each_piece;

    #[test]
    fn owners_agree_on_words() {
        for len in [64, 4096, HUGE_FROM + 64] {
            let mut bytes = Bytes::zeroed(len).unwrap();
            assert_eq!(bytes.words().len() as u64, len / 8);
            assert_eq!(bytes.words().as_ptr() as usize % 64, 0);
            assert!(bytes.words().iter().all(|w| w.get() == 0));
            bytes.exclusive_bytes().unwrap()[9] = 3;
            assert_eq!(bytes.words()[1].get(), 0x300);
        }
        let unaligned = &[0u8, 1, 0, 0, 0, 0, 0, 0, 0][1..];
        assert_eq!(unaligned.words()[0].get(), 1);
    }

    #[test]
    fn an_impossible_size_is_an_error() {
        assert!(matches!(Bytes::zeroed(1 << 62), Err(Error::Io { .. })));
    }

    #[test]
    fn pieces_are_the_body() {
        let mut bytes = Bytes::zeroed(3 << 20).unwrap();
        for (i, b) in bytes.exclusive_bytes().unwrap().iter_mut().enumerate() {
            *b = i as u8;
        }
        let mut all = Vec::new();
        for_each_piece::<_, ()>(bytes.words(), |p| {
            all.extend_from_slice(p);
            Ok(())
        })
        .unwrap();
        assert_eq!(all, bytes.exclusive_bytes().unwrap());
    }
}
