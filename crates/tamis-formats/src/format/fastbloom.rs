//! The crate fastbloom's `BloomFilter` with its own hasher, as JSON by serde:
//! words, the number of hashes but one, and a SipHash-1-3 that has hashed
//! nothing yet.

use super::{MOST_HASHES, json_begins};
use crate::bits::{Bits, Order};
use crate::plain::Plain;
use crate::probe::Probe;
use crate::{Error, Format, Keys};

/// `str` and String, or integers.
pub(crate) const KEYS: &[Keys] = &[Keys::RustStr, Keys::Uint64, Keys::Int64, Keys::Int32];

/// What the JSON says beside the bits.
#[derive(Clone, Debug, PartialEq, serde::Deserialize, serde::Serialize)]
pub(crate) struct Json {
    bits: Words,
    num_hashes_minus_one: u32,
    hasher: serde_json::Value,
}

#[derive(Clone, Debug, PartialEq, serde::Deserialize, serde::Serialize)]
struct Words {
    bits: Vec<u64>,
}

/// Whether its beginning is that of one.
pub(crate) fn is_like(text: &[u8]) -> bool {
    json_begins(text, &["{\"bits\":{\"bits\":["])
}

/// The JSON without its bits, the bits, and what they are.
pub(crate) fn read(text: &[u8]) -> Result<(Json, Vec<u8>, Plain), Error> {
    let corrupt = |what, expected: &dyn std::fmt::Display, got: &dyn std::fmt::Display| {
        Error::corrupt(Format::Fastbloom, what, expected, got)
    };
    let mut json: Json = serde_json::from_slice(text)
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
    let bits = Bits {
        at: 0,
        len: 64 * words.len() as u64,
        order: Order::Low,
    };
    let probe = Probe::Fastbloom {
        hashes,
        bits: bits.len,
        secret,
    };
    let bytes = words.into_iter().flat_map(u64::to_le_bytes).collect();
    Ok((json, bytes, Plain::new(bits, probe)))
}

pub(crate) fn write(json: &Json, bytes: &[u8]) -> Vec<u8> {
    let mut json = json.clone();
    let words = bytes
        .as_chunks()
        .0
        .iter()
        .map(|word| u64::from_le_bytes(*word));
    json.bits.bits = words.collect();
    serde_json::to_vec(&json).expect("numbers and text are JSON")
}
