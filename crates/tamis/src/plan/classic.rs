//! The textbook formulas, for comparison.

use std::f64::consts::LN_2;

/// Bits for `keys` at `rate` with the best number of hashes:
/// `-n ln p / (ln 2)²`.
///
/// ```
/// assert_eq!(tamis::internals::plan::classic::bits(1_000_000, 0.01), 9_585_058.0);
/// ```
pub fn bits(keys: u64, rate: f64) -> f64 {
    (-(keys as f64) * libm::log(rate) / (LN_2 * LN_2)).floor()
}

/// The best number of hashes for this many bits per key: `ln 2 · m/n`.
///
/// ```
/// assert_eq!(tamis::internals::plan::classic::hashes(9.585), 7);
/// ```
pub fn hashes(bits_per_key: f64) -> u32 {
    ((LN_2 * bits_per_key).round() as u32).max(1)
}

/// The rate at this many bits per key and hashes: `(1 - e^(-k·n/m))^k`.
///
/// ```
/// let rate = tamis::internals::plan::classic::rate(20.0, 10);
/// assert!((rate - 0.0000889).abs() < 5e-8);
/// ```
pub fn rate(bits_per_key: f64, hashes: u32) -> f64 {
    let k = f64::from(hashes);
    libm::pow(-libm::expm1(-k / bits_per_key), k)
}
