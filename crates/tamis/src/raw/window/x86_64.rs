//! A bin at once: the slots of four words in one register of AVX2.
//!
//! Other threads may be writing the bins, so they are loaded by inline assembly: the compiler then
//! can assume nothing about them.

use super::lanes::Lanes;
use std::arch::asm;
use std::arch::x86_64::*;

/// The words of a bin; if it has two, the others are zero.
///
/// # Safety
/// There are `WORDS` readable words, 2, 4 or 8. Others may write them meanwhile.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn load<const WORDS: usize>(bin: *const u64) -> [__m256i; 2] {
    let (low, mut high): (__m256i, __m256i);
    high = _mm256_setzero_si256();
    // SAFETY: the caller's promise. A load of half a register clears the rest.
    unsafe {
        match WORDS {
            2 => asm!("vmovdqu {low:x}, [{bin}]", low = out(ymm_reg) low, bin = in(reg) bin,
                options(nostack, preserves_flags, readonly)),
            _ => asm!("vmovdqu {low}, [{bin}]", low = out(ymm_reg) low, bin = in(reg) bin,
                options(nostack, preserves_flags, readonly)),
        }
        if WORDS == 8 {
            asm!("vmovdqu {high}, [{bin} + 32]", high = out(ymm_reg) high, bin = in(reg) bin,
                options(nostack, preserves_flags, readonly));
        }
    }
    [low, high]
}

/// Which words of a bin have a slot like that of `all`, one bit for each: [`Lanes::like`] in each.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn like<const WORDS: usize>(lanes: &Lanes, bin: [__m256i; 2], all: u64) -> u32 {
    let each = |word: u64| _mm256_set1_epi64x(word.cast_signed());
    let (all, lows, flags) = (each(all), each(lanes.lows), each(lanes.flags));
    let none_of = |words| {
        let difference = _mm256_and_si256(_mm256_xor_si256(words, all), lows);
        let like = _mm256_andnot_si256(_mm256_add_epi64(difference, lows), flags);
        let none = _mm256_cmpeq_epi64(like, _mm256_setzero_si256());
        _mm256_movemask_pd(_mm256_castsi256_pd(none)) as u32
    };
    let none = match WORDS {
        8 => none_of(bin[0]) | none_of(bin[1]) << 4,
        _ => none_of(bin[0]),
    };
    !none & ((1 << WORDS) - 1)
}
