//! pybloomfiltermmap3's file, and how many bits a filter of it gets.
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
use crate::bits::{Bits, Order};
use crate::fields::Fields;
use crate::plain::Plain;
use crate::probe::Probe;
use crate::{Error, Facts, Format, Keys};

/// Text and bytes as they are; whole numbers as eight bytes.
pub(crate) const KEYS: &[Keys] = &[Keys::Utf8, Keys::Int64];
pub(crate) const MAGIC: &[u8] = b"MBITARRAY";

/// Where the bits begin.
const BITS_AT: usize = 1280;
const STRUCT_LEN: u32 = 1200;
/// The most hashes the struct has room for.
const MOST_SEEDS: u32 = 256;

pub(crate) fn read(file: &[u8]) -> Result<(Plain, Facts), Error> {
    let mut fields = Fields::new(Format::Pybloomfilter, file);
    let magic = fields.take("magic", MAGIC.len() as u64)?;
    if magic != MAGIC {
        return Err(fields.corrupt("magic", "MBITARRAY", String::from_utf8_lossy(magic)));
    }
    let bits = fields.u64_le("bits")?;
    let bits = fields.within("bits", 1..=MOST_BITS, bits)?;
    let struct_len = fields.u32_le("struct")?;
    fields.within("struct", STRUCT_LEN..=STRUCT_LEN, struct_len)?;
    let capacity = fields.u64_le("capacity")?;
    let rate = fields.f64_le("rate")?;
    let hashes = fields.u32_le("hashes")?;
    let hashes = fields.within("hashes", 1..=MOST_SEEDS, hashes)?;
    let seeds: Box<[u32]> = (0..hashes)
        .map(|_| fields.u32_le("seeds"))
        .collect::<Result<_, _>>()?;
    let bits = Bits {
        at: BITS_AT,
        len: bits,
        order: Order::Low,
    };
    let expected = BITS_AT as u64 + bits.bytes();
    if (file.len() as u64) < expected {
        return Err(fields.corrupt(
            "length",
            format_args!("at least {expected} bytes"),
            file.len(),
        ));
    }
    let facts = Facts {
        capacity: Some(capacity),
        rate: Some(rate),
        ..Facts::default()
    };
    Ok((Plain::new(bits, Probe::Seeds(seeds)), facts))
}

/// An empty filter with these seeds.
pub(crate) fn create(keys: u64, rate: f64, seeds: &[u32]) -> Result<Vec<u8>, Error> {
    const LN_2: f64 = std::f64::consts::LN_2;
    if !(1..=MOST_SEEDS as usize).contains(&seeds.len()) {
        return Err(Error::Parameter {
            what: "seeds",
            expected: "1 to 256 of them",
            got: seeds.len().to_string(),
        });
    }
    // Every operation is the original's, in its order: sizes agree to the bit.
    let hashes = seeds.len() as f64;
    let per_hash = (keys as f64 * rate.ln().abs() / (hashes * (LN_2 * LN_2))).ceil();
    let bits = super::sized(
        ((hashes * per_hash / 8.0).ceil() * 8.0).max(128.0),
        MOST_BITS,
    )?;
    let mut file = vec![0; BITS_AT + (bits / 8) as usize];
    let mut put = |at: usize, field: &[u8]| file[at..at + field.len()].copy_from_slice(field);
    put(0, MAGIC);
    put(9, &bits.to_le_bytes());
    put(17, &STRUCT_LEN.to_le_bytes());
    put(21, &keys.to_le_bytes());
    put(29, &rate.to_le_bytes());
    put(37, &(seeds.len() as u32).to_le_bytes());
    for (i, seed) in seeds.iter().enumerate() {
        put(41 + 4 * i, &seed.to_le_bytes());
    }
    put(21 + 1056, &[1, 1]);
    Ok(file)
}

/// How many hashes a rate asks for; rounded down, as the format's makers do.
pub(crate) fn hashes_for(rate: f64) -> usize {
    (1.0 / rate)
        .log2()
        .floor()
        .clamp(1.0, f64::from(MOST_SEEDS)) as usize
}
