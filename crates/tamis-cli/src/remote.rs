//! What stands for a key on its way to a filter in Redis: its hash, or where a
//! module of the server hashes, the key itself.

use crate::stream::{Halt, Keyed};
use crate::window::last_believed;
use std::cmp::Ordering;
use std::hash::{Hash as StdHash, Hasher as StdHasher};
use tamis::{Hash, KeyRule, Moment, Span, WindowOptions};
use tamis_records::batch::Token;
use tamis_redis::{Error, RedisFilter};

/// A token that a filter in Redis takes.
pub(crate) trait Remote: Token + Clone + Ord + StdHash + Send + Sync {
    fn insert(filter: &mut RedisFilter, keys: &[Self], new: &mut [bool]) -> Result<(), Error>;

    fn contains(filter: &mut RedisFilter, keys: &[Self], found: &mut [bool]) -> Result<(), Error>;

    fn remove(filter: &mut RedisFilter, keys: &[Self], removed: &mut [bool]) -> Result<(), Error>;

    fn count(filter: &mut RedisFilter, keys: &[Self], counts: &mut [u64]) -> Result<(), Error>;

    /// When the keys were seen, as far as that is believed; `None` if by the clock.
    fn times(_filter: &RedisFilter, _keys: &[Self]) -> Option<Vec<Moment>> {
        None
    }
}

/// One that a window takes with a time.
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

/// What makes keys of a window, seen when their records say, or now.
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

/// A key of a window, and when it was seen. Two are equal if the keys are.
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
    /// The record does not say: as the one before.
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
    fn at(&self) -> Option<Moment> {
        match self.when {
            When::At(at) => Some(at),
            _ => None,
        }
    }

    /// The keys and when they were seen; no times if by the clock. `ahead` is given a time in the future, and the latest time
    /// before, which a record without one has.
    fn apart(
        filter: &RedisFilter,
        keys: &[Self],
        ahead: impl Fn(Moment, Moment) -> Moment,
    ) -> (Vec<K>, Option<Vec<Moment>>) {
        let alone = Self::without_times(keys);
        if keys.iter().all(|key| matches!(key.when, When::Now)) {
            return (alone, None);
        }
        let last = filter.window().map(|window| last_believed(&window));
        let believe = |at: Moment| last.is_none_or(|last| at <= last);
        // A window without keys takes its first time from the records.
        let first = keys.iter().filter_map(Self::at).find(|at| believe(*at));
        let latest = filter.latest().max(first);
        let mut latest = latest.unwrap_or_else(Moment::now);
        let moment = |key: &Self| match key.at() {
            Some(at) if believe(at) => {
                latest = latest.max(at);
                at
            }
            Some(at) => ahead(at, latest),
            None => latest,
        };
        (alone, Some(keys.iter().map(moment).collect()))
    }

    fn without_times(keys: &[Self]) -> Vec<K> {
        keys.iter().map(|key| key.key.clone()).collect()
    }
}

impl<K: Dated> Remote for Sighting<K> {
    fn insert(filter: &mut RedisFilter, keys: &[Self], new: &mut [bool]) -> Result<(), Error> {
        // The filter knows what is in the future, and counts it.
        match Self::apart(filter, keys, |at, _| at) {
            (keys, None) => K::insert(filter, &keys, new),
            (keys, Some(times)) => K::insert_at(filter, &keys, &times, new),
        }
    }

    fn contains(filter: &mut RedisFilter, keys: &[Self], found: &mut [bool]) -> Result<(), Error> {
        match Self::apart(filter, keys, |_, latest| latest) {
            (keys, None) => K::contains(filter, &keys, found),
            (keys, Some(times)) => {
                K::contains_at(filter, &keys, &times, found)?;
                let (Some(window), Some(latest)) = (filter.window(), filter.latest()) else {
                    return Ok(());
                };
                // A record older than the window is new, whatever was seen since.
                for (found, at) in found.iter_mut().zip(times) {
                    *found &= !is_forgotten(&window, at, latest);
                }
                Ok(())
            }
        }
    }

    fn remove(filter: &mut RedisFilter, keys: &[Self], removed: &mut [bool]) -> Result<(), Error> {
        K::remove(filter, &Self::without_times(keys), removed)
    }

    fn count(filter: &mut RedisFilter, keys: &[Self], counts: &mut [u64]) -> Result<(), Error> {
        K::count(filter, &Self::without_times(keys), counts)
    }

    fn times(filter: &RedisFilter, keys: &[Self]) -> Option<Vec<Moment>> {
        Self::apart(filter, keys, |_, latest| latest).1
    }
}

/// Whether a window has forgotten by then what was seen at a moment.
pub(crate) fn is_forgotten(window: &WindowOptions, at: Moment, by: Moment) -> bool {
    generation(window, by) - generation(window, at) > window.generation_count().into()
}

/// The number of a moment's generation.
fn generation(window: &WindowOptions, at: Moment) -> i64 {
    let step = match window.band() {
        Span::Time(step) => i64::try_from(step.as_micros()).unwrap_or(i64::MAX),
        Span::Keys(_) => i64::MAX,
    };
    at.micros().div_euclid(step.max(1))
}

/// A key as it is.
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

/// For a module, which remembers no other way to make keys.
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

/// Runs the same with the filter's hasher, or with keys as they are where the
/// server hashes them.
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

/// Adds keys to a filter in Redis and tells those that were new. What another
/// worker would now be told is not new must not be lost: when the server
/// fails, the answers it gave still hold, and a key that it did not answer
/// for, which may be in the filter or not, is new.
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
