//! A body is a slice of little-endian 64-bit words, the same in memory and in
//! the file.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One little-endian word of a body, readable while others write it.
pub trait Word: sealed::Sealed + Sync {
    /// Whether the word's memory is its value, so that vector code can load it. False where a model
    /// keeps the value elsewhere.
    #[doc(hidden)]
    const IS_PLAIN: bool = true;
    /// The word's value.
    fn get(&self) -> u64;
}

/// A little-endian word that several threads or processes can change.
#[doc(hidden)]
pub trait SharedWord: Word {
    /// Sets these bits and returns the previous value.
    fn set(&self, bits: u64) -> u64;
    /// Changes the value and returns the previous one.
    fn change(&self, with: impl Fn(u64) -> u64) -> u64;
    /// Sets the value.
    fn put(&self, value: u64);
}

/// One implementation for the words of filters and of their models, so that results of a model hold
/// for both.
macro_rules! shared_word {
    ($word:ty, $plain:literal) => {
        impl Word for $word {
            const IS_PLAIN: bool = $plain;

            #[inline(always)]
            fn get(&self) -> u64 {
                u64::from_le(self.load(Relaxed))
            }
        }

        impl SharedWord for $word {
            #[inline(always)]
            fn set(&self, bits: u64) -> u64 {
                u64::from_le(self.fetch_or(bits.to_le(), Relaxed))
            }

            #[inline(always)]
            fn change(&self, with: impl Fn(u64) -> u64) -> u64 {
                let with = |word| Some(with(u64::from_le(word)).to_le());
                match self.fetch_update(Relaxed, Relaxed, with) {
                    Ok(before) | Err(before) => u64::from_le(before),
                }
            }

            #[inline(always)]
            fn put(&self, value: u64) {
                self.store(value.to_le(), Relaxed);
            }
        }

        impl sealed::Sealed for $word {}
    };
}

shared_word!(AtomicU64, true);
#[cfg(test)]
shared_word!(loom::sync::atomic::AtomicU64, false);

/// A word with exclusive access.
impl Word for u64 {
    #[inline(always)]
    fn get(&self) -> u64 {
        Self::from_le(*self)
    }
}

/// The caller's bytes, of any alignment.
impl Word for [u8; 8] {
    #[inline(always)]
    fn get(&self) -> u64 {
        u64::from_le_bytes(*self)
    }
}

/// A read-only word. Its memory may be a file mapped read-only, where a write would kill the
/// process.
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
    const IS_PLAIN: bool = W::IS_PLAIN;

    #[inline(always)]
    fn get(&self) -> u64 {
        self.0.get()
    }
}

mod sealed {
    pub trait Sealed {}
    impl<W> Sealed for super::ReadOnly<W> {}
    impl Sealed for u64 {}
    impl Sealed for [u8; 8] {}
}

/// Calls `each` with the words' bytes, piece by piece: a snapshot that is valid while other threads
/// add keys.
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
