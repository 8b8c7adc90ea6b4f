//! poppy's version 2, little-endian: `u8 2 | u8 optimisation | 6 zeros | u64
//! capacity | f64 rate | u64 k | u64 count | u64 cache bits | cache | u64 buckets
//! | buckets of 4096 bytes | data`.
//!
//! All bits of a key are in one bucket. The cache, if there is one, has one
//! more bit per key, and is checked first.

use super::{MOST_BITS, MOST_HASHES, sized, with_zeros};
use crate::about::About;
use crate::bits::{Bits, Modulus};
use crate::bytes::{Bytes, View};
use crate::fields::Fields;
use crate::filter::{Filter, Opened, same};
use crate::hash::crates::poppy_64;
use crate::plain::{BLOCK, keys_by_fill};
use crate::{Error, Facts, Format, Keys};
use std::f64::consts::LN_2;
use tamis::internals::raw::{Cell, Explanation, Joined, Look};

pub(crate) const ABOUT: About = About::new(&[Keys::Utf8, Keys::Upper, Keys::Lower], read);

const FORMAT: Format = Format::Poppy;
const COUNT: usize = 32;
const BUCKET: u64 = 4096;
const BUCKET_BITS: u64 = BUCKET * 8;

/// What a filter is optimised for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Optimise {
    /// Nothing in particular, the default.
    None,
    /// Size.
    Space,
    /// Look-ups, for more memory.
    Speed,
    /// Both, as far as possible.
    Best,
}

#[derive(Clone, Debug)]
struct Poppy {
    facts: Facts,
    hashes: u64,
    cache: Option<Bits>,
    buckets: Bits,
    bucket: Modulus,
}

/// Whether a file begins like one of poppy's.
pub(crate) fn is_like(start: &[u8]) -> bool {
    matches!(start, [2, 0..=3, 0, 0, 0, 0, 0, 0, ..])
}

fn read(file: View<'_>, _: Option<&[u8]>) -> Result<Opened, Error> {
    let mut fields = Fields::new(FORMAT, file);
    fields.ranged("version", 2..=2, Fields::u8)?;
    fields.ranged("optimisation", 0..=3, Fields::u8)?;
    if fields.array("flags")? != [0; 6] {
        return Err(fields.corrupt("flags", "zeros", "others"));
    }
    let capacity = fields.u64_le("capacity")?;
    let rate = fields.ranged("rate", 0.0..=1.0, Fields::f64_le)?;
    let hashes = fields.ranged("hashes", 1..=MOST_HASHES, Fields::u64_le)?;
    let keys = fields.u64_le("count")?;
    let cache_bits = fields.ranged("cache", 0..=MOST_BITS, Fields::u64_le)?;
    if cache_bits != 0 && !cache_bits.is_power_of_two() {
        return Err(fields.corrupt("cache", "a power of two", cache_bits));
    }
    let cache = Bits::low(fields.at(), cache_bits);
    fields.skip("cache", cache.bytes())?;
    let buckets = fields.ranged("buckets", 1..=MOST_BITS / BUCKET_BITS, Fields::u64_le)?;
    let at = fields.skip("buckets", buckets * BUCKET)?;
    let facts = Facts {
        capacity: Some(capacity),
        rate: Some(rate),
        keys: Some(keys),
        count_at: Some(COUNT),
        data: fields.left(),
        ..Facts::NONE
    };
    Ok(Poppy {
        facts,
        hashes,
        cache: (cache_bits > 0).then_some(cache),
        buckets: Bits::low(at, buckets * BUCKET_BITS),
        bucket: Modulus::new(buckets),
    }
    .into())
}

/// An empty filter.
pub(crate) fn create(keys: u64, rate: f64, optimise: Optimise) -> Result<Vec<u8>, Error> {
    // Performs the original's operations in their order.
    let hashes_for = |bits: u64, keys: u64| (LN_2 * bits as f64 / keys as f64).ceil();
    let keys = keys.max(1);
    let bucket_keys = (BUCKET_BITS as f64 * LN_2.powf(2.0) / rate.ln()).abs() as u64;
    let mut buckets = sized(keys as f64 / bucket_keys as f64, MOST_BITS / BUCKET_BITS)?;
    let mut hashes = hashes_for(BUCKET_BITS, bucket_keys);
    let mut cache = 0;
    if matches!(optimise, Optimise::Speed | Optimise::Best) {
        cache = sized(keys as f64, MOST_BITS)?.next_power_of_two();
        let k = hashes_for(cache, keys);
        let cached = (1.0 - (-k * keys as f64 / cache as f64).exp()).powf(k);
        let bits_per_key = (BUCKET_BITS as f64 / bucket_keys as f64).round();
        hashes = (LN_2 * cached * bits_per_key).ceil();
        if optimise == Optimise::Speed {
            buckets = buckets.next_power_of_two();
        }
    }
    let mut file = vec![2, optimise as u8, 0, 0, 0, 0, 0, 0];
    file.extend(keys.to_le_bytes());
    file.extend(rate.to_le_bytes());
    file.extend((hashes as u64).to_le_bytes());
    file.extend(0u64.to_le_bytes());
    file.extend(u64::to_le_bytes(cache));
    let (cache_at, cache_bytes) = (file.len(), cache.div_ceil(8));
    let mut file = with_zeros(&file, cache_bytes + 8 + buckets * BUCKET)?;
    file[cache_at + cache_bytes as usize..][..8].copy_from_slice(&buckets.to_le_bytes());
    Ok(file)
}

/// A key's first hash; short keys are used as they are.
fn first_hash(key: &[u8]) -> u64 {
    let mut short = [0; 8];
    match short.get_mut(..key.len()) {
        Some(bytes) => {
            bytes.copy_from_slice(key);
            u64::from_le_bytes(short)
        }
        None => poppy_64(key),
    }
}

impl Poppy {
    /// The cache's bit, and where the key's bucket begins among all bits.
    #[inline]
    fn cache_bit_and_bucket(&self, first: u64) -> (Option<u64>, u64) {
        let mut x = first;
        x ^= x << 12;
        x ^= x >> 25;
        x ^= x << 27;
        x = x.wrapping_mul(2_685_821_657_736_338_717);
        let cached = self.cache.map(|cache| x & (cache.len - 1));
        (cached, self.bucket.of(x) * BUCKET_BITS)
    }

    /// Calls `each` with the key's bits in its bucket for as long as it returns
    /// true.
    #[inline]
    fn all(&self, first: u64, mut each: impl FnMut(u64) -> bool) -> bool {
        let (mut a, mut b) = (first, 0);
        (0..self.hashes).all(|i| {
            if i > 0 {
                if i == 1 {
                    b = poppy_64(&first.to_be_bytes());
                }
                a = a.wrapping_add(b);
                b = b.wrapping_add(i);
            }
            each(a % BUCKET_BITS)
        })
    }
}

impl Filter for Poppy {
    fn facts(&self) -> Facts {
        self.facts
    }

    #[inline]
    fn contains(&self, file: View<'_>, key: &[u8]) -> bool {
        let first = first_hash(key);
        let (cached, bucket) = self.cache_bit_and_bucket(first);
        let in_cache = match (cached, &self.cache) {
            (Some(bit), Some(cache)) => cache.get(file, bit),
            _ => true,
        };
        in_cache && self.all(first, |bit| self.buckets.get(file, bucket + bit))
    }

    /// The cache's bit comes first, if there is one.
    fn explain(&self, file: View<'_>, key: &[u8]) -> Explanation {
        let first = first_hash(key);
        let (cached, bucket) = self.cache_bit_and_bucket(first);
        let cell = |bits: &Bits, line, at: u64, start| Cell {
            line,
            at,
            value: bits.get(file, start + at).into(),
        };
        let look = |cells| Look::Cells {
            cells,
            all: Vec::new(),
        };
        let cached = cached.zip(self.cache);
        let cached = cached.map(|(bit, cache)| look(vec![cell(&cache, None, bit, 0)]));
        let mut cells = Vec::new();
        self.all(first, |at| {
            let line = Some(bucket / BUCKET_BITS);
            cells.push(cell(&self.buckets, line, at, bucket));
            true
        });
        let in_bucket = look(cells);
        match cached {
            Some(cached) => Explanation {
                joined: Joined::Levels,
                looks: vec![cached, in_bucket],
            },
            None => Explanation::of(in_bucket),
        }
    }

    fn hash_name(&self, _: View<'_>) -> &'static str {
        "poppy-64"
    }

    fn contains_many(&self, file: View<'_>, keys: &[&[u8]], out: &mut [bool]) {
        let each = self.hashes as usize;
        let mut positions = Vec::with_capacity(BLOCK * each);
        for (keys, out) in keys.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
            positions.clear();
            let mut in_cache = [true; BLOCK];
            for (key, in_cache) in keys.iter().zip(&mut in_cache) {
                let first = first_hash(key);
                let (cached, bucket) = self.cache_bit_and_bucket(first);
                // One bit of a small part of the file, so it is read at once.
                if let (Some(bit), Some(cache)) = (cached, &self.cache) {
                    *in_cache = cache.get(file, bit);
                }
                self.all(first, |bit| {
                    self.buckets.prefetch(file, bucket + bit);
                    positions.push(bucket + bit);
                    true
                });
            }
            for ((positions, out), in_cache) in positions.chunks(each).zip(out).zip(in_cache) {
                *out |= in_cache && positions.iter().all(|bit| self.buckets.get(file, *bit));
            }
        }
    }

    /// A full filter only accepts keys that it already has.
    fn insert(&mut self, file: &mut Bytes<'_>, key: &[u8]) -> Result<bool, Error> {
        let first = first_hash(key);
        let (cached, bucket) = self.cache_bit_and_bucket(first);
        let (facts, has) = (&self.facts, |bit| {
            self.buckets.get(file.view(), bucket + bit)
        });
        if facts.keys >= facts.capacity && !self.all(first, has) {
            return Err(Error::Full {
                format: FORMAT,
                capacity: facts.capacity.unwrap_or_default(),
            });
        }
        let file = file.to_mut();
        let mut new = false;
        self.all(first, |bit| {
            new |= self.buckets.set(file, bucket + bit);
            true
        });
        if let (Some(bit), Some(cache)) = (cached, &self.cache) {
            cache.set(file, bit);
        }
        self.facts.count(file, new);
        Ok(new)
    }

    fn union_with(
        &mut self,
        file: &mut Bytes<'_>,
        other: &dyn Filter,
        more: View<'_>,
    ) -> Result<bool, Error> {
        let Some(other) = same(self, other) else {
            return Ok(false);
        };
        let of = |poppy: &Self| {
            let cache = poppy.cache.map_or(0, |cache| cache.len);
            (poppy.buckets.len / BUCKET_BITS, cache, poppy.hashes)
        };
        if of(self) != of(other) {
            let shape = |(buckets, cache, hashes)| {
                format!("{buckets} buckets, a cache of {cache} bits, {hashes} hashes")
            };
            return Err(Error::Unlike {
                what: "shape",
                ours: shape(of(self)),
                theirs: shape(of(other)),
            });
        }
        self.buckets.union_with(file.to_mut(), &other.buckets, more);
        if let (Some(ours), Some(theirs)) = (&self.cache, &other.cache) {
            ours.union_with(file.to_mut(), theirs, more);
        }
        // Poppy's own estimate.
        let keys = self.key_count(file.view());
        let keys = keys.map_or(u64::MAX, |keys| keys.round() as u64);
        self.facts.set_count(file.to_mut(), Some(keys));
        Ok(true)
    }

    fn bits(&self, _: View<'_>) -> u64 {
        self.buckets.len
    }

    fn hashes(&self, _: View<'_>) -> Option<u64> {
        Some(self.hashes)
    }

    fn fill(&self, file: View<'_>) -> f64 {
        self.buckets.fill(file)
    }

    /// From how full the cache and each bucket are.
    fn rate(&self, file: View<'_>) -> f64 {
        let cached = self.cache.map_or(1.0, |cache| cache.fill(file));
        let buckets = self.buckets.chunks(BUCKET_BITS);
        let count = buckets.len() as f64;
        let rates = buckets.map(|bucket| bucket.fill(file).powf(self.hashes as f64));
        cached * rates.sum::<f64>() / count
    }

    fn key_count(&self, file: View<'_>) -> Option<f64> {
        let bits = self.buckets.len as f64;
        keys_by_fill(self.buckets.fill(file), bits, self.hashes as f64)
    }
}
