//! abloom's `to_bytes`, big-endian: `"ABLM" | u8 2 | u64 capacity | f64 rate |
//! u64 blocks | u8 threads | blocks of eight u64`.

use super::MOST_BITS;
use crate::bits::{Bits, Order};
use crate::fields::Fields;
use crate::plain::Plain;
use crate::probe::Probe;
use crate::{Error, Facts, Format, Keys};

/// Text and bytes. Numbers are hashed in another way, which bytes don't show.
pub(crate) const KEYS: &[Keys] = &[Keys::Utf8];

pub(crate) const MAGIC: &[u8] = b"ABLM";

pub(crate) fn read(file: &[u8]) -> Result<(Plain, Facts), Error> {
    let mut fields = Fields::new(Format::Abloom, file);
    let magic = fields.take("magic", 4)?;
    if magic != MAGIC {
        return Err(fields.corrupt("magic", "ABLM", String::from_utf8_lossy(magic)));
    }
    let version = fields.u8("version")?;
    fields.within("version", 2..=2, version)?;
    let capacity = fields.u64_be("capacity")?;
    let rate = f64::from_bits(fields.u64_be("rate")?);
    let blocks = fields.u64_be("blocks")?;
    let blocks = fields.within("blocks", 1..=MOST_BITS / 512, blocks)?;
    fields.u8("threads")?;
    let bits = Bits {
        at: fields.body("blocks", blocks * 64)?,
        len: blocks * 512,
        order: Order::BigWords,
    };
    let facts = Facts {
        capacity: Some(capacity),
        rate: Some(rate),
        ..Facts::default()
    };
    Ok((Plain::new(bits, Probe::Abloom { blocks }), facts))
}
