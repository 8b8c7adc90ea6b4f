//! MurmurHash2 and 3, in the variants of the systems that use them.

const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

/// How the bytes after the last whole block are read. Java's bytes are signed,
/// and some ports forgot to clear the sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    Plain,
    /// Bytes from 0x80 on also set all bits above them (Cassandra).
    Signed,
}

/// Up to eight signed bytes as a little-endian number.
#[inline]
fn signed(bytes: &[u8]) -> u64 {
    let shifted = |(i, byte): (usize, &u8)| (i64::from(*byte as i8) as u64) << (8 * i);
    bytes.iter().enumerate().map(shifted).fold(0, |x, y| x ^ y)
}

/// 128-bit MurmurHash3 for 64-bit machines: both halves.
#[inline]
pub(crate) fn x64_128(key: &[u8], seed: u64, of_tail: Tail) -> (u64, u64) {
    let (mut h1, mut h2) = (seed, seed);
    let (blocks, rest) = key.as_chunks::<16>();
    for block in blocks {
        let (low, high) = halves(u128::from_le_bytes(*block));
        h1 = (h1 ^ mix_low(low)).rotate_left(27).wrapping_add(h2);
        h1 = h1.wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 = (h2 ^ mix_high(high)).rotate_left(31).wrapping_add(h1);
        h2 = h2.wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    let (low, high) = match of_tail {
        Tail::Plain => halves(tail(key)),
        Tail::Signed => {
            let (low, high) = rest.split_at(rest.len().min(8));
            (signed(low), signed(high))
        }
    };
    // Mixing keeps zero, so an absent half needs no branch.
    h2 ^= mix_high(high) ^ key.len() as u64;
    h1 ^= mix_low(low) ^ key.len() as u64;
    h1 = h1.wrapping_add(h2);
    h2 = finish_64(h2.wrapping_add(h1));
    h1 = finish_64(h1).wrapping_add(h2);
    (h1, h2.wrapping_add(h1))
}

/// [`x64_128`] with several seeds at once: XORs the halves of each hash and
/// passes it to `then`.
///
/// A block's contribution doesn't depend on the seed, so it is prepared once;
/// the chains of the seeds are independent, so the processor runs them in
/// parallel. `then` is called here, lane by lane: if the hashes were returned,
/// the compiler would finish them in vectors, whose 64-bit products are slower
/// than two plain ones.
#[inline(always)]
pub(crate) fn x64_128_folded<const LANES: usize>(
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
    // Mixing keeps zero, so an absent half needs no branch.
    let (low, high) = halves(tail(key));
    let (low, high) = (mix_low(low), mix_high(high));
    let len = key.len() as u64;
    std::array::from_fn(|lane| {
        let (a, b) = (a[lane] ^ low ^ len, b[lane] ^ high ^ len);
        let a = a.wrapping_add(b);
        let b = finish_64(b.wrapping_add(a));
        let a = finish_64(a).wrapping_add(b);
        then(a ^ b.wrapping_add(a))
    })
}

/// The bytes after the last whole block, as a zero-padded little-endian block.
#[inline(always)]
fn tail(key: &[u8]) -> u128 {
    let rest = key.len() % 16;
    if rest == 0 {
        return 0;
    }
    if let Some(last) = key.last_chunk() {
        return u128::from_le_bytes(*last) >> (8 * (16 - rest));
    }
    // Two overlapping reads agree on the bytes they share.
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

#[inline(always)]
fn halves(block: u128) -> (u64, u64) {
    (block as u64, (block >> 64) as u64)
}

#[inline(always)]
fn mix_low(half: u64) -> u64 {
    half.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2)
}

#[inline(always)]
fn mix_high(half: u64) -> u64 {
    half.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1)
}

#[inline(always)]
fn finish_64(mut x: u64) -> u64 {
    x ^= x >> 33;
    x = x.wrapping_mul(0xff51_afd7_ed55_8ccd);
    x ^= x >> 33;
    x = x.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ x >> 33
}

/// ORC's own 64-bit MurmurHash3: only the steps of the first half.
#[inline]
pub(crate) fn orc_64(key: &[u8], seed: u64) -> u64 {
    let (blocks, rest) = key.as_chunks::<8>();
    let hash = blocks.iter().fold(seed, |hash, block| {
        (hash ^ mix_low(u64::from_le_bytes(*block)))
            .rotate_left(27)
            .wrapping_mul(5)
            .wrapping_add(0x52dc_e729)
    });
    finish_64(hash ^ mix_low(padded(rest)) ^ key.len() as u64)
}

/// Up to eight bytes as a little-endian number.
#[inline(always)]
fn padded(bytes: &[u8]) -> u64 {
    let mut all = [0; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(all)
}

/// MurmurHash3 for 32-bit machines.
#[inline]
pub(crate) fn x86_32(key: &[u8], seed: u32) -> u32 {
    let (blocks, rest) = key.as_chunks::<4>();
    let hash = blocks.iter().fold(seed, |hash, block| {
        step_32(hash, u32::from_le_bytes(*block))
    });
    finish_32(hash ^ mix_32(padded(rest) as u32) ^ key.len() as u32)
}

/// Spark's variant: each byte after the last whole block is a separate block,
/// sign-extended.
#[inline]
pub(crate) fn spark_32(key: &[u8], seed: u32) -> u32 {
    let (blocks, rest) = key.as_chunks::<4>();
    let hash = blocks.iter().fold(seed, |hash, block| {
        step_32(hash, u32::from_le_bytes(*block))
    });
    let hash = rest.iter().fold(hash, |hash, byte| {
        step_32(hash, i32::from(*byte as i8) as u32)
    });
    finish_32(hash ^ key.len() as u32)
}

#[inline(always)]
fn step_32(hash: u32, block: u32) -> u32 {
    (hash ^ mix_32(block))
        .rotate_left(13)
        .wrapping_mul(5)
        .wrapping_add(0xe654_6b64)
}

#[inline(always)]
fn mix_32(block: u32) -> u32 {
    block
        .wrapping_mul(0xcc9e_2d51)
        .rotate_left(15)
        .wrapping_mul(0x1b87_3593)
}

#[inline(always)]
fn finish_32(mut x: u32) -> u32 {
    x ^= x >> 16;
    x = x.wrapping_mul(0x85eb_ca6b);
    x ^= x >> 13;
    x = x.wrapping_mul(0xc2b2_ae35);
    x ^ x >> 16
}

/// MurmurHash2 for 64-bit machines, variant A.
#[inline]
pub(crate) fn murmur2_64a(key: &[u8], seed: u64) -> u64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    let (blocks, rest) = key.as_chunks::<8>();
    let mut hash = seed ^ (key.len() as u64).wrapping_mul(M);
    for block in blocks {
        let block = u64::from_le_bytes(*block).wrapping_mul(M);
        hash = (hash ^ (block ^ block >> 47).wrapping_mul(M)).wrapping_mul(M);
    }
    if !rest.is_empty() {
        hash = (hash ^ padded(rest)).wrapping_mul(M);
    }
    hash = (hash ^ hash >> 47).wrapping_mul(M);
    hash ^ hash >> 47
}
