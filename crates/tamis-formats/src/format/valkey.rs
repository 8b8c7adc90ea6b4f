//! A filter of valkey-bloom, as in its dumps (the crate `bloomfilter` 3): `u8 1
//! | u64 bytes | u32 k | 32 bytes seed | bits`, little-endian.

use super::{MOST_BITS, MOST_HASHES};
use crate::about::About;
use crate::bits::Bits;
use crate::bytes::View;
use crate::fields::Fields;
use crate::plain::Plain;
use crate::plain_file::PlainFile;
use crate::probe::Probe;
use crate::{Error, Format, Keys};

pub(crate) const ABOUT: About = About {
    read_only: Some("add keys through the server"),
    ..About::new(&[Keys::Utf8], |file, _| {
        Ok(PlainFile::of(plain(file)?).into())
    })
};

pub(super) fn plain(file: View<'_>) -> Result<Plain, Error> {
    let mut fields = Fields::new(Format::Valkey, file);
    fields.ranged("version", 1..=1, Fields::u8)?;
    let bytes = fields.ranged("length", 1..=MOST_BITS / 8, Fields::u64_le)?;
    let hashes = fields.ranged("hashes", 1..=MOST_HASHES as u32, Fields::u32_le)?;
    let seed = fields.array("seed")?;
    let bits = Bits::low(fields.body("bits", bytes)?, bytes * 8);
    let hashes = hashes.into();
    Ok(Plain::new(bits, Probe::Valkey { hashes, seed }))
}
