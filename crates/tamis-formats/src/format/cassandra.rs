//! Cassandra's `Filter.db` from version 4 on: `i32 k | i32 words | bytes`,
//! big-endian, the bytes with their lowest bit first.

use super::MOST_HASHES;
use crate::bits::{Bits, Order};
use crate::fields::Fields;
use crate::plain::Plain;
use crate::probe::Probe;
use crate::{Error, Facts, Format, Keys};

/// Partition keys, as serialised.
pub(crate) const KEYS: &[Keys] = &[Keys::Utf8];

pub(crate) fn read(file: &[u8]) -> Result<(Plain, Facts), Error> {
    let mut fields = Fields::new(Format::Cassandra, file);
    let hashes = fields.u32_be("hashes")?;
    let hashes = fields.within("hashes", 1..=MOST_HASHES as u32, hashes)?;
    let words = fields.u32_be("words")?;
    let words = u64::from(fields.within("words", 1..=i32::MAX as u32, words)?);
    let bits = Bits {
        at: fields.body("words", words * 8)?,
        len: words * 64,
        order: Order::Low,
    };
    Ok((
        Plain::new(bits, Probe::Cassandra { hashes }),
        Facts::default(),
    ))
}
