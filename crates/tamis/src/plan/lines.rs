//! Rates and sizes of the kinds that store a key in lines: blocked and counting.
//!
//! A foreign key is found in a line unless one of its bits is unset. Keys are independent, so the
//! probability that all of a set `S` of bits, in different words, are unset is `(1 - (1 - g(S)) /
//! lines)^keys`. Here `g(S)` is the probability that a key of this line leaves them unset: the
//! mean, over the eight words it may start from, of `63/64` to the power of the number of words of
//! `S` in which it sets a bit. The probability that all are set follows by inclusion and exclusion
//! over the at most 256 subsets of the foreign key's words. Each of a key's lines is in a separate
//! bank, so the rate is the product over them. None of this is an approximation, however small the
//! filter.

use super::rated::{Rated, most_keys, shown, too_large};
use crate::error::Error;
use crate::raw::blocked::{
    BlockedShape, LINE_WORDS, MAX_HASHES_PER_LINE, MAX_LINES_PER_KEY, covers,
};
use crate::raw::counting::{COUNTER_WORDS, CountingShape, blocked_words};
use crate::raw::word::Word;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Groups of similar sets of a foreign key's bits: the probability that a key of the line sets one
/// of them, and the number of even sets minus the number of odd ones.
type Terms = Vec<(f64, f64)>;

/// The terms for one to eight bits a line.
static TERMS: LazyLock<[Terms; MAX_HASHES_PER_LINE as usize]> =
    LazyLock::new(|| std::array::from_fn(|i| terms(i as u32 + 1)));

fn terms(k: u32) -> Terms {
    let covers = covers(k);
    let mut alike = BTreeMap::new();
    for set in 0..=covers[0] {
        let mut beside = covers.map(|cover| (set & cover).count_ones());
        beside.sort_unstable();
        let sign = if set.count_ones() % 2 == 0 { 1.0 } else { -1.0 };
        *alike.entry(beside).or_insert(0.0) += sign;
    }
    let hit = |bits: u32| 1.0 - (63.0f64 / 64.0).powi(bits as i32);
    alike
        .into_iter()
        .map(|(beside, count)| (beside.map(hit).iter().sum::<f64>() / 8.0, count))
        .collect()
}

/// Terms cancel each other to about 1e-15; lower rates of a line are rounded up to this.
const RESOLUTION: f64 = 1e-13;

/// The probability that a foreign key finds all `k` bits in its line of a bank.
fn line_rate(k: u32, keys: f64, lines: f64) -> f64 {
    let sum: f64 = TERMS[k as usize - 1]
        .iter()
        .map(|(share, count)| count * libm::expm1(keys * libm::log1p(-share / lines)))
        .sum();
    sum.clamp(RESOLUTION, 1.0)
}

impl Rated for BlockedShape {
    fn rate_at(&self, keys: f64) -> f64 {
        let (k, per_key) = (self.hashes_per_line(), self.lines_per_key());
        rate_of(k, per_key, keys, self.lines_per_bank() as f64)
    }

    /// From the actual fill of every word.
    fn rate_now<W: Word>(&self, words: &[W]) -> f64 {
        let lines = words.as_chunks::<LINE_WORDS>().0.iter();
        rate_now(
            self,
            lines.map(|line| line.each_ref().map(|w| w.get().count_ones())),
        )
    }
}

/// The rate of the blocked filter with a bit for each counter.
impl Rated for CountingShape {
    fn rate_at(&self, keys: f64) -> f64 {
        self.bits().rate_at(keys)
    }

    fn rate_now<W: Word>(&self, words: &[W]) -> f64 {
        let ones = |words: &[W; COUNTER_WORDS]| {
            let mut ones = blocked_words(words).map(u64::count_ones);
            std::array::from_fn(|_| ones.next().unwrap_or_default())
        };
        rate_now(&self.bits(), words.as_chunks().0.iter().map(ones))
    }
}

fn rate_of(k: u32, per_key: u32, keys: f64, lines_per_bank: f64) -> f64 {
    if keys <= 0.0 {
        return 0.0;
    }
    let banks = per_key as i32;
    // Keys with equal low halves have equal bits in all lines, if they have the same lines.
    let same = keys * 2f64.powi(-64) * (lines_per_bank.powi(-banks) + 2f64.powi(-64));
    (line_rate(k, keys, lines_per_bank).powi(banks) + same).min(1.0)
}

/// The rate of a filter whose words have this many ones, line by line.
fn rate_now(shape: &BlockedShape, lines: impl Iterator<Item = [u32; LINE_WORDS]>) -> f64 {
    let k = shape.hashes_per_line() as usize;
    // With a bit in every word, the start makes no difference.
    let starts = if k == LINE_WORDS { 1 } else { LINE_WORDS };
    let matches = |ones: [u32; LINE_WORDS]| {
        let fill = ones.map(|ones| f64::from(ones) / 64.0);
        let from = |start| {
            (start..start + k)
                .map(|w| fill[w % LINE_WORDS])
                .product::<f64>()
        };
        (0..starts).map(from).sum::<f64>() / starts as f64
    };
    let per_bank = shape.lines_per_bank();
    let mut rate = 1.0;
    let mut lines = lines.map(matches);
    for _ in 0..shape.lines_per_key() {
        let bank: f64 = lines.by_ref().take(per_bank as usize).sum();
        rate *= bank / per_bank as f64;
    }
    rate
}

/// The smallest number of lines that keeps the rate, a multiple of the lines per key; `None` if
/// 2^54 aren't enough.
pub(super) fn lines_for(keys: f64, rate: f64, k: u32, per_key: u32) -> Option<u64> {
    // Whether this many lines keep the rate, and how far off it is, as a logarithm.
    let look = |lines: u64| {
        let reached = rate_of(k, per_key, keys, lines as f64);
        (reached <= rate, libm::log(reached / rate))
    };
    let (mut low, mut high) = (1u64, (1 << 54) / u64::from(per_key));
    let (keeps, mut above) = look(low);
    if keeps {
        return Some(u64::from(per_key));
    }
    let (keeps, mut below) = look(high);
    if !keeps {
        return None;
    }
    // The low end doesn't keep the rate, the high end does. First narrow by orders of magnitude,
    // then to where a straight line from end to end crosses the rate. An end that stays counts half
    // each time (the Illinois rule), or it would stay for ever.
    let mut stays = None;
    while high - low > 1 {
        let is_far = low < high / 4;
        let middle = if is_far {
            (low as f64 * high as f64).sqrt()
        } else {
            low as f64 + (high - low) as f64 * (above / (above - below))
        };
        let middle = (middle as u64).clamp(low + 1, high - 1);
        let (keeps, distance) = look(middle);
        if keeps {
            (high, below) = (middle, distance);
            above /= if stays == Some(low) { 2.0 } else { 1.0 };
            stays = (!is_far).then_some(low);
        } else {
            (low, above) = (middle, distance);
            below /= if stays == Some(high) { 2.0 } else { 1.0 };
            stays = (!is_far).then_some(high);
        }
    }
    Some(high * u64::from(per_key))
}

/// The memory factor that fewer lines may cost: each line is a cache miss.
const FEWER_LINES: f64 = 1.08;
/// The memory factor that fewer hashes may cost, where each takes a server's time.
pub(super) const FEWER_HASHES: f64 = 1.1;
/// With one line a key, lower rates would take more memory than the keys' digests.
pub(super) const MIN_ONE_LINE_RATE: f64 = 1e-9;

/// The smallest shape for a rate, except that fewer lines per key are preferred if they cost
/// little.
pub(super) fn for_rate(keys: u64, rate: f64) -> Result<BlockedShape, Error> {
    let smallest = |per_key| {
        (1..=MAX_HASHES_PER_LINE)
            .filter_map(|k| Some((lines_for(keys as f64, rate, k, per_key)?, k, per_key)))
            .min()
    };
    let each: Vec<_> = (1..=MAX_LINES_PER_KEY).filter_map(smallest).collect();
    let best = each.iter().map(|(lines, ..)| *lines).min();
    let most = best.map_or(0.0, |best| best as f64 * FEWER_LINES);
    match each.iter().find(|(lines, ..)| *lines as f64 <= most) {
        Some(&(lines, k, per_key)) => BlockedShape::new(lines, k, per_key),
        None => Err(too_large(keys, rate)),
    }
}

/// The shape of this many lines with the lowest rate, except that fewer lines per key are preferred
/// if they cost little.
pub(super) fn for_size(keys: u64, lines: u64) -> Result<BlockedShape, Error> {
    let best_of = |per_key: u32, lines: u64| {
        let per_bank = lines / u64::from(per_key);
        (1..=MAX_HASHES_PER_LINE)
            .filter(|_| per_bank > 0)
            .map(|k| {
                (
                    rate_of(k, per_key, keys as f64, per_bank as f64),
                    k,
                    per_key,
                )
            })
            .min_by(|a, b| a.0.total_cmp(&b.0))
    };
    let fewer = ((lines as f64 / FEWER_LINES) as u64).max(1);
    let most = (1..=MAX_LINES_PER_KEY)
        .filter_map(|per_key| best_of(per_key, fewer))
        .fold(1.0, |best: f64, (rate, ..)| best.min(rate));
    let chosen = (1..=MAX_LINES_PER_KEY)
        .filter_map(|per_key| best_of(per_key, lines))
        .find(|(rate, ..)| *rate <= most);
    let (_, k, per_key) = chosen.ok_or_else(|| too_large(keys, 0.0))?;
    BlockedShape::new(lines / u64::from(per_key) * u64::from(per_key), k, per_key)
}

/// The shape of this many lines that takes the most keys at a rate, and that number of keys; fewer
/// lines per key are preferred if they cost little.
pub(super) fn for_rate_in_size(rate: f64, lines: u64) -> Result<(BlockedShape, u64), Error> {
    let most_of = |per_key: u32| {
        let per_bank = lines / u64::from(per_key);
        (1..=MAX_HASHES_PER_LINE)
            .filter(|_| per_bank > 0)
            .map(|k| {
                let keys = most_keys(|keys| rate_of(k, per_key, keys, per_bank as f64) <= rate);
                (keys, k, per_key)
            })
            .max_by_key(|(keys, ..)| *keys)
    };
    let each: Vec<_> = (1..=MAX_LINES_PER_KEY).filter_map(most_of).collect();
    let best = each.iter().map(|(keys, ..)| *keys).max().unwrap_or(0);
    let enough = |(keys, ..): &&(u64, u32, u32)| *keys as f64 * FEWER_LINES >= best as f64;
    let &(keys, k, per_key) = each.iter().find(enough).ok_or_else(|| too_large(1, rate))?;
    let lines = lines / u64::from(per_key) * u64::from(per_key);
    Ok((BlockedShape::new(lines, k, per_key)?, keys))
}

/// One line per key, and the fewest hashes that cost little.
pub(super) fn one_line(keys: u64, rate: f64) -> Result<BlockedShape, Error> {
    if rate < MIN_ONE_LINE_RATE {
        return Err(Error::parameter(
            "rate",
            "at least 1e-9 with one line per key, as in Redis",
            shown(rate),
        ));
    }
    let each: Vec<_> = (1..=MAX_HASHES_PER_LINE)
        .filter_map(|k| Some((lines_for(keys as f64, rate, k, 1)?, k)))
        .collect();
    let best = each.iter().map(|(lines, _)| *lines).min();
    let most = best.map_or(0.0, |best| best as f64 * FEWER_HASHES);
    match each.iter().find(|(lines, _)| *lines as f64 <= most) {
        Some(&(lines, k)) => BlockedShape::new(lines, k, 1),
        None => Err(too_large(keys, rate)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By bisection: slow but simple.
    fn lines_by_halves(keys: f64, rate: f64, k: u32, per_key: u32) -> Option<u64> {
        let keeps = |lines: u64| rate_of(k, per_key, keys, lines as f64) <= rate;
        let (mut low, mut high) = (1u64, (1 << 54) / u64::from(per_key));
        if !keeps(high) {
            return None;
        }
        while low < high {
            let middle = u64::midpoint(low, high);
            if keeps(middle) {
                high = middle
            } else {
                low = middle + 1
            }
        }
        Some(low * u64::from(per_key))
    }

    #[test]
    fn the_fewest_lines_are_found() {
        for keys in [1.0, 2.0, 7.0, 100.0, 4_321.0, 1e6, 123_456_789.0] {
            for rate in [0.99, 0.5, 0.1, 0.01, 1e-3, 1e-6, 1e-9, 1e-12, 1e-15] {
                for k in 1..=MAX_HASHES_PER_LINE {
                    for per_key in 1..=MAX_LINES_PER_KEY {
                        let what =
                            format!("{keys} keys, rate {rate}, {k} hashes, {per_key} lines a key");
                        let found = lines_for(keys, rate, k, per_key);
                        let slowly = lines_by_halves(keys, rate, k, per_key);
                        let (Some(found), Some(slowly)) = (found, slowly) else {
                            assert_eq!(found, slowly, "{what}");
                            continue;
                        };
                        let reached =
                            rate_of(k, per_key, keys, (found / u64::from(per_key)) as f64);
                        assert!(reached <= rate, "{what}");
                        // Where terms cancel each other, the rates of neighbouring numbers of lines
                        // fluctuate.
                        let cancelled = 1e-14 / libm::pow(rate, 1.0 / f64::from(per_key));
                        let most = (slowly as f64 * cancelled) as u64;
                        assert!(found.abs_diff(slowly) <= most, "{what}: {found} {slowly}");
                    }
                }
            }
        }
    }
}
