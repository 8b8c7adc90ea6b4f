//! The file of pybloomfiltermmap and pybloomfiltermmap3, the number of bits of
//! its filters, and the bits of a key.
//!
//! ```text
//!    0   9  "MBITARRAY"
//!    9   8  number of bits
//!   17   4  1200, length of the struct that follows
//!   21      struct:  0  8 capacity        8  8 error rate (f64)
//!                   16  4 hashes k       20  4 x 256 seeds
//!                 1048  8 zero (a pointer in memory)
//!                 1056  1 version, 1   1057  1 "the count is right", 1
//!                 1064  8 count, which stays 0 on disk
//! 1221      zeros
//! 1280      the bits, the lowest of a byte first
//! ```
//!
//! Up to version 0.1.10, from 2010, the struct ends after the pointer: it has
//! 1056 bytes, or 1048 on 32-bit machines. The hash has changed four times
//! since, and files don't say which one they use; often, the number of bits
//! that a version chooses shows it.

use super::MOST_BITS;
use crate::about::{About, OtherKeys};
use crate::bits::{Bits, Modulus};
use crate::bytes::View;
use crate::fields::Fields;
use crate::filter::Opened;
use crate::plain_file::PlainFile;
use crate::probe::{Probe, of_seeds};
use crate::{Error, Facts, Format, Keys};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::f64::consts::LN_2;
use std::io::Read as _;

pub use crate::names::Hash;

/// Text and bytes are hashed as they are; other keys by their Python `hash()`.
pub(crate) const ABOUT: About = About {
    start: MAGIC,
    other_keys: OtherKeys::Text,
    ..About::new(&[Keys::Utf8, Keys::PythonNumber], |file, _| {
        read(file, None)
    })
};

/// The start of a file.
pub const MAGIC: &[u8; 9] = b"MBITARRAY";
/// The position of the bits.
pub const BITS_AT: usize = 1280;
/// The most hashes the struct has room for.
pub const MOST_HASHES: usize = 256;

const STRUCT_LEN: u32 = 1200;
/// From 2010, on 64-bit and 32-bit machines.
const OLD_STRUCT_LENS: [u32; 2] = [1056, 1048];
const BITS: usize = 9;
const LEN: usize = 17;
const STRUCT: usize = 21;
const CAPACITY: usize = STRUCT;
const ERROR_RATE: usize = STRUCT + 8;
const HASHES: usize = STRUCT + 16;
const SEEDS: usize = STRUCT + 20;
const VERSION: usize = STRUCT + 1056;
const COUNT_CORRECT: usize = STRUCT + 1057;

/// The parameters of a filter, without its bits.
///
/// ```
/// use tamis_formats::pybloomfilter::Shape;
/// use tamis_formats::pybloomfilter::Hash;
/// let shape = Shape {
///     capacity: 1_000,
///     error_rate: 0.01,
///     bits: 9_592,
///     seeds: vec![1, 2, 3, 4, 5, 6],
///     hash: Hash::Murmur,
/// };
/// let start = shape.encode();
/// let (again, others) = Shape::decode(&start, shape.file_len(), None)?;
/// assert!(again == shape && others.is_empty());
/// assert!(Shape::decode(&start, 1_300, None).is_err()); // the file is too short
/// # Ok::<(), tamis_formats::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// The number of keys it is made for.
    pub capacity: u64,
    /// The rate it is made for.
    pub error_rate: f64,
    /// The number of bits.
    pub bits: u64,
    /// One hash per seed.
    pub seeds: Vec<u32>,
    /// How keys are hashed.
    pub hash: Hash,
}

impl Shape {
    /// The number of bytes of the bits.
    pub const fn bytes(&self) -> u64 {
        self.bits.div_ceil(8)
    }

    /// The least length of a file.
    pub const fn file_len(&self) -> u64 {
        BITS_AT as u64 + self.bytes()
    }

    /// The bytes before the bits.
    ///
    /// # Panics
    /// If there are more than [`MOST_HASHES`] seeds.
    pub fn encode(&self) -> [u8; BITS_AT] {
        assert!(self.seeds.len() <= MOST_HASHES, "the struct has no room");
        let mut bytes = [0; BITS_AT];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(0, MAGIC);
        put(BITS, &self.bits.to_le_bytes());
        // Uses the shorter struct where that identifies the hash.
        let is_old = self.hash == Hash::Djb;
        let len = if is_old {
            OLD_STRUCT_LENS[0]
        } else {
            STRUCT_LEN
        };
        put(LEN, &len.to_le_bytes());
        put(CAPACITY, &self.capacity.to_le_bytes());
        put(ERROR_RATE, &self.error_rate.to_le_bytes());
        put(HASHES, &(self.seeds.len() as u32).to_le_bytes());
        for (i, seed) in self.seeds.iter().enumerate() {
            put(SEEDS + 4 * i, &seed.to_le_bytes());
        }
        if !is_old {
            put(VERSION, &[1]);
            put(COUNT_CORRECT, &[1]);
        }
        bytes
    }

    /// Reads the start of a file of length `file_len`. Also returns the other
    /// hashes that the file may use, if it doesn't say and none was asked for.
    pub fn decode(
        start: &[u8],
        file_len: u64,
        asked: Option<Hash>,
    ) -> Result<(Self, &'static [Hash]), Error> {
        let mut fields = Fields::new(Format::Pybloomfilter, start);
        let magic = &start[..start.len().min(MAGIC.len())];
        if magic != MAGIC {
            return Err(fields.corrupt("magic", "MBITARRAY", String::from_utf8_lossy(magic)));
        }
        fields.take("magic", MAGIC.len() as u64)?;
        let bits = fields.ranged("bits", 1..=MOST_BITS, Fields::u64_le)?;
        let len = fields.u32_le("struct")?;
        let is_old = OLD_STRUCT_LENS.contains(&len);
        if !is_old && len != STRUCT_LEN {
            return Err(fields.corrupt("struct", "1048, 1056 or 1200", len));
        }
        let capacity = fields.u64_le("capacity")?;
        let error_rate = fields.f64_le("rate")?;
        let hashes = fields.ranged("hashes", 1..=MOST_HASHES as u32, Fields::u32_le)?;
        let seeds = (0..hashes).map(|_| fields.u32_le("seeds"));
        let mut shape = Self {
            capacity,
            error_rate,
            bits,
            seeds: seeds.collect::<Result<_, _>>()?,
            hash: Hash::Murmur,
        };
        let expected = shape.file_len();
        if file_len < expected {
            let expected = format_args!("at least {expected} bytes");
            return Err(fields.corrupt("length", expected, file_len));
        }
        let others;
        (shape.hash, others) = match asked {
            None | Some(Hash::Djb) if is_old => (Hash::Djb, &[][..]),
            Some(other) if is_old => {
                return Err(Error::Parameter {
                    what: "hash",
                    expected: "djb, which files of 2010 have",
                    got: other.to_string(),
                });
            }
            Some(asked) => (asked, &[][..]),
            None => shape.likely(),
        };
        Ok((shape, others))
    }

    /// The newest hash whose versions make a filter with these numbers, and the
    /// older ones that may be possible. If none fits, because the user passed a
    /// fractional capacity, it may be any.
    fn likely(&self) -> (Hash, &'static [Hash]) {
        let fits = |hash: &Hash| self.is_made_by(*hash);
        match (
            Hash::ALL.iter().position(fits),
            Hash::ALL.iter().rposition(fits),
        ) {
            (Some(first), Some(last)) => (Hash::ALL[first], &Hash::ALL[first + 1..=last]),
            _ => (Hash::ALL[0], &Hash::ALL[1..]),
        }
    }

    /// Whether a version with this hash makes a filter with these numbers. Only
    /// the newest lets users choose the number of hashes.
    fn is_made_by(&self, hash: Hash) -> bool {
        let (keys, rate) = (self.capacity as f64, self.error_rate);
        let (bits, hashes) = (self.bits as f64, self.seeds.len() as f64);
        let of_rate = (1.0 / rate).ln() / LN_2;
        let times = |factor: f64| {
            let per_hash = factor * keys * rate.ln().abs() / (hashes * (LN_2 * LN_2));
            hashes * per_hash.ceil()
        };
        match hash {
            Hash::Murmur => {
                bits == bits_for(keys, rate, self.seeds.len()) || bits == times(1.0).max(128.0)
            }
            Hash::Murmur32 => hashes == of_rate.floor() && bits == times(1.0),
            Hash::Sha512 | Hash::SuperFast => hashes == of_rate.ceil() && bits == times(2.0),
            // The next prime, unless it is too far away.
            Hash::Djb => {
                let least = 5.0 * (keys * rate.ln().abs() / (LN_2 * LN_2)).ceil();
                hashes == (LN_2 * bits / keys).ceil() && (0.0..=5002.0).contains(&(bits - least))
            }
        }
    }
}

/// The number of hashes for a rate; rounded down, as in the original.
pub fn hashes_for(error_rate: f64) -> f64 {
    (1.0 / error_rate).log2().floor().max(1.0)
}

/// The number of bits that `hashes` hashes need for a capacity and a rate.
/// Performs the original's operations in their order, so that sizes agree to
/// the bit.
pub fn bits_for(capacity: f64, error_rate: f64, hashes: usize) -> f64 {
    let per_hash = (capacity * error_rate.ln().abs() / (hashes as f64 * (LN_2 * LN_2))).ceil();
    ((hashes as f64 * per_hash / 8.0).ceil() * 8.0).max(128.0)
}

/// A key in Python's terms.
#[derive(Clone, Copy, Debug)]
pub enum Key<'k> {
    /// Bytes, or text as UTF-8.
    Bytes(&'k [u8]),
    /// Python's `hash()` of anything else.
    Hash(i64),
}

impl<'k> From<&'k [u8]> for Key<'k> {
    fn from(bytes: &'k [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

/// Computes a key's bits: a filter's seeds, their hash and its number of bits.
///
/// ```
/// use tamis_formats::pybloomfilter::{Hash, Key, Probes};
/// let mut bits = Vec::new();
/// Probes::new(Hash::Murmur, &[1, 2, 3], 9_600).all(Key::Bytes(b"key"), |some| {
///     bits.extend_from_slice(some);
///     true
/// });
/// assert_eq!(bits.len(), 3);
/// ```
#[derive(Clone, Debug)]
pub struct Probes {
    hash: Hash,
    seeds: Box<[u32]>,
    bits: u64,
    modulus: Modulus,
}

impl Probes {
    /// # Panics
    /// If `bits` is zero.
    pub fn new(hash: Hash, seeds: &[u32], bits: u64) -> Self {
        assert!(bits > 0, "a key needs a bit");
        Self {
            hash,
            seeds: seeds.into(),
            bits,
            modulus: Modulus::new(bits),
        }
    }

    /// How keys are hashed.
    pub const fn hash(&self) -> Hash {
        self.hash
    }

    /// One hash per seed.
    pub const fn seeds(&self) -> &[u32] {
        &self.seeds
    }

    /// The number of bits.
    pub const fn bits(&self) -> u64 {
        self.bits
    }

    /// Calls `group` with the key's bits, a few at a time, for as long as it
    /// returns true; returns whether it always did.
    #[inline]
    pub fn all(&self, key: Key<'_>, mut group: impl FnMut(&[u64]) -> bool) -> bool {
        let bytes;
        let key = match key {
            Key::Bytes(bytes) => bytes,
            Key::Hash(number) if self.hash == Hash::Djb => {
                return self.seeds.iter().all(|seed| {
                    let hash = (number as u32 ^ seed).wrapping_mul(33).wrapping_add(5381);
                    group(&[self.modulus.of(hash.into())])
                });
            }
            Key::Hash(number) => {
                bytes = number.to_le_bytes();
                &bytes
            }
        };
        of_seeds(self.hash, &self.seeds, &self.modulus, key, group)
    }
}

/// Reads a file. `asked` is its hash, if known.
pub(crate) fn read(file: View<'_>, asked: Option<Hash>) -> Result<Opened, Error> {
    let start = file.read(0..file.len().min(BITS_AT));
    let (shape, other_hashes) = Shape::decode(&start, file.len() as u64, asked)?;
    let bits = Bits::low(BITS_AT, shape.bits);
    let facts = Facts {
        capacity: Some(shape.capacity),
        rate: Some(shape.error_rate),
        hash: Some(shape.hash),
        other_hashes,
        ..Facts::default()
    };
    let hash = shape.hash;
    let seeds = shape.seeds.into();
    let mut filter = PlainFile::new(bits, Probe::Seeds { hash, seeds }).facts(facts);
    if hash == Hash::Djb {
        // Numbers don't hash like any bytes.
        filter.keys = Some(&[Keys::Utf8]);
    }
    Ok(filter.into())
}

/// Whether a file may be text of `to_base64`: it begins like base64 of zlib.
pub(crate) fn is_like_text(file: View<'_>) -> bool {
    let start = file.read(0..file.len().min(512));
    let is_text = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=\r\n".contains(byte);
    matches!(*start, [b'e', b'A' | b'F' | b'J' | b'N', ..]) && start.iter().all(is_text)
}

/// Unpacks text of `to_base64`, which is packed twice, to at most `most` bytes;
/// `None` if it isn't such text.
pub(crate) fn from_base64(text: View<'_>, most: u64) -> Option<Result<Vec<u8>, Error>> {
    if !is_like_text(text) || text.len() as u64 > most {
        return None;
    }
    let inner = unpack(&text.read(0..text.len()), most).ok()?;
    let file = unpack(&inner, most).ok()?;
    if file.len() as u64 > most {
        return Some(Err(Error::Unpacked { most }));
    }
    file.starts_with(MAGIC).then_some(Ok(file))
}

/// Decodes base64 and unpacks zlib, up to `most` bytes.
fn unpack(text: &[u8], most: u64) -> Result<Vec<u8>, ()> {
    let digits: Vec<u8> = (text.iter().copied())
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    let packed = STANDARD.decode(digits).map_err(|_| ())?;
    let mut inside = Vec::new();
    let mut zlib = flate2::read::ZlibDecoder::new(&*packed).take(most.saturating_add(1));
    zlib.read_to_end(&mut inside).map_err(|_| ())?;
    Ok(inside)
}

/// The output of `to_base64` for a file, except for the compression level.
pub(crate) fn to_base64(file: &[u8]) -> Vec<u8> {
    let pack = |bytes: &[u8]| {
        let mut packed = Vec::new();
        let level = flate2::Compression::best();
        // Reading from and writing to memory can't fail.
        let _ = flate2::read::ZlibEncoder::new(bytes, level).read_to_end(&mut packed);
        STANDARD.encode(packed).into_bytes()
    };
    pack(&pack(file))
}

/// An empty filter with these seeds.
pub(crate) fn create(keys: u64, rate: f64, seeds: &[u32]) -> Result<Vec<u8>, Error> {
    if !(1..=MOST_HASHES).contains(&seeds.len()) {
        return Err(Error::Parameter {
            what: "seeds",
            expected: "1 to 256 of them",
            got: seeds.len().to_string(),
        });
    }
    let shape = Shape {
        capacity: keys,
        error_rate: rate,
        bits: super::sized(bits_for(keys as f64, rate, seeds.len()), MOST_BITS)?,
        seeds: seeds.to_vec(),
        hash: Hash::Murmur,
    };
    super::with_zeros(&shape.encode(), shape.bytes())
}
