//! The 128-byte header of a filter file: encode, decode, validate.
//!
//! Only this file knows offsets. `docs/format.md` is the normative description. The first part (up
//! to `HEADER_CHECKSUM`) never changes after creation; the second part is the state, which a writer
//! that has mapped the file changes in place.

use crate::error::Error;
use crate::hasher::{Hasher, SecretKey};
use crate::key_rule::KeyRule;
use crate::kind::Kind;
use crate::raw::shape::Shape;
use std::ops::Range;
use xxhash_rust::xxh3::xxh3_64;

/// The header's length, and so the body's offset: two cache lines, to keep a mapped body aligned.
pub const HEADER_LEN: usize = 128;

// Damage by a text-mode transfer shows in these eight bytes.
const MAGIC_BYTES: [u8; 8] = *b"TAMIS\r\n\x1a";
const VERSION: u16 = 1;

const MAGIC: Range<usize> = 0..8;
const FORMAT_VERSION: Range<usize> = after(MAGIC, 2);
const KIND: Range<usize> = after(FORMAT_VERSION, 1);
const HASH: Range<usize> = after(KIND, 1);
const FLAGS: Range<usize> = after(HASH, 4);
const CAPACITY: Range<usize> = after(FLAGS, 8);
const RATE: Range<usize> = after(CAPACITY, 8);
const SECRET: Range<usize> = after(RATE, 16);
const KEY_CHECK: Range<usize> = after(SECRET, 8);
const SHAPE: Range<usize> = after(KEY_CHECK, 24);
const BODY_LEN: Range<usize> = after(SHAPE, 8);
const HEADER_CHECKSUM: Range<usize> = after(BODY_LEN, 8);
const KEYS: Range<usize> = after(HEADER_CHECKSUM, 8);
const BODY_CHECKSUM: Range<usize> = after(KEYS, 8);
const OPEN_UNDER_BOOT: Range<usize> = after(BODY_CHECKSUM, 16);
const _: () = assert!(OPEN_UNDER_BOOT.end == HEADER_LEN);

pub(crate) const fn after(field: Range<usize>, len: usize) -> Range<usize> {
    field.end..field.end + len
}

/// The state's words, as indices of 64-bit words in the file: a mapped writer stores them one by
/// one.
pub(crate) const KEYS_WORD: usize = KEYS.start / 8;
pub(crate) const BODY_CHECKSUM_WORD: usize = BODY_CHECKSUM.start / 8;
pub(crate) const BOOT_WORDS: [usize; 2] =
    [OPEN_UNDER_BOOT.start / 8, OPEN_UNDER_BOOT.start / 8 + 1];

/// The checksum of a body without one, because it was last written in place.
pub(crate) const UNSEALED: u64 = 0;

/// `keys` if the number of keys is unknown.
pub(crate) const KEYS_UNKNOWN: u64 = u64::MAX;

/// Flag: the header doesn't contain the secret of a keyed filter.
const FLAG_KEY_APART: u32 = 1;

const HASH_XXH3: u8 = 1;
const HASH_SIPHASH: u8 = 2;

/// The first 128 bytes of a file; the rest is the body.
///
/// For storing header and body separately, such as in a database;
/// [`Draft`](crate::internals::Draft) joins them. For files, [`Open`](crate::Open) is enough.
///
/// ```
/// use tamis::internals::raw::Header;
/// use tamis::{Hasher, Kind, Plan};
/// let plan = Plan::for_rate(Kind::Blocked, 1_000, 0.01)?;
/// let header = Header::of_plan(&plan, Hasher::default());
/// assert_eq!(Header::decode(&header.encode(), None)?, header);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Header {
    pub(crate) shape: Shape,
    pub(crate) hasher: Hasher,
    pub(crate) capacity: u64,
    pub(crate) rate: f64,
    pub(crate) state: State,
}

/// The part of the header that changes over time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct State {
    /// Keys counted as new, or [`KEYS_UNKNOWN`].
    pub(crate) keys: u64,
    /// XXH3-64 of the body, seeded with `keys` so that it guards both.
    pub(crate) body_checksum: u64,
    /// While the file is mapped for writing: the current boot.
    pub(crate) open_under: Option<BootId>,
}

/// Identifies one boot of one machine: a mapped file's dirty pages survive the death of a process,
/// but not a reboot.
pub(crate) type BootId = [u8; 16];

impl Default for State {
    /// The state of an empty filter.
    fn default() -> Self {
        Self {
            keys: 0,
            body_checksum: UNSEALED,
            open_under: None,
        }
    }
}

impl Header {
    /// The geometry.
    pub const fn shape(&self) -> Shape {
        self.shape
    }

    /// How keys are hashed.
    #[inline]
    pub const fn hasher(&self) -> &Hasher {
        &self.hasher
    }

    /// The number of keys it is made for.
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The promised rate.
    pub const fn rate(&self) -> f64 {
        self.rate
    }

    /// The body's length in bytes.
    pub const fn body_len(&self) -> u64 {
        self.shape.body_len()
    }

    /// Whether the body has a checksum. A body that was last written in place has none, unless it
    /// is small; `tamis verify --seal` adds it.
    pub const fn is_sealed(&self) -> bool {
        self.state.body_checksum != UNSEALED
    }

    /// Whether the header contains the secret of a keyed filter.
    pub(crate) const fn holds_secret(&self) -> bool {
        matches!(self.hasher, Hasher::Keyed { in_file: true, .. })
    }

    /// The 128 bytes.
    pub fn encode(&self) -> [u8; HEADER_LEN] {
        let mut out = [0; HEADER_LEN];
        let mut put = |field: Range<usize>, bytes: &[u8]| out[field].copy_from_slice(bytes);
        let (size, a, b, c) = self.shape.encode();
        let mut shape = [0; 24];
        shape[..8].copy_from_slice(&size.to_le_bytes());
        shape[8..12].copy_from_slice(&a.to_le_bytes());
        shape[12..16].copy_from_slice(&b.to_le_bytes());
        shape[16..].copy_from_slice(&c.to_le_bytes());

        put(MAGIC, &MAGIC_BYTES);
        put(FORMAT_VERSION, &VERSION.to_le_bytes());
        put(KIND, &[self.shape.kind() as u8]);
        put(CAPACITY, &self.capacity.to_le_bytes());
        put(RATE, &self.rate.to_le_bytes());
        put(SHAPE, &shape);
        put(BODY_LEN, &self.body_len().to_le_bytes());
        put(KEYS, &self.state.keys.to_le_bytes());
        put(BODY_CHECKSUM, &self.state.body_checksum.to_le_bytes());
        put(OPEN_UNDER_BOOT, &self.state.open_under.unwrap_or_default());
        encode_hasher(&mut out, &self.hasher);
        let checksum = xxh3_64(&out[..HEADER_CHECKSUM.start]);
        out[HEADER_CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    /// Reads and validates a header. Never panics, whatever the bytes. `key` is the secret of a
    /// keyed filter if the header doesn't contain it.
    pub fn decode(bytes: &[u8], key: Option<&SecretKey>) -> Result<Self, Error> {
        Self::decode_with(bytes, |h| decode_hasher(h, key))
    }

    /// [`decode`](Self::decode) without the secret, for everything but queries, such as deleting a
    /// filter. If the secret is kept apart, a filter with this header would give wrong answers.
    pub fn decode_without_key(bytes: &[u8]) -> Result<Self, Error> {
        Self::decode_with(bytes, |h| match decode_hasher(h, None) {
            Err(Error::KeyNeeded) => Ok(Hasher::default()),
            other => other,
        })
    }

    fn decode_with(
        bytes: &[u8],
        hasher: impl FnOnce(&[u8; HEADER_LEN]) -> Result<Hasher, Error>,
    ) -> Result<Self, Error> {
        let Some(h) = bytes.first_chunk::<HEADER_LEN>() else {
            return Err(Error::corrupt(
                "length",
                "at least 128 bytes of header",
                format_args!("{} bytes", bytes.len()),
            ));
        };
        if h[MAGIC] != MAGIC_BYTES {
            return Err(Error::corrupt(
                "magic",
                MAGIC_BYTES.escape_ascii(),
                h[MAGIC].escape_ascii(),
            ));
        }
        // Checked before the checksum, which another version may compute differently.
        let version = u16::from_le_bytes(field(h, FORMAT_VERSION));
        if version != VERSION {
            return Err(Error::corrupt(
                "format version",
                format_args!("{VERSION} (a newer tamis may read it)"),
                version,
            ));
        }
        let checksum = u64::from_le_bytes(field(h, HEADER_CHECKSUM));
        let actual = xxh3_64(&h[..HEADER_CHECKSUM.start]);
        if checksum != actual {
            return Err(Error::corrupt(
                "header checksum",
                format_args!("{checksum:016x}"),
                format_args!("{actual:016x}"),
            ));
        }

        let [kind] = field(h, KIND);
        let Some(kind) = Kind::ALL.into_iter().find(|k| *k as u8 == kind) else {
            return Err(Error::corrupt("kind", "a known kind", kind));
        };
        let hasher = hasher(h)?;
        let rate = f64::from_le_bytes(field(h, RATE));
        if !(rate > 0.0 && rate < 1.0) {
            return Err(Error::corrupt("rate", "between 0 and 1", rate));
        }
        let shape: [u8; 24] = field(h, SHAPE);
        let shape = Shape::decode(
            kind,
            u64::from_le_bytes(field(&shape, 0..8)),
            u32::from_le_bytes(field(&shape, 8..12)),
            u32::from_le_bytes(field(&shape, 12..16)),
            u64::from_le_bytes(field(&shape, 16..24)),
        )?;
        let body_len = u64::from_le_bytes(field(h, BODY_LEN));
        if body_len != shape.body_len() {
            return Err(Error::corrupt(
                "body length",
                format_args!("{} as the shape needs", shape.body_len()),
                body_len,
            ));
        }
        let boot: BootId = field(h, OPEN_UNDER_BOOT);
        Ok(Self {
            shape,
            hasher,
            capacity: u64::from_le_bytes(field(h, CAPACITY)),
            rate,
            state: State {
                keys: u64::from_le_bytes(field(h, KEYS)),
                body_checksum: u64::from_le_bytes(field(h, BODY_CHECKSUM)),
                open_under: (boot != BootId::default()).then_some(boot),
            },
        })
    }

    /// Whether several processes can write to one mapped file of this kind.
    pub(crate) const fn check_shareable(&self) -> Result<(), Error> {
        match self.shape.kind() {
            kind if kind.is_static() => Err(Error::finished(kind, "shared by writers")),
            kind @ Kind::Cuckoo => Err(Error::Unable {
                kind,
                what: "shared by writers",
                instead: "adding moves other keys' entries, which another process could then miss; \
                          load, add and save under a FileLock, or use a counting filter",
            }),
            _ => Ok(()),
        }
    }

    /// Refuses a copy of a file that was open for writing, since it may lack keys.
    pub(crate) const fn check_clean(&self, accept_loss: bool) -> Result<(), Error> {
        match self.state.open_under {
            Some(_) if !accept_loss => Err(Error::Unclean { path: None }),
            _ => Ok(()),
        }
    }

    /// The file must be exactly the header and its body; checked before anything of the claimed
    /// length is allocated or mapped. A growing filter may be followed by an unfinished layer,
    /// which is ignored.
    pub(crate) fn check_file_len(&self, len: u64) -> Result<(), Error> {
        let expected = self.body_len() + HEADER_LEN as u64;
        let unfinished = self.shape.kind() == Kind::Growing && len > expected;
        if len != expected && !unfinished {
            return Err(Error::corrupt(
                "file length",
                format_args!("{expected} bytes as the header says"),
                format_args!("{len} bytes"),
            ));
        }
        Ok(())
    }
}

/// Writes the hash's fields, which are at the same offsets in filters and indexes.
pub(crate) fn encode_hasher(h: &mut [u8; HEADER_LEN], hasher: &Hasher) {
    let (hash, flags, secret, key_check) = match hasher {
        Hasher::Fast { seed, .. } => {
            let mut field = [0; 16];
            field[..8].copy_from_slice(&seed.to_le_bytes());
            (HASH_XXH3, 0, field, 0)
        }
        Hasher::Keyed {
            key, in_file: true, ..
        } => (HASH_SIPHASH, 0, *key.as_bytes(), 0),
        Hasher::Keyed { key, .. } => (HASH_SIPHASH, FLAG_KEY_APART, [0; 16], key.check_value()),
    };
    h[HASH].copy_from_slice(&[hash]);
    h[FLAGS].copy_from_slice(&u32::to_le_bytes(flags | hasher.rule().encode()));
    h[SECRET].copy_from_slice(&secret);
    h[KEY_CHECK].copy_from_slice(&key_check.to_le_bytes());
}

/// Reads the hash's fields; `key` is a secret that is kept apart.
pub(crate) fn decode_hasher(
    h: &[u8; HEADER_LEN],
    key: Option<&SecretKey>,
) -> Result<Hasher, Error> {
    let [hash] = field(h, HASH);
    let flags = u32::from_le_bytes(field(h, FLAGS));
    let secret: [u8; 16] = field(h, SECRET);
    let key_check = u64::from_le_bytes(field(h, KEY_CHECK));
    let reserved = |what, sound: bool| {
        if sound {
            Ok(())
        } else {
            Err(Error::corrupt(what, "zero", "other"))
        }
    };
    let unknown = || Error::corrupt("flags", "known flags", format_args!("{flags:#x}"));
    let rule = KeyRule::decode(flags & !FLAG_KEY_APART).ok_or_else(unknown)?;
    if rule.normalises_urls() && !cfg!(any(feature = "url", feature = "url-by-caller")) {
        // Without it the filter wouldn't find its own keys.
        return Err(Error::Feature {
            feature: "url",
            what: "normalises URLs",
        });
    }
    if rule.text().is_some() && !cfg!(feature = "text") {
        return Err(Error::Feature {
            feature: "text",
            what: "holds units of text",
        });
    }
    let hasher = match (hash, flags & FLAG_KEY_APART) {
        (HASH_XXH3, 0) => {
            reserved("bytes after the seed", secret[8..] == [0; 8])?;
            reserved("key check without a key", key_check == 0)?;
            Ok(Hasher::seeded(u64::from_le_bytes(field(&secret, 0..8))))
        }
        (HASH_SIPHASH, 0) => {
            reserved("key check beside the key", key_check == 0)?;
            Ok(Hasher::keyed(SecretKey::new(secret)))
        }
        (HASH_SIPHASH, FLAG_KEY_APART) => {
            reserved("secret that is kept apart", secret == [0; 16])?;
            let key = key.ok_or(Error::KeyNeeded)?;
            if key.check_value() != key_check {
                return Err(Error::WrongKey);
            }
            Ok(Hasher::keyed_apart(*key))
        }
        (HASH_XXH3 | HASH_SIPHASH, _) => Err(unknown()),
        _ => Err(Error::corrupt("hash", "1 (XXH3) or 2 (SipHash)", hash)),
    }?;
    Ok(hasher.with_rule(rule))
}

/// Whether the bytes of a header have a writer's mark, or half of one.
pub(crate) fn is_marked(bytes: &[u8]) -> bool {
    bytes
        .get(OPEN_UNDER_BOOT)
        .is_some_and(|mark| mark != BootId::default())
}

#[inline]
pub(crate) fn field<const N: usize>(bytes: &[u8], range: Range<usize>) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[range]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::blocked::BlockedShape;

    fn header() -> Header {
        Header {
            shape: Shape::Blocked(BlockedShape::new(10, 6, 1).unwrap()),
            hasher: Hasher::seeded(9),
            capacity: 500,
            rate: 0.01,
            state: State {
                keys: 3,
                body_checksum: 4,
                open_under: None,
            },
        }
    }

    #[test]
    fn round_trips() {
        let key = SecretKey::new([5; 16]);
        let rule = KeyRule::EXACT.ignore_case().of_values(7).unwrap();
        for hasher in [
            Hasher::seeded(u64::MAX),
            Hasher::keyed(key),
            Hasher::keyed_apart(key),
            Hasher::seeded(1).with_rule(rule),
            Hasher::keyed_apart(key).with_rule(rule),
        ] {
            let mut h = header();
            h.hasher = hasher;
            h.state.open_under = Some([1; 16]);
            assert_eq!(Header::decode(&h.encode(), Some(&key)).unwrap(), h);
        }
    }

    #[test]
    fn a_key_kept_apart_is_asked_for_and_checked() {
        let mut h = header();
        h.hasher = Hasher::keyed_apart(SecretKey::new([5; 16]));
        let bytes = h.encode();
        assert!(
            !bytes.windows(16).any(|w| w == [5; 16]),
            "the secret leaked"
        );
        assert!(matches!(
            Header::decode(&bytes, None),
            Err(Error::KeyNeeded)
        ));
        let shape = Header::decode_without_key(&bytes).unwrap().shape;
        assert_eq!(shape, h.shape);
        let wrong = SecretKey::new([6; 16]);
        assert!(matches!(
            Header::decode(&bytes, Some(&wrong)),
            Err(Error::WrongKey)
        ));
    }

    #[test]
    fn every_flipped_bit_of_the_fixed_part_is_noticed() {
        let sound = header().encode();
        for bit in 0..HEADER_CHECKSUM.end * 8 {
            let mut bytes = sound;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::decode(&bytes, None).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn every_shorter_prefix_is_an_error() {
        let bytes = header().encode();
        for len in 0..HEADER_LEN {
            assert!(Header::decode(&bytes[..len], None).is_err());
        }
    }
}
