//! A filter in Redis, shared with other workers, as the judge of records.

use super::wrong::Wrong;
use super::{Memory, Over};
use crate::engine::pipeline::Halt;
use crate::stream::claim;
use anyhow::Result;
use std::collections::HashSet;
use tamis::{Hash, Kind};
use tamis_redis::{Error, RedisFilter};

pub(super) struct Shared {
    filter: RedisFilter,
    wrong: Wrong,
    is_over: bool,
    /// Keys that were asked for, were new, and are not added yet.
    open: Open,
    /// Of those added since, how many another worker had added meanwhile.
    raced: u64,
}

#[derive(Default)]
struct Open {
    keys: HashSet<Hash>,
    in_order: Vec<Hash>,
}

/// More than the noise of an estimate.
const OVER: f64 = 1.1;

impl Shared {
    /// Says so if the filter is over its rate already.
    pub(super) fn new(mut filter: RedisFilter, over: &Over) -> Result<Self> {
        let rate = filter.rate_now()?;
        let mut shared = Self {
            filter,
            wrong: Wrong::from(rate),
            is_over: false,
            open: Open::default(),
            raced: 0,
        };
        shared.warn_if_over(rate, over)?;
        Ok(shared)
    }

    fn warn_if_over(&mut self, rate: f64, over: &Over) -> Result<()> {
        if !self.is_over && rate > self.filter.rate() * OVER {
            self.is_over = true;
            let keys = self.filter.keys()?.get();
            over.say(keys, self.filter.capacity(), rate)?;
        }
        Ok(())
    }

    /// Adds the keys and tells those that were new, to this worker and no other.
    pub(super) fn claim(
        &mut self,
        hashes: &[Hash],
        new: &mut [bool],
        over: &Over,
    ) -> Result<(), Halt> {
        if self.filter.kind() == Kind::Counting {
            return self.claim_once(hashes, new, over);
        }
        claim(&mut self.filter, hashes, new)?;
        self.look(new, over)
    }

    /// The same for a filter that counts: keys that it has, or that came
    /// before, are not added again.
    fn claim_once(&mut self, hashes: &[Hash], new: &mut [bool], over: &Over) -> Result<(), Halt> {
        self.filter
            .contains_hashes(hashes, new)
            .map_err(|error| Halt::Failed(error.into()))?;
        let mut first = HashSet::new();
        let places: Vec<usize> = (0..hashes.len())
            .filter(|at| !new[*at] && first.insert(hashes[*at]))
            .collect();
        let absent: Vec<Hash> = places.iter().map(|at| hashes[*at]).collect();
        let mut was_new = vec![false; absent.len()];
        let claimed = claim(&mut self.filter, &absent, &mut was_new);
        new.fill(false);
        for (at, was_new) in places.into_iter().zip(was_new) {
            new[at] = was_new;
        }
        claimed?;
        self.look(new, over)
    }

    /// Tells the keys that are not in the filter and have not been asked for.
    /// They are to be added when their records are printed.
    pub(super) fn ask(
        &mut self,
        hashes: &[Hash],
        new: &mut [bool],
        over: &Over,
    ) -> Result<(), Halt> {
        let mut found = vec![false; hashes.len()];
        self.filter
            .contains_hashes(hashes, &mut found)
            .map_err(|error| Halt::Failed(error.into()))?;
        for ((hash, found), new) in hashes.iter().zip(found).zip(&mut *new) {
            *new = !found && self.open.keys.insert(*hash);
            if *new {
                self.open.in_order.push(*hash);
            }
        }
        self.look(new, over)
    }

    /// Adds the keys whose records have been printed.
    pub(super) fn add_printed(&mut self) -> Result<(), Error> {
        if self.open.in_order.is_empty() {
            return Ok(());
        }
        let mut new = vec![false; self.open.in_order.len()];
        self.filter.insert_hashes(&self.open.in_order, &mut new)?;
        self.raced += new.iter().filter(|new| !**new).count() as u64;
        self.open = Open::default();
        Ok(())
    }

    fn look(&mut self, new: &[bool], over: &Over) -> Result<(), Halt> {
        if self.wrong.decided(new) {
            // The answers hold, whatever is seen now.
            let rate = self.filter.rate_now();
            let rate = rate.map_err(|error| Halt::FailedAfter(error.into()))?;
            self.wrong.look(rate);
            self.warn_if_over(rate, over).map_err(Halt::FailedAfter)?;
        }
        Ok(())
    }

    /// How many printed records another worker printed as well.
    pub(super) const fn raced(&self) -> u64 {
        self.raced
    }

    /// What this run took and did.
    pub(super) fn memory(mut self) -> Result<Memory, Error> {
        self.wrong.look(self.filter.rate_now()?);
        Ok(Memory {
            bytes: self.filter.bytes(),
            wrong: self.wrong.expected(),
        })
    }
}
