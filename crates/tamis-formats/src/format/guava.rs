//! Guava's `BloomFilter.writeTo`: `i8 strategy | u8 k | i32 words | words`,
//! big-endian. It contains neither the expected number of keys nor how they
//! became bytes.

use super::{sized, with_zeros};
use crate::about::About;
use crate::bits::{Bits, Order};
use crate::bytes::View;
use crate::fields::Fields;
use crate::filter::Opened;
use crate::plain_file::PlainFile;
use crate::probe::Probe;
use crate::{Error, Format, Keys};
use std::f64::consts::LN_2;

/// The results of Guava's funnels; bytes and UTF-8 text are the same.
const KEYS: &[Keys] = &[Keys::Utf8, Keys::Utf16, Keys::Int32, Keys::Int64];

pub(crate) const ABOUT: About = About::new(KEYS, read);

/// How Guava chooses bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// `MURMUR128_MITZ_32`, for filters made before Guava 11.
    Mitz32,
    /// `MURMUR128_MITZ_64`, the default.
    Mitz64,
}

fn read(file: View<'_>, _: Option<&[u8]>) -> Result<Opened, Error> {
    let mut fields = Fields::new(Format::Guava, file);
    let strategy = fields.u8("strategy")?;
    let hashes = u64::from(fields.ranged("hashes", 1..=255, Fields::u8)?);
    let words = u64::from(fields.ranged("words", 1..=i32::MAX as u32, Fields::u32_be)?);
    let probe = match strategy {
        0 => Probe::Guava32 { hashes },
        1 => Probe::Guava64 { hashes },
        _ => return Err(fields.corrupt("strategy", "0 or 1", strategy)),
    };
    let bits = Bits::new(
        fields.body("words", words * 8)?,
        words * 64,
        Order::BigWords,
    );
    Ok(PlainFile::new(bits, probe).into())
}

/// An empty filter. From version 33.4 on, Guava chooses the number of hashes by
/// the rate only; before, also by the size.
pub(crate) fn create(
    keys: u64,
    rate: f64,
    strategy: Strategy,
    before_33_4: bool,
) -> Result<Vec<u8>, Error> {
    let keys = keys.max(1) as f64;
    let bits = (-keys * rate.ln() / (LN_2 * LN_2)).trunc();
    let hashes = if before_33_4 {
        bits / keys * LN_2
    } else {
        -rate.ln() / LN_2
    };
    let hashes = hashes.round().clamp(1.0, 255.0) as u8;
    let words = sized(bits.max(1.0) / 64.0, i32::MAX as u64)?;
    let mut header = vec![u8::from(strategy == Strategy::Mitz64), hashes];
    header.extend((words as u32).to_be_bytes());
    with_zeros(&header, 8 * words)
}
