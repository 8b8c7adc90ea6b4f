//! npm's bloomfilter from version 1 on, as written by `JSON.stringify`: `version`, `m`, `k`, and 32-bit `buckets`.

use super::MOST_HASHES;
use crate::about::{About, OtherKeys};
use crate::bits::Bits;
use crate::bytes::View;
use crate::filter::Opened;
use crate::plain_file::{Envelope, PlainFile};
use crate::probe::Probe;
use crate::{Error, Format, Keys};

/// It hashes a string's 16-bit units; numbers are converted to strings.
pub(crate) const ABOUT: About = About {
    other_keys: OtherKeys::Only(&[]),
    json: &["\"version\"", "\"buckets\""],
    ..About::new(&[Keys::Utf16], read)
};

/// The JSON; its buckets are extracted for use.
#[derive(Clone, Debug, serde::Deserialize, serde::Serialize)]
struct Json {
    version: u64,
    m: u64,
    k: u64,
    buckets: Vec<u32>,
}

fn read(text: View<'_>, _: Option<&[u8]>) -> Result<Opened, Error> {
    let corrupt = |what, expected: &dyn std::fmt::Display, got: &dyn std::fmt::Display| {
        Error::corrupt(Format::NpmBloomfilter, what, expected, got)
    };
    let mut json: Json = serde_json::from_slice(&text.read(0..text.len()))
        .map_err(|e| corrupt("JSON", &"a BloomFilter of bloomfilter 1.0 or later", &e))?;
    if json.version != 1 {
        return Err(corrupt("version", &1, &json.version));
    }
    let bits = 32 * json.buckets.len() as u64;
    if bits == 0 || bits > 1 << 32 || bits != json.m {
        return Err(corrupt(
            "m",
            &format_args!("{bits}, for the buckets"),
            &json.m,
        ));
    }
    if !(1..=MOST_HASHES).contains(&json.k) {
        return Err(corrupt("k", &"1 to 1024", &json.k));
    }
    let words = std::mem::take(&mut json.buckets);
    let bytes = words.into_iter().flat_map(u32::to_le_bytes).collect();
    let probe = Probe::NpmBloomfilter { hashes: json.k };
    Ok(PlainFile::new(Bits::low(0, bits), probe).within(json, bytes))
}

impl Envelope for Json {
    fn write(&self, bits: View<'_>) -> Vec<u8> {
        let mut json = self.clone();
        let bits = bits.read(0..bits.len());
        let words = bits.as_chunks().0.iter();
        json.buckets = words.map(|word| u32::from_le_bytes(*word)).collect();
        serde_json::to_vec(&json).expect("numbers are JSON")
    }
}
