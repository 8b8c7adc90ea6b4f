//! A key's bits in a block, and whether a row has them, in portable code: the
//! specification.

use super::shape::{MAX_BLOCK, RUN, WORD_BITS, WindowShape};
use crate::raw::word::Word;

/// Odd numbers from the digits of pi, one for each word of a block.
const SALTS: [u64; MAX_BLOCK] = [
    0x243F_6A88_85A3_08D3,
    0x1319_8A2E_0370_7345,
    0xA409_3822_299F_31D1,
    0x082E_FA98_EC4E_6C89,
    0x4528_21E6_38D0_1377,
    0xBE54_66CF_34E9_0C6D,
    0xC0AC_29B7_C97C_50DD,
    0x3F84_D5B5_B547_0917,
    0x9216_D5D9_8979_FB1B,
    0xD131_0BA6_98DF_B5AD,
    0x2FFD_72DB_D01A_DFB7,
    0xB8E1_AFED_6A26_7E97,
    0xBA7C_9045_F12C_7F99,
    0x24A1_9947_B391_6CF7,
    0x0801_F2E2_858E_FC17,
    0x6369_20D8_7157_4E69,
];

/// A word is this tag's, or empty.
pub(super) const TAG: u64 = !0 << WORD_BITS;

/// The bits of a key in a run of its block.
pub(super) type Run = [u64; RUN];

/// The key's bits in a run of its block, given the low half of its hash: one in
/// each slice of each word.
///
/// The upper half of `lo` times the word's own number is a fraction of 32 bits. Its
/// first digit to the base of the slices' length is the bit in the first slice,
/// the next that in the second.
#[inline(always)]
pub(super) fn key_bits(shape: &WindowShape, lo: u64, run: usize) -> Run {
    let salts = &SALTS[run * RUN..][..RUN];
    match shape.slices() {
        1 => sliced::<1>(lo, salts),
        2 => sliced::<2>(lo, salts),
        3 => sliced::<3>(lo, salts),
        4 => sliced::<4>(lo, salts),
        5 => sliced::<5>(lo, salts),
        _ => sliced::<6>(lo, salts),
    }
}

/// [`key_bits`] of a number of slices that the compiler knows: then there is no loop.
#[inline(always)]
fn sliced<const SLICES: u64>(lo: u64, salts: &[u64]) -> Run {
    let len = u64::from(WORD_BITS) / SLICES;
    std::array::from_fn(|w| {
        let mut fraction = lo.wrapping_mul(salts[w]) >> 32;
        let mut bits = 0;
        for slice in 0..SLICES {
            let digit = fraction * len;
            bits |= 1 << (slice * len) << (digit >> 32);
            fraction = digit & 0xFFFF_FFFF;
        }
        bits
    })
}

/// Whether the words have all of a key's bits, under this mark.
#[inline(always)]
pub(super) fn has<W: Word>(words: &[W; RUN], bits: &Run, mark: u64) -> bool {
    let missing = (0..RUN).fold(0, |missing, w| {
        missing | (words[w].get() ^ bits[w] ^ mark) & (bits[w] | TAG)
    });
    missing == 0
}
