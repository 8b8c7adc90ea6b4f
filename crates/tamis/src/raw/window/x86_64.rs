//! Several columns at once, in a register of AVX2 or AVX-512. Others may be
//! writing them, so they are loaded by inline assembly.

use super::bits::{Run, TAG};
use super::head::Marks;
use super::shape::RUN;
use crate::raw::word::Word;
use std::arch::asm;
use std::arch::x86_64::*;

static TAGS: u64 = TAG;

/// Which columns have all of a key's bits in their first runs:
/// [`bits::has`](super::bits::has) for each. In assembly on registers that programs for
/// older machines don't have, so it needs no call and leaves nothing behind.
///
/// # Safety
/// The machine has AVX-512 F and DQ.
#[inline(always)]
pub(super) unsafe fn columns_avx512<W: Word>(
    row: &[[W; RUN]],
    columns: usize,
    bits: &Run,
    marks: &Marks,
) -> u64 {
    // Four at a time: up to three of the second runs are read, too, and forgotten.
    assert!(row.len() >= columns.next_multiple_of(4));
    let mut found = 0;
    for at in (0..columns).step_by(4) {
        let four: u32;
        // SAFETY: the caller's promise; there are four runs, and marks of 64 columns.
        unsafe {
            asm!(
                "vbroadcasti64x2 zmm16, [{bits}]",
                "vporq zmm17, zmm16, qword ptr [{tag}]{{1to8}}",
                "vmovdqu64 zmm18, [{runs}]",
                "vpternlogq zmm18, zmm16, [{marks}], 0x96",
                "vptestnmq k1, zmm18, zmm17",
                "kmovw {four:e}, k1",
                bits = in(reg) bits,
                tag = in(reg) &raw const TAGS,
                marks = in(reg) marks.as_ptr().wrapping_add(at),
                runs = in(reg) row.as_ptr().wrapping_add(at),
                four = lateout(reg) four,
                out("zmm16") _, out("zmm17") _, out("zmm18") _, out("k1") _,
                options(nostack, preserves_flags, readonly, pure)
            );
        }
        // A bit for each word; a column has two.
        let pairs = four & four >> 1 & 0x55;
        if pairs != 0 {
            let twos = (pairs | pairs >> 1) & 0x33;
            found |= u64::from((twos | twos >> 2) & 0xF) << at;
        }
    }
    found & !0 >> (64 - columns)
}

/// [`columns_avx512`] with AVX2.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn columns_avx2<W: Word>(
    row: &[[W; RUN]],
    columns: usize,
    bits: &Run,
    marks: &Marks,
) -> u64 {
    assert!(row.len() >= columns.next_multiple_of(2));
    // SAFETY: a run is 16 bytes; unaligned instructions.
    let key = unsafe { _mm_loadu_si128(bits.as_ptr().cast()) };
    let key = _mm256_broadcastsi128_si256(key);
    let mask = _mm256_or_si256(key, _mm256_set1_epi64x(TAG.cast_signed()));
    let mut found = 0;
    for at in (0..columns).step_by(2) {
        let words: __m256i;
        // SAFETY: there are two runs, 32 bytes.
        unsafe {
            asm!(
                "vmovdqu {words}, [{runs}]",
                words = out(ymm_reg) words,
                runs = in(reg) row.as_ptr().wrapping_add(at),
                options(nostack, preserves_flags, readonly, pure)
            );
        }
        // SAFETY: marks of two columns.
        let marks = unsafe { _mm256_loadu_si256(marks[at..at + 2].as_ptr().cast()) };
        let other = _mm256_xor_si256(words, _mm256_xor_si256(key, marks));
        let none = _mm256_setzero_si256();
        let same = _mm256_cmpeq_epi64(_mm256_and_si256(other, mask), none);
        let same = _mm256_movemask_pd(_mm256_castsi256_pd(same)) as u64;
        let pairs = same & same >> 1;
        found |= (pairs & 1 | pairs >> 1 & 2) << at;
    }
    found & !0 >> (64 - columns)
}
