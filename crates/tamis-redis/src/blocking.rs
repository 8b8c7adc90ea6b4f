//! The blocking link, with one connection per node, and operations that need no
//! filter.

use crate::address::Address;
use crate::batch::{Batch, Distrust};
use crate::connection::Connection;
use crate::engine;
use crate::failure::{Failure, Outcome, Reason};
use crate::finding::{self, Finder, ask_sentinels};
use crate::link::{Link, now};
use crate::packed::Packed;
use crate::request::{Request, SLOTS_ANSWER, Wait, transfer};
use crate::stats::Counters;
use crate::survey::{Orphan, Survey};
use crate::topology::Topology;
use crate::trust::{
    Doubt, Trust, ask_for_lag, asks_for_lag, asks_for_role, greeting, is_replica, welcomed,
};
use crate::way::way_to;
use crate::{Error, Location, Options, Servers};
use redis::{Cmd, ConnectionInfo, RedisError, Value};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) struct Blocking {
    at: Location,
    options: Options,
    topology: Topology,
    connections: HashMap<Address, Numbered>,
    /// The process that opened the connections. After a fork the child has them
    /// too, and either process could read the other's answers.
    process: u32,
    opened: u64,
    counters: Arc<Counters>,
}

/// A connection and its number. Requests sent over an earlier connection are
/// lost.
struct Numbered {
    number: u64,
    /// Batches sent and received. Answers that a caller didn't wait for must
    /// not be taken for those of the next batch.
    sent: u64,
    received: u64,
    /// The most bytes that outstanding answers may hold.
    flying: u64,
    trust: Trust,
    connection: Connection,
}

/// Requests that have been sent.
pub(crate) struct Ticket {
    outcomes: Vec<Option<Outcome>>,
    sent: Vec<Sent>,
}

/// A batch sent to one node, and the number of its connection.
struct Sent {
    batch: Batch,
    number: u64,
    turn: u64,
    /// Whether the batch begins by asking how far the node is behind its
    /// master.
    asks_for_lag: bool,
    /// Whether the batch also writes.
    writes: bool,
    at: Instant,
}

impl Blocking {
    pub(crate) fn new(at: &Location, options: &Options) -> Self {
        Self {
            at: at.clone(),
            options: options.clone(),
            topology: Topology::new(at),
            connections: HashMap::new(),
            process: std::process::id(),
            opened: 0,
            counters: Arc::default(),
        }
    }

    fn connection(&mut self, node: &Address) -> Result<&mut Numbered, Failure> {
        if !self.connections.contains_key(node) {
            let (connection, trust) = self.connect(node)?;
            self.counters.connected(node);
            self.opened += 1;
            let numbered = Numbered {
                number: self.opened,
                sent: 0,
                received: 0,
                flying: 0,
                trust,
                connection,
            };
            self.connections.insert(node.clone(), numbered);
        }
        Ok(self.connections.get_mut(node).expect("just inserted"))
    }

    fn connect(&self, node: &Address) -> Result<(Connection, Trust), Failure> {
        let start = Instant::now();
        let failed = |error| Failure::of_connecting(node, start.elapsed(), error);
        let way = way_to(&self.at, node);
        let mut connection = self.reach(&way).map_err(failed)?;
        let greeting = Packed::from(&greeting(&self.at, &self.options)[..]);
        let until = Instant::now() + self.options.response_timeout;
        connection.send(&greeting.bytes, until).map_err(failed)?;
        let answers = (0..greeting.commands).map(|_| connection.receive());
        let answers = answers.collect::<Result<_, _>>().map_err(failed)?;
        let trust = welcomed(&self.at, &self.options, answers);
        Ok((connection, trust.map_err(|failure| failure.at(node))?))
    }

    fn reach(&self, way: &ConnectionInfo) -> Result<Connection, RedisError> {
        Connection::open(way, &self.options)
    }

    fn send_to(
        &mut self,
        node: Address,
        places: &[usize],
        requests: &[&Request],
        wait: Wait,
    ) -> Result<Sent, Failure> {
        let may_lag = asks_for_lag(&self.at, &self.options);
        let asks_for_lag = may_lag && self.connection(&node)?.trust.is_due();
        let writes = asks_for_lag && places.iter().any(|place| requests[*place].writes());
        let known = self.connections.get(&node).filter(|_| writes);
        if let Some(reason) = known.and_then(|to| to.trust.refusal(&self.options)) {
            // The next connection asks for the role again.
            self.connections.remove(&node);
            return Err(Failure::NotNow(reason).at(&node));
        }
        let batch = Batch::new((&self.at, &self.options), node, places, requests, wait);
        let size = |place: &usize| requests[*place].packed.bytes.len();
        let mut bytes = Vec::with_capacity(places.iter().map(size).sum::<usize>() + 128);
        if asks_for_lag {
            ask_for_lag().write_packed_command(&mut bytes);
        }
        for &place in places {
            let Request { packed, ask, .. } = requests[place];
            if ask.is_none() {
                bytes.extend_from_slice(&packed.bytes);
                continue;
            }
            for command in packed.unpack() {
                command!("ASKING").write_packed_command(&mut bytes);
                command.write_packed_command(&mut bytes);
            }
        }
        for command in batch.last_commands() {
            command.write_packed_command(&mut bytes);
        }
        let sending_for = self.options.response_timeout + transfer(bytes.len() as u64);
        let to = self.connection(&batch.node)?;
        let at = Instant::now();
        let (number, turn) = (to.number, to.sent);
        to.sent += 1;
        to.flying += batch.allowance.bytes;
        if let Err(error) = to.connection.send(&bytes, at + sending_for) {
            self.connections.remove(&batch.node);
            let Batch { node, command, .. } = &batch;
            return Err(Failure::lost(node, command, at.elapsed(), error));
        }
        Ok(Sent {
            batch,
            number,
            turn,
            asks_for_lag,
            writes,
            at,
        })
    }

    fn receive_from(&mut self, sent: &Sent, outcomes: &mut [Option<Outcome>]) {
        let batch = &sent.batch;
        match self.connections.get_mut(&batch.node) {
            Some(from) if from.number == sent.number && from.received == sent.turn => {
                from.received += 1;
                let until = Instant::now() + batch.allowance.time;
                from.connection.expect(until, from.flying);
                from.flying -= batch.allowance.bytes;
            }
            _ => {
                self.connections.remove(&batch.node);
            }
        }
        let lag = sent.asks_for_lag.then(|| self.read(sent)).transpose();
        let (lag, mut lost) = match lag {
            Ok(lag) => (lag, None),
            Err(lost) => (None, Some(lost)),
        };
        let mut answers = Vec::with_capacity(batch.answers());
        while lost.is_none() && answers.len() < batch.answers() {
            match self.read(sent) {
                Ok(answer) => answers.push(answer),
                Err(failure) => lost = Some(failure),
            }
        }
        let role = batch.take_role(&mut answers);
        batch.settle(answers, lost, outcomes);
        let distrust = match (lag, role) {
            (Some(lag), _) => {
                let from = self.connections.get_mut(&batch.node);
                let distrust = |from: &mut Numbered| {
                    let heard = from.trust.heard(&lag, &self.options).err();
                    let refusal = || from.trust.refusal(&self.options);
                    heard.or_else(|| sent.writes.then(refusal).flatten())
                };
                from.and_then(distrust).map(Distrust::Stale)
            }
            (None, role) if asks_for_role(&self.at) => self.doubt(sent, role),
            (None, _) => None,
        };
        if let Some(distrust) = distrust {
            if !matches!(distrust, Distrust::Stale(_)) {
                self.connections.remove(&batch.node);
            }
            batch.distrust(distrust, outcomes);
        }
    }

    /// Checks whether the node is still the master; returns why its answers
    /// aren't believed.
    fn doubt(&mut self, sent: &Sent, role: Option<Value>) -> Option<Distrust> {
        let node = &sent.batch.node;
        // Without the role, the other answers may be a replica's.
        if role.is_none_or(|role| is_replica(&role)) {
            return Some(Distrust::Replica);
        }
        let trust = &mut self.connections.get_mut(node)?.trust;
        let doubt = trust.doubt();
        if doubt == Doubt::No {
            trust.believed(sent.at);
            return None;
        }
        let named = now(ask_sentinels(self)).ok();
        let trust = &mut self.connections.get_mut(node)?.trust;
        if trust.is_confirmed(node, doubt, named.as_ref(), sent.at) {
            return None;
        }
        if let Some(named) = &named {
            self.topology.follow(named.master.clone());
        }
        Some(Distrust::Another(named))
    }

    fn read(&mut self, sent: &Sent) -> Result<Value, Failure> {
        let Batch { node, command, .. } = &sent.batch;
        let Some(from) = self.connections.get_mut(node) else {
            return Err(Failure::Lost(Reason::of("the connection was given up")));
        };
        from.connection.receive().map_err(|error| {
            // A late answer must not be taken for that of a later request.
            self.connections.remove(node);
            Failure::lost(node, command, sent.at.elapsed(), error)
        })
    }
}

impl Finder for Blocking {
    fn at(&self) -> &Location {
        &self.at
    }

    fn topology<R>(&mut self, with: impl FnOnce(&mut Topology) -> R) -> R {
        with(&mut self.topology)
    }

    async fn ask_anew(
        &mut self,
        way: &ConnectionInfo,
        commands: &[Cmd],
    ) -> Result<Vec<Value>, RedisError> {
        let mut connection = self.reach(way)?;
        let until = Instant::now() + self.options.response_timeout;
        connection.send(&Packed::from(commands).bytes, until)?;
        commands.iter().map(|_| connection.receive()).collect()
    }

    async fn ask_slots(&mut self, node: &Address) -> Result<Value, Failure> {
        let start = Instant::now();
        let slots = command!("CLUSTER", "SLOTS");
        let until = start + self.options.response_timeout;
        let asked = if self.connections.contains_key(node) {
            // A separate connection, because answers may still be on their way
            // over this one.
            let (mut connection, _) = self.connect(node)?;
            connection.expect(until, SLOTS_ANSWER);
            connection.ask(&slots)
        } else {
            let to = &mut self.connection(node)?.connection;
            to.expect(until, SLOTS_ANSWER);
            to.ask(&slots)
        };
        asked.map_err(|e| {
            self.connections.remove(node);
            Failure::of_connecting(node, start.elapsed(), e)
        })
    }
}

impl Link for Blocking {
    type Ticket = Ticket;

    async fn send(&mut self, requests: &[&Request], wait: Wait) -> Ticket {
        if self.process != std::process::id() {
            // Closes only this process's ends.
            self.connections.clear();
            self.process = std::process::id();
        }
        let (by_node, mut outcomes) = self.topology.by_node(requests);
        let mut sent = Vec::with_capacity(by_node.len());
        for (node, places) in by_node {
            match self.send_to(node, &places, requests, wait) {
                Ok(done) => sent.push(done),
                Err(failure) => {
                    for place in places {
                        outcomes[place] = Some(Err(failure.clone()));
                    }
                }
            }
        }
        Ticket { outcomes, sent }
    }

    async fn receive(&mut self, mut ticket: Ticket) -> Vec<Outcome> {
        for sent in &ticket.sent {
            self.receive_from(sent, &mut ticket.outcomes);
        }
        ticket.outcomes.into_iter().flatten().collect()
    }

    async fn learn(&mut self) -> Result<(), Failure> {
        finding::learn(self).await
    }

    fn moved(&mut self, slot: u16, to: Address) {
        self.topology.moved(slot, to);
    }

    fn is_cluster(&self) -> bool {
        self.topology.is_cluster()
    }

    fn masters(&self) -> Vec<(Address, u16)> {
        self.topology.masters()
    }

    fn owner(&self, slot: u16) -> Option<Address> {
        self.topology.owner(slot).cloned()
    }

    fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    async fn pause(&self, time: Duration) {
        std::thread::sleep(time);
    }
}
impl Survey {
    /// Surveys these servers.
    pub fn of(servers: &Servers, options: &Options) -> Result<Self, Error> {
        let options = &servers.location().options(options)?;
        let link = Blocking::new(servers.location(), options);
        now(engine::survey::survey(link, servers, options))
    }

    /// Deletes orphans that have been idle for an hour ([`IDLE`](Self::IDLE))
    /// and don't expire by themselves. Each orphan and the filter with its name
    /// are checked again first, in case the filter has come back. Returns the
    /// deleted orphans.
    pub fn collect(&self, options: &Options) -> Result<Vec<Orphan>, Error> {
        let orphans: Vec<Orphan> = self.collectable().cloned().collect();
        let options = &self.servers.location().options(options)?;
        let link = Blocking::new(self.servers.location(), options);
        now(engine::survey::collect(link, &orphans, Self::IDLE, options))
    }
}
