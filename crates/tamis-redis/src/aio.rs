//! The filter that does not block, for services on Tokio.

use crate::either::Either;
use crate::engine::Engine;
use crate::link::{
    Address, Expected, Failure, Link, Outcome, Reason, Request, Topology, Wait, answer,
    answered_by_replica, asks_for_role, client, greeting, is_replica, master, not_replicated,
    sentinel, wait_for, welcomed, who_is_master,
};
use crate::location::Reach;
use crate::stats::Counters;
use crate::{Error, Layout, Location, Options, Stats, Warning};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Pipeline, RedisError, Value, cmd};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tamis::raw::{Header, Shape};
use tamis::{AnyFilter, Body, Hash, Hasher, KeyCount, Kind, Plan};
use tokio::task::JoinHandle;

/// Connections that all clones of a filter share, one to a node.
#[derive(Clone)]
struct Multiplexed {
    at: Arc<Location>,
    options: Arc<Options>,
    shared: Arc<Mutex<Shared>>,
    counters: Arc<Counters>,
}

struct Shared {
    topology: Topology,
    connections: HashMap<Address, Arc<tokio::sync::Mutex<Slot>>>,
}

/// A node's connection. Whoever finds none opens one, and all others wait for
/// that instead of opening their own.
#[derive(Default)]
struct Slot {
    connection: Option<MultiplexedConnection>,
    /// Which connection it is: a task that finds it broken must not close its
    /// successor.
    number: u64,
    failed: Option<(Instant, Failure)>,
}

/// What has been sent: what is decided, and what is under way.
struct Ticket {
    outcomes: Vec<Option<Outcome>>,
    sent: Vec<Sent>,
}

/// To one node: what answers to expect.
struct Sent {
    node: Address,
    requests: Vec<Expected>,
    wait: Option<u32>,
    /// And whether a replica gave them.
    answers: Abort<Result<(Vec<Value>, bool), Failure>>,
}

/// A task that ends with whoever waits for it.
struct Abort<T>(JoinHandle<T>);

impl<T> Drop for Abort<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Multiplexed {
    fn new(at: &Location, options: &Options) -> Self {
        Self {
            at: Arc::new(at.clone()),
            options: Arc::new(options.clone()),
            shared: Arc::new(Mutex::new(Shared {
                topology: Topology::new(at),
                connections: HashMap::new(),
            })),
            counters: Arc::default(),
        }
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        // Nothing is left half done in it by a panic.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(&self, node: &Address) -> Arc<tokio::sync::Mutex<Slot>> {
        let mut shared = self.shared();
        Arc::clone(shared.connections.entry(node.clone()).or_default())
    }

    /// The connection to a node, and its number.
    async fn connection(&self, node: &Address) -> Result<(MultiplexedConnection, u64), Failure> {
        let asked = Instant::now();
        let slot = self.slot(node);
        let mut slot = slot.lock().await;
        if let Some(known) = &slot.connection {
            return Ok((known.clone(), slot.number));
        }
        // What failed while we waited failed for us, too.
        if let Some((when, failure)) = &slot.failed
            && *when >= asked
        {
            return Err(failure.clone());
        }
        match self.connect(node).await {
            Ok(connection) => {
                slot.number += 1;
                slot.connection = Some(connection.clone());
                Ok((connection, slot.number))
            }
            Err(failure) => {
                slot.failed = Some((Instant::now(), failure.clone()));
                Err(failure)
            }
        }
    }

    /// Others on this connection fare alike; the next is a new one.
    async fn give_up(&self, node: &Address, number: u64) {
        let slot = self.slot(node);
        let mut slot = slot.lock().await;
        if slot.number == number {
            slot.connection = None;
        }
    }

    async fn connect(&self, node: &Address) -> Result<MultiplexedConnection, Failure> {
        let start = Instant::now();
        let failed = |error| Failure::of_connecting(node, start.elapsed(), error);
        let client = client(&self.at, node, &self.options).map_err(failed)?;
        let mut connection = self.reach(&client).await.map_err(failed)?;
        let greeting = greeting(&self.at);
        let answers = connection.send_packed_commands(&greeting, 0, greeting.len());
        welcomed(answers.await.map_err(failed)?).map_err(|failure| failure.at(node))?;
        self.counters.connected(node);
        Ok(connection)
    }

    async fn reach(&self, client: &redis::Client) -> Result<MultiplexedConnection, RedisError> {
        let wait = self
            .options
            .replicas
            .map_or(Duration::ZERO, |(_, time)| time);
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.options.connect_timeout))
            .set_response_timeout(Some(self.options.response_timeout + wait));
        client
            .get_multiplexed_async_connection_with_config(&config)
            .await
    }

    /// Asks a Sentinel for the master; with a password only if it wants one.
    async fn ask_sentinel(&self, node: &Address) -> Result<Address, Failure> {
        let start = Instant::now();
        let ask = async |authenticated| {
            let client = sentinel(&self.at, node, authenticated, &self.options)?;
            let mut connection = self.reach(&client).await?;
            let question = who_is_master(&self.at);
            let value = connection.send_packed_command(&question).await?;
            value.extract_error()
        };
        let answer = match ask(false).await {
            Err(error) if error.code() == Some("NOAUTH") => ask(true).await,
            answer => answer,
        };
        let answer = answer.map_err(|e| Failure::of_connecting(node, start.elapsed(), e))?;
        master(&self.at, node, answer)
    }

    async fn learn_from(&self, node: &Address) -> Result<(), Failure> {
        if self.at.service().is_some() {
            let master = self.ask_sentinel(node).await?;
            self.shared().topology.follow(master);
            return Ok(());
        }
        let (mut to, number) = self.connection(node).await?;
        let start = Instant::now();
        match to.send_packed_command(cmd("CLUSTER").arg("SLOTS")).await {
            Ok(value) => match self.shared().topology.learn(&answer(value)?, node) {
                Some(()) => Ok(()),
                None => Err(Failure::nobody_answers()),
            },
            Err(error) => {
                self.give_up(node, number).await;
                let waited = start.elapsed();
                Err(Failure::lost(node, "CLUSTER SLOTS", waited, error))
            }
        }
    }

    fn send_to(&self, node: Address, places: &[usize], requests: &[&Request], wait: Wait) -> Sent {
        let mut pipeline = Pipeline::new();
        let mut expected = Vec::with_capacity(places.len());
        for &place in places {
            let Request { packed, ask, .. } = requests[place];
            for command in packed.unpack() {
                if ask.is_some() {
                    pipeline.cmd("ASKING");
                }
                pipeline.add_command(command);
            }
            expected.push(Expected::of(place, requests[place]));
        }
        let wait = wait_for(&expected, wait);
        if let Some((replicas, time)) = wait {
            pipeline
                .cmd("WAIT")
                .arg(replicas)
                .arg(time.as_millis() as u64);
        }
        let asks_for_role = asks_for_role(&self.at);
        if asks_for_role {
            pipeline.cmd("ROLE");
        }
        let this = self.clone();
        let to = node.clone();
        let command = places.first().map(|place| requests[*place].command());
        let command = command.unwrap_or_default();
        let answers = tokio::spawn(async move {
            let (mut connection, number) = this.connection(&to).await?;
            let count = pipeline.len();
            let start = Instant::now();
            match connection.send_packed_commands(&pipeline, 0, count).await {
                Ok(mut answers) => {
                    let role = answers.pop_if(|_| asks_for_role);
                    let by_replica = role.is_some_and(|role| is_replica(&role));
                    if by_replica {
                        this.give_up(&to, number).await;
                    }
                    Ok((answers, by_replica))
                }
                Err(error) => {
                    this.give_up(&to, number).await;
                    Err(Failure::lost(&to, &command, start.elapsed(), error))
                }
            }
        });
        Sent {
            node,
            requests: expected,
            wait: wait.map(|(replicas, _)| replicas),
            answers: Abort(answers),
        }
    }
}

impl Sent {
    async fn receive(mut self, outcomes: &mut [Option<Outcome>]) {
        let answers = match (&mut self.answers.0).await {
            Ok(answers) => answers,
            Err(ended) => Err(Failure::Lost(Reason::of(ended.to_string()))),
        };
        let (mut answers, by_replica) = match answers {
            Ok((answers, by_replica)) => (answers.into_iter(), by_replica),
            Err(failure) => {
                for Expected { place, .. } in &self.requests {
                    outcomes[*place] = Some(Err(failure.clone()));
                }
                return;
            }
        };
        let few = || Failure::Lost(Reason::of("it sent fewer answers than it was asked for"));
        for expected in &self.requests {
            let mut values = Vec::with_capacity(expected.answers);
            let mut failure = None;
            for _ in 0..expected.answers {
                if expected.asking {
                    answers.next();
                }
                match answers.next().ok_or_else(few).and_then(answer) {
                    Ok(value) => values.push(value),
                    Err(other) => failure = failure.or(Some(other)),
                }
            }
            let failure = failure.map(|failure| failure.at(&self.node));
            outcomes[expected.place] = Some(failure.map_or(Ok(values), Err));
        }
        if by_replica {
            answered_by_replica(&self.requests, outcomes, &self.node);
        }
        let Some(wanted) = self.wait else {
            return;
        };
        let failure = match answers.next().map(answer) {
            Some(Ok(Value::Int(got))) if got >= wanted.into() => return,
            Some(Ok(Value::Int(got))) => Failure::FewReplicas(got),
            Some(Err(failure)) => failure,
            _ => few(),
        };
        not_replicated(&self.requests, outcomes, &failure);
    }
}

impl Link for Multiplexed {
    type Ticket = Ticket;

    async fn send(&mut self, requests: &[&Request], wait: Wait) -> Ticket {
        let (by_node, outcomes) = self.shared().topology.by_node(requests);
        let send =
            |(node, places): (Address, Vec<usize>)| self.send_to(node, &places, requests, wait);
        Ticket {
            sent: by_node.into_iter().map(send).collect(),
            outcomes,
        }
    }

    async fn receive(&mut self, ticket: Ticket) -> Vec<Outcome> {
        let Ticket { mut outcomes, sent } = ticket;
        for sent in sent {
            sent.receive(&mut outcomes).await;
        }
        outcomes.into_iter().flatten().collect()
    }

    async fn learn(&mut self) -> Result<(), Failure> {
        if matches!(self.at.reach(), Reach::Server | Reach::Socket) {
            return Ok(());
        }
        let mut failure = None;
        let informants = self.shared().topology.informants();
        for node in informants {
            match self.learn_from(&node).await {
                Ok(()) => return Ok(()),
                Err(other) => failure = Some(other.at(&node)),
            }
        }
        Err(failure.unwrap_or_else(Failure::nobody_answers))
    }

    fn moved(&mut self, slot: u16, to: Address) {
        self.shared().topology.moved(slot, to);
    }

    fn is_cluster(&self) -> bool {
        self.at.is_cluster()
    }

    fn masters(&self) -> Vec<(Address, u16)> {
        self.shared().topology.masters()
    }

    fn owner(&self, slot: u16) -> Option<Address> {
        self.shared().topology.owner(slot).cloned()
    }

    fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    async fn pause(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

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
