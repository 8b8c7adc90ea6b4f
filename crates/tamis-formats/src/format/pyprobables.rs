//! pyprobables' `BloomFilter.export`: the bits, then `u64 capacity | u64 keys | f32 rate`, little-endian, which
//! determine the number of bits.

use super::{MOST_BITS, MOST_HASHES};
use crate::about::{About, OtherKeys};
use crate::bits::Bits;
use crate::bytes::View;
use crate::fields::Fields;
use crate::filter::Opened;
use crate::plain_file::PlainFile;
use crate::probe::Probe;
use crate::{Error, Facts, Format, Keys};

/// Its keys are Python's str, hashed by code points, or bytes: see [`Probe`].
pub(crate) const ABOUT: About = About {
    other_keys: OtherKeys::Text,
    read_only: Some("the file does not say whether its keys are str or bytes"),
    ..About::new(&[Keys::Utf8], read)
};

const END: usize = 20;
/// The square of ln 2, with the original's digits.
const LN_2_SQUARED: f64 = 0.480_453_013_918_2;

fn read(file: View<'_>, _: Option<&[u8]>) -> Result<Opened, Error> {
    let end = file.len().saturating_sub(END);
    let mut fields = Fields::new(Format::Pyprobables, file.slice(end..file.len()));
    let capacity = fields.ranged("capacity", 1..=MOST_BITS, Fields::u64_le)?;
    let keys = fields.u64_le("keys")?;
    let rate = f64::from(f32::from_bits(fields.u32_le("rate")?));
    let rate = fields.within("rate", f64::from(f32::MIN_POSITIVE)..=1.0, rate)?;
    let bits = (-(capacity as f64) * rate.ln() / LN_2_SQUARED).ceil();
    let hashes = (std::f64::consts::LN_2 * bits / capacity as f64).round_ties_even();
    let bits = fields.within("bits", 1..=MOST_BITS, bits as u64)?;
    let hashes = fields.within("hashes", 1..=MOST_HASHES, hashes as u64)?;
    if end as u64 != bits.div_ceil(8) {
        return Err(fields.corrupt("length", format_args!("{} bytes", bits.div_ceil(8)), end));
    }
    let bits = Bits::low(0, bits);
    let facts = Facts {
        capacity: Some(capacity),
        rate: Some(rate),
        keys: Some(keys),
        ..Facts::default()
    };
    Ok(PlainFile::new(bits, Probe::Pyprobables { hashes })
        .facts(facts)
        .into())
}
