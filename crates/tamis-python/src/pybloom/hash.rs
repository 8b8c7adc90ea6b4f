//! MurmurHash3-x64-128 under several seeds at once, and the way from a hash to
//! a bit.
//!
//! The format asks for one whole hash per bit, each with its own seed. What a
//! block contributes doesn't depend on the seed, so it is prepared once; the
//! chains of the seeds are independent, so the processor runs them side by
//! side.

const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

/// The two halves of each seed's hash, XORed as the format wants, and what
/// `then` makes of them.
///
/// That is done here, lane by lane: if the hashes were returned, the compiler
/// would finish them in vectors, whose 64-bit products are slower than two
/// plain ones.
#[inline(always)]
fn hashes<const LANES: usize>(
    key: &[u8],
    seeds: &[u32; LANES],
    then: impl Fn(u64) -> u64,
) -> [u64; LANES] {
    let mut a = seeds.map(u64::from);
    let mut b = a;
    for block in key.as_chunks::<16>().0 {
        let (low, high) = halves(u128::from_le_bytes(*block));
        let (low, high) = (mix_low(low), mix_high(high));
        for lane in 0..LANES {
            a[lane] = (a[lane] ^ low)
                .rotate_left(27)
                .wrapping_add(b[lane])
                .wrapping_mul(5)
                .wrapping_add(0x52dc_e729);
            b[lane] = (b[lane] ^ high)
                .rotate_left(31)
                .wrapping_add(a[lane])
                .wrapping_mul(5)
                .wrapping_add(0x3849_5ab5);
        }
    }
    // Mixing leaves zero as it is: an absent half needs no branch.
    let (low, high) = halves(tail(key));
    let (low, high) = (mix_low(low), mix_high(high));
    let len = key.len() as u64;
    std::array::from_fn(|lane| {
        let (a, b) = (a[lane] ^ low ^ len, b[lane] ^ high ^ len);
        let a = a.wrapping_add(b);
        let b = b.wrapping_add(a);
        let b = finish(b);
        let a = finish(a).wrapping_add(b);
        then(a ^ b.wrapping_add(a))
    })
}

/// The bytes after the last whole block, as a zero-padded little-endian block.
#[inline]
fn tail(key: &[u8]) -> u128 {
    let rest = key.len() % 16;
    if rest == 0 {
        return 0;
    }
    if let Some(last) = key.last_chunk() {
        return u128::from_le_bytes(*last) >> (8 * (16 - rest));
    }
    // Two reads that overlap agree on the bytes they share.
    if let (Some(first), Some(last)) = (key.first_chunk(), key.last_chunk()) {
        return u128::from(u64::from_le_bytes(*first))
            | u128::from(u64::from_le_bytes(*last)) << (8 * (rest - 8));
    }
    if let (Some(first), Some(last)) = (key.first_chunk(), key.last_chunk()) {
        return u128::from(u32::from_le_bytes(*first))
            | u128::from(u32::from_le_bytes(*last)) << (8 * (rest - 4));
    }
    [0, rest / 2, rest - 1]
        .into_iter()
        .fold(0, |bytes, at| bytes | u128::from(key[at]) << (8 * at))
}

#[inline]
fn halves(block: u128) -> (u64, u64) {
    (block as u64, (block >> 64) as u64)
}

#[inline]
fn mix_low(half: u64) -> u64 {
    half.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2)
}

#[inline]
fn mix_high(half: u64) -> u64 {
    half.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1)
}

#[inline]
fn finish(mut half: u64) -> u64 {
    half ^= half >> 33;
    half = half.wrapping_mul(0xff51_afd7_ed55_8ccd);
    half ^= half >> 33;
    half = half.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    half ^ half >> 33
}

/// How a filter turns a key into bits: its seeds and its number of bits.
pub(super) struct Probes {
    seeds: Box<[u32]>,
    bits: u64,
    /// floor((2^64 - 1) / bits), for a remainder without a division.
    reciprocal: u64,
}

impl Probes {
    /// `bits` is not zero.
    pub(super) fn new(seeds: &[u32], bits: u64) -> Self {
        Self {
            seeds: seeds.into(),
            bits,
            reciprocal: u64::MAX / bits,
        }
    }

    pub(super) fn seeds(&self) -> &[u32] {
        &self.seeds
    }

    pub(super) fn bits(&self) -> u64 {
        self.bits
    }

    /// Calls `group` with the key's bits, a few at a time, for as long as it
    /// answers true; says whether it always did.
    #[inline]
    pub(super) fn all(&self, key: &[u8], mut group: impl FnMut(&[u64]) -> bool) -> bool {
        let (fours, rest) = self.seeds.as_chunks::<4>();
        fours.iter().all(|seeds| group(&self.positions(key, seeds)))
            && match rest {
                [] => true,
                &[s] => group(&self.positions(key, &[s])),
                &[s, t] => group(&self.positions(key, &[s, t])),
                &[s, t, u] => group(&self.positions(key, &[s, t, u])),
                _ => unreachable!("what is left of groups of four"),
            }
    }

    #[inline]
    fn positions<const LANES: usize>(&self, key: &[u8], seeds: &[u32; LANES]) -> [u64; LANES] {
        hashes(key, seeds, |hash| self.remainder(hash))
    }

    /// `hash % self.bits`. The estimated quotient is the true one or one less:
    /// the reciprocal is less than 1 too small, so the product is less than
    /// hash / 2^64 < 1 too small.
    #[inline]
    fn remainder(&self, hash: u64) -> u64 {
        let quotient = ((u128::from(hash) * u128::from(self.reciprocal)) >> 64) as u64;
        let rest = hash - quotient * self.bits;
        if rest >= self.bits {
            rest - self.bits
        } else {
            rest
        }
    }
}
