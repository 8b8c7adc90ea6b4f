//! Rates and sizes of the classic kind.

use super::classic;
use super::rated::{Rated, most_keys, too_large};
use crate::error::Error;
use crate::raw::bloom::BloomShape;
use crate::raw::shape::Shape;
use crate::raw::word::Word;

impl Rated for BloomShape {
    fn rate_at(&self, keys: f64) -> f64 {
        let (m, k) = (self.bits() as f64, f64::from(self.hashes()));
        if self.bits() <= EXACT_BITS && k.powi(3) > m && k * keys <= EXACT_BALLS_PER_BIT * m {
            return exact_rate(self, k * keys);
        }
        // Throwing k·n balls into m bins: mean and variance of the share of occupied bins, then the
        // k-th moment to second order, which matters only for small filters. The smallest are
        // exact, see above.
        let balls = k * keys;
        let empty = libm::exp(balls * libm::log1p(-1.0 / m));
        let both_empty = libm::exp(balls * libm::log1p(-2.0 / m));
        let fill = 1.0 - empty;
        if m < 2.0 || fill <= 0.0 {
            return fill.clamp(0.0, 1.0);
        }
        let variance = (empty / m + both_empty * (1.0 - 1.0 / m) - empty * empty).max(0.0);
        let moment = libm::pow(fill, k) * (1.0 + k * (k - 1.0) / 2.0 * variance / (fill * fill));
        (moment + keys * 2f64.powi(-128)).min(1.0)
    }

    fn rate_now<W: Word>(&self, words: &[W]) -> f64 {
        self.fill(words).powi(self.hashes() as i32)
    }
}

/// Up to this size, the second order isn't enough for many hashes: for 64 bits and 32 hashes it
/// would promise half of the measured rate. It is enough if the cube of the number of hashes is no
/// more than the bits.
const EXACT_BITS: u64 = 512;
/// With more balls than this, hardly any bin is empty, and the second order is enough.
const EXACT_BALLS_PER_BIT: f64 = 8.0;

/// The k-th moment of the share of occupied bins, from the probability of every number of occupied
/// bins. Interpolates linearly between whole numbers of balls.
fn exact_rate(shape: &BloomShape, balls: f64) -> f64 {
    let bins = shape.bits() as usize;
    let share = |occupied: usize| occupied as f64 / bins as f64;
    // The probability that this many bins are occupied.
    let mut chances = vec![0.0; bins + 1];
    chances[0] = 1.0;
    let throw = |chances: &mut [f64]| {
        for occupied in (1..=bins).rev() {
            chances[occupied] = chances[occupied] * share(occupied)
                + chances[occupied - 1] * (1.0 - share(occupied - 1));
        }
        chances[0] = 0.0;
    };
    let rate = |chances: &[f64]| -> f64 {
        let each = chances.iter().enumerate();
        each.map(|(occupied, chance)| chance * share(occupied).powi(shape.hashes() as i32))
            .sum()
    };
    for _ in 0..balls as u64 {
        throw(&mut chances);
    }
    let low = rate(&chances);
    throw(&mut chances);
    low + (rate(&chances) - low) * balls.fract()
}

/// The textbook's size. Rounding `k` costs up to 1 % of the rate, which the textbook accepts and so
/// do we; where it costs more (rates above a tenth), bits are added until it doesn't.
pub(super) fn for_rate(keys: u64, rate: f64) -> Result<BloomShape, Error> {
    let too_large = || too_large(keys, rate);
    let bits = classic::bits(keys, rate).max(1.0);
    let hashes = classic::hashes(bits / keys as f64);
    let shape = |bits: f64| {
        if bits < 2f64.powi(63) {
            BloomShape::new(bits as u64, hashes).map_err(|_| too_large())
        } else {
            Err(too_large())
        }
    };
    let mut bits = bits;
    while shape(bits)?.rate_at(keys as f64) > rate * ROUNDED_HASHES {
        bits = (bits * 1.001).max(bits + 1.0);
    }
    shape(bits)
}

/// The best number of hashes for these bits.
pub(super) fn for_bits(keys: u64, bits: u64) -> Result<BloomShape, Error> {
    // The exact rate is flat around the textbook's best k; for tiny filters other values can be
    // better.
    let near = classic::hashes(bits as f64 / keys as f64).clamp(1, 64);
    let candidates = if bits <= EXACT_BITS {
        near / 2..=near + 2
    } else {
        near - 1..=near + 1
    };
    let candidates = (*candidates.start()).max(1)..=(*candidates.end()).min(64);
    let shapes = candidates
        .map(|k| BloomShape::new(bits, k))
        .collect::<Result<Vec<_>, _>>()?;
    let best = shapes
        .into_iter()
        .min_by(|a, b| a.rate_at(keys as f64).total_cmp(&b.rate_at(keys as f64)));
    best.ok_or_else(|| too_large(keys, 0.0))
}

/// The textbook's tolerance, see [`for_rate`].
const ROUNDED_HASHES: f64 = 1.01;

/// The rate is an upper limit here, with no textbook size to match, so it is kept exactly.
pub(super) fn for_rate_in_size(rate: f64, bytes: u64) -> Result<(Shape, u64), Error> {
    let best = -libm::log2(rate);
    let around = [best.floor(), best.ceil()].map(|hashes| (hashes as u32).clamp(1, 64));
    let [fewer, more] = around.map(|hashes| -> Result<_, Error> {
        let shape = BloomShape::new(BloomShape::bits_within(bytes), hashes)?;
        Ok((shape.into(), most_keys(|keys| shape.rate_at(keys) <= rate)))
    });
    let (fewer, more) = (fewer?, more?);
    Ok(if more.1 > fewer.1 { more } else { fewer })
}
