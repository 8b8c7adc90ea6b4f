//! A key's two bins at once: eight words in one AVX-512 register, four in one AVX2 register.
//!
//! Other threads may be writing to the bins, so inline assembly loads them: the compiler can't
//! assume anything about it.

use super::lanes::Lanes;
use std::arch::asm;
use std::arch::x86_64::*;
use std::mem::offset_of;

/// Which words of two bins, of four words each, have the key, and which have an empty slot. All in
/// assembly, with registers that programs for older machines don't use; see
/// `raw/blocked/x86_64.rs`.
///
/// # Safety
/// The machine has AVX-512 F and DQ, and both bins are four readable words. Others may write them
/// meanwhile.
#[inline(always)]
pub(super) unsafe fn look_avx512(lanes: &Lanes, bins: [*const u64; 2], prints: u64) -> (u32, u32) {
    let (having, empty): (u32, u32);
    // SAFETY: the caller's promise.
    unsafe {
        asm!(
            "kxnorb k1, k1, k1",
            "kshiftlb k1, k1, 4",
            "vpbroadcastq zmm16, {prints}",
            "vporq zmm16{{k1}}, zmm16, qword ptr [{lanes} + {seconds}]{{1to8}}",
            "vpbroadcastq zmm18, qword ptr [{lanes} + {flags}]",
            "vbroadcasti64x4 zmm17, [{home}]",
            "vinserti64x4 zmm17, zmm17, [{second}], 1",
            // [`Lanes::like`]: subtracts the difference below the stamps from the flags.
            "vpternlogq zmm16, zmm17, qword ptr [{lanes} + {lows}]{{1to8}}, 0x28",
            "vpandq zmm17, zmm17, qword ptr [{lanes} + {lows}]{{1to8}}",
            "vpsubq zmm16, zmm18, zmm16",
            "vpsubq zmm17, zmm18, zmm17",
            "vptestmq k1, zmm16, zmm18",
            "vptestmq k2, zmm17, zmm18",
            "kmovw {having:e}, k1",
            "kmovw {empty:e}, k2",
            lanes = in(reg) lanes,
            seconds = const offset_of!(Lanes, seconds),
            flags = const offset_of!(Lanes, flags),
            lows = const offset_of!(Lanes, lows),
            prints = in(reg) prints,
            home = in(reg) bins[0],
            second = in(reg) bins[1],
            having = lateout(reg) having,
            empty = lateout(reg) empty,
            out("zmm16") _, out("zmm17") _, out("zmm18") _, out("k1") _, out("k2") _,
            options(nostack, preserves_flags, readonly)
        );
    }
    (having, empty)
}

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

/// Which words of a bin have the same value as `all` in a slot, one bit per word: [`Lanes::like`].
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn like<const WORDS: usize>(lanes: &Lanes, bin: [__m256i; 2], all: u64) -> u32 {
    let each = |word: u64| _mm256_set1_epi64x(word.cast_signed());
    let (all, lows, flags) = (each(all), each(lanes.lows), each(lanes.flags));
    let like = |words| {
        let difference = _mm256_and_si256(_mm256_xor_si256(words, all), lows);
        let like = _mm256_and_si256(_mm256_sub_epi64(flags, difference), flags);
        // Moves the flags to the sign by subtracting from zero, because no flag is the sign bit.
        let signs = _mm256_sub_epi64(_mm256_setzero_si256(), like);
        _mm256_movemask_pd(_mm256_castsi256_pd(signs)) as u32
    };
    match WORDS {
        8 => like(bin[0]) | like(bin[1]) << 4,
        _ => like(bin[0]) & ((1 << WORDS) - 1),
    }
}
