//! The filter that blocks.

use crate::blocking::Blocking;
use crate::either::Either;
use crate::link::now;
use crate::{Error, Layout, Location, Node, Options, Share, Stats, Warning};
use std::fmt;
use std::time::Duration;
use tamis::raw::{Header, Shape};
use tamis::{AnyFilter, Body, Hash, Hasher, KeyCount, Kind, Plan};

/// A filter in Redis, shared by everyone who opens it.
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
/// Each filter has its own connections, one to each node, so every thread opens
/// its own. Batches are much faster than single keys: they are pipelined to all
/// nodes at once.
pub struct RedisFilter {
    engine: Either<Blocking>,
}

impl RedisFilter {
    /// Creates an empty filter: blocked, counting or growing, with one line per
    /// key ([`Plan::one_line`]). A filter with this name must not exist.
    pub fn create(
        at: &Location,
        plan: &Plan,
        hasher: Hasher,
        options: &Options,
    ) -> Result<Self, Error> {
        let link = Blocking::new(at, options);
        now(Either::create(link, at, plan, hasher, options)).map(|engine| Self { engine })
    }

    /// Like [`create`](Self::create), but deletes an existing filter first. The
    /// new filter keeps the remaining time to live of the old one.
    pub fn create_over(
        at: &Location,
        plan: &Plan,
        hasher: Hasher,
        options: &Options,
    ) -> Result<Self, Error> {
        let link = || Blocking::new(at, options);
        now(Either::create_over(link, at, plan, hasher, options)).map(|engine| Self { engine })
    }

    /// The kind of the filter with this name, if there is one.
    pub fn kind_at(at: &Location, options: &Options) -> Result<Option<Kind>, Error> {
        now(Either::kind_at(Blocking::new(at, options), at, options))
    }

    /// Opens a filter. If it is still being created, waits for it.
    pub fn open(at: &Location, options: &Options) -> Result<Self, Error> {
        let link = Blocking::new(at, options);
        now(Either::open(link, at, options)).map(|engine| Self { engine })
    }

    /// Whether anything has this name, a filter or not.
    pub fn exists(at: &Location, options: &Options) -> Result<bool, Error> {
        now(crate::engine::Engine::exists(
            Blocking::new(at, options),
            at,
            options,
        ))
    }

    /// Copies a blocked, counting or growing filter to Redis, where its name
    /// must be free. If keys of the filter have several lines, its answers are
    /// as good as any, but of several workers that add the same new key at the
    /// same time, more than one may get "new".
    pub fn upload<B: Body>(
        at: &Location,
        filter: &AnyFilter<B>,
        options: &Options,
    ) -> Result<Self, Error> {
        let link = Blocking::new(at, options);
        now(Either::upload(link, at, filter, options)).map(|engine| Self { engine })
    }

    /// Like [`upload`](Self::upload), but deletes an existing filter first. The
    /// new filter keeps the remaining time to live of the old one.
    pub fn upload_over<B: Body>(
        at: &Location,
        filter: &AnyFilter<B>,
        options: &Options,
    ) -> Result<Self, Error> {
        let link = || Blocking::new(at, options);
        now(Either::upload_over(link, at, filter, options)).map(|engine| Self { engine })
    }

    /// Creates a filter in the server's module from what [`dump`](Self::dump)
    /// returned. With `replace`, an existing filter is replaced.
    pub fn restore(
        at: &Location,
        dump: &[u8],
        replace: bool,
        options: &Options,
    ) -> Result<Self, Error> {
        let link = || Blocking::new(at, options);
        now(Either::restore(link, at, dump, replace, options)).map(|engine| Self { engine })
    }

    /// A module's filter as the server would save it (`DUMP`). This is how to
    /// copy one that has another system's layout.
    pub fn dump(&mut self) -> Result<Vec<u8>, Error> {
        now(self.engine.dump())
    }

    /// Copies the filter to memory: the same bits, and therefore the same file.
    /// If it has changed since it was uploaded, its count of keys is an
    /// estimate.
    pub fn download(&mut self) -> Result<AnyFilter, Error> {
        now(self.engine.download())
    }

    /// Adds a key and returns whether it was new. Of many workers that add a new
    /// key at the same time, exactly one gets `true`. The [crate](crate) says
    /// what holds when servers fail.
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        let mut new = [false];
        self.insert_many(&[key], &mut new)?;
        Ok(new[0])
    }

    /// Adds many keys; `new[i]` is the answer for `keys[i]`. If some were not
    /// confirmed, [`Error::Unconfirmed`] says which; the answers for the others
    /// hold.
    ///
    /// # Panics
    /// If `new` is not as long as `keys`.
    pub fn insert_many<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        new: &mut [bool],
    ) -> Result<(), Error> {
        now(self.engine.insert_many(keys, new))
    }

    /// [`insert_many`](Self::insert_many) for keys that are already hashed.
    ///
    /// # Panics
    /// If `new` is not as long as `hashes`.
    pub fn insert_hashes(&mut self, hashes: &[Hash], new: &mut [bool]) -> Result<(), Error> {
        now(self.engine.insert_hashes(hashes, new))
    }

    /// Whether the key may have been added; takes one round trip. "No" is always
    /// right: a missing part of the filter is an error, not a "no".
    pub fn contains(&mut self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        let mut out = [false];
        self.contains_many(&[key], &mut out)?;
        Ok(out[0])
    }

    /// Looks up many keys; `out[i]` is the answer for `keys[i]`.
    ///
    /// # Panics
    /// If `out` is not as long as `keys`.
    pub fn contains_many<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        out: &mut [bool],
    ) -> Result<(), Error> {
        now(self.engine.contains_many(keys, out))
    }

    /// [`contains_many`](Self::contains_many) for keys that are already hashed.
    ///
    /// # Panics
    /// If `out` is not as long as `hashes`.
    pub fn contains_hashes(&mut self, hashes: &[Hash], out: &mut [bool]) -> Result<(), Error> {
        now(self.engine.contains_hashes(hashes, out))
    }

    /// Undoes one addition of a key and returns whether it seemed present.
    /// Counting filters only, and only for keys that were added: see
    /// [`Counting::remove`](tamis::Counting::remove).
    pub fn remove(&mut self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        let mut removed = [false];
        self.remove_many(&[key], &mut removed)?;
        Ok(removed[0])
    }

    /// [`remove`](Self::remove) for many keys; `removed[i]` is the answer for
    /// `keys[i]`.
    ///
    /// # Panics
    /// If `removed` is not as long as `keys`.
    pub fn remove_many<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        removed: &mut [bool],
    ) -> Result<(), Error> {
        now(self.engine.remove_many(keys, removed))
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
        self.count_many(&[key], &mut count)?;
        Ok(count[0])
    }

    /// [`count`](Self::count) for many keys; `counts[i]` is the answer for `keys[i]`.
    ///
    /// # Panics
    /// If `counts` is not as long as `keys`.
    pub fn count_many<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        counts: &mut [u64],
    ) -> Result<(), Error> {
        now(self.engine.count_many(keys, counts))
    }

    /// [`count`](Self::count) for many keys that are already hashed.
    ///
    /// # Panics
    /// If `counts` is not as long as `hashes`.
    pub fn count_hashes(&mut self, hashes: &[Hash], counts: &mut [u64]) -> Result<(), Error> {
        now(self.engine.count_hashes(hashes, counts))
    }

    /// Removes all keys, part by part. Keys that others add meanwhile may or may
    /// not stay.
    pub fn clear(&mut self) -> Result<(), Error> {
        now(self.engine.clear())
    }

    /// Adds all keys of `other`, which must have the same shape and hash. Others
    /// may add keys at the same time. Blocked filters only. If it fails, it can
    /// be repeated.
    pub fn union_with<B: Body>(&mut self, other: &AnyFilter<B>) -> Result<(), Error> {
        now(self.engine.union_with(other))
    }

    /// The number of distinct keys, estimated from how full the filter is. The
    /// servers count all bits. Unless this client adds keys, the answer is
    /// reused for a second.
    pub fn keys(&mut self) -> Result<KeyCount, Error> {
        now(self.engine.keys())
    }

    /// The rate to expect now, estimated from 4 MiB of the filter.
    pub fn rate_now(&mut self) -> Result<f64, Error> {
        now(self.engine.rate_now())
    }

    /// Checks that the filter is still the one that was opened, and that every
    /// part of it is there and whole.
    pub fn verify(&mut self) -> Result<(), Error> {
        now(self.engine.verify())
    }

    /// Lets the whole filter expire after `time`. If this fails, the filter may
    /// expire sooner than before, but always as a whole; call it again.
    pub fn expire_in(&mut self, time: Duration) -> Result<(), Error> {
        now(self.engine.expire_in(time))
    }

    /// Lets the filter live forever.
    pub fn persist(&mut self) -> Result<(), Error> {
        now(self.engine.persist())
    }

    /// How long the filter will live; `None` means forever.
    pub fn time_to_live(&mut self) -> Result<Option<Duration>, Error> {
        now(self.engine.time_to_live())
    }

    /// Deletes the filter.
    pub fn delete(self) -> Result<(), Error> {
        now(self.engine.delete())
    }

    /// [`expire_in`](Self::expire_in) without opening the filter, so its secret
    /// is not needed.
    pub fn expire_at(at: &Location, time: Duration, options: &Options) -> Result<(), Error> {
        let link = Blocking::new(at, options);
        now(Either::expire_at(link, at, time, options))
    }

    /// [`persist`](Self::persist) without opening the filter, so its secret is
    /// not needed.
    pub fn persist_at(at: &Location, options: &Options) -> Result<(), Error> {
        now(Either::persist_at(Blocking::new(at, options), at, options))
    }

    /// Deletes the filter with this name, even if it was never finished, has
    /// lost a part, or its secret is not at hand. [`Error::NotFound`] if there
    /// is none.
    pub fn delete_at(at: &Location, options: &Options) -> Result<(), Error> {
        now(Either::delete_at(Blocking::new(at, options), at, options))
    }

    /// Takes a filter as it is, whose servers have lost keys
    /// ([`Error::RolledBack`]): they stay lost, and it can be opened again.
    pub fn accept_loss_at(at: &Location, options: &Options) -> Result<(), Error> {
        let link = Blocking::new(at, options);
        now(Either::accept_loss_at(link, at, options))
    }

    /// What its user should know, although nothing is wrong yet. Found when the
    /// filter was created or opened, and when keys were added.
    pub fn warnings(&self) -> &[Warning] {
        self.engine.warnings()
    }

    /// How much of the filter each server has, in Redis keys and bytes of
    /// memory.
    pub fn shares(&mut self) -> Result<Vec<Share>, Error> {
        now(self.engine.shares())
    }

    /// How long ago keys were last added or removed, if that is known: by the
    /// clocks of the client that did so and of this one.
    pub fn last_write(&mut self) -> Result<Option<Duration>, Error> {
        now(self.engine.last_write())
    }

    /// The servers that the filter lives on; in a cluster, all masters.
    pub fn nodes(&mut self) -> Result<Vec<Node>, Error> {
        now(self.engine.nodes())
    }

    /// The random number that distinguishes the filter from others with its
    /// name, and is part of the names of its chunks. A module's filter has none.
    pub fn generation(&self) -> Option<u64> {
        self.engine.generation()
    }

    /// What has happened to this client: connections, retries, and keys whose
    /// answers are uncertain.
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
