//! Sizing: from any two of expected keys, rate and size to the third.
//!
//! Every kind's rate is computed from its real layout. For the blocked kind
//! that is the exact mixture over how many keys a line receives and how many
//! of its bits they set; the classic formula would promise 1.5 to 3 times
//! less than users measure.

use crate::Error;
use crate::blocked::{self, BlockedShape};
use crate::bloom::BloomShape;
use crate::cascade::CascadeShape;
use crate::counting::{self, CountingShape};
use crate::cuckoo::CuckooShape;
use crate::filter::Layout as _;
use crate::fuse::{self, FuseShape};
use crate::header::{Kind, Shape};
use crate::layers::GrowingShape;
use crate::ribbon::RibbonShape;
use crate::schedule;
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
            Kind::Growing => return schedule::plan_for_rate(keys, rate),
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
            Kind::Growing => return schedule::plan_for_size(keys, bytes),
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
            Kind::Growing => return schedule::plan_for_rate_in_size(rate, bytes),
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
                let first = schedule::GrowingLayer::first_of_one_line(keys, rate)?;
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
        Shape::Growing(shape) => schedule::rate_when_full(shape, keys),
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

/// The probability that `hashes` distinct cells of a line of `cells`, `ones` of
/// them set, are all set.
pub(crate) fn all_set(cells: u32, ones: u32, hashes: u32) -> f64 {
    (0..hashes)
        .map(|t| f64::from(ones.saturating_sub(t)) / f64::from(cells - t))
        .product()
}

/// For `j` keys in a line: the probability that a foreign key's cells are all
/// set. Extended on demand, since the cost grows with `j`.
struct LineRates {
    /// Bits of a line, or counters.
    cells: u32,
    hashes: u32,
    lines_per_key: u32,
    /// By number of set cells: the chance that a foreign key's are among them.
    matches: Vec<f64>,
    /// Probability of each number of set cells after the last key.
    ones: Vec<f64>,
    /// Chance that one foreign line-share matches, by number of keys.
    once: Vec<f64>,
    /// Chance that two line-shares of a foreign key match, when their lines
    /// are one and the same.
    twice: Vec<f64>,
}

impl LineRates {
    fn new(cells: u32, hashes: u32, lines_per_key: u32) -> Self {
        let mut ones = vec![0.0; cells as usize + 1];
        ones[0] = 1.0;
        Self {
            cells,
            hashes,
            lines_per_key,
            matches: (0..=cells).map(|x| all_set(cells, x, hashes)).collect(),
            ones,
            once: vec![0.0],
            twice: vec![0.0],
        }
    }

    fn extend_to(&mut self, keys: usize) {
        while self.once.len() <= keys {
            if self.once.last().is_some_and(|&rate| rate > 1.0 - 1e-12) {
                return;
            }
            self.add_key();
            let both = || self.ones.iter().zip(&self.matches);
            let once = both().map(|(p, m)| p * m).sum();
            let twice = both().map(|(p, m)| p * m * m).sum();
            self.once.push(once);
            self.twice.push(twice);
        }
    }

    /// One more key sets its distinct cells, one after the other.
    fn add_key(&mut self) {
        // More cells than have been thrown can't be set yet.
        let reach = (self.once.len() * self.hashes as usize).min(self.cells as usize);
        for own in 0..self.hashes {
            // The key's own cells are among the set ones.
            let left = f64::from(self.cells - own);
            let stay = |x: usize| (x as f64 - f64::from(own)).max(0.0) / left;
            let mut below = 0.0;
            for (x, p) in self.ones[..=reach].iter_mut().enumerate() {
                let here = *p * stay(x);
                let moved = *p - here;
                *p = here + below;
                below = moved;
            }
        }
    }

    /// The rate of a filter of `lines` that holds `keys`.
    fn rate(&mut self, keys: f64, lines: f64) -> f64 {
        let shares = keys * f64::from(self.lines_per_key);
        match self.lines_per_key {
            1 => {
                // Two keys of one line with equal low halves are one key.
                let collision = keys / lines * 2f64.powi(-64);
                self.mean(shares, lines, |r| &r.once) + collision
            }
            per_key => {
                let once = self.mean(shares, lines, |r| &r.once);
                let twice = self.mean(shares, lines, |r| &r.twice);
                // That two of the key's lines are the same; three hardly ever.
                let same_line = (f64::from(per_key * (per_key - 1) / 2) / lines).min(1.0);
                let others = once.powi(per_key as i32 - 2);
                others * ((1.0 - same_line) * once * once + same_line * twice)
                    + keys * 2f64.powi(-128)
            }
        }
        .min(1.0)
    }

    /// The mean of a table over the binomial number of shares that a line
    /// receives, summed outward from its mode.
    fn mean(&mut self, shares: f64, lines: f64, table: fn(&Self) -> &Vec<f64>) -> f64 {
        // So overfull that every bit of every line is set.
        if shares / lines > 1e5 {
            return 1.0;
        }
        let at = |this: &mut Self, j: f64| {
            this.extend_to(j as usize);
            table(this).get(j as usize).copied().unwrap_or(1.0)
        };
        if lines <= 1.0 {
            return at(self, shares);
        }
        let odds = 1.0 / (lines - 1.0);
        let mode = ((shares + 1.0) / lines).floor().min(shares);
        let (mut sum, mut weights) = (at(self, mode), 1.0);
        let mut weight = 1.0;
        let mut j = mode;
        while j < shares && weight > 1e-17 {
            weight *= (shares - j) / (j + 1.0) * odds;
            j += 1.0;
            sum += weight * at(self, j);
            weights += weight;
        }
        (weight, j) = (1.0, mode);
        while j > 0.0 && weight > 1e-17 {
            weight *= j / ((shares - j + 1.0) * odds);
            j -= 1.0;
            sum += weight * at(self, j);
            weights += weight;
        }
        sum / weights
    }

    /// Keys per line at which a large filter reaches `rate`.
    fn keys_per_line(&mut self, rate: f64) -> f64 {
        const MANY: f64 = (1u64 << 40) as f64;
        // If all lines were equally full, they would reach it here; uneven ones
        // reach it earlier.
        let k = f64::from(self.hashes);
        let fill = rate.powf(1.0 / (k * f64::from(self.lines_per_key)));
        let even = -(-fill).ln_1p() * f64::from(self.cells) / k;
        let (mut low, mut high) = (0.0, even / f64::from(self.lines_per_key) * 1.1 + 1.0);
        for _ in 0..50 {
            let middle = (low + high) / 2.0;
            match self.rate(middle * MANY, MANY) > rate {
                true => high = middle,
                false => low = middle,
            }
        }
        low
    }
}

/// How many of `keys` distinct keys, added one after the other, are wrongly
/// taken for present: the integral of the rate over the keys.
pub(crate) fn wrongly_present(keys: u64, mut rate_at: impl FnMut(f64) -> f64) -> f64 {
    // Simpson's rule; the rate is a smooth power of the number of keys.
    const STEPS: u32 = 64;
    let step = keys as f64 / f64::from(STEPS);
    let weight = |i| match i {
        0 | STEPS => 1.0,
        i if i % 2 == 1 => 4.0,
        _ => 2.0,
    };
    let sum: f64 = (0..=STEPS)
        .map(|i| weight(i) * rate_at(f64::from(i) * step))
        .sum();
    sum * step / 3.0
}

/// [`wrongly_present`] for a blocked filter.
pub(crate) fn blocked_wrongly_present(shape: &BlockedShape, keys: u64) -> f64 {
    let mut rates = LineRates::new(
        BLOCKED.cells,
        shape.hashes_per_line(),
        shape.lines_per_key(),
    );
    wrongly_present(keys, |keys| rates.rate(keys, shape.lines() as f64))
}

pub(crate) fn blocked_rate(shape: &BlockedShape, keys: f64) -> f64 {
    LineRates::new(
        BLOCKED.cells,
        shape.hashes_per_line(),
        shape.lines_per_key(),
    )
    .rate(keys, shape.lines() as f64)
}

pub(crate) fn counting_rate(shape: &CountingShape, keys: f64) -> f64 {
    LineRates::new(
        COUNTING.cells,
        shape.hashes_per_line(),
        shape.lines_per_key(),
    )
    .rate(keys, shape.lines() as f64)
}

/// Below this rate fewer lines waste space: their uneven filling dominates.
const MORE_LINES_BELOW: f64 = 1e-3;
/// With fewer lines those of a key would too often be the same.
const MIN_LINES_FOR_TWO: f64 = 64.0;

/// `best(k)` is better when smaller and has one valley: walks down it.
fn best_hashes(start: u32, mut cost: impl FnMut(u32) -> f64) -> u32 {
    let mut best = (start, cost(start));
    for step in [-1, 1] {
        let mut k = best.0;
        while let Some(next @ 1..=32) = k.checked_add_signed(step) {
            let c = cost(next);
            if c >= best.1 {
                break;
            }
            best = (next, c);
            k = next;
        }
    }
    best.0
}

/// How many lines keys need at a rate, with so many hashes.
pub(crate) struct LinesFor {
    rates: LineRates,
    rate: f64,
    keys_per_line: f64,
}

impl LinesFor {
    /// Of a blocked filter.
    pub(crate) fn new(rate: f64, hashes_per_line: u32, lines_per_key: u32) -> Self {
        Self::of(BLOCKED.cells, rate, hashes_per_line, lines_per_key)
    }

    fn of(cells: u32, rate: f64, hashes_per_line: u32, lines_per_key: u32) -> Self {
        let mut rates = LineRates::new(cells, hashes_per_line, lines_per_key);
        Self {
            keys_per_line: rates.keys_per_line(rate),
            rates,
            rate,
        }
    }

    pub(crate) fn keys(&mut self, n: f64) -> f64 {
        let Self { rates, rate, .. } = self;
        let mut lines = (n / self.keys_per_line).ceil().max(1.0);
        // Two lines of a key are the same now and then, the more the fewer.
        while rates.rate(n, lines) > *rate {
            lines = (lines * 1.001).ceil();
        }
        // A small filter's lines fill more evenly than a large one's.
        while lines > 1.0 && lines <= 256.0 && rates.rate(n, lines - 1.0) <= *rate {
            lines -= 1.0;
        }
        lines
    }
}

pub(crate) fn blocked_for_rate(keys: u64, rate: f64) -> Result<BlockedShape, Error> {
    let (lines, hashes, per_key) = BLOCKED.for_rate(keys, rate)?;
    BlockedShape::new(lines, hashes, per_key)
}

/// A family of filters that keep a key in lines of so many cells.
struct Lined {
    cells: u32,
    /// How many lines a key may have, fewest first …
    lines_per_key: &'static [u32],
    /// … and how many below [`MORE_LINES_BELOW`].
    when_strict: &'static [u32],
}

const BLOCKED: Lined = Lined {
    cells: blocked::LINE_BITS,
    lines_per_key: &[1],
    when_strict: &[1, 2],
};

/// A line holds a quarter of the cells, so it fills less evenly: two lines of
/// 128 counters are as good as one of 512 bits, four as two.
const COUNTING: Lined = Lined {
    cells: counting::LINE_CELLS,
    lines_per_key: &[1, 2],
    when_strict: &[1, 2, 4],
};

/// What fewer hashes may cost, in memory.
const FEWER_HASHES: f64 = 1.1;

/// The lines of [`Plan::one_line`].
pub(crate) fn one_line(kind: Kind, keys: u64, rate: f64) -> Result<Lines, Error> {
    let cells = match kind {
        Kind::Counting => COUNTING.cells,
        _ => BLOCKED.cells,
    };
    let lines_for = |k| LinesFor::of(cells, rate, k, 1).keys(keys as f64);
    let start = (-rate.log2()).round().clamp(1.0, 32.0);
    let mut k = best_hashes(start as u32, lines_for);
    let best = lines_for(k);
    let mut lines = best;
    while k > 1 && lines_for(k - 1) <= best * FEWER_HASHES {
        k -= 1;
        lines = lines_for(k);
    }
    match lines <= 2f64.powi(54) {
        true => Ok((lines as u64, k, 1)),
        false => Err(too_large(keys, rate)),
    }
}

/// Lines, hashes per line and lines per key.
type Lines = (u64, u32, u32);

fn blocked((lines, hashes, per_key): Lines) -> Result<Shape, Error> {
    BlockedShape::new(lines, hashes, per_key).map(Shape::from)
}

fn counting((lines, hashes, per_key): Lines) -> Result<Shape, Error> {
    CountingShape::new(lines, hashes, per_key).map(Shape::from)
}

impl Lined {
    const fn lines_per_key(&self, rate: f64) -> &'static [u32] {
        match rate < MORE_LINES_BELOW {
            true => self.when_strict,
            false => self.lines_per_key,
        }
    }

    fn for_rate(&self, keys: u64, rate: f64) -> Result<Lines, Error> {
        let n = keys as f64;
        let lines_for = |k, per_key| LinesFor::of(self.cells, rate, k, per_key).keys(n);
        let mut best: Option<(f64, u32, u32)> = None;
        for &per_key in self.lines_per_key(rate) {
            let start = (-rate.log2() / f64::from(per_key)).round().clamp(1.0, 32.0);
            let k = best_hashes(start as u32, |k| lines_for(k, per_key));
            let lines = lines_for(k, per_key);
            if best.is_none_or(|best| lines >= MIN_LINES_FOR_TWO && lines < best.0) {
                best = Some((lines, k, per_key));
            }
        }
        match best {
            Some((lines, k, per_key)) if lines <= 2f64.powi(54) => Ok((lines as u64, k, per_key)),
            _ => Err(too_large(keys, rate)),
        }
    }

    fn for_rate_in_size(&self, rate: f64, bytes: u64) -> (Lines, u64) {
        let lines = bytes / 64;
        let keys_for = |k, per_key| {
            let mut rates = LineRates::new(self.cells, k, per_key);
            most_keys(|keys| rates.rate(keys, lines as f64) <= rate)
        };
        let mut best = (0, 1, 1);
        for &per_key in self.lines_per_key(rate) {
            if per_key == 1 || lines as f64 >= MIN_LINES_FOR_TWO {
                let start = (-rate.log2() / f64::from(per_key)).round().clamp(1.0, 32.0);
                let k = best_hashes(start as u32, |k| -(keys_for(k, per_key) as f64));
                best = best.max((keys_for(k, per_key), k, per_key));
            }
        }
        let (keys, k, per_key) = best;
        ((lines, k, per_key), keys)
    }

    fn for_size(&self, keys: u64, bytes: u64) -> Lines {
        let lines = bytes / 64;
        let cells_per_key = lines as f64 * f64::from(self.cells) / keys as f64;
        let mut best = (f64::INFINITY, 1, 1);
        for &per_key in self.when_strict {
            let needless = !self.lines_per_key.contains(&per_key) && best.0 >= MORE_LINES_BELOW;
            if needless || per_key > 1 && (lines as f64) < MIN_LINES_FOR_TWO {
                continue;
            }
            let rate = |k| LineRates::new(self.cells, k, per_key).rate(keys as f64, lines as f64);
            let start = (classic::hashes(cells_per_key) / per_key).clamp(1, 32);
            let k = best_hashes(start, rate);
            if rate(k) < best.0 {
                best = (rate(k), k, per_key);
            }
        }
        (lines, best.1, best.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Growing has tests of its own, in `schedule`.
    const FIXED: [Kind; 4] = [Kind::Bloom, Kind::Blocked, Kind::Counting, Kind::Cuckoo];

    fn close(a: f64, b: f64, relative: f64) -> bool {
        (a - b).abs() <= relative * b
    }

    #[test]
    fn known_numbers_hold() {
        let plan = Plan::for_rate(Kind::Bloom, 1_000_000, 0.01).unwrap();
        assert_eq!(
            (plan.shape, plan.hashes()),
            (BloomShape::new(9_585_058, 7).unwrap().into(), 7)
        );
        // Published table: m/n, k, rate to three digits.
        for (ratio, k, rate) in [
            (20.0, 10, 8.89e-5),
            (22.0, 17, 2.67e-5),
            (24.0, 17, 9.84e-6),
            (27.0, 19, 2.33e-6),
            (29.0, 20, 8.89e-7),
            (32.0, 22, 2.1e-7),
            (2.0, 1, 0.393),
            (8.0, 6, 0.0216),
        ] {
            let got = classic::rate(ratio, k);
            assert!(
                close(got, rate, 0.005),
                "m/n {ratio} k {k}: {got} not {rate}"
            );
        }
    }

    #[test]
    fn one_line_keeps_the_rate_and_costs_what_it_says() {
        for kind in [Kind::Blocked, Kind::Counting] {
            for rate in [0.1, 0.01, 1e-3, 1e-4, 1e-6] {
                for keys in [1, 10_000, 10_000_000] {
                    let plan = Plan::one_line(kind, keys, rate).unwrap();
                    let (cells, per_key) = match plan.shape() {
                        Shape::Blocked(s) => (BLOCKED.cells, s.lines_per_key()),
                        Shape::Counting(s) => (COUNTING.cells, s.lines_per_key()),
                        other => panic!("{other:?}"),
                    };
                    assert_eq!(per_key, 1);
                    assert!(plan.rate() <= rate && plan.promise() == rate, "{plan:?}");
                    let lines = |k| LinesFor::of(cells, rate, k, 1).keys(keys as f64);
                    let best = (1..=32).map(lines).fold(f64::INFINITY, f64::min);
                    assert!(
                        plan.bytes() as f64 / 64.0 <= best * FEWER_HASHES,
                        "{plan:?}"
                    );
                    println!(
                        "{kind} {rate:e} {keys}: {:.2} {}",
                        plan.bits_per_key(),
                        plan.hashes()
                    );
                }
            }
        }
        assert!(Plan::one_line(Kind::Cuckoo, 100, 0.01).is_err());
        let growing = Plan::one_line(Kind::Growing, 5_000, 0.01).unwrap();
        assert!(matches!(growing.shape(), Shape::Growing(s) if s.lines_per_key() == 1));
    }

    #[test]
    fn the_size_bars_hold() {
        for (rate, per_key, most) in [
            (0.01, 1, 9.95),
            (1e-3, 1, 15.5),
            (1e-4, 2, 20.0),
            (1e-6, 2, 31.2),
        ] {
            for keys in [100_000, 10_000_000] {
                let plan = Plan::for_rate(Kind::Blocked, keys, rate).unwrap();
                assert!(
                    plan.bits_per_key() <= most,
                    "{rate}: {}",
                    plan.bits_per_key()
                );
                assert!(plan.rate() <= rate);
                let Shape::Blocked(shape) = plan.shape else {
                    unreachable!()
                };
                assert_eq!(shape.lines_per_key(), per_key);
            }
        }
        for rate in [0.5, 0.1, 0.01, 1e-3, 1e-6, 1e-9] {
            let plan = Plan::for_rate(Kind::Bloom, 10_000_000, rate).unwrap();
            let bound = -rate.log2() / LN_2;
            assert!(
                close(plan.bits_per_key(), bound, 0.01),
                "{rate}: {}",
                plan.bits_per_key()
            );
        }
    }

    #[test]
    fn counting_is_four_times_blocked() {
        for rate in [
            0.5, 0.2, 0.1, 0.03, 0.01, 1e-3, 9.9e-4, 1e-4, 1e-5, 1e-6, 1e-9,
        ] {
            for keys in [1_000_000, 10_000_000] {
                let bytes = |kind| Plan::for_rate(kind, keys, rate).unwrap().bytes() as f64;
                let times = bytes(Kind::Counting) / bytes(Kind::Blocked);
                assert!(times <= 4.1, "{rate}: {times}");
            }
        }
    }

    #[test]
    fn cuckoo_is_small() {
        for keys in [1_000_003, 10_000_000] {
            let plan = Plan::for_rate(Kind::Cuckoo, keys, 1e-3).unwrap();
            assert!(plan.bits_per_key() <= 13.2, "{}", plan.bits_per_key());
        }
    }

    #[test]
    fn the_promise_holds_for_every_plan() {
        for kind in FIXED {
            for keys in [1, 2, 3, 10, 100, 1000, 54_321] {
                for rate in [
                    0.99, 0.75, 0.5, 0.3, 0.1, 0.01, 1e-3, 9e-4, 1e-5, 1e-9, 1e-12, 1e-15,
                ] {
                    if kind == Kind::Cuckoo && rate < MIN_CUCKOO_RATE {
                        assert!(Plan::for_rate(kind, keys, rate).is_err());
                        continue;
                    }
                    let plan = Plan::for_rate(kind, keys, rate).unwrap();
                    assert!(plan.rate() <= rate * 1.01, "{kind} {keys} {rate}: {plan:?}");
                }
            }
        }
    }

    #[test]
    fn the_three_ways_to_plan_agree() {
        for kind in FIXED {
            for rate in [0.1, 0.01, 1e-5] {
                let plan = Plan::for_rate(kind, 200_000, rate).unwrap();
                let by_size = Plan::for_size(kind, 200_000, plan.bytes()).unwrap();
                assert!(
                    close(by_size.rate(), plan.rate(), 0.02),
                    "{by_size:?} {plan:?}"
                );
                let by_rate = Plan::for_rate_in_size(kind, rate, plan.bytes()).unwrap();
                assert!(by_rate.bytes() <= plan.bytes());
                assert!(close(by_rate.keys() as f64, 200_000.0, 0.01), "{by_rate:?}");
            }
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for kind in FIXED {
            for rate in [0.0, -1.0, 1.0, 2.0, f64::NAN, f64::INFINITY, 1e-300] {
                assert!(Plan::for_rate(kind, 10, rate).is_err(), "{rate}");
                assert!(Plan::for_rate_in_size(kind, rate, 1000).is_err(), "{rate}");
            }
            assert!(Plan::for_rate(kind, 0, 0.01).is_err());
            assert!(Plan::for_size(kind, 0, 1000).is_err());
            assert!(Plan::for_rate(kind, u64::MAX, 0.01).is_err());
            for bytes in [0, 63, 1 << 60, u64::MAX] {
                assert!(Plan::for_size(kind, 10, bytes).is_err());
                assert!(Plan::for_rate_in_size(kind, 0.01, bytes).is_err());
            }
        }
    }

    #[test]
    fn overfull_filters_have_a_rate_too() {
        for kind in FIXED {
            let plan = Plan::for_rate(kind, 1000, 0.01).unwrap();
            let mut last = 0.0;
            for keys in [0, 1, 100, 1000, 2000, 10_000, 1_000_000, 1 << 40, u64::MAX] {
                let rate = plan.rate_at(keys);
                assert!(
                    (last..=1.0).contains(&rate),
                    "{kind} {keys}: {rate} after {last}"
                );
                last = rate;
            }
            assert_eq!((plan.rate_at(0), last), (0.0, 1.0));
        }
    }

    #[test]
    fn finished_lists_have_plans() {
        for kind in [Kind::Fuse, Kind::Ribbon, Kind::Cascade] {
            for keys in [1, 2, 100, 10_000, 54_321, 10_000_000, 1 << 36] {
                for rate in [0.99, 0.5, 0.1, 0.01, 1e-5, 1.0 / (1u64 << 32) as f64] {
                    let plan = Plan::for_rate(kind, keys, rate).unwrap();
                    assert!(plan.rate() <= rate && plan.rate() > rate / 4.0, "{plan:?}");
                    let by_size = Plan::for_size(kind, keys, plan.bytes()).unwrap();
                    assert!(by_size.rate() <= plan.rate() && by_size.bytes() <= plan.bytes());
                    let by_rate = Plan::for_rate_in_size(kind, rate, plan.bytes()).unwrap();
                    assert!(by_rate.bytes() <= plan.bytes() && by_rate.keys() >= keys / 10 * 9);
                }
            }
            assert!(Plan::for_rate(kind, 1000, 1e-10).is_err());
            assert!(Plan::for_size(kind, 1_000_000, 64_000).is_err());
        }
        for (kind, most) in [
            (Kind::Fuse, 1.09),
            (Kind::Ribbon, 1.005),
            (Kind::Cascade, 1.005),
        ] {
            let plan = Plan::for_rate(kind, 10_000_000, 2f64.powi(-8)).unwrap();
            assert!(plan.bits_per_key() <= 8.0 * most, "{plan:?}");
        }
    }
}
