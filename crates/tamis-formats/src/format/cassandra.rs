//! Cassandra's `Filter.db` from version 4 on: `i32 k | i32 words | bytes`,
//! big-endian, the bytes with their lowest bit first.

use super::MOST_HASHES;
use crate::about::About;
use crate::bits::Bits;
use crate::bytes::View;
use crate::fields::Fields;
use crate::filter::Opened;
use crate::plain_file::PlainFile;
use crate::probe::Probe;
use crate::{Error, Format, Keys};

/// Its keys are serialised partition keys.
pub(crate) const ABOUT: About = About {
    read_only: Some("Cassandra writes a new one with every SSTable"),
    ..About::new(&[Keys::Utf8], read)
};

fn read(file: View<'_>, _: Option<&[u8]>) -> Result<Opened, Error> {
    let mut fields = Fields::new(Format::Cassandra, file);
    let hashes = fields.ranged("hashes", 1..=MOST_HASHES as u32, Fields::u32_be)?;
    let words = u64::from(fields.ranged("words", 1..=i32::MAX as u32, Fields::u32_be)?);
    let bits = Bits::low(fields.body("words", words * 8)?, words * 64);
    Ok(PlainFile::new(
        bits,
        Probe::Cassandra {
            hashes: hashes.into(),
        },
    )
    .into())
}
