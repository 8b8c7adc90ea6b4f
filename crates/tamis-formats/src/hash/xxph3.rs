//! The preview of XXH3 that RocksDB's filters were frozen with: the same
//! design as the released one, with other constants for short keys.

const PRIME32_1: u64 = 0x9E37_79B1;
const PRIME32_2: u64 = 0x85EB_CA77;
const PRIME32_3: u64 = 0xC2B2_AE3D;
const PRIME64_1: u64 = 0x9E37_79B1_85EB_CA87;
const PRIME64_2: u64 = 0xC2B2_AE3D_27D4_EB4F;
const PRIME64_3: u64 = 0x1656_67B1_9E37_79F9;
const PRIME64_4: u64 = 0x85EB_CA77_C2B2_AE63;
const PRIME64_5: u64 = 0x27D4_EB2F_1656_67C5;

/// XXH3's default secret.
const SECRET: &[u8; 192] = &[
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
    0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
    0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
    0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
    0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
    0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
    0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
    0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
    0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
    0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
    0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
];
/// For medium-sized keys, the secret counts as only this many bytes long.
const LEAST_SECRET: usize = 136;
const STRIPE: usize = 64;

fn u32_at(bytes: &[u8], at: usize) -> u64 {
    u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i])).into()
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

fn folded(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

fn avalanche(x: u64) -> u64 {
    let x = (x ^ x >> 37).wrapping_mul(PRIME64_3);
    x ^ x >> 32
}

/// Mixes sixteen bytes of the key from `at` with sixteen of the secret from
/// `secret`.
fn mix_16(key: &[u8], at: usize, secret: usize) -> u64 {
    folded(
        u64_at(key, at) ^ u64_at(SECRET, secret),
        u64_at(key, at + 8) ^ u64_at(SECRET, secret + 8),
    )
}

pub(crate) fn xxph3_64(key: &[u8]) -> u64 {
    let len = key.len();
    match len {
        0 => folded(u64_at(SECRET, 0), PRIME64_2),
        1..=3 => {
            let (first, middle, last) = (key[0], key[len >> 1], key[len - 1]);
            let combined = u32::from_le_bytes([first, middle, last, len as u8]);
            avalanche((u64::from(combined) ^ u32_at(SECRET, 0)).wrapping_mul(PRIME64_1))
        }
        4..=8 => {
            let input = u32_at(key, 0) | u32_at(key, len - 4) << 32;
            let keyed = input ^ u64_at(SECRET, 0);
            let mixed = (len as u64).wrapping_add((keyed ^ keyed >> 51).wrapping_mul(PRIME32_1));
            avalanche((mixed ^ mixed >> 47).wrapping_mul(PRIME64_2))
        }
        9..=16 => {
            let low = u64_at(key, 0) ^ u64_at(SECRET, 0);
            let high = u64_at(key, len - 8) ^ u64_at(SECRET, 8);
            let sum = (len as u64).wrapping_add(low).wrapping_add(high);
            avalanche(sum.wrapping_add(folded(low, high)))
        }
        17..=128 => {
            let mut sum = (len as u64).wrapping_mul(PRIME64_1);
            for i in 0..=(len - 1) / 32 {
                sum = sum.wrapping_add(mix_16(key, 16 * i, 32 * i));
                sum = sum.wrapping_add(mix_16(key, len - 16 * (i + 1), 32 * i + 16));
            }
            avalanche(sum)
        }
        129..=240 => {
            let mut sum = (len as u64).wrapping_mul(PRIME64_1);
            for i in 0..8 {
                sum = sum.wrapping_add(mix_16(key, 16 * i, 16 * i));
            }
            sum = avalanche(sum);
            for i in 8..len / 16 {
                sum = sum.wrapping_add(mix_16(key, 16 * i, 16 * (i - 8) + 3));
            }
            avalanche(sum.wrapping_add(mix_16(key, len - 16, LEAST_SECRET - 17)))
        }
        _ => long(key),
    }
}

fn long(key: &[u8]) -> u64 {
    const ROUNDS: usize = (SECRET.len() - STRIPE) / 8;
    let mut sums = [
        PRIME32_3, PRIME64_1, PRIME64_2, PRIME64_3, PRIME64_4, PRIME32_2, PRIME64_5, PRIME32_1,
    ];
    let accumulate = |sums: &mut [u64; 8], at: usize, secret: usize| {
        for (i, sum) in sums.iter_mut().enumerate() {
            let data = u64_at(key, at + 8 * i);
            let keyed = data ^ u64_at(SECRET, secret + 8 * i);
            *sum = sum
                .wrapping_add(data)
                .wrapping_add((keyed & 0xFFFF_FFFF) * (keyed >> 32));
        }
    };
    let stripes = key.len() / STRIPE;
    for stripe in 0..stripes {
        accumulate(&mut sums, stripe * STRIPE, stripe % ROUNDS * 8);
        if stripe % ROUNDS == ROUNDS - 1 {
            for (i, sum) in sums.iter_mut().enumerate() {
                let keyed = *sum ^ *sum >> 47 ^ u64_at(SECRET, SECRET.len() - STRIPE + 8 * i);
                *sum = keyed.wrapping_mul(PRIME32_1);
            }
        }
    }
    if !key.len().is_multiple_of(STRIPE) {
        accumulate(&mut sums, key.len() - STRIPE, SECRET.len() - STRIPE - 7);
    }
    let start = (key.len() as u64).wrapping_mul(PRIME64_1);
    let merged = (0..4).fold(start, |sum, i| {
        let secret = 11 + 16 * i;
        sum.wrapping_add(folded(
            sums[2 * i] ^ u64_at(SECRET, secret),
            sums[2 * i + 1] ^ u64_at(SECRET, secret + 8),
        ))
    });
    avalanche(merged)
}
