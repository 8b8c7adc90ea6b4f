//! The counting filter: a blocked filter with a 4-bit counter for each bit, so that keys can be
//! removed.
//!
//! The counter of a line's bit `64 w + p` is the nibble of that number in the line's 256 bytes. So
//! a line is four times as long as a blocked one, its counters are above zero exactly where the
//! blocked filter of the same keys has its bits, and the rates are the same.
//!
//! A counter that has reached 15 stays there: how many keys it stands for is no longer known, and
//! decrementing it could hide another key.
//!
//! There are no vector instructions here. A key's counters are in up to four cache lines, and a
//! large filter waits for those. Reading all eight words without a branch made single look-ups only
//! 1.1 to 1.4 times as fast, and touches lines that keys with few counters don't need. A gather
//! would have the same misses, and is slow on processors with mitigations against its leaks.

mod shape;

pub use shape::CountingShape;

use crate::hash::Hash;
use crate::kind::Kind;
use crate::raw::blocked::{LINE_BITS, LINE_WORDS};
use crate::raw::explain::{Explanation, Look, all_of};
use crate::raw::isa::prefetch;
use crate::raw::layout::{BitLayout, Creatable, Difference, Layout, Sealed, Timeless};
use crate::raw::word::{SharedWord, Word};
use shape::COUNTER_BITS;
use std::sync::atomic::AtomicU64;

/// Words of a line, which has a counter for each bit of a blocked filter's line.
pub(crate) const COUNTER_WORDS: usize = LINE_WORDS * COUNTER_BITS;
/// Counters per word.
const PER_WORD: u64 = 16;

/// The lowest bit of each counter of a word.
const ONES: u64 = 0x1111_1111_1111_1111;

impl CountingShape {
    /// Calls `each` with the places of the key's counters, line by line: the word, and the shift in
    /// it.
    #[inline(always)]
    fn for_each_counter(&self, hash: Hash, mut each: impl FnMut(usize, u64)) {
        for (line, lo) in self.bits().lines_of(hash) {
            for_each_in_line(line, lo, self.hashes_per_line(), &mut each);
        }
    }

    /// Prefetches the key's counters.
    #[inline(always)]
    pub(crate) fn prefetch_all<T>(&self, words: &[T], hash: Hash) {
        for (line, _) in self.bits().lines_of(hash) {
            prefetch_line(words, line);
        }
    }

    /// The smallest of the key's counters.
    #[inline]
    pub(crate) fn count<W: Word>(&self, words: &[W], hash: Hash) -> u64 {
        let mut least = 15;
        self.for_each_counter(hash, |word, shift| {
            least = least.min(words[word].get() >> shift & 15);
        });
        least
    }

    /// Decrements each of the key's counters, if the key seems present. Returns whether it did, and
    /// whether it still does.
    pub(crate) fn remove<W: SharedWord>(&self, words: &[W], hash: Hash) -> (bool, bool) {
        if !self.contains(words, hash) {
            return (false, false);
        }
        self.for_each_counter(hash, |word, shift| {
            words[word].change(|word| subtract(word, 1 << shift));
        });
        (true, self.contains(words, hash))
    }
}

/// Calls `each` with the places of the key's counters in one line.
#[inline(always)]
fn for_each_in_line(line: usize, lo: u64, k: u32, mut each: impl FnMut(usize, u64)) {
    let start = (lo >> 61) as usize;
    for w in (start..start + k as usize).map(|w| w % LINE_WORDS) {
        let position = lo >> (6 * w) & 63;
        let word = line * COUNTER_WORDS + w * COUNTER_BITS + (position / PER_WORD) as usize;
        each(word, position % PER_WORD * COUNTER_BITS as u64);
    }
}

/// Prefetches a line, which is four cache lines.
#[inline(always)]
fn prefetch_line<T>(words: &[T], line: usize) {
    let first = words.as_ptr().wrapping_add(line * COUNTER_WORDS);
    for part in 0..COUNTER_BITS {
        prefetch(first.wrapping_add(part * LINE_WORDS));
    }
}

/// Marks the nonzero counters.
#[inline(always)]
const fn above_zero(word: u64) -> u64 {
    (word | word >> 1 | word >> 2 | word >> 3) & ONES
}

/// A bit for each counter, set if it is nonzero.
fn bits(word: u64) -> u64 {
    // Each step closes half of the gaps.
    let bits = above_zero(word);
    let bits = (bits | bits >> 3) & 0x0303_0303_0303_0303;
    let bits = (bits | bits >> 6) & 0x000F_000F_000F_000F;
    let bits = (bits | bits >> 12) & 0x0000_00FF_0000_00FF;
    (bits | bits >> 24) & 0xFFFF
}

/// The words of the blocked filter, one for every four of counters.
pub(crate) fn blocked_words<W: Word>(words: &[W]) -> impl Iterator<Item = u64> {
    let word = |(i, word): (u64, &W)| bits(word.get()) << (i * PER_WORD);
    words
        .as_chunks::<COUNTER_BITS>()
        .0
        .iter()
        .map(move |four| (0..).zip(four).map(word).sum())
}

/// Marks the counters at 15.
#[inline(always)]
const fn full(word: u64) -> u64 {
    word & word >> 1 & word >> 2 & word >> 3 & ONES
}

/// Increments each marked counter; full ones stay.
#[inline(always)]
const fn add(word: u64, marks: u64) -> u64 {
    word + (marks & !full(word))
}

/// Decrements each marked counter; full and empty ones stay.
#[inline(always)]
const fn subtract(word: u64, marks: u64) -> u64 {
    word - (marks & !full(word) & above_zero(word))
}

/// Combines the counters of two words one by one.
fn zip_counters(a: u64, b: u64, combine: impl Fn(u64, u64) -> u64) -> u64 {
    (0..64).step_by(4).fold(0, |word, shift| {
        word | combine(a >> shift & 15, b >> shift & 15) << shift
    })
}

impl Sealed for CountingShape {}

impl Timeless for CountingShape {}

impl Creatable for CountingShape {}

impl Layout for CountingShape {
    const KIND: Kind = Kind::Counting;

    #[inline]
    fn body_len(&self) -> u64 {
        CountingShape::body_len(self)
    }

    fn difference(&self, other: &Self) -> Option<Difference> {
        self.bits().difference(&other.bits())
    }

    #[inline]
    fn contains<W: Word>(&self, words: &[W], hash: Hash) -> bool {
        self.bits().lines_of(hash).all(|(line, lo)| {
            let mut all = true;
            for_each_in_line(line, lo, self.hashes_per_line(), |word, shift| {
                all &= words[word].get() >> shift & 15 != 0;
            });
            all
        })
    }

    fn explain<W: Word>(&self, words: &[W], hash: Hash) -> Explanation {
        let counter = |at: u64| {
            let shift = at % PER_WORD * COUNTER_BITS as u64;
            words[(at / PER_WORD) as usize].get() >> shift & 15
        };
        Explanation::of(Look::Cells {
            cells: self.bits().cells(hash, counter),
            all: all_of(self.lines() * LINE_BITS, counter),
        })
    }

    /// Only the first line: an absent key seldom needs another.
    #[inline]
    fn prefetch<T>(&self, words: &[T], hash: Hash) {
        for (line, _) in self.bits().lines_of(hash).take(1) {
            prefetch_line(words, line);
        }
    }

    fn contains_many<W: Word>(&self, words: &[W], hashes: &[Hash], out: &mut [bool]) {
        for (hash, out) in hashes.iter().zip(out) {
            *out = self.contains(words, *hash);
        }
    }

    fn keys_now<W: Word>(&self, words: &[W]) -> f64 {
        let used = words
            .iter()
            .map(|w| u64::from(above_zero(w.get()).count_ones()));
        self.bits().keys_from_ones(used.sum())
    }
}

impl BitLayout for CountingShape {
    #[inline]
    fn insert<W: SharedWord>(&self, words: &[W], hash: Hash) -> bool {
        let mut new = false;
        self.for_each_counter(hash, |word, shift| {
            new |= words[word].change(|word| add(word, 1 << shift)) >> shift & 15 == 0;
        });
        new
    }

    fn insert_many_shared<W: SharedWord>(&self, words: &[W], hashes: &[Hash], new: &mut [bool]) {
        hashes
            .iter()
            .for_each(|hash| self.prefetch_all(words, *hash));
        for (hash, new) in hashes.iter().zip(new) {
            *new = self.insert(words, *hash);
        }
    }

    fn insert_many(&self, words: &mut [u64], hashes: &[Hash], new: &mut [bool]) {
        hashes
            .iter()
            .for_each(|hash| self.prefetch_all(words, *hash));
        for (hash, new) in hashes.iter().zip(new) {
            *new = false;
            self.for_each_counter(*hash, |word, shift| {
                let word = &mut words[word];
                let before = u64::from_le(*word);
                *new |= before >> shift & 15 == 0;
                *word = add(before, 1 << shift).to_le();
            });
        }
    }

    /// The sums, as if the keys of both had been added to one.
    fn unite(word: &AtomicU64, theirs: u64) {
        word.change(|ours| zip_counters(ours, theirs, |a, b| (a + b).min(15)));
    }

    /// The smaller of the two. It is at least the sum over the common keys, so these can still be
    /// removed.
    fn intersect(word: &AtomicU64, theirs: u64) {
        word.change(|ours| zip_counters(ours, theirs, u64::min));
    }
}
