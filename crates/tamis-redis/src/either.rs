//! A filter in Redis of either sort: plain strings that the client works on, or
//! what a module of the server keeps. What has the name is looked at once.

use crate::engine::{Engine, check_kind};
use crate::link::Link;
use crate::module::{Found, Layout, Module, look, takes};
use crate::wire::Wire;
use crate::{Error, Location, Node, Options, Share, Stats, Warning};
use std::time::Duration;
use tamis::raw::Header;
use tamis::{AnyFilter, Hash, Hasher, KeyCount, Kind, Plan};

#[derive(Clone)]
pub(crate) enum Either<L> {
    Strings(Box<Engine<L>>),
    Module(Box<Module<L>>),
}

/// Calls the method of the one that it is.
macro_rules! each {
    ($either:expr, $it:ident => $call:expr) => {
        match $either {
            Either::Strings($it) => $call,
            Either::Module($it) => $call,
        }
    };
}

const SERVER_HASHES: &str = "the server hashes its keys: pass the keys";

impl<L: Link> Either<L> {
    fn strings(engine: Engine<L>) -> Self {
        Self::Strings(Box::new(engine))
    }

    fn module(module: Module<L>) -> Self {
        Self::Module(Box::new(module))
    }

    pub(crate) async fn create(
        link: L,
        at: &Location,
        plan: &Plan,
        hasher: Hasher,
        options: &Options,
    ) -> Result<Self, Error> {
        let wire = Wire::new(link, options).await?;
        match options.module {
            true => Ok(Self::module(
                Module::create(wire, at, plan, hasher, false).await?,
            )),
            false => Ok(Self::strings(
                Engine::create(wire, at, plan, hasher, options).await?,
            )),
        }
    }

    /// [`create`](Self::create) in place of what is there.
    pub(crate) async fn create_over(
        link: impl Fn() -> L,
        at: &Location,
        plan: &Plan,
        hasher: Hasher,
        options: &Options,
    ) -> Result<Self, Error> {
        let found = Self::find(link(), at, options).await?;
        if stays_in_module(&found.1, plan.kind(), options) {
            let left = Self::clear_strings(found, at, options).await?;
            let wire = Wire::new(link(), options).await?;
            let created = Module::create(wire, at, plan, hasher, true).await?;
            return Self::module(created).living_for(left).await;
        }
        let header = Engine::<L>::header_of(plan, hasher)?.0;
        let found = Self::room_instead(found, at, &header, options).await?;
        let left = Self::make_way(found, at, options).await?;
        let wire = Wire::new(link(), options).await?;
        let created = Engine::create(wire, at, plan, hasher, options).await?;
        Self::strings(created).living_for(left).await
    }

    pub(crate) async fn upload<B: tamis::Body>(
        link: L,
        at: &Location,
        filter: &AnyFilter<B>,
        options: &Options,
    ) -> Result<Self, Error> {
        let wire = Wire::new(link, options).await?;
        match options.module {
            true => Ok(Self::module(Module::upload(wire, at, filter, false).await?)),
            false => Ok(Self::strings(
                Engine::upload(wire, at, filter, options).await?,
            )),
        }
    }

    /// [`upload`](Self::upload) in place of what is there.
    pub(crate) async fn upload_over<B: tamis::Body>(
        link: impl Fn() -> L,
        at: &Location,
        filter: &AnyFilter<B>,
        options: &Options,
    ) -> Result<Self, Error> {
        let found = Self::find(link(), at, options).await?;
        if stays_in_module(&found.1, filter.kind(), options) {
            let left = Self::clear_strings(found, at, options).await?;
            let wire = Wire::new(link(), options).await?;
            let uploaded = Module::upload(wire, at, filter, true).await?;
            return Self::module(uploaded).living_for(left).await;
        }
        // Nothing goes for one that can't come.
        check_kind(&filter.header())?;
        let found = Self::room_instead(found, at, &filter.header(), options).await?;
        let left = Self::make_way(found, at, options).await?;
        let wire = Wire::new(link(), options).await?;
        let uploaded = Engine::upload(wire, at, filter, options).await?;
        Self::strings(uploaded).living_for(left).await
    }

    /// Makes a filter in a module of what `DUMP` gave.
    pub(crate) async fn restore(
        link: impl Fn() -> L,
        at: &Location,
        dump: &[u8],
        replace: bool,
        options: &Options,
    ) -> Result<Self, Error> {
        let found = Self::find(link(), at, options).await?;
        let left = match replace {
            true => Self::clear_strings(found, at, options).await?,
            false => None,
        };
        let wire = Wire::new(link(), options).await?;
        let restored = Module::restore(wire, at, dump, replace).await?;
        Self::module(restored).living_for(left).await
    }

    async fn living_for(mut self, left: Option<Duration>) -> Result<Self, Error> {
        if let Some(left) = left {
            self.expire_in(left).await?;
        }
        Ok(self)
    }

    pub(crate) async fn open(link: L, at: &Location, options: &Options) -> Result<Self, Error> {
        match Self::find(link, at, options).await? {
            (wire, Found::Module(is)) => Ok(Self::module(Module::open(wire, at, is).await?)),
            // Of nothing, too: it knows the remains of filters.
            (wire, _) => Ok(Self::strings(Engine::open(wire, at, options).await?)),
        }
    }

    async fn find(link: L, at: &Location, options: &Options) -> Result<(Wire<L>, Found), Error> {
        let mut wire = Wire::new(link, options).await?;
        let found = look(&mut wire, at.name()).await?;
        Ok((wire, found))
    }

    /// The kind of the filter with this name, if there is one.
    pub(crate) async fn kind_at(
        link: L,
        at: &Location,
        options: &Options,
    ) -> Result<Option<Kind>, Error> {
        match Self::find(link, at, options).await? {
            (_, Found::Module(is)) => Ok(Some(is.kind())),
            (wire, _) => Engine::kind_at(wire, at, options).await,
        }
    }

    /// Deletes the filter that is there, if there is one; how long it would
    /// have lived, if not forever.
    async fn make_way(
        found: (Wire<L>, Found),
        at: &Location,
        options: &Options,
    ) -> Result<Option<Duration>, Error> {
        let (wire, Found::Module(is)) = found else {
            return Engine::make_way(found.0, at, options).await;
        };
        let mut module = Module::open(wire, at, is).await?;
        let left = module.time_to_live().await?;
        module.delete().await?;
        Ok(left)
    }

    /// Errors, before anything is deleted, if there is no room for a filter in
    /// place of what is there.
    async fn room_instead(
        (wire, found): (Wire<L>, Found),
        at: &Location,
        header: &Header,
        options: &Options,
    ) -> Result<(Wire<L>, Found), Error> {
        // What a module has there takes memory that we don't know.
        if matches!(found, Found::Module(_)) {
            return Ok((wire, found));
        }
        let wire = Engine::room_instead(wire, at, header, options).await?;
        Ok((wire, found))
    }

    /// The same for strings alone: what a module has there is replaced in one
    /// step, which keeps its time to live.
    async fn clear_strings(
        found: (Wire<L>, Found),
        at: &Location,
        options: &Options,
    ) -> Result<Option<Duration>, Error> {
        match found.1 {
            Found::Module(_) => Ok(None),
            _ => Engine::make_way(found.0, at, options).await,
        }
    }

    pub(crate) async fn expire_at(
        link: L,
        at: &Location,
        time: Duration,
        options: &Options,
    ) -> Result<(), Error> {
        match Self::find(link, at, options).await? {
            (wire, Found::Module(is)) => Module::open(wire, at, is).await?.expire_in(time).await,
            (wire, _) => Engine::expire_at(wire, at, time, options).await,
        }
    }

    pub(crate) async fn persist_at(link: L, at: &Location, options: &Options) -> Result<(), Error> {
        match Self::find(link, at, options).await? {
            (wire, Found::Module(is)) => Module::open(wire, at, is).await?.persist().await,
            (wire, _) => Engine::persist_at(wire, at, options).await,
        }
    }

    /// Takes a filter as it is, whose servers have lost keys: they stay lost.
    pub(crate) async fn accept_loss_at(
        link: L,
        at: &Location,
        options: &Options,
    ) -> Result<(), Error> {
        match Self::find(link, at, options).await? {
            (_, Found::Module(_)) => Ok(()),
            (wire, _) => Engine::accept_loss_at(wire, at, options).await,
        }
    }

    pub(crate) async fn last_write(&mut self) -> Result<Option<Duration>, Error> {
        match self {
            Self::Strings(engine) => engine.last_write().await,
            Self::Module(_) => Ok(None),
        }
    }

    pub(crate) async fn delete_at(link: L, at: &Location, options: &Options) -> Result<(), Error> {
        match Self::find(link, at, options).await? {
            (wire, Found::Module(is)) => Module::open(wire, at, is).await?.delete().await,
            (wire, _) => Engine::delete_at(wire, at, options).await,
        }
    }

    pub(crate) async fn download(&mut self) -> Result<AnyFilter, Error> {
        each!(self, it => it.download().await)
    }

    pub(crate) async fn dump(&mut self) -> Result<Vec<u8>, Error> {
        match self {
            Self::Module(module) => module.dump().await,
            Self::Strings(engine) => Err(Error::Filter(tamis::Error::Unable {
                kind: engine.header().shape().kind(),
                what: "dumped when they are several strings",
                instead: "download it",
            })),
        }
    }

    pub(crate) async fn insert_many<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        new: &mut [bool],
    ) -> Result<(), Error> {
        match self {
            Self::Strings(engine) => {
                let hashes = hash_all(engine.header().hasher(), keys);
                engine.insert_hashes(&hashes, new).await
            }
            Self::Module(module) => module.insert_many(&bytes_of(keys), new).await,
        }
    }

    pub(crate) async fn contains_many<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        found: &mut [bool],
    ) -> Result<(), Error> {
        match self {
            Self::Strings(engine) => {
                let hashes = hash_all(engine.header().hasher(), keys);
                engine.contains_hashes(&hashes, found).await
            }
            Self::Module(module) => module.contains_many(&bytes_of(keys), found).await,
        }
    }

    pub(crate) async fn remove_many<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        removed: &mut [bool],
    ) -> Result<(), Error> {
        match self {
            Self::Strings(engine) => {
                let hashes = hash_all(engine.header().hasher(), keys);
                engine.remove_hashes(&hashes, removed).await
            }
            Self::Module(module) => module.remove_many(&bytes_of(keys), removed).await,
        }
    }

    pub(crate) async fn count_many<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        counts: &mut [u64],
    ) -> Result<(), Error> {
        match self {
            Self::Strings(engine) => {
                let hashes = hash_all(engine.header().hasher(), keys);
                engine.count_hashes(&hashes, counts).await
            }
            Self::Module(module) => module.count_many(&bytes_of(keys), counts).await,
        }
    }

    pub(crate) async fn insert_hashes(
        &mut self,
        hashes: &[Hash],
        new: &mut [bool],
    ) -> Result<(), Error> {
        self.by_hash()?.insert_hashes(hashes, new).await
    }

    pub(crate) async fn contains_hashes(
        &mut self,
        hashes: &[Hash],
        found: &mut [bool],
    ) -> Result<(), Error> {
        self.by_hash()?.contains_hashes(hashes, found).await
    }

    pub(crate) async fn remove_hashes(
        &mut self,
        hashes: &[Hash],
        removed: &mut [bool],
    ) -> Result<(), Error> {
        self.by_hash()?.remove_hashes(hashes, removed).await
    }

    pub(crate) async fn count_hashes(
        &mut self,
        hashes: &[Hash],
        counts: &mut [u64],
    ) -> Result<(), Error> {
        self.by_hash()?.count_hashes(hashes, counts).await
    }

    fn by_hash(&mut self) -> Result<&mut Engine<L>, Error> {
        match self {
            Self::Strings(engine) => Ok(engine),
            Self::Module(module) => Err(module.unable("given hashes in a module", SERVER_HASHES)),
        }
    }

    pub(crate) async fn clear(&mut self) -> Result<(), Error> {
        each!(self, it => it.clear().await)
    }

    pub(crate) async fn union_with<B: tamis::Body>(
        &mut self,
        other: &AnyFilter<B>,
    ) -> Result<(), Error> {
        match self {
            Self::Strings(engine) => engine.union_with(other).await,
            Self::Module(module) => Err(module.unable(
                "united with another from here",
                "add its keys, or copy it to the server and use BF.MERGE or CF.MERGE",
            )),
        }
    }

    pub(crate) async fn keys(&mut self) -> Result<KeyCount, Error> {
        each!(self, it => it.keys().await)
    }

    pub(crate) async fn rate_now(&mut self) -> Result<f64, Error> {
        each!(self, it => it.rate_now().await)
    }

    pub(crate) async fn verify(&mut self) -> Result<(), Error> {
        each!(self, it => it.verify().await)
    }

    pub(crate) async fn expire_in(&mut self, time: Duration) -> Result<(), Error> {
        each!(self, it => it.expire_in(time).await)
    }

    pub(crate) async fn persist(&mut self) -> Result<(), Error> {
        each!(self, it => it.persist().await)
    }

    pub(crate) async fn time_to_live(&mut self) -> Result<Option<Duration>, Error> {
        each!(self, it => it.time_to_live().await)
    }

    pub(crate) async fn delete(self) -> Result<(), Error> {
        each!(self, it => it.delete().await)
    }

    pub(crate) async fn shares(&mut self) -> Result<Vec<Share>, Error> {
        each!(self, it => it.shares().await)
    }

    pub(crate) async fn nodes(&mut self) -> Result<Vec<Node>, Error> {
        each!(self, it => it.nodes().await)
    }

    pub(crate) fn warnings(&self) -> &[Warning] {
        each!(self, it => &it.warnings)
    }

    pub(crate) fn stats(&self) -> Stats {
        each!(self, it => it.stats())
    }

    /// Another client of the same filter.
    #[cfg(feature = "aio")]
    pub(crate) fn another(&self) -> Self
    where
        L: Clone,
    {
        match self {
            Self::Strings(engine) => Self::strings(engine.another()),
            Self::Module(module) => Self::Module(module.clone()),
        }
    }

    pub(crate) fn generation(&self) -> Option<u64> {
        match self {
            Self::Strings(engine) => Some(engine.generation()),
            Self::Module(_) => None,
        }
    }

    pub(crate) fn header(&self) -> Option<&Header> {
        match self {
            Self::Strings(engine) => Some(engine.header()),
            Self::Module(_) => None,
        }
    }

    pub(crate) fn layout(&self) -> Option<Layout> {
        match self {
            Self::Strings(_) => None,
            Self::Module(module) => Some(module.layout()),
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Strings(engine) => engine.header().shape().kind(),
            Self::Module(module) => module.kind(),
        }
    }

    pub(crate) fn capacity(&self) -> u64 {
        match self {
            Self::Strings(engine) => engine.header().capacity(),
            Self::Module(module) => module.capacity(),
        }
    }

    pub(crate) fn rate(&self) -> f64 {
        match self {
            Self::Strings(engine) => engine.header().rate(),
            Self::Module(module) => module.rate(),
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Strings(engine) => engine.header().body_len(),
            Self::Module(module) => module.bytes(),
        }
    }
}

/// In place of a module's filter comes another that the module keeps, if it
/// can.
const fn stays_in_module(found: &Found, kind: Kind, options: &Options) -> bool {
    options.module || matches!(found, Found::Module(_)) && takes(kind)
}

fn hash_all<K: AsRef<[u8]>>(hasher: &Hasher, keys: &[K]) -> Vec<Hash> {
    keys.iter().map(|key| hasher.hash(key.as_ref())).collect()
}

fn bytes_of<K: AsRef<[u8]>>(keys: &[K]) -> Vec<&[u8]> {
    keys.iter().map(AsRef::as_ref).collect()
}
