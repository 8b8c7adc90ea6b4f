//! The blocked filter's bits, in portable code: the specification.
//!
//! A key's positions in a line are 9-bit fields of a 64-bit word, seven a
//! word, lowest first; when a word is used up, the next is its [`mix`]. The
//! first word is the hash's low half. A position that the key has already
//! taken moves to the next free one, so that a key sets exactly `k` bits of
//! its line: that saves 0.3 % of the size at equal rate. A second line goes on
//! with the next word.

use super::fields;
use crate::hash::{Hash, mix};
use crate::raw::blocked::{BlockedShape, LINE_BITS, LINE_WORDS, line};
use crate::raw::word::Word;

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

/// The bits of a key in its first line (`nth` 0) or its second.
#[inline]
pub(crate) fn nth_line_mask(hash: Hash, nth: u32, hashes: u32) -> [u64; LINE_WORDS] {
    line_mask(&mut nth_word(hash, nth, hashes), hashes)
}

/// The word that a line's positions start from.
#[inline(always)]
pub(crate) fn nth_word(hash: Hash, nth: u32, hashes: u32) -> u64 {
    (0..nth * hashes.div_ceil(FIELDS)).fold(hash.lo, |word, _| mix(word))
}

/// Runs the same for the numbers of bits a line that rates around 1 % have,
/// each of them a constant: without loops it takes half the instructions.
macro_rules! with_constant {
    ($hashes:expr, $run:expr) => {
        match $hashes {
            5 => ($run)(5),
            6 => ($run)(6),
            7 => ($run)(7),
            other => ($run)(other),
        }
    };
}

/// Whether all bits of the key are set.
#[inline]
pub(crate) fn contains<W: Word>(shape: &BlockedShape, words: &[W], hash: Hash) -> bool {
    with_constant!(shape.hashes_per_line(), |hashes| has(
        shape, words, hash, hashes
    ))
}

#[inline(always)]
fn has<W: Word>(shape: &BlockedShape, words: &[W], hash: Hash, hashes: u32) -> bool {
    let mut word = hash.lo;
    line_has(line(words, shape.first_line(hash)), &mut word, hashes)
        && (shape.lines_per_key() == 1
            || line_has(line(words, shape.second_line(hash)), &mut word, hashes))
}

#[inline(always)]
fn line_has<W: Word>(line: &[W; LINE_WORDS], word: &mut u64, hashes: u32) -> bool {
    let start = *word;
    // All positions of a word before the one branch: where the first unset
    // one is can't be predicted.
    let mut left = hashes;
    let all_set = loop {
        let here = left.min(FIELDS);
        let mut missing = 0;
        for_each_position(word, here, |position| {
            missing |= !line[position as usize / 64].get() & 1 << (position % 64);
            true
        });
        left -= here;
        if missing != 0 || left == 0 {
            break missing == 0;
        }
    };
    // Positions that repeat were moved; asked only when all are set.
    all_set
        && (!may_repeat(start, hashes)
            || line_mask(&mut { start }, hashes)
                .iter()
                .zip(line)
                .all(|(bits, word)| word.get() & bits == *bits))
}

/// Whether two of a line's positions may be the same; the usual "no" spares
/// the search for repeated ones.
#[inline(always)]
pub(crate) fn may_repeat(word: u64, hashes: u32) -> bool {
    if hashes <= FIELDS {
        return fields::distinct(word, hashes) != word;
    }
    // Distinct low six bits prove distinct positions.
    let mut low_bits = 0u64;
    for_each_position(&mut { word }, hashes, |position| {
        low_bits |= 1 << (position % 64);
        true
    });
    low_bits.count_ones() != hashes
}

/// Adds a key to words that nobody else accesses; whether a bit was new.
#[inline]
pub(crate) fn insert_exclusive(shape: &BlockedShape, words: &mut [u64], hash: Hash) -> bool {
    with_constant!(shape.hashes_per_line(), |hashes| fill(
        shape, words, hash, hashes
    ))
}

#[inline(always)]
fn fill(shape: &BlockedShape, words: &mut [u64], hash: Hash, hashes: u32) -> bool {
    let mut word = hash.lo;
    let lines = words.as_chunks_mut::<LINE_WORDS>().0;
    let mut new = fill_line(&mut lines[shape.first_line(hash)], &mut word, hashes);
    if shape.lines_per_key() == 2 {
        new |= fill_line(&mut lines[shape.second_line(hash)], &mut word, hashes);
    }
    new
}

/// Sets a key's bits in one line; whether one was missing.
#[inline(always)]
fn fill_line(line: &mut [u64; LINE_WORDS], word: &mut u64, hashes: u32) -> bool {
    let mut missing = 0;
    if may_repeat(*word, hashes) {
        for (word, bits) in line.iter_mut().zip(line_mask(word, hashes)) {
            missing |= !u64::from_le(*word) & bits;
            *word |= bits.to_le();
        }
    } else {
        for_each_position(word, hashes, |position| {
            let (word, bit) = (&mut line[position as usize / 64], 1u64 << (position % 64));
            missing |= !u64::from_le(*word) & bit;
            *word |= bit.to_le();
            true
        });
    }
    missing != 0
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
