//! Bitcoin's BIP 37 (`filterload`): `varint length | bits | u32 k | u32 tweak |
//! u8 flags`, little-endian.

use crate::about::About;
use crate::bits::Bits;
use crate::bytes::View;
use crate::fields::Fields;
use crate::filter::Opened;
use crate::plain_file::PlainFile;
use crate::probe::Probe;
use crate::{Error, Format, Keys};
use std::f64::consts::LN_2;

pub(crate) const ABOUT: About = About::new(&[Keys::Utf8], read);

const MOST_BYTES: u64 = 36_000;
const MOST_HASHES: u32 = 50;

fn read(file: View<'_>, _: Option<&[u8]>) -> Result<Opened, Error> {
    let mut fields = Fields::new(Format::Bip37, file);
    let bytes = match fields.u8("length")? {
        short @ 0..=0xFC => u64::from(short),
        0xFD => fields.u16_le("length")?.into(),
        0xFE => fields.u32_le("length")?.into(),
        0xFF => fields.u64_le("length")?,
    };
    let bytes = fields.within("length", 1..=MOST_BYTES, bytes)?;
    let at = fields.skip("bits", bytes)?;
    let hashes = fields.ranged("hashes", 1..=MOST_HASHES, Fields::u32_le)?;
    let tweak = fields.u32_le("tweak")?;
    fields.ranged("flags", 0..=2, Fields::u8)?;
    fields.body("end", 0)?;
    let bits = Bits::low(at, bytes * 8);
    let hashes = hashes.into();
    Ok(PlainFile::new(bits, Probe::Bip37 { hashes, tweak }).into())
}

/// An empty filter.
pub(crate) fn create(keys: u64, rate: f64, tweak: u32, flags: u8) -> Vec<u8> {
    const LN2_SQUARED: f64 = 0.480_453_013_918_201_4;
    let keys = keys.max(1) as f64;
    let bits = (-1.0 / LN2_SQUARED * keys * rate.ln()).trunc();
    let bytes = (bits.min((MOST_BYTES * 8) as f64) / 8.0).trunc().max(1.0) as usize;
    let hashes = ((bytes * 8) as f64 / keys * LN_2)
        .trunc()
        .clamp(1.0, f64::from(MOST_HASHES));
    let mut file = match bytes {
        0..=0xFC => vec![bytes as u8],
        _ => [&[0xFD][..], &(bytes as u16).to_le_bytes()].concat(),
    };
    file.resize(file.len() + bytes, 0);
    file.extend((hashes as u32).to_le_bytes());
    file.extend(tweak.to_le_bytes());
    file.push(flags);
    file
}
