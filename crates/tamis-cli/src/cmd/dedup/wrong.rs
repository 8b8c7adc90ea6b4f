//! The expected number of wrongly dropped records, from how full the filter is.

/// Between two looks at a filter, some new records came through, each with probability `1 - rate`. So about
/// `new / (1 - rate)` were new, and the rest of these were dropped wrongly. The rate comes from the bits that are set.
/// The number of dropped records isn't used: they may be duplicates.
pub(super) struct Wrong {
    adding: Adding,
    batches: u64,
    records: u64,
    new: u64,
    rate: f64,
    expected: f64,
    /// The next look is due at this many records in total.
    all: u64,
    next: u64,
    /// Keys in the filter at first.
    held: u64,
    /// The fewest records between two looks.
    least: u64,
}

/// When new keys of a batch enter the filter.
#[derive(Clone, Copy)]
pub(super) enum Adding {
    /// One by one, so that the next key is checked against them.
    AtOnce,
    /// Once the whole batch is decided.
    Afterwards,
}

/// Looks get rarer, so there are few of them. The rate can't change much while an eighth of the keys is added, however
/// it grows.
const LOOKS: u64 = 8;
const FIRST_LOOK: u64 = 1000;
/// A look reads the whole filter. That must not take longer than adding the records in between: one record for so many
/// bytes.
const BYTES: u64 = 64;
const FEWEST: u64 = 16;
/// From this rate on, so few keys come through that their number may be zero by chance.
const MOSTLY_WRONG: f64 = 0.5;

impl Wrong {
    /// Counts from here on, with a filter of this rate.
    pub(super) const fn from(rate: f64, adding: Adding) -> Self {
        Self {
            adding,
            batches: 0,
            records: 0,
            new: 0,
            rate,
            expected: 0.0,
            all: 0,
            next: FIRST_LOOK,
            held: 0,
            least: FIRST_LOOK,
        }
    }

    /// For a filter in memory with so many keys and bytes.
    pub(super) fn holding(mut self, keys: u64, bytes: u64) -> Self {
        self.held = keys;
        self.least = (bytes / BYTES).max(FEWEST);
        self.plan_look();
        self
    }

    fn plan_look(&mut self) {
        let step = (self.held.saturating_add(self.all) / LOOKS).max(self.least);
        self.next = self.all.saturating_add(step);
    }

    /// Counts a decided batch.
    pub(super) fn decided(&mut self, new: &[bool]) {
        self.batches += 1;
        self.records += new.len() as u64;
        self.all += new.len() as u64;
        self.new += count(new);
    }

    /// Whether to [`look`](Self::look) before the next batch.
    pub(super) const fn look_is_due(&self) -> bool {
        self.all >= self.next
    }

    /// How many records may be decided before the next look.
    pub(super) const fn until_look(&self) -> u64 {
        self.next.saturating_sub(self.all)
    }

    /// Updates the filter's rate.
    pub(super) fn look(&mut self, rate: f64) {
        // With `AtOnce`, the batches met the rates from the last look to this one; with `Afterwards`, those before the
        // last step.
        let last = match (self.adding, self.batches) {
            (Adding::AtOnce, _) => rate,
            (Adding::Afterwards, 0 | 1) => self.rate,
            (Adding::Afterwards, batches) => {
                self.rate + (rate - self.rate) * (1.0 - 1.0 / batches as f64)
            }
        };
        let mean = mean(self.rate, last);
        let all_new = self.records as f64 * (1.0 - mean);
        self.expected += if mean > MOSTLY_WRONG && all_new < 1.0 {
            // Not even one of so many new records would have come through, so there is no better estimate.
            (self.records - self.new) as f64
        } else {
            self.new as f64 * mean / (1.0 - mean)
        };
        (self.batches, self.records, self.new, self.rate) = (0, 0, 0, rate);
        self.plan_look();
    }

    pub(super) const fn expected(&self) -> f64 {
        self.expected
    }
}

/// The mean of a rate on its way from `first` to `last`. A low rate grows as a power of the number of keys; a high one
/// approaches 1 by a fixed share per key. Both have a logarithmic mean.
fn mean(first: f64, last: f64) -> f64 {
    if first + last > 1.0 {
        1.0 - logarithmic_mean(1.0 - first, 1.0 - last)
    } else {
        logarithmic_mean(first, last)
    }
}

fn logarithmic_mean(a: f64, b: f64) -> f64 {
    let ratio = b / a;
    if a > 0.0 && b > 0.0 && (ratio - 1.0).abs() > 1e-6 {
        (b - a) / ratio.ln()
    } else {
        (a + b) / 2.0
    }
}

pub(super) fn count(new: &[bool]) -> u64 {
    new.iter().map(|new| u64::from(*new)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis::{Blocked, Hasher};

    /// Sends distinct keys through a filter made for `capacity`: how many were dropped, and the estimate.
    fn through(capacity: u64, rate: f64, keys: u64, adding: Adding) -> (f64, f64) {
        let filter = Blocked::new(capacity, rate).unwrap();
        let mut wrong = Wrong::from(0.0, adding);
        if matches!(adding, Adding::AtOnce) {
            wrong = wrong.holding(0, filter.bytes());
        }
        let mut dropped = 0;
        let hasher = Hasher::default();
        let hashes: Vec<_> = (0..keys).map(|i| hasher.hash(&i.to_le_bytes())).collect();
        let mut rest = &hashes[..];
        while !rest.is_empty() {
            if wrong.look_is_due() {
                wrong.look(filter.rate_now());
            }
            let most = match adding {
                Adding::AtOnce => wrong.until_look() as usize,
                Adding::Afterwards => 5000,
            };
            let (hashes, more) = rest.split_at(most.min(rest.len()));
            rest = more;
            let mut new = vec![false; hashes.len()];
            match adding {
                Adding::AtOnce => filter.insert_many(hashes, &mut new),
                Adding::Afterwards => {
                    filter.contains_many(hashes, &mut new);
                    new.iter_mut().for_each(|new| *new = !*new);
                    filter.insert_many(hashes, &mut vec![false; hashes.len()]);
                }
            }
            dropped += hashes.len() as u64 - count(&new);
            wrong.decided(&new);
        }
        wrong.look(filter.rate_now());
        (dropped as f64, wrong.expected())
    }

    #[test]
    fn what_is_said_is_what_was_lost() {
        for (capacity, rate, keys) in [
            (100_000, 0.01, 100_000),
            (100_000, 0.01, 300_000),
            (10_000, 0.001, 200_000),
            (1_000, 0.001, 1_000_000), // hopeless
            (50_000, 0.1, 60_000),
            (1_000, 1e-6, 20_000),
            (2_000, 0.001, 20_000), // in one batch, most of them wrongly
        ] {
            for adding in [Adding::AtOnce, Adding::Afterwards] {
                let (lost, said) = through(capacity, rate, keys, adding);
                let slack = 0.15 * lost + 5.0 * lost.sqrt() + 3.0;
                assert!(
                    (said - lost).abs() <= slack,
                    "{keys} keys, {capacity} at {rate}: lost {lost}, said {said}"
                );
            }
        }
    }

    #[test]
    fn duplicates_are_not_held_against_a_good_filter() {
        let mut wrong = Wrong::from(1e-6, Adding::AtOnce);
        wrong.decided(&[&[true; 10][..], &[false; 5000]].concat());
        assert!(wrong.look_is_due());
        wrong.look(1e-6);
        assert!(wrong.expected() < 1e-4);
        // A full filter allows no better estimate.
        let mut wrong = Wrong::from(1.0, Adding::AtOnce);
        wrong.decided(&[false; 5000]);
        wrong.look(1.0);
        assert_eq!(wrong.expected(), 5000.0);
    }
}
