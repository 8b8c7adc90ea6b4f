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

    fn rate_now<W: Word>(&self, words: &[W]) -> f64 {
        self.fill(words).powi(self.hashes() as i32)
    }
}

/// The textbook's size. The rounding of `k` costs up to 1 % of the rate, which
/// the textbook accepts and so do we; where it costs more (rates above a
/// tenth), bits are added until it doesn't.
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

pub(super) fn for_size(keys: u64, bytes: u64) -> Result<BloomShape, Error> {
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
        .min_by(|a, b| a.rate_at(keys as f64).total_cmp(&b.rate_at(keys as f64)));
    best.ok_or_else(|| too_large(keys, 0.0))
}

/// The textbook's tolerance, see [`for_rate`].
const ROUNDED_HASHES: f64 = 1.01;

/// Here the rate was asked for next to a size, and not for the textbook's
/// numbers, so it is kept to the last digit.
pub(super) fn for_rate_in_size(rate: f64, bytes: u64) -> Result<(Shape, u64), Error> {
    let best = -rate.log2();
    let around = [best.floor(), best.ceil()].map(|hashes| (hashes as u32).clamp(1, 64));
    let [fewer, more] = around.map(|hashes| -> Result<_, Error> {
        let shape = BloomShape::new(bytes / 64 * 512, hashes)?;
        Ok((shape.into(), most_keys(|keys| shape.rate_at(keys) <= rate)))
    });
    let (fewer, more) = (fewer?, more?);
    Ok(if more.1 > fewer.1 { more } else { fewer })
}
