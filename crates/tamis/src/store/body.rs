//! Owners of a filter's body: the heap, a memory-mapped file, or the caller.
//!
//! A body is a slice of little-endian 64-bit words, the same in memory and in the file. There is no
//! storage trait to implement: these are the only owners.

use crate::error::Error;
use crate::raw::header::Header;
use crate::raw::word::{ReadOnly, SharedWord, Word};
#[cfg(feature = "files")]
use crate::store::shared::{SharedMap, Tail};
use crate::store::words::Words;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
#[cfg(feature = "files")]
use std::{fs::File, path::Path};

/// An owner of a body: [`Bytes`], [`Map`] or `&[u8]`.
pub trait Body: sealed::Sealed {
    /// How the words are read.
    type Word: Word;
    /// The body.
    fn words(&self) -> &[Self::Word];
    /// The count of keys, if processes share it.
    #[doc(hidden)]
    fn shared_keys(&self) -> Option<&Self::Word> {
        None
    }
}

/// A body that accepts keys and layers.
#[doc(hidden)]
pub trait Growable: Body<Word: SharedWord> + Sized {
    /// The words without atomics, unless other processes share them.
    fn exclusive(&mut self) -> Option<&mut [u64]>;
    /// Appends `more` zeros to a body of `len` bytes, on the heap or in its file. In a file they
    /// count only after [`commit`](Self::commit).
    fn append(&self, len: u64, more: u64) -> Result<Self, Error>;
    /// Replaces the header of a shared file.
    fn commit(&self, header: &Header) -> Result<(), Error>;
}

pub(crate) mod sealed {
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
    /// The owner's words, which don't move while it lives, so that single keys needn't check who
    /// owns them.
    words: NonNull<[AtomicU64]>,
}

// SAFETY: `words` are the owner's, which is `Send`.
unsafe impl Send for Bytes {}
// SAFETY: a shared reference gives access to atomics only.
unsafe impl Sync for Bytes {}

#[derive(Debug)]
enum Owner {
    Memory(Words),
    #[cfg(feature = "files")]
    Shared(SharedMap),
    #[cfg(feature = "files")]
    Tail(Tail),
}

impl Bytes {
    fn new(owner: Owner) -> Self {
        let words = match &owner {
            Owner::Memory(words) => words.writable().unwrap_or_default(),
            #[cfg(feature = "files")]
            Owner::Shared(map) => map.body(),
            #[cfg(feature = "files")]
            Owner::Tail(tail) => tail.words(),
        };
        let words = NonNull::from(words);
        Self { owner, words }
    }

    /// A zeroed body on the heap; `len` is a multiple of 64.
    pub(crate) fn zeroed(len: u64) -> Result<Self, Error> {
        debug_assert!(len.is_multiple_of(64));
        Words::zeroed(len).map(|words| Self::new(Owner::Memory(words)))
    }

    /// Has the system allocate all pages of a body in memory now; see [`Words::populate`].
    pub(crate) fn populate(&mut self) {
        #[cfg_attr(not(feature = "files"), allow(irrefutable_let_patterns))]
        if let Owner::Memory(words) = &mut self.owner {
            words.populate();
        }
    }

    /// A body of `len` bytes, copied from the start of `bytes`, which must be at least as long.
    pub(crate) fn copied(len: u64, bytes: &[u8]) -> Result<Self, Error> {
        let mut body = Self::zeroed(len)?;
        let own = body.exclusive_bytes().unwrap_or_default();
        own.copy_from_slice(bytes);
        Ok(body)
    }

    #[cfg(feature = "files")]
    pub(crate) fn shared(map: SharedMap) -> Self {
        Self::new(Owner::Shared(map))
    }

    /// Waits until this part of a mapped file is on disk.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        match &self.owner {
            Owner::Memory(_) => Ok(()),
            #[cfg(feature = "files")]
            Owner::Shared(map) => map.sync(),
            #[cfg(feature = "files")]
            Owner::Tail(tail) => tail.sync(),
        }
    }

    /// Closes a shared file.
    pub(crate) fn close(self) -> Result<(), Error> {
        match self.owner {
            #[cfg(feature = "files")]
            Owner::Shared(map) => map.close(),
            _ => self.sync(),
        }
    }

    /// Whether other processes share these words.
    #[inline]
    pub(crate) const fn is_shared(&self) -> bool {
        !matches!(self.owner, Owner::Memory(_))
    }

    /// The words without atomics, unless other processes share them.
    #[inline]
    pub(crate) fn exclusive(&mut self) -> Option<&mut [u64]> {
        if self.is_shared() {
            return None;
        }
        // SAFETY: `AtomicU64` has the layout of `u64`, and `&mut self` excludes
        // every other access to memory that this process alone has.
        Some(unsafe { &mut *(self.words.as_ptr() as *mut [u64]) })
    }

    /// Has `mover` move the allocation of a body on the plain heap; see
    /// [`Words::relocate`].
    ///
    /// # Safety
    /// - `mover` returns the address it was given, or memory of the global
    ///   allocator with the same length, alignment (64 bytes) and content.
    /// - In the second case it has freed the old memory.
    /// - It does not panic.
    #[cfg(feature = "plain-heap")]
    pub(crate) unsafe fn relocate(&mut self, mover: &mut dyn FnMut(*mut u8, usize) -> *mut u8) {
        #[cfg_attr(not(feature = "files"), allow(irrefutable_let_patterns))]
        if let Owner::Memory(words) = &mut self.owner {
            // SAFETY: the caller's promise is the same.
            unsafe { words.relocate(mover) };
            self.words = NonNull::from(words.writable().unwrap_or_default());
        }
    }

    /// The body as plain bytes, to be filled from a file.
    pub(crate) fn exclusive_bytes(&mut self) -> Option<&mut [u8]> {
        let words = self.exclusive()?;
        // SAFETY: the slice has this many initialised bytes, borrowed for as
        // long, and any bytes are a valid u64.
        Some(unsafe {
            std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), size_of_val(words))
        })
    }
}

impl Body for Bytes {
    type Word = AtomicU64;

    #[inline]
    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the owner is alive and has these words; a shared borrow of it
        // allows atomic access only.
        unsafe { self.words.as_ref() }
    }

    #[inline]
    fn shared_keys(&self) -> Option<&AtomicU64> {
        match &self.owner {
            #[cfg(feature = "files")]
            Owner::Shared(map) => Some(map.keys()),
            _ => None,
        }
    }
}

impl Growable for Bytes {
    fn exclusive(&mut self) -> Option<&mut [u64]> {
        self.exclusive()
    }

    #[cfg_attr(not(feature = "files"), expect(unused_variables))]
    fn append(&self, len: u64, more: u64) -> Result<Self, Error> {
        #[cfg(feature = "files")]
        if let Owner::Shared(map) = &self.owner {
            return Ok(Self::new(Owner::Tail(map.append(len, more)?)));
        }
        Self::zeroed(more)
    }

    #[cfg_attr(not(feature = "files"), expect(unused_variables))]
    fn commit(&self, header: &Header) -> Result<(), Error> {
        #[cfg(feature = "files")]
        if let Owner::Shared(map) = &self.owner {
            return map.commit(header);
        }
        Ok(())
    }
}

/// A read-only body: in memory, or in a file mapped for reading. A file's pages are read from disk
/// on first use, so opening takes the same time at any size.
///
/// The file must not be truncated while it is mapped: as with every mapping, the system would kill
/// the program with a signal.
#[derive(Debug)]
pub struct Map(Words);

impl Map {
    #[cfg(feature = "files")]
    pub(crate) fn of_file(file: &File, path: &Path, at: u64, len: u64) -> Result<Self, Error> {
        let words = Words::map_read_only(file, at, len);
        words.map(Self).map_err(Error::io("mapping", path))
    }

    /// A copy of these bytes, a multiple of 8.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let mut words = Words::zeroed(bytes.len() as u64)?;
        let own = words.exclusive().unwrap_or_default();
        for (to, bytes) in own.iter_mut().zip(bytes.as_chunks().0) {
            *to = u64::from_le_bytes(*bytes).to_le();
        }
        words.truncate(bytes.len() / 8);
        Ok(Self(words))
    }

    #[cfg(feature = "files")]
    pub(crate) fn advise_random(&self) {
        self.0.advise_random();
    }
}

impl Body for Map {
    // Another process may be adding keys to the file.
    type Word = ReadOnly<AtomicU64>;

    #[inline]
    fn words(&self) -> &[ReadOnly<AtomicU64>] {
        self.0.get()
    }
}

/// The body without its header.
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
    use crate::raw::roomy::HUGE_FROM;
    use crate::raw::usual_or;
    use crate::raw::word::for_each_piece;

    #[test]
    fn owners_agree_on_words() {
        for len in [64, 4096, usual_or(HUGE_FROM + 64, 128)] {
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
    #[cfg_attr(miri, ignore = "no such mappings")]
    fn an_impossible_size_is_an_error() {
        assert!(matches!(Bytes::zeroed(1 << 62), Err(Error::Io { .. })));
    }

    #[test]
    fn pieces_are_the_body() {
        let mut bytes = Bytes::zeroed(usual_or(3 << 20, 3 << 8)).unwrap();
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
