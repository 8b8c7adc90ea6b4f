//! A key's bits in a line, in portable code: the specification.

use crate::hash::{Hash, mix};
use crate::raw::word::Word;

/// Words of a line.
pub(crate) const LINE_WORDS: usize = 8;

/// The words of a line.
pub(super) type Line<T> = [T; LINE_WORDS];

/// The bits of a key in a line, given the low half of its hash for that line: at most one per word.
/// In word `w` it is bit `(lo >> 6w) & 63`, if the word is [covered](super::covers).
#[inline(always)]
pub(crate) fn mask(lo: u64, cover: u8) -> Line<u64> {
    let cover = u64::from(cover);
    std::array::from_fn(|w| (cover >> w & 1) << (lo >> (6 * w) & 63))
}

/// Which words of the line lack the key's bit.
#[inline(always)]
pub(super) fn missing<W: Word>(line: &Line<W>, lo: u64, cover: u8) -> u8 {
    // Unrolled by hand, because code compiled for size would keep a loop.
    let has = |w: usize| (line[w].get() >> (lo >> (6 * w) & 63) & 1) << w;
    let set = has(0) | has(1) | has(2) | has(3) | has(4) | has(5) | has(6) | has(7);
    !set as u8 & cover
}

/// Sets the key's bits and returns whether one was missing.
#[inline(always)]
pub(super) fn insert(line: &mut Line<u64>, lo: u64, cover: u8) -> bool {
    let mut missing = 0;
    for (word, bit) in line.iter_mut().zip(mask(lo, cover)) {
        missing |= bit & !u64::from_le(*word);
        *word |= bit.to_le();
    }
    missing != 0
}

/// The hash for the key's next line.
#[inline(always)]
pub(super) const fn next(hash: Hash) -> Hash {
    Hash {
        hi: mix(hash.hi),
        lo: mix(hash.lo),
    }
}
