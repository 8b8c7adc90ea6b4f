//! rbloom's `save`: `u64 k | bits`, little-endian. Nothing in it identifies the
//! format, and its user chooses the hash function. We assume the one in its
//! documentation: the first 16 bytes of SHA-256, big-endian.

use super::{MOST_BITS, MOST_HASHES};
use crate::about::{About, OtherKeys};
use crate::bits::Bits;
use crate::bytes::View;
use crate::fields::Fields;
use crate::filter::Opened;
use crate::plain_file::PlainFile;
use crate::probe::Probe;
use crate::{Error, Format, Keys};

/// The documentation hashes pickles; many users hash the text.
pub(crate) const ABOUT: About = About {
    other_keys: OtherKeys::Text,
    is_guessed: false,
    ..About::new(&[Keys::Utf8, Keys::PythonPickle], read)
};

fn read(file: View<'_>, _: Option<&[u8]>) -> Result<Opened, Error> {
    let mut fields = Fields::new(Format::Rbloom, file);
    let hashes = fields.ranged("hashes", 1..=MOST_HASHES, Fields::u64_le)?;
    let bytes = fields.left() as u64;
    let bytes = fields.within("bits", 1..=MOST_BITS / 8, bytes)?;
    let bits = Bits::low(fields.at(), bytes * 8);
    Ok(PlainFile::new(bits, Probe::Rbloom { hashes }).into())
}
