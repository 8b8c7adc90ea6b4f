//! abloom's `to_bytes`, big-endian: `"ABLM" | u8 2 | u64 capacity | f64 rate |
//! u64 blocks | u8 threads | blocks of eight u64`.

use super::MOST_BITS;
use crate::about::{About, OtherKeys};
use crate::bits::{Bits, Order};
use crate::bytes::View;
use crate::fields::Fields;
use crate::filter::Opened;
use crate::plain_file::PlainFile;
use crate::probe::Probe;
use crate::{Error, Facts, Format, Keys};

const MAGIC: &[u8] = b"ABLM";

pub(crate) const ABOUT: About = About {
    start: MAGIC,
    // Numbers are hashed differently, which the file doesn't show.
    other_keys: OtherKeys::Text,
    ..About::new(&[Keys::Utf8], read)
};

fn read(file: View<'_>, _: Option<&[u8]>) -> Result<Opened, Error> {
    let mut fields = Fields::new(Format::Abloom, file);
    let magic = fields.take("magic", 4)?;
    if *magic != *MAGIC {
        return Err(fields.corrupt("magic", "ABLM", String::from_utf8_lossy(&magic)));
    }
    fields.ranged("version", 2..=2, Fields::u8)?;
    let capacity = fields.u64_be("capacity")?;
    let rate = f64::from_bits(fields.u64_be("rate")?);
    let blocks = fields.ranged("blocks", 1..=MOST_BITS / 512, Fields::u64_be)?;
    fields.u8("threads")?;
    let bits = Bits::new(
        fields.body("blocks", blocks * 64)?,
        blocks * 512,
        Order::BigWords,
    );
    let facts = Facts {
        capacity: Some(capacity),
        rate: Some(rate),
        ..Facts::default()
    };
    Ok(PlainFile::new(bits, Probe::Abloom { blocks })
        .facts(facts)
        .into())
}
