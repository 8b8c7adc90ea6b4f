//! Bitcoin's BIP 37 (`filterload`): `varint length | bits | u32 k | u32 tweak |
//! u8 flags`, little-endian.

use crate::bits::{Bits, Order};
use crate::fields::Fields;
use crate::plain::Plain;
use crate::probe::Probe;
use crate::{Error, Facts, Format, Keys};
use std::f64::consts::LN_2;

/// Its keys are bytes.
pub(crate) const KEYS: &[Keys] = &[Keys::Utf8];

const MOST_BYTES: u64 = 36_000;
const MOST_HASHES: u32 = 50;

pub(crate) fn read(file: &[u8]) -> Result<(Plain, Facts), Error> {
    let mut fields = Fields::new(Format::Bip37, file);
    let bytes = match fields.u8("length")? {
        short @ 0..=0xFC => u64::from(short),
        0xFD => fields.u16_le("length")?.into(),
        0xFE => fields.u32_le("length")?.into(),
        0xFF => fields.u64_le("length")?,
    };
    let bytes = fields.within("length", 1..=MOST_BYTES, bytes)?;
    let at = fields.at();
    fields.take("bits", bytes)?;
    let hashes = fields.u32_le("hashes")?;
    let hashes = fields.within("hashes", 1..=MOST_HASHES, hashes)?;
    let tweak = fields.u32_le("tweak")?;
    let flags = fields.u8("flags")?;
    fields.within("flags", 0..=2, flags)?;
    fields.body("end", 0)?;
    let bits = Bits {
        at,
        len: bytes * 8,
        order: Order::Low,
    };
    Ok((
        Plain::new(bits, Probe::Bip37 { hashes, tweak }),
        Facts::default(),
    ))
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
