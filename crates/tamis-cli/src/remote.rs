//! What stands for a key on its way to a filter in Redis: its hash, or where a
//! module of the server hashes, the key itself.

use crate::stream::{Halt, Keyed};
use std::hash::Hash as StdHash;
use tamis::{Hash, KeyRule};
use tamis_records::batch::Token;
use tamis_redis::{Error, RedisFilter};

/// A token that a filter in Redis takes.
pub(crate) trait Remote: Token + Clone + Ord + StdHash + Send + Sync {
    fn insert(filter: &mut RedisFilter, keys: &[Self], new: &mut [bool]) -> Result<(), Error>;

    fn contains(filter: &mut RedisFilter, keys: &[Self], found: &mut [bool]) -> Result<(), Error>;

    fn remove(filter: &mut RedisFilter, keys: &[Self], removed: &mut [bool]) -> Result<(), Error>;

    fn count(filter: &mut RedisFilter, keys: &[Self], counts: &mut [u64]) -> Result<(), Error>;
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
