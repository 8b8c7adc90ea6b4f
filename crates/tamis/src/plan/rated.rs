//! The rates of each kind, and the limits of plans.

use crate::error::Error;
use crate::raw::layout::Layout;
use crate::raw::word::Word;

/// The false-positive rates of a kind.
#[doc(hidden)]
pub trait Rated: Layout {
    /// The expected rate with this many keys.
    fn rate_at(&self, keys: f64) -> f64;
    /// The expected rate, from the words' content.
    fn rate_now<W: Word>(&self, words: &[W]) -> f64;
    /// How many of this many keys seemed present when they were added.
    fn wrongly_present(&self, keys: u64) -> f64 {
        wrongly_present(keys, |keys| self.rate_at(keys))
    }
}

/// How many of `keys` distinct keys, added one after the other, wrongly seem present: the integral
/// of the rate over the keys.
fn wrongly_present(keys: u64, mut rate_at: impl FnMut(f64) -> f64) -> f64 {
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

/// The largest number of keys for which `fits` holds; it must hold for all smaller ones.
pub(super) fn most_keys(mut fits: impl FnMut(f64) -> bool) -> u64 {
    let (mut low, mut high) = (0u64, 1 << 62);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if fits(middle as f64) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

pub(crate) fn check_keys(keys: u64) -> Result<(), Error> {
    match keys {
        0 => Err(Error::parameter("number of keys", "at least 1", 0)),
        _ => Ok(()),
    }
}

/// The lowest rate that a 128-bit hash can safely promise.
pub(crate) const MIN_RATE: f64 = 1e-15;

/// The error for a size other than `expected`.
pub(super) fn wrong_size(expected: &'static str, bytes: u64) -> Error {
    Error::parameter("size", expected, format_args!("{bytes} bytes"))
}

/// The error for a size that doesn't hold this many keys.
pub(super) fn no_room(expected: &'static str, bytes: u64, keys: u64) -> Error {
    Error::parameter(
        "size",
        expected,
        format_args!("{bytes} bytes for {keys} keys"),
    )
}

/// A rate in readable form: small ones with an exponent.
pub(crate) fn shown(rate: f64) -> String {
    match rate.abs() < 1e-3 && rate != 0.0 {
        true => format!("{rate:e}"),
        false => rate.to_string(),
    }
}

pub(crate) fn check_rate(rate: f64) -> Result<(), Error> {
    // The range check also refuses NaN.
    if (MIN_RATE..1.0).contains(&rate) {
        return Ok(());
    }
    Err(Error::parameter(
        "rate",
        "at least 1e-15 and below 1",
        shown(rate),
    ))
}

pub(crate) fn too_large(keys: u64, rate: f64) -> Error {
    Error::parameter(
        "size",
        "below 2^60 bytes",
        format_args!("more for {keys} keys at a rate of {}", shown(rate)),
    )
}
