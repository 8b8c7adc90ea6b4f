//! pybloomfiltermmap3's file, how many bits a filter of it gets, and which of
//! them are a key's.
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

use super::MOST_BITS;
use crate::about::{About, OtherKeys};
use crate::bits::{Bits, Modulus};
use crate::bytes::View;
use crate::fields::Fields;
use crate::filter::Opened;
use crate::plain_file::PlainFile;
use crate::probe::{Probe, of_seeds};
use crate::{Error, Facts, Format, Keys};

/// Keys are text and bytes as they are; anything else is Python's `hash()` of it.
pub(crate) const ABOUT: About = About {
    start: MAGIC,
    other_keys: OtherKeys::Text,
    ..About::new(&[Keys::Utf8, Keys::PythonNumber], read)
};

/// What a file begins with.
pub const MAGIC: &[u8; 9] = b"MBITARRAY";
/// Where the bits begin.
pub const BITS_AT: usize = 1280;
/// The most hashes the struct has room for.
pub const MOST_HASHES: usize = 256;

const STRUCT_LEN: u32 = 1200;
const BITS: usize = 9;
const LEN: usize = 17;
const STRUCT: usize = 21;
const CAPACITY: usize = STRUCT;
const ERROR_RATE: usize = STRUCT + 8;
const HASHES: usize = STRUCT + 16;
const SEEDS: usize = STRUCT + 20;
const VERSION: usize = STRUCT + 1056;
const COUNT_CORRECT: usize = STRUCT + 1057;

/// What a filter is, apart from its bits.
///
/// ```
/// use tamis_formats::pybloomfilter::Shape;
/// let shape = Shape { capacity: 1_000, error_rate: 0.01, bits: 9_600, seeds: vec![1, 2, 3] };
/// let start = shape.encode();
/// assert_eq!(Shape::decode(&start, shape.file_len())?, shape);
/// assert!(Shape::decode(&start, 1_300).is_err()); // the file is too short
/// # Ok::<(), tamis_formats::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// For how many keys.
    pub capacity: u64,
    /// For which rate.
    pub error_rate: f64,
    /// How many bits.
    pub bits: u64,
    /// One hash each.
    pub seeds: Vec<u32>,
}

impl Shape {
    /// How many bytes the bits take.
    pub const fn bytes(&self) -> u64 {
        self.bits.div_ceil(8)
    }

    /// How many bytes a file has, at least.
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
        put(LEN, &STRUCT_LEN.to_le_bytes());
        put(CAPACITY, &self.capacity.to_le_bytes());
        put(ERROR_RATE, &self.error_rate.to_le_bytes());
        put(HASHES, &(self.seeds.len() as u32).to_le_bytes());
        for (i, seed) in self.seeds.iter().enumerate() {
            put(SEEDS + 4 * i, &seed.to_le_bytes());
        }
        put(VERSION, &[1]);
        put(COUNT_CORRECT, &[1]);
        bytes
    }

    /// Reads the start of a file `file_len` long.
    pub fn decode(start: &[u8], file_len: u64) -> Result<Self, Error> {
        let mut fields = Fields::new(Format::Pybloomfilter, start);
        let magic = &start[..start.len().min(MAGIC.len())];
        if magic != MAGIC {
            return Err(fields.corrupt("magic", "MBITARRAY", String::from_utf8_lossy(magic)));
        }
        fields.take("magic", MAGIC.len() as u64)?;
        let bits = fields.ranged("bits", 1..=MOST_BITS, Fields::u64_le)?;
        fields.ranged("struct", STRUCT_LEN..=STRUCT_LEN, Fields::u32_le)?;
        let capacity = fields.u64_le("capacity")?;
        let error_rate = fields.f64_le("rate")?;
        let hashes = fields.ranged("hashes", 1..=MOST_HASHES as u32, Fields::u32_le)?;
        let seeds = (0..hashes).map(|_| fields.u32_le("seeds"));
        let shape = Self {
            capacity,
            error_rate,
            bits,
            seeds: seeds.collect::<Result<_, _>>()?,
        };
        let expected = shape.file_len();
        if file_len < expected {
            let expected = format_args!("at least {expected} bytes");
            return Err(fields.corrupt("length", expected, file_len));
        }
        Ok(shape)
    }
}

/// How many hashes a rate asks for; rounded down, as the format's makers do.
pub fn hashes_for(error_rate: f64) -> f64 {
    (1.0 / error_rate).log2().floor().max(1.0)
}

/// How many bits `hashes` hashes need for a capacity and a rate. Every
/// operation is the one the original does, in its order: the sizes agree to
/// the bit.
pub fn bits_for(capacity: f64, error_rate: f64, hashes: usize) -> f64 {
    const LN_2: f64 = std::f64::consts::LN_2;
    let per_hash = (capacity * error_rate.ln().abs() / (hashes as f64 * (LN_2 * LN_2))).ceil();
    ((hashes as f64 * per_hash / 8.0).ceil() * 8.0).max(128.0)
}

/// How a filter turns a key into bits: its seeds and its number of bits.
///
/// ```
/// use tamis_formats::pybloomfilter::Probes;
/// let mut bits = Vec::new();
/// Probes::new(&[1, 2, 3], 9_600).all(b"key", |some| {
///     bits.extend_from_slice(some);
///     true
/// });
/// assert_eq!(bits.len(), 3);
/// ```
#[derive(Clone, Debug)]
pub struct Probes {
    seeds: Box<[u32]>,
    bits: u64,
    modulus: Modulus,
}

impl Probes {
    /// # Panics
    /// If there are no bits.
    pub fn new(seeds: &[u32], bits: u64) -> Self {
        assert!(bits > 0, "a key needs a bit");
        Self {
            seeds: seeds.into(),
            bits,
            modulus: Modulus::new(bits),
        }
    }

    /// One hash each.
    pub const fn seeds(&self) -> &[u32] {
        &self.seeds
    }

    /// How many bits there are.
    pub const fn bits(&self) -> u64 {
        self.bits
    }

    /// Calls `group` with the key's bits, a few at a time, for as long as it
    /// answers true; says whether it always did.
    #[inline]
    pub fn all(&self, key: &[u8], group: impl FnMut(&[u64]) -> bool) -> bool {
        of_seeds(&self.seeds, &self.modulus, key, group)
    }
}

fn read(file: View<'_>, _: Option<&[u8]>) -> Result<Opened, Error> {
    let shape = Shape::decode(&file.read(0..file.len().min(BITS_AT)), file.len() as u64)?;
    let bits = Bits::low(BITS_AT, shape.bits);
    let facts = Facts {
        capacity: Some(shape.capacity),
        rate: Some(shape.error_rate),
        ..Facts::default()
    };
    let probe = Probe::Seeds(shape.seeds.into());
    Ok(PlainFile::new(bits, probe).facts(facts).into())
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
    };
    super::with_zeros(&shape.encode(), shape.bytes())
}
