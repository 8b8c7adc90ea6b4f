//! pybloom_live's `tofile`, little-endian. `BloomFilter`: `f64 rate | u64 slices | u64 bits of a slice | u64 capacity |
//! u64 keys | bits`. `ScalableBloomFilter`: `i32 growth | f64 ratio | u64 first capacity | f64 rate | i32 filters`, the
//! length of each, and each as a `BloomFilter`.

use super::{MOST_BITS, MOST_HASHES};
use crate::about::{About, OtherKeys};
use crate::bits::Bits;
use crate::bytes::View;
use crate::fields::Fields;
use crate::filter::Opened;
use crate::layers::Layers;
use crate::plain::Plain;
use crate::probe::Probe;
use crate::slices::{Digest, Slices};
use crate::{Error, Facts, Format, Keys};

/// Keys are converted by `str(key)`, so numbers are hashed as text.
pub(crate) const ABOUT: About = About {
    other_keys: OtherKeys::Only(&[Keys::Upper, Keys::Lower]),
    read_only: Some(READ_ONLY),
    ..About::new(&[Keys::Utf8], read)
};

const READ_ONLY: &str =
    "the file does not say which version hashes its keys, and a full one is followed by another";
/// Each filter holds at least twice as many keys as the one before: more can't fit in memory.
const MOST_FILTERS: u32 = 64;

fn read(file: View<'_>, _: Option<&[u8]>) -> Result<Opened, Error> {
    // The two can't be confused: the length fits only one of them.
    let filter = scalable(file).or_else(|_| {
        let (plain, facts) = one(file, 0..file.len())?;
        Ok::<_, Error>(layers(vec![plain], facts))
    })?;
    Ok(filter.into())
}

fn layers(plains: Vec<Plain>, facts: Facts) -> Layers {
    Layers {
        plains,
        facts,
        read_only: READ_ONLY,
        original: None,
    }
}

fn scalable(file: View<'_>) -> Result<Layers, Error> {
    let mut fields = Fields::new(Format::PybloomLive, file);
    fields.ranged("growth", 2..=4, Fields::u32_le)?;
    fields.ranged("ratio", f64::MIN_POSITIVE..=1.0, Fields::f64_le)?;
    fields.ranged("first capacity", 1..=MOST_BITS, Fields::u64_le)?;
    let rate = fields.ranged("rate", f64::MIN_POSITIVE..=1.0, Fields::f64_le)?;
    let count = fields.ranged("filters", 1..=MOST_FILTERS, Fields::u32_le)?;
    let lengths = (0..count).map(|_| fields.u64_le("length of a filter"));
    let lengths = lengths.collect::<Result<Vec<u64>, _>>()?;
    let mut plains = Vec::new();
    let mut facts = Facts {
        capacity: Some(0),
        keys: Some(0),
        ..Facts::default()
    };
    let mut no = 1.0;
    for length in lengths {
        let at = fields.skip("filter", length)?;
        let (plain, its) = one(file, at..fields.at())?;
        let sum = |ours: Option<u64>, its: Option<u64>| Some(ours?.saturating_add(its?));
        facts.capacity = sum(facts.capacity, its.capacity);
        facts.keys = sum(facts.keys, its.keys);
        no *= 1.0 - its.rate.unwrap_or(1.0);
        plains.push(plain);
    }
    fields.body("end", 0)?;
    // Only the first filter has the requested rate; those of the others add to it.
    facts.rate = Some(rate.max(1.0 - no));
    Ok(layers(plains, facts))
}

fn one(file: View<'_>, range: std::ops::Range<usize>) -> Result<(Plain, Facts), Error> {
    let start = range.start;
    let mut fields = Fields::new(Format::PybloomLive, file.slice(range));
    let rate = fields.ranged("rate", f64::MIN_POSITIVE..=1.0, Fields::f64_le)?;
    let slices = fields.ranged("slices", 1..=MOST_HASHES, Fields::u64_le)?;
    let long = fields.ranged("bits of a slice", 1..=MOST_BITS / slices, Fields::u64_le)?;
    let capacity = fields.ranged("capacity", 1..=MOST_BITS, Fields::u64_le)?;
    let keys = fields.ranged("keys", 0..=MOST_BITS, Fields::u64_le)?;
    // Both numbers follow from the capacity and the rate.
    let (expected, bits) = shape(capacity, rate);
    if slices as f64 != expected || (long as f64 - bits).abs() > 1.0 {
        let expected = format_args!("{expected} slices of {bits} bits, by capacity and rate");
        return Err(fields.corrupt("shape", expected, format_args!("{slices} of {long}")));
    }
    let bits = slices * long;
    let at = start + fields.body("bits", bits.div_ceil(8))?;
    let hashes = Slices::new(slices, long, false);
    let other = (hashes.digest == Digest::Xxh128).then(|| Slices::new(slices, long, true));
    let probe = Probe::Slices {
        slices: Box::new(hashes),
        other: other.map(Box::new),
    };
    let facts = Facts {
        capacity: Some(capacity),
        rate: Some(rate),
        keys: Some(keys),
        ..Facts::default()
    };
    Ok((Plain::new(Bits::low(at, bits), probe), facts))
}

/// The number of slices and their bits.
fn shape(capacity: u64, rate: f64) -> (f64, f64) {
    let slices = (1.0 / rate).log2().ceil().max(1.0);
    let ln_2 = std::f64::consts::LN_2;
    let bits = (capacity as f64 * rate.ln().abs() / (slices * ln_2 * ln_2)).ceil();
    (slices, bits)
}
