//! From a key to its bit positions, as computed by each system.

use crate::bits::Modulus;
use crate::hash::murmur::{self, Tail};
use crate::hash::{crates, sha2, small};
use crate::names::Hash;
use crate::slices::Slices;

/// How many bits a key has, and which ones.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Probe {
    /// Guava's MURMUR128_MITZ_32.
    Guava32 { hashes: u64 },
    /// Guava's MURMUR128_MITZ_64.
    Guava64 { hashes: u64 },
    /// Spark's first version.
    Spark1 { hashes: u64 },
    /// Spark's second version.
    Spark2 { hashes: u64, seed: u32 },
    /// DCSO, the same as poppy's first version.
    Dcso { hashes: u64 },
    /// A whole hash per bit (pybloomfiltermmap).
    Seeds { hash: Hash, seeds: Box<[u32]> },
    /// Go's bits-and-blooms.
    BitsAndBlooms { hashes: u64 },
    /// RedisBloom.
    Redis { hashes: u64 },
    /// Redisson.
    Redisson { hashes: u64 },
    /// The crate `bloomfilter` 3, in valkey-bloom.
    Valkey { hashes: u64, seed: [u8; 32] },
    /// Bitcoin's BIP 37.
    Bip37 { hashes: u64, tweak: u32 },
    /// npm's bloom-filters.
    Npm { hashes: u64, seed: u64 },
    /// The same with one slice per bit, of this many bits.
    NpmSlices { hashes: u64, seed: u64, slice: u64 },
    /// npm's bloomfilter.
    NpmBloomfilter { hashes: u64 },
    /// The crate fastbloom_rs.
    FastbloomRs { hashes: u64 },
    /// pybloom_live; for some filters, either of two hashes is possible.
    Slices {
        slices: Box<Slices>,
        other: Option<Box<Slices>>,
    },
    /// Cassandra from version 4 on.
    Cassandra { hashes: u64 },
    /// ORC, from the 64-bit hash of a value.
    Orc { hashes: u64, integers: bool },
    /// LevelDB.
    LevelDb { hashes: u64 },
    /// abloom: eight bits in one block.
    Abloom { blocks: u64 },
    /// The crate fastbloom.
    Fastbloom {
        hashes: u64,
        bits: u64,
        secret: [u8; 16],
    },
    /// pyprobables: from bytes or from the code points of text.
    Pyprobables { hashes: u64 },
    /// rbloom, with the hash from its documentation.
    Rbloom { hashes: u64 },
    /// `hash = seed * hash + unit` over UTF-16, then a mask; once per seed.
    JavaSeeds { seeds: Box<[i32]>, mask: i32 },
    /// Java's `hashCode` with its halves XORed, then one mask per bit.
    JavaSpread { masks: Box<[i32]>, of: JavaKey },
}

/// The type of key for Java's `hashCode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JavaKey {
    /// A `String`: its UTF-16.
    Text,
    /// An `Integer`: four bytes, little-endian.
    Int,
    /// A `Long`: eight bytes, little-endian.
    Long,
}

impl JavaKey {
    fn hash_code(self, key: &[u8]) -> i32 {
        match self {
            Self::Text => small::java_32(key, 31),
            Self::Int => i32::from_le_bytes(key.try_into().unwrap_or_default()),
            Self::Long => {
                let number = u64::from_le_bytes(key.try_into().unwrap_or_default());
                (number ^ number >> 32) as i32
            }
        }
    }
}

/// Keeps i64's `%` from returning negative numbers.
const POSITIVE: u64 = i64::MAX as u64;

/// The odd multipliers of split-block filters.
const ABLOOM: [u32; 8] = [
    0x47b6_137b,
    0x4497_4d91,
    0x8824_ad5b,
    0xa2b7_289d,
    0x7054_95c7,
    0x2df1_424b,
    0x9efc_4947,
    0x5c6b_fb31,
];

/// The multiplier of rbloom's linear congruential sequence.
const RBLOOM: u128 = 47_026_247_687_942_121_848_144_207_491_837_418_733;

impl Probe {
    /// Whether a key has bits, and in only one way. pyprobables hashes the code points of a str but
    /// the bytes of a bytes object, so a text key may be either. Versions of pybloom_live differ in
    /// the hash of small filters. Some of Java's masks yield negative numbers, which aren't
    /// positions.
    pub(crate) const fn is_single(&self) -> bool {
        !matches!(
            self,
            Self::Pyprobables { .. }
                | Self::JavaSpread { .. }
                | Self::Slices { other: Some(_), .. }
        )
    }

    /// Calls `each` with the bits that a key has in its other way, if there is
    /// one.
    pub(crate) fn all_as_text(
        &self,
        key: &[u8],
        m: &Modulus,
        mut each: impl FnMut(u64) -> bool,
    ) -> bool {
        if let Self::Slices { other, .. } = self {
            return other.as_ref().is_some_and(|other| other.all(key, each));
        }
        match (self, std::str::from_utf8(key)) {
            (Self::Pyprobables { hashes }, Ok(text)) if !text.is_ascii() => (0..*hashes).all(|i| {
                each(m.of(small::fnv_64(
                    i,
                    text.chars().map(|c| u64::from(u32::from(c))),
                )))
            }),
            _ => false,
        }
    }

    /// In how many ways an ASCII key is looked up.
    pub(crate) const fn ways(&self) -> i32 {
        match self {
            Self::Slices { other: Some(_), .. } => 2,
            _ => 1,
        }
    }

    /// The name of the underlying hash.
    pub(crate) const fn hash_name(&self) -> &'static str {
        match self {
            Self::Guava32 { .. } | Self::Guava64 { .. } | Self::Cassandra { .. } => "murmur3-128",
            Self::BitsAndBlooms { .. } => "murmur3-128",
            Self::Seeds { hash, .. } => hash.name(),
            Self::Spark1 { .. } | Self::Spark2 { .. } | Self::Bip37 { .. } => "murmur3-32",
            Self::Orc {
                integers: false, ..
            } => "murmur3-64",
            Self::Orc { integers: true, .. } => "wang-64",
            Self::Dcso { .. } => "fnv1-64",
            Self::Redis { .. } => "murmur2-64a",
            Self::Redisson { .. } => "highwayhash-128",
            Self::Valkey { .. } | Self::Fastbloom { .. } => "siphash-1-3",
            Self::Npm { .. } | Self::NpmSlices { .. } | Self::Abloom { .. } => "xxh64",
            Self::NpmBloomfilter { .. } => "fnv1a-64",
            Self::FastbloomRs { .. } => "xxh3-64",
            Self::Slices { slices, .. } => slices.digest.name(),
            Self::LevelDb { .. } => "leveldb-32",
            Self::Pyprobables { .. } => "fnv1a-64",
            Self::Rbloom { .. } => "sha256",
            Self::JavaSeeds { .. } => "java-seeds",
            Self::JavaSpread { .. } => "java-hashcode",
        }
    }

    /// The number of bits per key.
    pub(crate) fn hashes(&self) -> u64 {
        match self {
            Self::Seeds { seeds, .. } => seeds.len() as u64,
            Self::Abloom { .. } => ABLOOM.len() as u64,
            Self::JavaSeeds { seeds, .. } => seeds.len() as u64,
            Self::JavaSpread { masks, .. } => masks.len() as u64,
            Self::Slices { slices, .. } => slices.count,
            Self::Guava32 { hashes }
            | Self::Guava64 { hashes }
            | Self::Spark1 { hashes }
            | Self::Spark2 { hashes, .. }
            | Self::Dcso { hashes }
            | Self::BitsAndBlooms { hashes }
            | Self::Redis { hashes }
            | Self::Redisson { hashes }
            | Self::Valkey { hashes, .. }
            | Self::Bip37 { hashes, .. }
            | Self::Npm { hashes, .. }
            | Self::NpmSlices { hashes, .. }
            | Self::NpmBloomfilter { hashes }
            | Self::FastbloomRs { hashes }
            | Self::Cassandra { hashes }
            | Self::Orc { hashes, .. }
            | Self::LevelDb { hashes }
            | Self::Fastbloom { hashes, .. }
            | Self::Pyprobables { hashes }
            | Self::Rbloom { hashes } => *hashes,
        }
    }

    /// Calls `each` with the key's bit positions, below `m`, for as long as it
    /// returns true; returns whether it always did.
    #[inline]
    pub(crate) fn all(&self, key: &[u8], m: &Modulus, mut each: impl FnMut(u64) -> bool) -> bool {
        let murmur = |seed| murmur::x64_128(key, seed, Tail::Plain);
        match *self {
            Self::Guava64 { hashes } => {
                let (first, step) = murmur(0);
                sums(hashes, first, step, |x| each(m.of(x & POSITIVE)))
            }
            Self::Guava32 { hashes } => {
                let (hash, _) = murmur(0);
                signed(hashes, hash as u32, (hash >> 32) as u32, |x| each(m.of(x)))
            }
            Self::Spark1 { hashes } => {
                let first = murmur::spark_32(key, 0);
                let step = murmur::spark_32(key, first);
                signed(hashes, first, step, |x| each(m.of(x)))
            }
            Self::Spark2 { hashes, seed } => spark2(hashes, seed, key, |x| each(m.of(x))),
            Self::Dcso { hashes } => dcso(hashes, key, |x| each(m.of(x))),
            Self::Seeds { hash, ref seeds } => of_seeds(hash, seeds, m, key, |some| {
                some.iter().all(|bit| each(*bit))
            }),
            Self::BitsAndBlooms { hashes } => bits_and_blooms(hashes, key, |x| each(m.of(x))),
            Self::Redis { hashes } => {
                let (first, step) = redis(key);
                sums(hashes, first, step, |x| each(m.of(x)))
            }
            Self::Redisson { hashes } => redisson(hashes, key, |x| each(m.of(x))),
            Self::Valkey { hashes, ref seed } => valkey(hashes, seed, key, |x| each(m.of(x))),
            Self::Bip37 { hashes, tweak } => (0..hashes as u32).all(|i| {
                let seed = i.wrapping_mul(0xFBA4_C795).wrapping_add(tweak);
                each(m.of(murmur::x86_32(key, seed).into()))
            }),
            Self::Npm { hashes, seed } => npm(hashes, seed, key, |x| each(m.of(x))),
            Self::NpmSlices {
                hashes,
                seed,
                slice,
            } => npm_slices(hashes, seed, slice, m, key, each),
            Self::NpmBloomfilter { hashes } => npm_bloomfilter(hashes, m, key, each),
            Self::FastbloomRs { hashes } => {
                let hash = |seed| m.of(xxhash_rust::xxh3::xxh3_64_with_seed(key, seed));
                let (first, step) = (hash(0), hash(32));
                (0..hashes).all(|i| each(m.of(first + i * step)))
            }
            Self::Slices { ref slices, .. } => slices.all(key, each),
            Self::Cassandra { hashes } => {
                let (step, first) = murmur::x64_128(key, 0, Tail::Signed);
                // The remainder's absolute value, not the residue.
                sums(hashes, first, step, |x| {
                    each(m.of((x as i64).unsigned_abs()))
                })
            }
            Self::Orc { hashes, integers } => orc(hashes, integers, key, |x| each(m.of(x))),
            Self::Abloom { blocks } => abloom(blocks, key, each),
            Self::Fastbloom {
                hashes,
                bits,
                ref secret,
            } => fastbloom(hashes, bits, secret, key, each),
            Self::Pyprobables { hashes } => (0..hashes)
                .all(|i| each(m.of(small::fnv_64(i, key.iter().copied().map(u64::from))))),
            Self::Rbloom { hashes } => rbloom(hashes, key, |x| each(m.of(x))),
            Self::JavaSeeds { ref seeds, mask } => {
                (seeds.iter()).all(|seed| each((small::java_32(key, *seed) & mask) as u64))
            }
            Self::JavaSpread { ref masks, of } => {
                let hash = of.hash_code(key);
                let hash = hash ^ (hash as u32 >> 16) as i32;
                (masks.iter()).all(|mask| u64::try_from(mask & hash).is_ok_and(&mut each))
            }
            Self::LevelDb { hashes } => leveldb(hashes, key, |x| each(m.of(x))),
        }
    }
}

fn spark2(hashes: u64, seed: u32, key: &[u8], mut each: impl FnMut(u64) -> bool) -> bool {
    let first = murmur::spark_32(key, seed);
    let step = i64::from(murmur::spark_32(key, first) as i32);
    let first = i64::from(first as i32).wrapping_mul(i64::from(i32::MAX));
    let first = first.wrapping_add(step) as u64;
    sums(hashes, first, step as u64, |x| each(positive(x as i64)))
}

fn dcso(hashes: u64, key: &[u8], each: impl FnMut(u64) -> bool) -> bool {
    const PRIME: u64 = 18_446_744_073_709_551_557;
    const G: u64 = 18_446_744_073_709_550_147;
    let step = |x: u64| x.wrapping_mul(G) % PRIME;
    let first = step(small::fnv1_64(key) % PRIME);
    walk(hashes, first, step, each)
}

fn bits_and_blooms(hashes: u64, key: &[u8], mut each: impl FnMut(u64) -> bool) -> bool {
    let (a, b) = murmur::x64_128(key, 0, Tail::Plain);
    let (c, d) = murmur::x64_128(&[key, &[1]].concat(), 0, Tail::Plain);
    let hash = [a, b, c, d];
    (0..hashes).all(|i| {
        let step = hash[2 + ((i + i % 2) % 4 / 2) as usize];
        each(hash[(i % 2) as usize].wrapping_add(i.wrapping_mul(step)))
    })
}

fn redisson(hashes: u64, key: &[u8], mut each: impl FnMut(u64) -> bool) -> bool {
    let (a, b) = crates::redisson_128(key);
    let mut x = a;
    (0..hashes).all(|i| {
        let now = x & POSITIVE;
        x = x.wrapping_add(if i % 2 == 0 { b } else { a });
        each(now)
    })
}

fn valkey(hashes: u64, seed: &[u8; 32], key: &[u8], mut each: impl FnMut(u64) -> bool) -> bool {
    const PRIME: u64 = 0u64.wrapping_sub(59);
    let length = (key.len() as u64).to_le_bytes();
    let hash = |half: &[u8]| {
        let secret = half.first_chunk().expect("half of 32 bytes");
        crates::siphash_1_3(secret, &[&length, key])
    };
    let (a, b) = (hash(&seed[..16]), hash(&seed[16..]));
    (0..hashes).all(|i| {
        each(match i {
            0 => a,
            1 => b,
            _ => a.wrapping_add(i.wrapping_mul(b)) % PRIME,
        })
    })
}

fn npm(hashes: u64, seed: u64, key: &[u8], mut each: impl FnMut(u64) -> bool) -> bool {
    let hash = |more: u64| {
        let seed = seed.wrapping_add(more) & 0xFFFF_FFFF;
        xxhash_rust::xxh64::xxh64(key, seed) & 0xFFFF_FFFF
    };
    let (a, b) = (hash(1), hash(2));
    (0..hashes).all(|i| each(a + i * b + (i * i * i - i) / 6))
}

fn npm_slices(
    hashes: u64,
    seed: u64,
    slice: u64,
    m: &Modulus,
    key: &[u8],
    mut each: impl FnMut(u64) -> bool,
) -> bool {
    let mut start = 0;
    npm(hashes, seed, key, |x| {
        let bit = start + m.of(x);
        start += slice;
        each(bit)
    })
}

/// FNV-1a of a string's 16-bit units, whose halves are signed numbers, and
/// enhanced double hashing.
fn npm_bloomfilter(
    hashes: u64,
    m: &Modulus,
    key: &[u8],
    mut each: impl FnMut(u64) -> bool,
) -> bool {
    let units = key
        .as_chunks::<2>()
        .0
        .iter()
        .map(|unit| u16::from_le_bytes(*unit));
    let hash = small::fnv_64(0, units.map(u64::from));
    let residue = |half: u32| {
        let size = m.of(u64::from((half as i32).unsigned_abs()));
        // For a negative number, the distance to the next multiple.
        m.of(if (half as i32) < 0 {
            m.get() - size
        } else {
            size
        })
    };
    let (mut a, mut b) = (residue((hash >> 32) as u32), residue(hash as u32));
    (0..hashes).all(|i| {
        let now = a;
        a = m.of(a + b);
        b = m.of(b + i + 1);
        each(now)
    })
}

fn orc(hashes: u64, integers: bool, key: &[u8], each: impl FnMut(u64) -> bool) -> bool {
    let hash = if integers {
        small::wang_64(i64::from_le_bytes(key.try_into().unwrap_or_default()))
    } else {
        murmur::orc_64(key, 104_729)
    };
    signed(hashes, hash as u32, (hash >> 32) as u32, each)
}

fn leveldb(hashes: u64, key: &[u8], mut each: impl FnMut(u64) -> bool) -> bool {
    let first = small::leveldb_32(key);
    let step = first.rotate_right(17);
    let next = |x: u32| x.wrapping_add(step);
    walk(hashes, first, next, |x| each(x.into()))
}

fn abloom(blocks: u64, key: &[u8], each: impl FnMut(u64) -> bool) -> bool {
    let hash = xxhash_rust::xxh64::xxh64(key, 0);
    let block = 512 * ((hash >> 32) % blocks);
    let mut bits = (0..).zip(ABLOOM).map(|(word, salt)| {
        let bit = (hash as u32).wrapping_mul(salt) >> 26;
        block + 64 * word + u64::from(bit)
    });
    bits.all(each)
}

fn fastbloom(
    hashes: u64,
    bits: u64,
    secret: &[u8; 16],
    key: &[u8],
    mut each: impl FnMut(u64) -> bool,
) -> bool {
    let first = crates::siphash_1_3(secret, &[key]);
    let step = first.wrapping_mul(0x517c_c1b7_2722_0a95);
    let next = |x: u64| x.rotate_left(5).wrapping_add(step);
    let of = |x: u64| ((u128::from(x) * u128::from(bits)) >> 64) as u64;
    walk(hashes, first, next, |x| each(of(x)))
}

fn rbloom(hashes: u64, key: &[u8], mut each: impl FnMut(u64) -> bool) -> bool {
    let digest = sha2::sha256(key);
    let mut state = u128::from_be_bytes(std::array::from_fn(|i| digest[i]));
    (0..hashes).all(|_| {
        state = state.wrapping_mul(RBLOOM).wrapping_add(1);
        each((state >> 32) as u64)
    })
}

/// A whole hash per seed: calls `group` with the key's bit positions, a few at
/// a time, for as long as it returns true.
#[inline]
pub(crate) fn of_seeds(
    hash: Hash,
    seeds: &[u32],
    m: &Modulus,
    key: &[u8],
    mut group: impl FnMut(&[u64]) -> bool,
) -> bool {
    #[inline(always)]
    fn bits<const LANES: usize>(seeds: &[u32; LANES], m: &Modulus, key: &[u8]) -> [u64; LANES] {
        murmur::x64_128_folded(key, seeds, |hash| m.of(hash))
    }
    if hash != Hash::Murmur {
        return (seeds.iter()).all(|seed| group(&[m.of(old_hash(hash, key, *seed).into())]));
    }
    let (fours, rest) = seeds.as_chunks::<4>();
    fours.iter().all(|seeds| group(&bits(seeds, m, key)))
        && match rest {
            [] => true,
            &[s] => group(&bits(&[s], m, key)),
            &[s, t] => group(&bits(&[s, t], m, key)),
            &[s, t, u] => group(&bits(&[s, t, u], m, key)),
            _ => unreachable!("what is left of groups of four"),
        }
}

/// The hash of pybloomfiltermmap before 0.3.15.
fn old_hash(hash: Hash, key: &[u8], seed: u32) -> u32 {
    match hash {
        Hash::Djb => small::djb_32(key, seed),
        Hash::SuperFast => small::superfast_32(key, seed),
        Hash::Sha512 => {
            let digest = sha2::sha512(&[&seed.to_le_bytes(), key].concat());
            u32::from_le_bytes(*digest.first_chunk().expect("64 bytes"))
        }
        Hash::Murmur | Hash::Murmur32 => {
            let (low, high) = murmur::x64_128(key, seed.into(), Tail::Plain);
            (low ^ high ^ (low ^ high) >> 32) as u32
        }
    }
}

/// `first`, then `next` of it, and so on.
#[inline(always)]
fn walk<T: Copy>(
    times: u64,
    first: T,
    next: impl Fn(T) -> T,
    mut each: impl FnMut(T) -> bool,
) -> bool {
    let mut x = first;
    (0..times).all(|_| {
        let now = x;
        x = next(x);
        each(now)
    })
}

/// `first + i · step`.
#[inline(always)]
pub(crate) fn sums(times: u64, first: u64, step: u64, each: impl FnMut(u64) -> bool) -> bool {
    walk(times, first, |x| x.wrapping_add(step), each)
}

/// RedisBloom's numbers for the bit positions of a key: the first, and the step
/// to the next.
#[inline]
pub(crate) fn redis(key: &[u8]) -> (u64, u64) {
    let first = murmur::murmur2_64a(key, 0xc6a4_a793_5bd1_e995);
    (first, murmur::murmur2_64a(key, first))
}

/// `first + i · step` in 32 bits from i = 1 on, with the sign dropped.
#[inline(always)]
fn signed(times: u64, first: u32, step: u32, mut each: impl FnMut(u64) -> bool) -> bool {
    let next = |x: u32| x.wrapping_add(step);
    walk(times, next(first), next, |x| {
        each(positive(i64::from(x as i32)))
    })
}

/// Makes a number non-negative as Java's `~` does.
const fn positive(x: i64) -> u64 {
    if x < 0 { !x as u64 } else { x as u64 }
}
