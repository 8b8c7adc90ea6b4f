//! The layers of a growing filter, as its body holds them.
//!
//! The body is one layer behind the other: a line that describes it (see
//! [`put`]), then its lines.

use crate::error::Error;
use crate::raw::blocked::{BlockedShape, LINE_WORDS};
use crate::raw::word::Word;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Lines, layers, and bits per key, of a [`Growing`](crate::Growing) filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrowingShape {
    /// Of all layers, with the one that describes each.
    lines: u64,
    layers: u32,
    hashes_per_line: u32,
    lines_per_key: u32,
}

/// Far beyond what the slowest growth needs to fill any machine.
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
        // Behind the line that describes it, a layer is a blocked filter.
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

    /// With one layer more.
    pub(crate) fn and(self, layer: BlockedShape) -> Result<Self, Error> {
        Self::new(
            self.lines + layer.lines() + 1,
            self.hashes_per_line,
            self.lines_per_key,
            u64::from(self.layers) + 1,
        )
    }

    /// The number of 64-byte lines, with one for each layer that describes it.
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

/// A layer of a growing filter: its geometry, the new keys that it takes, and
/// its rate when it has taken them.
///
/// [`Growing`](crate::Growing) sees to its layers by itself; this is for
/// growing filters that live elsewhere than in memory.
///
/// ```
/// use tamis::raw::GrowingLayer;
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

/// A layer, and where it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layer {
    pub(crate) shape: BlockedShape,
    /// New keys that it takes.
    pub(crate) capacity: u64,
    /// New keys that it has taken; at least those, after a writer that died.
    pub(crate) keys: u64,
    pub(crate) rate: f64,
    /// Which part of the body, 0 being the first, and the index of its first
    /// word there, behind the line that describes it.
    pub(crate) part: usize,
    pub(crate) at: usize,
}

// The words of the line that describes a layer; the others are zero.
const LINES: usize = 0;
const CAPACITY: usize = 1;
pub(crate) const KEYS: usize = 2;
const RATE: usize = 3;
const RESERVED: usize = 4;

/// Describes a layer without keys in the first line of `words`.
pub(crate) fn put(layer: &GrowingLayer, words: &[AtomicU64]) {
    let values = [
        (LINES, layer.shape.lines()),
        (CAPACITY, layer.capacity),
        (RATE, layer.rate.to_bits()),
    ];
    for (word, value) in values {
        words[word].store(value.to_le(), Relaxed);
    }
}

impl GrowingLayer {
    /// The geometry.
    pub const fn shape(&self) -> BlockedShape {
        self.shape
    }

    /// The number of new keys that it takes.
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The rate at its capacity.
    pub const fn rate(&self) -> f64 {
        self.rate
    }

    /// The line that describes it in a body, having taken this many keys.
    ///
    /// ```
    /// use tamis::raw::GrowingLayer;
    /// let layer = GrowingLayer::first_of_one_line(1_000, 0.01)?;
    /// let line = layer.encode(7);
    /// assert_eq!(GrowingLayer::decode(&line, &layer.shape())?, (layer, 7));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn encode(&self, keys: u64) -> [u8; 64] {
        let words = [const { AtomicU64::new(0) }; LINE_WORDS];
        put(self, &words);
        words[KEYS].store(keys.to_le(), Relaxed);
        let mut line = [0; 64];
        for (to, word) in line.as_chunks_mut().0.iter_mut().zip(&words) {
            *to = word.get().to_le_bytes();
        }
        line
    }

    /// The layer that a line describes, and how many keys it has taken. `like`
    /// has the hashes of all layers. Never panics, whatever the bytes.
    pub fn decode(line: &[u8; 64], like: &BlockedShape) -> Result<(Self, u64), Error> {
        let words = line.as_chunks::<8>().0;
        let get = |word: usize| words[word].get();
        let shape = BlockedShape::new(get(LINES), like.hashes_per_line(), like.lines_per_key());
        let layer = Self {
            shape: shape
                .map_err(|_| Error::corrupt("lines of a layer", "1 to 2^54", get(LINES)))?,
            capacity: get(CAPACITY),
            rate: f64::from_bits(get(RATE)),
        };
        if layer.capacity == 0 || get(KEYS) > layer.capacity {
            let expected = format_args!("at most its capacity of {}", layer.capacity).to_string();
            return Err(Error::corrupt("keys of a layer", expected, get(KEYS)));
        }
        if !(layer.rate > 0.0 && layer.rate < 1.0) {
            return Err(Error::corrupt(
                "rate of a layer",
                "between 0 and 1",
                layer.rate,
            ));
        }
        match words[RESERVED..].iter().all(|word| word.get() == 0) {
            true => Ok((layer, get(KEYS))),
            false => Err(Error::corrupt("reserved words of a layer", 0, "other")),
        }
    }
}

/// The layers of a body. Whatever its bytes, never panics, and every layer it
/// returns lies within `words`.
pub(crate) fn parse<W: Word>(
    shape: &GrowingShape,
    promise: f64,
    words: &[W],
) -> Result<Vec<Layer>, Error> {
    let lines = words.as_chunks::<LINE_WORDS>().0;
    let mut layers: Vec<Layer> = Vec::new();
    let (mut next, mut capacities, mut rates) = (0, 0u64, 0.0);
    while let Some((about, rest)) = lines[next..].split_first() {
        let get = |word: usize| about[word].get();
        let refuse = |what, expected: &dyn fmt::Display, got: &dyn fmt::Display| {
            Err(Error::corrupt(what, expected, got))
        };
        if layers.len() == shape.layers as usize {
            return refuse("layers", &shape.layers, &"more");
        }
        if !(1..=rest.len() as u64).contains(&get(LINES)) {
            let most = format_args!("1 to {}, as the body has", rest.len()).to_string();
            return refuse("lines of a layer", &most, &get(LINES));
        }
        capacities = match capacities.checked_add(get(CAPACITY)) {
            Some(sum) if get(CAPACITY) > 0 => sum,
            _ => return refuse("capacity of a layer", &"a number of keys", &get(CAPACITY)),
        };
        if get(KEYS) > get(CAPACITY) {
            return refuse("keys of a layer", &"at most its capacity", &get(KEYS));
        }
        let rate = f64::from_bits(get(RATE));
        rates += rate;
        // Written so that NaN is refused too.
        if !(rate > 0.0 && rates <= promise * (1.0 + 1e-9)) {
            return refuse("rate of a layer", &"its share of the promise", &rate);
        }
        if about[RESERVED..].iter().any(|word| word.get() != 0) {
            return refuse("reserved words of a layer", &0, &"other");
        }
        let lines = get(LINES);
        let Ok(of_layer) = BlockedShape::new(lines, shape.hashes_per_line, shape.lines_per_key)
        else {
            return refuse(
                "lines of a layer",
                &"a multiple of the lines per key",
                &lines,
            );
        };
        layers.push(Layer {
            shape: of_layer,
            capacity: get(CAPACITY),
            keys: get(KEYS),
            rate,
            part: 0,
            at: (next + 1) * LINE_WORDS,
        });
        next += 1 + lines as usize;
    }
    match layers.len() == shape.layers as usize {
        true => Ok(layers),
        false => Err(Error::corrupt("layers", shape.layers, layers.len())),
    }
}

/// Whether a body is sound, before its file is changed.
pub(crate) fn check<W: Word>(shape: &GrowingShape, promise: f64, words: &[W]) -> Result<(), Error> {
    parse(shape, promise, words).map(drop)
}
