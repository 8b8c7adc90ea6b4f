//! How key bytes become a 128-bit [`Hash`], under a seed or a secret. Every file's header records
//! it.

#[cfg(any(target_arch = "wasm32", test))]
mod short;

use crate::error::Error;
use crate::hash::Hash;
use crate::key_rule::KeyRule;
#[cfg(feature = "files")]
use crate::secret_file::read_small;
use siphasher::sip128::{Hasher128, SipHasher24};
use std::fmt;
use std::hash::Hasher as _;
#[cfg(feature = "files")]
use std::{fs, io::Write as _, path::Path};
use xxhash_rust::xxh3::xxh3_128_with_seed;

/// The 16-byte secret of a keyed filter. Its `Debug` output hides it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SecretKey([u8; 16]);

impl SecretKey {
    /// A key from the operating system's random source.
    ///
    /// ```
    /// use tamis::SecretKey;
    /// assert!(SecretKey::random()? != SecretKey::random()?);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[cfg(feature = "random")]
    pub fn random() -> Result<Self, Error> {
        let mut key = [0; 16];
        getrandom::fill(&mut key).map_err(|e| Error::Random(e.to_string()))?;
        Ok(Self(key))
    }

    /// A key that the caller provides.
    pub const fn new(key: [u8; 16]) -> Self {
        Self(key)
    }

    /// Reads a key from a file of 32 hexadecimal digits, which survive editors and mail.
    #[cfg(feature = "files")]
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        // Leaves room for white space; a longer file isn't a key.
        const LIMIT: u64 = 4096;
        let bytes = read_small(path, LIMIT)?;
        let text = String::from_utf8_lossy(&bytes);
        let digits = text.trim();
        match u128::from_str_radix(digits, 16) {
            Ok(key) if digits.len() == 32 => Ok(Self(key.to_be_bytes())),
            _ => Err(Error::parameter(
                "key file",
                "32 hexadecimal digits",
                format_args!("{} other bytes in {}", digits.len(), path.display()),
            )),
        }
    }

    /// Reads a key from a file. If the file doesn't exist, it is created with a new random key,
    /// readable only by its owner.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("secret.key");
    /// use tamis::SecretKey;
    /// let made = SecretKey::load_or_create(&path)?;
    /// assert!(made == SecretKey::load(&path)?);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[cfg(feature = "files")]
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

    /// The 16 bytes, to store somewhere safe.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Recognises the key in a header that doesn't hold it. A pseudorandom function of the key, so
    /// it reveals nothing.
    pub(crate) fn check_value(&self) -> u64 {
        sip128(self, b"tamis key check").lo
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(..)")
    }
}

/// How key bytes become a [`struct@Hash`]. Filters give the same answers only if
/// their hashers are equal.
///
/// ```
/// use tamis::{Hasher, SecretKey};
/// let fast = Hasher::seeded(42);
/// let keyed = Hasher::keyed(SecretKey::random()?);
/// assert_ne!(fast.hash(b"key"), keyed.hash(b"key"));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hasher {
    /// XXH3-128. Fast, but anyone can construct collisions, whatever the seed.
    Fast {
        /// Distinguishes filters; offers no protection.
        seed: u64,
        /// How keys are made before they are hashed.
        rule: KeyRule,
    },
    /// SipHash-2-4-128 under a secret, for keys that an adversary may choose.
    Keyed {
        /// The secret.
        key: SecretKey,
        /// Whether the secret is stored in the file; otherwise the user keeps it.
        in_file: bool,
        /// How keys are made before they are hashed.
        rule: KeyRule,
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
        Self::Fast {
            seed,
            rule: KeyRule::EXACT,
        }
    }

    /// SipHash-2-4-128 under `key`, which is stored in the file's header.
    pub const fn keyed(key: SecretKey) -> Self {
        Self::Keyed {
            key,
            in_file: true,
            rule: KeyRule::EXACT,
        }
    }

    /// SipHash-2-4-128 under `key`, which is *not* stored in the file: you need it
    /// to open the file.
    ///
    /// ```
    /// use tamis::{Blocked, Error, Hasher, SecretKey};
    /// let hasher = Hasher::keyed_apart(SecretKey::random()?);
    /// let bytes = Blocked::with_hasher(1_000, 0.01, hasher)?.to_bytes();
    /// assert!(matches!(Blocked::from_bytes(&bytes), Err(Error::KeyNeeded))); // see `Open::key`
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub const fn keyed_apart(key: SecretKey) -> Self {
        Self::Keyed {
            key,
            in_file: false,
            rule: KeyRule::EXACT,
        }
    }

    /// The same hash, with keys made by this rule.
    ///
    /// ```
    /// use tamis::{Hasher, KeyRule};
    /// let hasher = Hasher::default().with_rule(KeyRule::EXACT.ignore_case());
    /// assert_eq!(hasher.hash(b"Key"), hasher.hash(b"key"));
    /// ```
    pub const fn with_rule(self, rule: KeyRule) -> Self {
        match self {
            Self::Fast { seed, .. } => Self::Fast { seed, rule },
            Self::Keyed { key, in_file, .. } => Self::Keyed { key, in_file, rule },
        }
    }

    /// How keys are made before they are hashed.
    #[inline]
    pub const fn rule(&self) -> &KeyRule {
        match self {
            Self::Fast { rule, .. } | Self::Keyed { rule, .. } => rule,
        }
    }

    /// Applies the [rule](Self::rule) to the bytes of a key and hashes them.
    ///
    /// ```
    /// use tamis::Hasher;
    /// let hash = Hasher::default().hash(b"");
    /// assert_eq!(hash.as_u128(), 0x99aa06d3014798d86001c324468d497f); // XXH3's own test value
    /// ```
    #[inline]
    pub fn hash(&self, key: &[u8]) -> Hash {
        match self {
            // The default is inlined, with a constant seed; the rest is a call.
            Self::Fast {
                seed: 0,
                rule: KeyRule::EXACT,
            } => xxh3_usual(key),
            other => other.hash_by_rule(key),
        }
    }

    /// Hashes many keys, each like [`hash`](Self::hash), and appends the hashes. Faster than a
    /// loop, because it selects the hash function once.
    ///
    /// ```
    /// use tamis::Hasher;
    /// let (hasher, keys) = (Hasher::default(), ["one", "two"]);
    /// let mut hashes = Vec::with_capacity(keys.len());
    /// hasher.hash_all(keys.iter().map(|key| key.as_bytes()), &mut hashes);
    /// assert_eq!(hashes, [hasher.hash(b"one"), hasher.hash(b"two")]);
    /// ```
    #[inline]
    #[doc(hidden)]
    pub fn hash_all<'k>(&self, keys: impl Iterator<Item = &'k [u8]>, hashes: &mut Vec<Hash>) {
        match self {
            Self::Fast {
                seed: 0,
                rule: KeyRule::EXACT,
            } => {
                hashes.extend(keys.map(xxh3_usual));
            }
            other => hashes.extend(keys.map(|key| other.hash_by_rule(key))),
        }
    }

    #[inline(never)]
    fn hash_by_rule(&self, key: &[u8]) -> Hash {
        self.hash_exact(&self.rule().apply(key))
    }

    /// Hashes a key unchanged: a number, or a key that the [rule](Self::rule) was already applied
    /// to.
    #[inline]
    #[doc(hidden)]
    pub fn hash_exact(&self, key: &[u8]) -> Hash {
        match self {
            Self::Fast { seed: 0, .. } => xxh3_usual(key),
            Self::Fast { seed, .. } => xxh3_seeded(*seed, key),
            Self::Keyed { key: secret, .. } => sip128(secret, key),
        }
    }

    /// The name that `tamis info` shows.
    #[doc(hidden)]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Fast { .. } => "xxh3-128",
            Self::Keyed { .. } => "siphash-2-4-128",
        }
    }

    /// Whether both give every key the same hash, regardless of where a secret is stored. Filters
    /// whose hashers agree can be combined.
    ///
    /// ```
    /// use tamis::{Hasher, SecretKey};
    /// let key = SecretKey::random()?;
    /// assert!(Hasher::keyed(key).agrees_with(&Hasher::keyed_apart(key)));
    /// assert!(!Hasher::seeded(1).agrees_with(&Hasher::seeded(2)));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn agrees_with(&self, other: &Self) -> bool {
        let same_hash = match (self, other) {
            (Self::Fast { seed: a, .. }, Self::Fast { seed: b, .. }) => a == b,
            (Self::Keyed { key: a, .. }, Self::Keyed { key: b, .. }) => a == b,
            _ => false,
        };
        same_hash && self.rule() == other.rule()
    }

    /// An error that describes the difference, unless the two agree.
    pub(crate) fn check_like(&self, other: &Self) -> Result<(), Error> {
        let unlike = |what, ours: &dyn fmt::Display, theirs: &dyn fmt::Display| {
            Err(Error::Unlike {
                what,
                ours: ours.to_string(),
                theirs: theirs.to_string(),
            })
        };
        match (self, other) {
            _ if self.agrees_with(other) => Ok(()),
            _ if self.name() != other.name() => unlike("the hash", &self.name(), &other.name()),
            (Self::Fast { seed: ours, .. }, Self::Fast { seed: theirs, .. }) if ours != theirs => {
                unlike("the seed", ours, theirs)
            }
            _ if self.rule() != other.rule() => {
                unlike("the rule for keys", self.rule(), other.rule())
            }
            _ => unlike("the secret key", &"one", &"another"),
        }
    }
}

/// Without a seed.
#[inline(always)]
fn xxh3_usual(key: &[u8]) -> Hash {
    #[cfg(target_arch = "wasm32")]
    if let Some(hash) = short::hash(key) {
        return hash;
    }
    Hash::of_digest(xxh3_128_with_seed(key, 0))
}

// These two aren't inlined, so that they don't crowd out the default hash.
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
    fn many_keys_have_the_hashes_of_each() {
        let bytes: Vec<u8> = (0..1000).map(|i| b"Key of any LENGTH"[i % 17]).collect();
        let keys = || (0..=bytes.len()).map(|len| &bytes[..len]);
        let exact = [
            Hasher::default(),
            Hasher::seeded(7),
            Hasher::keyed(SecretKey::new([7; 16])),
        ];
        for hasher in exact {
            for hasher in [hasher, hasher.with_rule(KeyRule::EXACT.ignore_case())] {
                let mut hashes = vec![Hash::from_u64(1)];
                hasher.hash_all(keys(), &mut hashes);
                assert_eq!(hashes.remove(0), Hash::from_u64(1));
                let each: Vec<Hash> = keys().map(|key| hasher.hash(key)).collect();
                assert_eq!(hashes, each, "{hasher:?}");
            }
        }
    }

    #[test]
    fn the_secret_is_not_printed() {
        let text = format!("{:?}", Hasher::keyed(SecretKey::new([7; 16])));
        assert!(!text.contains('7'), "{text}");
    }
}
