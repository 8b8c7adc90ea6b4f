//! Redisson's filter: a Redis string as SETBIT writes it. Its numbers stand in
//! a hash beside it, so the string alone can't be opened.

use super::{MOST_HASHES, sized, with_zeros};
use crate::bits::{Bits, Order};
use crate::plain::Plain;
use crate::probe::Probe;
use crate::{Error, Format, Keys};
use std::f64::consts::LN_2;

/// By the codec; StringCodec's are UTF-8.
pub(crate) const KEYS: &[Keys] = &[Keys::Utf8];

/// A Redis string has no more than 512 MiB.
const MOST_BITS: u64 = 1 << 32;

/// Size and hashes of a new filter.
pub(crate) fn shape(keys: u64, rate: f64) -> Result<(u64, u32), Error> {
    let keys = keys.max(1) as f64;
    let bits = (-keys * rate.ln() / (LN_2 * LN_2)).trunc();
    let hashes = (bits / keys * LN_2).round().max(1.0);
    Ok((sized(bits.max(1.0), MOST_BITS)?, hashes as u32))
}

/// The string has the bytes up to the last set bit; the rest is added.
pub(crate) fn read(string: &mut Vec<u8>, size: u64, hashes: u32) -> Result<Plain, Error> {
    let corrupt = |what, expected: u64, got: u64| {
        Error::corrupt(Format::Redisson, what, format_args!("1 to {expected}"), got)
    };
    if !(1..=MOST_BITS).contains(&size) {
        return Err(corrupt("size", MOST_BITS, size));
    }
    if !(1..=MOST_HASHES as u32).contains(&hashes) {
        return Err(corrupt("hashIterations", MOST_HASHES, hashes.into()));
    }
    let bits = Bits {
        at: 0,
        len: size,
        order: Order::High,
    };
    if string.len() as u64 > bits.bytes() {
        return Err(corrupt("string", bits.bytes(), string.len() as u64));
    }
    *string = with_zeros(string, bits.bytes() - string.len() as u64)?;
    Ok(Plain::new(bits, Probe::Redisson { hashes }))
}
