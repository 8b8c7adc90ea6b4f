//! The blocking filter, and the methods that it shares with `aio::RedisFilter`.

use crate::backend::{Backend, Source};
use crate::blocking::Blocking;
use crate::engine::Engine;
use crate::{Error, Layout, Location, Node, Options, Share, Stats, Warning};
use std::fmt;
use std::time::Duration;
use tamis::internals::raw::{Header, Shape};
use tamis::{
    AnyFilter, Hasher, KeyCount, Kind, Moment, Plan,
    body::Body,
    window::{Generation, WindowOptions},
};

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
/// A window forgets ([`Plan::window`]):
///
/// ```no_run
/// use std::time::Duration;
/// use tamis::{Hasher, Moment, Plan, window::{Span, WindowOptions}};
/// use tamis_redis::{Location, Options, RedisFilter};
///
/// let at: Location = "redis://localhost/events".parse()?;
/// let day = Duration::from_secs(86_400);
/// let plan = Plan::window(&WindowOptions::new(Span::Time(day)), 1_000_000, 1e-4)?;
/// let mut seen = RedisFilter::create(&at, &plan, Hasher::default(), &Options::new())?;
/// let then = Moment::from_secs(1_700_000_000);
/// assert!(seen.insert_at("event", then)?); // or `insert`, by this machine's clock
/// assert!(!seen.insert_at("event", then + day)?);
/// assert!(seen.insert_at("event", then + 2 * day)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Each filter has its own connections, one to each node, so every thread opens
/// its own. Batches are much faster than single keys: they are pipelined to all
/// nodes at once.
pub struct RedisFilter {
    backend: Backend<Blocking>,
}

impl RedisFilter {
    fn link(at: &Location, options: &Options) -> Blocking {
        Blocking::new(at, options)
    }

    const fn of(backend: Backend<Blocking>) -> Self {
        Self { backend }
    }
}

/// Calls a method of either backend.
macro_rules! each {
    ($backend:expr, $it:ident => $call:expr) => {
        match $backend {
            Backend::Strings($it) => $call,
            Backend::Module($it) => $call,
        }
    };
}

/// Gives both filters the same public methods. `aio::RedisFilter` has them as
/// written. Here they block: the futures of a blocking link never wait.
macro_rules! async_methods {
    ($(
        $(#[$doc:meta])*
        async fn $name:ident $(<$($life:lifetime)? $(,)? $($type:ident: $bound:path)?>)? ($($arguments:tt)*) -> $output:ty
        $body:block
    )*) => {
        impl crate::RedisFilter {$(
            $(#[$doc])*
            pub fn $name $(<$($life,)? $($type: $bound)?>)? ($($arguments)*) -> $output {
                crate::link::now(async move $body)
            }
        )*}

        #[cfg(feature = "aio")]
        impl crate::aio::RedisFilter {$(
            $(#[$doc])*
            pub async fn $name $(<$($life,)? $($type: $bound)?>)? ($($arguments)*) -> $output $body
        )*}
    };
}

/// The same for methods that don't ask a server.
macro_rules! methods {
    ($($methods:tt)*) => {
        impl RedisFilter {
            $($methods)*
        }

        #[cfg(feature = "aio")]
        impl crate::aio::RedisFilter {
            $($methods)*
        }
    };
}

// Behind the macros, which it uses.
mod keys;

async_methods! {
    /// Creates an empty filter: blocked, counting or growing, with one line per
    /// key ([`Plan::one_line`]), or a window of time ([`Plan::window`]). A filter
    /// with this name must not exist.
    async fn create(
        at: &Location,
        plan: &Plan,
        hasher: Hasher,
        options: &Options,
    ) -> Result<Self, Error> {
        let options = &at.options(options)?;
        let source = Source::<tamis::body::Bytes>::Plan(plan, hasher);
        Backend::create(Self::link(at, options), at, source, options).await.map(Self::of)
    }

    /// Like [`create`](Self::create), but deletes an existing filter first. The
    /// new filter keeps the remaining time to live of the old one.
    async fn create_over(
        at: &Location,
        plan: &Plan,
        hasher: Hasher,
        options: &Options,
    ) -> Result<Self, Error> {
        let options = &at.options(options)?;
        let source = Source::<tamis::body::Bytes>::Plan(plan, hasher);
        Backend::create_over(Self::link(at, options), at, source, options).await.map(Self::of)
    }

    /// The kind of the filter with this name, if there is one.
    async fn kind_at(at: &Location, options: &Options) -> Result<Option<Kind>, Error> {
        let options = &at.options(options)?;
        Backend::kind_at(Self::link(at, options), at, options).await
    }

    /// Opens a filter. If it is still being created, waits for it.
    async fn open(at: &Location, options: &Options) -> Result<Self, Error> {
        let options = &at.options(options)?;
        Backend::open(Self::link(at, options), at, options).await.map(Self::of)
    }

    /// Whether anything has this name, a filter or not.
    async fn exists(at: &Location, options: &Options) -> Result<bool, Error> {
        let options = &at.options(options)?;
        Engine::exists(Self::link(at, options), at, options).await
    }

    /// Copies a blocked, counting or growing filter, or a window of time, to Redis, where its name
    /// must be free. If the filter's keys have several lines, its answers are as good, but when
    /// several workers add the same new key at the same time, more than one may get "new".
    async fn upload<B: Body>(
        at: &Location,
        filter: &AnyFilter<B>,
        options: &Options,
    ) -> Result<Self, Error> {
        let options = &at.options(options)?;
        let link = Self::link(at, options);
        Backend::create(link, at, Source::Copy(filter), options).await.map(Self::of)
    }

    /// Like [`upload`](Self::upload), but deletes an existing filter first. The
    /// new filter keeps the remaining time to live of the old one.
    async fn upload_over<B: Body>(
        at: &Location,
        filter: &AnyFilter<B>,
        options: &Options,
    ) -> Result<Self, Error> {
        let options = &at.options(options)?;
        let link = Self::link(at, options);
        Backend::create_over(link, at, Source::Copy(filter), options).await.map(Self::of)
    }

    /// Creates a filter in the server's module from what [`dump`](Self::dump)
    /// returned. With `replace`, an existing filter is replaced.
    async fn restore(
        at: &Location,
        dump: &[u8],
        replace: bool,
        options: &Options,
    ) -> Result<Self, Error> {
        let options = &at.options(options)?;
        let link = Self::link(at, options);
        Backend::restore(link, at, dump, replace, options).await.map(Self::of)
    }

    /// A module's filter as the server would save it (`DUMP`). This is how to
    /// copy one that has another system's layout.
    async fn dump(&mut self) -> Result<Vec<u8>, Error> {
        self.backend.dump().await
    }

    /// Copies the filter to memory: the same bits, and therefore the same file.
    /// If it has changed since it was uploaded, its count of keys is an
    /// estimate.
    async fn download(&mut self) -> Result<AnyFilter, Error> {
        each!(&mut self.backend, it => it.download().await)
    }

    /// The generations that a window remembers, newest first. Their keys are
    /// counted; in a large window, estimated from a sample.
    async fn generations(&mut self) -> Result<Vec<Generation>, Error> {
        self.backend.by_hash()?.generations().await
    }

    /// Removes all keys, part by part. Keys that others add meanwhile may or
    /// may not remain.
    async fn clear(&mut self) -> Result<(), Error> {
        each!(&mut self.backend, it => it.clear().await)
    }

    /// Adds all keys of `other`, which must have the same shape and hash.
    /// Others may add keys at the same time. If it fails, call it again.
    /// Blocked filters only.
    async fn union_with<B: Body>(&mut self, other: &AnyFilter<B>) -> Result<(), Error> {
        self.backend.union_with(other).await
    }

    /// The number of distinct keys, estimated from how full the filter is. The
    /// servers count all bits. Unless this client adds keys, the answer is
    /// reused for a second.
    async fn keys(&mut self) -> Result<KeyCount, Error> {
        each!(&mut self.backend, it => it.keys().await)
    }

    /// The rate to expect now, estimated from 4 MiB of the filter.
    async fn rate_now(&mut self) -> Result<f64, Error> {
        each!(&mut self.backend, it => it.rate_now().await)
    }

    /// Checks that the filter is still the one that was opened, and that all
    /// its parts are there and whole.
    async fn verify(&mut self) -> Result<(), Error> {
        each!(&mut self.backend, it => it.verify().await)
    }

    /// Lets the whole filter expire after `time`. If this fails, the filter may
    /// expire sooner than before, but always as a whole; call it again.
    async fn expire_in(&mut self, time: Duration) -> Result<(), Error> {
        each!(&mut self.backend, it => it.expire_in(time).await)
    }

    /// Removes the expiry.
    async fn persist(&mut self) -> Result<(), Error> {
        each!(&mut self.backend, it => it.persist().await)
    }

    /// The remaining time to live; `None` if the filter doesn't expire.
    async fn time_to_live(&mut self) -> Result<Option<Duration>, Error> {
        each!(&mut self.backend, it => it.time_to_live().await)
    }

    /// Deletes the filter.
    async fn delete(self) -> Result<(), Error> {
        each!(self.backend, it => it.delete().await.map(drop))
    }

    /// [`expire_in`](Self::expire_in) without opening the filter, so its secret
    /// is not needed.
    async fn expire_at(at: &Location, time: Duration, options: &Options) -> Result<(), Error> {
        let options = &at.options(options)?;
        let mut this = Backend::at_hand(Self::link(at, options), at, options).await?;
        each!(&mut this, it => it.expire_in(time).await)
    }

    /// [`persist`](Self::persist) without opening the filter, so its secret is
    /// not needed.
    async fn persist_at(at: &Location, options: &Options) -> Result<(), Error> {
        let options = &at.options(options)?;
        let mut this = Backend::at_hand(Self::link(at, options), at, options).await?;
        each!(&mut this, it => it.persist().await)
    }

    /// Deletes the filter with this name, even if it is unfinished, has lost a
    /// part, or its secret is missing. [`Error::NotFound`] if there is none.
    async fn delete_at(at: &Location, options: &Options) -> Result<(), Error> {
        let options = &at.options(options)?;
        Backend::delete_at(Self::link(at, options), at, options).await
    }

    /// Accepts that the servers have lost keys of this filter
    /// ([`Error::RolledBack`]): they stay lost, and the filter can be opened
    /// again.
    async fn accept_loss_at(at: &Location, options: &Options) -> Result<(), Error> {
        let options = &at.options(options)?;
        match Backend::at_hand(Self::link(at, options), at, options).await? {
            Backend::Strings(mut engine) => engine.accept_loss().await,
            Backend::Module(_) => Ok(()),
        }
    }

    /// The Redis keys and the memory that the filter uses on each server.
    async fn shares(&mut self) -> Result<Vec<Share>, Error> {
        each!(&mut self.backend, it => it.shares().await)
    }

    /// How long ago keys were last added or removed, if known. The result mixes
    /// two clocks: that of the client that made the change and this one's.
    async fn last_write(&mut self) -> Result<Option<Duration>, Error> {
        match &mut self.backend {
            Backend::Strings(engine) => engine.last_write().await,
            Backend::Module(_) => Ok(None),
        }
    }

    /// The servers that the filter lives on; in a cluster, all masters.
    async fn nodes(&mut self) -> Result<Vec<Node>, Error> {
        each!(&mut self.backend, it => it.nodes().await)
    }
}

methods! {
    /// What the user should know although nothing is wrong yet. Found when the
    /// filter was created or opened, and when keys were added.
    pub fn warnings(&self) -> &[Warning] {
        each!(&self.backend, it => &it.warnings)
    }

    /// The random number that distinguishes this filter from others with its
    /// name; the names of its chunks contain it. A module's filter has none.
    pub fn generation(&self) -> Option<u64> {
        self.backend.strings().map(Engine::generation)
    }

    /// What has happened to this client: connections, retries, and keys whose
    /// answers are uncertain.
    pub fn stats(&self) -> Stats {
        each!(&self.backend, it => it.stats())
    }

    /// The header: shape, hash, capacity and rate. For a growing filter, as of
    /// the last time the layers were read. `None` for a module's filter:
    /// modules don't reveal it.
    pub fn header(&self) -> Option<&Header> {
        self.backend.strings().map(Engine::header)
    }

    /// The layout of a filter in a module; `None` for a filter in plain
    /// strings.
    pub fn module_layout(&self) -> Option<Layout> {
        match &self.backend {
            Backend::Strings(_) => None,
            Backend::Module(module) => Some(module.layout()),
        }
    }

    /// When the newest generation begins that this client knows of; for a window in a module, its
    /// latest moment. `None` for an empty window and for other filters.
    pub fn latest(&self) -> Option<Moment> {
        match &self.backend {
            Backend::Strings(engine) => engine.latest(),
            Backend::Module(module) => module.latest(),
        }
    }

    /// The options of a window; `None` for other filters.
    pub fn window(&self) -> Option<WindowOptions> {
        match (&self.backend, self.shape()) {
            (Backend::Module(module), _) => module.window(),
            (_, Some(Shape::Window(shape))) => Some(shape.options()),
            _ => None,
        }
    }

    /// The kind of filter. A module's filter is growing or a window (BF.*), or cuckoo (CF.*).
    pub fn kind(&self) -> Kind {
        each!(&self.backend, it => it.kind())
    }

    /// The geometry, if the header is known.
    pub fn shape(&self) -> Option<Shape> {
        self.header().map(Header::shape)
    }

    /// The hash function of the keys; `None` if the server hashes them.
    pub fn hasher(&self) -> Option<&Hasher> {
        self.header().map(Header::hasher)
    }

    /// The number of keys that the filter is made for; for a growing filter, as
    /// of the last time this client read the layers.
    pub fn capacity(&self) -> u64 {
        each!(&self.backend, it => it.capacity())
    }

    /// The promised rate, which holds up to [`capacity`](Self::capacity) keys. A
    /// cuckoo filter in RedisBloom's layout promises none; this is its rate when
    /// full.
    pub fn rate(&self) -> f64 {
        each!(&self.backend, it => it.rate())
    }

    /// The body's size in bytes.
    pub fn bytes(&self) -> u64 {
        each!(&self.backend, it => it.bytes())
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisFilter")
            .field("kind", &self.kind())
            .field("header", &self.header())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for RedisFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe(f)
    }
}

#[cfg(feature = "aio")]
impl fmt::Debug for crate::aio::RedisFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe(f)
    }
}
