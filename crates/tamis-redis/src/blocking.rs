//! The link that blocks: one connection a node; and what needs no filter to
//! be done over it.

use crate::address::Address;
use crate::connection::Connection;
use crate::engine;
use crate::failure::{Failure, Outcome, Reason, answer};
use crate::link::{Link, now};
use crate::location::Reach;
use crate::packed::Packed;
use crate::request::{
    Allowance, Expected, Request, SLOTS_ANSWER, Wait, not_replicated, transfer, wait_for,
};
use crate::stats::Counters;
use crate::survey::{Orphan, Survey};
use crate::topology::Topology;
use crate::trust::{
    Doubt, Named, Trust, answered_by_another, answered_by_replica, ask_for_lag, asks_for_lag,
    asks_for_role, distrusted, greeting, how_is_master, is_replica, master, welcomed,
    who_is_master,
};
use crate::way::{way_to, way_to_sentinel};
use crate::{Error, Location, Options, Servers};
use redis::{ConnectionInfo, RedisError, Value, cmd};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) struct Blocking {
    at: Location,
    options: Options,
    topology: Topology,
    connections: HashMap<Address, Numbered>,
    /// The process that they belong to. After a fork another has them, too, and
    /// answers would go to whoever reads first.
    process: u32,
    opened: u64,
    counters: Arc<Counters>,
}

/// A connection and its number: what was sent over an earlier one is lost.
struct Numbered {
    number: u64,
    /// Batches sent and received: whoever does not wait for the answers to one
    /// must not leave them to the next.
    sent: u64,
    received: u64,
    /// What the answers that are on their way may hold, in bytes.
    flying: u64,
    trust: Trust,
    connection: Connection,
}

/// What has been sent.
pub(crate) struct Ticket {
    outcomes: Vec<Option<Outcome>>,
    sent: Vec<Sent>,
}

/// To one node: what answers to expect.
struct Sent {
    node: Address,
    number: u64,
    batch: u64,
    requests: Vec<Expected>,
    wait: Option<u32>,
    /// Before all else it was asked how far behind its master it is.
    asks_for_lag: bool,
    allowance: Allowance,
    /// The first of the commands, and when it was sent: for errors.
    command: String,
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

    /// Asks a Sentinel for the master; with a password only if it wants one.
    fn ask_sentinel(&self, node: &Address) -> Result<Named, Failure> {
        let start = Instant::now();
        let ask = |authenticated| {
            let way = way_to_sentinel(&self.at, node, authenticated);
            let mut connection = self.reach(&way)?;
            let master = connection.ask(&who_is_master(&self.at))?;
            let state = connection.ask(&how_is_master(&self.at)).ok();
            Ok::<_, RedisError>((master, state))
        };
        let answers = match ask(false) {
            Err(error) if error.code() == Some("NOAUTH") => ask(true),
            answers => answers,
        };
        let answers = answers.map_err(|e| Failure::of_connecting(node, start.elapsed(), e));
        let (answer, state) = answers?;
        Ok(Named::new(master(&self.at, node, answer)?, state, start))
    }

    /// The master that the first Sentinel to answer knows.
    fn ask_sentinels(&mut self) -> Result<Named, Failure> {
        let mut failure = None;
        for node in self.topology.informants() {
            match self.ask_sentinel(&node) {
                Ok(named) => {
                    self.topology.prefer(&node);
                    return Ok(named);
                }
                Err(other) => failure = Some(other.at(&node)),
            }
        }
        Err(failure.unwrap_or_else(Failure::nobody_answers))
    }

    fn learn_from(&mut self, node: &Address) -> Result<(), Failure> {
        let start = Instant::now();
        let slots = cmd("CLUSTER").arg("SLOTS").take();
        let until = start + self.options.response_timeout;
        let asked = if self.connections.contains_key(node) {
            // A connection of its own: answers may be on their way over this.
            let (mut connection, _) = self.connect(node)?;
            connection.expect(until, SLOTS_ANSWER);
            connection.ask(&slots)
        } else {
            let to = &mut self.connection(node)?.connection;
            to.expect(until, SLOTS_ANSWER);
            to.ask(&slots)
        };
        let value = asked.map_err(|e| {
            self.connections.remove(node);
            Failure::of_connecting(node, start.elapsed(), e)
        })?;
        match self.topology.learn(&answer(value)?, node) {
            Some(()) => Ok(()),
            None => Err(Failure::nobody_answers()),
        }
    }

    fn send_to(
        &mut self,
        node: &Address,
        places: &[usize],
        requests: &[&Request],
        wait: Wait,
    ) -> Result<Sent, Failure> {
        let may_lag = asks_for_lag(&self.at, &self.options);
        let asks_for_lag = may_lag && self.connection(node)?.trust.is_due();
        let size = |place: &usize| requests[*place].packed.bytes.len();
        let mut bytes = Vec::with_capacity(places.iter().map(size).sum::<usize>() + 128);
        if asks_for_lag {
            ask_for_lag().write_packed_command(&mut bytes);
        }
        let mut expected = Vec::with_capacity(places.len());
        for &place in places {
            let Request { packed, ask, .. } = requests[place];
            match ask {
                None => bytes.extend_from_slice(&packed.bytes),
                Some(_) => {
                    for command in packed.unpack() {
                        cmd("ASKING").write_packed_command(&mut bytes);
                        command.write_packed_command(&mut bytes);
                    }
                }
            }
            expected.push(Expected::of(place, requests[place]));
        }
        let wait = wait_for(&expected, wait);
        if let Some((replicas, time)) = wait {
            cmd("WAIT")
                .arg(replicas)
                .arg(time.as_millis() as u64)
                .write_packed_command(&mut bytes);
        }
        if asks_for_role(&self.at) {
            cmd("ROLE").write_packed_command(&mut bytes);
        }
        let command = places.first().map(|place| requests[*place].command());
        let command = command.unwrap_or_default();
        let sending = places.iter().map(|place| requests[*place]);
        let allowance = Allowance::of(sending, wait, &self.options);
        let sending_for = self.options.response_timeout + transfer(bytes.len() as u64);
        let to = self.connection(node)?;
        let at = Instant::now();
        let (number, batch) = (to.number, to.sent);
        to.sent += 1;
        to.flying += allowance.bytes;
        if let Err(error) = to.connection.send(&bytes, at + sending_for) {
            self.connections.remove(node);
            return Err(Failure::lost(node, &command, at.elapsed(), error));
        }
        Ok(Sent {
            node: node.clone(),
            number,
            batch,
            requests: expected,
            wait: wait.map(|(replicas, _)| replicas),
            asks_for_lag,
            allowance,
            command,
            at,
        })
    }

    fn receive_from(&mut self, sent: &Sent, outcomes: &mut [Option<Outcome>]) {
        let mut broken = None;
        match self.connections.get_mut(&sent.node) {
            Some(from) if from.number == sent.number && from.received == sent.batch => {
                from.received += 1;
                let until = Instant::now() + sent.allowance.time;
                from.connection.expect(until, from.flying);
                from.flying -= sent.allowance.bytes;
            }
            _ => {
                self.connections.remove(&sent.node);
            }
        }
        let mut distrust = None;
        if sent.asks_for_lag {
            match self.next_answer(sent) {
                Err(lost) => broken = Some(lost),
                Ok(info) => {
                    let from = self.connections.get_mut(&sent.node);
                    let heard = from.map(|from| from.trust.heard(&info, &self.options));
                    distrust = heard.and_then(Result::err);
                }
            }
        }
        for expected in &sent.requests {
            let outcome = match &broken {
                None => self.receive_one(sent, expected.answers, expected.asking),
                Some(reason) => Err(Failure::Lost(Reason::clone(reason))),
            };
            if let Err(Failure::Lost(error)) = &outcome {
                broken = Some(error.clone());
            }
            outcomes[expected.place] = Some(outcome.map_err(|failure| failure.at(&sent.node)));
        }
        if let Some(wanted) = sent.wait {
            let failure = match self.next_unless(sent, broken.as_ref()) {
                Ok(Value::Int(got)) if got >= wanted.into() => None,
                Ok(Value::Int(got)) => Some(Failure::FewReplicas(got)),
                Ok(_) => Some(Failure::FewReplicas(0)),
                Err(failure) => Some(failure),
            };
            if let Some(failure) = failure {
                not_replicated(&sent.requests, outcomes, &failure);
            }
        }
        if let Some(reason) = distrust {
            distrusted(&sent.requests, outcomes, &sent.node, &reason);
        }
        if asks_for_role(&self.at) {
            match self.next_unless(sent, broken.as_ref()) {
                Ok(role) if is_replica(&role) => {
                    self.connections.remove(&sent.node);
                    answered_by_replica(&sent.requests, outcomes, &sent.node);
                }
                // Without its answer the others may be a replica's.
                Err(Failure::Lost(_)) => answered_by_replica(&sent.requests, outcomes, &sent.node),
                _ => self.confirm_master(sent, outcomes),
            }
        }
    }

    /// Has the Sentinels confirm a node that they may have replaced.
    fn confirm_master(&mut self, sent: &Sent, outcomes: &mut [Option<Outcome>]) {
        let trust = |this: &mut Self, change: &dyn Fn(&mut Trust)| {
            if let Some(from) = this.connections.get_mut(&sent.node) {
                change(&mut from.trust);
            }
        };
        let from = self.connections.get(&sent.node);
        let doubt = from.map_or(Doubt::No, |from| from.trust.doubt());
        if doubt == Doubt::No {
            return trust(self, &|trust| trust.believed(sent.at));
        }
        let named = self.ask_sentinels().ok();
        match (&named, doubt) {
            (Some(named), _) if named.confirms(&sent.node) => {
                trust(self, &|trust| trust.named(named.when));
            }
            (None, Doubt::Some) => trust(self, &|trust| trust.believed(sent.at)),
            _ => {
                self.connections.remove(&sent.node);
                answered_by_another(&sent.requests, outcomes, &sent.node, named.as_ref());
                if let Some(named) = named {
                    self.topology.follow(named.master);
                }
            }
        }
    }

    /// The next answer, an error among them; the reason, if there is none.
    fn next_answer(&mut self, sent: &Sent) -> Result<Value, Reason> {
        match self.read(sent) {
            Ok(value) => Ok(value),
            Err(Failure::Lost(reason)) => Err(reason),
            Err(_) => Ok(Value::Nil),
        }
    }

    /// The next answer, unless the connection is broken.
    fn next_unless(&mut self, sent: &Sent, broken: Option<&Reason>) -> Result<Value, Failure> {
        match broken {
            None => self.read(sent),
            Some(reason) => Err(Failure::Lost(Reason::clone(reason))),
        }
    }

    /// Reads all answers of a request, also behind one that is an error.
    fn receive_one(&mut self, sent: &Sent, answers: usize, asking: bool) -> Outcome {
        let mut values = Vec::with_capacity(answers);
        let mut failure = None;
        for _ in 0..answers {
            if asking {
                self.read(sent)?;
            }
            match self.read(sent) {
                Ok(value) => values.push(value),
                Err(lost @ Failure::Lost(_)) => return Err(lost),
                Err(other) => failure = failure.or(Some(other)),
            }
        }
        match failure {
            None => Ok(values),
            Some(failure) => Err(failure),
        }
    }

    fn read(&mut self, sent: &Sent) -> Result<Value, Failure> {
        let Some(from) = self.connections.get_mut(&sent.node) else {
            return Err(Failure::Lost(Reason::of("the connection was given up")));
        };
        match from.connection.receive() {
            Ok(value) => answer(value),
            Err(error) => {
                // A late answer must not be taken for that of a later request.
                self.connections.remove(&sent.node);
                let waited = sent.at.elapsed();
                Err(Failure::lost(&sent.node, &sent.command, waited, error))
            }
        }
    }
}

impl Link for Blocking {
    type Ticket = Ticket;

    async fn send(&mut self, requests: &[&Request], wait: Wait) -> Ticket {
        if self.process != std::process::id() {
            // Closes this process's ends only.
            self.connections.clear();
            self.process = std::process::id();
        }
        let (by_node, mut outcomes) = self.topology.by_node(requests);
        let mut sent = Vec::with_capacity(by_node.len());
        for (node, places) in by_node {
            match self.send_to(&node, &places, requests, wait) {
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
        if matches!(self.at.reach(), Reach::Server | Reach::Socket) {
            return Ok(());
        }
        if self.at.service().is_some() {
            let named = self.ask_sentinels()?;
            self.topology.follow(named.master);
            return Ok(());
        }
        let mut failure = None;
        for node in self.topology.informants() {
            match self.learn_from(&node) {
                Ok(()) => return Ok(()),
                Err(other) => failure = Some(other.at(&node)),
            }
        }
        Err(failure.unwrap_or_else(Failure::nobody_answers))
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
    /// Looks at everything on these servers.
    pub fn of(servers: &Servers, options: &Options) -> Result<Self, Error> {
        let link = Blocking::new(servers.location(), options);
        now(engine::survey::survey(link, servers, options))
    }

    /// Deletes orphans that nobody has used for an hour ([`IDLE`](Self::IDLE))
    /// and that don't expire by themselves. It checks each again first, and the
    /// filter with its name, so that nothing is deleted that has come to life
    /// since. Returns the deleted ones.
    pub fn collect(&self, options: &Options) -> Result<Vec<Orphan>, Error> {
        let orphans: Vec<Orphan> = self.collectable().cloned().collect();
        let link = Blocking::new(self.servers.location(), options);
        now(engine::survey::collect(link, &orphans, Self::IDLE, options))
    }
}
