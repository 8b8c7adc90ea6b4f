//! The form in which a key is sent to a filter in Redis: its hash, or the key itself if a module hashes on the server.

use crate::stream::{Halt, Keyed};
use crate::window::{MOST_WAITING, is_late, last_believed};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::hash::{Hash as StdHash, Hasher as StdHasher};
use tamis::{
    Hash, KeyRule, Moment,
    window::{Span, WindowOptions},
};
use tamis_records::batch::Token;
use tamis_redis::{Error, RedisFilter};

/// A token for filters in Redis.
pub(crate) trait Remote: Token + Clone + Ord + StdHash + Send + Sync {
    fn insert(filter: &mut RedisFilter, keys: &[Self], new: &mut [bool]) -> Result<(), Error>;

    fn contains(filter: &mut RedisFilter, keys: &[Self], found: &mut [bool]) -> Result<(), Error>;

    fn remove(filter: &mut RedisFilter, keys: &[Self], removed: &mut [bool]) -> Result<(), Error>;

    fn count(filter: &mut RedisFilter, keys: &[Self], counts: &mut [u64]) -> Result<(), Error>;

    /// When the keys were seen, as far as known; `None` if by the clock. A key without a time, or from the future, gets
    /// the latest time before it: that is `latest`, or for a window's first keys the first known time.
    fn times(
        _filter: &RedisFilter,
        _keys: &[Self],
        _latest: Option<Moment>,
    ) -> Option<Vec<Option<Moment>>> {
        None
    }

    /// The same key, seen at the given time.
    fn at(&self, _: Moment) -> Self {
        self.clone()
    }

    /// How many of the keys have a time in the future.
    fn ahead(_filter: &RedisFilter, _keys: &[Self]) -> u64 {
        0
    }

    /// How many of the keys are so old that the window may have forgotten them.
    fn late(_filter: &RedisFilter, _keys: &[Self]) -> u64 {
        0
    }

    /// Whether neither these keys nor the window has a known time, so that they must wait for one.
    fn must_wait(_filter: &RedisFilter, _keys: &[Self]) -> bool {
        false
    }

    /// The same key, seen now because no time ever came.
    fn now(&self) -> Self {
        self.clone()
    }
}

/// The time for claiming keys that came before the first readable time: earlier than all others, so that none is too
/// old. 0001-01-01.
const BEFORE_ALL: Moment = Moment::from_micros(-62_135_596_800_000_000);

/// A token that a window takes with a time.
pub(crate) trait Dated: Remote {
    fn insert_at(
        filter: &mut RedisFilter,
        keys: &[Self],
        at: &[Moment],
        new: &mut [bool],
    ) -> Result<(), Error>;

    fn contains_at(
        filter: &mut RedisFilter,
        keys: &[Self],
        at: &[Moment],
        found: &mut [bool],
    ) -> Result<(), Error>;
}

impl Dated for Hash {
    fn insert_at(
        filter: &mut RedisFilter,
        keys: &[Self],
        at: &[Moment],
        new: &mut [bool],
    ) -> Result<(), Error> {
        filter.insert_hashes_at(keys, at, new)
    }

    fn contains_at(
        filter: &mut RedisFilter,
        keys: &[Self],
        at: &[Moment],
        found: &mut [bool],
    ) -> Result<(), Error> {
        filter.contains_hashes_at(keys, at, found)
    }
}

impl Remote for Hash {
    fn insert(filter: &mut RedisFilter, keys: &[Self], new: &mut [bool]) -> Result<(), Error> {
        filter.insert_hashes(keys, new)
    }

    fn contains(filter: &mut RedisFilter, keys: &[Self], found: &mut [bool]) -> Result<(), Error> {
        filter.contains_hashes(keys, found)
    }

    fn remove(filter: &mut RedisFilter, keys: &[Self], removed: &mut [bool]) -> Result<(), Error> {
        filter.remove_hashes(keys, removed)
    }

    fn count(filter: &mut RedisFilter, keys: &[Self], counts: &mut [u64]) -> Result<(), Error> {
        filter.count_hashes(keys, counts)
    }
}

/// Makes keys for a window, seen at their records' times, or now.
pub(crate) struct Timely<'k, H> {
    pub(crate) keyed: &'k H,
    pub(crate) by_record: bool,
}

impl<H: Keyed<Token: Dated>> Keyed for Timely<'_, H> {
    type Token = Sighting<H::Token>;

    fn rule(&self) -> &KeyRule {
        self.keyed.rule()
    }

    fn token(&self, key: &[u8]) -> Self::Token {
        self.token_at(key, None)
    }

    fn token_at(&self, key: &[u8], at: Option<Moment>) -> Self::Token {
        let when = match (self.by_record, at) {
            (false, _) => When::Now,
            (true, Some(at)) => When::At(at),
            (true, None) => When::Unknown,
        };
        let key = self.keyed.token(key);
        Sighting { key, when }
    }
}

/// A key of a window and when it was seen. Equality only compares keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sighting<K> {
    key: K,
    when: When,
}

#[derive(Clone, Copy, Debug)]
enum When {
    /// By the clock.
    Now,
    At(Moment),
    /// The record has no time: use the previous one.
    Unknown,
}

impl<K: PartialEq> PartialEq for Sighting<K> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<K: Eq> Eq for Sighting<K> {}

impl<K: Ord> PartialOrd for Sighting<K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: Ord> Ord for Sighting<K> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

impl<K: StdHash> StdHash for Sighting<K> {
    fn hash<S: StdHasher>(&self, state: &mut S) {
        self.key.hash(state);
    }
}

impl<K: Token> Token for Sighting<K> {
    fn shard(&self, shards: usize) -> usize {
        self.key.shard(shards)
    }
}

impl<K: Dated> Sighting<K> {
    fn said(&self) -> Option<Moment> {
        match self.when {
            When::Now => Some(Moment::now()),
            When::At(at) => Some(at),
            When::Unknown => None,
        }
    }

    fn is_by_clock(keys: &[Self]) -> bool {
        keys.iter().all(|key| matches!(key.when, When::Now))
    }

    /// The first plausible time.
    fn first(filter: &RedisFilter, keys: &[Self]) -> Option<Moment> {
        let last = last_to_believe(filter);
        let mut times = keys.iter().filter_map(Self::said);
        times.find(|at| *at <= last)
    }

    fn without_times(keys: &[Self]) -> Vec<K> {
        keys.iter().map(|key| key.key.clone()).collect()
    }
}

impl<K: Dated> Remote for Sighting<K> {
    fn insert(filter: &mut RedisFilter, keys: &[Self], new: &mut [bool]) -> Result<(), Error> {
        let times = Self::times(filter, keys, latest_of(filter));
        let keys = Self::without_times(keys);
        let Some(times) = times else {
            return K::insert(filter, &keys, new);
        };
        let times = times.into_iter().map(|at| at.unwrap_or(BEFORE_ALL));
        let times: Vec<Moment> = times.collect();
        K::insert_at(filter, &keys, &times, new)
    }

    fn contains(filter: &mut RedisFilter, keys: &[Self], found: &mut [bool]) -> Result<(), Error> {
        let alone = Self::without_times(keys);
        if Self::is_by_clock(keys) {
            return K::contains(filter, &alone, found);
        }
        let last = last_to_believe(filter);
        let latest = latest_of(filter).unwrap_or(BEFORE_ALL);
        let moment = |key: &Self| key.said().filter(|at| *at <= last).unwrap_or(latest);
        let times: Vec<Moment> = keys.iter().map(moment).collect();
        K::contains_at(filter, &alone, &times, found)?;
        let (Some(window), Some(latest)) = (filter.window(), filter.latest()) else {
            return Ok(());
        };
        // A record older than the window is always new.
        for (found, at) in found.iter_mut().zip(times) {
            *found &= !is_forgotten(&window, at, latest);
        }
        Ok(())
    }

    fn remove(filter: &mut RedisFilter, keys: &[Self], removed: &mut [bool]) -> Result<(), Error> {
        K::remove(filter, &Self::without_times(keys), removed)
    }

    fn count(filter: &mut RedisFilter, keys: &[Self], counts: &mut [u64]) -> Result<(), Error> {
        K::count(filter, &Self::without_times(keys), counts)
    }

    fn times(
        filter: &RedisFilter,
        keys: &[Self],
        latest: Option<Moment>,
    ) -> Option<Vec<Option<Moment>>> {
        if Self::is_by_clock(keys) {
            return None;
        }
        let last = last_to_believe(filter);
        let mut latest = latest.or_else(|| Self::first(filter, keys));
        let moment = |key: &Self| {
            let said = key.said().filter(|at| *at <= last);
            latest = latest.max(said);
            said.or(latest)
        };
        Some(keys.iter().map(moment).collect())
    }

    fn at(&self, at: Moment) -> Self {
        Self {
            key: self.key.clone(),
            when: When::At(at),
        }
    }

    fn ahead(filter: &RedisFilter, keys: &[Self]) -> u64 {
        let last = last_to_believe(filter);
        let is_ahead = |key: &&Self| key.said().is_some_and(|at| at > last);
        keys.iter().filter(is_ahead).count() as u64
    }

    fn late(filter: &RedisFilter, keys: &[Self]) -> u64 {
        let Some((window, latest)) = filter.window().zip(filter.latest()) else {
            return 0;
        };
        let is_late = |key: &&Self| key.said().is_some_and(|at| is_late(&window, latest, at));
        keys.iter().filter(is_late).count() as u64
    }

    fn must_wait(filter: &RedisFilter, keys: &[Self]) -> bool {
        latest_of(filter).is_none() && Self::first(filter, keys).is_none()
    }

    fn now(&self) -> Self {
        Self {
            key: self.key.clone(),
            when: When::Now,
        }
    }
}

/// The latest time of a window's keys; `None` if all its keys wait for a time.
pub(crate) fn latest_of(filter: &RedisFilter) -> Option<Moment> {
    filter.latest().filter(|latest| *latest > BEFORE_ALL)
}

/// The latest time that is accepted for a record.
fn last_to_believe(filter: &RedisFilter) -> Moment {
    filter
        .window()
        .map_or(Moment::MAX, |window| last_believed(&window))
}

/// Whether a window has forgotten `at` by the time `by`.
pub(crate) fn is_forgotten(window: &WindowOptions, at: Moment, by: Moment) -> bool {
    generation(window, by) - generation(window, at) > window.generation_count().into()
}

/// The generation number of a time.
fn generation(window: &WindowOptions, at: Moment) -> i64 {
    let step = match window.band() {
        Span::Time(step) => i64::try_from(step.as_micros()).unwrap_or(i64::MAX),
        Span::Keys(_) => i64::MAX,
    };
    at.micros().div_euclid(step.max(1))
}

/// A raw key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Bytes(Box<[u8]>);

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Token for Bytes {
    /// There is one connection.
    fn shard(&self, _: usize) -> usize {
        0
    }
}

impl Remote for Bytes {
    fn insert(filter: &mut RedisFilter, keys: &[Self], new: &mut [bool]) -> Result<(), Error> {
        filter.insert_many(keys, new)
    }

    fn contains(filter: &mut RedisFilter, keys: &[Self], found: &mut [bool]) -> Result<(), Error> {
        filter.contains_many(keys, found)
    }

    fn remove(filter: &mut RedisFilter, keys: &[Self], removed: &mut [bool]) -> Result<(), Error> {
        filter.remove_many(keys, removed)
    }

    fn count(filter: &mut RedisFilter, keys: &[Self], counts: &mut [u64]) -> Result<(), Error> {
        filter.count_many(keys, counts)
    }
}

impl Dated for Bytes {
    fn insert_at(
        filter: &mut RedisFilter,
        keys: &[Self],
        at: &[Moment],
        new: &mut [bool],
    ) -> Result<(), Error> {
        filter.insert_many_at(keys, at, new)
    }

    fn contains_at(
        filter: &mut RedisFilter,
        keys: &[Self],
        at: &[Moment],
        found: &mut [bool],
    ) -> Result<(), Error> {
        filter.contains_many_at(keys, at, found)
    }
}

/// For modules, which don't record a rule for making keys.
pub(crate) struct AsTheyAre;

impl Keyed for AsTheyAre {
    type Token = Bytes;

    fn rule(&self) -> &KeyRule {
        &KeyRule::EXACT
    }

    fn token(&self, key: &[u8]) -> Bytes {
        Bytes(key.into())
    }
}

/// Runs `$run` with the filter's hasher, or with raw keys if the server hashes them.
macro_rules! with_keys {
    ($filter:expr, $keyed:ident => $run:expr) => {
        match $filter.hasher().copied() {
            Some(ref $keyed) => $run,
            None => {
                let $keyed = &$crate::remote::AsTheyAre;
                $run
            }
        }
    };
}
pub(crate) use with_keys;

/// When the keys of a run were seen, and which were claimed before the first readable time. Those are added again once
/// it is known, because it decides when the window begins.
pub(crate) struct Dates<T> {
    waiting: Vec<T>,
    /// The latest time so far; the filter only knows its generation.
    newest: Option<Moment>,
    /// How many keys had a time in the future.
    pub(crate) ahead: u64,
}

impl<T> Default for Dates<T> {
    fn default() -> Self {
        Self {
            waiting: Vec::new(),
            newest: None,
            ahead: 0,
        }
    }
}

impl<T: Remote> Dates<T> {
    /// The keys with their times, and the times, as far as known. `None` by the clock.
    pub(crate) fn settle<'k>(
        &mut self,
        filter: &RedisFilter,
        keys: &'k [T],
    ) -> (Cow<'k, [T]>, Option<Vec<Option<Moment>>>) {
        self.ahead += T::ahead(filter, keys);
        let latest = self.newest.max(latest_of(filter));
        let Some(times) = T::times(filter, keys, latest) else {
            return (keys.into(), None);
        };
        self.newest = times.iter().copied().fold(latest, Option::max);
        let dated = |(key, at): (&T, &Option<Moment>)| at.map_or(key.clone(), |at| key.at(at));
        let keys: Vec<T> = keys.iter().zip(&times).map(dated).collect();
        (keys.into(), Some(times))
    }

    /// [`claim`] for keys that may have to wait for a time.
    pub(crate) fn claim(
        &mut self,
        filter: &mut RedisFilter,
        keys: &[T],
        new: &mut [bool],
    ) -> Result<(), Halt> {
        let (keys, _) = self.settle(filter, keys);
        if T::must_wait(filter, &keys) {
            let claimed = claim(filter, &keys, new);
            let waiting = keys.iter().zip(&*new).filter(|(_, new)| **new);
            self.waiting.extend(waiting.map(|(key, _)| key.clone()));
            if claimed.is_ok() && self.waiting.len() > MOST_WAITING {
                self.finish(filter)
                    .map_err(|e| Halt::FailedAfter(e.into()))?;
            }
            return claimed;
        }
        if self.waiting.is_empty() {
            return claim(filter, &keys, new);
        }
        let mut all = std::mem::take(&mut self.waiting);
        let waited = all.len();
        all.extend_from_slice(&keys);
        let mut all_new = vec![false; all.len()];
        let claimed = claim(filter, &all, &mut all_new);
        new.copy_from_slice(&all_new[waited..]);
        claimed
    }

    /// Adds the keys whose records had no readable time, as of now.
    pub(crate) fn finish(&mut self, filter: &mut RedisFilter) -> Result<(), Error> {
        let mut keys = std::mem::take(&mut self.waiting);
        if T::must_wait(filter, &keys) {
            keys = keys.iter().map(T::now).collect();
        }
        T::insert(filter, &keys, &mut vec![false; keys.len()])
    }
}

/// Adds keys to a filter in Redis and marks those that were new. No key may be lost because another worker would now
/// find it. So if the server fails, its answers so far still hold, and keys that it didn't answer for, which may or may
/// not be in the filter, count as new.
pub(crate) fn claim<T: Remote>(
    filter: &mut RedisFilter,
    keys: &[T],
    new: &mut [bool],
) -> Result<(), Halt> {
    let result = T::insert(filter, keys, new);
    if let Err(Error::Unconfirmed { keys, .. }) = &result {
        keys.iter().for_each(|key| new[*key] = true);
    }
    result.map_err(|error| Halt::FailedAfter(error.into()))
}
