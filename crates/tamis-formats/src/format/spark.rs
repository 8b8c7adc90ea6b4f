//! Spark's `BloomFilter.writeTo`, big-endian: `i32 1 | i32 k | i32 words |
//! words`, or `i32 2 | i32 k | i32 seed | i32 words | words`.

use super::{MOST_HASHES, sized, with_zeros};
use crate::about::About;
use crate::bits::{Bits, Order};
use crate::bytes::View;
use crate::fields::Fields;
use crate::filter::Opened;
use crate::plain_file::PlainFile;
use crate::probe::Probe;
use crate::{Error, Format, Keys};
use std::f64::consts::LN_2;

/// Strings and binary are hashed as bytes, all integers as longs.
pub(crate) const ABOUT: About = About::new(&[Keys::Utf8, Keys::Int64], read);

fn read(file: View<'_>, _: Option<&[u8]>) -> Result<Opened, Error> {
    let mut fields = Fields::new(Format::Spark, file);
    let version = fields.u32_be("version")?;
    let hashes = fields.ranged("hashes", 1..=MOST_HASHES as u32, Fields::u32_be)?;
    let hashes = u64::from(hashes);
    let probe = match version {
        1 => Probe::Spark1 { hashes },
        2 => Probe::Spark2 {
            hashes,
            seed: fields.u32_be("seed")?,
        },
        _ => return Err(fields.corrupt("version", "1 or 2", version)),
    };
    let words = u64::from(fields.ranged("words", 1..=i32::MAX as u32, Fields::u32_be)?);
    let bits = Bits::new(
        fields.body("words", words * 8)?,
        words * 64,
        Order::BigWords,
    );
    Ok(PlainFile::new(bits, probe).into())
}

/// An empty filter; with a seed, of version 2.
pub(crate) fn create(keys: u64, rate: f64, seed: Option<u32>) -> Result<Vec<u8>, Error> {
    let keys = keys.max(1) as f64;
    let bits = (-keys * rate.ln() / (LN_2 * LN_2)).trunc();
    let hashes = (bits / keys * LN_2).round().clamp(1.0, MOST_HASHES as f64) as u32;
    let words = sized(bits.max(1.0) / 64.0, i32::MAX as u64)?;
    let header = match seed {
        None => vec![1, hashes, words as u32],
        Some(seed) => vec![2, hashes, seed, words as u32],
    };
    let header: Vec<u8> = header.into_iter().flat_map(u32::to_be_bytes).collect();
    with_zeros(&header, 8 * words)
}
