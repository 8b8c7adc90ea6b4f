//! The filter that blocks.

use crate::blocking::Blocking;
use crate::engine::Engine;
use crate::link::now;
use crate::{Error, Location, Options};
use std::time::Duration;
use tamis::{AnyFilter, Body, Hash, Hasher, KeyCount, Kind, Plan, Shape};

/// A filter in Redis.
pub struct RedisFilter {
    engine: Engine<Blocking>,
}

impl RedisFilter {
    /// Creates an empty filter, which must not exist.
    pub fn create(
        at: &Location,
        plan: &Plan,
        hasher: Hasher,
        options: &Options,
    ) -> Result<Self, Error> {
        let link = Blocking::new(at, options);
        now(Engine::create(link, at, plan, hasher, options)).map(|engine| Self { engine })
    }

    /// Opens a filter.
    pub fn open(at: &Location, options: &Options) -> Result<Self, Error> {
        let link = Blocking::new(at, options);
        now(Engine::open(link, at, options)).map(|engine| Self { engine })
    }

    /// Copies a filter to Redis, where it must not exist.
    pub fn upload<B: Body>(
        _at: &Location,
        _filter: &AnyFilter<B>,
        _options: &Options,
    ) -> Result<Self, Error> {
        unimplemented!()
    }

    /// Copies the filter to memory.
    pub fn download(&mut self) -> Result<AnyFilter, Error> {
        unimplemented!()
    }

    /// Takes back one adding of a key; counting filters only.
    pub fn remove(&mut self, _key: impl AsRef<[u8]>) -> Result<bool, Error> {
        unimplemented!()
    }

    /// [`remove`](Self::remove) for many keys that are already hashed.
    pub fn remove_hashes(&mut self, _hashes: &[Hash], _removed: &mut [bool]) -> Result<(), Error> {
        unimplemented!()
    }

    /// How often a key was added, at most; counting filters only.
    pub fn count(&mut self, _key: impl AsRef<[u8]>) -> Result<u64, Error> {
        unimplemented!()
    }

    /// [`count`](Self::count) for many keys that are already hashed.
    pub fn count_hashes(&mut self, _hashes: &[Hash], _counts: &mut [u64]) -> Result<(), Error> {
        unimplemented!()
    }

    /// Removes all keys.
    pub fn clear(&mut self) -> Result<(), Error> {
        unimplemented!()
    }

    /// Adds all keys of `other`, which must be alike; blocked filters only.
    pub fn union_with<B: Body>(&mut self, _other: &AnyFilter<B>) -> Result<(), Error> {
        unimplemented!()
    }

    /// The number of distinct keys.
    pub fn keys(&mut self) -> Result<KeyCount, Error> {
        unimplemented!()
    }

    /// The expected rate now.
    pub fn rate_now(&mut self) -> Result<f64, Error> {
        unimplemented!()
    }

    /// Whether header and all chunks are there and whole.
    pub fn verify(&mut self) -> Result<(), Error> {
        unimplemented!()
    }

    /// Lets the whole filter expire after so long.
    pub fn expire_in(&mut self, _time: Duration) -> Result<(), Error> {
        unimplemented!()
    }

    /// Lets the filter live for ever.
    pub fn persist(&mut self) -> Result<(), Error> {
        unimplemented!()
    }

    /// How long the filter lives, if not for ever.
    pub fn time_to_live(&mut self) -> Result<Option<Duration>, Error> {
        unimplemented!()
    }

    /// Deletes the filter.
    pub fn delete(self) -> Result<(), Error> {
        unimplemented!()
    }

    /// Whether there is something of this name.
    pub fn exists(at: &Location, options: &Options) -> Result<bool, Error> {
        now(Engine::exists(Blocking::new(at, options), at, options))
    }

    /// Adds a key; whether it was new.
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        let mut new = [false];
        self.insert_many(&[key], &mut new)?;
        Ok(new[0])
    }

    /// Adds many keys; `new[i]` answers for `keys[i]`.
    pub fn insert_many<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        new: &mut [bool],
    ) -> Result<(), Error> {
        let hashes = self.hash_all(keys);
        self.insert_hashes(&hashes, new)
    }

    /// [`insert_many`](Self::insert_many) for keys that are already hashed.
    pub fn insert_hashes(&mut self, hashes: &[Hash], new: &mut [bool]) -> Result<(), Error> {
        now(self.engine.insert_hashes(hashes, new))
    }

    /// Whether the key may have been added.
    pub fn contains(&mut self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        let mut out = [false];
        self.contains_many(&[key], &mut out)?;
        Ok(out[0])
    }

    /// Asks many keys; `out[i]` answers for `keys[i]`.
    pub fn contains_many<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        out: &mut [bool],
    ) -> Result<(), Error> {
        let hashes = self.hash_all(keys);
        self.contains_hashes(&hashes, out)
    }

    /// [`contains_many`](Self::contains_many) for keys that are already hashed.
    pub fn contains_hashes(&mut self, hashes: &[Hash], out: &mut [bool]) -> Result<(), Error> {
        now(self.engine.contains_hashes(hashes, out))
    }

    /// Which kind it is.
    pub fn kind(&self) -> Kind {
        self.shape().kind()
    }

    /// The geometry.
    pub fn shape(&self) -> Shape {
        self.engine.header().shape()
    }

    /// How keys are hashed.
    pub fn hasher(&self) -> &Hasher {
        self.engine.header().hasher()
    }

    /// The number of keys it is made for.
    pub fn capacity(&self) -> u64 {
        self.engine.header().capacity()
    }

    /// The promised rate.
    pub fn rate(&self) -> f64 {
        self.engine.header().rate()
    }

    /// The body's size in bytes.
    pub fn bytes(&self) -> u64 {
        self.engine.header().body_len()
    }

    fn hash_all<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Hash> {
        let hasher = *self.hasher();
        keys.iter().map(|key| hasher.hash(key.as_ref())).collect()
    }
}
