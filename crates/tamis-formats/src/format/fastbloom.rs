//! The crate fastbloom's `BloomFilter` with its default hasher, as JSON by
//! serde: words, the number of hashes minus one, and a fresh SipHash-1-3.

use super::MOST_HASHES;
use crate::about::{About, OtherKeys};
use crate::bits::Bits;
use crate::bytes::View;
use crate::filter::Opened;
use crate::plain_file::{Envelope, PlainFile};
use crate::probe::Probe;
use crate::{Error, Format, Keys};

/// `str` and String, or integers.
const KEYS: &[Keys] = &[Keys::RustStr, Keys::Uint64, Keys::Int64, Keys::Int32];

pub(crate) const ABOUT: About = About {
    other_keys: OtherKeys::Only(&[]),
    json: &["{\"bits\":{\"bits\":["],
    ..About::new(KEYS, read)
};

/// The JSON; its bits are extracted for use.
#[derive(Clone, Debug, serde::Deserialize, serde::Serialize)]
struct Json {
    bits: Words,
    num_hashes_minus_one: u32,
    hasher: serde_json::Value,
}

#[derive(Clone, Debug, serde::Deserialize, serde::Serialize)]
struct Words {
    bits: Vec<u64>,
}

fn read(text: View<'_>, _: Option<&[u8]>) -> Result<Opened, Error> {
    let corrupt = |what, expected: &dyn std::fmt::Display, got: &dyn std::fmt::Display| {
        Error::corrupt(Format::Fastbloom, what, expected, got)
    };
    let mut json: Json = serde_json::from_slice(&text.read(0..text.len()))
        .map_err(|e| corrupt("JSON", &"a BloomFilter of fastbloom 0.12 or later", &e))?;
    let words = std::mem::take(&mut json.bits.bits);
    if words.is_empty() {
        return Err(corrupt("bits", &"words", &"none"));
    }
    let hashes = u64::from(json.num_hashes_minus_one) + 1;
    if hashes > MOST_HASHES {
        return Err(corrupt("hashes", &"1 to 1024", &hashes));
    }
    let sip = &json.hasher["hasher"]["hasher"];
    let number = |name: &str| {
        let number = sip[name].as_u64();
        number.ok_or_else(|| corrupt("hasher", &"fastbloom's own, SipHash-1-3", &json.hasher))
    };
    if !has_whole_numbers_only(&json.hasher) {
        return Err(corrupt("hasher", &"numbers of 64 bits", &json.hasher));
    }
    if number("length")? != 0 {
        return Err(corrupt(
            "hasher",
            &"one that has hashed nothing",
            &json.hasher,
        ));
    }
    let mut secret = [0; 16];
    secret[..8].copy_from_slice(&number("k0")?.to_le_bytes());
    secret[8..].copy_from_slice(&number("k1")?.to_le_bytes());
    let bits = Bits::low(0, 64 * words.len() as u64);
    let probe = Probe::Fastbloom {
        hashes,
        bits: bits.len,
        secret,
    };
    let bytes = words.into_iter().flat_map(u64::to_le_bytes).collect();
    Ok(PlainFile::new(bits, probe).within(json, bytes))
}

/// The hasher is written back as read, which only works for such numbers.
fn has_whole_numbers_only(value: &serde_json::Value) -> bool {
    match value {
        serde_json::Value::Number(number) => number.is_u64(),
        serde_json::Value::Array(values) => values.iter().all(has_whole_numbers_only),
        serde_json::Value::Object(fields) => fields.values().all(has_whole_numbers_only),
        _ => true,
    }
}

impl Envelope for Json {
    fn write(&self, bits: View<'_>) -> Vec<u8> {
        let mut json = self.clone();
        let bits = bits.read(0..bits.len());
        let words = bits.as_chunks().0.iter();
        json.bits.bits = words.map(|word| u64::from_le_bytes(*word)).collect();
        serde_json::to_vec(&json).expect("numbers and text are JSON")
    }
}
