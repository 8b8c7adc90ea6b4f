//! How lines fill, and so the rates and sizes of the kinds that keep a key in
//! lines: blocked and counting.

use super::{Rated, classic, most_keys, too_large};
use crate::error::Error;
use crate::kind::Kind;
use crate::raw::blocked::{self, BlockedShape, LINE_WORDS};
use crate::raw::counting::{self, CountingShape};
use crate::raw::shape::Shape;
use crate::raw::word::Word;

/// The probability that `hashes` distinct cells of a line of `cells`, `ones` of
/// them set, are all set.
pub(crate) fn all_set(cells: u32, ones: u32, hashes: u32) -> f64 {
    (0..hashes)
        .map(|t| f64::from(ones.saturating_sub(t)) / f64::from(cells - t))
        .product()
}

/// For `j` keys in a line: the probability that a foreign key's cells are all
/// set. Extended on demand, since the cost grows with `j`.
pub(super) struct LineRates {
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

impl Rated for BlockedShape {
    fn rate_at(&self, keys: f64) -> f64 {
        LineRates::new(BLOCKED.cells, self.hashes_per_line(), self.lines_per_key())
            .rate(keys, self.lines() as f64)
    }

    /// From how full every single line really is.
    fn rate_now<W: Word>(&self, words: &[W]) -> f64 {
        let lines = words.as_chunks::<LINE_WORDS>().0;
        // Lines of equal fill have equal rates.
        let mut having = [0u64; blocked::LINE_BITS as usize + 1];
        for line in lines {
            having[line.iter().map(|w| w.get().count_ones()).sum::<u32>() as usize] += 1;
        }
        let sum: f64 = having
            .iter()
            .enumerate()
            .map(|(ones, count)| {
                *count as f64 * all_set(BLOCKED.cells, ones as u32, self.hashes_per_line())
            })
            .sum();
        (sum / self.lines() as f64).powi(self.lines_per_key() as i32)
    }

    fn wrongly_present(&self, keys: u64) -> f64 {
        let mut rates = LineRates::new(BLOCKED.cells, self.hashes_per_line(), self.lines_per_key());
        wrongly_present(keys, |keys| rates.rate(keys, self.lines() as f64))
    }
}

impl Rated for CountingShape {
    fn rate_at(&self, keys: f64) -> f64 {
        LineRates::new(COUNTING.cells, self.hashes_per_line(), self.lines_per_key())
            .rate(keys, self.lines() as f64)
    }

    /// From how full every single line really is.
    fn rate_now<W: Word>(&self, words: &[W]) -> f64 {
        // Lines of equal fill have equal rates.
        let mut having = [0u64; counting::LINE_CELLS as usize + 1];
        for line in words.as_chunks::<LINE_WORDS>().0 {
            let used = line
                .iter()
                .map(|w| counting::above_zero(w.get()).count_ones());
            having[used.sum::<u32>() as usize] += 1;
        }
        let rates = (0..).zip(having).map(|(used, count)| {
            count as f64 * all_set(COUNTING.cells, used, self.hashes_per_line())
        });
        (rates.sum::<f64>() / self.lines() as f64).powi(self.lines_per_key() as i32)
    }
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

    pub(super) fn of(cells: u32, rate: f64, hashes_per_line: u32, lines_per_key: u32) -> Self {
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
pub(super) struct Lined {
    pub(super) cells: u32,
    /// How many lines a key may have, fewest first …
    lines_per_key: &'static [u32],
    /// … and how many below [`MORE_LINES_BELOW`].
    when_strict: &'static [u32],
}

pub(super) const BLOCKED: Lined = Lined {
    cells: blocked::LINE_BITS,
    lines_per_key: &[1],
    when_strict: &[1, 2],
};

/// A line holds a quarter of the cells, so it fills less evenly: two lines of
/// 128 counters are as good as one of 512 bits, four as two.
pub(super) const COUNTING: Lined = Lined {
    cells: counting::LINE_CELLS,
    lines_per_key: &[1, 2],
    when_strict: &[1, 2, 4],
};

/// What fewer hashes may cost, in memory.
pub(super) const FEWER_HASHES: f64 = 1.1;

/// The lines of [`Plan::one_line`](super::Plan::one_line).
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
pub(super) type Lines = (u64, u32, u32);

pub(super) fn blocked((lines, hashes, per_key): Lines) -> Result<Shape, Error> {
    BlockedShape::new(lines, hashes, per_key).map(Shape::from)
}

pub(super) fn counting((lines, hashes, per_key): Lines) -> Result<Shape, Error> {
    CountingShape::new(lines, hashes, per_key).map(Shape::from)
}

impl Lined {
    const fn lines_per_key(&self, rate: f64) -> &'static [u32] {
        match rate < MORE_LINES_BELOW {
            true => self.when_strict,
            false => self.lines_per_key,
        }
    }

    pub(super) fn for_rate(&self, keys: u64, rate: f64) -> Result<Lines, Error> {
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

    pub(super) fn for_rate_in_size(&self, rate: f64, bytes: u64) -> (Lines, u64) {
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

    pub(super) fn for_size(&self, keys: u64, bytes: u64) -> Lines {
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
