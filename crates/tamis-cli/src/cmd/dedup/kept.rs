//! A filter from a file as the judge of records.

use super::wrong::{Adding, Wrong, count};
use super::{Judge, Memory, Over};
use crate::stream::{Halt, Report};
use anyhow::Result;
use tamis::{AnyFilter, Error, Expansion, FileLock, Growing, Hash};

pub(super) struct Kept {
    filter: AnyFilter,
    /// Keys held, by its own count or estimate at first and ours since.
    keys: u64,
    /// Expected to be wrongly dropped by what was in it before this run.
    before: f64,
    state: Fill,
}

enum Fill {
    /// It keeps its rate.
    Within,
    /// It holds more than it was made for. `wrong` were dropped until then.
    Over { wrong: f64, since: Wrong },
}

impl Kept {
    /// Says so if the filter is over its rate already.
    pub(super) fn new(filter: AnyFilter, over: &Over) -> Result<Self> {
        let keys = filter.keys().get();
        let mut kept = Self {
            before: filter.expected_wrong(),
            keys,
            filter,
            state: Fill::Within,
        };
        if !kept.grows() && keys > kept.filter.capacity() {
            over.say(keys, kept.filter.capacity(), kept.filter.rate_now())?;
            kept.go_over();
        }
        Ok(kept)
    }

    const fn grows(&self) -> bool {
        matches!(self.filter, AnyFilter::Growing(_))
    }

    /// Adds keys that it does not have, each once, and tells which. Before the
    /// first that is one too many, `over` is told.
    pub(super) fn decide(
        &mut self,
        hashes: &[Hash],
        new: &mut [bool],
        over: &Over,
        name: impl Fn(Error) -> anyhow::Error,
    ) -> Result<(), Halt> {
        let mut at = 0;
        while at < hashes.len() {
            let room = match self.state {
                Fill::Within if !self.grows() => self.filter.capacity().saturating_sub(self.keys),
                _ => u64::MAX,
            };
            if room == 0 {
                // What it has is told without adding.
                let rest = &mut new[at..];
                self.filter.contains_hashes(&hashes[at..], rest);
                let had = rest.iter().take_while(|has| **has).count();
                rest[..had].fill(false);
                at += had;
                if at < hashes.len() {
                    let capacity = self.filter.capacity();
                    over.say(self.keys, capacity, self.filter.rate_now())
                        .map_err(Halt::Failed)?;
                    self.go_over();
                }
                continue;
            }
            let to = hashes.len().min(at.saturating_add(room as usize));
            if let Fill::Over { since, .. } = &mut self.state
                && since.look_is_due()
            {
                since.look(self.filter.rate_now());
            }
            if let AnyFilter::Growing(filter) = &mut self.filter {
                grow_fast_while_small(filter);
            }
            insert_once(&mut self.filter, &hashes[at..to], &mut new[at..to]).map_err(&name)?;
            self.keys += count(&new[at..to]);
            if let Fill::Over { since, .. } = &mut self.state {
                since.decided(&new[at..to]);
            }
            at = to;
        }
        Ok(())
    }

    fn go_over(&mut self) {
        self.state = Fill::Over {
            wrong: self.filter.expected_wrong() - self.before,
            since: Wrong::from(self.filter.rate_now(), Adding::AtOnce),
        };
    }
}

impl Judge for Kept {
    /// Keys held, as far as they are known.
    fn added(&self) -> u64 {
        self.keys
    }

    fn save(&self, lock: &mut FileLock) -> Result<(), Error> {
        self.filter.update_under(lock)
    }

    fn memory(mut self, _: &Report) -> Memory {
        let wrong = match &mut self.state {
            Fill::Within => self.filter.expected_wrong() - self.before,
            Fill::Over { wrong, since } => {
                since.look(self.filter.rate_now());
                *wrong + since.expected()
            }
        };
        Memory::local(self.filter.bytes(), wrong.max(0.0))
    }
}

/// A filter of few keys grows in large steps, since every layer costs a look
/// and its size does not matter yet.
fn grow_fast_while_small(filter: &mut Growing) {
    const SMALL: u64 = 1 << 20;
    const STEP: u64 = 16;
    let times = (SMALL / filter.capacity().max(1)).min(STEP);
    filter.set_expansion(match times {
        0..=2 => Expansion::Auto,
        _ => Expansion::Times(times as u32),
    });
}

/// Filters that count get a key only once, too: to have been seen is no number.
fn insert_once(filter: &mut AnyFilter, hashes: &[Hash], new: &mut [bool]) -> Result<(), Error> {
    match filter {
        AnyFilter::Counting(_) | AnyFilter::Cuckoo(_) => {
            for (hash, new) in hashes.iter().zip(new) {
                *new = !filter.contains_hash(*hash);
                if *new {
                    filter.insert_hash(*hash)?;
                }
            }
            Ok(())
        }
        _ => filter.insert_hashes(hashes, new),
    }
}
