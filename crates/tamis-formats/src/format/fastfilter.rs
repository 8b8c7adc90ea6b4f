//! Xor and binary fuse filters of FastFilter: from their C header, Go's xorfilter, and Rust's xorf.
//! Little-endian; fingerprints have 8, 16 or 32 bits. npm's bloom-filters has the same xor filter,
//! but with hashed keys.
//!
//! ```text
//! C, xor          u64 seed | u64 block | fingerprints, three blocks
//! xorf, bincode   u64 seed | u64 block | u64 fingerprints | fingerprints
//! C, fuse         u64 seed | u32 segment | u32 segments | u32 both | u32 fingerprints | fingerprints
//! Go, fuse        u64 seed | u32 segment | u32 mask | u32 segments | u32 both | u32 fingerprints | ...
//! xorf, JSON      the same fields by name
//! ```

use crate::about::{About, OtherKeys};
use crate::bytes::View;
use crate::fields::Fields;
use crate::filter::{Filter, Opened};
use crate::{Error, Facts, Format, Keys};
use tamis::internals::raw::{Cell, Explanation, Look};

/// Its keys are 64-bit numbers, often hashes computed by its user.
pub(crate) const ABOUT: About = About {
    other_keys: OtherKeys::Only(&[Keys::Int64]),
    json: &["\"seed\"", "\"fingerprints\""],
    read_only: Some(READ_ONLY),
    ..About::new(&[Keys::Uint64], read)
};

const READ_ONLY: &str = "it is built of all its keys at once, as Tamis's fuse filters are";

const FORMAT: Format = Format::FastFilter;

#[derive(Clone, Debug)]
pub(crate) struct Table {
    hash: Hash,
    seed: u64,
    slots: Slots,
    /// Bytes per fingerprint.
    width: usize,
    /// Where the fingerprints begin, and their number.
    at: usize,
    len: u64,
    /// Fingerprints decoded from JSON, which can't be queried in place.
    decoded: Option<Box<[u8]>>,
    /// The number of keys it was built from, if known.
    keys: Option<u64>,
}

/// How a key becomes a 64-bit number, and which of its bits are the fingerprint.
#[derive(Clone, Copy, Debug)]
enum Hash {
    /// The key is the number.
    Number,
    /// The XXH64 of the key, as in npm's bloom-filters.
    Npm,
}

/// The positions of a key's three fingerprints.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Slots {
    /// One in each of three blocks.
    Xor { block: u64 },
    /// In three consecutive segments; `all` is the end of the last possible first segment.
    Fuse { segment: u32, all: u32 },
}

impl Slots {
    /// The number of fingerprints.
    const fn len(self) -> u64 {
        match self {
            Self::Xor { block } => 3 * block,
            Self::Fuse { segment, all } => all as u64 + 2 * segment as u64,
        }
    }

    fn of(self, hash: u64) -> [u64; 3] {
        match self {
            Self::Xor { block } => [0, 1, 2].map(|i| {
                let part = hash.rotate_left(21 * i) as u32;
                u64::from(i) * block + ((u64::from(part) * block) >> 32)
            }),
            Self::Fuse { segment, all } => {
                let first = ((u128::from(hash) * u128::from(all)) >> 64) as u64;
                let (segment, mask) = (u64::from(segment), u64::from(segment) - 1);
                [
                    first,
                    (first + segment) ^ hash >> 18 & mask,
                    (first + 2 * segment) ^ hash & mask,
                ]
            }
        }
    }
}

impl Table {
    fn new(seed: u64, slots: Slots, width: usize, at: usize) -> Self {
        Self {
            hash: Hash::Number,
            seed,
            slots,
            width,
            at,
            len: slots.len(),
            decoded: None,
            keys: None,
        }
    }

    /// An xor filter of npm's bloom-filters, with fingerprints in three non-empty blocks.
    pub(super) fn npm(seed: i64, keys: u64, width: usize, fingerprints: Vec<u8>) -> Self {
        let block = (fingerprints.len() / width / 3) as u64;
        Self {
            hash: Hash::Npm,
            decoded: Some(fingerprints.into()),
            keys: Some(keys),
            ..Self::new(seed.cast_unsigned(), Slots::Xor { block }, width, 0)
        }
    }

    /// A key's fingerprint and positions; `None` if the key isn't a number.
    fn fingerprint_and_slots(&self, key: &[u8]) -> Option<(u32, [u64; 3])> {
        let key = match self.hash {
            Hash::Number => key.try_into().map(u64::from_le_bytes).ok()?,
            Hash::Npm => xxhash_rust::xxh64::xxh64(key, self.seed & 0xFFFF_FFFF),
        };
        let mut hash = key.wrapping_add(self.seed);
        hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        hash ^= hash >> 33;
        let mask = u32::MAX >> (32 - 8 * self.width);
        let fingerprint = match self.hash {
            Hash::Number => hash ^ hash >> 32,
            Hash::Npm => hash,
        };
        Some((fingerprint as u32 & mask, self.slots.of(hash)))
    }

    fn fingerprint(&self, file: View<'_>, slot: u64) -> u32 {
        let (bytes, at) = match &self.decoded {
            Some(bytes) => (View::Plain(bytes), 0),
            None => (file, self.at),
        };
        let at = at + slot as usize * self.width;
        let places = (at..at + self.width).rev();
        places.fold(0, |all, at| all << 8 | u32::from(bytes.get(at)))
    }
}

impl Filter for Table {
    fn facts(&self) -> Facts {
        Facts {
            keys: self.keys,
            ..Facts::default()
        }
    }

    fn read_only(&self, _: View<'_>) -> Option<&'static str> {
        Some(READ_ONLY)
    }

    /// Numbers have eight bytes; other keys can't be in a filter of numbers.
    fn contains(&self, file: View<'_>, key: &[u8]) -> bool {
        let Some((expected, slots)) = self.fingerprint_and_slots(key) else {
            return false;
        };
        slots
            .iter()
            .fold(expected, |rest, slot| rest ^ self.fingerprint(file, *slot))
            == 0
    }

    fn explain(&self, file: View<'_>, key: &[u8]) -> Explanation {
        let Some((fingerprint, slots)) = self.fingerprint_and_slots(key) else {
            return Explanation::of(Look::NOTHING);
        };
        let cell = |at| Cell {
            line: None,
            at,
            value: self.fingerprint(file, at).into(),
        };
        Explanation::of(Look::Sum {
            fingerprint: fingerprint.into(),
            cells: slots.map(cell).into(),
        })
    }

    fn hash_name(&self, _: View<'_>) -> &'static str {
        match self.hash {
            Hash::Number => "murmur3-64-mix",
            Hash::Npm => "xxh64",
        }
    }

    fn bits(&self, _: View<'_>) -> u64 {
        self.len * 8 * self.width as u64
    }

    /// The fingerprint of a key that was not added matches only by chance.
    fn rate(&self, _: View<'_>) -> f64 {
        0.5f64.powi(8 * self.width as i32)
    }

    /// Slots without a key are zero, and some slots with a key are by chance. But some libraries
    /// fill unused slots with noise: then the result is at most what the table is made for.
    fn key_count(&self, file: View<'_>) -> Option<f64> {
        let used = (0..self.len).filter(|slot| self.fingerprint(file, *slot) != 0);
        let used = used.count() as f64 / (1.0 - self.rate(file));
        let len = self.len as f64;
        let most = match self.slots {
            Slots::Xor { .. } => (len - 32.0).max(0.0) / 1.23,
            Slots::Fuse { .. } => (0..9).fold(len, |keys, _| {
                let factor = 0.875 + 0.25 * 1e6f64.ln() / keys.max(2.0).ln();
                len / factor.max(1.125)
            }),
        };
        Some(used.min(most))
    }

    fn fill(&self, file: View<'_>) -> f64 {
        let keys = self.key_count(file).unwrap_or_default();
        (keys / self.len as f64).min(1.0)
    }
}

fn read(file: View<'_>, _: Option<&[u8]>) -> Result<Opened, Error> {
    if ABOUT.is_like_json(file) {
        return of_json(&file.read(0..file.len())).map(Opened::from);
    }
    let layouts = [c_xor, xorf_xor, c_fuse, go_fuse];
    let mut found = layouts.iter().filter_map(|layout| layout(file).ok());
    if let Some(table) = found.next() {
        return Ok(table.into());
    }
    Err(Error::corrupt(
        FORMAT,
        "layout",
        "one of C's, Go's or xorf's, whose numbers agree with the length",
        format_args!("{} bytes", file.len()),
    ))
}

/// The remaining bytes must be `count` fingerprints of one of the widths.
fn table(
    fields: &Fields<'_>,
    seed: u64,
    slots: Slots,
    count: u64,
    widths: &[usize],
) -> Result<Table, Error> {
    let left = fields.left() as u64;
    let width = widths
        .iter()
        .find(|width| count.checked_mul(**width as u64) == Some(left));
    match width {
        Some(width) if count > 0 => Ok(Table::new(seed, slots, *width, fields.at())),
        _ => Err(fields.corrupt("fingerprints", count, format_args!("{left} bytes"))),
    }
}

fn c_xor(file: View<'_>) -> Result<Table, Error> {
    let mut fields = Fields::new(FORMAT, file);
    let seed = fields.u64_le("seed")?;
    let block = fields.ranged("block", 1..=u64::from(u32::MAX), Fields::u64_le)?;
    table(&fields, seed, Slots::Xor { block }, 3 * block, &[1, 2])
}

fn xorf_xor(file: View<'_>) -> Result<Table, Error> {
    let mut fields = Fields::new(FORMAT, file);
    let seed = fields.u64_le("seed")?;
    let block = fields.ranged("block", 1..=u64::from(u32::MAX), Fields::u64_le)?;
    let count = fields.u64_le("fingerprints")?;
    // Fingerprints beyond three equal blocks don't belong to keys.
    let count = fields.within("fingerprints", 3 * block..=3 * block + 2, count)?;
    table(&fields, seed, Slots::Xor { block }, count, &[1, 2, 4])
}

fn fuse(fields: &Fields<'_>, segment: u32, all: u32, count: u64) -> Result<Slots, Error> {
    let slots = Slots::Fuse { segment, all };
    let is_whole = segment.is_power_of_two() && all > 0 && all.is_multiple_of(segment);
    if is_whole && slots.len() == count {
        return Ok(slots);
    }
    let got = format_args!("{all} of {segment} in {count}");
    Err(fields.corrupt("segments", "some of a power of two, and two more", got))
}

fn c_fuse(file: View<'_>) -> Result<Table, Error> {
    let mut fields = Fields::new(FORMAT, file);
    let seed = fields.u64_le("seed")?;
    let segment = fields.u32_le("segment")?;
    let segments = fields.u32_le("segments")?;
    let all = fields.u32_le("segments")?;
    let count = u64::from(fields.u32_le("fingerprints")?);
    if segment.checked_mul(segments) != Some(all) {
        return Err(fields.corrupt("segments", "their number times their length", all));
    }
    let slots = fuse(&fields, segment, all, count)?;
    table(&fields, seed, slots, count, &[1, 2])
}

fn go_fuse(file: View<'_>) -> Result<Table, Error> {
    let mut fields = Fields::new(FORMAT, file);
    let seed = fields.u64_le("seed")?;
    let segment = fields.u32_le("segment")?;
    let mask = fields.u32_le("mask")?;
    let segments = fields.u32_le("segments")?;
    let all = fields.u32_le("segments")?;
    let count = u64::from(fields.u32_le("fingerprints")?);
    if segment.checked_mul(segments) != Some(all) || segment.checked_sub(1) != Some(mask) {
        return Err(fields.corrupt("segments", "their number times their length", all));
    }
    let slots = fuse(&fields, segment, all, count)?;
    table(&fields, seed, slots, count, &[1, 2, 4])
}

#[derive(serde::Deserialize)]
struct Json {
    seed: u64,
    block_length: Option<u64>,
    segment_length: Option<u32>,
    segment_count_length: Option<u32>,
    fingerprints: Vec<u32>,
}

fn of_json(text: &[u8]) -> Result<Table, Error> {
    let corrupt = |got: &dyn std::fmt::Display| {
        Error::corrupt(FORMAT, "JSON", "an xor or binary fuse filter of xorf", got)
    };
    let json: Json = serde_json::from_slice(text).map_err(|e| corrupt(&e))?;
    let count = json.fingerprints.len() as u64;
    let fields = Fields::new(FORMAT, text);
    let slots = match (
        json.block_length,
        json.segment_length,
        json.segment_count_length,
    ) {
        (Some(block), None, None) if block > 0 && count / 3 == block => Slots::Xor { block },
        (None, Some(segment), Some(all)) => fuse(&fields, segment, all, count)?,
        _ => return Err(corrupt(&format_args!("{count} fingerprints"))),
    };
    // JSON doesn't contain the type, and one narrower than the true type says "yes" more often.
    let width = match json.fingerprints.iter().max() {
        Some(0x1_0000..) => 4,
        Some(0x100..) => 2,
        _ => 1,
    };
    let bytes = json.fingerprints.iter().map(|print| print.to_le_bytes());
    let mut table = Table::new(json.seed, slots, width, 0);
    table.decoded = Some(
        bytes
            .flat_map(|bytes| bytes.into_iter().take(width))
            .collect(),
    );
    Ok(table)
}
