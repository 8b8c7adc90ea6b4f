//! The textbook Bloom filter: any number of bits, any number of hashes.
//!
//! A key costs up to one cache miss per hash. [`Blocked`](crate::Blocked) costs one or two; this
//! kind is for the smallest Bloom size and for users who want the classic.

mod shape;

pub use shape::BloomShape;

use crate::hash::Hash;
use crate::kind::Kind;
use crate::raw::explain::{Cell, Explanation, Look, all_of, bit};
use crate::raw::isa::prefetch;
use crate::raw::layout::{BitLayout, Creatable, Difference, Layout, Sealed, Timeless};
use crate::raw::word::{SharedWord, Word};

#[inline]
const fn place(position: u64) -> (usize, u64) {
    ((position / 64) as usize, 1 << (position % 64))
}

impl Sealed for BloomShape {}

impl Timeless for BloomShape {}

impl Creatable for BloomShape {}

impl Layout for BloomShape {
    const KIND: Kind = Kind::Bloom;

    #[inline]
    fn body_len(&self) -> u64 {
        BloomShape::body_len(self)
    }

    fn difference(&self, other: &Self) -> Option<Difference> {
        Difference::between("bits", self.bits(), other.bits())
            .or_else(|| Difference::between("hashes", self.hashes(), other.hashes()))
    }

    #[inline]
    fn contains<W: Word>(&self, words: &[W], hash: Hash) -> bool {
        self.positions(hash).all(|position| {
            let (word, bit) = place(position);
            words[word].get() & bit != 0
        })
    }

    fn explain<W: Word>(&self, words: &[W], hash: Hash) -> Explanation {
        let cell = |at| Cell {
            line: None,
            at,
            value: bit(words, at),
        };
        Explanation::of(Look::Cells {
            cells: self.positions(hash).map(cell).collect(),
            all: all_of(self.bits(), |at| bit(words, at)),
        })
    }

    fn contains_many<W: Word>(&self, words: &[W], hashes: &[Hash], out: &mut [bool]) {
        self.prefetch(words, hashes);
        for (hash, out) in hashes.iter().zip(out) {
            *out = self.contains(words, *hash);
        }
    }

    fn keys_now<W: Word>(&self, words: &[W]) -> f64 {
        // If all bits are set, as many keys as would leave one unset.
        let fill = self.fill(words).min(1.0 - 1.0 / self.bits() as f64);
        -(self.bits() as f64) / f64::from(self.hashes()) * libm::log1p(-fill)
    }
}

impl BitLayout for BloomShape {
    #[inline]
    fn insert<W: SharedWord>(&self, words: &[W], hash: Hash) -> bool {
        let mut new = false;
        for position in self.positions(hash) {
            let (word, bit) = place(position);
            // Skip bits that are already set: only reading keeps the line shared.
            if words[word].get() & bit == 0 {
                new |= words[word].set(bit) & bit == 0;
            }
        }
        new
    }

    fn insert_many_shared<W: SharedWord>(&self, words: &[W], hashes: &[Hash], new: &mut [bool]) {
        self.prefetch(words, hashes);
        for (hash, new) in hashes.iter().zip(new) {
            *new = self.insert(words, *hash);
        }
    }

    fn insert_many(&self, words: &mut [u64], hashes: &[Hash], new: &mut [bool]) {
        self.prefetch(words, hashes);
        for (hash, new) in hashes.iter().zip(new) {
            *new = false;
            for position in self.positions(*hash) {
                let (word, bit) = place(position);
                *new |= u64::from_le(words[word]) & bit == 0;
                words[word] |= bit.to_le();
            }
        }
    }
}

impl BloomShape {
    /// The share of set bits. Only files made by others have bits set beyond the last.
    pub(crate) fn fill<W: Word>(&self, words: &[W]) -> f64 {
        (ones(words) as f64 / self.bits() as f64).min(1.0)
    }

    /// Prefetches the lines of a whole block of keys before the first is read.
    fn prefetch<T>(&self, words: &[T], hashes: &[Hash]) {
        for hash in hashes {
            for position in self.positions(*hash) {
                prefetch(&words[place(position).0]);
            }
        }
    }
}

pub(crate) fn ones<W: Word>(words: &[W]) -> u64 {
    words.iter().map(|w| u64::from(w.get().count_ones())).sum()
}
