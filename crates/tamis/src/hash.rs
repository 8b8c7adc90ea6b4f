//! Key bytes to a 128-bit [`Hash`].
//!
//! A key is hashed once; every position of every filter kind derives from
//! those 128 bits by multiply-shift. Which hash made them, and under which
//! seed or secret, is recorded in the header of every file.

use crate::Error;
use siphasher::sip128::{Hasher128, SipHasher24};
use std::fmt;
use std::fs;
use std::hash::Hasher as _;
use std::io::Write as _;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_128_with_seed;

/// The 128-bit hash of one key: two independent, uniform halves.
///
/// The high half chooses the place (line, bucket, segment), the low half the
/// bits or the fingerprint in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[repr(C)] // vector code loads several at once
pub struct Hash {
    pub(crate) hi: u64,
    pub(crate) lo: u64,
}

impl Hash {
    /// For callers that already hold a 64-bit hash, or any 64-bit id.
    ///
    /// The value is remixed, so weak values (0, 1, 2, …, addresses) spread as
    /// well as good ones. 64 bits are the limit: among `n` keys, two differing
    /// keys share their value with probability `n / 2^64`.
    ///
    /// A filter filled through this entry answers only through this entry.
    ///
    /// ```
    /// use tamis::{Blocked, Hash};
    /// let seen = Blocked::new(1_000, 0.01)?;
    /// assert!(seen.insert_hash(Hash::from_u64(0)));
    /// assert!(seen.contains_hash(Hash::from_u64(0)));
    /// assert!(!seen.contains_hash(Hash::from_u64(1)));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[inline]
    pub const fn from_u64(value: u64) -> Self {
        // Two full multiplications by constants, and a third for one half: the
        // top bits of two products alone would be related for numbers in a row.
        let (low, high) = halves(value ^ K0, K1);
        let (low, high) = halves(low ^ high, K2);
        Self {
            hi: (low ^ (low >> 32)).wrapping_mul(K1),
            lo: low ^ high,
        }
    }

    /// For callers that already hold a 128-bit hash such as a digest's first
    /// 16 bytes. Remixed like [`Hash::from_u64`].
    #[inline]
    pub const fn from_u128(value: u128) -> Self {
        let (high, low) = ((value >> 64) as u64, value as u64);
        // Each half must depend on both, or a caller whose entropy sits in
        // one half would lose the other.
        let lo = mix(mix(low) ^ high);
        Self {
            hi: mix(mix(high).wrapping_add(lo)),
            lo,
        }
    }

    #[inline(always)]
    const fn of_digest(digest: u128) -> Self {
        Self {
            hi: (digest >> 64) as u64,
            lo: digest as u64,
        }
    }

    /// Which of `shards` a key belongs to, evenly and independently of its
    /// place inside a filter: for one filter per thread, file or node.
    ///
    /// ```
    /// use tamis::Hash;
    /// assert!(Hash::from_u64(7).shard(16) < 16);
    /// ```
    #[inline]
    pub const fn shard(self, shards: usize) -> usize {
        reduce(mix(self.hi ^ self.lo), shards as u64) as usize
    }

    /// The hash as one number, for exact sets of digests.
    ///
    /// ```
    /// use tamis::Hasher;
    /// let hasher = Hasher::default();
    /// assert_ne!(hasher.hash(b"a").as_u128(), hasher.hash(b"b").as_u128());
    /// ```
    #[inline]
    pub const fn as_u128(self) -> u128 {
        ((self.hi as u128) << 64) | self.lo as u128
    }
}

/// [`Hash::from_u64`].
impl From<u64> for Hash {
    #[inline]
    fn from(value: u64) -> Self {
        Self::from_u64(value)
    }
}

// Digits of pi, made odd where they multiply: nothing up the sleeve.
const K0: u64 = 0x243F_6A88_85A3_08D3;
const K1: u64 = 0xA409_3822_299F_31D1;
const K2: u64 = 0xC0AC_29B7_C97C_50DD;

/// The low and the high half of the product.
#[inline]
const fn halves(a: u64, b: u64) -> (u64, u64) {
    let product = a as u128 * b as u128;
    (product as u64, (product >> 64) as u64)
}

/// A bijective remix of 64 bits: more bits for a key when one word is not
/// enough. The constant keeps 0 from mapping to itself.
#[inline]
pub(crate) const fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    x ^ (x >> 32)
}

/// Multiply-shift: maps a uniform `x` onto `0..n`.
#[inline]
pub(crate) const fn reduce(x: u64, n: u64) -> u64 {
    ((x as u128 * n as u128) >> 64) as u64
}

/// The 16-byte secret of a keyed filter. Its `Debug` shows nothing of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SecretKey([u8; 16]);

impl SecretKey {
    /// A key from the operating system's random source.
    pub fn random() -> Result<Self, Error> {
        let mut key = [0; 16];
        getrandom::fill(&mut key).map_err(|e| Error::Random(e.to_string()))?;
        Ok(Self(key))
    }

    /// A key of the caller's own.
    pub const fn new(key: [u8; 16]) -> Self {
        Self(key)
    }

    /// The key in a file. That is 32 hexadecimal digits, so that it survives
    /// editors and mails.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let text = fs::read_to_string(path).map_err(Error::io("reading the key file", path))?;
        let digits = text.trim();
        match u128::from_str_radix(digits, 16) {
            Ok(key) if digits.len() == 32 => Ok(Self(key.to_be_bytes())),
            _ => Err(Error::Parameter {
                what: "key file",
                expected: "32 hexadecimal digits",
                got: format!("{} other bytes in {}", digits.len(), path.display()),
            }),
        }
    }

    /// The key in a file, or a new random one put there, for its owner's eyes
    /// only.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("secret.key");
    /// use tamis::SecretKey;
    /// let made = SecretKey::load_or_create(&path)?;
    /// assert!(made == SecretKey::load(&path)?);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn load_or_create(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        if path.exists() {
            return Self::load(path);
        }
        let key = Self::random()?;
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options
            .open(path)
            .and_then(|mut file| writeln!(file, "{:032x}", u128::from_be_bytes(key.0)))
            .map_err(Error::io("writing the key file", path))?;
        Ok(key)
    }

    /// The 16 bytes, for storing them somewhere safe.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Recognises the key in a header that does not hold it. A pseudorandom
    /// function of the key, so that it gives nothing away.
    pub(crate) fn check_value(&self) -> u64 {
        sip128(self, b"tamis key check").lo
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(..)")
    }
}

/// How key bytes become a [`struct@Hash`]. Filters answer alike only when their
/// hashers are equal.
///
/// ```
/// use tamis::{Hasher, SecretKey};
/// let fast = Hasher::seeded(42);
/// let keyed = Hasher::keyed(SecretKey::random()?);
/// assert_ne!(fast.hash(b"key"), keyed.hash(b"key"));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hasher {
    /// XXH3-128. Fast, and open to anyone who wants to construct collisions,
    /// whatever the seed.
    Fast {
        /// Tells filters apart; it is no protection.
        seed: u64,
    },
    /// SipHash-2-4-128 under a secret: for keys that an adversary chooses.
    Keyed {
        /// The secret.
        key: SecretKey,
        /// Whether the file carries the secret, or the user keeps it apart.
        in_file: bool,
    },
}

impl Default for Hasher {
    fn default() -> Self {
        Self::seeded(0)
    }
}

impl Hasher {
    /// XXH3-128 under `seed`.
    pub const fn seeded(seed: u64) -> Self {
        Self::Fast { seed }
    }

    /// SipHash-2-4-128 under `key`, which is stored in the file's header.
    pub const fn keyed(key: SecretKey) -> Self {
        Self::Keyed { key, in_file: true }
    }

    /// SipHash-2-4-128 under `key`, which is *not* stored in the file: whoever
    /// opens the file must bring it.
    pub const fn keyed_apart(key: SecretKey) -> Self {
        Self::Keyed {
            key,
            in_file: false,
        }
    }

    /// Hashes the bytes of a key.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> Hash {
        match self {
            // The usual seed is inlined, as a constant; the rest is a call.
            Self::Fast { seed: 0 } => Hash::of_digest(xxh3_128_with_seed(key, 0)),
            Self::Fast { seed } => xxh3_seeded(*seed, key),
            Self::Keyed { key: secret, .. } => sip128(secret, key),
        }
    }

    /// The name that `tamis info` shows.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Fast { .. } => "xxh3-128",
            Self::Keyed { .. } => "siphash-2-4-128",
        }
    }

    /// Whether both give every key the same hash.
    pub(crate) fn agrees_with(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Fast { seed: a }, Self::Fast { seed: b }) => a == b,
            (Self::Keyed { key: a, .. }, Self::Keyed { key: b, .. }) => a == b,
            _ => false,
        }
    }
}

// These two are kept out of callers, where they would crowd out the usual hash.
#[inline(never)]
fn xxh3_seeded(seed: u64, key: &[u8]) -> Hash {
    Hash::of_digest(xxh3_128_with_seed(key, seed))
}

#[inline(never)]
fn sip128(secret: &SecretKey, key: &[u8]) -> Hash {
    let mut sip = SipHasher24::new_with_key(&secret.0);
    sip.write(key);
    let h = sip.finish128();
    Hash { hi: h.h2, lo: h.h1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Published test values: a change of the hash would orphan every file.
    #[test]
    fn the_hashes_are_the_published_ones() {
        let empty = Hasher::default().hash(b"");
        assert_eq!(empty.as_u128(), 0x99aa06d3014798d86001c324468d497f);
        // SipHash-2-4-128 reference vector: key 00..0f, input 00..0e.
        let secret = SecretKey::new(std::array::from_fn(|i| i as u8));
        let input: Vec<u8> = (0..15).collect();
        let bytes = [
            0x54, 0x93, 0xe9, 0x99, 0x33, 0xb0, 0xa8, 0x11, 0x7e, 0x08, 0xec, 0x0f, 0x97, 0xcf,
            0xc3, 0xd9,
        ];
        let expected = u128::from_le_bytes(bytes);
        assert_eq!(Hasher::keyed(secret).hash(&input).as_u128(), expected);
    }

    #[test]
    fn weak_prehashed_values_spread() {
        // Sequential ids: every byte of both halves takes about all values.
        let hashes: Vec<Hash> = (0..4096).map(Hash::from_u64).collect();
        for shift in (0..64).step_by(8) {
            for half in [|h: &Hash| h.hi, |h: &Hash| h.lo] {
                let seen: HashSet<u8> = hashes.iter().map(|h| (half(h) >> shift) as u8).collect();
                assert!(seen.len() > 250, "shift {shift}: {} values", seen.len());
            }
        }
        assert_ne!(Hash::from_u64(0), Hash::default());
        assert_ne!(Hash::from_u128(0), Hash::default());
        // Entropy in the high half alone reaches both halves.
        let high_only: Vec<Hash> = (0..4096).map(|i| Hash::from_u128(i << 64)).collect();
        let los: HashSet<u64> = high_only.iter().map(|h| h.lo).collect();
        let his: HashSet<u64> = high_only.iter().map(|h| h.hi).collect();
        assert_eq!((los.len(), his.len()), (4096, 4096));
    }

    /// Families of weak values give the planned rate, no more.
    #[test]
    fn weak_prehashed_values_keep_the_rate() {
        type Family = (&'static str, fn(u64) -> u64);
        let families: [Family; 5] = [
            ("sequential", |i| i),
            ("pages", |i| i << 12),
            ("high half", |i| i << 32),
            ("top bits", |i| i.reverse_bits()),
            ("gaps", |i| i * i),
        ];
        for (name, value) in families {
            let mut filter = crate::Blocked::new(100_000, 0.01).unwrap();
            let hashes = |range: std::ops::Range<u64>| -> Vec<Hash> {
                range.map(|i| Hash::from_u64(value(i))).collect()
            };
            let mut flags = vec![false; 100_000];
            filter.insert_hashes(&hashes(0..100_000), &mut flags);
            let mut flags = vec![false; 400_000];
            filter.contains_hashes(&hashes(100_000..500_000), &mut flags);
            let rate = flags.iter().filter(|f| **f).count() as f64 / 400_000.0;
            // Four standard errors of 400,000 trials are 6 %.
            assert!((rate / 0.01 - 1.0).abs() < 0.07, "{name}: {rate}");
        }
    }

    #[test]
    fn the_secret_is_not_printed() {
        let text = format!("{:?}", Hasher::keyed(SecretKey::new([7; 16])));
        assert!(!text.contains('7'), "{text}");
    }
}
