//! The textbook Bloom filter: any number of bits, any number of hashes.
//!
//! A key costs up to one cache miss per hash. [`Blocked`](crate::Blocked)
//! costs one or two; this kind is for the smallest Bloom size and for those
//! who want the classic.

use crate::error::Error;
use crate::hash::{Hash, reduce};
use crate::kind::Kind;
use crate::raw::isa::prefetch;
use crate::raw::layout::{BitLayout, Creatable, Difference, Layout, Sealed};
use crate::raw::word::Word;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bits and hashes of a [`Bloom`](crate::Bloom) filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BloomShape {
    bits: u64,
    hashes: u32,
}

/// Beyond this many hashes no sensible rate is served.
const MAX_HASHES: u32 = 64;
/// 2^60 bytes: far beyond any machine, and no product below overflows.
const MAX_BITS: u64 = 1 << 63;

/// Step of the generator that makes a key's positions; any odd number with
/// well-spread bits does.
const STEP: u64 = 0xD6E8_FEB8_6659_FD93;

impl BloomShape {
    /// A shape of exactly this many bits and hashes.
    pub fn new(bits: u64, hashes: u32) -> Result<Self, Error> {
        if !(1..=MAX_BITS).contains(&bits) {
            return Err(Error::parameter("bits", "1 to 2^63", bits));
        }
        if !(1..=MAX_HASHES).contains(&hashes) {
            return Err(Error::parameter("hashes", "1 to 64", hashes));
        }
        Ok(Self { bits, hashes })
    }

    /// The number of bits, *m* in the literature.
    #[inline]
    pub const fn bits(&self) -> u64 {
        self.bits
    }

    /// The number of hashes, *k* in the literature.
    #[inline]
    pub const fn hashes(&self) -> u32 {
        self.hashes
    }

    /// Whole lines, so that the body is a multiple of 64 bytes.
    pub(crate) const fn body_len(&self) -> u64 {
        self.bits.div_ceil(512) * 64
    }

    /// The key's bits, by number; two of them may be the same.
    ///
    /// ```
    /// use tamis::raw::BloomShape;
    /// use tamis::Hasher;
    /// let shape = BloomShape::new(64, 3)?;
    /// let positions: Vec<u64> = shape.positions(Hasher::default().hash(b"key")).collect();
    /// assert!(positions.len() == 3 && positions.iter().all(|bit| *bit < 64));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[inline]
    pub fn positions(self, hash: Hash) -> impl Iterator<Item = u64> {
        // The top of a linear congruential sequence whose start and increment
        // are the two halves of the hash. Unlike double hashing, two keys share
        // all positions only if they share the hash.
        let mut x = hash.lo;
        (0..self.hashes).map(move |_| {
            let position = reduce(x, self.bits);
            x = x.wrapping_mul(STEP).wrapping_add(hash.hi);
            position
        })
    }
}

#[inline]
const fn place(position: u64) -> (usize, u64) {
    ((position / 64) as usize, 1 << (position % 64))
}

impl Sealed for BloomShape {}

impl Creatable for BloomShape {}

impl Layout for BloomShape {
    const KIND: Kind = Kind::Bloom;

    fn difference(&self, other: &Self) -> Option<Difference> {
        Difference::between("bits", self.bits, other.bits)
            .or_else(|| Difference::between("hashes", self.hashes, other.hashes))
    }

    #[inline]
    fn contains<W: Word>(&self, words: &[W], hash: Hash) -> bool {
        self.positions(hash).all(|position| {
            let (word, bit) = place(position);
            words[word].get() & bit != 0
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
        let fill = self.fill(words).min(1.0 - 1.0 / self.bits as f64);
        -(self.bits as f64) / f64::from(self.hashes) * (-fill).ln_1p()
    }
}

impl BitLayout for BloomShape {
    #[inline]
    fn insert(&self, words: &[AtomicU64], hash: Hash) -> bool {
        let mut new = false;
        for position in self.positions(hash) {
            let (word, bit) = place(position);
            // A set bit is left alone: reading keeps the line shared.
            if words[word].get() & bit == 0 {
                let before = u64::from_le(words[word].fetch_or(bit.to_le(), Relaxed));
                new |= before & bit == 0;
            }
        }
        new
    }

    fn insert_many_shared(&self, words: &[AtomicU64], hashes: &[Hash], new: &mut [bool]) {
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
    /// The share of set bits. Only bytes of foreign making have bits set
    /// beyond the last.
    pub(crate) fn fill<W: Word>(&self, words: &[W]) -> f64 {
        (ones(words) as f64 / self.bits as f64).min(1.0)
    }

    /// Asks for the lines of a whole block of keys before the first is read.
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
