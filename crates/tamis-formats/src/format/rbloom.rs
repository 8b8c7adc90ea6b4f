//! rbloom's `save`: `u64 k | bits`, little-endian. Nothing in it can be
//! recognised, and the hash is a function of its user's. What is assumed is that
//! of its documentation: the first 16 bytes of SHA-256, big-endian.

use super::{MOST_BITS, MOST_HASHES};
use crate::bits::{Bits, Order};
use crate::fields::Fields;
use crate::plain::Plain;
use crate::probe::Probe;
use crate::{Error, Facts, Format, Keys};

/// The documentation hashes pickles; many hash the text.
pub(crate) const KEYS: &[Keys] = &[Keys::Utf8, Keys::PythonPickle];

pub(crate) fn read(file: &[u8]) -> Result<(Plain, Facts), Error> {
    let mut fields = Fields::new(Format::Rbloom, file);
    let hashes = fields.u64_le("hashes")?;
    let hashes = fields.within("hashes", 1..=MOST_HASHES, hashes)?;
    let bytes = fields.rest().len() as u64;
    let bytes = fields.within("bits", 1..=MOST_BITS / 8, bytes)?;
    let bits = Bits {
        at: fields.at(),
        len: bytes * 8,
        order: Order::Low,
    };
    Ok((Plain::new(bits, Probe::Rbloom { hashes }), Facts::default()))
}
