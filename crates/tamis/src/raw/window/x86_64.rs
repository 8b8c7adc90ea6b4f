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
/// The machine has AVX-512 F.
#[inline(always)]
pub(super) unsafe fn columns_avx512<W: Word>(
    row: &[[W; RUN]],
    columns: usize,
    bits: &Run,
    marks: &Marks,
) -> u64 {
    // Four at a time: up to three of the second runs are read, too, and forgotten.
    assert!(row.len() >= columns.next_multiple_of(4));
    let all = !0 >> (64 - columns);
    if columns.div_ceil(4) == 3 {
        // SAFETY: the caller's promise; there are as many runs.
        let twelve = unsafe { twelve_columns(row, bits, marks) };
        return of_pairs(u64::from(twelve & twelve >> 1 & 0x55_5555)) & all;
    }
    let mut found = 0;
    for at in (0..columns).step_by(4) {
        // SAFETY: the caller's promise; there are four runs, and marks of 64 columns.
        let four = unsafe { four_columns(row, bits, marks, at) };
        found |= of_pairs(u64::from(four & four >> 1 & 0x55)) << at;
    }
    found & all
}

/// Every other bit: a column has two words.
#[inline(always)]
const fn of_pairs(pairs: u64) -> u64 {
    let x = (pairs | pairs >> 1) & 0x3333_3333_3333_3333;
    let x = (x | x >> 2) & 0x0F0F_0F0F_0F0F_0F0F;
    let x = (x | x >> 4) & 0x00FF_00FF_00FF_00FF;
    (x | x >> 8) & 0xFFFF
}

/// A bit for each word of four columns that has its bits.
///
/// # Safety
/// The machine has AVX-512 F, and there are four runs from `at` on.
#[inline(always)]
unsafe fn four_columns<W>(row: &[[W; RUN]], bits: &Run, marks: &Marks, at: usize) -> u32 {
    let four: u32;
    // SAFETY: the caller's promise; there are marks of 64 columns.
    unsafe {
        asm!(
            "kmovw k1, {odd:e}",
            "vpbroadcastq zmm16, {first}",
            "vpbroadcastq zmm16{{k1}}, {second}",
            "vporq zmm17, zmm16, qword ptr [{tag}]{{1to8}}",
            "vmovdqu64 zmm18, [{runs}]",
            "vpternlogq zmm18, zmm16, [{marks}], 0x96",
            "vptestnmq k1, zmm18, zmm17",
            "kmovw {four:e}, k1",
            odd = in(reg) 0xAA,
            first = in(reg) bits[0],
            second = in(reg) bits[1],
            tag = in(reg) &raw const TAGS,
            marks = in(reg) marks.as_ptr().wrapping_add(at),
            runs = in(reg) row.as_ptr().wrapping_add(at),
            four = lateout(reg) four,
            out("zmm16") _, out("zmm17") _, out("zmm18") _, out("k1") _,
            options(nostack, preserves_flags, readonly, pure)
        );
    }
    four
}

/// A bit for each word of twelve columns that has its bits: of the usual windows, at once.
///
/// # Safety
/// The machine has AVX-512 F, and there are twelve runs.
#[inline(always)]
unsafe fn twelve_columns<W>(row: &[[W; RUN]], bits: &Run, marks: &Marks) -> u32 {
    let (eight, four): (u32, u32);
    // SAFETY: the caller's promise; there are marks of 64 columns.
    unsafe {
        asm!(
            "kmovw k1, {odd:e}",
            "vpbroadcastq zmm16, {first}",
            "vpbroadcastq zmm16{{k1}}, {second}",
            "vporq zmm17, zmm16, qword ptr [{tag}]{{1to8}}",
            "vmovdqu64 zmm18, [{runs}]",
            "vmovdqu64 zmm19, [{runs} + 64]",
            "vmovdqu64 zmm20, [{runs} + 128]",
            "vpternlogq zmm18, zmm16, [{marks}], 0x96",
            "vpternlogq zmm19, zmm16, [{marks} + 64], 0x96",
            "vpternlogq zmm20, zmm16, [{marks} + 128], 0x96",
            "vptestnmq k1, zmm18, zmm17",
            "vptestnmq k2, zmm19, zmm17",
            "vptestnmq k3, zmm20, zmm17",
            "kunpckbw k1, k2, k1",
            "kmovw {eight:e}, k1",
            "kmovw {four:e}, k3",
            odd = in(reg) 0xAA,
            first = in(reg) bits[0],
            second = in(reg) bits[1],
            tag = in(reg) &raw const TAGS,
            marks = in(reg) marks.as_ptr(),
            runs = in(reg) row.as_ptr(),
            eight = lateout(reg) eight,
            four = lateout(reg) four,
            out("zmm16") _, out("zmm17") _, out("zmm18") _, out("zmm19") _, out("zmm20") _,
            out("k1") _, out("k2") _, out("k3") _,
            options(nostack, preserves_flags, readonly, pure)
        );
    }
    eight | four << 16
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
