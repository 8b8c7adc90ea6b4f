//! Access to a window's words: exclusive, shared, or read-only.

use super::shape::Spot;
use crate::raw::isa::prefetch;
use crate::raw::word::Word;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, SeqCst},
    fence,
};

/// Words that can be read, and exchanged if they haven't changed.
pub(crate) trait Cells {
    /// Whether others may change the words concurrently.
    const SHARED: bool;
    fn load(&self, at: usize) -> u64;
    /// The words of a bin.
    fn load_bin<const WORDS: usize>(&self, first: usize) -> [u64; WORDS];
    /// Their address and number, if they are in plain memory.
    #[cfg(target_arch = "x86_64")]
    fn place(&self) -> Option<(*const u64, usize)>;
    /// Writes `new` if the word is still `old`.
    fn exchange(&mut self, at: usize, old: u64, new: u64) -> bool;
    /// The words, with exclusive access.
    fn alone(&mut self) -> Option<&mut [u64]>;
    /// Prefetches a key's bins; a hint.
    fn prefetch(&self, spot: &Spot);
    /// Later loads return nothing older than earlier loads.
    fn then(&self);
    /// If two threads each exchange or load one word, call this, and load another word, then the later one sees there
    /// what the earlier one saw or wrote before.
    fn agree(&self);
}

/// Read-only words of any owner.
pub(crate) struct Read<'a, W>(pub(crate) &'a [W]);

impl<W: Word> Cells for Read<'_, W> {
    const SHARED: bool = true;

    #[inline(always)]
    fn load(&self, at: usize) -> u64 {
        self.0[at].get()
    }

    #[inline(always)]
    fn load_bin<const WORDS: usize>(&self, first: usize) -> [u64; WORDS] {
        let words = &self.0[first..first + WORDS];
        std::array::from_fn(|i| words[i].get())
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn place(&self) -> Option<(*const u64, usize)> {
        Some((self.0.as_ptr().cast(), self.0.len()))
    }

    fn exchange(&mut self, _: usize, _: u64, _: u64) -> bool {
        unreachable!("words that are only read")
    }

    fn alone(&mut self) -> Option<&mut [u64]> {
        None
    }

    #[inline(always)]
    fn prefetch(&self, spot: &Spot) {
        fetch(self.0, spot);
    }

    #[inline(always)]
    fn then(&self) {
        fence(Acquire);
    }

    #[inline(always)]
    fn agree(&self) {
        agree();
    }
}

/// Words with exclusive access.
pub(crate) struct Alone<'a>(pub(crate) &'a mut [u64]);

impl Cells for Alone<'_> {
    const SHARED: bool = false;

    #[inline(always)]
    fn load(&self, at: usize) -> u64 {
        u64::from_le(self.0[at])
    }

    #[inline(always)]
    fn load_bin<const WORDS: usize>(&self, first: usize) -> [u64; WORDS] {
        let words = &self.0[first..first + WORDS];
        std::array::from_fn(|i| u64::from_le(words[i]))
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn place(&self) -> Option<(*const u64, usize)> {
        Some((self.0.as_ptr().cast(), self.0.len()))
    }

    #[inline(always)]
    fn exchange(&mut self, at: usize, old: u64, new: u64) -> bool {
        // Making room for a key may have changed its bins.
        let is_there = self.load(at) == old;
        if is_there {
            self.0[at] = new.to_le();
        }
        is_there
    }

    fn alone(&mut self) -> Option<&mut [u64]> {
        Some(self.0)
    }

    #[inline(always)]
    fn prefetch(&self, spot: &Spot) {
        fetch(self.0, spot);
    }

    #[inline(always)]
    fn then(&self) {}

    #[inline(always)]
    fn agree(&self) {}
}

/// Words shared with other threads and processes.
pub(crate) struct Beside<'a>(pub(crate) &'a [AtomicU64]);

impl Cells for Beside<'_> {
    const SHARED: bool = true;

    #[inline(always)]
    fn load(&self, at: usize) -> u64 {
        u64::from_le(self.0[at].load(Acquire))
    }

    #[inline(always)]
    fn load_bin<const WORDS: usize>(&self, first: usize) -> [u64; WORDS] {
        let words = &self.0[first..first + WORDS];
        std::array::from_fn(|i| u64::from_le(words[i].load(Acquire)))
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn place(&self) -> Option<(*const u64, usize)> {
        Some((self.0.as_ptr().cast(), self.0.len()))
    }

    #[inline(always)]
    fn exchange(&mut self, at: usize, old: u64, new: u64) -> bool {
        self.0[at]
            .compare_exchange(old.to_le(), new.to_le(), AcqRel, Relaxed)
            .is_ok()
    }

    fn alone(&mut self) -> Option<&mut [u64]> {
        None
    }

    #[inline(always)]
    fn prefetch(&self, spot: &Spot) {
        fetch(self.0, spot);
    }

    #[inline(always)]
    fn then(&self) {
        fence(Acquire);
    }

    #[inline(always)]
    fn agree(&self) {
        agree();
    }
}

#[inline(always)]
fn agree() {
    // x86 keeps loads in order, and none precedes an exchange.
    #[cfg(target_arch = "x86_64")]
    std::sync::atomic::compiler_fence(SeqCst);
    #[cfg(not(target_arch = "x86_64"))]
    fence(SeqCst);
}

/// Prefetches a key's bins; a hint.
#[inline(always)]
pub(super) fn fetch<T>(words: &[T], spot: &Spot) {
    for first in spot.firsts {
        prefetch(words.as_ptr().wrapping_add(first));
    }
}
