//! The blocked filter's bits, in portable code: the specification.
//!
//! A key's positions in a line are 9-bit fields of a 64-bit word, seven a
//! word, lowest first; when a word is used up, the next is its [`mix`]. The
//! first word is the hash's low half. A position that the key has already
//! taken moves to the next free one, so that a key sets exactly `k` bits of
//! its line: that saves 0.3 % of the size at equal rate. A second line goes on
//! with the next word.

use crate::blocked::{BlockedShape, LINE_BITS, LINE_WORDS, line};
use crate::bytes::Word;
use crate::hash::{Hash, mix};

/// Positions that one word holds.
pub(crate) const FIELDS: u32 = 7;
/// Bits of a position.
pub(crate) const FIELD_BITS: u32 = 9;

/// The bits of a key in one line. `word` moves on to the next line's.
#[inline]
pub(crate) fn line_mask(word: &mut u64, hashes: u32) -> [u64; LINE_WORDS] {
    let mut mask = [0; LINE_WORDS];
    for_each_position(word, hashes, |position| {
        let taken = |position: u32| mask[position as usize / 64] >> (position % 64) & 1;
        // The first step without a branch: it can't be predicted.
        let mut position = (position + taken(position) as u32) % LINE_BITS;
        while taken(position) != 0 {
            position = (position + 1) % LINE_BITS;
        }
        mask[position as usize / 64] |= 1 << (position % 64);
        true
    });
    mask
}

/// Calls `each` with the key's positions, before repeated ones are moved,
/// until it says `false`.
#[inline(always)]
pub(crate) fn for_each_position(
    word: &mut u64,
    hashes: u32,
    mut each: impl FnMut(u32) -> bool,
) -> bool {
    let mut left = hashes;
    loop {
        let mut fields = *word;
        *word = mix(*word);
        for _ in 0..left.min(FIELDS) {
            if !each(fields as u32 % LINE_BITS) {
                return false;
            }
            fields >>= FIELD_BITS;
        }
        if left <= FIELDS {
            return true;
        }
        left -= FIELDS;
    }
}

/// Calls `each` with the index and the bits of each of a key's lines.
#[inline]
pub(crate) fn for_each_line(
    shape: &BlockedShape,
    hash: Hash,
    mut each: impl FnMut(usize, [u64; LINE_WORDS]),
) {
    let mut word = hash.lo;
    let hashes = shape.hashes_per_line();
    each(shape.first_line(hash), line_mask(&mut word, hashes));
    if shape.lines_per_key() == 2 {
        each(shape.second_line(hash), line_mask(&mut word, hashes));
    }
}

/// Whether all bits of the key are set.
#[inline]
pub(crate) fn contains<W: Word>(shape: &BlockedShape, words: &[W], hash: Hash) -> bool {
    let mut word = hash.lo;
    let hashes = shape.hashes_per_line();
    line_has(line(words, shape.first_line(hash)), &mut word, hashes)
        && (shape.lines_per_key() == 1
            || line_has(line(words, shape.second_line(hash)), &mut word, hashes))
}

#[inline(always)]
fn line_has<W: Word>(line: &[W; LINE_WORDS], word: &mut u64, hashes: u32) -> bool {
    let mut start = *word;
    // Distinct low six bits prove distinct positions, which is the usual case
    // and spares the search for repeated ones.
    let mut low_bits = 0u64;
    let all_set = for_each_position(word, hashes, |position| {
        let bit = 1u64 << (position % 64);
        low_bits |= bit;
        line[position as usize / 64].get() & bit != 0
    });
    all_set
        && (low_bits.count_ones() == hashes
            || line_mask(&mut start, hashes)
                .iter()
                .zip(line)
                .all(|(bits, word)| word.get() & bits == *bits))
}

/// Adds a key to words that nobody else accesses; whether a bit was new.
#[inline]
pub(crate) fn insert_exclusive(shape: &BlockedShape, words: &mut [u64], hash: Hash) -> bool {
    let mut new = false;
    let lines = words.as_chunks_mut::<LINE_WORDS>().0;
    for_each_line(shape, hash, |index, mask| {
        for (word, bits) in lines[index].iter_mut().zip(mask) {
            new |= u64::from_le(*word) & bits != bits;
            *word |= bits.to_le();
        }
    });
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_sets_exactly_k_bits() {
        for hashes in 1..=32 {
            for seed in [0, 1, u64::MAX, 0x0123_4567_89ab_cdef] {
                let mask = line_mask(&mut { seed }, hashes);
                let ones: u32 = mask.iter().map(|w| w.count_ones()).sum();
                assert_eq!(ones, hashes);
            }
        }
    }

    #[test]
    fn the_mask_is_the_documented_one() {
        // Fields 5, 5, 511, 511 of one word: the repeated ones move on, the
        // last one around the end.
        let word = 5 | 5 << 9 | 511 << 18 | 511 << 27;
        let mask = line_mask(&mut { word }, 4);
        assert_eq!(mask, [1 << 5 | 1 << 6 | 1, 0, 0, 0, 0, 0, 0, 1 << 63]);
    }
}
