//! The filter that does not block, for services on Tokio.

use crate::either::Either;
use crate::engine::Engine;
use crate::multiplexed::Multiplexed;
use crate::{Error, Layout, Location, Options, Stats, Warning};
use std::fmt;
use std::time::Duration;
use tamis::raw::{Header, Shape};
use tamis::{AnyFilter, Body, Hash, Hasher, KeyCount, Kind, Plan};

/// A filter in Redis, for services: like
/// [`tamis_redis::RedisFilter`](crate::RedisFilter), whose documentation says
/// more, but without blocking. Needs a Tokio runtime.
///
/// Clones are cheap. They share one connection to each node and multiplex their
/// commands over it, so give every task its own clone.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use tamis_redis::aio::RedisFilter;
/// use tamis_redis::{Location, Options};
///
/// let at: Location = "redis://localhost/seen".parse()?;
/// let seen = RedisFilter::open(&at, &Options::new()).await?;
/// let mut mine = seen.clone();
/// tokio::spawn(async move { mine.insert("https://example.org/").await }).await??;
/// # Ok(())
/// # }
/// ```
///
/// An operation that is dropped before it ends has been done in part or not at
/// all, like one that fails.
pub struct RedisFilter {
    engine: Either<Multiplexed>,
}

impl Clone for RedisFilter {
    fn clone(&self) -> Self {
        Self {
            engine: self.engine.another(),
        }
    }
}

impl RedisFilter {
    /// Creates an empty filter. A filter with this name must not exist.
    pub async fn create(
        at: &Location,
        plan: &Plan,
        hasher: Hasher,
        options: &Options,
    ) -> Result<Self, Error> {
        let link = Multiplexed::new(at, options);
        let engine = Either::create(link, at, plan, hasher, options).await?;
        Ok(Self { engine })
    }

    /// Like [`create`](Self::create), but deletes an existing filter first. The
    /// new filter keeps the remaining time to live of the old one.
    pub async fn create_over(
        at: &Location,
        plan: &Plan,
        hasher: Hasher,
        options: &Options,
    ) -> Result<Self, Error> {
        let link = || Multiplexed::new(at, options);
        let engine = Either::create_over(link, at, plan, hasher, options).await?;
        Ok(Self { engine })
    }

    /// The kind of the filter with this name, if there is one.
    pub async fn kind_at(at: &Location, options: &Options) -> Result<Option<Kind>, Error> {
        Either::kind_at(Multiplexed::new(at, options), at, options).await
    }

    /// Opens a filter. If it is still being created, waits for it.
    pub async fn open(at: &Location, options: &Options) -> Result<Self, Error> {
        let engine = Either::open(Multiplexed::new(at, options), at, options).await?;
        Ok(Self { engine })
    }

    /// Whether anything has this name, a filter or not.
    pub async fn exists(at: &Location, options: &Options) -> Result<bool, Error> {
        Engine::exists(Multiplexed::new(at, options), at, options).await
    }

    /// Copies a blocked, counting or growing filter to Redis, where its name
    /// must be free.
    pub async fn upload<B: Body + Sync>(
        at: &Location,
        filter: &AnyFilter<B>,
        options: &Options,
    ) -> Result<Self, Error> {
        let link = Multiplexed::new(at, options);
        let engine = Either::upload(link, at, filter, options).await?;
        Ok(Self { engine })
    }

    /// Like [`upload`](Self::upload), but deletes an existing filter first. The
    /// new filter keeps the remaining time to live of the old one.
    pub async fn upload_over<B: Body + Sync>(
        at: &Location,
        filter: &AnyFilter<B>,
        options: &Options,
    ) -> Result<Self, Error> {
        let link = || Multiplexed::new(at, options);
        let engine = Either::upload_over(link, at, filter, options).await?;
        Ok(Self { engine })
    }

    /// Creates a filter in the server's module from what [`dump`](Self::dump)
    /// returned. With `replace`, an existing filter is replaced.
    pub async fn restore(
        at: &Location,
        dump: &[u8],
        replace: bool,
        options: &Options,
    ) -> Result<Self, Error> {
        let link = || Multiplexed::new(at, options);
        let engine = Either::restore(link, at, dump, replace, options).await?;
        Ok(Self { engine })
    }

    /// A module's filter as the server would save it (`DUMP`).
    pub async fn dump(&mut self) -> Result<Vec<u8>, Error> {
        self.engine.dump().await
    }

    /// Copies the filter to memory.
    pub async fn download(&mut self) -> Result<AnyFilter, Error> {
        self.engine.download().await
    }

    /// Adds a key and returns whether it was new.
    pub async fn insert(&mut self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        let mut new = [false];
        self.engine.insert_many(&[key], &mut new).await?;
        Ok(new[0])
    }

    /// Adds many keys; `new[i]` is the answer for `keys[i]`.
    ///
    /// # Panics
    /// If `new` is not as long as `keys`.
    pub async fn insert_many<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        new: &mut [bool],
    ) -> Result<(), Error> {
        self.engine.insert_many(keys, new).await
    }

    /// [`insert_many`](Self::insert_many) for keys that are already hashed.
    ///
    /// # Panics
    /// If `new` is not as long as `hashes`.
    pub async fn insert_hashes(&mut self, hashes: &[Hash], new: &mut [bool]) -> Result<(), Error> {
        self.engine.insert_hashes(hashes, new).await
    }

    /// Whether the key may have been added.
    pub async fn contains(&mut self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        let mut out = [false];
        self.engine.contains_many(&[key], &mut out).await?;
        Ok(out[0])
    }

    /// Looks up many keys; `out[i]` is the answer for `keys[i]`.
    ///
    /// # Panics
    /// If `out` is not as long as `keys`.
    pub async fn contains_many<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        out: &mut [bool],
    ) -> Result<(), Error> {
        self.engine.contains_many(keys, out).await
    }

    /// [`contains_many`](Self::contains_many) for keys that are already hashed.
    ///
    /// # Panics
    /// If `out` is not as long as `hashes`.
    pub async fn contains_hashes(
        &mut self,
        hashes: &[Hash],
        out: &mut [bool],
    ) -> Result<(), Error> {
        self.engine.contains_hashes(hashes, out).await
    }

    /// Undoes one addition of a key; counting filters only.
    pub async fn remove(&mut self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        let mut removed = [false];
        self.engine.remove_many(&[key], &mut removed).await?;
        Ok(removed[0])
    }

    /// [`remove`](Self::remove) for many keys; `removed[i]` is the answer for
    /// `keys[i]`.
    ///
    /// # Panics
    /// If `removed` is not as long as `keys`.
    pub async fn remove_many<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        removed: &mut [bool],
    ) -> Result<(), Error> {
        self.engine.remove_many(keys, removed).await
    }

    /// [`remove`](Self::remove) for many keys that are already hashed.
    ///
    /// # Panics
    /// If `removed` is not as long as `hashes`.
    pub async fn remove_hashes(
        &mut self,
        hashes: &[Hash],
        removed: &mut [bool],
    ) -> Result<(), Error> {
        self.engine.remove_hashes(hashes, removed).await
    }

    /// How often a key was added, at most; counting filters only.
    pub async fn count(&mut self, key: impl AsRef<[u8]>) -> Result<u64, Error> {
        let mut count = [0];
        self.engine.count_many(&[key], &mut count).await?;
        Ok(count[0])
    }

    /// [`count`](Self::count) for many keys; `counts[i]` is the answer for `keys[i]`.
    ///
    /// # Panics
    /// If `counts` is not as long as `keys`.
    pub async fn count_many<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        counts: &mut [u64],
    ) -> Result<(), Error> {
        self.engine.count_many(keys, counts).await
    }

    /// [`count`](Self::count) for many keys that are already hashed.
    ///
    /// # Panics
    /// If `counts` is not as long as `hashes`.
    pub async fn count_hashes(&mut self, hashes: &[Hash], counts: &mut [u64]) -> Result<(), Error> {
        self.engine.count_hashes(hashes, counts).await
    }

    /// Removes all keys, part by part.
    pub async fn clear(&mut self) -> Result<(), Error> {
        self.engine.clear().await
    }

    /// Adds all keys of `other`, which must have the same shape and hash; blocked
    /// filters only.
    pub async fn union_with<B: Body + Sync>(&mut self, other: &AnyFilter<B>) -> Result<(), Error> {
        self.engine.union_with(other).await
    }

    /// The number of distinct keys, estimated from how full the filter is.
    pub async fn keys(&mut self) -> Result<KeyCount, Error> {
        self.engine.keys().await
    }

    /// The rate to expect now, estimated from 4 MiB of the filter.
    pub async fn rate_now(&mut self) -> Result<f64, Error> {
        self.engine.rate_now().await
    }

    /// Checks that every part of the filter is there and whole.
    pub async fn verify(&mut self) -> Result<(), Error> {
        self.engine.verify().await
    }

    /// Lets the whole filter expire after `time`.
    pub async fn expire_in(&mut self, time: Duration) -> Result<(), Error> {
        self.engine.expire_in(time).await
    }

    /// Lets the filter live forever.
    pub async fn persist(&mut self) -> Result<(), Error> {
        self.engine.persist().await
    }

    /// How long the filter will live; `None` means forever.
    pub async fn time_to_live(&mut self) -> Result<Option<Duration>, Error> {
        self.engine.time_to_live().await
    }

    /// Deletes the filter.
    pub async fn delete(self) -> Result<(), Error> {
        self.engine.delete().await
    }

    /// [`expire_in`](Self::expire_in) without opening the filter.
    pub async fn expire_at(at: &Location, time: Duration, options: &Options) -> Result<(), Error> {
        Either::expire_at(Multiplexed::new(at, options), at, time, options).await
    }

    /// [`persist`](Self::persist) without opening the filter.
    pub async fn persist_at(at: &Location, options: &Options) -> Result<(), Error> {
        Either::persist_at(Multiplexed::new(at, options), at, options).await
    }

    /// Deletes the filter with this name, even if it was never finished.
    pub async fn delete_at(at: &Location, options: &Options) -> Result<(), Error> {
        Either::delete_at(Multiplexed::new(at, options), at, options).await
    }

    /// Takes a filter as it is, whose servers have lost keys
    /// ([`Error::RolledBack`]): they stay lost, and it can be opened again.
    pub async fn accept_loss_at(at: &Location, options: &Options) -> Result<(), Error> {
        Either::accept_loss_at(Multiplexed::new(at, options), at, options).await
    }

    /// What its user should know, although nothing is wrong yet. Found when the
    /// filter was created or opened, and when keys were added.
    pub fn warnings(&self) -> &[Warning] {
        self.engine.warnings()
    }

    /// What has happened to this client and its clones.
    pub fn stats(&self) -> Stats {
        self.engine.stats()
    }

    /// The header: shape, hash, capacity and rate. For a growing filter, it is
    /// from the last time the layers were read. A module doesn't reveal the
    /// header of its filters.
    pub fn header(&self) -> Option<&Header> {
        self.engine.header()
    }

    /// Whose layout the filter has, if a module of the server keeps it; `None`
    /// for a filter in plain strings.
    pub fn module_layout(&self) -> Option<Layout> {
        self.engine.layout()
    }

    /// The kind of filter. A module's filter is growing (BF.*) or cuckoo (CF.*).
    pub fn kind(&self) -> Kind {
        self.engine.kind()
    }

    /// The geometry, if the header is known.
    pub fn shape(&self) -> Option<Shape> {
        self.header().map(Header::shape)
    }

    /// How keys are hashed; `None` if the server hashes them.
    pub fn hasher(&self) -> Option<&Hasher> {
        self.header().map(Header::hasher)
    }

    /// The number of keys it is made for; for a filter that grows, as of the
    /// last time this client read it.
    pub fn capacity(&self) -> u64 {
        self.engine.capacity()
    }

    /// The promised rate, which holds up to [`capacity`](Self::capacity) keys. A
    /// cuckoo filter in RedisBloom's layout promises none; this is its rate when
    /// full.
    pub fn rate(&self) -> f64 {
        self.engine.rate()
    }

    /// The body's size in bytes.
    pub fn bytes(&self) -> u64 {
        self.engine.bytes()
    }
}

impl fmt::Debug for RedisFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisFilter")
            .field("kind", &self.kind())
            .field("header", &self.header())
            .finish_non_exhaustive()
    }
}
