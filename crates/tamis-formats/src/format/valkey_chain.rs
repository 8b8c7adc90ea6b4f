//! valkey-bloom's Bloom filter: layers that are filters of the crate
//! `bloomfilter`. The newest one accepts keys until it is full.

use super::redis::rdb::{Sink, Source};
use super::{sized, valkey, with_zeros};
use crate::fields::Fields;
use crate::plain::Plain;
use crate::{Error, Format};

const FORMAT: Format = Format::Valkey;
/// The length of a layer's header before its bits.
const LAYER_HEADER: u64 = 45;
const MOST_LAYERS: u64 = 1024;
const MOST_BYTES: u64 = 1 << 45;
/// The version of BF.LOAD's format.
const LOAD_VERSION: u8 = 1;
/// The seed of filters without a random one.
const FIXED_SEED: [u8; 32] = [
    89, 15, 245, 34, 234, 120, 17, 218, 167, 20, 216, 9, 59, 62, 123, 217, 29, 137, 138, 115, 62,
    152, 136, 135, 48, 127, 151, 205, 40, 7, 51, 131,
];

/// valkey-bloom's Bloom filter, as kept by its server.
///
/// ```
/// use tamis_formats::valkeybloom::Chain;
/// let mut seen = Chain::new(100, 0.01, 0.5, 2, [7; 32])?;
/// assert!(seen.insert(b"key")? && seen.contains(b"key"));
/// // What BF.LOAD takes:
/// assert!(Chain::of_load(&seen.to_load())?.contains(b"key"));
/// # Ok::<(), tamis_formats::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Chain {
    /// 0: the filter can't grow.
    expansion: u32,
    rate: f64,
    tightening: f64,
    layers: Vec<Layer>,
}

#[derive(Clone, Debug)]
struct Layer {
    capacity: u64,
    keys: u64,
    plain: Plain,
    data: Vec<u8>,
}

impl Layer {
    fn new(capacity: u64, rate: f64, seed: &[u8; 32]) -> Result<Self, Error> {
        let (keys, ln_2) = (capacity as f64, std::f64::consts::LN_2);
        let bytes = sized(
            (keys * rate.ln() / (-8.0 * (ln_2 * ln_2))).ceil(),
            MOST_BYTES,
        )?
        .max(1);
        let hashes = ((bytes * 8) as f64 / keys * ln_2).round().max(1.0) as u32;
        let mut header = vec![1];
        header.extend(bytes.to_le_bytes());
        header.extend(hashes.to_le_bytes());
        header.extend(seed);
        Self::read(capacity, 0, with_zeros(&header, bytes)?)
    }

    fn read(capacity: u64, keys: u64, data: Vec<u8>) -> Result<Self, Error> {
        let plain = valkey::plain(data[..].into())?;
        if !(1..=i64::MAX as u64).contains(&capacity) || keys > capacity {
            let got = format_args!("{keys} of {capacity}");
            return Err(Error::corrupt(FORMAT, "keys", "at most the capacity", got));
        }
        Ok(Self {
            capacity,
            keys,
            plain,
            data,
        })
    }
}

impl Chain {
    fn assembled(
        expansion: u64,
        rate: f64,
        tightening: f64,
        layers: Vec<Layer>,
    ) -> Result<Self, Error> {
        let share = |number: f64| number > 0.0 && number < 1.0;
        if !share(rate) || !share(tightening) {
            let got = format_args!("{rate} and {tightening}");
            return Err(Error::corrupt(FORMAT, "rates", "between 0 and 1", got));
        }
        let Ok(expansion) = u32::try_from(expansion) else {
            return Err(Error::corrupt(FORMAT, "expansion", "32 bits", expansion));
        };
        if layers.is_empty() {
            return Err(Error::corrupt(FORMAT, "layers", "at least 1", 0));
        }
        Ok(Self {
            expansion,
            rate,
            tightening,
            layers,
        })
    }

    /// An empty one. With `expansion` 0, it accepts no more than `capacity`
    /// keys.
    pub fn new(
        capacity: u64,
        rate: f64,
        tightening: f64,
        expansion: u32,
        seed: [u8; 32],
    ) -> Result<Self, Error> {
        let first = Layer::new(capacity.max(1), rate, &seed)?;
        Self::assembled(expansion.into(), rate, tightening, vec![first])
    }

    /// Reads the fields of an RDB value, in order. Never panics, whatever the
    /// fields.
    pub fn decode<'a>(reader: &mut impl Source<'a>) -> Result<Self, Error> {
        let count = reader.unsigned("layers")?;
        if !(1..=MOST_LAYERS).contains(&count) {
            return Err(Error::corrupt(FORMAT, "layers", "1 to 1024", count));
        }
        let expansion = reader.unsigned("expansion")?;
        let rate = reader.double("rate")?;
        let tightening = reader.double("tightening ratio")?;
        reader.unsigned("whether the seed is random")?;
        let mut layers = Vec::new();
        for i in 1..=count {
            let data = reader.string("layer")?.into_owned();
            let capacity = reader.unsigned("capacity")?;
            // Older layers are full, so their counts aren't stored.
            let keys = if i == count {
                reader.unsigned("keys")?
            } else {
                capacity
            };
            layers.push(Layer::read(capacity, keys, data)?);
        }
        Self::assembled(expansion, rate, tightening, layers)
    }

    /// Writes the fields of an RDB value.
    pub fn encode(&self, out: &mut impl Sink) {
        out.unsigned(self.layers.len() as u64);
        out.unsigned(self.expansion.into());
        out.double(self.rate);
        out.double(self.tightening);
        out.unsigned(self.has_random_seed().into());
        for layer in &self.layers {
            out.string(&layer.data);
            out.unsigned(layer.capacity);
        }
        out.unsigned(self.newest().keys);
    }

    /// Reads the argument of BF.LOAD. Never panics, whatever the bytes.
    pub fn of_load(bytes: &[u8]) -> Result<Self, Error> {
        let mut fields = Fields::new(FORMAT, bytes);
        fields.ranged("version", LOAD_VERSION..=LOAD_VERSION, Fields::u8)?;
        let expansion = fields.u32_le("expansion")?;
        let rate = fields.f64_le("rate")?;
        let tightening = fields.f64_le("tightening ratio")?;
        fields.u8("whether the seed is random")?;
        let count = fields.ranged("layers", 1..=MOST_LAYERS, Fields::u64_le)?;
        let mut layers = Vec::new();
        for _ in 0..count {
            let len = fields.u64_le("length of a layer")?;
            let data = fields.take("layer", len)?.into_owned();
            let (keys, capacity) = (fields.u64_le("keys")?, fields.u64_le("capacity")?);
            layers.push(Layer::read(capacity, keys, data)?);
        }
        fields.body("end", 0)?;
        Self::assembled(expansion.into(), rate, tightening, layers)
    }

    /// The argument of BF.LOAD.
    pub fn to_load(&self) -> Vec<u8> {
        let mut out = vec![LOAD_VERSION];
        out.extend(self.expansion.to_le_bytes());
        out.extend(self.rate.to_le_bytes());
        out.extend(self.tightening.to_le_bytes());
        out.push(self.has_random_seed().into());
        out.extend((self.layers.len() as u64).to_le_bytes());
        for layer in &self.layers {
            out.extend((layer.data.len() as u64).to_le_bytes());
            out.extend(&layer.data);
            out.extend(layer.keys.to_le_bytes());
            out.extend(layer.capacity.to_le_bytes());
        }
        out
    }

    fn newest(&self) -> &Layer {
        &self.layers[self.layers.len() - 1]
    }

    /// The seed of the hashes of all layers.
    pub fn seed(&self) -> [u8; 32] {
        let seed = &self.layers[0].data[13..];
        std::array::from_fn(|i| seed[i])
    }

    fn has_random_seed(&self) -> bool {
        self.seed() != FIXED_SEED
    }

    /// Whether the key may have been added.
    pub fn contains(&self, key: &[u8]) -> bool {
        (self.layers.iter().rev()).any(|layer| layer.plain.contains(layer.data[..].into(), key))
    }

    /// Adds a key; returns whether it was new.
    pub fn insert(&mut self, key: &[u8]) -> Result<bool, Error> {
        if self.contains(key) {
            return Ok(false);
        }
        let newest = self.newest();
        if newest.keys >= newest.capacity {
            if self.expansion == 0 {
                return Err(Error::Full {
                    format: FORMAT,
                    capacity: newest.capacity,
                });
            }
            let (capacity, rate) = self.next();
            self.layers.push(Layer::new(capacity, rate, &self.seed())?);
        }
        let newest = self.layers.len() - 1;
        let newest = &mut self.layers[newest];
        newest.plain.insert(&mut newest.data, key);
        newest.keys += 1;
        Ok(true)
    }

    /// The capacity and the rate of the next layer.
    fn next(&self) -> (u64, f64) {
        let capacity = self.newest().capacity.saturating_mul(self.expansion.into());
        let rate = self.rate * self.tightening.powi(self.layers.len() as i32);
        (capacity, rate.max(f64::MIN_POSITIVE))
    }

    /// The memory in bytes that the next new key needs; 0 while there is room.
    pub fn growth_bytes(&self) -> u64 {
        let newest = self.newest();
        if newest.keys < newest.capacity || self.expansion == 0 {
            return 0;
        }
        let (capacity, rate) = self.next();
        let bytes = capacity as f64 * rate.ln() / (-8.0 * std::f64::consts::LN_2.powi(2));
        LAYER_HEADER + bytes.ceil() as u64
    }

    /// The number of keys that were new.
    pub fn keys(&self) -> u64 {
        self.layers.iter().map(|layer| layer.keys).sum()
    }

    /// The capacity of all layers.
    pub fn capacity(&self) -> u64 {
        let capacities = self.layers.iter().map(|layer| layer.capacity);
        capacities.fold(0, u64::saturating_add)
    }

    /// The rate that was requested.
    pub const fn rate(&self) -> f64 {
        self.rate
    }

    /// The factor between the rate of a layer and that of the next.
    pub const fn tightening(&self) -> f64 {
        self.tightening
    }

    /// How many times larger a new layer is than the last; `None` if the filter
    /// doesn't grow.
    pub fn expansion(&self) -> Option<u32> {
        Some(self.expansion).filter(|times| *times > 0)
    }

    /// An empty filter with the same initial parameters.
    pub fn template(&self) -> Result<Self, Error> {
        let first = &self.layers[0];
        let header = &first.data[..LAYER_HEADER as usize];
        let data = with_zeros(header, first.data.len() as u64 - LAYER_HEADER)?;
        let first = Layer::read(first.capacity, 0, data)?;
        Ok(Self {
            layers: vec![first],
            ..*self
        })
    }

    /// The layers, each with its header.
    pub fn parts(&self) -> Vec<&[u8]> {
        self.layers.iter().map(|layer| &*layer.data).collect()
    }

    /// The buffers of its parts, for servers that defragment memory.
    pub fn bodies_mut(&mut self) -> impl Iterator<Item = &mut Vec<u8>> {
        self.layers.iter_mut().map(|layer| &mut layer.data)
    }

    /// The address and the alignment of the list of layers.
    pub fn list(&self) -> (*const u8, usize) {
        (self.layers.as_ptr().cast(), align_of::<Layer>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_and_loads_and_refuses_what_is_not_whole() {
        let mut chain = Chain::new(10, 0.01, 0.5, 2, FIXED_SEED).unwrap();
        for i in 0..200u32 {
            chain.insert(&i.to_le_bytes()).unwrap();
        }
        assert!(chain.parts().len() > 3 && chain.capacity() >= chain.keys());
        let bytes = chain.to_load();
        let mut copy = Chain::of_load(&bytes).unwrap();
        assert!((0..200u32).all(|i| copy.contains(&i.to_le_bytes())));
        assert_eq!(copy.to_load(), bytes);
        for i in 200..400u32 {
            assert_eq!(
                copy.insert(&i.to_le_bytes()).unwrap(),
                chain.insert(&i.to_le_bytes()).unwrap()
            );
        }
        assert_eq!(copy.to_load(), chain.to_load());
        for len in 0..bytes.len() {
            assert!(Chain::of_load(&bytes[..len]).is_err(), "{len}");
        }
        let mut fixed = Chain::new(2, 0.01, 0.5, 0, [3; 32]).unwrap();
        assert!(fixed.insert(b"a").unwrap() && fixed.insert(b"b").unwrap());
        assert!(fixed.insert(b"c").is_err() && !fixed.insert(b"a").unwrap());
        assert_eq!(fixed.growth_bytes(), 0);
        assert_eq!(fixed.template().unwrap().keys(), 0);
    }
}
