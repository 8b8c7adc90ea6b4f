//! Rates and sizes of windows.
//!
//! A foreign key finds its bits in a block of `j` keys with probability
//! `(1 - (1 - 1/m)^j)^k`: each of its `k` bits is in a slice of `m`, and each of the
//! `j` keys has one bit there. How many keys a block has is a binomial
//! distribution. Generations have different keys, so that their answers are
//! independent; all of them are full when one has just been filled, and a key that is late is asked
//! of one more: that is what is planned for.

use super::rated::{Rated, most_keys, no_room, too_large};
use crate::error::Error;
use crate::raw::shape::Shape;
use crate::raw::window::Span;
use crate::raw::window::shape::{MAX_SLICES, WORD_BITS, WindowOptions, WindowShape};
use crate::raw::word::Word;

/// How much larger than the smallest a window may be if its blocks are shorter:
/// each answer reads one for each generation.
const SHORTER_BLOCKS: f64 = 1.15;

const BLOCKS: [u32; 3] = [4, 8, 16];

/// Block lengths and bits in a word, all that are possible.
fn shapes() -> impl Iterator<Item = (u32, u32)> {
    BLOCKS
        .into_iter()
        .flat_map(|block| (1..=MAX_SLICES).map(move |slices| (block, slices)))
}

/// The rate of one generation that has `keys` keys in `rows` blocks.
fn generation_rate(block: u32, slices: u32, keys: f64, rows: f64) -> f64 {
    let unset = 1.0 - 1.0 / f64::from(WORD_BITS / slices);
    let bits = (block * slices) as i32;
    let with = |j: f64| (1.0 - unset.powf(j)).powi(bits);
    let (share, mean) = (1.0 / rows, keys / rows);
    if rows < 1.5 || mean > 500.0 {
        return with(mean); // all in one, or so many that they are about the mean
    }
    let mut chance = (keys * (-share).ln_1p()).exp();
    let odds = share / (1.0 - share);
    let (mut sum, mut j) = (0.0, 0.0);
    let last = mean + 14.0 * mean.sqrt() + 60.0;
    while j < keys && j < last {
        chance *= (keys - j) / (j + 1.0) * odds;
        j += 1.0;
        sum += chance * with(j);
    }
    sum.clamp(0.0, 1.0)
}

/// The chance that one of several generations says yes.
fn any(rates: impl Iterator<Item = f64>) -> f64 {
    let all_no: f64 = rates.map(|rate| (-rate).ln_1p()).sum();
    -all_no.exp_m1()
}

fn window_rate(options: &WindowOptions, block: u32, slices: u32, keys: f64, rows: f64) -> f64 {
    let generations = f64::from(options.generation_count());
    let rate = generation_rate(block, slices, keys / generations, rows);
    // The one being filled, and one that a key that is late still finds.
    any(std::iter::repeat_n(
        rate,
        options.generation_count() as usize + 2,
    ))
}

/// The fewest rows that keep the rate.
fn rows_for(options: &WindowOptions, block: u32, slices: u32, keys: f64, rate: f64) -> Option<u64> {
    let keeps = |rows: u64| window_rate(options, block, slices, keys, rows as f64) <= rate;
    let (mut low, mut high) = (1u64, 1);
    while !keeps(high) {
        low = high + 1;
        high = high.checked_mul(2).filter(|high| *high <= 1 << 45)?;
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if keeps(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(low)
}

/// The smallest window, but with shorter blocks where they cost little.
pub(super) fn for_rate(
    options: &WindowOptions,
    keys: u64,
    rate: f64,
) -> Result<WindowShape, Error> {
    // Its options first: they make a better error than the size, and a sum over millions of
    // generations would take forever.
    WindowShape::new(options, 1, 4, 1)?;
    let smallest = |block: u32| {
        (1..=MAX_SLICES)
            .filter_map(|slices| {
                let rows = rows_for(options, block, slices, keys as f64, rate)?;
                Some((rows * u64::from(block), rows, block, slices))
            })
            .min()
    };
    let each: Vec<_> = BLOCKS.into_iter().filter_map(smallest).collect();
    let best = each.iter().map(|(words, ..)| *words).min();
    let most = best.map_or(0.0, |best| best as f64 * SHORTER_BLOCKS);
    match each.iter().find(|(words, ..)| *words as f64 <= most) {
        Some(&(_, rows, block, slices)) => WindowShape::new(options, rows, block, slices),
        None => Err(too_large(keys, rate)),
    }
}

/// The window with the lowest rate within this many bytes.
pub(super) fn for_size(
    options: &WindowOptions,
    keys: u64,
    bytes: u64,
) -> Result<WindowShape, Error> {
    let each = shapes().filter_map(|(block, slices)| {
        let shape = within(options, block, slices, bytes)?;
        Some((shape.rate_at(keys as f64), shape))
    });
    each.min_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, shape)| shape)
        .ok_or_else(|| no_room("room for a block of each generation", bytes, keys))
}

/// The window of the last keys, as many as keep the rate within this many bytes.
pub(super) fn for_rate_in_size(rate: f64, bytes: u64) -> Result<(Shape, u64), Error> {
    let options = WindowOptions::new(Span::Keys(1));
    let each = shapes().filter_map(|(block, slices)| {
        let rows = within(&options, block, slices, bytes)?.rows();
        let keeps = |keys| window_rate(&options, block, slices, keys, rows as f64) <= rate;
        Some((most_keys(keeps), rows, block, slices))
    });
    let best = each
        .max()
        .ok_or_else(|| no_room("room for a block of each generation", bytes, 1))?;
    let (keys, rows, block, slices) = best;
    let options = WindowOptions::new(Span::Keys(keys.clamp(1, 1 << 56)));
    Ok((
        WindowShape::new(&options, rows, block, slices)?.into(),
        keys,
    ))
}

/// As many rows as fit.
fn within(options: &WindowOptions, block: u32, slices: u32, bytes: u64) -> Option<WindowShape> {
    let one = WindowShape::new(options, 1, block, slices).ok()?;
    let rest = (bytes / 64 * 64).checked_sub(one.head_words() as u64 * 8)?;
    let rows = rest / (one.row_words() as u64 * 8);
    WindowShape::new(options, rows, block, slices).ok()
}

impl WindowShape {
    /// The rate when generations have these many keys.
    pub fn rate_of(&self, keys: impl IntoIterator<Item = f64>) -> f64 {
        let (block, rows) = (self.block() as u32, self.rows() as f64);
        let rate = |keys| generation_rate(block, self.slices(), keys, rows);
        any(keys.into_iter().map(rate))
    }
}

impl Rated for WindowShape {
    /// When every generation has its share of `keys` keys, and the one being filled too.
    fn rate_at(&self, keys: f64) -> f64 {
        let (block, rows) = (self.block() as u32, self.rows() as f64);
        window_rate(&self.options(), block, self.slices(), keys, rows)
    }

    /// As of the latest moment that was added.
    fn rate_now<W: Word>(&self, words: &[W]) -> f64 {
        let live = self.live(words);
        let all: f64 = (0..self.rows())
            .map(|row| {
                any(live
                    .iter()
                    .map(|&(c, column)| self.block_rate(words, row, c, column)))
            })
            .sum();
        all / self.rows() as f64
    }
}
