//! Sizing: computes one of expected keys, rate and size from the other two.
//!
//! Every kind's rate is computed from its real layout. For the blocked kind that is a closed form
//! (`lines`); the classic formula would promise a rate 1.5 to 3 times lower than measured.

mod bloom;
pub mod classic;
mod cuckoo;
mod finished;
pub(crate) mod growing;
mod lines;
mod rated;
pub mod server;
#[cfg(test)]
mod tests;
mod window;

pub use cuckoo::{FEWEST_CUCKOO_KEYS, cuckoo_layers};
pub use finished::cascade_bound;
pub(crate) use finished::{first_width, width_for_rate};
#[doc(hidden)]
pub use rated::Rated;
pub(crate) use rated::{check_keys, check_rate};

use crate::error::Error;
use crate::kind::Kind;
use crate::raw::blocked::BlockedShape;
use crate::raw::bloom::BloomShape;
use crate::raw::counting::CountingShape;
use crate::raw::cuckoo::CuckooShape;
use crate::raw::layers::{GrowingLayer, GrowingShape};
use crate::raw::shape::Shape;
use crate::raw::window::{Span, WindowOptions};
use growing::{Expansion, Grown};
use rated::{MIN_RATE, most_keys, no_room, shown, too_large, wrong_size};
use std::f64::consts::LN_2;

/// A filter that could be built: its shape and expected numbers.
///
/// ```
/// use tamis::{Kind, Plan};
/// let plan = Plan::for_rate(Kind::Blocked, 1_000_000, 0.01)?;
/// assert!(plan.bits_per_key() < 9.95);
/// assert!(plan.rate() <= 0.01);
/// // Twice the keys in the same filter: what would the rate become?
/// assert!(plan.rate_at(2_000_000) > 0.05);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    shape: Shape,
    keys: u64,
    rate: f64,
    promise: f64,
}

impl Plan {
    /// The smallest filter of `kind` that holds `keys` at no more than `rate`.
    ///
    /// ```
    /// use tamis::{Kind, Plan};
    /// let plan = Plan::for_rate(Kind::Ribbon, 1_000_000, 1.0 / 128.0)?;
    /// assert!(plan.bits_per_key() < 7.1);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn for_rate(kind: Kind, keys: u64, rate: f64) -> Result<Self, Error> {
        check_keys(keys)?;
        check_rate(rate)?;
        let shape: Shape = match kind {
            Kind::Bloom => bloom::for_rate(keys, rate)?.into(),
            Kind::Blocked | Kind::Counting => of_lines(kind, lines::for_rate(keys, rate)?),
            Kind::Cuckoo => {
                // Beyond the widest slots, only empty slots lower the rate.
                if rate < MIN_CUCKOO_RATE {
                    return Err(Error::parameter(
                        "rate",
                        "at least 1e-9 for a cuckoo filter; a counting filter goes lower",
                        shown(rate),
                    ));
                }
                CuckooShape::for_rate(keys, rate)
                    .ok_or_else(|| too_large(keys, rate))?
                    .into()
            }
            Kind::Growing => return Ok(growing::for_rate(keys, rate)?.into()),
            Kind::Fuse | Kind::Ribbon | Kind::Cascade => {
                finished::shape_for(kind, keys, width_for_rate(rate)?)?
            }
            Kind::Window => return Self::window(&last(keys), keys, rate),
        };
        Ok(Self::of(shape, keys).promising(rate))
    }

    /// The filter of `kind` within `bytes` that gives `keys` the best rate.
    ///
    /// ```
    /// use tamis::{Kind, Plan};
    /// let plan = Plan::for_size(Kind::Blocked, 1_000_000, 1_250_000)?;
    /// assert!(plan.bytes() <= 1_250_000 && plan.rate() < 0.0098);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn for_size(kind: Kind, keys: u64, bytes: u64) -> Result<Self, Error> {
        check_keys(keys)?;
        check_size(bytes)?;
        let shape: Shape = match kind {
            Kind::Bloom => bloom::for_bits(keys, BloomShape::bits_within(bytes))?.into(),
            Kind::Blocked | Kind::Counting => {
                of_lines(kind, lines::for_size(keys, lines_within(kind, bytes)?)?)
            }
            Kind::Cuckoo => CuckooShape::for_size(keys, bytes)
                .ok_or_else(|| {
                    no_room(
                        "room for all keys, at least 5 bits for each in a cuckoo filter",
                        bytes,
                        keys,
                    )
                })?
                .into(),
            Kind::Growing => return Ok(growing::for_size(keys, bytes)?.into()),
            Kind::Fuse | Kind::Ribbon | Kind::Cascade => finished::for_size(kind, keys, bytes)?,
            Kind::Window => window::for_size(&last(keys), keys, bytes)?.into(),
        };
        Ok(Self::of(shape, keys))
    }

    /// The filter of `kind` within `bytes` that holds the most keys at no more
    /// than `rate`.
    ///
    /// ```
    /// use tamis::{Kind, Plan};
    /// let plan = Plan::for_rate_in_size(Kind::Blocked, 0.01, 2 << 30)?;
    /// assert!(plan.keys() > 1_700_000_000);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn for_rate_in_size(kind: Kind, rate: f64, bytes: u64) -> Result<Self, Error> {
        check_rate(rate)?;
        check_size(bytes)?;
        let (shape, keys) = match kind {
            Kind::Bloom => bloom::for_rate_in_size(rate, bytes)?,
            Kind::Blocked | Kind::Counting => {
                let (bits, keys) = lines::for_rate_in_size(rate, lines_within(kind, bytes)?)?;
                (of_lines(kind, bits), keys)
            }
            Kind::Cuckoo => {
                let most_for = |shape: &CuckooShape| {
                    most_keys(|keys| shape.slots_for(keys, rate) <= shape.slots() as f64)
                };
                CuckooShape::within(bytes)
                    .map(|shape| (Shape::from(shape), most_for(&shape)))
                    .max_by_key(|(_, keys)| *keys)
                    .ok_or_else(|| too_large(1, rate))?
            }
            Kind::Growing => return Ok(growing::for_rate_in_size(rate, bytes)?.into()),
            Kind::Fuse | Kind::Ribbon | Kind::Cascade => {
                finished::for_rate_in_size(kind, rate, bytes)?
            }
            Kind::Window => window::for_rate_in_size(rate, bytes)?,
        };
        if keys == 0 {
            return Err(wrong_size("room for at least one key at this rate", bytes));
        }
        Ok(Self::of(shape, keys).promising(rate))
    }

    /// The smallest [`Window`](crate::Window) with these options, for `keys` keys in its span. The rate holds
    /// when every generation is full; [`for_rate`](Self::for_rate) plans a window of the last `keys` keys.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tamis::{Plan, window::{Span, WindowOptions}};
    /// let day = WindowOptions::new(Span::Time(Duration::from_secs(86_400)));
    /// let plan = Plan::window(&day, 1_000_000, 0.01)?;
    /// assert!(plan.bits_per_key() < 22.0);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn window(options: &WindowOptions, keys: u64, rate: f64) -> Result<Self, Error> {
        check_keys(keys)?;
        check_rate(rate)?;
        let shape = window::for_rate(options, keys, rate)?;
        Ok(Self::of(shape, keys).promising(rate))
    }

    /// A blocked or counting filter with all bits of a key in one line, so that adding a key is a
    /// single command to a shared server. It is larger where [`for_rate`](Self::for_rate) would
    /// take more lines: see `docs/sharing.md`. For a growing filter, its first layer.
    ///
    /// Each bit costs server time, so this takes the fewest hashes that need at most a tenth more
    /// memory than the best number.
    ///
    /// ```
    /// use tamis::{Kind, Plan};
    /// let plan = Plan::one_line(Kind::Blocked, 1_000_000, 0.01)?;
    /// assert!(plan.hashes() == 4 && plan.bits_per_key() < 10.9);
    /// assert!(plan.rate() <= 0.01);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[doc(hidden)]
    pub fn one_line(kind: Kind, keys: u64, rate: f64) -> Result<Self, Error> {
        check_keys(keys)?;
        check_rate(rate)?;
        let shape: Shape = match kind {
            Kind::Blocked | Kind::Counting => of_lines(kind, lines::one_line(keys, rate)?),
            Kind::Growing => {
                let first = GrowingLayer::first_of_one_line(keys, rate)?;
                return Ok(Self {
                    shape: GrowingShape::of_first(first.shape())?.into(),
                    keys,
                    rate: first.shape().rate_at(keys as f64),
                    promise: rate,
                });
            }
            kind => {
                return Err(Error::Unable {
                    kind,
                    what: "planned with one line per key",
                    instead: "take a blocked, a counting or a growing filter",
                });
            }
        };
        Ok(Self::of(shape, keys).promising(rate))
    }

    /// What the module for Redis and Valkey reserves: a growing or a cuckoo filter that has room
    /// for `keys` and keeps `rate` if more come.
    ///
    /// ```
    /// use tamis::{Kind, Plan};
    /// let plan = Plan::in_module(Kind::Growing, 1_000_000, 0.01)?;
    /// assert!(plan.bits_per_key() < 10.5);
    /// // Its layers share the rate, so it is larger than one that can't grow.
    /// let cuckoo = Plan::in_module(Kind::Cuckoo, 1_000_000, 0.01)?;
    /// assert!(cuckoo.bytes() > Plan::for_rate(Kind::Cuckoo, 1_000_000, 0.01)?.bytes());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[doc(hidden)]
    pub fn in_module(kind: Kind, keys: u64, rate: f64) -> Result<Self, Error> {
        check_keys(keys)?;
        check_rate(rate)?;
        match kind {
            Kind::Growing => {
                let first = growing::reserved(keys, rate, Expansion::Auto)?;
                Ok(Self {
                    shape: GrowingShape::of_first(first.shape())?.into(),
                    keys,
                    rate: first.shape().rate_at(keys as f64),
                    promise: rate,
                })
            }
            Kind::Cuckoo => {
                let shape = layered_cuckoo(keys, rate, 2)?;
                Ok(Self::of(shape, keys).promising(rate))
            }
            kind => Err(Error::Unable {
                kind,
                what: "planned for a module",
                instead: "take a growing or a cuckoo filter",
            }),
        }
    }

    /// A filter of a given shape, filled with `keys`.
    ///
    /// ```
    /// use tamis::Plan;
    /// use tamis::internals::raw::BloomShape;
    /// let plan = Plan::of(BloomShape::new(10_000_000, 7)?, 1_000_000);
    /// assert!((0.0081..0.0083).contains(&plan.rate()));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[doc(hidden)]
    pub fn of(shape: impl Into<Shape>, keys: u64) -> Self {
        let shape = shape.into();
        let rate = rate_at(&shape, keys as f64);
        Self {
            shape,
            keys,
            rate,
            promise: rate.clamp(MIN_RATE, 1.0 - f64::EPSILON),
        }
    }

    /// A classic filter of exactly this many bits, however few. `hashes` defaults to the best
    /// number for `keys`; `keys` defaults to as many as set half of the bits, for which these
    /// hashes are best.
    ///
    /// ```
    /// use tamis::Plan;
    /// let picture = Plan::of_bits(16, Some(3), None)?;
    /// assert_eq!(picture.keys(), 4); // 16 / 3 · ln 2
    /// assert!((0.164..0.166).contains(&picture.rate()));
    /// assert_eq!(Plan::of_bits(16, None, Some(4))?.hashes(), 3);
    /// assert!(Plan::of_bits(16, None, None).is_err());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[doc(hidden)]
    pub fn of_bits(bits: u64, hashes: Option<u32>, keys: Option<u64>) -> Result<Self, Error> {
        keys.map_or(Ok(()), check_keys)?;
        let shape = match (hashes, keys) {
            (Some(hashes), _) => BloomShape::new(bits, hashes)?,
            (None, Some(keys)) => bloom::for_bits(keys, bits)?,
            (None, None) => {
                let expected = "a number, or the number of keys from which it follows";
                return Err(Error::parameter("hashes", expected, "neither"));
            }
        };
        let half_full = shape.bits() as f64 / f64::from(shape.hashes()) * LN_2;
        let keys = keys.unwrap_or((half_full.round() as u64).max(1));
        Ok(Self::of(shape, keys))
    }

    fn promising(self, promise: f64) -> Self {
        Self { promise, ..self }
    }

    /// The geometry to build.
    #[doc(hidden)]
    pub const fn shape(&self) -> Shape {
        self.shape
    }

    /// The kind of filter.
    pub const fn kind(&self) -> Kind {
        self.shape.kind()
    }

    /// The number of keys it is meant for.
    pub const fn keys(&self) -> u64 {
        self.keys
    }

    /// The expected rate when it holds [`keys`](Self::keys).
    pub const fn rate(&self) -> f64 {
        self.rate
    }

    /// The requested rate, which the filter promises up to [`keys`](Self::keys); the expected rate
    /// if none was requested.
    pub const fn promise(&self) -> f64 {
        self.promise
    }

    /// The expected rate when it holds `keys`.
    pub fn rate_at(&self, keys: u64) -> f64 {
        rate_at(&self.shape, keys as f64)
    }

    /// The expected rate after `keys` keys, however many it was planned for; `None` if it can't be
    /// expected to take this many. Bits and counters take any number of keys, at a rising rate; a
    /// cuckoo filter refuses keys that find no slot; a finished list takes no more; a growing
    /// filter grows and keeps its promise.
    ///
    /// ```
    /// use tamis::{Kind, Plan};
    /// let twice = |kind| Plan::for_rate(kind, 10_000, 0.01).map(|plan| plan.rate_after(20_000));
    /// assert!(twice(Kind::Blocked)? > Some(0.05));
    /// assert!(twice(Kind::Growing)? <= Some(0.01));
    /// assert_eq!(twice(Kind::Cuckoo)?, None);
    /// assert_eq!(twice(Kind::Fuse)?, None);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[doc(hidden)]
    pub fn rate_after(&self, keys: u64) -> Option<f64> {
        self.rates_after(&[keys]).next().flatten()
    }

    /// [`rate_after`](Self::rate_after) each of these numbers of keys. If they ascend, a growing
    /// filter grows only once for all of them.
    ///
    /// ```
    /// use tamis::{Kind, Plan};
    /// let plan = Plan::for_rate(Kind::Growing, 10_000, 0.01)?;
    /// assert!(plan.rates_after(&[1_000, 1_000_000]).all(|rate| rate <= Some(0.01)));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[doc(hidden)]
    pub fn rates_after(&self, keys: &[u64]) -> impl Iterator<Item = Option<f64>> {
        let mut growth = None;
        keys.iter().map(move |&keys| match self.shape {
            Shape::Cuckoo(shape) if keys > shape.most_entries() => None,
            Shape::Fuse(_) | Shape::Ribbon(_) | Shape::Cascade(_) if keys > self.keys => None,
            Shape::Growing(_) => growing::grown_to(&mut growth, keys, self.promise)
                .ok()
                .map(|grown| grown.rate),
            _ => Some(self.rate_at(keys)),
        })
    }

    /// The body's size in bytes.
    pub const fn bytes(&self) -> u64 {
        self.shape.body_len()
    }

    /// Memory per key, in bits.
    pub fn bits_per_key(&self) -> f64 {
        let bits = match self.shape {
            Shape::Bloom(shape) => shape.bits() as f64,
            _ => self.bytes() as f64 * 8.0,
        };
        bits / self.keys.max(1) as f64
    }

    /// How many bits a key sets in all; for a counting filter, counters; for a cuckoo filter, the
    /// places a key may be in; for a static kind, the bits of its fingerprint.
    pub const fn hashes(&self) -> u32 {
        match self.shape {
            Shape::Bloom(shape) => shape.hashes(),
            Shape::Blocked(shape) => shape.hashes_per_line() * shape.lines_per_key(),
            Shape::Counting(shape) => shape.hashes_per_line() * shape.lines_per_key(),
            Shape::Cuckoo(_) => 2,
            // All layers use the same bits.
            Shape::Growing(shape) => shape.hashes_per_line() * shape.lines_per_key(),
            Shape::Fuse(shape) => shape.width(),
            Shape::Ribbon(shape) => shape.width(),
            Shape::Cascade(shape) => shape.width(),
            Shape::Window(_) => 1,
        }
    }
}

/// A window of the last keys, with the default generations.
const fn last(keys: u64) -> WindowOptions {
    WindowOptions::new(Span::Keys(keys))
}

/// The rate of a cuckoo filter's widest slots.
const MIN_CUCKOO_RATE: f64 = 1e-9;

/// The first table of a growing cuckoo filter, whose layers share the rate.
fn layered_cuckoo(keys: u64, rate: f64, expansion: u32) -> Result<CuckooShape, Error> {
    let keys = keys.max(FEWEST_CUCKOO_KEYS);
    let layers = cuckoo_layers(keys, expansion);
    let share = rate / f64::from(layers);
    if share < MIN_CUCKOO_RATE {
        return Err(Error::parameter(
            "rate",
            "at least 1e-9 for each layer of a cuckoo filter; a growing filter goes lower",
            format_args!("{} for {layers} layers", shown(rate)),
        ));
    }
    CuckooShape::for_rate(keys, share).ok_or_else(|| too_large(keys, rate))
}

fn check_size(bytes: u64) -> Result<(), Error> {
    if (64..1 << 60).contains(&bytes) {
        return Ok(());
    }
    Err(wrong_size("64 bytes to 2^60 bytes", bytes))
}

/// The blocked filter of this shape, or the counting one with a counter for each bit.
fn of_lines(kind: Kind, bits: BlockedShape) -> Shape {
    match kind {
        Kind::Counting => CountingShape::of(bits).into(),
        _ => bits.into(),
    }
}

/// How many lines of a blocked or counting filter fit into this many bytes.
fn lines_within(kind: Kind, bytes: u64) -> Result<u64, Error> {
    match (kind, bytes) {
        (Kind::Counting, ..256) => Err(wrong_size(
            "256 bytes to 2^60 bytes for a counting filter",
            bytes,
        )),
        (Kind::Counting, _) => Ok(bytes / 256),
        _ => Ok(bytes / 64),
    }
}

fn rate_at(shape: &Shape, keys: f64) -> f64 {
    match shape {
        Shape::Bloom(shape) => shape.rate_at(keys),
        Shape::Blocked(shape) => shape.rate_at(keys),
        Shape::Counting(shape) => shape.rate_at(keys),
        Shape::Cuckoo(shape) => shape.rate_at(keys),
        Shape::Growing(shape) => growing::rate_when_full(shape, keys),
        Shape::Fuse(shape) => shape.rate_at(keys),
        Shape::Ribbon(shape) => shape.rate_at(keys),
        Shape::Cascade(shape) => shape.rate_at(keys),
        Shape::Window(shape) => shape.rate_at(keys),
    }
}

impl From<Grown> for Plan {
    fn from(grown: Grown) -> Self {
        Self {
            shape: grown.shape.into(),
            keys: grown.keys,
            rate: grown.rate,
            promise: grown.promise,
        }
    }
}
