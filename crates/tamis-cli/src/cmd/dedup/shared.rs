//! A filter in Redis, shared with other workers, that judges records.

use super::wrong::{Adding, Wrong};
use super::{Claim, Memory, Over};
use crate::remote::{Dates, Remote, claim, is_forgotten, latest_of};
use crate::stream::Halt;
use crate::window::{MOST_WAITING, Odd};
use anyhow::Result;
use std::collections::{HashMap, HashSet};
use tamis::{
    Kind, Moment,
    window::{Renewal, WindowOptions},
};
use tamis_redis::{Error, RedisFilter};

pub(super) struct Shared<T> {
    filter: RedisFilter,
    window: Option<WindowOptions>,
    wrong: Wrong,
    is_over: bool,
    /// Keys that were queried and new, but aren't added yet.
    open: Open<T>,
    dates: Dates<T>,
    /// The latest time in a window, including queried keys.
    newest: Option<Moment>,
    /// How many of these another worker had added before we did.
    raced: u64,
}

struct Open<T> {
    /// When each key was last seen; none if by the clock, or before the first readable time.
    keys: HashMap<T, Option<Moment>>,
    in_order: Vec<T>,
    /// Which of them are printed. The others only renew their key.
    printed: Vec<bool>,
    /// Whether any key came before the first readable time.
    waits: bool,
}

impl<T> Default for Open<T> {
    fn default() -> Self {
        Self {
            keys: HashMap::new(),
            in_order: Vec::new(),
            printed: Vec::new(),
            waits: false,
        }
    }
}

impl<T: Remote> Open<T> {
    /// Gives the keys that waited for a time this one.
    fn begin(&mut self, first: Moment) {
        if self.waits {
            self.waits = false;
            for key in &mut self.in_order {
                *key = key.at(first);
            }
            self.keys.values_mut().for_each(|at| *at = Some(first));
        }
    }
}

/// A margin for the noise of an estimate.
const OVER: f64 = 1.1;

impl<T: Remote> Shared<T> {
    /// Warns if the filter already exceeds its rate.
    pub(super) fn new(mut filter: RedisFilter, claim: Claim, over: &Over) -> Result<Self> {
        let rate = filter.rate_now()?;
        let adding = match claim {
            Claim::Before => Adding::AtOnce,
            Claim::After => Adding::Afterwards,
        };
        let mut shared = Self {
            window: filter.window(),
            newest: latest_of(&filter),
            filter,
            wrong: Wrong::from(rate, adding),
            is_over: false,
            open: Open::default(),
            dates: Dates::default(),
            raced: 0,
        };
        shared.warn_if_over(rate, over)?;
        Ok(shared)
    }

    fn warn_if_over(&mut self, rate: f64, over: &Over) -> Result<()> {
        if !self.is_over && rate > self.filter.rate() * OVER {
            self.is_over = true;
            let (keys, capacity) = (self.filter.keys()?.get(), self.filter.capacity());
            match self.window {
                Some(_) => over.say_of_window(capacity, rate)?,
                None => over.say(keys, capacity, rate)?,
            }
        }
        Ok(())
    }

    /// Whether every sighting renews a key.
    fn renews(&self) -> bool {
        self.window
            .is_some_and(|window| window.renewed() == Renewal::Quiet)
    }

    /// Adds the keys and marks the new ones. Among all workers, each key is new to only one.
    pub(super) fn claim(&mut self, keys: &[T], new: &mut [bool], over: &Over) -> Result<(), Halt> {
        if matches!(self.filter.kind(), Kind::Counting | Kind::Cuckoo) {
            return self.claim_once(keys, new, over);
        }
        let mut at = 0;
        while at < keys.len() {
            // Keys already claimed are printed, whatever happens now.
            self.look(over).map_err(|halt| match halt {
                Halt::Failed(error) if at > 0 => Halt::FailedAfter(error),
                halt => halt,
            })?;
            let to = keys.len().min(at + self.wrong.until_look() as usize);
            let claimed = self
                .dates
                .claim(&mut self.filter, &keys[at..to], &mut new[at..to]);
            self.wrong.decided(&new[at..to]);
            claimed?;
            at = to;
        }
        Ok(())
    }

    /// The same for a filter that counts: keys that it has, or that came earlier in the batch, aren't added again.
    fn claim_once(&mut self, keys: &[T], new: &mut [bool], over: &Over) -> Result<(), Halt> {
        self.look(over)?;
        T::contains(&mut self.filter, keys, new).map_err(|error| Halt::Failed(error.into()))?;
        let mut first = HashSet::new();
        let places: Vec<usize> = (0..keys.len())
            .filter(|at| !new[*at] && first.insert(&keys[*at]))
            .collect();
        let absent: Vec<T> = places.iter().map(|at| keys[*at].clone()).collect();
        let mut was_new = vec![false; absent.len()];
        let claimed = claim(&mut self.filter, &absent, &mut was_new);
        new.fill(false);
        for (at, was_new) in places.into_iter().zip(was_new) {
            new[at] = was_new;
        }
        self.wrong.decided(new);
        claimed
    }

    /// Marks keys that the filter lacks and that weren't queried before. They are added once their records are printed.
    pub(super) fn ask(&mut self, keys: &[T], new: &mut [bool], over: &Over) -> Result<(), Halt> {
        self.look(over)?;
        let (keys, times) = self.dates.settle(&self.filter, keys);
        let at = |place: usize| times.as_ref().and_then(|times| times[place]);
        if let Some(first) = (0..keys.len()).find_map(at) {
            self.open.begin(first);
        }
        let mut found = vec![false; keys.len()];
        T::contains(&mut self.filter, &keys, &mut found)
            .map_err(|error| Halt::Failed(error.into()))?;
        for (place, (key, found)) in keys.iter().zip(found).enumerate() {
            let at = at(place);
            self.open.waits |= at.is_none();
            self.newest = self.newest.max(at);
            let is_forgotten = |at: Option<Moment>, by: Option<Moment>| {
                let moments = self.window.zip(at).zip(by);
                moments.is_some_and(|((window, at), by)| is_forgotten(&window, at, by))
            };
            // Older than the window: always new, and never remembered.
            let is_too_old = is_forgotten(at, self.newest);
            let open = self.open.keys.get(key).copied();
            let is_open = open.is_some_and(|before| !is_forgotten(before, at));
            new[place] = is_too_old || !found && !is_open;
            if new[place] || self.renews() {
                if !is_too_old {
                    self.open.keys.insert(key.clone(), at.max(open.flatten()));
                }
                self.open.in_order.push(key.clone());
                self.open.printed.push(new[place]);
            }
        }
        self.wrong.decided(new);
        Ok(())
    }

    /// Adds the keys whose records have been printed. Those before the first readable time wait for it.
    pub(super) fn add_printed(&mut self) -> Result<(), Error> {
        let open = &self.open.in_order;
        if open.len() <= MOST_WAITING && T::must_wait(&self.filter, open) {
            return Ok(());
        }
        self.add_open()
    }

    /// Adds the keys still waiting for a time, as of now.
    pub(super) fn finish(&mut self) -> Result<(), Error> {
        self.dates.finish(&mut self.filter)?;
        self.add_open()
    }

    fn add_open(&mut self) -> Result<(), Error> {
        if self.open.in_order.is_empty() {
            return Ok(());
        }
        if T::must_wait(&self.filter, &self.open.in_order) {
            let now = self.open.in_order.iter().map(T::now).collect();
            self.open.in_order = now;
        }
        let mut new = vec![false; self.open.in_order.len()];
        T::insert(&mut self.filter, &self.open.in_order, &mut new)?;
        let printed = new.iter().zip(&self.open.printed);
        self.raced += printed.filter(|(new, printed)| !**new && **printed).count() as u64;
        self.open = Open::default();
        Ok(())
    }

    /// Checks the filter's rate now and then. Nothing in the batch is decided yet.
    fn look(&mut self, over: &Over) -> Result<(), Halt> {
        if self.wrong.look_is_due() {
            let rate = self.filter.rate_now().map_err(anyhow::Error::from)?;
            self.wrong.look(rate);
            self.warn_if_over(rate, over)?;
        }
        Ok(())
    }

    /// How many printed records another worker also printed.
    pub(super) const fn raced(&self) -> u64 {
        self.raced
    }

    /// What this run used and did.
    pub(super) fn memory(mut self) -> Result<Memory, Error> {
        self.wrong.look(self.filter.rate_now()?);
        let stats = self.filter.stats();
        Ok(Memory {
            bytes: self.filter.bytes(),
            wrong: self.wrong.expected(),
            once: None,
            redis: Some(stats),
            times: self.window.map(|_| Odd {
                too_old: stats.too_old_keys,
                ahead: self.dates.ahead,
                ..Odd::default()
            }),
        })
    }
}
