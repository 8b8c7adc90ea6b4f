//! The link that does not block: one connection a node, which all clones of a
//! filter share.

use crate::address::Address;
use crate::connection::{too_much, unreachable_here};
use crate::failure::{Failure, Outcome, Reason, answer};
use crate::link::Link;
use crate::location::Reach;
use crate::request::{
    Allowance, Expected, Request, SLOTS_ANSWER, SMALL, Wait, not_replicated, wait_for,
};
use crate::stats::Counters;
use crate::topology::Topology;
use crate::trust::{
    Doubt, Named, Trust, answered_by_another, answered_by_replica, ask_for_lag, asks_for_lag,
    asks_for_role, distrusted, greeting, how_is_master, is_replica, master, welcomed,
    who_is_master,
};
use crate::way::{way_to, way_to_sentinel};
use crate::{Location, Options};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ConnectionAddr, ConnectionInfo, Pipeline, RedisError, Value};
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

/// Connections that all clones of a filter share, one to a node.
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

/// A node's connection. Whoever finds none opens one, and all others wait for
/// that instead of opening their own.
#[derive(Default)]
struct Slot {
    connection: Option<Connection>,
    /// Which connection it is: a task that finds it broken must not close its
    /// successor.
    number: u64,
    failed: Option<(Instant, Failure)>,
}

/// A connection, what is known of its other end, and how much that may send.
#[derive(Clone)]
struct Connection {
    to: MultiplexedConnection,
    meter: Arc<Meter>,
    trust: Arc<Mutex<Trust>>,
    /// Reads and writes for all of them.
    _driver: Arc<Abort<()>>,
}

impl Connection {
    fn trust(&self) -> MutexGuard<'_, Trust> {
        self.trust.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answers to some commands, which must be there in time and hold no
    /// more than is allowed.
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

/// How much may come in over a connection: what the requests under way are
/// answered with at most, and a little more.
#[derive(Default)]
struct Meter {
    allowed: AtomicU64,
    read: AtomicU64,
}

impl Meter {
    fn allow(&self, bytes: u64) {
        self.allowed.fetch_add(bytes, Relaxed);
    }

    /// A request has been answered, and with no more than it was allowed. One
    /// that nobody waits for any more is answered all the same.
    fn done(&self, bytes: u64) {
        self.allowed.fetch_sub(bytes, Relaxed);
        let less = |read: u64| Some(read.saturating_sub(bytes));
        let _ = self.read.fetch_update(Relaxed, Relaxed, less);
    }

    fn count(&self, bytes: u64) -> io::Result<()> {
        let read = self.read.fetch_add(bytes, Relaxed) + bytes;
        match read > self.allowed.load(Relaxed).saturating_add(SMALL) {
            true => Err(too_much()),
            false => Ok(()),
        }
    }
}

/// A stream whose meter runs.
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

/// What has been sent: what is decided, and what is under way.
pub(crate) struct Ticket {
    outcomes: Vec<Option<Outcome>>,
    sent: Vec<Sent>,
}

/// To one node: what answers to expect.
struct Sent {
    node: Address,
    requests: Vec<Expected>,
    wait: Option<u32>,
    answers: Abort<Result<Answers, Failure>>,
}

/// What a node has answered, and why it is not to be believed, if it is not.
struct Answers {
    values: Vec<Value>,
    distrust: Option<Distrust>,
}

enum Distrust {
    Replica,
    Stale(Reason),
    /// The Sentinels know another master, or none that is well.
    Another(Option<Named>),
}

/// A task that ends with whoever waits for it.
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
        // Nothing is left half done in it by a panic.
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

    async fn connect(&self, node: &Address) -> Result<Connection, Failure> {
        let start = Instant::now();
        let failed = |error| Failure::of_connecting(node, start.elapsed(), error);
        let way = way_to(&self.at, node);
        let mut connection = self.reach(&way).await.map_err(failed)?;
        let mut pipeline = Pipeline::new();
        for command in greeting(&self.at, &self.options) {
            pipeline.add_command(command);
        }
        let answers = connection.ask(&pipeline, self.small()).await;
        let trust = welcomed(&self.at, &self.options, answers.map_err(failed)?);
        *connection.trust() = trust.map_err(|failure| failure.at(node))?;
        self.counters.connected(node);
        Ok(connection)
    }

    /// What small answers may take.
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

    /// Asks a Sentinel for the master; with a password only if it wants one.
    async fn ask_sentinel(&self, node: &Address) -> Result<Named, Failure> {
        let start = Instant::now();
        let ask = async |authenticated| {
            let way = way_to_sentinel(&self.at, node, authenticated);
            let mut connection = self.reach(&way).await?;
            let mut pipeline = Pipeline::new();
            pipeline.add_command(who_is_master(&self.at));
            pipeline.add_command(how_is_master(&self.at));
            let mut answers = connection.ask(&pipeline, self.small()).await?;
            let state = answers.pop();
            let master = answers.pop().unwrap_or(Value::Nil).extract_error()?;
            Ok::<_, RedisError>((master, state))
        };
        let answers = match ask(false).await {
            Err(error) if error.code() == Some("NOAUTH") => ask(true).await,
            answers => answers,
        };
        let answers = answers.map_err(|e| Failure::of_connecting(node, start.elapsed(), e));
        let (answer, state) = answers?;
        Ok(Named::new(master(&self.at, node, answer)?, state, start))
    }

    /// The master that the first Sentinel to answer knows.
    async fn ask_sentinels(&self) -> Result<Named, Failure> {
        let mut failure = None;
        let sentinels = self.shared().topology.informants();
        for node in sentinels {
            match self.ask_sentinel(&node).await {
                Ok(named) => {
                    self.shared().topology.prefer(&node);
                    return Ok(named);
                }
                Err(other) => failure = Some(other.at(&node)),
            }
        }
        Err(failure.unwrap_or_else(Failure::nobody_answers))
    }

    async fn learn_from(&self, node: &Address) -> Result<(), Failure> {
        let (mut to, number) = self.connection(node).await?;
        let start = Instant::now();
        let mut pipeline = Pipeline::new();
        pipeline.cmd("CLUSTER").arg("SLOTS");
        let allowance = Allowance {
            bytes: SLOTS_ANSWER,
            ..self.small()
        };
        match to.ask(&pipeline, allowance).await {
            Ok(mut values) => {
                let value = answer(values.pop().unwrap_or(Value::Nil))?;
                match self.shared().topology.learn(&value, node) {
                    Some(()) => Ok(()),
                    None => Err(Failure::nobody_answers()),
                }
            }
            Err(error) => {
                self.give_up(node, number).await;
                let waited = start.elapsed();
                Err(Failure::lost(node, "CLUSTER SLOTS", waited, error))
            }
        }
    }

    /// Why a node that has answered is not to be believed, if it is not.
    async fn distrust(
        &self,
        node: &Address,
        connection: &Connection,
        sent: Instant,
        lag: Option<Value>,
        role: Option<Value>,
    ) -> Option<Distrust> {
        if let Some(info) = lag {
            let heard = connection.trust().heard(&info, &self.options);
            return heard.err().map(Distrust::Stale);
        }
        let role = role?;
        if is_replica(&role) {
            return Some(Distrust::Replica);
        }
        let doubt = connection.trust().doubt();
        if doubt == Doubt::No {
            connection.trust().believed(sent);
            return None;
        }
        let named = self.ask_sentinels().await.ok();
        match (&named, doubt) {
            (Some(named), _) if named.confirms(node) => connection.trust().named(named.when),
            (None, Doubt::Some) => connection.trust().believed(sent),
            _ => {
                if let Some(named) = &named {
                    self.shared().topology.follow(named.master.clone());
                }
                return Some(Distrust::Another(named));
            }
        }
        None
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
        let sending = places.iter().map(|place| requests[*place]);
        let allowance = Allowance::of(sending, wait, &self.options);
        let answers = tokio::spawn(async move {
            let (mut connection, number) = this.connection(&to).await?;
            let may_lag = asks_for_lag(&this.at, &this.options);
            let asks_for_lag = may_lag && connection.trust().is_due();
            if asks_for_lag {
                let mut before = Pipeline::with_capacity(pipeline.len() + 1);
                before.add_command(ask_for_lag());
                pipeline.cmd_iter().for_each(|command| {
                    before.add_command(command.clone());
                });
                pipeline = before;
            }
            let start = Instant::now();
            let answers = connection.ask(&pipeline, allowance).await;
            let mut values = match answers {
                Ok(values) => values,
                Err(error) => {
                    this.give_up(&to, number).await;
                    return Err(Failure::lost(&to, &command, start.elapsed(), error));
                }
            };
            let role = values.pop_if(|_| asks_for_role);
            let lag = (asks_for_lag && !values.is_empty()).then(|| values.remove(0));
            let distrust = this.distrust(&to, &connection, start, lag, role).await;
            if distrust.is_some() {
                this.give_up(&to, number).await;
            }
            Ok(Answers { values, distrust })
        });
        Sent {
            node,
            requests: expected,
            wait: wait.map(|(replicas, _)| replicas),
            answers: Abort(answers),
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
        let (mut answers, distrust) = match answers {
            Ok(Answers { values, distrust }) => (values.into_iter(), distrust),
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
        if let Some(wanted) = self.wait {
            let failure = match answers.next().map(answer) {
                Some(Ok(Value::Int(got))) if got >= wanted.into() => None,
                Some(Ok(Value::Int(got))) => Some(Failure::FewReplicas(got)),
                Some(Err(failure)) => Some(failure),
                _ => Some(few()),
            };
            if let Some(failure) = failure {
                not_replicated(&self.requests, outcomes, &failure);
            }
        }
        let (requests, node) = (&self.requests, &self.node);
        match distrust {
            None => {}
            Some(Distrust::Replica) => answered_by_replica(requests, outcomes, node),
            Some(Distrust::Stale(reason)) => distrusted(requests, outcomes, node, &reason),
            Some(Distrust::Another(named)) => {
                answered_by_another(requests, outcomes, node, named.as_ref());
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
        if matches!(self.at.reach(), Reach::Server | Reach::Socket) {
            return Ok(());
        }
        if self.at.service().is_some() {
            let named = self.ask_sentinels().await?;
            self.shared().topology.follow(named.master);
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
