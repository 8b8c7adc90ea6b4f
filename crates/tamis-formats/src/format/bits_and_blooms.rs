//! Go's bits-and-blooms, `WriteTo`, big-endian: `u64 m | u64 k | u64 m |
//! words`. `MarshalJSON` has the last two in base64.

use super::{MOST_BITS, MOST_HASHES, json_begins, sized, with_zeros};
use crate::bits::{Bits, Order};
use crate::fields::Fields;
use crate::plain::Plain;
use crate::probe::Probe;
use crate::{Error, Facts, Format, Keys};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use std::f64::consts::LN_2;

/// Its keys are bytes.
pub(crate) const KEYS: &[Keys] = &[Keys::Utf8];

pub(crate) fn read(file: &[u8]) -> Result<(Plain, Facts), Error> {
    let mut fields = Fields::new(Format::BitsAndBlooms, file);
    let bits = fields.u64_be("bits")?;
    let bits = fields.within("bits", 1..=MOST_BITS, bits)?;
    let hashes = fields.u64_be("hashes")?;
    let hashes = fields.within("hashes", 1..=MOST_HASHES, hashes)?;
    let again = fields.u64_be("length")?;
    if again != bits {
        return Err(fields.corrupt("length", bits, again));
    }
    let bits = Bits {
        at: fields.body("words", bits.div_ceil(64) * 8)?,
        len: bits,
        order: Order::BigWords,
    };
    Ok((
        Plain::new(bits, Probe::BitsAndBlooms { hashes }),
        Facts::default(),
    ))
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

/// Whether its beginning is that of its JSON.
pub(crate) fn is_like(text: &[u8]) -> bool {
    json_begins(text, &["\"m\"", "\"k\""])
}

/// The binary file that JSON stands for.
pub(crate) fn from_json(text: &[u8]) -> Result<Vec<u8>, Error> {
    let corrupt = |what, e: &dyn std::fmt::Display| {
        Error::corrupt(Format::BitsAndBlooms, what, "m, k and b", e)
    };
    let json: Json = serde_json::from_slice(text).map_err(|e| corrupt("JSON", &e))?;
    let words = URL_SAFE.decode(json.b).map_err(|e| corrupt("base64", &e))?;
    let header = [json.m, json.k].into_iter().flat_map(u64::to_be_bytes);
    Ok(header.chain(words).collect())
}

/// The JSON of a binary file that has been read.
pub(crate) fn to_json(file: &[u8]) -> Vec<u8> {
    let field = |at: usize| u64::from_be_bytes(std::array::from_fn(|i| file[at + i]));
    let json = Json {
        m: field(0),
        k: field(8),
        b: URL_SAFE.encode(&file[16..]),
    };
    serde_json::to_vec(&json).expect("numbers and text are JSON")
}
