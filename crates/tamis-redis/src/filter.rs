//! The filter that blocks.

use crate::blocking::Blocking;
use crate::engine::{Engine, check_kind};
use crate::link::now;
use crate::{Error, Location, Node, Options, Share, Stats, Warning};
use std::fmt;
use std::time::Duration;
use tamis::raw::{Header, Shape};
use tamis::{AnyFilter, Body, Hash, Hasher, KeyCount, Kind, Plan};

/// A filter in Redis, shared by all who open it.
///
/// ```no_run
/// use tamis::{Hasher, Kind, Plan};
/// use tamis_redis::{Location, Options, RedisFilter};
///
/// let at: Location = "redis://localhost/seen".parse()?;
/// let plan = Plan::one_line(Kind::Blocked, 100_000_000, 0.01)?;
/// let mut seen = RedisFilter::create(&at, &plan, Hasher::default(), &Options::new())?;
/// assert!(seen.insert("https://example.org/")?);
///
/// // Elsewhere:
/// let mut seen = RedisFilter::open(&at, &Options::new())?;
/// assert!(!seen.insert("https://example.org/")?); // seen
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Each has connections of its own, one to a node, so a thread opens its own.
/// Batches are much faster than single keys: they are pipelined to all nodes
/// at once.
pub struct RedisFilter {
    engine: Engine<Blocking>,
}

impl RedisFilter {
    /// Creates an empty filter, which must not exist: blocked, counting or
    /// growing, with one line a key ([`Plan::one_line`]).
    pub fn create(
        at: &Location,
        plan: &Plan,
        hasher: Hasher,
        options: &Options,
    ) -> Result<Self, Error> {
        let link = Blocking::new(at, options);
        now(Engine::create(link, at, plan, hasher, options)).map(|engine| Self { engine })
    }

    /// [`create`](Self::create), in place of the filter that is there, if there
    /// is one: it goes first. The new one lives as long as that would have.
    pub fn create_over(
        at: &Location,
        plan: &Plan,
        hasher: Hasher,
        options: &Options,
    ) -> Result<Self, Error> {
        let left = now(Engine::make_way(Blocking::new(at, options), at, options))?;
        Self::create(at, plan, hasher, options)?.living_for(left)
    }

    fn living_for(mut self, left: Option<Duration>) -> Result<Self, Error> {
        if let Some(left) = left {
            self.expire_in(left)?;
        }
        Ok(self)
    }

    /// The kind of the filter of this name, if there is one.
    pub fn kind_at(at: &Location, options: &Options) -> Result<Option<Kind>, Error> {
        now(Engine::kind_at(Blocking::new(at, options), at, options))
    }

    /// Opens a filter. Waits for one that is being created.
    pub fn open(at: &Location, options: &Options) -> Result<Self, Error> {
        let link = Blocking::new(at, options);
        now(Engine::open(link, at, options)).map(|engine| Self { engine })
    }

    /// Whether there is something of this name, a filter or not.
    pub fn exists(at: &Location, options: &Options) -> Result<bool, Error> {
        now(Engine::exists(Blocking::new(at, options), at, options))
    }

    /// Copies a blocked, counting or growing filter to Redis, where it must
    /// not exist. Of a filter whose keys have several lines, asking is as good
    /// as ever; but of several workers that add the same new key at once, more
    /// than one may be told "new".
    pub fn upload<B: Body>(
        at: &Location,
        filter: &AnyFilter<B>,
        options: &Options,
    ) -> Result<Self, Error> {
        let link = Blocking::new(at, options);
        now(Engine::upload(link, at, filter, options)).map(|engine| Self { engine })
    }

    /// [`upload`](Self::upload), in place of the filter that is there, if there
    /// is one: it goes first. The new one lives as long as that would have.
    pub fn upload_over<B: Body>(
        at: &Location,
        filter: &AnyFilter<B>,
        options: &Options,
    ) -> Result<Self, Error> {
        // Nothing goes for one that can't come.
        check_kind(&filter.header())?;
        let left = now(Engine::make_way(Blocking::new(at, options), at, options))?;
        Self::upload(at, filter, options)?.living_for(left)
    }

    /// Copies the filter to memory: the same bits, so the same file. If it has
    /// changed since it was uploaded, its count of keys is an estimate.
    pub fn download(&mut self) -> Result<AnyFilter, Error> {
        now(self.engine.download())
    }

    /// Adds a key; whether it was new. Of many workers that add a new key at
    /// once, exactly one is told so; see the [crate](crate) for what holds
    /// when servers fail.
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        let mut new = [false];
        self.insert_many(&[key], &mut new)?;
        Ok(new[0])
    }

    /// Adds many keys; `new[i]` answers for `keys[i]`. When some were not
    /// confirmed, [`Error::Unconfirmed`] says which, and the answers for the
    /// others hold.
    ///
    /// # Panics
    /// If `new` is not as long as `keys`.
    pub fn insert_many<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        new: &mut [bool],
    ) -> Result<(), Error> {
        let hashes = self.hash_all(keys);
        self.insert_hashes(&hashes, new)
    }

    /// [`insert_many`](Self::insert_many) for keys that are already hashed.
    ///
    /// # Panics
    /// If `new` is not as long as `hashes`.
    pub fn insert_hashes(&mut self, hashes: &[Hash], new: &mut [bool]) -> Result<(), Error> {
        now(self.engine.insert_hashes(hashes, new))
    }

    /// Whether the key may have been added; one round trip. "No" is always
    /// right; a part of the filter that is missing is an error and not a "no".
    pub fn contains(&mut self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        let mut out = [false];
        self.contains_many(&[key], &mut out)?;
        Ok(out[0])
    }

    /// Asks many keys; `out[i]` answers for `keys[i]`.
    ///
    /// # Panics
    /// If `out` is not as long as `keys`.
    pub fn contains_many<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        out: &mut [bool],
    ) -> Result<(), Error> {
        let hashes = self.hash_all(keys);
        self.contains_hashes(&hashes, out)
    }

    /// [`contains_many`](Self::contains_many) for keys that are already hashed.
    ///
    /// # Panics
    /// If `out` is not as long as `hashes`.
    pub fn contains_hashes(&mut self, hashes: &[Hash], out: &mut [bool]) -> Result<(), Error> {
        now(self.engine.contains_hashes(hashes, out))
    }

    /// Takes back one adding of a key; whether it seemed present. Counting
    /// filters only, and only for keys that were added: see
    /// [`Counting::remove`](tamis::Counting::remove).
    pub fn remove(&mut self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        let mut removed = [false];
        let hash = self.hasher().hash(key.as_ref());
        self.remove_hashes(&[hash], &mut removed)?;
        Ok(removed[0])
    }

    /// [`remove`](Self::remove) for many keys that are already hashed.
    ///
    /// # Panics
    /// If `removed` is not as long as `hashes`.
    pub fn remove_hashes(&mut self, hashes: &[Hash], removed: &mut [bool]) -> Result<(), Error> {
        now(self.engine.remove_hashes(hashes, removed))
    }

    /// How often a key was added, at most; 15 means 15 or more. Counting
    /// filters only.
    pub fn count(&mut self, key: impl AsRef<[u8]>) -> Result<u64, Error> {
        let mut count = [0];
        let hash = self.hasher().hash(key.as_ref());
        self.count_hashes(&[hash], &mut count)?;
        Ok(count[0])
    }

    /// [`count`](Self::count) for many keys that are already hashed.
    ///
    /// # Panics
    /// If `counts` is not as long as `hashes`.
    pub fn count_hashes(&mut self, hashes: &[Hash], counts: &mut [u64]) -> Result<(), Error> {
        now(self.engine.count_hashes(hashes, counts))
    }

    /// Removes all keys, part by part: what others add meanwhile may stay or
    /// go.
    pub fn clear(&mut self) -> Result<(), Error> {
        now(self.engine.clear())
    }

    /// Adds all keys of `other`, which must be alike, while others may add,
    /// too. Blocked filters only. When it fails it can be repeated.
    pub fn union_with<B: Body>(&mut self, other: &AnyFilter<B>) -> Result<(), Error> {
        now(self.engine.union_with(other))
    }

    /// The number of distinct keys, estimated from how full the filter is. The
    /// servers count all bits; while only others add keys, the answer is kept
    /// for a second.
    pub fn keys(&mut self) -> Result<KeyCount, Error> {
        now(self.engine.keys())
    }

    /// The expected rate now, from 4 MiB of what the filter holds.
    pub fn rate_now(&mut self) -> Result<f64, Error> {
        now(self.engine.rate_now())
    }

    /// Checks that the filter is still the one that was opened, and that every
    /// part of it is there and whole.
    pub fn verify(&mut self) -> Result<(), Error> {
        now(self.engine.verify())
    }

    /// Lets the whole filter expire after `time`. When this fails, the filter
    /// may end sooner than before, but not in part; call it again.
    pub fn expire_in(&mut self, time: Duration) -> Result<(), Error> {
        now(self.engine.expire_in(time))
    }

    /// Lets the filter live for ever.
    pub fn persist(&mut self) -> Result<(), Error> {
        now(self.engine.persist())
    }

    /// How long the filter lives; `None` is for ever.
    pub fn time_to_live(&mut self) -> Result<Option<Duration>, Error> {
        now(self.engine.time_to_live())
    }

    /// Deletes the filter.
    pub fn delete(self) -> Result<(), Error> {
        now(self.engine.delete())
    }

    /// [`expire_in`](Self::expire_in) without opening the filter, so without
    /// its secret.
    pub fn expire_at(at: &Location, time: Duration, options: &Options) -> Result<(), Error> {
        let link = Blocking::new(at, options);
        now(Engine::expire_at(link, at, time, options))
    }

    /// [`persist`](Self::persist) without opening the filter, so without its
    /// secret.
    pub fn persist_at(at: &Location, options: &Options) -> Result<(), Error> {
        now(Engine::persist_at(Blocking::new(at, options), at, options))
    }

    /// Deletes the filter of this name, also one that was never finished, has
    /// lost a part, or whose secret is not at hand. [`Error::NotFound`] if
    /// there is none.
    pub fn delete_at(at: &Location, options: &Options) -> Result<(), Error> {
        now(Engine::delete_at(Blocking::new(at, options), at, options))
    }

    /// What its user should know; nothing is wrong yet. As of when it was
    /// created or opened.
    pub fn warnings(&self) -> &[Warning] {
        &self.engine.warnings
    }

    /// Which servers have how much of the filter, in keys of Redis and bytes of
    /// memory.
    pub fn shares(&mut self) -> Result<Vec<Share>, Error> {
        now(self.engine.shares())
    }

    /// The servers that the filter lives on, all masters of a cluster.
    pub fn nodes(&mut self) -> Result<Vec<Node>, Error> {
        now(self.engine.nodes())
    }

    /// The random number that tells the filter from others of its name, and is
    /// in the names of its parts.
    pub fn generation(&self) -> u64 {
        self.engine.generation()
    }

    /// What this client has been through: connections, retries, and keys whose
    /// answers are uncertain.
    pub fn stats(&self) -> Stats {
        self.engine.stats()
    }

    /// The header: shape, hash, capacity and rate. Of a growing filter, as of
    /// the last time that its layers were looked at.
    pub fn header(&self) -> &Header {
        self.engine.header()
    }

    /// Which kind it is.
    pub fn kind(&self) -> Kind {
        self.shape().kind()
    }

    /// The geometry.
    pub fn shape(&self) -> Shape {
        self.header().shape()
    }

    /// How keys are hashed.
    pub fn hasher(&self) -> &Hasher {
        self.header().hasher()
    }

    /// The number of keys it is made for.
    pub fn capacity(&self) -> u64 {
        self.header().capacity()
    }

    /// The promised rate, kept up to [`capacity`](Self::capacity) keys.
    pub fn rate(&self) -> f64 {
        self.header().rate()
    }

    /// The body's size in bytes.
    pub fn bytes(&self) -> u64 {
        self.header().body_len()
    }

    fn hash_all<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Hash> {
        let hasher = *self.hasher();
        keys.iter().map(|key| hasher.hash(key.as_ref())).collect()
    }
}

impl fmt::Debug for RedisFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisFilter")
            .field("header", self.header())
            .finish_non_exhaustive()
    }
}
