//! The crate and Python package fastbloom_rs, `save_to_file_with_hashes`: `u32 hashes`, big-endian, and little-endian words.

use super::{MOST_BITS, MOST_HASHES};
use crate::about::About;
use crate::bits::Bits;
use crate::bytes::View;
use crate::fields::Fields;
use crate::filter::Opened;
use crate::plain_file::PlainFile;
use crate::probe::Probe;
use crate::{Error, Format, Keys};

/// Any file may begin with a small number.
pub(crate) const ABOUT: About = About {
    is_guessed: false,
    ..About::new(&[Keys::Utf8, Keys::Int64], read)
};

fn read(file: View<'_>, _: Option<&[u8]>) -> Result<Opened, Error> {
    let mut fields = Fields::new(Format::FastbloomRs, file);
    let hashes = fields.ranged("hashes", 1..=MOST_HASHES as u32, Fields::u32_be)?;
    let bytes = fields.left() as u64;
    if bytes == 0 || !bytes.is_multiple_of(8) || bytes > MOST_BITS / 8 {
        return Err(fields.corrupt("length", "words of 8 bytes", format_args!("{bytes} bytes")));
    }
    let bits = Bits::low(fields.at(), 8 * bytes);
    let probe = Probe::FastbloomRs {
        hashes: hashes.into(),
    };
    Ok(PlainFile::new(bits, probe).into())
}
