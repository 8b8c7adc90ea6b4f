//! Four words at once, in a register of AVX2. Others may be writing them, so
//! they are loaded by inline assembly.

use super::bits::{Run, TAG};
use super::shape::RUN;
use std::arch::asm;
use std::arch::x86_64::*;

/// Which of up to 64 columns have all of a key's bits in a run, which has four words for each of them:
/// [`bits::has`](super::bits::has) for each.
///
/// # Safety
/// `runs` are as many readable runs as there are marks. Others may write them
/// meanwhile.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn columns<W>(runs: *const [W; RUN], bits: &Run, marks: &[u64]) -> u64 {
    // SAFETY: a run is 32 bytes; unaligned instructions.
    let bits = unsafe { _mm256_loadu_si256(bits.as_ptr().cast()) };
    let mask = _mm256_or_si256(bits, _mm256_set1_epi64x(TAG.cast_signed()));
    let mut found = 0;
    for (c, mark) in marks.iter().enumerate() {
        let words: __m256i;
        // SAFETY: the caller's promise.
        unsafe {
            asm!(
                "vmovdqu {words}, [{run}]",
                words = out(ymm_reg) words,
                run = in(reg) runs.wrapping_add(c),
                options(nostack, preserves_flags, readonly, pure)
            );
        }
        let wanted = _mm256_xor_si256(bits, _mm256_set1_epi64x(mark.cast_signed()));
        let other = _mm256_xor_si256(words, wanted);
        found |= (_mm256_testz_si256(other, mask) as u64) << c;
    }
    found
}
