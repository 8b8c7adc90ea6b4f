//! A filter of valkey-bloom, as its dumps hold it (the crate `bloomfilter` 3):
//! `u8 1 | u64 bytes | u32 k | 32 bytes seed | bits`, little-endian.

use super::{MOST_BITS, MOST_HASHES};
use crate::bits::{Bits, Order};
use crate::fields::Fields;
use crate::plain::Plain;
use crate::probe::Probe;
use crate::{Error, Facts, Format, Keys};

/// Its keys are bytes.
pub(crate) const KEYS: &[Keys] = &[Keys::Utf8];

pub(crate) fn read(file: &[u8]) -> Result<(Plain, Facts), Error> {
    let mut fields = Fields::new(Format::Valkey, file);
    let version = fields.u8("version")?;
    fields.within("version", 1..=1, version)?;
    let bytes = fields.u64_le("length")?;
    let bytes = fields.within("length", 1..=MOST_BITS / 8, bytes)?;
    let hashes = fields.u32_le("hashes")?;
    let hashes = fields.within("hashes", 1..=MOST_HASHES as u32, hashes)?;
    let seed = fields.take("seed", 32)?;
    let seed = std::array::from_fn(|i| seed[i]);
    let bits = Bits {
        at: fields.body("bits", bytes)?,
        len: bytes * 8,
        order: Order::Low,
    };
    Ok((
        Plain::new(bits, Probe::Valkey { hashes, seed }),
        Facts::default(),
    ))
}
