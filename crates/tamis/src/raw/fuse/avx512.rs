//! Fuse look-ups by AVX-512: where the slots of eight keys are, at a time.

use super::{BLOCK, Hash, Slots};
use std::arch::x86_64::*;
use std::mem::{offset_of, transmute};

/// SAFETY: the machine has [`Level::Avx512`](crate::raw::isa::Level).
#[target_feature(enable = "avx512f,avx512dq")]
pub(super) unsafe fn contains_hashes<const ARITY: usize, H: Copy + Into<Hash>>(
    slots: Slots<'_>,
    keys: &[H],
    out: &mut [bool],
) {
    // Slots are fetched this many groups before they are tested, by gathers of the compiler's.
    const AHEAD: usize = 8;
    // A block of narrow slots is hardly more than a line: fetching one slot of a pair fetches both.
    let stride = if slots.shape.width > 8 { 1 } else { 2 };
    let (groups, rest) = keys.as_chunks::<8>();
    let (out_groups, out_rest) = out.as_chunks_mut::<8>();
    // Where the slots of a group are, and its hashes.
    let mut ring = [([[0u64; 8]; ARITY], [Hash::default(); 8]); AHEAD];
    for at in 0..groups.len() + AHEAD {
        let (spots, hashes) = &mut ring[at % AHEAD];
        if let Some(group) = at.checked_sub(AHEAD) {
            for (lane, out) in out_groups[group].iter_mut().enumerate() {
                let spots: [u64; ARITY] = std::array::from_fn(|i| spots[i][lane]);
                *out = slots.match_at(hashes[lane], spots);
            }
        }
        if let Some(group) = groups.get(at) {
            *hashes = group.map(Into::into);
            // SAFETY: a vector is eight integers.
            *spots = spots_of::<ARITY>(slots, hashes).map(|spots| unsafe { transmute(spots) });
            for spots in spots.iter().step_by(stride) {
                spots.iter().for_each(|&spot| slots.prefetch(spot));
            }
        }
    }
    for (&key, out) in rest.iter().zip(out_rest) {
        let hash = key.into();
        *out = slots.match_at(hash, slots.spots::<ARITY>(hash));
    }
}

/// The hi and lo halves of eight hashes.
#[target_feature(enable = "avx512f,avx512dq")]
fn halves(group: &[Hash; 8]) -> (__m512i, __m512i) {
    // SAFETY: a group is 128 bytes.
    let (a, b): (__m512i, __m512i) = unsafe { transmute(*group) };
    let evens = _mm512_permutex2var_epi64(a, _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0), b);
    let odds = _mm512_permutex2var_epi64(a, _mm512_set_epi64(15, 13, 11, 9, 7, 5, 3, 1), b);
    if offset_of!(Hash, hi) == 0 {
        (evens, odds)
    } else {
        (odds, evens)
    }
}

/// [`Slots::spots`] of eight hashes.
#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
fn spots_of<const ARITY: usize>(slots: Slots<'_>, group: &[Hash; 8]) -> [__m512i; ARITY] {
    let shape = slots.shape;
    let all = |x: u64| _mm512_set1_epi64(x as i64);
    let (hi, lo) = halves(group);
    let (blocks, width) = (all(shape.segment_blocks.into()), all(shape.width.into()));
    let bits = i64::from(shape.shard_bits);
    let shard = _mm512_srl_epi64(hi, _mm_cvtsi64_si128(64 - bits)); // here a shift by 64 gives 0
    // SAFETY: the body begins with a seed for every shard.
    let seed = unsafe { _mm512_i64gather_epi64::<8>(shard, slots.body.cast()) };
    let place = _mm512_srli_epi64::<32>(_mm512_sll_epi64(hi, _mm_cvtsi64_si128(bits)));
    let place = _mm512_mul_epu32(place, all((shape.segments - 1).into()));
    let segment = _mm512_mul_epu32(_mm512_srli_epi64::<32>(place), blocks);
    let near = _mm512_add_epi64(
        segment,
        _mm512_srli_epi64::<32>(_mm512_mul_epu32(place, blocks)),
    );
    let mixed = mix(_mm512_xor_si512(lo, seed));
    let far = _mm512_srli_epi64::<32>(_mm512_mul_epu32(_mm512_srli_epi64::<32>(mixed), blocks));
    let far = _mm512_add_epi64(_mm512_add_epi64(segment, blocks), far);
    let swap = if ARITY == 3 {
        _mm512_test_epi64_mask(mixed, all(1 << 22))
    } else {
        0
    };
    let first_word = _mm512_add_epi64(
        all(shape.sizes.seeds),
        _mm512_mul_epu32(shard, all(shape.sizes.shard)),
    );
    // A block is `width` words.
    let start = |block| {
        _mm512_slli_epi64::<9>(_mm512_add_epi64(first_word, _mm512_mul_epu32(block, width)))
    };
    let last = all(8 * u64::from(shape.width) - 8);
    let starts = (
        start(_mm512_mask_blend_epi64(swap, near, far)),
        start(_mm512_mask_blend_epi64(swap, far, near)),
    );
    let pair = |start, bits| {
        let step = _mm512_and_si512(_mm512_srli_epi64::<6>(bits), all(0x3FF));
        let step = _mm512_srli_epi64::<10>(_mm512_mul_epu32(step, all(BLOCK - 1)));
        let one = _mm512_and_si512(bits, all(BLOCK - 1));
        let other = _mm512_xor_si512(one, _mm512_add_epi64(step, all(1)));
        [one, other].map(|slot| {
            let bit = _mm512_mul_epu32(slot, width);
            let byte = _mm512_min_epu64(_mm512_srli_epi64::<3>(bit), last);
            // 64 times the byte, and the bits from there.
            let spot = _mm512_add_epi64(bit, _mm512_mul_epu32(byte, all(64 - 8)));
            _mm512_add_epi64(start, spot)
        })
    };
    let pairs = [
        pair(starts.0, mixed),
        pair(starts.1, _mm512_srli_epi64::<16>(mixed)),
    ];
    std::array::from_fn(|i| pairs[i / 2][i % 2])
}

/// `hash::mix`
#[target_feature(enable = "avx512f,avx512dq")]
fn mix(x: __m512i) -> __m512i {
    let x = _mm512_add_epi64(x, _mm512_set1_epi64(0x9E37_79B9_7F4A_7C15_u64 as i64));
    let x = _mm512_xor_si512(x, _mm512_srli_epi64::<32>(x));
    let x = _mm512_mullo_epi64(x, _mm512_set1_epi64(0xD6E8_FEB8_6659_FD93_u64 as i64));
    _mm512_xor_si512(x, _mm512_srli_epi64::<32>(x))
}
