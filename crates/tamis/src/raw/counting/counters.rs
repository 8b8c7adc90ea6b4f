//! Batch lookups of the counting filter. Its specification is
//! `Layout::contains` in `counting.rs`.

use crate::hash::Hash;
use crate::raw::counting::CountingShape;
use crate::raw::isa::Path;
use crate::raw::layout::Layout;
use crate::raw::word::Word;

/// Asks at most [`BLOCK`](crate::raw::layout::BLOCK) keys, whose first lines have
/// been prefetched.
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
    use crate::hash::{Hash, mix, reduce};
    use crate::raw::blocked::LINE_WORDS;
    use crate::raw::blocked::x86_64::load_words;
    use crate::raw::counting::{CountingShape, FIELD_BITS, Fields};
    use crate::raw::isa::prefetch;
    use crate::raw::layout::{BLOCK, Layout};
    use crate::raw::word::Word;
    use std::arch::x86_64::*;

    /// # Safety
    /// The machine has AVX-512 F, DQ and BW, BMI 1 and 2 and POPCNT, and `words` are those of the
    /// shape.
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,bmi1,bmi2,popcnt")]
    pub(super) unsafe fn contains_block<W: Word>(
        shape: &CountingShape,
        words: &[W],
        hashes: &[Hash],
        out: &mut [bool],
    ) {
        let ask = match (shape.hashes_per_line(), shape.lines_per_key()) {
            (1, 2) => contains_in_two::<1, W>,
            (2, 2) => contains_in_two::<2, W>,
            (3, 2) => contains_in_two::<3, W>,
            (4, 2) => contains_in_two::<4, W>,
            _ => contains_by_lines,
        };
        // SAFETY: the caller's promise.
        unsafe { ask(shape, words, hashes, out) };
    }

    /// `K` counters in each of two lines, all of them in one word: the usual
    /// case. As in a blocked filter, each lane fetches the word of one position
    /// and brings its counter to the front.
    ///
    /// # Safety
    /// As [`contains_block`].
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,bmi1,bmi2,popcnt")]
    unsafe fn contains_in_two<const K: usize, W: Word>(
        shape: &CountingShape,
        words: &[W],
        hashes: &[Hash],
        out: &mut [bool],
    ) {
        // Lanes beyond K ask the first position once more.
        let mut shifts = [0; 8];
        for (i, shift) in shifts[..K].iter_mut().enumerate() {
            *shift = i as i64 * i64::from(FIELD_BITS);
        }
        // SAFETY: 64 readable bytes.
        let shifts = unsafe { _mm512_loadu_si512(shifts.as_ptr().cast()) };
        let word_shifts = _mm512_add_epi64(shifts, _mm512_set1_epi64(4));
        let counter = _mm512_set1_epi64(15);
        let lines = words.as_chunks::<LINE_WORDS>().0;
        // SAFETY: the shape's lines are all there.
        let line = |x: u64| unsafe { lines.get_unchecked(reduce(x, shape.lines()) as usize) };
        let all_above = |fields: u64, line| {
            let word = _mm512_set1_epi64(fields.cast_signed());
            // The permutation reads three bits, the rotation six; both ignore
            // the rest of their lane.
            let index = _mm512_srlv_epi64(word, word_shifts);
            let found = _mm512_permutexvar_epi64(index, load_words(line));
            let turn = _mm512_slli_epi64::<2>(_mm512_srlv_epi64(word, shifts));
            _mm512_test_epi64_mask(_mm512_rorv_epi64(found, turn), counter) == 0xff
        };
        // A second line is fetched only for keys that the first one does not
        // exclude, while others are asked.
        let (mut asked, mut left) = ([(0u8, &lines[0]); BLOCK], 0);
        for (i, hash) in (0..).zip(hashes) {
            if all_above(hash.lo, line(hash.hi)) {
                let second = line(mix(hash.hi));
                prefetch(second);
                asked[left] = (i, second);
                left += 1;
            }
        }
        out.fill(false);
        for &(i, line) in &asked[..left] {
            let fields = hashes[i as usize].lo;
            let second = fields >> (K as u32 * FIELD_BITS);
            let repeated = has_repeats(fields, K as u32) | has_repeats(second, K as u32);
            let above = all_above(second, line);
            out[i as usize] = above;
            if above & repeated {
                out[i as usize] = shape.contains(words, hashes[i as usize]);
            }
        }
    }

    /// Up to eight counters in each of any number of lines, line after line: a
    /// key's next line is fetched only if the last one did not say "no", and
    /// while other keys are asked.
    ///
    /// # Safety
    /// As [`contains_block`].
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,bmi1,bmi2,popcnt")]
    unsafe fn contains_by_lines<W: Word>(
        shape: &CountingShape,
        words: &[W],
        hashes: &[Hash],
        out: &mut [bool],
    ) {
        let k = shape.hashes_per_line();
        let mut shifts = [0; 8];
        for i in 0..k {
            shifts[i as usize] = i64::from(i * FIELD_BITS);
        }
        // SAFETY: 64 readable bytes.
        let shifts = unsafe { _mm512_loadu_si512(shifts.as_ptr().cast()) };
        let word_shifts = _mm512_add_epi64(shifts, _mm512_set1_epi64(4));
        let counter = _mm512_set1_epi64(15);
        let lines = words.as_chunks::<LINE_WORDS>().0;
        // SAFETY: the shape's lines are all there.
        let line = |x: u64| unsafe { lines.get_unchecked(reduce(x, shape.lines()) as usize) };
        // Of the keys that are still in question: which, their fields, and what
        // the next line comes from.
        let mut asked = [(0u8, Fields::new(Hash::default()), 0u64, false); BLOCK];
        let mut left = hashes.len();
        for ((i, hash), asked) in (0..).zip(hashes).zip(&mut asked) {
            *asked = (i, Fields::new(*hash), hash.hi, false);
        }
        for round in 1..=shape.lines_per_key() {
            let mut kept = 0;
            for n in 0..left {
                let (i, mut fields, x, repeated) = asked[n];
                let fields_here = fields.of_line(k).in_word();
                let word = _mm512_set1_epi64(fields_here.cast_signed());
                let found = _mm512_permutexvar_epi64(
                    _mm512_srlv_epi64(word, word_shifts),
                    load_words(line(x)),
                );
                let turn = _mm512_slli_epi64::<2>(_mm512_srlv_epi64(word, shifts));
                if _mm512_test_epi64_mask(_mm512_rorv_epi64(found, turn), counter) == 0xff {
                    let x = mix(x);
                    if round < shape.lines_per_key() {
                        prefetch(line(x));
                    }
                    asked[kept] = (i, fields, x, repeated | has_repeats(fields_here, k));
                    kept += 1;
                }
            }
            left = kept;
        }
        out.fill(false);
        for &(i, _, _, repeated) in &asked[..left] {
            out[i as usize] = !repeated || shape.contains(words, hashes[i as usize]);
        }
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
    use crate::Counting;
    use crate::hash::mix;
    use crate::hasher::Hasher;
    use crate::plan::Plan;

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
                let added = &hashes[..(600 / (k * per_key) as usize).min(300)];
                filter.insert_hashes(added, &mut vec![false; added.len()]);
                let expected: Vec<bool> = hashes
                    .iter()
                    .map(|hash| filter.contains_hash(*hash))
                    .collect();
                assert!(expected[..added.len()].iter().all(|found| *found));
                assert!(expected.contains(&false));
                for &path in Path::ALL.iter().filter(|path| path.is_available()) {
                    let mut found = vec![false; hashes.len()];
                    for (hashes, found) in hashes.chunks(100).zip(found.chunks_mut(100)) {
                        contains_block(path, &shape, filter.words(), hashes, found);
                    }
                    assert_eq!(found, expected, "{path:?}, {k} in each of {per_key}");
                }
            }
        }
    }
}
