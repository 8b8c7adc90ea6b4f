//! A line in four NEON registers, which every 64-bit ARM machine has.
//!
//! Other threads may be writing to the lines, so inline assembly loads them: the compiler can't
//! assume anything about it.

use super::scalar::{LINE_WORDS, Line};
use std::arch::aarch64::*;
use std::arch::asm;

/// The left shift for the position in each word; negative values shift right.
static SHIFTS: [i64; LINE_WORDS] = [0, -6, -12, -18, -24, -30, -36, -42];
/// The bit of each word in a set of words.
static WORDS: [u64; LINE_WORDS] = [1, 2, 4, 8, 16, 32, 64, 128];

/// The key's bits in two words, whether or not these are covered.
#[inline(always)]
fn bits(pair: usize, lo: u64) -> uint64x2_t {
    // SAFETY: 16 readable bytes, and every such machine has the instructions.
    unsafe {
        let shifts = vld1q_s64(SHIFTS[2 * pair..].as_ptr());
        let positions = vandq_u64(vshlq_u64(vdupq_n_u64(lo), shifts), vdupq_n_u64(63));
        vshlq_u64(vdupq_n_u64(1), vreinterpretq_s64_u64(positions))
    }
}

/// The bits of two words in a set of words.
#[inline(always)]
fn words(pair: usize) -> uint64x2_t {
    // SAFETY: 16 readable bytes.
    unsafe { vld1q_u64(WORDS[2 * pair..].as_ptr()) }
}

/// [`scalar::missing`](super::scalar::missing).
///
/// # Safety
/// The line is 64 readable bytes. Others may write them meanwhile.
#[inline(always)]
pub(super) unsafe fn missing<W>(line: *const Line<W>, lo: u64, cover: u8) -> u8 {
    let (a, b, c, d): (uint64x2_t, uint64x2_t, uint64x2_t, uint64x2_t);
    // SAFETY: the caller's promise.
    unsafe {
        asm!(
            "ldp {a:q}, {b:q}, [{line}]",
            "ldp {c:q}, {d:q}, [{line}, #32]",
            a = out(vreg) a,
            b = out(vreg) b,
            c = lateout(vreg) c,
            d = lateout(vreg) d,
            line = in(reg) line,
            options(nostack, preserves_flags, readonly, pure)
        );
    }
    // SAFETY: every such machine has the instructions.
    let missing = unsafe {
        let lacking = |pair, old| vbicq_u64(words(pair), vtstq_u64(old, bits(pair, lo)));
        let low = vorrq_u64(lacking(0, a), lacking(1, b));
        vaddvq_u64(vorrq_u64(low, vorrq_u64(lacking(2, c), lacking(3, d))))
    };
    missing as u8 & cover
}
