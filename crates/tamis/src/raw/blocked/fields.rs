//! The positions of one word, all of them at once: every 9-bit field of a
//! 64-bit word takes part in each operation.

use super::scalar::FIELD_BITS;

/// The lowest bit of each of the first `count` fields.
#[inline(always)]
pub(super) fn low_bits(count: u32) -> u64 {
    // One in every field, cut off behind the last.
    const ALL: u64 = 1 | 1 << 9 | 1 << 18 | 1 << 27 | 1 << 36 | 1 << 45 | 1 << 54;
    ALL & ((1 << (count * FIELD_BITS)) - 1)
}

/// Marks, by their top bits, fields that are equal to another one among the
/// first `count`, `2..=7`. The lowest mark is right; ones above it may not be.
#[inline(always)]
fn repeats(word: u64, count: u32) -> u64 {
    let low_bits = low_bits(count);
    let used = (1 << (count * FIELD_BITS)) - 1;
    let word = word & used;
    // Turned around by one field, by two, … by half of them, every field
    // meets every other. Equal ones differ in no bit, and of all fields only
    // 0 borrows up to its top when 1 is subtracted.
    let (mut turned, mut marks) = (word, 0);
    for _distance in 1..=count / 2 {
        turned = (turned >> FIELD_BITS | turned << ((count - 1) * FIELD_BITS)) & used;
        let differ = word ^ turned;
        marks |= differ.wrapping_sub(low_bits) & !differ;
    }
    marks & low_bits << (FIELD_BITS - 1)
}

/// A word whose first `count` fields, at most seven, are the bits that the
/// key sets: repeated positions have moved on to free ones. Which of two equal
/// ones moves, and when, makes no difference to the set.
#[inline(always)]
pub(super) fn distinct(mut word: u64, count: u32) -> u64 {
    loop {
        let marks = repeats(word, count);
        if count < 2 || marks == 0 {
            return word;
        }
        let first = marks.trailing_zeros() + 1 - FIELD_BITS;
        let field = ((1 << FIELD_BITS) - 1) << first;
        word = word & !field | word.wrapping_add(1 << first) & field;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::blocked::scalar::{FIELDS, line_mask};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn distinct_fields_are_the_mask(
            count in 1..=FIELDS,
            start in any::<u64>(),
            // Positions close to each other, also around the end.
            near in prop::collection::vec(0u64..4, 7),
        ) {
            let crowded = near.iter().fold(start & 511, |word, step| {
                (word << FIELD_BITS) | ((word + step) % 512)
            });
            for word in [start, crowded, 0, u64::MAX] {
                let fields = distinct(word, count);
                let mut mask = [0; 8];
                for i in 0..count {
                    let position = fields >> (i * FIELD_BITS) & 511;
                    mask[position as usize / 64] |= 1u64 << (position % 64);
                }
                prop_assert_eq!(mask, line_mask(&mut { word }, count));
            }
        }
    }
}
