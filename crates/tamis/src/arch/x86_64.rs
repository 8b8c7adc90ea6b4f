//! AVX2 and AVX-512 paths of the blocked filter.
//!
//! A line is tested at once: each lane fetches the word of one position from
//! the line's registers and brings its bit to the front. A key whose positions
//! repeat is rare and is left to the specification.

use super::scalar::{self, FIELD_BITS, FIELDS};
use crate::blocked::{BlockedShape, LINE_WORDS, line};
use crate::bytes::Word;
use crate::hash::{Hash, mix};
use std::arch::asm;
use std::arch::x86_64::*;

/// Keys that are asked together: a bit each in a word.
const GROUP: usize = 64;

/// # Safety
/// The machine has AVX-512 F, DQ and BW, and `words` are those of the shape.
#[target_feature(enable = "avx512f,avx512dq,avx512bw")]
pub(super) unsafe fn contains_block_avx512<W: Word>(
    shape: &BlockedShape,
    words: &[W],
    hashes: &[Hash],
    out: &mut [bool],
) {
    let ask = match (shape.hashes_per_line(), shape.lines_per_key()) {
        (1, 1) => contains_group_avx512::<1, W>,
        (2, 1) => contains_group_avx512::<2, W>,
        (3, 1) => contains_group_avx512::<3, W>,
        (4, 1) => contains_group_avx512::<4, W>,
        (5, 1) => contains_group_avx512::<5, W>,
        (6, 1) => contains_group_avx512::<6, W>,
        (7, 1) => contains_group_avx512::<7, W>,
        _ => contains_any_avx512,
    };
    let (groups, rest) = hashes.as_chunks::<GROUP>();
    let (outs, rest_out) = out.as_chunks_mut::<GROUP>();
    for (hashes, out) in groups.iter().zip(outs) {
        // SAFETY: the caller's promise.
        let found = unsafe { ask(shape, words, hashes) };
        let bools = _mm512_maskz_set1_epi8(found, 1);
        // SAFETY: 64 writable bytes, each of them 0 or 1.
        unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), bools) };
    }
    if !rest.is_empty() {
        let mut hashes = [rest[0]; GROUP];
        hashes[..rest.len()].copy_from_slice(rest);
        // SAFETY: the caller's promise.
        let found = unsafe { ask(shape, words, &hashes) };
        for (i, out) in rest_out.iter_mut().enumerate() {
            *out = found >> i & 1 != 0;
        }
    }
}

/// All bits in one line and one word, the usual case: each lane fetches the
/// word of one position and brings its bit to the front.
///
/// # Safety
/// As [`contains_block_avx512`].
#[target_feature(enable = "avx512f,avx512dq,avx512bw")]
unsafe fn contains_group_avx512<const K: usize, W: Word>(
    shape: &BlockedShape,
    words: &[W],
    hashes: &[Hash; GROUP],
) -> u64 {
    // Lanes beyond K ask the first position once more.
    let mut shifts = [0; 8];
    for (i, shift) in shifts[..K].iter_mut().enumerate() {
        *shift = i as i64 * i64::from(FIELD_BITS);
    }
    // SAFETY: 64 readable bytes.
    let shifts = unsafe { _mm512_loadu_si512(shifts.as_ptr().cast()) };
    let word_shifts = _mm512_add_epi64(shifts, _mm512_set1_epi64(6));
    let mut one = _mm512_set1_epi64(1);
    // SAFETY: no instruction. The compiler must not know the value, or it
    // makes two instructions of the test below.
    unsafe { asm!("/* {one} */", one = inout(zmm_reg) one, options(pure, nomem, nostack)) };
    let lines = words.as_chunks::<LINE_WORDS>().0;
    let mut set = [0u8; GROUP];
    for (hash, set) in hashes.iter().zip(&mut set) {
        // SAFETY: the shape's lines are all there.
        let line = load_line(unsafe { lines.get_unchecked(shape.first_line(*hash)) });
        let fields = _mm512_set1_epi64(hash.lo.cast_signed());
        // The permutation reads three bits, the rotation six; both ignore
        // the rest of their lane.
        let words = _mm512_permutexvar_epi64(_mm512_srlv_epi64(fields, word_shifts), line);
        let bits = _mm512_rorv_epi64(words, _mm512_srlv_epi64(fields, shifts));
        *set = _mm512_test_epi64_mask(bits, one);
    }
    // SAFETY: 64 readable bytes.
    let set = unsafe { _mm512_loadu_si512(set.as_ptr().cast()) };
    let mut found = _mm512_cmpeq_epi8_mask(set, _mm512_set1_epi8(-1));
    if found != 0 {
        let mut unclear = found & repeats_avx512::<K>(hashes);
        while unclear != 0 {
            // Where a position repeats, all of them being set is needed but
            // is not enough.
            let hash = hashes[unclear.trailing_zeros() as usize];
            if !scalar::contains(shape, words, hash) {
                found &= !(unclear & unclear.wrapping_neg());
            }
            unclear &= unclear - 1;
        }
    }
    found
}

/// Which keys have a repeated position among the `K` of their first word.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bw")]
fn repeats_avx512<const K: usize>(hashes: &[Hash; GROUP]) -> u64 {
    let firsts = (0..K).fold(0u64, |bits, i| bits | 1 << (i as u32 * FIELD_BITS));
    let splat = |bits: u64| _mm512_set1_epi64(bits.cast_signed());
    let used = splat((1 << (K as u32 * FIELD_BITS)) - 1);
    let (low, top) = (splat(firsts), splat(firsts << (FIELD_BITS - 1)));
    let mut repeats = 0;
    for (i, eight) in hashes.as_chunks::<8>().0.iter().enumerate() {
        // SAFETY: eight hashes are 128 readable bytes, high half first.
        let (first, second) = unsafe {
            let four: *const __m512i = eight.as_ptr().cast();
            (_mm512_loadu_si512(four), _mm512_loadu_si512(four.add(1)))
        };
        let odd = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
        let fields = _mm512_permutex2var_epi64(first, odd, second);
        let fields = _mm512_and_si512(fields, used);
        // Turned around by one field, by two, … by half of them, every field
        // meets every other. Fields that are equal differ in no bit, and only
        // a field of 0 (or one above it) borrows up to its top when the
        // lowest bits are subtracted.
        let mut borrowed = _mm512_setzero_si512();
        for distance in 1..=K / 2 {
            let bits = |n: usize| _mm512_set1_epi64(n as i64 * i64::from(FIELD_BITS));
            let down = _mm512_srlv_epi64(fields, bits(distance));
            let up = _mm512_sllv_epi64(fields, bits(K - distance));
            let differ = _mm512_ternarylogic_epi64::<0x96>(fields, down, up); // xor
            let less = _mm512_sub_epi64(differ, low);
            // borrowed | (less & !differ)
            borrowed = _mm512_ternarylogic_epi64::<0xf2>(borrowed, differ, less);
        }
        repeats |= u64::from(_mm512_test_epi64_mask(borrowed, top)) << (8 * i);
    }
    repeats
}

/// Any number of bits, in one line or two.
///
/// # Safety
/// As [`contains_block_avx512`].
#[target_feature(enable = "avx512f,avx512dq,avx512bw")]
unsafe fn contains_any_avx512<W: Word>(
    shape: &BlockedShape,
    words: &[W],
    hashes: &[Hash; GROUP],
) -> u64 {
    let k = shape.hashes_per_line();
    let mut found = 0;
    for (i, hash) in hashes.iter().enumerate() {
        let mut word = hash.lo;
        let mut answer = line_has_avx512(line(words, shape.first_line(*hash)), &mut word, k);
        if answer == Answer::Yes && shape.lines_per_key() == 2 {
            answer = line_has_avx512(line(words, shape.second_line(*hash)), &mut word, k);
        }
        let yes = match answer {
            Answer::Yes => true,
            Answer::No => false,
            Answer::Unclear => scalar::contains(shape, words, *hash),
        };
        found |= u64::from(yes) << i;
    }
    found
}

#[derive(Clone, Copy, PartialEq)]
enum Answer {
    Yes,
    No,
    /// A position repeats, so bits were moved.
    Unclear,
}

/// Whether all bits of a key in one line are set, for any number of them.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bw")]
fn line_has_avx512<W: Word>(line: &[W; LINE_WORDS], word: &mut u64, hashes: u32) -> Answer {
    let (mask, repeated) = line_mask_avx512(word, hashes);
    let missing = _mm512_andnot_si512(load_line(line), mask);
    if _mm512_test_epi64_mask(missing, missing) != 0 {
        Answer::No
    } else if repeated {
        Answer::Unclear
    } else {
        Answer::Yes
    }
}

/// A key's bits in one line before repeated ones are moved, and whether there
/// are such.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bw")]
fn line_mask_avx512(word: &mut u64, hashes: u32) -> (__m512i, bool) {
    let field_mask = _mm512_set1_epi64((1 << FIELD_BITS) - 1);
    let first_bits = _mm512_setr_epi64(0, 64, 128, 192, 256, 320, 384, 448);
    let one = _mm512_set1_epi64(1);
    let mut mask = _mm512_setzero_si512();
    let mut repeated = _mm512_setzero_si512();
    let mut left = hashes;
    loop {
        let mut fields = _mm512_set1_epi64(word.cast_signed());
        *word = mix(*word);
        for _ in 0..left.min(FIELDS) {
            // (fields & field_mask) ^ first_bits: below 64 only in the lane of
            // the position's word; the shift is empty in the other lanes.
            let in_word = _mm512_ternarylogic_epi64::<0x78>(first_bits, fields, field_mask);
            let bit = _mm512_sllv_epi64(one, in_word);
            // repeated | (mask & bit)
            repeated = _mm512_ternarylogic_epi64::<0xf8>(repeated, mask, bit);
            mask = _mm512_or_si512(mask, bit);
            fields = _mm512_srli_epi64::<FIELD_BITS>(fields);
        }
        if left <= FIELDS {
            return (mask, _mm512_test_epi64_mask(repeated, repeated) != 0);
        }
        left -= FIELDS;
    }
}

/// The words of a line that other threads may be writing: the load is opaque
/// to the compiler, which then can assume nothing of it.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bw")]
pub(super) fn load_line<W: Word>(line: &[W; LINE_WORDS]) -> __m512i {
    let out: __m512i;
    // SAFETY: reads the 64 bytes of `line`, of any alignment.
    unsafe {
        asm!(
            "vmovdqu64 {out}, [{line}]",
            out = lateout(zmm_reg) out,
            line = in(reg) line.as_ptr(),
            options(nostack, preserves_flags, readonly, pure)
        );
    }
    out
}

/// # Safety
/// The machine has AVX-512 F, DQ and BW.
#[target_feature(enable = "avx512f,avx512dq,avx512bw")]
pub(super) unsafe fn insert_block_avx512(
    shape: &BlockedShape,
    words: &mut [u64],
    hashes: &[Hash],
    new: &mut [bool],
) {
    let k = shape.hashes_per_line();
    for (hash, new) in hashes.iter().zip(new) {
        let mut word = hash.lo;
        let (first, repeated) = line_mask_avx512(&mut word, k);
        let (second, repeated_again) = match shape.lines_per_key() {
            2 => line_mask_avx512(&mut word, k),
            _ => (first, false),
        };
        if repeated || repeated_again {
            *new = scalar::insert_exclusive(shape, words, *hash);
            continue;
        }
        let lines = words.as_chunks_mut::<LINE_WORDS>().0;
        *new = set_bits_avx512(&mut lines[shape.first_line(*hash)], first);
        if shape.lines_per_key() == 2 {
            *new |= set_bits_avx512(&mut lines[shape.second_line(*hash)], second);
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bw")]
fn set_bits_avx512(line: &mut [u64; LINE_WORDS], mask: __m512i) -> bool {
    // SAFETY: reads and writes the 64 bytes of `line`.
    unsafe {
        let line: *mut __m512i = line.as_mut_ptr().cast();
        let old = _mm512_loadu_si512(line);
        let missing = _mm512_andnot_si512(old, mask);
        _mm512_storeu_si512(line, _mm512_or_si512(old, mask));
        _mm512_test_epi64_mask(missing, missing) != 0
    }
}

/// Whether a position may repeat in one of the key's lines: never "no" when
/// one does.
#[inline]
fn may_repeat(shape: &BlockedShape, hash: Hash) -> bool {
    let mut word = hash.lo;
    (0..shape.lines_per_key()).any(|_| {
        // Distinct low six bits prove distinct positions.
        let mut low_bits = 0u64;
        scalar::for_each_position(&mut word, shape.hashes_per_line(), |position| {
            low_bits |= 1 << (position % 64);
            true
        });
        low_bits.count_ones() != shape.hashes_per_line()
    })
}

/// # Safety
/// The machine has AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn contains_block_avx2<W: Word>(
    shape: &BlockedShape,
    words: &[W],
    hashes: &[Hash],
    out: &mut [bool],
) {
    let k = shape.hashes_per_line();
    for (hash, out) in hashes.iter().zip(out) {
        let mut word = hash.lo;
        *out = line_has_avx2(line(words, shape.first_line(*hash)), &mut word, k)
            && (shape.lines_per_key() == 1
                || line_has_avx2(line(words, shape.second_line(*hash)), &mut word, k))
            // Positions that repeat were moved; asked only when all are set.
            && (!may_repeat(shape, *hash) || scalar::contains(shape, words, *hash));
    }
}

/// Whether the positions of one line, not yet moved, are all set.
#[target_feature(enable = "avx2")]
fn line_has_avx2<W: Word>(line: &[W; LINE_WORDS], word: &mut u64, hashes: u32) -> bool {
    const F: i64 = FIELD_BITS as i64;
    let low: __m256i;
    let high: __m256i;
    // SAFETY: reads the 64 bytes of `line`, of any alignment. Opaque to the
    // compiler because other threads may be writing the line.
    unsafe {
        asm!(
            "vmovdqu {low}, [{line}]",
            "vmovdqu {high}, [{line} + 32]",
            low = out(ymm_reg) low,
            high = lateout(ymm_reg) high,
            line = in(reg) line.as_ptr(),
            options(nostack, preserves_flags, readonly, pure)
        );
    }
    let mut left = hashes;
    loop {
        let all = _mm256_set1_epi64x(word.cast_signed());
        *word = mix(*word);
        // Fields 0..4 and 4..7 in 64-bit lanes, packed to eight 32-bit lanes:
        // 0 1 4 5 2 3 6 and, in the last lane, field 6 once more.
        let first = _mm256_srlv_epi64(all, _mm256_setr_epi64x(0, F, 2 * F, 3 * F));
        let second = _mm256_srlv_epi64(all, _mm256_setr_epi64x(4 * F, 5 * F, 6 * F, 6 * F));
        let fields = _mm256_castps_si256(_mm256_shuffle_ps::<0b10_00_10_00>(
            _mm256_castsi256_ps(first),
            _mm256_castsi256_ps(second),
        ));
        // The 32-bit word of each position: three bits choose within a half,
        // the fourth (moved to the sign) chooses the half.
        let index = _mm256_srli_epi32::<5>(fields);
        let word32 = _mm256_blendv_ps(
            _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(low, index)),
            _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(high, index)),
            _mm256_castsi256_ps(_mm256_slli_epi32::<23>(fields)),
        );
        let in_word = _mm256_and_si256(fields, _mm256_set1_epi32(31));
        // The position's bit to the sign: shift left by 31 - its number.
        let to_sign = _mm256_sub_epi32(_mm256_set1_epi32(31), in_word);
        let set = _mm256_sllv_epi32(_mm256_castps_si256(word32), to_sign);
        let set = _mm256_movemask_ps(_mm256_castsi256_ps(set)) as u8;
        // Lanes in the order of the packing above.
        const LANES: [u8; 8] = [
            0,
            0b0000_0001,
            0b0000_0011,
            0b0001_0011,
            0b0011_0011,
            0b0011_0111,
            0b0011_1111,
            0b0111_1111,
        ];
        let wanted = LANES[left.min(FIELDS) as usize];
        if set & wanted != wanted {
            return false;
        }
        if left <= FIELDS {
            return true;
        }
        left -= FIELDS;
    }
}
