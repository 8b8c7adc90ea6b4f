//! RedisBloom's Bloom filter: layers, of which the newest accepts keys until it
//! is full.

use super::parts;
use super::rdb::{Sink, Source};
use crate::bits::{Bits, unite};
use crate::bytes::View;
use crate::fields::Fields;
use crate::format::{MOST_BITS, sized, with_zeros};
use crate::plain::Plain;
use crate::probe::{Probe, redis};
use crate::{Error, Format};
use std::borrow::Cow;

const FORMAT: Format = Format::RedisBloom;
const HEADER: usize = 20;
const LAYER: usize = 53;
/// More than any chain has: the rate halves from layer to layer, and a double
/// can be halved 1,075 times. Each layer has one more hash than the one before.
const MOST_LAYERS: u64 = 1100;
const MOST_HASHES: u64 = 1200;

/// Sizes aren't rounded to powers of two.
const NO_ROUND: u64 = 1;
/// Keys are hashed to 64 bits.
const FORCE_64: u64 = 4;
/// A full filter accepts no more keys.
const NO_SCALING: u64 = 8;
/// All options; 2 means that sizes are in bytes.
const OPTIONS: u64 = NO_ROUND | 2 | FORCE_64 | NO_SCALING;

/// RedisBloom's Bloom filter, as kept by its server.
///
/// ```
/// use tamis_formats::redisbloom::Chain;
/// let mut seen = Chain::new(100, 0.01, Some(2))?;
/// assert!(seen.insert(b"key")? && seen.contains(b"key"));
/// // What BF.SCANDUMP gives:
/// let (header, parts) = (seen.dump_header(), seen.parts());
/// assert!(Chain::of_chunks(&header, &parts)?.contains(b"key"));
/// # Ok::<(), tamis_formats::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Chain<'a> {
    keys: u64,
    options: u64,
    growth: u64,
    layers: Vec<Layer<'a>>,
}

#[derive(Clone, Debug)]
struct Layer<'a> {
    entries: u64,
    keys: u64,
    rate: f64,
    bits_per_entry: f64,
    plain: Plain,
    data: Cow<'a, [u8]>,
}

/// The numbers of a layer.
struct Numbers {
    entries: u64,
    keys: u64,
    rate: f64,
    bits_per_entry: f64,
    hashes: u64,
    bits: u64,
    power: u64,
}

/// False for NONSCALING and for an EXPANSION of 0.
fn grows(growth: Option<u32>) -> bool {
    growth.is_some_and(|times| times > 0)
}

impl Numbers {
    /// The numbers of the first layer; later layers share the rate with it.
    fn first(entries: u64, rate: f64, growth: Option<u32>) -> Result<Self, Error> {
        let rate = if grows(growth) { rate * 0.5 } else { rate };
        Self::new(entries.max(1), rate)
    }

    /// The numbers of a new layer, by the server's rule.
    fn new(entries: u64, rate: f64) -> Result<Self, Error> {
        let bits_per_entry = -rate.ln() / 0.480_453_013_918_201;
        let bits = (entries as f64 * bits_per_entry).trunc().max(1.0);
        // The server's own digits, which lack the last one.
        #[expect(clippy::approx_constant)]
        const LN_2: f64 = 0.693_147_180_559_945;
        Ok(Self {
            entries,
            keys: 0,
            rate,
            bits_per_entry,
            hashes: (LN_2 * bits_per_entry).ceil() as u64,
            bits: sized(bits, MOST_BITS)?.next_multiple_of(64),
            power: 0,
        })
    }

    fn layer<'a>(self, data: Cow<'a, [u8]>) -> Result<Layer<'a>, Error> {
        let refuse = |what, expected: &dyn std::fmt::Display, got: u64| {
            Err(Error::corrupt(FORMAT, what, expected, got))
        };
        if self.power != 0 {
            return refuse(
                "size",
                &"a number of bits (a power of two is of before 2.0)",
                self.power,
            );
        }
        if !(1..=MOST_HASHES).contains(&self.hashes) {
            return refuse("hashes", &"1 to 1200", self.hashes);
        }
        if !(1..=MOST_BITS).contains(&self.bits) {
            return refuse("bits", &"1 to 2^48", self.bits);
        }
        let bits = Bits::low(0, self.bits);
        if data.len() as u64 != bits.bytes() {
            return refuse(
                "bitmap",
                &format_args!("{} bytes", bits.bytes()),
                data.len() as u64,
            );
        }
        let hashes = self.hashes;
        Ok(Layer {
            entries: self.entries,
            keys: self.keys,
            rate: self.rate,
            bits_per_entry: self.bits_per_entry,
            plain: Plain::new(bits, Probe::Redis { hashes }),
            data,
        })
    }
}

impl Layer<'_> {
    fn view(&self) -> View<'_> {
        View::Plain(&self.data)
    }

    fn to_owned(&self) -> Layer<'static> {
        Layer {
            data: Cow::Owned(self.data.to_vec()),
            plain: self.plain.clone(),
            ..*self
        }
    }

    fn hashes(&self) -> u64 {
        self.plain.probe.hashes()
    }
}

impl<'a> Chain<'a> {
    fn assembled(
        keys: u64,
        options: u64,
        growth: u64,
        layers: Vec<Layer<'a>>,
    ) -> Result<Self, Error> {
        if options & FORCE_64 == 0 {
            let expected = "64-bit hashes (the flag 4)";
            return Err(Error::corrupt(FORMAT, "options", expected, options));
        }
        if layers.is_empty() {
            return Err(Error::corrupt(FORMAT, "layers", "at least 1", 0));
        }
        Ok(Self {
            keys,
            options,
            growth,
            layers,
        })
    }

    /// Reads the fields of an RDB value, in order. Never panics, whatever the
    /// fields.
    pub fn decode(reader: &mut impl Source<'a>) -> Result<Self, Error> {
        let keys = reader.unsigned("keys")?;
        let count = reader.unsigned("layers")?;
        if !(1..=MOST_LAYERS).contains(&count) {
            return Err(Error::corrupt(FORMAT, "layers", "1 to 1100", count));
        }
        let options = reader.unsigned("options")?;
        let growth = reader.unsigned("growth")?;
        let mut layers = Vec::new();
        for _ in 0..count {
            let mut numbers = Numbers {
                entries: reader.unsigned("capacity")?,
                rate: reader.double("rate")?,
                hashes: reader.unsigned("hashes")?,
                bits_per_entry: reader.double("bits a key")?,
                bits: reader.unsigned("bits")?,
                power: reader.unsigned("power")?,
                keys: 0,
            };
            let data = reader.string("bitmap")?;
            numbers.keys = reader.unsigned("keys")?;
            layers.push(numbers.layer(data)?);
        }
        Self::assembled(keys, options, growth, layers)
    }

    /// Writes the fields of an RDB value.
    pub fn encode(&self, out: &mut impl Sink) {
        out.unsigned(self.keys);
        out.unsigned(self.layers.len() as u64);
        out.unsigned(self.options);
        out.unsigned(self.growth);
        for layer in &self.layers {
            out.unsigned(layer.entries);
            out.double(layer.rate);
            out.unsigned(layer.hashes());
            out.double(layer.bits_per_entry);
            out.unsigned(layer.plain.bits.len);
            out.unsigned(0);
            out.string(&layer.data);
            out.unsigned(layer.keys);
        }
    }

    /// The number of bytes that follow a header from BF.SCANDUMP.
    pub fn bytes_of(header: &[u8]) -> Result<u64, Error> {
        let (_, lengths) = Self::read_header(header)?;
        let sum = lengths
            .iter()
            .try_fold(0u64, |sum, len| sum.checked_add(*len));
        sum.ok_or_else(|| Error::corrupt(FORMAT, "bytes", "less than 2^64", "more"))
    }

    /// The lengths of the layers' bit arrays, according to a header.
    pub fn lengths_of(header: &[u8]) -> Result<Vec<u64>, Error> {
        Ok(Self::read_header(header)?.1)
    }

    /// Assembles the results of BF.SCANDUMP: its header, and the data of the
    /// other chunks.
    pub fn of_chunks(header: &'a [u8], chunks: &[&'a [u8]]) -> Result<Self, Error> {
        let ((keys, options, growth, numbers), lengths) = Self::read_header(header)?;
        let parts = parts(FORMAT, lengths.into_iter(), chunks)?;
        let layers = numbers.into_iter().zip(parts);
        let layers = layers
            .map(|(numbers, data)| numbers.layer(data))
            .collect::<Result<_, _>>()?;
        Self::assembled(keys, options, growth, layers)
    }

    /// The filter of a header that counts no keys, so that all its data is
    /// zeros; `None` if it counts some.
    pub fn empty(header: &[u8]) -> Result<Option<Chain<'static>>, Error> {
        let ((keys, options, growth, numbers), lengths) = Self::read_header(header)?;
        if keys != 0 || numbers.iter().any(|layer| layer.keys != 0) {
            return Ok(None);
        }
        let layers = numbers.into_iter().zip(lengths);
        let layers = layers
            .map(|(numbers, len)| numbers.layer(with_zeros(&[], len)?.into()))
            .collect::<Result<_, _>>()?;
        Chain::assembled(keys, options, growth, layers).map(Some)
    }

    /// Keys, options, growth and layers; and the layers' lengths. Refuses what
    /// no server could have written before any data arrives.
    #[expect(clippy::type_complexity)]
    fn read_header(header: &[u8]) -> Result<((u64, u64, u64, Vec<Numbers>), Vec<u64>), Error> {
        let mut fields = Fields::new(FORMAT, header);
        let keys = fields.u64_le("keys")?;
        let count = fields.u32_le("layers")?;
        let options = fields.u32_le("options")?.into();
        let growth = fields.u32_le("growth")?.into();
        fields.body("layers", u64::from(count) * LAYER as u64)?;
        let mut numbers = Vec::new();
        let mut lengths = Vec::new();
        for _ in 0..count {
            lengths.push(fields.u64_le("bytes")?);
            numbers.push(Numbers {
                bits: fields.u64_le("bits")?,
                keys: fields.u64_le("keys")?,
                rate: fields.f64_le("rate")?,
                bits_per_entry: fields.f64_le("bits a key")?,
                hashes: fields.u32_le("hashes")?.into(),
                entries: fields.u64_le("capacity")?,
                power: fields.u8("power")?.into(),
            });
        }
        if options & !OPTIONS != 0 {
            return Err(fields.corrupt("options", "flags up to 8", options));
        }
        fields.within("layers", 1..=MOST_LAYERS, count.into())?;
        let mut counted = Some(0u64);
        for (layer, len) in numbers.iter().zip(&lengths) {
            fields.within("bits", 1..=MOST_BITS, layer.bits)?;
            fields.within("hashes", 1..=MOST_HASHES, layer.hashes)?;
            if *len != layer.bits.div_ceil(8) {
                return Err(fields.corrupt("bytes", layer.bits.div_ceil(8), len));
            }
            counted = counted.and_then(|sum| sum.checked_add(layer.keys));
        }
        if counted != Some(keys) {
            return Err(fields.corrupt("keys", "the sum of the layers'", keys));
        }
        Ok(((keys, options, growth, numbers), lengths))
    }

    /// The bit arrays.
    pub fn parts(&self) -> Vec<&[u8]> {
        self.layers.iter().map(|layer| &*layer.data).collect()
    }

    /// The address and the alignment of the list of layers, for servers that
    /// report how much memory it uses.
    pub fn list(&self) -> (*const u8, usize) {
        (self.layers.as_ptr().cast(), align_of::<Layer<'_>>())
    }

    /// The header that BF.SCANDUMP returns.
    pub fn dump_header(&self) -> Vec<u8> {
        let mut header = Vec::with_capacity(HEADER + LAYER * self.layers.len());
        header.extend(self.keys.to_le_bytes());
        header.extend((self.layers.len() as u32).to_le_bytes());
        header.extend((self.options as u32).to_le_bytes());
        header.extend((self.growth as u32).to_le_bytes());
        for layer in &self.layers {
            header.extend((layer.data.len() as u64).to_le_bytes());
            header.extend(layer.plain.bits.len.to_le_bytes());
            header.extend(layer.keys.to_le_bytes());
            header.extend(layer.rate.to_le_bytes());
            header.extend(layer.bits_per_entry.to_le_bytes());
            header.extend((layer.hashes() as u32).to_le_bytes());
            header.extend(layer.entries.to_le_bytes());
            header.push(0);
        }
        header
    }

    /// An empty one; without growth or with growth 0, it accepts no more than
    /// `entries` keys.
    pub fn new(entries: u64, rate: f64, growth: Option<u32>) -> Result<Chain<'static>, Error> {
        let options = if grows(growth) {
            NO_ROUND | FORCE_64
        } else {
            NO_ROUND | FORCE_64 | NO_SCALING
        };
        let mut chain = Chain {
            keys: 0,
            options,
            // As the server writes it for NONSCALING.
            growth: growth.unwrap_or(2).into(),
            layers: Vec::new(),
        };
        chain.push(Numbers::first(entries, rate, growth)?)?;
        Ok(chain)
    }

    /// The bits and the hashes of a [`new`](Self::new) filter, without creating
    /// it.
    ///
    /// ```
    /// use tamis_formats::redisbloom::Chain;
    /// assert_eq!(Chain::shape_of_new(1_000_000, 0.01, Some(2))?, (11_027_776, 8));
    /// # Ok::<(), tamis_formats::Error>(())
    /// ```
    pub fn shape_of_new(entries: u64, rate: f64, growth: Option<u32>) -> Result<(u64, u64), Error> {
        let first = Numbers::first(entries, rate, growth)?;
        Ok((first.bits, first.hashes))
    }

    fn add_layer(&mut self, entries: u64, rate: f64) -> Result<(), Error> {
        self.push(Numbers::new(entries, rate)?)
    }

    fn push(&mut self, numbers: Numbers) -> Result<(), Error> {
        let bytes = with_zeros(&[], numbers.bits / 8)?;
        self.layers.push(numbers.layer(bytes.into())?);
        Ok(())
    }

    /// Whether the key may have been added.
    pub fn contains(&self, key: &[u8]) -> bool {
        let sums = redis(key);
        (self.layers.iter().rev()).any(|layer| layer.plain.contains_sums(layer.view(), sums))
    }

    /// Looks up many keys; sets `out[i]` if one of the layers has `keys[i]`.
    pub fn contains_many(&self, keys: &[&[u8]], out: &mut [bool]) {
        for layer in &self.layers {
            layer.plain.contains_many(layer.view(), keys, out);
        }
    }

    /// Adds a key like BF.ADD; returns whether it was new.
    pub fn insert(&mut self, key: &[u8]) -> Result<bool, Error> {
        if self.contains(key) {
            return Ok(false);
        }
        let newest = self.layers.last().expect("there is always a layer");
        if newest.keys >= newest.entries {
            if self.options & NO_SCALING != 0 {
                return Err(Error::Full {
                    format: FORMAT,
                    capacity: newest.entries,
                });
            }
            let (entries, rate) = (
                newest.entries.saturating_mul(self.growth.max(1)),
                newest.rate * 0.5,
            );
            self.add_layer(entries, rate)?;
        }
        let newest = self.layers.last_mut().expect("there is always a layer");
        let new = newest.plain.insert(newest.data.to_mut(), key);
        newest.keys += u64::from(new);
        self.keys = self.keys.saturating_add(u64::from(new));
        Ok(new)
    }

    /// Adds all keys of another one with the same layers. The counts are added,
    /// so that the newest layer isn't full later than it should be.
    pub(crate) fn union_with(&mut self, other: &Chain<'_>) -> Result<(), Error> {
        if self.layers.len() != other.layers.len() {
            return Err(Error::Unlike {
                what: "layers",
                ours: self.layers.len().to_string(),
                theirs: other.layers.len().to_string(),
            });
        }
        let mut united = self.clone();
        for (layer, more) in united.layers.iter_mut().zip(&other.layers) {
            let plain = &layer.plain;
            plain.union_with(layer.data.to_mut(), &more.plain, more.view())?;
            layer.keys = layer.keys.saturating_add(more.keys);
        }
        united.keys = united.keys.saturating_add(other.keys);
        *self = united;
        Ok(())
    }

    /// An owned copy.
    pub fn into_owned(self) -> Chain<'static> {
        let owned = |layer: Layer<'a>| Layer {
            data: Cow::Owned(layer.data.into_owned()),
            entries: layer.entries,
            keys: layer.keys,
            rate: layer.rate,
            bits_per_entry: layer.bits_per_entry,
            plain: layer.plain,
        };
        Chain {
            keys: self.keys,
            options: self.options,
            growth: self.growth,
            layers: self.layers.into_iter().map(owned).collect(),
        }
    }

    /// The number of keys that were new.
    pub const fn keys(&self) -> u64 {
        self.keys
    }

    /// The numbers that BF.DEBUG reports for each layer: bytes, bits, hashes,
    /// capacity, keys and rate.
    pub fn layer_numbers(&self) -> impl Iterator<Item = ([u64; 5], f64)> {
        self.layers.iter().map(|layer| {
            let numbers = [
                layer.data.len() as u64,
                layer.plain.bits.len,
                layer.hashes(),
                layer.entries,
                layer.keys,
            ];
            (numbers, layer.rate)
        })
    }

    /// The capacity of all layers.
    pub fn capacity(&self) -> u64 {
        self.layers
            .iter()
            .fold(0, |sum, layer| sum.saturating_add(layer.entries))
    }

    /// How many times larger a new layer is than the last; `None` if the filter
    /// doesn't grow.
    pub const fn growth(&self) -> Option<u64> {
        match self.options & NO_SCALING {
            0 => Some(self.growth),
            _ => None,
        }
    }

    /// The memory in bytes that the next new key needs; 0 while there is room.
    pub fn growth_bytes(&self) -> u64 {
        let newest = &self.layers[self.layers.len() - 1];
        if newest.keys < newest.entries || self.options & NO_SCALING != 0 {
            return 0;
        }
        let entries = newest.entries.saturating_mul(self.growth.max(1));
        Numbers::new(entries, newest.rate * 0.5).map_or(u64::MAX, |numbers| numbers.bits / 8)
    }

    /// The buffers of its parts, for servers that defragment memory.
    pub fn bodies_mut(&mut self) -> impl Iterator<Item = &mut Vec<u8>> {
        self.layers.iter_mut().map(|part| part.data.to_mut())
    }

    /// An empty filter with the same initial parameters.
    pub fn template(&self) -> Result<Chain<'static>, Error> {
        let first = &self.layers[0];
        let mut chain = Chain {
            keys: 0,
            options: self.options,
            growth: self.growth,
            layers: Vec::new(),
        };
        let numbers = Numbers {
            entries: first.entries,
            keys: 0,
            rate: first.rate,
            bits_per_entry: first.bits_per_entry,
            hashes: first.hashes(),
            bits: first.plain.bits.len,
            power: 0,
        };
        let bytes = with_zeros(&[], first.data.len() as u64)?;
        chain.layers.push(numbers.layer(bytes.into())?);
        Ok(chain)
    }

    /// Adds all keys of another one with the same initial parameters, if each
    /// layer has room for the keys of both; otherwise returns the difference,
    /// and changes nothing.
    pub fn union_within_capacity(&mut self, other: &Chain<'_>) -> Result<(), Error> {
        let refuse = |what, ours: u64, theirs: u64| {
            Err(Error::Unlike {
                what,
                ours: ours.to_string(),
                theirs: theirs.to_string(),
            })
        };
        for (ours, theirs) in self.layers.iter().zip(&other.layers) {
            if ours.plain.bits.len != theirs.plain.bits.len {
                return refuse(
                    "bits of a layer",
                    ours.plain.bits.len,
                    theirs.plain.bits.len,
                );
            }
            if ours.hashes() != theirs.hashes() {
                return refuse("hashes", ours.hashes(), theirs.hashes());
            }
            if ours.keys.saturating_add(theirs.keys) > ours.entries {
                return Err(Error::Full {
                    format: FORMAT,
                    capacity: ours.entries,
                });
            }
        }
        for (ours, theirs) in self.layers.iter_mut().zip(&other.layers) {
            unite(ours.data.to_mut(), theirs.view());
            ours.keys += theirs.keys;
        }
        let more = other.layers.get(self.layers.len()..).unwrap_or_default();
        for layer in more {
            self.layers.push(layer.to_owned());
        }
        self.keys = self.keys.saturating_add(other.keys);
        Ok(())
    }

    /// The rate that was requested.
    pub fn rate(&self) -> f64 {
        let first = self.layers[0].rate;
        if self.options & NO_SCALING == 0 {
            2.0 * first
        } else {
            first
        }
    }

    /// Each layer as a separate filter, with its bits.
    pub(crate) fn layers(&self) -> impl Iterator<Item = (&Plain, View<'_>)> {
        self.layers.iter().map(|layer| (&layer.plain, layer.view()))
    }
}
