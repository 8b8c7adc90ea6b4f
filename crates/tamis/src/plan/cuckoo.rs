//! Rates and sizes of the cuckoo kind.

use super::rated::Rated;
use crate::raw::cuckoo::CuckooShape;
use crate::raw::layout::Layout as _;
use crate::raw::word::Word;

/// The approximate probability that a planned table refuses one of its n keys.
const REFUSAL: f64 = 1e-6;

/// The share of the slots that can be filled, for windows of 2, 3 and 4 (Walzer 2018); in small
/// tables, up to chance.
const THRESHOLDS: [f64; 3] = [0.965, 0.994, 0.999];

/// Tables of a growing cuckoo filter in the Redis module hold at least this many keys; below, the
/// per-table metadata would weigh too much.
pub const FEWEST_CUCKOO_KEYS: u64 = 1024;
/// A filter whose tables grow by a factor above 1 reaches at least this many keys …
const REACH_KEYS: f64 = 1e8;
/// … and this many times the keys it was made for.
const REACH_TIMES: f64 = 1e3;
/// Layers of a filter whose tables are all the same size.
const MOST_EQUAL: u32 = 32;

/// The most layers of a cuckoo filter in the Redis module, which starts with room for `keys` and
/// makes each layer `expansion` times as large as the last. They share the promised rate.
///
/// ```
/// use tamis::internals::plan::cuckoo_layers;
/// assert_eq!(cuckoo_layers(1_000_000, 0), 1); // it doesn't grow
/// assert_eq!(cuckoo_layers(1_000_000, 2), 11);
/// ```
pub fn cuckoo_layers(keys: u64, expansion: u32) -> u32 {
    match expansion {
        0 => 1,
        1 => MOST_EQUAL,
        times => {
            // A file may say 0 keys.
            let reach = (REACH_KEYS / keys.max(1) as f64).max(REACH_TIMES);
            1 + (libm::log(reach) / libm::log(f64::from(times))).ceil() as u32
        }
    }
}

impl Rated for CuckooShape {
    /// A key is taken for another if it has the same fingerprint and its place is one of the
    /// other's two, wherever the entries are stored. One key in `places` has only one place.
    fn rate_at(&self, keys: f64) -> f64 {
        let cells = self.places() as f64 * self.fingerprints() as f64;
        let hit = |places: f64| -libm::expm1(keys * libm::log1p(-(places / cells).min(1.0)));
        let single = 1.0 / self.places() as f64;
        match self.places() {
            1 => hit(1.0),
            _ => (1.0 - single) * hit(2.0) + single * hit(1.0),
        }
    }

    fn rate_now<W: Word>(&self, words: &[W]) -> f64 {
        self.rate_at(self.keys_now(words))
    }
}

impl CuckooShape {
    /// The largest table of each window and width in this many bytes.
    pub(crate) fn within(bytes: u64) -> impl Iterator<Item = Self> {
        let bits = (bytes / 64 * 512).saturating_sub(64);
        Self::all_sorts().filter_map(move |(window, width)| {
            Self::new(bits / u64::from(width), window, width).ok()
        })
    }

    /// The smallest table that almost surely takes `keys` at no more than `rate`; `None` if none
    /// can.
    pub(crate) fn for_rate(keys: u64, rate: f64) -> Option<Self> {
        let tables = Self::all_sorts().filter_map(|(window, width)| {
            let sort = Self::new(window.into(), window, width).ok()?;
            // Numbers that are too large give a number of slots that is refused.
            let slots = sort.slots_for(keys as f64, rate).max(f64::from(window)) as u64;
            let bytes = Self::new(slots, window, width).ok()?.body_len();
            // The last line is allocated anyway: fill it with slots.
            Self::new((bytes * 8 - 64) / u64::from(width), window, width).ok()
        });
        tables.min_by_key(Self::body_len)
    }

    /// The table within `bytes` that almost surely takes `keys`, at the best rate; `None` if they
    /// don't fit.
    pub(crate) fn for_size(keys: u64, bytes: u64) -> Option<Self> {
        Self::within(bytes)
            .filter(|shape| shape.slots_to_fit(keys as f64) <= shape.slots() as f64)
            .min_by(|a, b| a.rate_at(keys as f64).total_cmp(&b.rate_at(keys as f64)))
    }

    /// The most entries that can be expected to find a slot.
    pub(crate) fn most_entries(&self) -> u64 {
        (self.slots() as f64 * THRESHOLDS[self.window() as usize - 2]) as u64
    }

    /// How many slots of this window and width `n` keys need at `rate`.
    pub(crate) fn slots_for(&self, n: f64, rate: f64) -> f64 {
        // The formula for the rate, solved for the places.
        let exact = 2.0 / (self.fingerprints() as f64 * -libm::expm1(libm::log1p(-rate) / n));
        self.slots_to_fit(n)
            .max(exact + f64::from(self.window()))
            .ceil()
    }

    /// How many slots of this window and width `n` keys almost surely fit into.
    fn slots_to_fit(&self, n: f64) -> f64 {
        let window = f64::from(self.window());
        let factorial = |k: u32| (1..=u64::from(k)).product::<u64>() as f64;
        // Below the thresholds there is room for every key, up to chance in small tables; staying
        // this far below keeps the search short.
        let loaded =
            n / [0.92, 0.97, 0.98][self.window() as usize - 2] + (5.0 * n.sqrt()).min(64.0);
        // window + 1 keys with the same place twice don't fit, whether or not their fingerprints
        // differ …
        let (keys, fingerprints) = (window + 1.0, self.fingerprints() as f64);
        let refused = factorial(self.window() + 1) * REFUSAL;
        let confined = libm::pow(libm::pow(n, keys) / refused, 1.0 / (2.0 * window + 1.0));
        let confined =
            confined.max(n / libm::pow(refused * libm::pow(fingerprints, window), 1.0 / keys));
        // … nor do 2 window + 1 keys with the same fingerprint and places. With λ keys for each
        // fingerprint in each pair of places, n λ^(2 window) / (2 window + 1)! of them are
        // expected.
        let keys_per_pair = libm::pow(factorial(2 * self.window() + 1) * REFUSAL / n, 0.5 / window);
        let repeated = 2.0 * n / (keys_per_pair * fingerprints);
        loaded.max(confined).max(repeated).ceil()
    }
}
