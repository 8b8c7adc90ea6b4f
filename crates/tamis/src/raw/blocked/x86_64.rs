//! A line at once: eight words in one AVX-512 register or in two AVX2 ones.
//!
//! Other threads may be writing to the lines, so inline assembly loads them: the compiler can't
//! assume anything about it.

use super::scalar::Line;
use std::arch::asm;
use std::arch::x86_64::*;

/// The start of each word's position in `lo`, and a one.
#[repr(C, align(64))]
struct Lanes([i64; 8], i64);
static LANES: Lanes = Lanes([0, 6, 12, 18, 24, 30, 36, 42], 1);

/// [`scalar::missing`](super::scalar::missing). All in assembly, with registers that programs for
/// older machines don't use. So it needs no call and no clean-up, whatever the program was compiled
/// for.
///
/// # Safety
/// The machine has AVX-512 F, and the line is 64 readable bytes. Others may write
/// them meanwhile.
#[inline(always)]
pub(super) unsafe fn missing_avx512<W>(line: *const Line<W>, lo: u64, cover: u8) -> u8 {
    let missing: u32;
    // SAFETY: the caller's promise. A rotation ignores all but six bits of its
    // count.
    unsafe {
        asm!(
            "vpbroadcastq zmm16, {lo}",
            "vpsrlvq zmm16, zmm16, [{lanes}]",
            "vmovdqu64 zmm17, [{line}]",
            "vprorvq zmm17, zmm17, zmm16",
            "vptestnmq k1, zmm17, qword ptr [{lanes} + 64]{{1to8}}",
            "kmovw {missing:e}, k1",
            lo = in(reg) lo,
            lanes = in(reg) &raw const LANES,
            line = in(reg) line,
            missing = lateout(reg) missing,
            out("zmm16") _, out("zmm17") _, out("k1") _,
            options(nostack, preserves_flags, readonly, pure)
        );
    }
    missing as u8 & cover
}

/// [`scalar::insert`](super::scalar::insert), in assembly for the same reason.
///
/// # Safety
/// The machine has AVX-512 F.
#[inline(always)]
pub(super) unsafe fn insert_avx512(line: &mut Line<u64>, lo: u64, cover: u8) -> bool {
    let missing: u32;
    // SAFETY: the caller's promise; the line is 64 bytes.
    unsafe {
        asm!(
            "kmovw k1, {cover:e}",
            "vpbroadcastq zmm16, {lo}",
            "vpsrlvq zmm16, zmm16, [{lanes}]",
            "vpbroadcastq zmm17, [{lanes} + 64]",
            "vprolvq zmm16{{k1}}{{z}}, zmm17, zmm16",
            "vmovdqu64 zmm17, [{line}]",
            "vptestnmq k1{{k1}}, zmm17, zmm16",
            "vporq zmm17, zmm17, zmm16",
            "vmovdqu64 [{line}], zmm17",
            "kmovw {missing:e}, k1",
            cover = in(reg) u32::from(cover),
            lo = in(reg) lo,
            lanes = in(reg) &raw const LANES,
            line = in(reg) line,
            missing = lateout(reg) missing,
            out("zmm16") _, out("zmm17") _, out("k1") _,
            options(nostack, preserves_flags)
        );
    }
    missing != 0
}

/// The key's positions in four words, starting at the first or the fifth.
#[inline]
#[target_feature(enable = "avx2")]
fn positions<const HALF: usize>(lo: u64) -> __m256i {
    // SAFETY: half of the lanes, 32 bytes at a multiple of 32.
    let shifts = unsafe { _mm256_load_si256(LANES.0[4 * HALF..].as_ptr().cast()) };
    _mm256_srlv_epi64(_mm256_set1_epi64x(lo.cast_signed()), shifts)
}

/// [`scalar::missing`](super::scalar::missing).
///
/// # Safety
/// The line is 64 readable bytes. Others may write them meanwhile.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn missing_avx2<W>(line: *const Line<W>, lo: u64, cover: u8) -> u8 {
    let (low, high): (__m256i, __m256i);
    // SAFETY: the caller's promise.
    unsafe {
        asm!(
            "vmovdqu {low}, [{line}]",
            "vmovdqu {high}, [{line} + 32]",
            low = out(ymm_reg) low,
            high = lateout(ymm_reg) high,
            line = in(reg) line,
            options(nostack, preserves_flags, readonly, pure)
        );
    }
    // Shifts the bit to the sign: left by 63 minus its position.
    let set = |words, positions| {
        let up = _mm256_andnot_si256(positions, _mm256_set1_epi64x(63));
        _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_sllv_epi64(words, up))) as u8
    };
    !(set(low, positions::<0>(lo)) | set(high, positions::<1>(lo)) << 4) & cover
}

/// [`scalar::insert`](super::scalar::insert).
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn insert_avx2(line: &mut Line<u64>, lo: u64, cover: u8) -> bool {
    let set = |words: &mut [u64], positions, cover: u8| {
        let one = _mm256_set1_epi64x(1);
        let in_word = _mm256_and_si256(positions, _mm256_set1_epi64x(63));
        let covers = _mm256_setr_epi64x(0, 1, 2, 3);
        let covers = _mm256_srlv_epi64(_mm256_set1_epi64x(cover.into()), covers);
        let bits = _mm256_sllv_epi64(_mm256_and_si256(covers, one), in_word);
        let words = words.as_mut_ptr().cast();
        // SAFETY: `words` are four, half of a line; unaligned instructions.
        unsafe {
            let old = _mm256_loadu_si256(words);
            _mm256_storeu_si256(words, _mm256_or_si256(old, bits));
            _mm256_andnot_si256(old, bits)
        }
    };
    let low = set(&mut line[..4], positions::<0>(lo), cover);
    let high = set(&mut line[4..], positions::<1>(lo), cover >> 4);
    let missing = _mm256_or_si256(low, high);
    _mm256_testz_si256(missing, missing) == 0
}
