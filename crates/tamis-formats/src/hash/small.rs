//! The short ones: FNV-1, Wang's, LevelDB's.

/// FNV-1 of 64 bits (not 1a: it multiplies first).
#[inline]
pub(crate) fn fnv1_64(key: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| hash.wrapping_mul(0x0000_0100_0000_01b3) ^ u64::from(*byte);
    key.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Thomas Wang's hash of a 64-bit integer, with arithmetic shifts, as in ORC.
#[inline]
pub(crate) fn wang_64(key: i64) -> u64 {
    let mut x = (!key).wrapping_add(key << 21);
    x ^= x >> 24;
    x = x.wrapping_add(x << 3).wrapping_add(x << 8);
    x ^= x >> 14;
    x = x.wrapping_add(x << 2).wrapping_add(x << 4);
    x ^= x >> 28;
    x.wrapping_add(x << 31) as u64
}

/// LevelDB's hash of 32 bits, with the seed of its filters.
#[inline]
pub(crate) fn leveldb_32(key: &[u8]) -> u32 {
    const M: u32 = 0xc6a4_a793;
    let (blocks, rest) = key.as_chunks::<4>();
    let mut hash = 0xbc9f_1d34 ^ (key.len() as u32).wrapping_mul(M);
    for block in blocks {
        hash = hash
            .wrapping_add(u32::from_le_bytes(*block))
            .wrapping_mul(M);
        hash ^= hash >> 16;
    }
    if !rest.is_empty() {
        let word = rest
            .iter()
            .rev()
            .fold(0, |word, byte| word << 8 | u32::from(*byte));
        hash = hash.wrapping_add(word).wrapping_mul(M);
        hash ^= hash >> 24;
    }
    hash
}

/// FNV-1a of 64 bits, as pyprobables seeds it: of bytes, or of larger numbers.
pub(crate) fn fnv_64(seed: u64, values: impl Iterator<Item = u64>) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325_u64.wrapping_add(31 * seed);
    values.fold(start, |hash, value| {
        (hash ^ value).wrapping_mul(0x0100_0000_01b3)
    })
}
