//! Batch lookups of the counting filter. Its specification is
//! `Layout::contains` in `counting.rs`.

use super::Path;
use crate::bytes::Word;
use crate::counting::CountingShape;
use crate::filter::Layout;
use crate::hash::Hash;

/// Asks a block of keys. The lines should have been prefetched.
pub(crate) fn contains_block<W: Word>(
    path: Path,
    shape: &CountingShape,
    words: &[W],
    hashes: &[Hash],
    out: &mut [bool],
) {
    assert_eq!(hashes.len(), out.len());
    assert_eq!(size_of_val(words) as u64, shape.body_len());
    match path {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a path is only chosen where it is available; the number of
        // words was checked.
        Path::Avx512 if shape.hashes_per_line() <= 8 => unsafe {
            avx512::contains_block(shape, words, hashes, out);
        },
        _ => {
            for (hash, out) in hashes.iter().zip(out) {
                *out = shape.contains(words, *hash);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use super::super::x86_64::load_line;
    use crate::blocked::{LINE_WORDS, line};
    use crate::bytes::Word;
    use crate::counting::{CountingShape, FIELD_BITS, Fields};
    use crate::filter::Layout;
    use crate::hash::{Hash, mix, reduce};
    use std::arch::x86_64::*;

    /// Keys that are asked together: a bit each in a word.
    const GROUP: usize = 64;

    /// # Safety
    /// The machine has AVX-512 F, DQ and BW, and `words` are those of the
    /// shape.
    #[target_feature(enable = "avx512f,avx512dq,avx512bw")]
    pub(super) unsafe fn contains_block<W: Word>(
        shape: &CountingShape,
        words: &[W],
        hashes: &[Hash],
        out: &mut [bool],
    ) {
        let ask = match (shape.hashes_per_line(), shape.lines_per_key()) {
            (1, 2) => contains_group::<1, W>,
            (2, 2) => contains_group::<2, W>,
            (3, 2) => contains_group::<3, W>,
            (4, 2) => contains_group::<4, W>,
            _ => contains_any::<W>,
        };
        for (hashes, out) in hashes.chunks(GROUP).zip(out.chunks_mut(GROUP)) {
            let mut group = [hashes[0]; GROUP];
            let group = match hashes.as_array() {
                Some(hashes) => hashes,
                None => {
                    group[..hashes.len()].copy_from_slice(hashes);
                    &group
                }
            };
            // SAFETY: the caller's promise.
            let found = unsafe { ask(shape, words, group) };
            for (i, out) in out.iter_mut().enumerate() {
                *out = found >> i & 1 != 0;
            }
        }
    }

    /// `K` counters in each of two lines, the usual case: as in a blocked
    /// filter, each lane fetches the word of one position and brings its
    /// counter to the front.
    ///
    /// # Safety
    /// As [`contains_block`].
    #[target_feature(enable = "avx512f,avx512dq,avx512bw")]
    unsafe fn contains_group<const K: usize, W: Word>(
        shape: &CountingShape,
        words: &[W],
        hashes: &[Hash; GROUP],
    ) -> u64 {
        // Lanes beyond 2 K ask the first position once more.
        let (mut fields, mut second) = ([0; 8], [0; 8]);
        for i in 0..2 * K {
            fields[i] = i as i64 * i64::from(FIELD_BITS);
            second[i] = if i < K { 0 } else { 8 };
        }
        // SAFETY: 64 readable bytes each.
        let (fields, second) = unsafe {
            (
                _mm512_loadu_si512(fields.as_ptr().cast()),
                _mm512_loadu_si512(second.as_ptr().cast()),
            )
        };
        let word_shifts = _mm512_add_epi64(fields, _mm512_set1_epi64(4));
        let counter_turns = _mm512_sub_epi64(fields, _mm512_set1_epi64(2));
        let (in_line, in_word) = (_mm512_set1_epi64(7), _mm512_set1_epi64(15 << 2));
        let counter = _mm512_set1_epi64(15);
        let lines = words.as_chunks::<LINE_WORDS>().0;
        let mut above = [0u8; GROUP];
        for (hash, above) in hashes.iter().zip(&mut above) {
            let (first, other) = (
                reduce(hash.hi, shape.lines()),
                reduce(mix(hash.hi), shape.lines()),
            );
            // SAFETY: the shape's lines are all there.
            let (first, other) = unsafe {
                (
                    load_line(lines.get_unchecked(first as usize)),
                    load_line(lines.get_unchecked(other as usize)),
                )
            };
            let word = _mm512_set1_epi64(hash.lo.cast_signed());
            // (word >> shift & in_line) | second
            let index = _mm512_srlv_epi64(word, word_shifts);
            let index = _mm512_ternarylogic_epi64::<0xea>(second, index, in_line);
            let turn = _mm512_and_si512(_mm512_rorv_epi64(word, counter_turns), in_word);
            let found = _mm512_permutex2var_epi64(first, index, other);
            *above = _mm512_test_epi64_mask(_mm512_rorv_epi64(found, turn), counter);
        }
        // SAFETY: 64 readable bytes.
        let above = unsafe { _mm512_loadu_si512(above.as_ptr().cast()) };
        let mut found = _mm512_cmpeq_epi8_mask(above, _mm512_set1_epi8(-1));
        let mut unclear = found;
        while unclear != 0 {
            let i = unclear.trailing_zeros();
            let hash = hashes[i as usize];
            if has_repeats_in_two::<K>(hash.lo) && !shape.contains(words, hash) {
                found &= !(1 << i);
            }
            unclear &= unclear - 1;
        }
        found
    }

    /// Up to eight counters in each of any number of lines.
    ///
    /// # Safety
    /// As [`contains_block`].
    #[target_feature(enable = "avx512f,avx512dq,avx512bw")]
    unsafe fn contains_any<W: Word>(
        shape: &CountingShape,
        words: &[W],
        hashes: &[Hash; GROUP],
    ) -> u64 {
        let k = shape.hashes_per_line();
        let mut shifts = [0; 8];
        for i in 0..k {
            shifts[i as usize] = i64::from(i * FIELD_BITS);
        }
        // SAFETY: 64 readable bytes.
        let shifts = unsafe { _mm512_loadu_si512(shifts.as_ptr().cast()) };
        let word_shifts = _mm512_add_epi64(shifts, _mm512_set1_epi64(4));
        let counter = _mm512_set1_epi64(15);
        let mut found = 0;
        for (i, hash) in hashes.iter().enumerate() {
            let mut fields = Fields::new(*hash);
            let all_above = shape.lines_of(*hash).all(|index| {
                let word = _mm512_set1_epi64(fields.of_line(k).word().cast_signed());
                let words = _mm512_permutexvar_epi64(
                    _mm512_srlv_epi64(word, word_shifts),
                    load_line(line(words, index)),
                );
                let turn = _mm512_slli_epi64::<2>(_mm512_srlv_epi64(word, shifts));
                _mm512_test_epi64_mask(_mm512_rorv_epi64(words, turn), counter) == 0xff
            });
            let distinct = || {
                let mut fields = Fields::new(*hash);
                (0..shape.lines_per_key()).all(|_| !has_repeats(fields.of_line(k).word(), k))
            };
            let yes = all_above && (distinct() || shape.contains(words, *hash));
            found |= u64::from(yes) << i;
        }
        found
    }

    /// Whether the first `K` fields, or the next `K`, are not distinct.
    #[inline(always)]
    fn has_repeats_in_two<const K: usize>(word: u64) -> bool {
        has_repeats(word, K as u32) | has_repeats(word >> (K as u32 * FIELD_BITS), K as u32)
    }

    /// Whether the first `k` fields of a word, up to eight, are not distinct;
    /// now and then also when they are.
    #[inline(always)]
    fn has_repeats(word: u64, k: u32) -> bool {
        const LOW: u64 = lowest(8);
        const TOP: u64 = LOW << (FIELD_BITS - 1);
        let all = k * FIELD_BITS;
        let fields = word & ((1 << all) - 1);
        // Turned around by one field, by two, … by half of them, every field
        // meets every other. Fields that are equal differ in no bit, and only
        // a field of 0 (or one above it) borrows up to its top when the lowest
        // bits are subtracted.
        let mut borrowed = 0;
        for distance in 1..=k / 2 {
            let turned =
                fields >> (distance * FIELD_BITS) | fields << (all - distance * FIELD_BITS);
            let differ = fields ^ turned;
            borrowed |= differ.wrapping_sub(LOW) & !differ;
        }
        borrowed & TOP & ((1 << all) - 1) != 0
    }

    /// The lowest bits of so many fields.
    const fn lowest(fields: u32) -> u64 {
        match fields {
            0 => 0,
            _ => lowest(fields - 1) << FIELD_BITS | 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;
    use crate::{Counting, Hasher, Plan};

    /// Every path of this machine equals the specification.
    #[test]
    fn every_path_equals_the_specification() {
        for per_key in [1, 2, 4] {
            for k in 1..=12 {
                let shape = CountingShape::new(20, k, per_key).unwrap();
                let mut filter =
                    Counting::from_plan(&Plan::of(shape, 1), Hasher::default()).unwrap();
                // Few bits in `lo` make positions repeat within a key.
                let hashes: Vec<Hash> = (0..600)
                    .map(|i| Hash {
                        hi: mix(mix(i)),
                        lo: mix(mix(!i)) >> [0, 40, 57][i as usize % 3],
                    })
                    .collect();
                let added = &hashes[..1200 / (k * per_key) as usize];
                filter.insert_hashes(added, &mut vec![false; added.len()]);
                let expected: Vec<bool> = hashes
                    .iter()
                    .map(|hash| filter.contains_hash(*hash))
                    .collect();
                assert!(expected[..added.len()].iter().all(|found| *found));
                assert!(expected.contains(&false));
                for &path in Path::ALL.iter().filter(|path| path.is_available()) {
                    let mut found = vec![false; hashes.len()];
                    contains_block(path, &shape, filter.words(), &hashes, &mut found);
                    assert_eq!(found, expected, "{path:?}, {k} in each of {per_key}");
                }
            }
        }
    }
}
