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

/// Not guessed, because any file may begin with a small number.
pub(crate) const ABOUT: About = About {
    is_guessed: false,
    ..About::new(&[Keys::Utf8, Keys::Int64], read)
};

fn read(file: View<'_>, _: Option<&[u8]>) -> Result<Opened, Error> {
    let mut fields = Fields::new(Format::FastbloomRs, file);
    let bytes = fields.left().saturating_sub(4) as u64;
    // Files of `save_to_file`, and counters from a counting filter's `get_bytes`, are 4 bytes shorter.
    if bytes == 0 || !bytes.is_multiple_of(8) || bytes > MOST_BITS / 8 {
        let expected = "the number of hashes and words of 8 bytes (save_to_file_with_hashes)";
        let got = format_args!("{} bytes", file.len());
        return Err(fields.corrupt("length", expected, got));
    }
    let hashes = fields.ranged("hashes", 1..=MOST_HASHES as u32, Fields::u32_be)?;
    let bits = Bits::low(fields.at(), 8 * bytes);
    let probe = Probe::FastbloomRs {
        hashes: hashes.into(),
    };
    Ok(PlainFile::new(bits, probe).into())
}
