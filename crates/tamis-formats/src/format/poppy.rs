//! poppy's version 2, little-endian: `u8 2 | u8 optimisation | 6 zeros | u64
//! capacity | f64 rate | u64 k | u64 count | u64 cache bits | cache | u64 buckets
//! | buckets of 4096 bytes | data`.
//!
//! All bits of a key lie in one bucket. The cache, where there is one, has one
//! more bit a key, and is asked first.

use super::{MOST_BITS, MOST_HASHES, sized, with_zeros};
use crate::bits::{Bits, Modulus, Order};
use crate::fields::Fields;
use crate::hash::crates::poppy_64;
use crate::plain::{BLOCK, prefetch};
use crate::{Error, Facts, Format, Keys};
use std::f64::consts::LN_2;

/// Its keys are bytes.
pub(crate) const KEYS: &[Keys] = &[Keys::Utf8, Keys::Upper, Keys::Lower];

const FORMAT: Format = Format::Poppy;
const COUNT: usize = 32;
const BUCKET: u64 = 4096;
const BUCKET_BITS: u64 = BUCKET * 8;

/// What a filter is made to be good at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Optimise {
    /// Nothing in particular, the default.
    None,
    /// Size.
    Space,
    /// Look-ups, for more memory.
    Speed,
    /// Both, as far as they go together.
    Best,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Poppy {
    hashes: u64,
    cache: Option<Bits>,
    buckets: Bits,
    bucket: Modulus,
}

/// Whether its beginning is that of one.
pub(crate) fn is_like(start: &[u8]) -> bool {
    matches!(start, [2, 0..=3, 0, 0, 0, 0, 0, 0, ..])
}

pub(crate) fn read(file: &[u8]) -> Result<(Poppy, Facts), Error> {
    let mut fields = Fields::new(FORMAT, file);
    let version = fields.u8("version")?;
    fields.within("version", 2..=2, version)?;
    let optimised = fields.u8("optimisation")?;
    fields.within("optimisation", 0..=3, optimised)?;
    if fields.take("flags", 6)? != [0; 6] {
        return Err(fields.corrupt("flags", "zeros", "others"));
    }
    let capacity = fields.u64_le("capacity")?;
    let rate = fields.f64_le("rate")?;
    let rate = fields.within("rate", 0.0..=1.0, rate)?;
    let hashes = fields.u64_le("hashes")?;
    let hashes = fields.within("hashes", 1..=MOST_HASHES, hashes)?;
    let keys = fields.u64_le("count")?;
    let cache_bits = fields.u64_le("cache")?;
    let cache_bits = fields.within("cache", 0..=MOST_BITS, cache_bits)?;
    if cache_bits != 0 && !cache_bits.is_power_of_two() {
        return Err(fields.corrupt("cache", "a power of two", cache_bits));
    }
    let low = |at, len| Bits {
        at,
        len,
        order: Order::Low,
    };
    let cache = low(fields.at(), cache_bits);
    fields.take("cache", cache.bytes())?;
    let buckets = fields.u64_le("buckets")?;
    let buckets = fields.within("buckets", 1..=MOST_BITS / BUCKET_BITS, buckets)?;
    let at = fields.at();
    fields.take("buckets", buckets * BUCKET)?;
    let facts = Facts {
        capacity: Some(capacity),
        rate: Some(rate),
        keys: Some(keys),
        count_at: Some(COUNT),
        data: fields.rest().len(),
    };
    let poppy = Poppy {
        hashes,
        cache: (cache_bits > 0).then_some(cache),
        buckets: low(at, buckets * BUCKET_BITS),
        bucket: Modulus::new(buckets),
    };
    Ok((poppy, facts))
}

/// An empty filter.
pub(crate) fn create(keys: u64, rate: f64, optimise: Optimise) -> Result<Vec<u8>, Error> {
    // Every operation is the original's, in its order.
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

/// A key's first hash: short ones are their own.
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
    fn place(&self, first: u64) -> (Option<u64>, u64) {
        let mut x = first;
        x ^= x << 12;
        x ^= x >> 25;
        x ^= x << 27;
        x = x.wrapping_mul(2_685_821_657_736_338_717);
        let cached = self.cache.map(|cache| x & (cache.len - 1));
        (cached, self.bucket.of(x) * BUCKET_BITS)
    }

    /// Calls `each` with the key's bits in its bucket, while it answers true.
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

    #[inline]
    pub(crate) fn contains(&self, file: &[u8], key: &[u8]) -> bool {
        let first = first_hash(key);
        let (cached, bucket) = self.place(first);
        let in_cache = match (cached, &self.cache) {
            (Some(bit), Some(cache)) => cache.get(file, bit),
            _ => true,
        };
        in_cache && self.all(first, |bit| self.buckets.get(file, bucket + bit))
    }

    /// Sets `out[i]` where it may have the key; leaves the others alone.
    pub(crate) fn contains_many<K: AsRef<[u8]>>(&self, file: &[u8], keys: &[K], out: &mut [bool]) {
        let each = self.hashes as usize;
        let mut positions = Vec::with_capacity(BLOCK * each);
        let fetch = |bits: &Bits, bit| {
            if let Some(byte) = bits.byte(file, bit) {
                prefetch(byte);
            }
        };
        for (keys, out) in keys.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
            positions.clear();
            let mut in_cache = [true; BLOCK];
            for (key, in_cache) in keys.iter().zip(&mut in_cache) {
                let first = first_hash(key.as_ref());
                let (cached, bucket) = self.place(first);
                // One bit of a small part of the file: asked at once.
                if let (Some(bit), Some(cache)) = (cached, &self.cache) {
                    *in_cache = cache.get(file, bit);
                }
                self.all(first, |bit| {
                    fetch(&self.buckets, bucket + bit);
                    positions.push(bucket + bit);
                    true
                });
            }
            for ((positions, out), in_cache) in positions.chunks(each).zip(out).zip(in_cache) {
                *out |= in_cache && positions.iter().all(|bit| self.buckets.get(file, *bit));
            }
        }
    }

    /// Says whether any bit was new. Of a full filter only what it has is taken.
    pub(crate) fn insert(&self, file: &mut [u8], key: &[u8], facts: &Facts) -> Result<bool, Error> {
        let first = first_hash(key);
        let (cached, bucket) = self.place(first);
        if facts.keys >= facts.capacity
            && !self.all(first, |bit| self.buckets.get(file, bucket + bit))
        {
            return Err(Error::Full {
                format: FORMAT,
                capacity: facts.capacity.unwrap_or_default(),
            });
        }
        let mut new = false;
        self.all(first, |bit| {
            new |= self.buckets.set(file, bucket + bit);
            true
        });
        if let (Some(bit), Some(cache)) = (cached, &self.cache) {
            cache.set(file, bit);
        }
        Ok(new)
    }

    /// Sets all bits of another one, whose keys have the same.
    pub(crate) fn union_with(
        &self,
        file: &mut [u8],
        other: &Self,
        more: &[u8],
    ) -> Result<(), Error> {
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
        self.buckets.union_with(file, &other.buckets, more);
        if let (Some(ours), Some(theirs)) = (&self.cache, &other.cache) {
            ours.union_with(file, theirs, more);
        }
        Ok(())
    }

    pub(crate) const fn bits(&self) -> u64 {
        self.buckets.len
    }

    pub(crate) const fn hashes(&self) -> u64 {
        self.hashes
    }

    pub(crate) fn fill(&self, file: &[u8]) -> f64 {
        self.buckets.ones(file) as f64 / self.buckets.len as f64
    }

    /// From how full each bucket is, and the cache.
    pub(crate) fn rate(&self, file: &[u8]) -> f64 {
        let cached = self
            .cache
            .map_or(1.0, |cache| cache.ones(file) as f64 / cache.len as f64);
        let count = self.buckets.len / BUCKET_BITS;
        let rates = (0..count).map(|bucket| {
            let one = Bits {
                at: self.buckets.at + (bucket * BUCKET) as usize,
                len: BUCKET_BITS,
                ..self.buckets
            };
            (one.ones(file) as f64 / BUCKET_BITS as f64).powf(self.hashes as f64)
        });
        cached * rates.sum::<f64>() / count as f64
    }

    pub(crate) fn keys(&self, file: &[u8]) -> Option<f64> {
        let unset = (-self.fill(file)).ln_1p();
        let keys = -unset * self.buckets.len as f64 / self.hashes as f64;
        keys.is_finite().then_some(keys)
    }
}
