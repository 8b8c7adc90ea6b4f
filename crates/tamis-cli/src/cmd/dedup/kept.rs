//! A filter from a file that can't grow as the judge of records.

use super::wrong::{Adding, Wrong, count};
use super::{Judge, Memory, Over};
use crate::stream::{Halt, Report};
use anyhow::Result;
use tamis::{AnyFilter, Error, Hash, file::FileLock};

pub(super) struct Kept {
    filter: AnyFilter,
    /// Keys held, by its own count or estimate at first and ours since.
    keys: u64,
    /// Whether it was said that it holds more than it was made for.
    is_over: bool,
    wrong: Wrong,
}

impl Kept {
    /// Says so if the filter is over its rate already.
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
            let room = if self.is_over {
                u64::MAX
            } else {
                self.filter.capacity().saturating_sub(self.keys)
            };
            if room == 0 {
                // What it has is told without adding.
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
            // No further than the rate is known to stay about what it is.
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
    /// Keys held, as far as they are known.
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

/// Filters that count get a key only once, too: to have been seen is no number.
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
