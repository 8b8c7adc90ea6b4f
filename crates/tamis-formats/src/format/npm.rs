//! npm's bloom-filters, `saveAsJSON` of a `BloomFilter`: sizes, a seed, and the
//! bits in base64.

use super::{MOST_BITS, MOST_HASHES, sized, with_zeros};
use crate::about::About;
use crate::bits::Bits;
use crate::bytes::View;
use crate::filter::Opened;
use crate::plain_file::{Envelope, PlainFile};
use crate::probe::Probe;
use crate::{Error, Format, Keys};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::f64::consts::LN_2;

pub(crate) const ABOUT: About = About {
    json: &["\"type\"", "\"BloomFilter\""],
    ..About::new(&[Keys::Utf8], read)
};

/// The JSON, whose bits are taken out to be worked on.
#[derive(Clone, Debug, serde::Deserialize, serde::Serialize)]
struct Json {
    r#type: String,
    _size: u64,
    #[serde(rename = "_nbHashes")]
    hashes: u64,
    _filter: Content,
    _seed: u64,
}

#[derive(Clone, Debug, serde::Deserialize, serde::Serialize)]
struct Content {
    size: u64,
    content: String,
}

fn read(text: View<'_>, _: Option<&[u8]>) -> Result<Opened, Error> {
    let corrupt = |what, expected: &dyn std::fmt::Display, got: &dyn std::fmt::Display| {
        Error::corrupt(Format::Npm, what, expected, got)
    };
    let mut json: Json = serde_json::from_slice(&text.read(0..text.len()))
        .map_err(|e| corrupt("JSON", &"a BloomFilter of bloom-filters", &e))?;
    if json.r#type != "BloomFilter" {
        return Err(corrupt("type", &"BloomFilter", &json.r#type));
    }
    if !(1..=MOST_BITS).contains(&json._size) {
        return Err(corrupt("_size", &"1 to 2^48", &json._size));
    }
    if !(1..=MOST_HASHES).contains(&json.hashes) {
        return Err(corrupt("_nbHashes", &"1 to 1024", &json.hashes));
    }
    let bytes = STANDARD
        .decode(std::mem::take(&mut json._filter.content))
        .map_err(|e| corrupt("content", &"base64", &e))?;
    let bits = Bits::low(0, json._size);
    if (bytes.len() as u64) < bits.bytes() {
        return Err(corrupt(
            "content",
            &format_args!("{} bytes", bits.bytes()),
            &bytes.len(),
        ));
    }
    let probe = Probe::Npm {
        hashes: json.hashes,
        seed: json._seed,
    };
    Ok(PlainFile::new(bits, probe).within(json, bytes))
}

impl Envelope for Json {
    fn write(&self, bits: View<'_>) -> Vec<u8> {
        let mut json = self.clone();
        json._filter.content = STANDARD.encode(bits.read(0..bits.len()));
        serde_json::to_vec(&json).expect("numbers and text are JSON")
    }
}

/// The JSON of an empty filter.
pub(crate) fn create(keys: u64, rate: f64, seed: u64) -> Result<Vec<u8>, Error> {
    let keys = keys.max(1) as f64;
    let size = sized(-(keys * rate.ln()) / (LN_2 * LN_2), MOST_BITS)?;
    let hashes = (size as f64 / keys * LN_2).ceil().max(1.0) as u64;
    let bytes = size.div_ceil(8);
    let json = Json {
        r#type: "BloomFilter".into(),
        _size: size,
        hashes,
        _filter: Content {
            size: bytes * 8,
            content: String::new(),
        },
        _seed: seed,
    };
    Ok(json.write(with_zeros(&[], bytes)?[..].into()))
}
