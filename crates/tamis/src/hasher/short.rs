//! XXH3-128 of short keys, without a seed, for WebAssembly, where a 128-bit product is a slow call. Gives the
//! crate's numbers from products of 32-bit halves.

use crate::hash::Hash;

/// The first half of XXH3's own secret, as words.
const SECRET: [u64; 16] = [
    0xBE4B_A423_396C_FEB8,
    0x1CAD_21F7_2C81_017C,
    0xDB97_9083_E96D_D4DE,
    0x1F67_B3B7_A4A4_4072,
    0x78E5_C0CC_4EE6_79CB,
    0x2172_FFCC_7DD0_5A82,
    0x8E24_43F7_7446_08B8,
    0x4C26_3A81_E690_35E0,
    0xCB00_C391_BB52_283C,
    0xA32E_531B_8B65_D088,
    0x4EF9_0DA2_9748_6471,
    0xD8AC_DEA9_46EF_1938,
    0x3F34_9CE3_3F76_FAA8,
    0x1D4F_0BC7_C7BB_DCF9,
    0x3159_B4CD_4BE0_518A,
    0x6473_78D9_C97E_9FC8,
];
const PRIME32_2: u64 = 0x85EB_CA77;
const PRIME64_1: u64 = 0x9E37_79B1_85EB_CA87;
const PRIME64_2: u64 = 0xC2B2_AE3D_27D4_EB4F;
const PRIME64_4: u64 = 0x85EB_CA77_C2B2_AE63;

/// The hash of a key of 4 to 128 bytes; `None` for others.
#[inline(always)]
pub(super) fn hash(key: &[u8]) -> Option<Hash> {
    match key.len() {
        17..=128 => Some(of_up_to_128(key)),
        9..=16 => Some(of_up_to_16(key)),
        4..=8 => Some(of_up_to_8(key)),
        _ => None,
    }
}

#[inline(always)]
fn of_up_to_8(key: &[u8]) -> Hash {
    let (Some(first), Some(last)) = (key.first_chunk(), key.last_chunk()) else {
        return Hash::default();
    };
    let half = |bytes: &[u8; 4]| u64::from(u32::from_le_bytes(*bytes));
    let input = half(first) + (half(last) << 32);
    let keyed = input ^ SECRET[2] ^ SECRET[3];
    let (mut lo, mut hi) = product(keyed, PRIME64_1.wrapping_add((key.len() as u64) << 2));
    hi = hi.wrapping_add(lo << 1);
    lo ^= hi >> 3;
    lo = (lo ^ lo >> 35).wrapping_mul(0x9FB2_1C65_1E98_DF25);
    let (hi, lo) = (avalanche(hi), lo ^ lo >> 28);
    Hash { hi, lo }
}

fn of_up_to_16(key: &[u8]) -> Hash {
    let (Some(first), Some(last)) = (key.first_chunk(), key.last_chunk()) else {
        return Hash::default();
    };
    let (first, last) = (u64::from_le_bytes(*first), u64::from_le_bytes(*last));
    let (mut lo, mut hi) = product(first ^ last ^ SECRET[4] ^ SECRET[5], PRIME64_1);
    lo = lo.wrapping_add((key.len() as u64 - 1) << 54);
    let last = last ^ SECRET[6] ^ SECRET[7];
    let low_half = last & u64::from(u32::MAX);
    hi = hi.wrapping_add(last.wrapping_add(low_half.wrapping_mul(PRIME32_2 - 1)));
    lo ^= hi.swap_bytes();
    let (lo, high) = product(lo, PRIME64_2);
    let hi = high.wrapping_add(hi.wrapping_mul(PRIME64_2));
    Hash {
        hi: avalanche(hi),
        lo: avalanche(lo),
    }
}

#[inline(always)]
fn of_up_to_128(key: &[u8]) -> Hash {
    let len = key.len() as u64;
    let mut sums = (len.wrapping_mul(PRIME64_1), 0);
    // From the middle of the key to its ends: 32 bytes per step, 16 from either end.
    if key.len() > 32 {
        sums = of_middle(key, sums);
    }
    let (Some(front), Some(back)) = (key.first_chunk(), key.last_chunk()) else {
        return Hash::default();
    };
    let (lo, hi) = mixed(sums, front, back, &SECRET[..4]);
    let far = lo
        .wrapping_mul(PRIME64_1)
        .wrapping_add(hi.wrapping_mul(PRIME64_4))
        .wrapping_add(len.wrapping_mul(PRIME64_2));
    Hash {
        hi: avalanche(far).wrapping_neg(),
        lo: avalanche(lo.wrapping_add(hi)),
    }
}

#[inline(never)]
fn of_middle(key: &[u8], mut sums: (u64, u64)) -> (u64, u64) {
    for step in (1..key.len().div_ceil(32)).rev() {
        let front = key[16 * step..].first_chunk();
        let back = key[..key.len() - 16 * step].last_chunk();
        if let (Some(front), Some(back)) = (front, back) {
            sums = mixed(sums, front, back, &SECRET[4 * step..]);
        }
    }
    sums
}

#[inline(always)]
fn mixed((lo, hi): (u64, u64), front: &[u8; 16], back: &[u8; 16], secret: &[u64]) -> (u64, u64) {
    let ([a, b], [c, d]) = (words(front), words(back));
    (
        lo.wrapping_add(folded(a ^ secret[0], b ^ secret[1])) ^ c.wrapping_add(d),
        hi.wrapping_add(folded(c ^ secret[2], d ^ secret[3])) ^ a.wrapping_add(b),
    )
}

#[inline(always)]
fn words(bytes: &[u8; 16]) -> [u64; 2] {
    let both = u128::from_le_bytes(*bytes);
    [both as u64, (both >> 64) as u64]
}

/// The low and the high half of a product.
#[inline(always)]
const fn product(a: u64, b: u64) -> (u64, u64) {
    const LOW: u64 = u32::MAX as u64;
    let low = (a & LOW) * (b & LOW);
    let mid = (a >> 32) * (b & LOW) + (low >> 32);
    let other = (a & LOW) * (b >> 32) + (mid & LOW);
    let high = (a >> 32) * (b >> 32) + (mid >> 32) + (other >> 32);
    (other << 32 | low & LOW, high)
}

/// The two halves of a product, combined.
#[inline(always)]
const fn folded(a: u64, b: u64) -> u64 {
    let (low, high) = product(a, b);
    low ^ high
}

#[inline(always)]
const fn avalanche(x: u64) -> u64 {
    let x = (x ^ x >> 37).wrapping_mul(0x1656_6791_9E37_79F9);
    x ^ x >> 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;
    use xxhash_rust::xxh3::xxh3_128;

    #[test]
    fn short_keys_have_the_published_hash() {
        let mut random = 1;
        for len in 0..=300 {
            for fill in 0..20 {
                let key: Vec<u8> = (0..len)
                    .map(|_| {
                        random = mix(random);
                        match fill {
                            0 => 0,
                            1 => 255,
                            _ => random as u8,
                        }
                    })
                    .collect();
                let expected = (4..=128)
                    .contains(&len)
                    .then(|| Hash::of_digest(xxh3_128(&key)));
                assert_eq!(hash(&key), expected, "{key:?}");
            }
        }
    }
}
