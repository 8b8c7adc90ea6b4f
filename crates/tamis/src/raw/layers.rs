//! The layers of a growing filter in its body.
//!
//! The body is a sequence of layers, each a line that describes it (see [`put`]), then its lines.

use crate::error::Error;
use crate::raw::blocked::{BlockedShape, LINE_WORDS};
use crate::raw::word::{SharedWord, Word};

/// Lines, layers, and bits per key, of a [`Growing`](crate::Growing) filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrowingShape {
    /// Of all layers, including the describing lines.
    lines: u64,
    layers: u32,
    hashes_per_line: u32,
    lines_per_key: u32,
}

/// Far more than the slowest growth needs to fill any machine.
const MAX_LAYERS: u64 = 1000;

impl GrowingShape {
    pub(crate) fn new(
        lines: u64,
        hashes_per_line: u32,
        lines_per_key: u32,
        layers: u64,
    ) -> Result<Self, Error> {
        let refuse = |what, expected, got: u64| Error::parameter(what, expected, got);
        if !(1..=MAX_LAYERS).contains(&layers) {
            return Err(refuse("layers", "1 to 1000", layers));
        }
        if lines < 2 * layers {
            return Err(refuse("lines", "at least two for each layer", lines));
        }
        // A layer is a blocked filter after its describing line.
        BlockedShape::new(lines - layers, hashes_per_line, lines_per_key)?;
        Ok(Self {
            lines,
            layers: layers as u32,
            hashes_per_line,
            lines_per_key,
        })
    }

    pub(crate) fn of_first(layer: BlockedShape) -> Result<Self, Error> {
        let (hashes, per_key) = (layer.hashes_per_line(), layer.lines_per_key());
        Self::new(layer.lines() + 1, hashes, per_key, 1)
    }

    /// Adds a layer.
    pub(crate) fn and(self, layer: BlockedShape) -> Result<Self, Error> {
        Self::new(
            self.lines + layer.lines() + 1,
            self.hashes_per_line,
            self.lines_per_key,
            u64::from(self.layers) + 1,
        )
    }

    /// The number of 64-byte lines, including one that describes each layer.
    pub const fn lines(&self) -> u64 {
        self.lines
    }

    /// The number of layers.
    pub const fn layers(&self) -> u32 {
        self.layers
    }

    /// How many bits a key sets in each of its lines.
    pub const fn hashes_per_line(&self) -> u32 {
        self.hashes_per_line
    }

    /// How many lines of a layer hold a key's bits: 1 to 4.
    pub const fn lines_per_key(&self) -> u32 {
        self.lines_per_key
    }

    pub(crate) const fn body_len(&self) -> u64 {
        self.lines * 64
    }
}

/// A layer of a growing filter: its geometry, its capacity for new keys, and its rate at that
/// capacity.
///
/// For growing filters stored elsewhere than in memory; [`Growing`](crate::Growing) adds its layers
/// itself.
///
/// ```
/// use tamis::internals::raw::GrowingLayer;
/// let mut layers = vec![GrowingLayer::first_of_one_line(1_000, 0.01)?];
/// layers.push(GrowingLayer::next(&layers, 0.01)?);
/// assert!(layers.iter().map(|layer| layer.rate()).sum::<f64>() < 0.01);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GrowingLayer {
    pub(crate) shape: BlockedShape,
    pub(crate) capacity: u64,
    pub(crate) rate: f64,
}

/// A layer and its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layer {
    pub(crate) shape: BlockedShape,
    /// The number of new keys it takes.
    pub(crate) capacity: u64,
    /// The number of new keys it has taken; a lower bound after the death of a writer.
    pub(crate) keys: u64,
    pub(crate) rate: f64,
    /// The part of the body, 0 being the first, and the index of the layer's first word there,
    /// after the line that describes it.
    pub(crate) part: usize,
    pub(crate) at: usize,
}

// The words of the line that describes a layer; all others are zero.
const LINES: usize = 0;
const CAPACITY: usize = 1;
pub(crate) const KEYS: usize = 2;
const RATE: usize = 3;
const RESERVED: usize = 4;

/// Describes an empty layer in the first line of `words`.
pub(crate) fn put<W: SharedWord>(layer: &GrowingLayer, words: &[W]) {
    for (word, value) in words.iter().zip(layer.describe(0)) {
        word.put(value);
    }
}

impl GrowingLayer {
    /// The geometry.
    pub const fn shape(&self) -> BlockedShape {
        self.shape
    }

    /// The number of new keys it takes.
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The rate at its capacity.
    pub const fn rate(&self) -> f64 {
        self.rate
    }

    /// The line that describes it in a body after this many keys.
    ///
    /// ```
    /// use tamis::internals::raw::GrowingLayer;
    /// let layer = GrowingLayer::first_of_one_line(1_000, 0.01)?;
    /// let line = layer.encode(7);
    /// assert_eq!(GrowingLayer::decode(&line, &layer.shape())?, (layer, 7));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn encode(&self, keys: u64) -> [u8; 64] {
        let mut line = [0; 64];
        for (to, word) in line.as_chunks_mut().0.iter_mut().zip(self.describe(keys)) {
            *to = word.to_le_bytes();
        }
        line
    }

    fn describe(&self, keys: u64) -> [u64; LINE_WORDS] {
        let mut words = [0; LINE_WORDS];
        words[LINES] = self.shape.lines();
        words[CAPACITY] = self.capacity;
        words[KEYS] = keys;
        words[RATE] = self.rate.to_bits();
        words
    }

    /// The layer that a line describes, and its number of keys. `like` has the hashes of all
    /// layers. Never panics, whatever the bytes.
    pub fn decode(line: &[u8; 64], like: &BlockedShape) -> Result<(Self, u64), Error> {
        Self::read(
            line.as_chunks().0,
            like.hashes_per_line(),
            like.lines_per_key(),
        )
    }

    fn read<W: Word>(line: &[W], hashes: u32, per_key: u32) -> Result<(Self, u64), Error> {
        let [lines, capacity, keys, rate] = [LINES, CAPACITY, KEYS, RATE].map(|i| line[i].get());
        let expected = "1 to 2^54, a multiple of the lines per key";
        let layer = Self {
            shape: BlockedShape::new(lines, hashes, per_key)
                .map_err(|_| Error::corrupt("lines of a layer", expected, lines))?,
            capacity,
            rate: f64::from_bits(rate),
        };
        if capacity == 0 {
            return Err(Error::corrupt("capacity of a layer", "at least 1", 0));
        }
        if keys > capacity {
            let expected = format_args!("at most its capacity of {capacity}");
            return Err(Error::corrupt("keys of a layer", expected, keys));
        }
        // The range check also refuses NaN.
        if !(layer.rate > 0.0 && layer.rate < 1.0) {
            let expected = "between 0 and 1";
            return Err(Error::corrupt("rate of a layer", expected, layer.rate));
        }
        if line[RESERVED..].iter().any(|word| word.get() != 0) {
            return Err(Error::corrupt("reserved words of a layer", 0, "other"));
        }
        Ok((layer, keys))
    }
}

/// The layers of a body. Never panics, whatever its bytes, and every layer it returns is within
/// `words`.
pub(crate) fn parse<W: Word>(
    shape: &GrowingShape,
    promise: f64,
    words: &[W],
) -> Result<Vec<Layer>, Error> {
    let lines = words.as_chunks::<LINE_WORDS>().0;
    let mut layers: Vec<Layer> = Vec::new();
    let (mut next, mut capacities, mut rates) = (0, 0u64, 0.0);
    while let Some((about, rest)) = lines[next..].split_first() {
        if layers.len() == shape.layers as usize {
            return Err(Error::corrupt("layers", shape.layers, "more"));
        }
        let (layer, keys) = GrowingLayer::read(about, shape.hashes_per_line, shape.lines_per_key)?;
        let GrowingLayer {
            shape,
            capacity,
            rate,
        } = layer;
        if shape.lines() > rest.len() as u64 {
            let expected = format_args!("at most {}, as the body has", rest.len());
            return Err(Error::corrupt("lines of a layer", expected, shape.lines()));
        }
        let sum = capacities.checked_add(capacity);
        let overflow = || Error::corrupt("capacity of a layer", "a number of keys", capacity);
        capacities = sum.ok_or_else(overflow)?;
        rates += rate;
        if rates > promise * (1.0 + 1e-9) {
            return Err(Error::corrupt(
                "rate of a layer",
                "its share of the promise",
                rate,
            ));
        }
        layers.push(Layer {
            shape,
            capacity,
            keys,
            rate,
            part: 0,
            at: (next + 1) * LINE_WORDS,
        });
        next += 1 + shape.lines() as usize;
    }
    if layers.len() != shape.layers as usize {
        return Err(Error::corrupt("layers", shape.layers, layers.len()));
    }
    Ok(layers)
}

/// Checks a body before its file is changed.
pub(crate) fn check<W: Word>(shape: &GrowingShape, promise: f64, words: &[W]) -> Result<(), Error> {
    parse(shape, promise, words).map(drop)
}
