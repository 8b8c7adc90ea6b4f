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

/// # Safety
/// The machine has AVX-512 F and DQ.
#[target_feature(enable = "avx512f,avx512dq")]
pub(super) unsafe fn contains_block_avx512<W: Word>(
    shape: &BlockedShape,
    words: &[W],
    hashes: &[Hash],
    out: &mut [bool],
) {
    let k = shape.hashes_per_line();
    if k <= FIELDS && shape.lines_per_key() == 1 {
        return contains_one_word_avx512(shape, words, hashes, out);
    }
    for (hash, out) in hashes.iter().zip(out) {
        let mut word = hash.lo;
        *out = line_has_avx512(line(words, shape.first_line(*hash)), &mut word, k)
            && (shape.lines_per_key() == 1
                || line_has_avx512(line(words, shape.second_line(*hash)), &mut word, k))
            // Positions that repeat were moved; asked only when all are set.
            && (!scalar_needed(shape, *hash) || scalar::contains(shape, words, *hash));
    }
}

/// The common case, all positions in one word: eight keys at a time.
#[target_feature(enable = "avx512f,avx512dq")]
fn contains_one_word_avx512<W: Word>(
    shape: &BlockedShape,
    words: &[W],
    hashes: &[Hash],
    out: &mut [bool],
) {
    let k = shape.hashes_per_line();
    let wanted = lanes(k);
    let mut groups = hashes.as_chunks::<8>().0.iter();
    let mut outs = out.as_chunks_mut::<8>().0.iter_mut();
    for (hashes, out) in groups.by_ref().zip(outs.by_ref()) {
        let mut found = 0u8;
        for (i, hash) in hashes.iter().enumerate() {
            let words = load_line(line(words, shape.first_line(*hash)));
            found |= u8::from(set_lanes(words, hash.lo) & wanted == wanted) << i;
        }
        for (i, out) in out.iter_mut().enumerate() {
            *out = found >> i & 1 != 0;
        }
        if found != 0 {
            let mut doubtful = found & repeats_avx512(hashes, k);
            while doubtful != 0 {
                let i = doubtful.trailing_zeros() as usize;
                out[i] = scalar::contains(shape, words, hashes[i]);
                doubtful &= doubtful - 1;
            }
        }
    }
    let done = hashes.len() / 8 * 8;
    for (hash, out) in hashes[done..].iter().zip(&mut out[done..]) {
        *out = scalar::contains(shape, words, *hash);
    }
}

/// Whether the positions of one line, not yet moved, are all set.
#[target_feature(enable = "avx512f,avx512dq")]
fn line_has_avx512<W: Word>(line: &[W; LINE_WORDS], word: &mut u64, hashes: u32) -> bool {
    let words = load_line(line);
    let mut left = hashes;
    loop {
        let wanted = lanes(left.min(FIELDS));
        let set = set_lanes(words, *word) & wanted;
        *word = mix(*word);
        if set != wanted {
            return false;
        }
        if left <= FIELDS {
            return true;
        }
        left -= FIELDS;
    }
}

const fn lanes(count: u32) -> u8 {
    ((1u16 << count) - 1) as u8
}

/// Lane `i` of the answer: whether the bit at the `i`-th field of `word` is set.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn set_lanes(line: __m512i, word: u64) -> __mmask8 {
    const F: i64 = FIELD_BITS as i64;
    let shifts = _mm512_setr_epi64(0, F, 2 * F, 3 * F, 4 * F, 5 * F, 6 * F, 0);
    let fields = _mm512_srlv_epi64(_mm512_set1_epi64(word.cast_signed()), shifts);
    // The permutation reads the three bits above the low six, the rotation the
    // low six; both ignore the rest of the lane.
    let words = _mm512_permutexvar_epi64(_mm512_srli_epi64::<6>(fields), line);
    let bits = _mm512_rorv_epi64(words, fields);
    _mm512_test_epi64_mask(bits, _mm512_set1_epi64(1))
}

/// The words of a line that other threads may be writing: the load is opaque
/// to the compiler, which then can assume nothing of it.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn load_line<W: Word>(line: &[W; LINE_WORDS]) -> __m512i {
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

/// Which of eight keys have a repeated position, all in one word.
#[target_feature(enable = "avx512f,avx512dq")]
fn repeats_avx512(hashes: &[Hash; 8], k: u32) -> u8 {
    let lo = _mm512_set_epi64(
        hashes[7].lo.cast_signed(),
        hashes[6].lo.cast_signed(),
        hashes[5].lo.cast_signed(),
        hashes[4].lo.cast_signed(),
        hashes[3].lo.cast_signed(),
        hashes[2].lo.cast_signed(),
        hashes[1].lo.cast_signed(),
        hashes[0].lo.cast_signed(),
    );
    let field_mask = _mm512_set1_epi64((1 << FIELD_BITS) - 1);
    let mut fields = [_mm512_setzero_si512(); FIELDS as usize];
    let mut rest = lo;
    for field in &mut fields[..k as usize] {
        *field = _mm512_and_si512(rest, field_mask);
        rest = _mm512_srli_epi64::<FIELD_BITS>(rest);
    }
    let mut repeats = 0;
    for i in 1..k as usize {
        for j in 0..i {
            repeats |= _mm512_cmpeq_epi64_mask(fields[i], fields[j]);
        }
    }
    repeats
}

/// Whether a position may repeat in one of the key's lines: never "no" when
/// one does.
#[inline]
fn scalar_needed(shape: &BlockedShape, hash: Hash) -> bool {
    let mut word = hash.lo;
    (0..shape.lines_per_key()).any(|_| {
        let mut low_bits = 0u64;
        let mut left = shape.hashes_per_line();
        while left > 0 {
            let mut fields = word;
            word = mix(word);
            let here = left.min(FIELDS);
            for _ in 0..here {
                low_bits |= 1 << (fields % 64);
                fields >>= FIELD_BITS;
            }
            left -= here;
        }
        low_bits.count_ones() != shape.hashes_per_line()
    })
}

/// # Safety
/// The machine has AVX-512 F and DQ.
#[target_feature(enable = "avx512f,avx512dq")]
pub(super) unsafe fn insert_block_avx512(
    shape: &BlockedShape,
    words: &mut [u64],
    hashes: &[Hash],
    new: &mut [bool],
) {
    let lines = words.as_chunks_mut::<LINE_WORDS>().0;
    for (hash, new) in hashes.iter().zip(new) {
        *new = false;
        scalar::for_each_line(shape, *hash, |index, mask| {
            // SAFETY: 64 readable bytes each, and `lines[index]` writable.
            unsafe {
                let mask = _mm512_loadu_si512(mask.as_ptr().cast());
                let line: *mut __m512i = lines[index].as_mut_ptr().cast();
                let old = _mm512_loadu_si512(line);
                let missing = _mm512_andnot_si512(old, mask);
                *new |= _mm512_test_epi64_mask(missing, missing) != 0;
                _mm512_storeu_si512(line, _mm512_or_si512(old, mask));
            }
        });
    }
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
            && (!scalar_needed(shape, *hash) || scalar::contains(shape, words, *hash));
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
