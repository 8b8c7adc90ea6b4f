//! Small hashes: FNV-1, Wang's, LevelDB's, Bernstein's, Hsieh's.

/// 64-bit FNV-1 (not 1a: it multiplies first).
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

/// LevelDB's 32-bit hash, with the seed of its filters.
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

/// 64-bit FNV-1a with pyprobables' seeds, of bytes or of larger numbers.
pub(crate) fn fnv_64(seed: u64, values: impl Iterator<Item = u64>) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325_u64.wrapping_add(31 * seed);
    values.fold(start, |hash, value| {
        (hash ^ value).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Bernstein's hash times 33, with pybloomfiltermmap's seeds.
#[inline]
pub(crate) fn djb_32(key: &[u8], seed: u32) -> u32 {
    let step = |hash: u32, byte: &u8| hash.wrapping_mul(33).wrapping_add((*byte).into());
    key.iter().fold(5381 ^ seed, step)
}

/// Hsieh's SuperFastHash, whose last bytes are signed. The empty key hashes to
/// 0 with any seed.
pub(crate) fn superfast_32(key: &[u8], seed: u32) -> u32 {
    if key.is_empty() {
        return 0;
    }
    let pair = |low: u8, high: u8| u32::from(low) | u32::from(high) << 8;
    let signed = |byte: u8| byte as i8 as u32;
    let add = |hash: u32, back: u32| hash.wrapping_add(hash >> back);
    let mix = |hash: u32, shift: u32, back: u32| add(hash ^ hash << shift, back);
    let (blocks, rest) = key.as_chunks::<4>();
    let mut hash = seed;
    for &[a, b, c, d] in blocks {
        hash = hash.wrapping_add(pair(a, b));
        hash = add(hash ^ hash << 16 ^ pair(c, d) << 11, 11);
    }
    hash = match *rest {
        [a, b, c] => {
            let hash = hash.wrapping_add(pair(a, b));
            add(hash ^ hash << 16 ^ signed(c) << 18, 11)
        }
        [a, b] => mix(hash.wrapping_add(pair(a, b)), 11, 17),
        [a] => mix(hash.wrapping_add(signed(a)), 10, 1),
        _ => hash,
    };
    mix(mix(mix(hash, 3, 5), 4, 17), 25, 6)
}

/// `hash = seed * hash + unit` over UTF-16 text, in Java's ints: with seed 31,
/// it is `String.hashCode`.
#[inline]
pub(crate) fn java_32(key: &[u8], seed: i32) -> i32 {
    let units = key.as_chunks::<2>().0.iter().copied();
    let step = |hash: i32, unit: i32| hash.wrapping_mul(seed).wrapping_add(unit);
    units
        .map(|unit| u16::from_le_bytes(unit).into())
        .fold(0, step)
}
