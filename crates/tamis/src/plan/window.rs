//! Rates and sizes of windows.
//!
//! A foreign key is taken for one of `n` if it has the home and the fingerprint of one of them,
//! wherever the entries are stored: `1 - (1 - 1/m)^n` for `m` different pairs. A full window gets
//! tables with wider slots, whose rates are so much lower that a twentieth of the rate is more than
//! enough for all of them.

use super::rated::{Rated, most_keys, no_room, too_large};
use crate::error::Error;
use crate::raw::shape::Shape;
use crate::raw::window::Span;
use crate::raw::window::shape::{Table, WindowOptions, WindowShape};
use crate::raw::word::Word;

/// The first table's maximum share of the rate.
const FIRST: f64 = 0.95;

/// The possible first tables of a window: widths of slots and words of bins.
const TABLES: [(u32, u32); 9] = [
    (16, 2),
    (16, 4),
    (16, 8),
    (21, 2),
    (21, 4),
    (21, 8),
    (32, 4),
    (32, 8),
    (64, 8),
];

/// The rate of the first table with this many slots in use.
fn rate_of(table: &Table, slots: f64) -> f64 {
    1.0 - table.absent(slots)
}

/// Slots that `keys` keys take, plus some where bins are few and fill unevenly.
fn slots_for(shape: &WindowShape, keys: u64) -> Option<u64> {
    let more = u128::from(shape.newest_table().slots_of_bin());
    u64::try_from(shape.slots_for(keys) + more).ok()
}

/// The smallest window that keeps the rate.
pub(super) fn for_rate(
    options: &WindowOptions,
    keys: u64,
    rate: f64,
) -> Result<WindowShape, Error> {
    // Check the options first: they give a better error than the size.
    WindowShape::new(options, 2, 8, 64)?;
    let each = TABLES.into_iter().filter_map(|(width, bin_words)| {
        let one = WindowShape::new(options, 2, bin_words, width).ok()?;
        let slots = slots_for(&one, keys)?;
        let (mut low, mut high) = (2u64, 1 << 48);
        let fits = |bins: u64| {
            let shape = WindowShape::new(options, bins, bin_words, width).ok();
            shape.is_some_and(|shape| {
                let table = shape.newest_table();
                table.room() >= slots && rate_of(table, slots as f64) <= FIRST * rate
            })
        };
        if !fits(high) {
            return None;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if fits(middle) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        WindowShape::new(options, low, bin_words, width).ok()
    });
    each.min_by_key(WindowShape::body_len)
        .filter(|shape| shape.body_len() < 1 << 60)
        .ok_or_else(|| too_large(keys, rate))
}

/// The windows of this size.
fn of_size(options: &WindowOptions, bytes: u64) -> impl Iterator<Item = WindowShape> {
    TABLES.into_iter().filter_map(move |(width, bin_words)| {
        let shape = |bins| WindowShape::new(options, bins, bin_words, width).ok();
        let (mut low, mut high) = (1u64, (bytes / (u64::from(bin_words) * 8)).min(1 << 48));
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            match shape(middle) {
                Some(shape) if shape.body_len() <= bytes => low = middle,
                _ => high = middle - 1,
            }
        }
        shape(low)
    })
}

/// The window with the lowest rate within this many bytes.
pub(super) fn for_size(
    options: &WindowOptions,
    keys: u64,
    bytes: u64,
) -> Result<WindowShape, Error> {
    WindowShape::new(options, 2, 8, 64)?;
    let fitting = of_size(options, bytes).filter(|shape| {
        slots_for(shape, keys).is_some_and(|slots| shape.newest_table().room() >= slots)
    });
    let rate = |shape: &WindowShape| shape.rate_at(keys as f64);
    fitting
        .min_by(|a, b| rate(a).total_cmp(&rate(b)))
        .ok_or_else(|| no_room("room for all keys, at least 20 bits for each", bytes, keys))
}

/// The window with the most last keys that keeps the rate within this many bytes.
pub(super) fn for_rate_in_size(rate: f64, bytes: u64) -> Result<(Shape, u64), Error> {
    // The size hardly depends on the number of keys in the options.
    let options = WindowOptions::new(Span::Keys(1 << 32));
    let most = of_size(&options, bytes).map(|shape| {
        let table = shape.newest_table();
        most_keys(|keys| {
            let slots = slots_for(&shape, keys as u64);
            slots.is_some_and(|slots| {
                table.room() >= slots && rate_of(table, slots as f64) <= FIRST * rate
            })
        })
    });
    let most = most.max().unwrap_or(0);
    // Rounding to generations may take a little more.
    for keys in [most, most - most / 50, most - most / 8, most / 2] {
        let options = WindowOptions::new(Span::Keys(keys.clamp(1, 1 << 56)));
        if let Ok(shape) = for_rate(&options, keys.max(1), rate)
            && shape.body_len() <= bytes
        {
            return Ok((shape.into(), keys));
        }
    }
    Err(no_room("room for a few bins", bytes, 1))
}

impl Rated for WindowShape {
    /// With `keys` keys in every span, in a window that grows if they are too many.
    fn rate_at(&self, keys: f64) -> f64 {
        let mut slots = self.slots_for(keys as u64) as f64;
        let mut shape = *self;
        let mut absent = 1.0;
        loop {
            let table = shape.newest_table();
            let here = slots.min(table.room() as f64);
            absent *= table.absent(here);
            slots -= here;
            match shape.grown() {
                Some(grown) if slots > 0.0 => shape = grown,
                _ => return 1.0 - absent,
            }
        }
    }

    /// As of the latest moment added.
    fn rate_now<W: Word>(&self, words: &[W]) -> f64 {
        self.share(words)
    }
}
