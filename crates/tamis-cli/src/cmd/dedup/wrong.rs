//! How many records were dropped wrongly, as is to be expected of a filter that
//! is as full as it is.

/// Between two looks at a filter some records came through as new, each of
/// them with the probability `1 - rate`; so about `new / (1 - rate)` had to
/// come. Of the others none was new, so that many were dropped wrongly, and
/// never more than were dropped at all.
pub(super) struct Wrong {
    adding: Adding,
    batches: u64,
    records: u64,
    new: u64,
    rate: f64,
    expected: f64,
    /// The next look is due at this many records in all.
    all: u64,
    next: u64,
}

/// When what is new in a batch becomes part of the filter.
#[derive(Clone, Copy)]
pub(super) enum Adding {
    /// One by one, so that the next meets a filter with it.
    AtOnce,
    /// When all of the batch has been decided.
    Afterwards,
}

/// Looks get rarer, so that their number stays small; but the rate can't change
/// much in between, however it grows.
const FIRST_LOOK: u64 = 1000;
const LOOKS: f64 = 1.2;

impl Wrong {
    /// From here on, with a filter that has this rate.
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
        }
    }

    /// A batch was decided.
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

    /// The filter's rate is this now.
    pub(super) fn look(&mut self, rate: f64) {
        // Batches met the rates from the last one to this, or if they were added
        // afterwards, those before the last step.
        let batches = self.batches.max(1) as f64;
        let share = match self.adding {
            Adding::AtOnce => 0.5,
            Adding::Afterwards => 0.5 * (batches - 1.0) / batches,
        };
        let mean = self.rate + (rate - self.rate) * share;
        let dropped = (self.records - self.new) as f64;
        // One more than came: of a filter that lets nothing through, all that
        // was dropped may have been new.
        let wrong = (self.new + 1) as f64 * mean / (1.0 - mean);
        self.expected += if wrong < dropped { wrong } else { dropped };
        (self.batches, self.records, self.new, self.rate) = (0, 0, 0, rate);
        self.next = (self.all as f64 * LOOKS) as u64 + FIRST_LOOK;
    }

    pub(super) const fn expected(&self) -> f64 {
        self.expected
    }
}

pub(super) fn count(new: &[bool]) -> u64 {
    new.iter().map(|new| u64::from(*new)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis::{Blocked, Hasher};

    /// Distinct keys through a filter made for `capacity` of them: how many
    /// were dropped, and how many are said to be.
    fn through(capacity: u64, rate: f64, keys: u64, adding: Adding) -> (f64, f64) {
        let mut filter = Blocked::new(capacity, rate).unwrap();
        let mut wrong = Wrong::from(0.0, adding);
        let mut dropped = 0;
        let hasher = Hasher::default();
        let hashes: Vec<_> = (0..keys).map(|i| hasher.hash(&i.to_le_bytes())).collect();
        for hashes in hashes.chunks(5000) {
            if wrong.look_is_due() {
                wrong.look(filter.rate_now());
            }
            let mut new = vec![false; hashes.len()];
            match adding {
                Adding::AtOnce => filter.insert_hashes(hashes, &mut new),
                Adding::Afterwards => {
                    filter.contains_hashes(hashes, &mut new);
                    new.iter_mut().for_each(|new| *new = !*new);
                    filter.insert_hashes(hashes, &mut vec![false; hashes.len()]);
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
        // Of a full one nothing better can be said.
        let mut wrong = Wrong::from(1.0, Adding::AtOnce);
        wrong.decided(&[false; 5000]);
        wrong.look(1.0);
        assert_eq!(wrong.expected(), 5000.0);
    }
}
