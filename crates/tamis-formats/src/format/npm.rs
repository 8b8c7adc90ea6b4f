//! npm's bloom-filters, from `saveAsJSON`: sizes, a seed, and the bits in base64. A `CountingBloomFilter` has bits and
//! counts; a `PartitionedBloomFilter` has bits in slices, and a `ScalableBloomFilter` several of those. An `XorFilter`
//! has fingerprints, each in base64.

use super::fastfilter::Table;
use super::{MOST_BITS, MOST_HASHES, sized, with_zeros};
use crate::about::About;
use crate::bits::{Bits, Modulus};
use crate::bytes::View;
use crate::filter::Opened;
use crate::layers::Layers;
use crate::plain::Plain;
use crate::plain_file::{Envelope, PlainFile};
use crate::probe::Probe;
use crate::{Error, Facts, Format, Keys};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::f64::consts::LN_2;

pub(crate) const ABOUT: About = About {
    json: &["\"type\"", "Filter\""],
    ..About::new(&[Keys::Utf8], read)
};

/// The JSON; its bits are extracted for use.
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

#[derive(serde::Deserialize)]
struct OfType {
    r#type: String,
}

#[derive(serde::Deserialize)]
struct Counting {
    _size: u64,
    #[serde(rename = "_nbHashes")]
    hashes: u64,
    /// Whether the counter is above 0, followed by the counter.
    _filter: Vec<(u8, i64)>,
    _length: i64,
    _seed: u64,
}

#[derive(serde::Deserialize)]
struct Partitioned {
    /// Bits per slice.
    _m: u64,
    #[serde(rename = "_nbHashes")]
    hashes: u64,
    _filter: Vec<Content>,
    _seed: u64,
}

#[derive(serde::Deserialize)]
struct Scalable {
    _filters: Vec<Partitioned>,
}

#[derive(serde::Deserialize)]
struct Xor {
    _filter: Vec<String>,
    _bits: u64,
    /// The number of keys.
    _size: u64,
    #[serde(rename = "_blockLength")]
    block: u64,
    _seed: i64,
}

fn parse<T: serde::de::DeserializeOwned>(text: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(text)
        .map_err(|e| Error::corrupt(Format::Npm, "JSON", "a filter of bloom-filters", e))
}

/// Checks the number of a filter's bits and hashes.
fn check(bits: u64, hashes: u64) -> Result<(), Error> {
    if !(1..=MOST_BITS).contains(&bits) {
        return Err(Error::corrupt(Format::Npm, "bits", "1 to 2^48", bits));
    }
    if !(1..=MOST_HASHES).contains(&hashes) {
        return Err(Error::corrupt(
            Format::Npm,
            "_nbHashes",
            "1 to 1024",
            hashes,
        ));
    }
    Ok(())
}

fn counting(json: Counting, text: &[u8]) -> Result<Opened, Error> {
    check(json._size, json.hashes)?;
    if json._filter.len() as u64 != json._size {
        let got = json._filter.len();
        return Err(Error::corrupt(Format::Npm, "_filter", json._size, got));
    }
    let mut bytes = vec![0; json._filter.len().div_ceil(8)];
    for (i, (bit, _)) in json._filter.iter().enumerate() {
        bytes[i / 8] |= u8::from(*bit != 0) << (i % 8);
    }
    let probe = Probe::Npm {
        hashes: json.hashes,
        seed: json._seed,
    };
    let filter = Layers {
        plains: vec![Plain::new(Bits::low(0, json._size), probe)],
        facts: Facts {
            keys: u64::try_from(json._length).ok(),
            ..Facts::default()
        },
        read_only: "its counters are not kept here",
        original: Some(text.into()),
    };
    Ok(Opened::new(filter, bytes))
}

/// Several sliced filters; a key may be in any of them.
fn layered(filters: Vec<Partitioned>, text: &[u8]) -> Result<Opened, Error> {
    let corrupt = |what, expected: &dyn std::fmt::Display, got: &dyn std::fmt::Display| {
        Error::corrupt(Format::Npm, what, expected, got)
    };
    let (mut plains, mut bytes) = (Vec::new(), Vec::new());
    for filter in filters {
        check(filter._m, filter.hashes)?;
        if filter._filter.len() as u64 != filter.hashes {
            let got = filter._filter.len();
            return Err(corrupt("_filter", &filter.hashes, &got));
        }
        let start = bytes.len();
        let long = filter._m.div_ceil(8) as usize;
        for slice in &filter._filter {
            let decoded = STANDARD.decode(&slice.content);
            let decoded = decoded.map_err(|e| corrupt("content", &"base64", &e))?;
            let got = decoded.len();
            let slice = decoded.get(..long);
            bytes.extend_from_slice(
                slice.ok_or_else(|| corrupt("content", &format_args!("{long} bytes"), &got))?,
            );
        }
        let slice = 8 * long as u64;
        let probe = Probe::NpmSlices {
            hashes: filter.hashes,
            seed: filter._seed,
            slice,
        };
        let bits = Bits::low(start, slice * filter.hashes);
        plains.push(Plain::with_modulus(bits, probe, Modulus::new(filter._m)));
    }
    if plains.is_empty() {
        return Err(corrupt("_filters", &"filters", &"none"));
    }
    let filter = Layers {
        plains,
        facts: Facts::default(),
        read_only: "what a full one is followed by is not known here",
        original: Some(text.into()),
    };
    Ok(Opened::new(filter, bytes))
}

fn xor(json: Xor) -> Result<Opened, Error> {
    let corrupt = |what, expected: &dyn std::fmt::Display, got: &dyn std::fmt::Display| {
        Error::corrupt(Format::Npm, what, expected, got)
    };
    let width = match json._bits {
        8 => 1,
        16 => 2,
        other => return Err(corrupt("_bits", &"8 or 16", &other)),
    };
    let count = json._filter.len();
    if count == 0 || json.block.checked_mul(3) != Some(count as u64) {
        let expected = format_args!("three blocks of {}", json.block);
        return Err(corrupt("_filter", &expected, &count));
    }
    let mut bytes = Vec::with_capacity(count * width);
    for fingerprint in &json._filter {
        let decoded = STANDARD.decode(fingerprint);
        let decoded = decoded.map_err(|e| corrupt("_filter", &"base64", &e))?;
        if decoded.len() != width {
            let expected = format_args!("fingerprints of {} bits", json._bits);
            let got = format_args!("one of {} bytes", decoded.len());
            return Err(corrupt("_filter", &expected, &got));
        }
        bytes.extend(decoded);
    }
    Ok(Table::npm(json._seed, json._size, width, bytes).into())
}

fn read(text: View<'_>, _: Option<&[u8]>) -> Result<Opened, Error> {
    let corrupt = |what, expected: &dyn std::fmt::Display, got: &dyn std::fmt::Display| {
        Error::corrupt(Format::Npm, what, expected, got)
    };
    let text = text.read(0..text.len());
    let of_type: OfType = parse(&text)?;
    match of_type.r#type.as_str() {
        "BloomFilter" => {}
        "CountingBloomFilter" => return counting(parse(&text)?, &text),
        "PartitionedBloomFilter" => return layered(vec![parse(&text)?], &text),
        "ScalableBloomFilter" => return layered(parse::<Scalable>(&text)?._filters, &text),
        "XorFilter" => return xor(parse(&text)?),
        // It moves fingerprints to buckets where it doesn't look for them: with 1,000 keys in a filter made for as
        // many, it denies some 270 itself.
        "CuckooFilter" => {
            return Err(Error::Unable {
                format: Format::Npm,
                what: "be read if their type is CuckooFilter",
                instead: "the package moves keys to where it doesn't look for them, and denies them itself; build one \
                          anew, in another format",
            });
        }
        other => {
            let expected =
                "BloomFilter or XorFilter, or a counting, a partitioned or a scalable one";
            return Err(corrupt("type", &expected, &other));
        }
    }
    let mut json: Json = parse(&text)?;
    check(json._size, json.hashes)?;
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
