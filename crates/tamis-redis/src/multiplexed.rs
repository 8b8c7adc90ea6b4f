//! The non-blocking link: one connection per node, shared by all clones of a
//! filter.

use crate::address::Address;
use crate::batch::{Batch, Distrust};
use crate::connection::{too_much, unreachable_here};
use crate::failure::{Failure, Outcome, Reason, answer};
use crate::finding::{self, Finder, ask_sentinels};
use crate::link::Link;
use crate::request::{Allowance, Request, SLOTS_ANSWER, SMALL, Wait};
use crate::stats::Counters;
use crate::topology::Topology;
use crate::trust::{
    Doubt, Trust, ask_for_lag, asks_for_lag, asks_for_role, greeting, is_replica, welcomed,
};
use crate::way::way_to;
use crate::{Location, Options};
use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Cmd, ConnectionAddr, ConnectionInfo, Pipeline, RedisError, Value,
};
use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// The connections shared by all clones of a filter, one per node.
#[derive(Clone)]
pub(crate) struct Multiplexed {
    at: Arc<Location>,
    options: Arc<Options>,
    shared: Arc<Mutex<Shared>>,
    counters: Arc<Counters>,
}

struct Shared {
    topology: Topology,
    connections: HashMap<Address, Arc<tokio::sync::Mutex<Slot>>>,
}

/// A node's connection. The first task that needs it opens it; the others wait
/// for that instead of opening their own.
#[derive(Default)]
struct Slot {
    connection: Option<Connection>,
    /// The number of the connection: a task that finds it broken must not close
    /// its successor.
    number: u64,
    failed: Option<(Instant, Failure)>,
}

/// A connection, what we know of the node, and how much it may send.
#[derive(Clone)]
struct Connection {
    to: MultiplexedConnection,
    meter: Arc<Meter>,
    trust: Arc<Mutex<Trust>>,
    /// The task that reads and writes for all clones.
    _driver: Arc<Abort<()>>,
}

impl Connection {
    fn trust(&self) -> MutexGuard<'_, Trust> {
        self.trust.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answers to some commands. They must arrive in time and hold no more
    /// than allowed.
    async fn ask(
        &mut self,
        pipeline: &Pipeline,
        allowance: Allowance,
    ) -> Result<Vec<Value>, RedisError> {
        self.meter.allow(allowance.bytes);
        let count = pipeline.len();
        let answers = timeout(
            allowance.time,
            self.to.send_packed_commands(pipeline, 0, count),
        );
        let answers = answers
            .await
            .unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()))?;
        self.meter.done(allowance.bytes);
        Ok(answers)
    }
}

/// How much may arrive over a connection: the most that the pending requests
/// can be answered with, plus a little.
#[derive(Default)]
struct Meter {
    allowed: AtomicU64,
    read: AtomicU64,
}

impl Meter {
    fn allow(&self, bytes: u64) {
        self.allowed.fetch_add(bytes, Relaxed);
    }

    /// Counts a request as answered with no more bytes than allowed. The server
    /// answers a request even if its caller has stopped waiting.
    fn done(&self, bytes: u64) {
        self.allowed.fetch_sub(bytes, Relaxed);
        let less = |read: u64| Some(read.saturating_sub(bytes));
        let _ = self.read.fetch_update(Relaxed, Relaxed, less);
    }

    fn count(&self, bytes: u64) -> io::Result<()> {
        let read = self.read.fetch_add(bytes, Relaxed) + bytes;
        if read > self.allowed.load(Relaxed).saturating_add(SMALL) {
            Err(too_much())
        } else {
            Ok(())
        }
    }
}

/// A stream that counts what it reads.
struct Metered {
    stream: Pin<Box<dyn Stream>>,
    meter: Arc<Meter>,
}

trait Stream: AsyncRead + AsyncWrite + Send {}

impl<S: AsyncRead + AsyncWrite + Send> Stream for S {}

impl AsyncRead for Metered {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = to.filled().len();
        let read = self.stream.as_mut().poll_read(context, to);
        let bytes = to.filled().len() - before;
        match read {
            Poll::Ready(Ok(())) => Poll::Ready(self.meter.count(bytes as u64)),
            other => other,
        }
    }
}

impl AsyncWrite for Metered {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream.as_mut().poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_shutdown(context)
    }
}

/// The outcomes known so far, and the batches in flight.
pub(crate) struct Ticket {
    outcomes: Vec<Option<Outcome>>,
    sent: Vec<Sent>,
}

/// A batch sent to one node.
struct Sent {
    batch: Arc<Batch>,
    answers: Abort<Result<Answers, Failure>>,
}

/// A node's answers, and why we don't believe them, if so.
type Answers = (Vec<Value>, Option<Distrust>);

/// A task that is aborted when its handle is dropped.
struct Abort<T>(JoinHandle<T>);

impl<T> Drop for Abort<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Multiplexed {
    pub(crate) fn new(at: &Location, options: &Options) -> Self {
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
        // No code that holds the lock leaves the data half changed if it
        // panics.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(&self, node: &Address) -> Arc<tokio::sync::Mutex<Slot>> {
        let mut shared = self.shared();
        Arc::clone(shared.connections.entry(node.clone()).or_default())
    }

    /// The connection to a node, and its number.
    async fn connection(&self, node: &Address) -> Result<(Connection, u64), Failure> {
        let asked = Instant::now();
        let slot = self.slot(node);
        let mut slot = slot.lock().await;
        if let Some(known) = &slot.connection {
            return Ok((known.clone(), slot.number));
        }
        // An attempt that failed while we waited counts for us, too.
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

    /// Closes a broken connection for all clones; the next request opens a new
    /// one.
    async fn give_up(&self, node: &Address, number: u64) {
        let slot = self.slot(node);
        let mut slot = slot.lock().await;
        if slot.number == number {
            slot.connection = None;
        }
    }

    async fn connect(&self, node: &Address) -> Result<Connection, Failure> {
        let start = Instant::now();
        let failed = |error| Failure::of_connecting(node, start.elapsed(), error);
        let way = way_to(&self.at, node);
        let mut connection = self.reach(&way).await.map_err(failed)?;
        let greeting = greeting(&self.at, &self.options);
        let answers = connection.ask(&pipeline(greeting), self.small()).await;
        let trust = welcomed(&self.at, &self.options, answers.map_err(failed)?);
        *connection.trust() = trust.map_err(|failure| failure.at(node))?;
        self.counters.connected(node);
        Ok(connection)
    }

    /// The allowance of small answers.
    fn small(&self) -> Allowance {
        Allowance::of(std::iter::empty(), None, &self.options)
    }

    async fn reach(&self, way: &ConnectionInfo) -> Result<Connection, RedisError> {
        let late = |_| RedisError::from(io::Error::from(io::ErrorKind::TimedOut));
        let stream = timeout(self.options.connect_timeout, self.stream(way));
        let stream = stream.await.map_err(late)??;
        let meter = Arc::new(Meter::default());
        let metered = Metered {
            stream,
            meter: Arc::clone(&meter),
        };
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None);
        let settings = way.redis_settings();
        let introduced = MultiplexedConnection::new_with_config(settings, metered, config);
        let introduced = timeout(self.options.response_timeout, introduced);
        let (to, driver) = introduced.await.map_err(late)??;
        Ok(Connection {
            to,
            meter,
            trust: Arc::new(Mutex::new(Trust::new())),
            _driver: Arc::new(Abort(tokio::spawn(driver))),
        })
    }

    async fn stream(&self, way: &ConnectionInfo) -> Result<Pin<Box<dyn Stream>>, RedisError> {
        Ok(match way.addr() {
            ConnectionAddr::Tcp(host, port) => Box::pin(connect_tcp(host, *port).await?),
            #[cfg(feature = "tls")]
            ConnectionAddr::TcpTls {
                host,
                port,
                insecure,
                ..
            } => {
                let config = crate::tls::config(*insecure, &self.options)?;
                let connector = tokio_rustls::TlsConnector::from(config);
                let name = crate::tls::server_name(host)?;
                let stream = connect_tcp(host, *port).await?;
                Box::pin(connector.connect(name, stream).await?)
            }
            #[cfg(unix)]
            ConnectionAddr::Unix(path) => Box::pin(tokio::net::UnixStream::connect(path).await?),
            _ => Err(unreachable_here())?,
        })
    }

    /// Checks a node's answers; returns why they aren't believed, if so.
    async fn distrust(
        &mut self,
        node: &Address,
        connection: &Connection,
        sent: Instant,
        lag: Option<(Value, bool)>,
        role: Option<Value>,
    ) -> Option<Distrust> {
        if let Some((info, writes)) = lag {
            let mut trust = connection.trust();
            let heard = trust.heard(&info, &self.options).err();
            let refusal = || trust.refusal(&self.options);
            let reason = heard.or_else(|| writes.then(refusal).flatten());
            return reason.map(Distrust::Stale);
        }
        if !asks_for_role(&self.at) {
            return None;
        }
        if role.is_none_or(|role| is_replica(&role)) {
            return Some(Distrust::Replica);
        }
        let doubt = connection.trust().doubt();
        if doubt == Doubt::No {
            connection.trust().believed(sent);
            return None;
        }
        let named = ask_sentinels(self).await.ok();
        if (connection.trust()).is_confirmed(node, doubt, named.as_ref(), sent) {
            return None;
        }
        if let Some(named) = &named {
            self.shared().topology.follow(named.master.clone());
        }
        Some(Distrust::Another(named))
    }

    fn send_to(&self, node: Address, places: &[usize], requests: &[&Request], wait: Wait) -> Sent {
        let about = (&*self.at, &*self.options);
        let batch = Arc::new(Batch::new(about, node, places, requests, wait));
        let mut commands = Vec::new();
        for &place in places {
            let Request { packed, ask, .. } = requests[place];
            for command in packed.unpack() {
                commands.extend(ask.as_ref().map(|_| command!("ASKING")));
                commands.push(command);
            }
        }
        commands.extend(batch.last_commands());
        let writes = places.iter().any(|place| requests[*place].writes());
        let answers = self.clone().answers(Arc::clone(&batch), commands, writes);
        Sent {
            batch,
            answers: Abort(tokio::spawn(answers)),
        }
    }

    async fn answers(
        mut self,
        batch: Arc<Batch>,
        mut commands: Vec<Cmd>,
        writes: bool,
    ) -> Result<Answers, Failure> {
        let node = &batch.node;
        let (mut connection, number) = self.connection(node).await?;
        let may_lag = asks_for_lag(&self.at, &self.options);
        let asks_for_lag = may_lag && connection.trust().is_due();
        if asks_for_lag {
            commands.insert(0, ask_for_lag());
            let refusal = connection.trust().refusal(&self.options);
            if writes && let Some(reason) = refusal {
                // The next connection asks for the role again.
                self.give_up(node, number).await;
                return Err(Failure::NotNow(reason));
            }
        }
        let start = Instant::now();
        let answers = connection.ask(&pipeline(commands), batch.allowance).await;
        let mut answers = match answers {
            Ok(answers) => answers,
            Err(error) => {
                self.give_up(node, number).await;
                let waited = start.elapsed();
                return Err(Failure::lost(node, &batch.command, waited, error));
            }
        };
        let lag = (asks_for_lag && !answers.is_empty()).then(|| (answers.remove(0), writes));
        let role = batch.take_role(&mut answers);
        let distrust = self.distrust(node, &connection, start, lag, role).await;
        if distrust.is_some() {
            self.give_up(node, number).await;
        }
        Ok((answers, distrust))
    }
}

fn pipeline(commands: Vec<Cmd>) -> Pipeline {
    let mut pipeline = Pipeline::with_capacity(commands.len());
    for command in commands {
        pipeline.add_command(command);
    }
    pipeline
}

impl Finder for Multiplexed {
    fn at(&self) -> &Location {
        &self.at
    }

    fn topology<R>(&mut self, with: impl FnOnce(&mut Topology) -> R) -> R {
        with(&mut self.shared().topology)
    }

    async fn ask_anew(
        &mut self,
        way: &ConnectionInfo,
        commands: &[Cmd],
    ) -> Result<Vec<Value>, RedisError> {
        let mut connection = self.reach(way).await?;
        let commands = pipeline(commands.to_vec());
        connection.ask(&commands, self.small()).await
    }

    async fn ask_slots(&mut self, node: &Address) -> Result<Value, Failure> {
        let (mut to, number) = self.connection(node).await?;
        let start = Instant::now();
        let slots = pipeline(vec![command!("CLUSTER", "SLOTS")]);
        let allowance = Allowance {
            bytes: SLOTS_ANSWER,
            ..self.small()
        };
        match to.ask(&slots, allowance).await {
            Ok(mut answers) => answer(answers.pop().unwrap_or(Value::Nil)),
            Err(error) => {
                self.give_up(node, number).await;
                let waited = start.elapsed();
                Err(Failure::lost(node, "CLUSTER SLOTS", waited, error))
            }
        }
    }
}

async fn connect_tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

impl Sent {
    async fn receive(mut self, outcomes: &mut [Option<Outcome>]) {
        let answers = match (&mut self.answers.0).await {
            Ok(answers) => answers,
            Err(ended) => Err(Failure::Lost(Reason::of(ended.to_string()))),
        };
        match answers {
            Err(failure) => self.batch.settle(Vec::new(), Some(failure), outcomes),
            Ok((answers, distrust)) => {
                self.batch.settle(answers, None, outcomes);
                if let Some(distrust) = distrust {
                    self.batch.distrust(distrust, outcomes);
                }
            }
        }
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
        finding::learn(self).await
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
