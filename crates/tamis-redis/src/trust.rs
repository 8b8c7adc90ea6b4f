//! Which servers are believed: not a replica that has lost its master, nor a
//! master that the Sentinels have replaced.

use crate::address::Address;
use crate::failure::{Failure, Reason};
use crate::location::Reach;
use crate::role::ServerRole;
use crate::{Location, Options};
use redis::{Cmd, Value};
use std::time::{Duration, Instant};

/// A master that has stepped down keeps its connections for a while, and answers
/// from what it had, or from nothing while it copies the new one. Sentinels
/// announce nothing, so each batch ends with the question what the server is.
pub(crate) fn asks_for_role(at: &Location) -> bool {
    at.service().is_some()
}

/// A replica that has lost its master answers all the same, from what it had:
/// "no" to every key since. And a replica may be writable (`replica-read-only
/// no`): it confirms keys that its master never gets. A cluster's replicas answer
/// nobody, and Sentinels name masters.
pub(crate) fn asks_for_lag(at: &Location, options: &Options) -> bool {
    let any_will_do = options.allow_stale && options.allow_replica_writes;
    matches!(at.reach(), Reach::Server | Reach::Socket) && !any_will_do
}

/// What is asked of such a server before all else: what it answers then is no
/// older.
pub(crate) fn ask_for_lag() -> Cmd {
    command!("INFO", "replication")
}

/// A master is asked again after so long whether it still is one. A replica is
/// asked each time.
const ROLE_HOLDS_FOR: Duration = Duration::from_secs(1);
/// A master that has not answered for so long may have stood still, while the
/// Sentinels made another: they are asked before it is believed. They wait for
/// longer than this before they do (`down-after-milliseconds`).
const STANDSTILL: Duration = Duration::from_secs(1);
/// Sentinels are asked so often in any case: they may see another master where
/// the network has come apart.
const SENTINELS_ASKED: Duration = Duration::from_secs(5);

/// What is known of the node at the other end of a connection, and since when.
#[derive(Clone, Debug)]
pub(crate) struct Trust {
    /// What it is, if it is a replica.
    replica: Option<ServerRole>,
    role_asked: Instant,
    /// When a request was sent that it answered as the master, whom Sentinels
    /// knew.
    alive: Option<Instant>,
    /// When Sentinels last said so.
    named: Option<Instant>,
}

/// Whether Sentinels must be asked before a node is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    No,
    /// If they answer, they decide.
    Some,
    /// And if nobody answers, it is not believed.
    Great,
}

impl Trust {
    pub(crate) fn new() -> Self {
        Self {
            replica: None,
            role_asked: Instant::now(),
            alive: None,
            named: None,
        }
    }

    /// Whether the next batch begins with the question for the role.
    pub(crate) fn is_due(&self) -> bool {
        self.replica.is_some() || self.role_asked.elapsed() >= ROLE_HOLDS_FOR
    }

    /// Takes in the answer, or does not believe the server.
    pub(crate) fn heard(&mut self, info: &Value, options: &Options) -> Result<(), Reason> {
        self.role_asked = Instant::now();
        let Some(role) = role_of(info) else {
            // The user may not ask.
            return Ok(());
        };
        let distrust = role.distrust(options);
        self.replica = matches!(role, ServerRole::Replica { .. }).then_some(role);
        match distrust {
            Some(reason) => Err(Reason::of(reason)),
            None => Ok(()),
        }
    }

    /// Why nothing is written there, if it is a replica.
    pub(crate) fn refusal(&self, options: &Options) -> Option<Reason> {
        let role = self.replica.as_ref()?;
        role.refusal(options).map(Reason::of)
    }

    /// Whether what was sent then, and has been answered now, may be the answer
    /// of a master that is none any more.
    pub(crate) fn doubt(&self) -> Doubt {
        let within = |time: Option<Instant>, most| time.is_some_and(|at| at.elapsed() < most);
        if !within(self.alive, STANDSTILL) {
            Doubt::Great
        } else if within(self.named, SENTINELS_ASKED) {
            Doubt::No
        } else {
            Doubt::Some
        }
    }

    /// Whether a node is believed that is in doubt, by what the Sentinels say.
    pub(crate) fn is_confirmed(
        &mut self,
        node: &Address,
        doubt: Doubt,
        named: Option<&Named>,
        sent: Instant,
    ) -> bool {
        match named {
            Some(named) if named.confirms(node) => self.named(named.when),
            None if doubt != Doubt::Great => self.believed(sent),
            _ => return false,
        }
        true
    }

    /// It is believed: it has answered what was sent then.
    pub(crate) fn believed(&mut self, sent: Instant) {
        self.alive = self.alive.max(Some(sent));
    }

    /// Sentinels have said, at this time or later, that it is the master.
    fn named(&mut self, when: Instant) {
        self.named = Some(when);
        self.believed(when);
    }
}

/// What `INFO replication` says, if the user may ask.
pub(crate) fn role_of(info: &Value) -> Option<ServerRole> {
    match info {
        Value::BulkString(bytes) => ServerRole::of_info(&String::from_utf8_lossy(bytes)),
        Value::VerbatimString { text, .. } => ServerRole::of_info(text),
        _ => None,
    }
}

/// Whether a server that says so of itself is no master. One that does not let
/// the user ask is taken for one.
pub(crate) fn is_replica(role: &Value) -> bool {
    matches!(role, Value::Array(role) if !is_text(role.first(), "master"))
}

/// What a new connection begins with: its name, for `CLIENT LIST`, and the
/// question what the node is, where that matters.
pub(crate) fn greeting(at: &Location, options: &Options) -> Vec<Cmd> {
    let plain = |c: char| if c.is_ascii_graphic() { c } else { '_' };
    let name: String = at.name().chars().map(plain).collect();
    let mut greeting = vec![command!("CLIENT", "SETNAME", format!("tamis:{name}"))];
    if asks_for_role(at) {
        greeting.push(command!("ROLE"));
    } else if asks_for_lag(at, options) {
        greeting.push(ask_for_lag());
    }
    greeting
}

/// Whether a node that answers so is one to talk to, and what is known of it. A
/// name is no condition, nor is the role if the user may not ask for it.
pub(crate) fn welcomed(
    at: &Location,
    options: &Options,
    answers: Vec<Value>,
) -> Result<Trust, Failure> {
    match answers.into_iter().nth(1) {
        // A server that does not know the command does not say, either.
        Some(Value::ServerError(error)) if !matches!(error.code(), "NOPERM" | "ERR") => {
            Err(Failure::of_answer(error.into()))
        }
        Some(role) if asks_for_role(at) && is_replica(&role) => Err(Failure::NotNow(Reason::of(
            "a replica, not the master any more",
        ))),
        role => {
            let mut trust = Trust::new();
            if let Some(role) = role
                && asks_for_lag(at, options)
            {
                trust.heard(&role, options).map_err(Failure::NotNow)?;
            }
            Ok(trust)
        }
    }
}

fn is_text(value: Option<&Value>, text: &str) -> bool {
    match value {
        Some(Value::BulkString(bytes)) => bytes == text.as_bytes(),
        Some(Value::SimpleString(simple)) => simple == text,
        _ => false,
    }
}

/// The question for a Sentinel.
pub(crate) fn who_is_master(at: &Location) -> Cmd {
    command!("SENTINEL", "GET-MASTER-ADDR-BY-NAME", at.service())
}

/// Its answer.
pub(crate) fn master(at: &Location, sentinel: &Address, answer: Value) -> Result<Address, Failure> {
    let address = redis::from_redis_value::<Option<(String, u16)>>(answer);
    match address {
        Ok(Some((host, port))) => Ok(Address::Tcp { host, port }),
        _ => {
            let service = at.service().unwrap_or_default();
            let unknown = Reason::of(format!("this Sentinel knows no master called {service}"));
            Err(Failure::Refused(unknown).at(sentinel))
        }
    }
}

/// The question for a Sentinel how the master is.
pub(crate) fn how_is_master(at: &Location) -> Cmd {
    command!("SENTINEL", "MASTER", at.service())
}

/// What a Sentinel knows of the master.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) master: Address,
    /// It knew this then, or later.
    pub(crate) when: Instant,
    /// It answers the Sentinel, and is not about to be replaced.
    well: bool,
}

impl Named {
    /// From the two answers. A Sentinel that does not let us ask how the master
    /// is says at least who.
    pub(crate) fn new(master: Address, state: Option<Value>, when: Instant) -> Self {
        type Fields = std::collections::HashMap<String, String>;
        let state = state.and_then(|state| redis::from_redis_value::<Fields>(state).ok());
        let ill = |flags: &String| flags.contains("down") || flags.contains("failover");
        let flags = state.as_ref().and_then(|state| state.get("flags"));
        Self {
            master,
            when,
            well: !flags.is_some_and(ill),
        }
    }

    /// Whether this is the node, and nothing speaks against it.
    pub(crate) fn confirms(&self, node: &Address) -> bool {
        self.well && self.master == *node
    }
}
