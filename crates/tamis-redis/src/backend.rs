//! Where the servers keep a filter: in plain strings that the client works on,
//! or in a module. One look at the key decides which.

use crate::engine::{Engine, check_kind, not_copied};
use crate::link::Link;
use crate::module::{Found, Module, look, takes};
use crate::wire::Wire;
use crate::{Error, Location, Options};
use std::time::Duration;
use tamis::internals::raw::Header;
use tamis::{
    AnyFilter, Hash, Hasher, Kind, Plan,
    body::{Body, Bytes},
};

#[derive(Clone)]
pub(crate) enum Backend<L> {
    Strings(Box<Engine<L>>),
    Module(Box<Module<L>>),
}

/// The source of a new filter.
pub(crate) enum Source<'a, B = Bytes> {
    Plan(&'a Plan, Hasher),
    Copy(&'a AnyFilter<B>),
}

impl<B: Body> Source<'_, B> {
    fn kind(&self) -> Kind {
        match self {
            Self::Plan(plan, _) => plan.kind(),
            Self::Copy(filter) => filter.kind(),
        }
    }

    /// The header of a filter that can be kept in strings.
    fn header<L: Link>(&self) -> Result<Header, Error> {
        let header = match self {
            Self::Plan(plan, hasher) => Engine::<L>::header_of(plan, *hasher)?.0,
            Self::Copy(filter) if filter.kind() == Kind::Window => return Err(not_copied()),
            Self::Copy(filter) => filter.header(),
        };
        check_kind(&header).map(|()| header)
    }

    async fn into_strings<L: Link>(
        self,
        wire: Wire<L>,
        at: &Location,
        options: &Options,
    ) -> Result<Backend<L>, Error> {
        let engine = match self {
            Self::Plan(plan, hasher) => Engine::create(wire, at, plan, hasher, options).await?,
            Self::Copy(filter) => Engine::upload(wire, at, filter, options).await?,
        };
        Ok(Backend::Strings(Box::new(engine)))
    }

    async fn into_module<L: Link>(
        self,
        wire: Wire<L>,
        at: &Location,
        replace: bool,
    ) -> Result<Backend<L>, Error> {
        let module = match self {
            Self::Plan(plan, hasher) => Module::create(wire, at, plan, hasher, replace).await?,
            Self::Copy(filter) => Module::upload(wire, at, filter, replace).await?,
        };
        Ok(Backend::Module(Box::new(module)))
    }
}

impl<L: Link> Backend<L> {
    pub(crate) async fn create<B: Body>(
        link: L,
        at: &Location,
        source: Source<'_, B>,
        options: &Options,
    ) -> Result<Self, Error> {
        let wire = Wire::new(link, options).await?;
        if options.module {
            source.into_module(wire, at, false).await
        } else {
            source.into_strings(wire, at, options).await
        }
    }

    /// [`create`](Self::create), replacing an existing filter. A filter in a
    /// module stays in the module if its kind can.
    pub(crate) async fn create_over<B: Body>(
        link: L,
        at: &Location,
        source: Source<'_, B>,
        options: &Options,
    ) -> Result<Self, Error> {
        let (wire, found) = Self::find(link, at, options).await?;
        let in_module = matches!(found, Found::Module(_));
        if options.module || in_module && takes(source.kind()) {
            let (wire, left) = Self::clear_strings(wire, found, at, options).await?;
            let created = source.into_module(wire, at, true).await?;
            return created.living_for(left).await;
        }
        // Check before deleting anything. We don't know how much memory a
        // module's filter would free.
        let header = source.header::<L>()?;
        let wire = match found {
            Found::Module(_) => wire,
            _ => Engine::room_instead(wire, at, &header, options).await?,
        };
        let (wire, left) = Self::make_way(wire, found, at, options).await?;
        let created = source.into_strings(wire, at, options).await?;
        created.living_for(left).await
    }

    /// Creates a filter in a module from a `DUMP`.
    pub(crate) async fn restore(
        link: L,
        at: &Location,
        dump: &[u8],
        replace: bool,
        options: &Options,
    ) -> Result<Self, Error> {
        let (mut wire, found) = Self::find(link, at, options).await?;
        let mut left = None;
        if replace {
            (wire, left) = Self::clear_strings(wire, found, at, options).await?;
        }
        let restored = Module::restore(wire, at, dump, replace).await?;
        Self::Module(Box::new(restored)).living_for(left).await
    }

    async fn living_for(mut self, left: Option<Duration>) -> Result<Self, Error> {
        match (&mut self, left) {
            (_, None) => {}
            (Self::Strings(engine), Some(left)) => engine.expire_in(left).await?,
            (Self::Module(module), Some(left)) => module.expire_in(left).await?,
        }
        Ok(self)
    }

    pub(crate) async fn open(link: L, at: &Location, options: &Options) -> Result<Self, Error> {
        Self::open_for(link, at, options, true).await
    }

    /// Opens the filter for management only, so its secret may be missing.
    pub(crate) async fn at_hand(link: L, at: &Location, options: &Options) -> Result<Self, Error> {
        Self::open_for(link, at, options, false).await
    }

    async fn open_for(
        link: L,
        at: &Location,
        options: &Options,
        asking: bool,
    ) -> Result<Self, Error> {
        match Self::find(link, at, options).await? {
            (wire, Found::Module(is)) => {
                let module = Module::open(wire, at, is).await?;
                Ok(Self::Module(Box::new(module)))
            }
            // Also when nothing has the name: the engine detects remains of
            // filters.
            (wire, _) => {
                let engine = if asking {
                    Engine::open(wire, at, options).await?
                } else {
                    Engine::at_hand(wire, at, options).await?
                };
                Ok(Self::Strings(Box::new(engine)))
            }
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

    /// Deletes the existing filter, if any. Returns its remaining time to live.
    async fn make_way(
        wire: Wire<L>,
        found: Found,
        at: &Location,
        options: &Options,
    ) -> Result<(Wire<L>, Option<Duration>), Error> {
        let Found::Module(is) = found else {
            return Engine::make_way(wire, at, options).await;
        };
        let mut module = Module::open(wire, at, is).await?;
        let left = module.time_to_live().await?;
        Ok((module.delete().await?, left))
    }

    /// `make_way` for filters in strings only. A module's
    /// filter is replaced in one step, which keeps its time to live.
    async fn clear_strings(
        wire: Wire<L>,
        found: Found,
        at: &Location,
        options: &Options,
    ) -> Result<(Wire<L>, Option<Duration>), Error> {
        match found {
            Found::Module(_) => Ok((wire, None)),
            _ => Engine::make_way(wire, at, options).await,
        }
    }

    pub(crate) async fn delete_at(link: L, at: &Location, options: &Options) -> Result<(), Error> {
        match Self::find(link, at, options).await? {
            (wire, Found::Module(is)) => Module::open(wire, at, is).await?.delete().await.map(drop),
            (wire, _) => Engine::delete_at(wire, at, options).await,
        }
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

    pub(crate) async fn union_with<B: Body>(&mut self, other: &AnyFilter<B>) -> Result<(), Error> {
        match self {
            Self::Strings(engine) => engine.union_with(other).await,
            Self::Module(module) => Err(module.unable(
                "united with another from here",
                "add its keys, or copy it to the server and use BF.MERGE or CF.MERGE",
            )),
        }
    }

    /// The engine, which takes hashes; an error for a module's filter.
    pub(crate) fn by_hash(&mut self) -> Result<&mut Engine<L>, Error> {
        match self {
            Self::Strings(engine) => Ok(engine),
            Self::Module(module) => Err(module.unable(
                "given hashes in a module",
                "the server hashes its keys: pass the keys",
            )),
        }
    }

    pub(crate) fn strings(&self) -> Option<&Engine<L>> {
        match self {
            Self::Strings(engine) => Some(engine),
            Self::Module(_) => None,
        }
    }

    /// Another client of the same filter.
    #[cfg(feature = "aio")]
    pub(crate) fn another(&self) -> Self
    where
        L: Clone,
    {
        match self {
            Self::Strings(engine) => Self::Strings(Box::new(engine.another())),
            Self::Module(module) => Self::Module(module.clone()),
        }
    }
}

pub(crate) fn hash_all<K: AsRef<[u8]>>(hasher: &Hasher, keys: &[K]) -> Vec<Hash> {
    keys.iter().map(|key| hasher.hash(key.as_ref())).collect()
}

pub(crate) fn bytes_of<K: AsRef<[u8]>>(keys: &[K]) -> Vec<&[u8]> {
    keys.iter().map(AsRef::as_ref).collect()
}
