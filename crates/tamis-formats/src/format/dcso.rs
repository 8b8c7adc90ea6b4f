//! DCSO's bloom, version 1, also written by poppy; little-endian: `u64 flags
//! (low byte 1) | u64 n | f64 p | u64 k | u64 m | u64 N | words | data`.

use super::{MOST_BITS, MOST_HASHES, sized, with_zeros};
use crate::about::About;
use crate::bits::Bits;
use crate::bytes::View;
use crate::fields::Fields;
use crate::filter::Opened;
use crate::plain_file::PlainFile;
use crate::probe::Probe;
use crate::{Error, Facts, Format, Keys};
use std::f64::consts::LN_2;

/// CIRCL's hash list contains SHA-1 in upper case.
pub(crate) const ABOUT: About = About::new(&[Keys::Utf8, Keys::Upper, Keys::Lower], read);

/// The position of the number of keys.
const COUNT: usize = 40;

fn read(file: View<'_>, _: Option<&[u8]>) -> Result<Opened, Error> {
    let mut fields = Fields::new(Format::Dcso, file);
    let flags = fields.u64_le("version")?;
    if flags & 0xFF != 1 {
        return Err(fields.corrupt("version", 1, flags & 0xFF));
    }
    let capacity = fields.u64_le("capacity")?;
    let rate = fields.ranged("rate", 0.0..=1.0, Fields::f64_le)?;
    let hashes = fields.ranged("hashes", 1..=MOST_HASHES, Fields::u64_le)?;
    let bits = fields.ranged("bits", 1..=MOST_BITS, Fields::u64_le)?;
    let keys = fields.u64_le("count")?;
    let at = fields.skip("words", bits.div_ceil(64) * 8)?;
    let bits = Bits::low(at, bits);
    let facts = Facts {
        capacity: Some(capacity),
        rate: Some(rate),
        keys: Some(keys),
        count_at: Some(COUNT),
        data: fields.left(),
        ..Facts::NONE
    };
    Ok(PlainFile::new(bits, Probe::Dcso { hashes })
        .facts(facts)
        .into())
}

/// An empty filter.
pub(crate) fn create(keys: u64, rate: f64) -> Result<Vec<u8>, Error> {
    let keys_f = keys.max(1) as f64;
    // The original rounds the negative number up.
    let bits = (keys_f * rate.ln() / (LN_2 * LN_2)).ceil().abs();
    let hashes = (LN_2 * bits / keys_f).ceil();
    let bits = sized(bits, MOST_BITS)?;
    let mut header = Vec::new();
    header.extend(1u64.to_le_bytes());
    header.extend(keys.to_le_bytes());
    header.extend(rate.to_le_bytes());
    header.extend((hashes.max(1.0) as u64).to_le_bytes());
    header.extend(bits.to_le_bytes());
    header.extend(0u64.to_le_bytes());
    with_zeros(&header, 8 * bits.div_ceil(64))
}
