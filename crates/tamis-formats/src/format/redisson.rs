//! Redisson's filter: a Redis string written with SETBIT. Its parameters are in
//! another key, so the string alone can't be opened.

use super::{MOST_HASHES, sized, with_zeros};
use crate::about::About;
use crate::bits::{Bits, Modulus, Order};
use crate::filter::Opened;
use crate::plain::keys_by_fill;
use crate::plain_file::PlainFile;
use crate::probe::Probe;
use crate::{Error, Format, Keys};
use std::f64::consts::LN_2;

/// The codec, which isn't recorded, determines the bytes of keys: StringCodec
/// uses UTF-8.
pub(crate) const ABOUT: About = About::new(&[Keys::Utf8, Keys::Kryo5, Keys::Json], |_, _| {
    Err(Error::corrupt(
        Format::Redisson,
        "string",
        "its size and hashes, which stand in another key",
        "the string alone",
    ))
});

/// A Redis string has at most 512 MiB.
const MOST_BITS: u64 = 1 << 32;

/// The size and the number of hashes of a new filter.
pub(crate) fn shape(keys: u64, rate: f64) -> Result<(u64, u32), Error> {
    let keys = keys.max(1) as f64;
    let bits = (-keys * rate.ln() / (LN_2 * LN_2)).trunc();
    let hashes = (bits / keys * LN_2).round().max(1.0);
    Ok((sized(bits.max(1.0), MOST_BITS)?, hashes as u32))
}

/// Computes the bits that a key of a Redisson filter has in its Redis string,
/// to query and change one in Redis.
///
/// ```
/// use tamis_formats::RedissonShape;
/// let shape = RedissonShape::for_keys(1_000, 0.01)?;
/// assert_eq!((shape.size(), shape.hashes()), (9_585, 7));
/// assert_eq!(shape.bits(b"key").len(), 7);
/// # Ok::<(), tamis_formats::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Shape {
    size: u64,
    hashes: u32,
    modulus: Modulus,
}

impl Shape {
    /// The `size` and `hashIterations` of a filter's configuration.
    pub fn new(size: u64, hashes: u32) -> Result<Self, Error> {
        check(size, hashes)?;
        Ok(Self {
            size,
            hashes,
            modulus: Modulus::new(size),
        })
    }

    /// The shape of a new filter, as chosen by Redisson.
    pub fn for_keys(keys: u64, rate: f64) -> Result<Self, Error> {
        let (size, hashes) = shape(keys, rate)?;
        Self::new(size, hashes)
    }

    /// The number of bits.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// The number of bits per key.
    pub const fn hashes(&self) -> u32 {
        self.hashes
    }

    /// The key's bits, as SETBIT counts them.
    pub fn bits(&self, key: &[u8]) -> Vec<u64> {
        let hashes = self.hashes.into();
        let mut bits = Vec::with_capacity(self.hashes as usize);
        Probe::Redisson { hashes }.all(key, &self.modulus, |bit| {
            bits.push(bit);
            true
        });
        bits
    }

    /// The false-positive rate with this many bits set.
    pub fn rate_now(&self, ones: u64) -> f64 {
        (ones as f64 / self.size as f64).powf(self.hashes.into())
    }

    /// The number of keys, estimated from the number of set bits; `None` if all
    /// are set.
    pub fn keys_now(&self, ones: u64) -> Option<f64> {
        let bits = self.size as f64;
        keys_by_fill(ones as f64 / bits, bits, self.hashes.into())
    }
}

fn corrupt(what: &'static str, most: u64, got: u64) -> Error {
    Error::corrupt(Format::Redisson, what, format_args!("1 to {most}"), got)
}

fn check(size: u64, hashes: u32) -> Result<(), Error> {
    if !(1..=MOST_BITS).contains(&size) {
        return Err(corrupt("size", MOST_BITS, size));
    }
    if !(1..=MOST_HASHES as u32).contains(&hashes) {
        return Err(corrupt("hashIterations", MOST_HASHES, hashes.into()));
    }
    Ok(())
}

/// The string ends at its last set bit; zeros are added.
pub(crate) fn read(string: Vec<u8>, size: u64, hashes: u32) -> Result<Opened, Error> {
    check(size, hashes)?;
    let bits = Bits::new(0, size, Order::High);
    if string.len() as u64 > bits.bytes() {
        return Err(corrupt("string", bits.bytes(), string.len() as u64));
    }
    let file = with_zeros(&string, bits.bytes() - string.len() as u64)?;
    let hashes = hashes.into();
    let filter = PlainFile::new(bits, Probe::Redisson { hashes });
    Ok(Opened::new(filter, file))
}
