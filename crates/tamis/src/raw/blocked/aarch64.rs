//! A line at once, in four NEON registers of two words.

use crate::raw::blocked::{Line, cover};
use std::arch::aarch64::*;
use std::arch::asm;

/// The key's position in words `2 * pair` and `2 * pair + 1`.
#[inline(always)]
fn positions(lo: u64, pair: usize) -> int64x2_t {
    let first = 12 * pair as i64;
    // SAFETY: every such machine has NEON, here and below.
    unsafe {
        let down = vcombine_s64(
            vcreate_s64((-first) as u64),
            vcreate_s64((-first - 6) as u64),
        );
        let positions = vshlq_u64(vdupq_n_u64(lo), down);
        vreinterpretq_s64_u64(vandq_u64(positions, vdupq_n_u64(63)))
    }
}

/// For words `2 * pair` and `2 * pair + 1`, the bit that stands for them.
#[inline(always)]
fn lanes(pair: usize) -> uint64x2_t {
    // SAFETY: as above.
    unsafe { vcombine_u64(vcreate_u64(1 << (2 * pair)), vcreate_u64(2 << (2 * pair))) }
}

/// [`scalar::missing`](super::scalar::missing).
///
/// # Safety
/// The line can be read.
#[inline(always)]
pub(super) unsafe fn missing<W>(line: *const Line<W>, lo: u64, k: u32) -> u8 {
    let (a, b, c, d): (uint64x2_t, uint64x2_t, uint64x2_t, uint64x2_t);
    // SAFETY: the caller's promise. Opaque to the compiler because other threads
    // may be writing the line.
    unsafe {
        asm!(
            "ldp {a:q}, {b:q}, [{line}]",
            "ldp {c:q}, {d:q}, [{line}, #32]",
            a = out(vreg) a, b = out(vreg) b, c = lateout(vreg) c, d = lateout(vreg) d,
            line = in(reg) line,
            options(nostack, preserves_flags, readonly, pure)
        );
        let mut set = vdupq_n_u64(0);
        for (pair, words) in [a, b, c, d].into_iter().enumerate() {
            let bits = vshlq_u64(vdupq_n_u64(1), positions(lo, pair));
            set = vorrq_u64(set, vandq_u64(vtstq_u64(words, bits), lanes(pair)));
        }
        let set = vgetq_lane_u64::<0>(set) | vgetq_lane_u64::<1>(set);
        !(set as u8) & cover(lo, k)
    }
}

/// [`scalar::insert`](super::scalar::insert).
#[inline(always)]
pub(super) fn insert(line: &mut Line<u64>, lo: u64, k: u32) -> bool {
    // SAFETY: reads and writes the words of the line.
    unsafe {
        let cover = vdupq_n_u64(cover(lo, k).into());
        let mut missing = vdupq_n_u64(0);
        for (pair, words) in line.as_chunks_mut::<2>().0.iter_mut().enumerate() {
            let bits = vshlq_u64(vdupq_n_u64(1), positions(lo, pair));
            let bits = vandq_u64(bits, vtstq_u64(cover, lanes(pair)));
            let old = vld1q_u64(words.as_ptr());
            vst1q_u64(words.as_mut_ptr(), vorrq_u64(old, bits));
            missing = vorrq_u64(missing, vbicq_u64(bits, old));
        }
        (vgetq_lane_u64::<0>(missing) | vgetq_lane_u64::<1>(missing)) != 0
    }
}
