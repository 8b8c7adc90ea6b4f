//! Sizing: from any two of expected keys, rate and size to the third.
//!
//! Every kind's rate is computed from its real layout. For the blocked kind
//! that is the exact mixture over how many keys a line receives and how many
//! of its bits they set; the classic formula would promise 1.5 to 3 times
//! less than users measure.

pub(crate) mod growing;
mod lines;
#[cfg(test)]
mod tests;

use lines::{BLOCKED, COUNTING, blocked, counting};
pub(crate) use lines::{
    LinesFor, all_set, blocked_for_rate, blocked_rate, blocked_wrongly_present, counting_rate,
    one_line, wrongly_present,
};

use crate::Error;
use crate::filter::Layout as _;
use crate::raw::bloom::BloomShape;
use crate::raw::cascade::CascadeShape;
use crate::raw::cuckoo::CuckooShape;
use crate::raw::fuse::{self, FuseShape};
use crate::raw::layers::GrowingShape;
use crate::raw::ribbon::RibbonShape;
use crate::store::header::{Kind, Shape};
use std::f64::consts::LN_2;

/// A filter that could be built: its shape, and what to expect of it.
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
    pub fn for_rate(kind: Kind, keys: u64, rate: f64) -> Result<Self, Error> {
        check_keys(keys)?;
        check_rate(rate)?;
        let shape: Shape = match kind {
            Kind::Bloom => bloom_for_rate(keys, rate)?.into(),
            Kind::Blocked => blocked(BLOCKED.for_rate(keys, rate)?)?,
            Kind::Counting => counting(COUNTING.for_rate(keys, rate)?)?,
            Kind::Cuckoo => {
                // Beyond the widest slots, only empty ones lower the rate.
                if rate < MIN_CUCKOO_RATE {
                    return Err(Error::Parameter {
                        what: "rate",
                        expected: "at least 1e-9 for a cuckoo filter; a counting filter goes lower",
                        got: rate.to_string(),
                    });
                }
                CuckooShape::for_rate(keys, rate)
                    .ok_or_else(|| too_large(keys, rate))?
                    .into()
            }
            Kind::Growing => return growing::plan_for_rate(keys, rate),
            Kind::Fuse | Kind::Ribbon | Kind::Cascade => {
                static_shape(kind, keys, width_for_rate(rate)?)?
            }
        };
        Ok(Self::of(shape, keys).promising(rate))
    }

    /// The filter of `kind` within `bytes` that gives `keys` the best rate.
    ///
    /// ```
    /// use tamis::{Kind, Plan};
    /// let plan = Plan::for_size(Kind::Blocked, 1_000_000, 1_250_000)?;
    /// assert!(plan.bytes() <= 1_250_000 && plan.rate() < 0.0097);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn for_size(kind: Kind, keys: u64, bytes: u64) -> Result<Self, Error> {
        check_keys(keys)?;
        check_size(bytes)?;
        let shape: Shape = match kind {
            Kind::Bloom => bloom_for_size(keys, bytes)?.into(),
            Kind::Blocked => blocked(BLOCKED.for_size(keys, bytes))?,
            Kind::Counting => counting(COUNTING.for_size(keys, bytes))?,
            Kind::Cuckoo => CuckooShape::for_size(keys, bytes)
                .ok_or_else(|| Error::Parameter {
                    what: "size",
                    expected: "room for all keys, at least 5 bits for each in a cuckoo filter",
                    got: format!("{bytes} bytes for {keys} keys"),
                })?
                .into(),
            Kind::Growing => return growing::plan_for_size(keys, bytes),
            Kind::Fuse | Kind::Ribbon | Kind::Cascade => static_for_size(kind, keys, bytes)?,
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
            Kind::Bloom => bloom_for_rate_in_size(rate, bytes)?,
            Kind::Blocked => {
                let (lines, keys) = BLOCKED.for_rate_in_size(rate, bytes);
                (blocked(lines)?, keys)
            }
            Kind::Counting => {
                let (lines, keys) = COUNTING.for_rate_in_size(rate, bytes);
                (counting(lines)?, keys)
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
            Kind::Growing => return growing::plan_for_rate_in_size(rate, bytes),
            Kind::Fuse | Kind::Ribbon | Kind::Cascade => {
                static_for_rate_in_size(kind, rate, bytes)?
            }
        };
        if keys == 0 {
            return Err(Error::Parameter {
                what: "size",
                expected: "room for at least one key at this rate",
                got: format!("{bytes} bytes"),
            });
        }
        Ok(Self::of(shape, keys).promising(rate))
    }

    /// A blocked or counting filter whose keys have all their bits in one
    /// line, so that adding a key is one command to a server that others add
    /// to as well. Such a filter is larger where [`for_rate`](Self::for_rate)
    /// would take more lines: see `docs/sharing.md`. Of a growing filter, what
    /// its first layer is.
    ///
    /// Each bit costs the server time, so this takes the fewest hashes that
    /// need no more than a tenth more memory than the best number.
    ///
    /// ```
    /// use tamis::{Kind, Plan};
    /// let plan = Plan::one_line(Kind::Blocked, 1_000_000, 0.01)?;
    /// assert!(plan.hashes() == 4 && plan.bits_per_key() < 10.8);
    /// assert!(plan.rate() <= 0.01);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn one_line(kind: Kind, keys: u64, rate: f64) -> Result<Self, Error> {
        check_keys(keys)?;
        check_rate(rate)?;
        let shape = match kind {
            Kind::Blocked => blocked(one_line(kind, keys, rate)?)?,
            Kind::Counting => counting(one_line(kind, keys, rate)?)?,
            Kind::Growing => {
                let first = growing::GrowingLayer::first_of_one_line(keys, rate)?;
                let shape = GrowingShape::of_first(first.shape())?;
                let expected = blocked_rate(&first.shape(), keys as f64);
                return Ok(Self::grown(shape, keys, expected, rate));
            }
            kind => {
                return Err(Error::Unable {
                    kind,
                    what: "planned with one line a key",
                    instead: "take a blocked, a counting or a growing filter",
                });
            }
        };
        Ok(Self::of(shape, keys).promising(rate))
    }

    /// A filter of a given shape, filled with `keys`.
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

    fn promising(self, promise: f64) -> Self {
        Self { promise, ..self }
    }

    pub(crate) fn grown(shape: GrowingShape, keys: u64, rate: f64, promise: f64) -> Self {
        Self {
            shape: shape.into(),
            keys,
            rate,
            promise,
        }
    }

    /// The geometry to build.
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

    /// The rate that was asked for, which the filter promises up to
    /// [`keys`](Self::keys); the expected one where none was.
    pub const fn promise(&self) -> f64 {
        self.promise
    }

    /// The expected rate when it holds `keys`.
    pub fn rate_at(&self, keys: u64) -> f64 {
        rate_at(&self.shape, keys as f64)
    }

    /// The body's size in bytes.
    pub const fn bytes(&self) -> u64 {
        self.shape.body_len()
    }

    /// The number of bits that are asked of the memory for each key.
    pub fn bits_per_key(&self) -> f64 {
        let bits = match self.shape {
            Shape::Bloom(shape) => shape.bits() as f64,
            _ => self.bytes() as f64 * 8.0,
        };
        bits / self.keys.max(1) as f64
    }

    /// How many bits a key sets in all; of a counting filter, counters; of a
    /// cuckoo filter, the places a key may lie in; of a static kind, how many
    /// bits of its fingerprint are compared.
    pub const fn hashes(&self) -> u32 {
        match self.shape {
            Shape::Bloom(shape) => shape.hashes(),
            Shape::Blocked(shape) => shape.hashes_per_line() * shape.lines_per_key(),
            Shape::Counting(shape) => shape.hashes_per_line() * shape.lines_per_key(),
            Shape::Cuckoo(_) => 2,
            // The same bits serve every layer.
            Shape::Growing(shape) => shape.hashes_per_line() * shape.lines_per_key(),
            Shape::Fuse(shape) => shape.width(),
            Shape::Ribbon(shape) => shape.width(),
            Shape::Cascade(shape) => shape.width(),
        }
    }
}

pub(crate) fn check_keys(keys: u64) -> Result<(), Error> {
    match keys {
        0 => Err(Error::Parameter {
            what: "expected keys",
            expected: "at least 1",
            got: "0".into(),
        }),
        _ => Ok(()),
    }
}

/// What the widest slots of a cuckoo filter promise.
const MIN_CUCKOO_RATE: f64 = 1e-9;

/// What a 128-bit hash can promise with room to spare.
pub(crate) const MIN_RATE: f64 = 1e-15;

pub(crate) fn check_rate(rate: f64) -> Result<(), Error> {
    // Written so that NaN is refused too.
    if (MIN_RATE..1.0).contains(&rate) {
        return Ok(());
    }
    Err(Error::Parameter {
        what: "rate",
        expected: "at least 1e-15 and below 1",
        got: rate.to_string(),
    })
}

fn check_size(bytes: u64) -> Result<(), Error> {
    if (64..1 << 60).contains(&bytes) {
        return Ok(());
    }
    Err(Error::Parameter {
        what: "size",
        expected: "64 bytes to 2^60 bytes",
        got: format!("{bytes} bytes"),
    })
}

pub(crate) fn too_large(keys: u64, rate: f64) -> Error {
    Error::Parameter {
        what: "size",
        expected: "below 2^60 bytes",
        got: format!("more for {keys} keys at a rate of {rate}"),
    }
}

fn rate_at(shape: &Shape, keys: f64) -> f64 {
    match shape {
        Shape::Bloom(shape) => bloom_rate(shape, keys),
        Shape::Blocked(shape) => blocked_rate(shape, keys),
        Shape::Counting(shape) => counting_rate(shape, keys),
        Shape::Cuckoo(shape) => shape.rate_with(keys),
        Shape::Growing(shape) => growing::rate_when_full(shape, keys),
        Shape::Fuse(shape) => shape.rate_at(keys),
        Shape::Ribbon(shape) => shape.rate_at(keys),
        Shape::Cascade(shape) => shape.rate_at(keys),
    }
}

/// The fewest bits of a fingerprint that keep the rate.
pub(crate) fn width_for_rate(rate: f64) -> Result<u32, Error> {
    check_rate(rate)?;
    let keeps = |width: &u32| 2f64.powi(-(*width as i32)) <= rate;
    (1..=32).find(keeps).ok_or_else(|| Error::Parameter {
        what: "rate",
        expected: "at least 2^-32 (2.4e-10) for a finished list; a blocked filter goes lower",
        got: rate.to_string(),
    })
}

/// About what a build for so many keys ends with; for a cascade, without the
/// few bits that an allow list costs.
fn static_shape(kind: Kind, keys: u64, width: u32) -> Result<Shape, Error> {
    let ribbon = |width| {
        RibbonShape::expected(keys, width)
            .ok_or_else(|| too_large(keys, 2f64.powi(-(width as i32))))
    };
    Ok(match kind {
        Kind::Fuse => FuseShape::expected(keys, fuse::smaller_arity(keys), width)?.into(),
        Kind::Ribbon => ribbon(width)?.into(),
        _ => {
            let first = width.saturating_sub(1).max(1);
            CascadeShape::of_levels(ribbon(first)?, ribbon(1)?).into()
        }
    })
}

fn static_for_size(kind: Kind, keys: u64, bytes: u64) -> Result<Shape, Error> {
    let fits =
        |width: &u32| static_shape(kind, keys, *width).is_ok_and(|shape| shape.body_len() <= bytes);
    let least = if kind == Kind::Cascade { 2 } else { 1 };
    match (least..=32).rev().find(fits) {
        Some(width) => static_shape(kind, keys, width),
        None => Err(Error::Parameter {
            what: "size",
            expected: "room for a bit of each key",
            got: format!("{bytes} bytes for {keys} keys"),
        }),
    }
}

fn static_for_rate_in_size(kind: Kind, rate: f64, bytes: u64) -> Result<(Shape, u64), Error> {
    let width = width_for_rate(rate)?;
    let shape = |keys: f64| static_shape(kind, keys as u64, width);
    let mut keys = most_keys(|keys| shape(keys).is_ok_and(|shape| shape.body_len() <= bytes));
    // Sizes have small steps, where fewer keys may take more.
    while shape(keys as f64)?.body_len() > bytes {
        keys -= 1;
    }
    Ok((shape(keys as f64)?, keys))
}

/// The textbook's numbers, for those who compare.
pub mod classic {
    use super::LN_2;

    /// Bits for `keys` at `rate` with the best number of hashes:
    /// `-n ln p / (ln 2)²`.
    ///
    /// ```
    /// assert_eq!(tamis::plan::classic::bits(1_000_000, 0.01), 9_585_058.0);
    /// ```
    pub fn bits(keys: u64, rate: f64) -> f64 {
        (-(keys as f64) * rate.ln() / (LN_2 * LN_2)).floor()
    }

    /// The best number of hashes for so many bits per key: `ln 2 · m/n`.
    ///
    /// ```
    /// assert_eq!(tamis::plan::classic::hashes(9.585), 7);
    /// ```
    pub fn hashes(bits_per_key: f64) -> u32 {
        ((LN_2 * bits_per_key).round() as u32).max(1)
    }

    /// The rate at so many bits per key and hashes: `(1 - e^(-k·n/m))^k`.
    ///
    /// ```
    /// let rate = tamis::plan::classic::rate(20.0, 10);
    /// assert!((rate - 0.0000889).abs() < 5e-8);
    /// ```
    pub fn rate(bits_per_key: f64, hashes: u32) -> f64 {
        let k = f64::from(hashes);
        (-(-k / bits_per_key).exp_m1()).powf(k)
    }
}

/// The textbook's size. The rounding of `k` costs up to 1 % of the rate, which
/// the textbook accepts and so do we; where it costs more (rates above a
/// tenth), bits are added until it doesn't.
fn bloom_for_rate(keys: u64, rate: f64) -> Result<BloomShape, Error> {
    let too_large = || too_large(keys, rate);
    let bits = classic::bits(keys, rate).max(1.0);
    let hashes = classic::hashes(bits / keys as f64);
    let shape = |bits: f64| match bits < 2f64.powi(63) {
        true => BloomShape::new(bits as u64, hashes).map_err(|_| too_large()),
        false => Err(too_large()),
    };
    let mut bits = bits;
    while bloom_rate(&shape(bits)?, keys as f64) > rate * ROUNDED_HASHES {
        bits = (bits * 1.001).max(bits + 1.0);
    }
    shape(bits)
}

fn bloom_for_size(keys: u64, bytes: u64) -> Result<BloomShape, Error> {
    let bits = bytes / 64 * 512;
    // The exact rate is flat around the textbook's best k; for tiny filters
    // its neighbours can be better.
    let near = classic::hashes(bits as f64 / keys as f64).clamp(1, 64);
    let candidates = near.saturating_sub(1).max(1)..=(near + 1).min(64);
    let shapes = candidates
        .map(|k| BloomShape::new(bits, k))
        .collect::<Result<Vec<_>, _>>()?;
    let best = shapes
        .into_iter()
        .min_by(|a, b| bloom_rate(a, keys as f64).total_cmp(&bloom_rate(b, keys as f64)));
    best.ok_or_else(|| too_large(keys, 0.0))
}

/// The textbook's tolerance, see [`bloom_for_rate`].
const ROUNDED_HASHES: f64 = 1.01;

fn bloom_for_rate_in_size(rate: f64, bytes: u64) -> Result<(Shape, u64), Error> {
    let hashes = ((-rate.log2()).round() as u32).clamp(1, 64);
    let shape = BloomShape::new(bytes / 64 * 512, hashes)?;
    let keys = most_keys(|keys| bloom_rate(&shape, keys) <= rate * ROUNDED_HASHES);
    Ok((shape.into(), keys))
}

/// The largest number of keys that `fits`, which smaller ones do too.
fn most_keys(mut fits: impl FnMut(f64) -> bool) -> u64 {
    let (mut low, mut high) = (0u64, 1 << 62);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        match fits(middle as f64) {
            true => low = middle,
            false => high = middle - 1,
        }
    }
    low
}

pub(crate) fn bloom_rate(shape: &BloomShape, keys: f64) -> f64 {
    let (m, k) = (shape.bits() as f64, f64::from(shape.hashes()));
    // Throwing k·n balls into m bins: mean and variance of the share of
    // occupied bins, then the k-th moment to second order, which matters for
    // small filters only.
    let balls = k * keys;
    let empty = (balls * (-1.0 / m).ln_1p()).exp();
    let both_empty = (balls * (-2.0 / m).ln_1p()).exp();
    let fill = 1.0 - empty;
    if m < 2.0 || fill <= 0.0 {
        return fill.clamp(0.0, 1.0);
    }
    let variance = (empty / m + both_empty * (1.0 - 1.0 / m) - empty * empty).max(0.0);
    let moment = fill.powf(k) * (1.0 + k * (k - 1.0) / 2.0 * variance / (fill * fill));
    (moment + keys * 2f64.powi(-128)).min(1.0)
}
