//! A body is a slice of little-endian 64-bit words, the same in memory and in
//! the file.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One little-endian word of a body, readable while others write it.
pub trait Word: sealed::Sealed + Sync {
    /// The word's value.
    fn get(&self) -> u64;
}

impl Word for AtomicU64 {
    #[inline(always)]
    fn get(&self) -> u64 {
        u64::from_le(self.load(Relaxed))
    }
}

/// A word without other users.
impl Word for u64 {
    #[inline(always)]
    fn get(&self) -> u64 {
        Self::from_le(*self)
    }
}

/// Bytes of the caller's, of any alignment.
impl Word for [u8; 8] {
    #[inline(always)]
    fn get(&self) -> u64 {
        u64::from_le_bytes(*self)
    }
}

/// A word that can only be read. Its memory may be a file that is mapped
/// read-only, where a write would kill the process.
#[repr(transparent)]
#[derive(Debug)]
pub struct ReadOnly<W>(W);

impl<W> ReadOnly<W> {
    pub(crate) fn slice(words: &[W]) -> &[Self] {
        // SAFETY: `ReadOnly<W>` is a transparent wrapper, so both slices have
        // the same layout, and the lifetime is that of the borrow.
        unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), words.len()) }
    }
}

impl<W: Word> Word for ReadOnly<W> {
    #[inline(always)]
    fn get(&self) -> u64 {
        self.0.get()
    }
}

mod sealed {
    pub trait Sealed {}
    impl<W> Sealed for super::ReadOnly<W> {}
    impl Sealed for super::AtomicU64 {}
    impl Sealed for u64 {}
    impl Sealed for [u8; 8] {}
}

/// Calls `each` with the words' bytes, piece by piece: a snapshot that is
/// sound while other threads add keys.
pub(crate) fn for_each_piece<W: Word, E>(
    words: &[W],
    mut each: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut piece = vec![0; (words.len() * 8).min(1 << 20)];
    for run in words.chunks(piece.len().max(8) / 8) {
        let bytes = &mut piece[..run.len() * 8];
        for (to, word) in bytes.as_chunks_mut().0.iter_mut().zip(run) {
            *to = word.get().to_le_bytes();
        }
        each(bytes)?;
    }
    Ok(())
}
