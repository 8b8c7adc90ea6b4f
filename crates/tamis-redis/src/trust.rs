//! Which servers we believe: not a replica that has lost its master, nor a
//! master that the Sentinels have replaced.

use crate::address::Address;
use crate::failure::{Failure, Reason};
use crate::location::Reach;
use crate::role::ServerRole;
use crate::{Location, Options};
use redis::{Cmd, Value};
use std::time::{Duration, Instant};

/// A former master keeps its connections for a while. It answers from its old
/// data, or from nothing while it copies the new master. Sentinels don't
/// announce a change, so each batch ends by asking for the server's role.
pub(crate) fn asks_for_role(at: &Location) -> bool {
    at.service().is_some()
}

/// A replica that has lost its master still answers, from old data: "no" to
/// every key added since. And a writable replica (`replica-read-only no`)
/// confirms keys that its master never gets. A cluster's replicas refuse
/// commands, and Sentinels name masters, so those need no check.
pub(crate) fn asks_for_lag(at: &Location, options: &Options) -> bool {
    let any_will_do = options.allow_stale && options.allow_replica_writes;
    matches!(at.reach(), Reach::Server | Reach::Socket) && !any_will_do
}

/// Sent before all other commands of a batch: their answers are then at least
/// as recent.
pub(crate) fn ask_for_lag() -> Cmd {
    command!("INFO", "replication")
}

/// How long a master's role holds before we ask again. Replicas are asked each
/// time.
const ROLE_HOLDS_FOR: Duration = Duration::from_secs(1);
/// A master that hasn't answered for this long may have been stalled while the
/// Sentinels replaced it, so we ask them before believing it. They wait longer
/// than this before they act (`down-after-milliseconds`).
const STANDSTILL: Duration = Duration::from_secs(1);
/// Sentinels are asked at least this often: in a network partition they may see
/// another master.
const SENTINELS_ASKED: Duration = Duration::from_secs(5);

/// What we know of a connection's node, and since when.
#[derive(Clone, Debug)]
pub(crate) struct Trust {
    /// Its role, if it is a replica.
    replica: Option<ServerRole>,
    role_asked: Instant,
    /// When we sent the last request that it answered as a confirmed master.
    alive: Option<Instant>,
    /// When Sentinels last named it.
    named: Option<Instant>,
}

/// Whether Sentinels must be asked before a node is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    No,
    /// If Sentinels answer, they decide.
    Some,
    /// Without an answer from Sentinels, the node isn't believed.
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

    /// Whether the next batch begins by asking for the role.
    pub(crate) fn is_due(&self) -> bool {
        self.replica.is_some() || self.role_asked.elapsed() >= ROLE_HOLDS_FOR
    }

    /// Records the answer; an error if we don't believe the server.
    pub(crate) fn heard(&mut self, info: &Value, options: &Options) -> Result<(), Reason> {
        self.role_asked = Instant::now();
        let Some(role) = role_of(info) else {
            // The user isn't allowed to ask.
            return Ok(());
        };
        let distrust = role.distrust(options);
        self.replica = matches!(role, ServerRole::Replica { .. }).then_some(role);
        match distrust {
            Some(reason) => Err(Reason::of(reason)),
            None => Ok(()),
        }
    }

    /// Why we don't write to it, if it is a replica.
    pub(crate) fn refusal(&self, options: &Options) -> Option<Reason> {
        let role = self.replica.as_ref()?;
        role.refusal(options).map(Reason::of)
    }

    /// Whether the answers to the latest requests may come from a former
    /// master.
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

    /// Whether the Sentinels' answer settles the doubt about a node.
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

    /// Records that it answered a request sent at this time, and is believed.
    pub(crate) fn believed(&mut self, sent: Instant) {
        self.alive = self.alive.max(Some(sent));
    }

    /// Records that Sentinels named it the master at this time or later.
    fn named(&mut self, when: Instant) {
        self.named = Some(when);
        self.believed(when);
    }
}

/// Reads `INFO replication`, if the user is allowed to ask.
pub(crate) fn role_of(info: &Value) -> Option<ServerRole> {
    match info {
        Value::BulkString(bytes) => ServerRole::of_info(&String::from_utf8_lossy(bytes)),
        Value::VerbatimString { text, .. } => ServerRole::of_info(text),
        _ => None,
    }
}

/// Whether a server calls itself something else than a master. If the user
/// isn't allowed to ask, it counts as a master.
pub(crate) fn is_replica(role: &Value) -> bool {
    matches!(role, Value::Array(role) if !is_text(role.first(), "master"))
}

/// The first commands on a new connection: its name, for `CLIENT LIST`, and
/// where it matters the question for the role.
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

/// Whether the answers to the greeting let us use a node, and what they say of
/// it. The name may fail, and so may the role if the user isn't allowed to ask.
pub(crate) fn welcomed(
    at: &Location,
    options: &Options,
    answers: Vec<Value>,
) -> Result<Trust, Failure> {
    match answers.into_iter().nth(1) {
        // A server that doesn't know the command can't say, either.
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

/// Asks a Sentinel for the master.
pub(crate) fn who_is_master(at: &Location) -> Cmd {
    command!("SENTINEL", "GET-MASTER-ADDR-BY-NAME", at.service())
}

/// Reads a Sentinel's answer.
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

/// Asks a Sentinel for the master's state.
pub(crate) fn how_is_master(at: &Location) -> Cmd {
    command!("SENTINEL", "MASTER", at.service())
}

/// A Sentinel's view of the master.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) master: Address,
    /// The Sentinel's view is at least as recent as this.
    pub(crate) when: Instant,
    /// Whether it answers the Sentinel and isn't about to be replaced.
    well: bool,
}

impl Named {
    /// Combines the two answers. A Sentinel that doesn't let us ask for the
    /// state at least names the master.
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

    /// Whether it names this node as a healthy master.
    pub(crate) fn confirms(&self, node: &Address) -> bool {
        self.well && self.master == *node
    }
}
