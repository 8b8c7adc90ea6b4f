//! Go's bits-and-blooms, from `WriteTo`, big-endian: `u64 m | u64 k | u64 m |
//! words`. `MarshalJSON` has the last two in base64.

use super::{MOST_BITS, MOST_HASHES, sized, with_zeros};
use crate::about::About;
use crate::bits::{Bits, Order};
use crate::bytes::View;
use crate::fields::Fields;
use crate::filter::Opened;
use crate::plain_file::{Envelope, PlainFile};
use crate::probe::Probe;
use crate::{Error, Format, Keys, Wrap};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use std::f64::consts::LN_2;
use std::sync::Arc;

pub(crate) const ABOUT: About = About {
    json: &["\"m\"", "\"k\""],
    ..About::new(&[Keys::Utf8], read)
};

fn read(file: View<'_>, _: Option<&[u8]>) -> Result<Opened, Error> {
    if file.starts_with(b"{") {
        let file = from_json(&file.read(0..file.len()))?;
        return Ok(plain_file(file[..].into())?.within(GoJson, file));
    }
    Ok(plain_file(file)?.into())
}

fn plain_file(file: View<'_>) -> Result<PlainFile, Error> {
    let mut fields = Fields::new(Format::BitsAndBlooms, file);
    let bits = fields.ranged("bits", 1..=MOST_BITS, Fields::u64_be)?;
    let hashes = fields.ranged("hashes", 1..=MOST_HASHES, Fields::u64_be)?;
    let again = fields.u64_be("length")?;
    if again != bits {
        return Err(fields.corrupt("length", bits, again));
    }
    let bits = Bits::new(
        fields.body("words", bits.div_ceil(64) * 8)?,
        bits,
        Order::BigWords,
    );
    let mut opened = PlainFile::new(bits, Probe::BitsAndBlooms { hashes });
    opened.envelopes = &[
        (Wrap::Binary, None),
        (Wrap::Json, Some(|| Arc::new(GoJson))),
    ];
    Ok(opened)
}

/// An empty filter.
pub(crate) fn create(keys: u64, rate: f64) -> Result<Vec<u8>, Error> {
    let keys = keys.max(1) as f64;
    let bits = sized(-keys * rate.ln() / (LN_2 * LN_2), MOST_BITS)?;
    let hashes = (LN_2 * bits as f64 / keys).ceil().max(1.0) as u64;
    let header: Vec<u8> = [bits, hashes, bits]
        .into_iter()
        .flat_map(u64::to_be_bytes)
        .collect();
    with_zeros(&header, 8 * bits.div_ceil(64))
}

#[derive(serde::Deserialize, serde::Serialize)]
struct Json {
    m: u64,
    k: u64,
    b: String,
}

/// The binary file equivalent to this JSON.
fn from_json(text: &[u8]) -> Result<Vec<u8>, Error> {
    let corrupt = |what, e: &dyn std::fmt::Display| {
        Error::corrupt(Format::BitsAndBlooms, what, "m, k and b", e)
    };
    let json: Json = serde_json::from_slice(text).map_err(|e| corrupt("JSON", &e))?;
    let words = URL_SAFE.decode(json.b).map_err(|e| corrupt("base64", &e))?;
    let header = [json.m, json.k].into_iter().flat_map(u64::to_be_bytes);
    Ok(header.chain(words).collect())
}

/// Its JSON; the filter uses the binary file.
#[derive(Debug)]
struct GoJson;

impl Envelope for GoJson {
    fn write(&self, file: View<'_>) -> Vec<u8> {
        let field = |at| file.array(at).map_or(0, u64::from_be_bytes);
        let json = Json {
            m: field(0),
            k: field(8),
            b: URL_SAFE.encode(file.read(16..file.len())),
        };
        serde_json::to_vec(&json).expect("numbers and text are JSON")
    }
}
