//! A filter of fixed size from a file that judges records.

use super::wrong::{Adding, Wrong, count};
use super::{Judge, Memory, Over};
use crate::stream::{Halt, Report};
use anyhow::Result;
use tamis::{AnyFilter, Error, Hash, file::FileLock};

pub(super) struct Kept {
    filter: AnyFilter,
    /// Keys held: the filter's count or estimate at first, plus those added since.
    keys: u64,
    /// Whether we warned that it exceeds its capacity.
    is_over: bool,
    wrong: Wrong,
}

impl Kept {
    /// Warns if the filter already exceeds its rate.
    pub(super) fn new(filter: AnyFilter, over: &Over) -> Result<Self> {
        let keys = filter.keys().get();
        let rate = filter.rate_now();
        let mut kept = Self {
            wrong: Wrong::from(rate, Adding::AtOnce).holding(keys, filter.bytes()),
            keys,
            filter,
            is_over: false,
        };
        if keys > kept.filter.capacity() {
            over.say(keys, kept.filter.capacity(), rate)?;
            kept.is_over = true;
        }
        Ok(kept)
    }

    /// Adds each missing key once and marks it in `new`. Calls `over` before exceeding the capacity.
    pub(super) fn decide(
        &mut self,
        hashes: &[Hash],
        new: &mut [bool],
        over: &Over,
        name: impl Fn(Error) -> anyhow::Error,
    ) -> Result<(), Halt> {
        let mut at = 0;
        while at < hashes.len() {
            let room = if self.is_over {
                u64::MAX
            } else {
                self.filter.capacity().saturating_sub(self.keys)
            };
            if room == 0 {
                // Keys that it has are found without adding.
                let rest = &mut new[at..];
                self.filter.contains_many(&hashes[at..], rest);
                let had = rest.iter().take_while(|has| **has).count();
                rest[..had].fill(false);
                at += had;
                if at < hashes.len() {
                    let capacity = self.filter.capacity();
                    over.say(self.keys, capacity, self.filter.rate_now())
                        .map_err(Halt::Failed)?;
                    self.is_over = true;
                }
                continue;
            }
            if self.wrong.look_is_due() {
                self.wrong.look(self.filter.rate_now());
            }
            // Only as far as the known rate stays roughly right.
            let step = room.min(self.wrong.until_look());
            let to = hashes.len().min(at.saturating_add(step as usize));
            insert_once(&mut self.filter, &hashes[at..to], &mut new[at..to]).map_err(&name)?;
            self.keys += count(&new[at..to]);
            self.wrong.decided(&new[at..to]);
            at = to;
        }
        Ok(())
    }
}

impl Judge for Kept {
    /// Keys held, as far as known.
    fn added(&self) -> u64 {
        self.keys
    }

    fn save(&self, lock: &mut FileLock) -> Result<(), Error> {
        self.filter.update_under(lock)
    }

    fn memory(mut self, _: &Report) -> Memory {
        self.wrong.look(self.filter.rate_now());
        Memory::local(self.filter.bytes(), self.wrong.expected())
    }
}

/// Adds a key only once, even to filters that count: whether it was seen is a yes or no.
fn insert_once(filter: &mut AnyFilter, hashes: &[Hash], new: &mut [bool]) -> Result<(), Error> {
    match filter {
        AnyFilter::Counting(_) | AnyFilter::Cuckoo(_) => {
            for (hash, new) in hashes.iter().zip(new) {
                *new = !filter.contains(*hash);
                if *new {
                    filter.insert(*hash)?;
                }
            }
            Ok(())
        }
        _ => filter.insert_many(hashes, new),
    }
}
