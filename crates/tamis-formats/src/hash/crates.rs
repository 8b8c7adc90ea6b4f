//! Hashes from other crates, as the formats use them.

use highway::HighwayHash as _;
use std::hash::Hasher as _;

/// Redisson's key for HighwayHash.
const REDISSON: [u64; 4] = [
    0x9e37_79b9_7f4a_7c15,
    0xf39c_c060_5ced_c834,
    0x1082_276b_f3a2_7251,
    0xf86c_6a11_d0c1_8e95,
];

/// 128-bit HighwayHash with Redisson's key: both halves.
#[inline]
pub(crate) fn redisson_128(key: &[u8]) -> (u64, u64) {
    let [low, high] = highway::HighwayHasher::new(highway::Key(REDISSON)).hash128(key);
    (low, high)
}

/// SipHash-1-3 of concatenated parts.
#[inline]
pub(crate) fn siphash_1_3(secret: &[u8; 16], parts: &[&[u8]]) -> u64 {
    let mut hasher = siphasher::sip::SipHasher13::new_with_key(secret);
    parts.iter().for_each(|part| hasher.write(part));
    hasher.finish()
}

/// The second version of wyhash, with poppy's seed.
#[inline]
pub(crate) fn poppy_64(key: &[u8]) -> u64 {
    let mut hasher = wyhash::WyHash::with_seed(0x706f_7070_7953_3d42);
    hasher.write(key);
    hasher.finish()
}
