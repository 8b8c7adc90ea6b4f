//! The bytes before the bits of a pybloomfiltermmap3 file, and how many bits a
//! filter gets. Nothing else knows an offset.
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

use std::fmt;

/// Where the bits begin.
pub(super) const BITS_AT: usize = 1280;
/// The most hashes the struct has room for.
pub(super) const MOST_HASHES: usize = 256;
pub(super) const MAGIC: &[u8; 9] = b"MBITARRAY";

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
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) capacity: u64,
    pub(super) error_rate: f64,
    pub(super) bits: u64,
    pub(super) seeds: Vec<u32>,
}

impl Shape {
    /// How many bytes the bits take.
    pub(super) fn bytes(&self) -> u64 {
        self.bits.div_ceil(8)
    }

    pub(super) fn file_len(&self) -> u64 {
        BITS_AT as u64 + self.bytes()
    }

    pub(super) fn encode(&self) -> [u8; BITS_AT] {
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

    /// Reads the bytes before the bits of a file `file_len` long; says what is
    /// wrong with them otherwise.
    pub(super) fn decode(bytes: &[u8], file_len: u64) -> Result<Self, Flaw> {
        if !bytes.starts_with(MAGIC) {
            return Err(Flaw::Foreign);
        }
        let Some(bytes) = bytes.first_chunk::<BITS_AT>() else {
            return Err(Flaw::Short {
                expected: BITS_AT as u64,
                got: file_len,
            });
        };
        let struct_len = u32::from_le_bytes(field(bytes, LEN));
        if struct_len != STRUCT_LEN {
            return Err(Flaw::StructLen(struct_len));
        }
        let hashes = u32::from_le_bytes(field(bytes, HASHES));
        if hashes == 0 || hashes as usize > MOST_HASHES {
            return Err(Flaw::Hashes(hashes));
        }
        let shape = Self {
            capacity: u64::from_le_bytes(field(bytes, CAPACITY)),
            error_rate: f64::from_le_bytes(field(bytes, ERROR_RATE)),
            bits: u64::from_le_bytes(field(bytes, BITS)),
            seeds: (0..hashes as usize)
                .map(|i| u32::from_le_bytes(field(bytes, SEEDS + 4 * i)))
                .collect(),
        };
        if shape.bits == 0 {
            return Err(Flaw::NoBits);
        }
        if file_len < shape.file_len() {
            return Err(Flaw::Short {
                expected: shape.file_len(),
                got: file_len,
            });
        }
        Ok(shape)
    }
}

fn field<const N: usize>(bytes: &[u8; BITS_AT], at: usize) -> [u8; N] {
    std::array::from_fn(|i| bytes[at + i])
}

/// How many hashes a rate asks for; rounded down, as the format's makers do.
pub(super) fn hashes_for(error_rate: f64) -> f64 {
    (1.0 / error_rate).log2().floor().max(1.0)
}

/// How many bits `hashes` hashes need for a capacity and a rate. Every
/// operation is the one the original does, in its order: the sizes agree to
/// the bit.
pub(super) fn bits_for(capacity: f64, error_rate: f64, hashes: usize) -> f64 {
    const LN_2: f64 = std::f64::consts::LN_2;
    let per_hash = (capacity * error_rate.ln().abs() / (hashes as f64 * (LN_2 * LN_2))).ceil();
    ((hashes as f64 * per_hash / 8.0).ceil() * 8.0).max(128.0)
}

/// Why bytes are not a filter.
#[derive(Debug)]
pub(super) enum Flaw {
    Foreign,
    NotAFile,
    Short { expected: u64, got: u64 },
    StructLen(u32),
    Hashes(u32),
    NoBits,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => write!(f, "it does not begin with \"MBITARRAY\""),
            Self::NotAFile => write!(f, "it is not a regular file"),
            Self::Short { expected, got } => {
                write!(f, "expected at least {expected} bytes, got {got}")
            }
            Self::StructLen(got) => {
                write!(f, "expected a header of {STRUCT_LEN} bytes, got {got}")
            }
            Self::Hashes(got) => write!(f, "expected 1 to {MOST_HASHES} hashes, got {got}"),
            Self::NoBits => write!(f, "it has no bits"),
        }
    }
}
