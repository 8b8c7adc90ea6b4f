//! What is sent to the servers, who gets it, and what may come back. Nothing
//! here does input or output: the two ways to do that are in `blocking` and
//! `aio`.

use redis::{
    Cmd, ConnectionAddr, ConnectionInfo, ErrorKind, RedisConnectionInfo, RedisError,
    ServerErrorKind, Value,
};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::chunks::SLOTS;
use crate::location::{Reach, host_and_port};
use crate::packed::Packed;
use crate::role::ServerRole;
use crate::stats::Counters;
use crate::{Location, Options};

/// What the answers to any batch may hold, in bytes.
pub(crate) const SMALL: u64 = 1 << 20;
/// What the answer to `CLUSTER SLOTS` may hold: of every slot for itself, some
/// nodes.
pub(crate) const SLOTS_ANSWER: u64 = 1 << 24;
/// The least that a connection must carry: for so many bytes there is a second
/// more.
const BYTES_PER_SECOND: u64 = 1 << 20;

/// Commands for one slot, that are asked again together.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) slot: u16,
    pub(crate) packed: Packed,
    /// Whether to send it again when its answer was lost.
    pub(crate) again: Again,
    /// Whether replicas must have what it writes, if we wait for any.
    pub(crate) replicated: bool,
    /// Where to ask for once, while the slot moves there.
    pub(crate) ask: Option<Address>,
    /// How much its answers may be longer than itself, in bytes.
    pub(crate) more: u64,
}

/// Whether a request may be sent again when its answer was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// Twice is as good as once.
    Harmless,
    /// Twice is not once.
    Never,
}

impl Request {
    pub(crate) fn new(slot: u16, commands: &[Cmd]) -> Self {
        Self::packed(slot, commands.into())
    }

    pub(crate) const fn packed(slot: u16, packed: Packed) -> Self {
        Self {
            slot,
            packed,
            again: Again::Harmless,
            replicated: false,
            ask: None,
            more: 0,
        }
    }

    /// The same, whose answers hold so many bytes, or a little more.
    pub(crate) const fn answered_with(mut self, bytes: u64) -> Self {
        self.more = bytes;
        self
    }

    /// What its answers may hold, in bytes, beside what every batch may.
    const fn most(&self) -> u64 {
        self.more.saturating_add(self.packed.bytes.len() as u64)
    }

    /// The same, taken as done only when replicas have it. Its last command
    /// must change something: `WAIT` waits for the last write of a connection,
    /// and one that changes nothing is none.
    pub(crate) const fn replicated(mut self) -> Self {
        self.replicated = true;
        self
    }

    /// The name of the first command.
    pub(crate) fn command(&self) -> String {
        // `*arguments`, the name's length, the name.
        let mut lines = self.packed.bytes.split(|byte| *byte == b'\n');
        let name = lines.nth(2).unwrap_or_default();
        String::from_utf8_lossy(name.trim_ascii_end()).into_owned()
    }
}

/// The answers to a request, one for each command, or why there are none.
pub(crate) type Outcome = Result<Vec<Value>, Failure>;

/// What a request that was sent will be answered with.
pub(crate) struct Expected {
    /// Which of the requests.
    pub(crate) place: usize,
    pub(crate) answers: usize,
    /// With an answer to `ASKING` before each.
    pub(crate) asking: bool,
    pub(crate) replicated: bool,
}

impl Expected {
    pub(crate) const fn of(place: usize, request: &Request) -> Self {
        Self {
            place,
            answers: request.packed.commands,
            asking: request.ask.is_some(),
            replicated: request.replicated,
        }
    }
}

/// What the answers to a batch may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    pub(crate) time: Duration,
    pub(crate) bytes: u64,
}

impl Allowance {
    /// Of these requests, behind which replicas are waited for.
    pub(crate) fn of<'a>(
        requests: impl Iterator<Item = &'a Request>,
        wait: Wait,
        options: &Options,
    ) -> Self {
        let bytes = requests.fold(0, |sum: u64, request| sum.saturating_add(request.most()));
        let wait = wait.map_or(Duration::ZERO, |(_, time)| time);
        Self {
            time: options.response_timeout + wait + transfer(bytes),
            bytes: bytes.saturating_add(SMALL),
        }
    }
}

/// How long so many bytes may be on their way.
pub(crate) const fn transfer(bytes: u64) -> Duration {
    Duration::from_secs(bytes / BYTES_PER_SECOND)
}

/// What to wait for at a node that gets these requests.
pub(crate) fn wait_for(expected: &[Expected], wait: Wait) -> Wait {
    wait.filter(|_| expected.iter().any(|request| request.replicated))
}

/// Too few replicas, or none that said so: what needs them is not done.
pub(crate) fn not_replicated(
    expected: &[Expected],
    outcomes: &mut [Option<Outcome>],
    failure: &Failure,
) {
    for request in expected.iter().filter(|request| request.replicated) {
        let outcome = &mut outcomes[request.place];
        if matches!(outcome, Some(Ok(_))) {
            *outcome = Some(Err(failure.clone()));
        }
    }
}

/// A master that has stepped down keeps its connections for a while, and answers
/// from what it had, or from nothing while it copies the new one. Sentinels tell
/// nobody, so each batch ends with the question what the server is.
pub(crate) fn asks_for_role(at: &Location) -> bool {
    at.service().is_some()
}

/// A replica that has lost its master answers all the same, from what it had:
/// "no" to every key since. A cluster's replicas answer nobody, and Sentinels
/// name masters.
pub(crate) fn asks_for_lag(at: &Location, options: &Options) -> bool {
    matches!(at.reach(), Reach::Server | Reach::Socket) && !options.allow_stale
}

/// What is asked of such a server before all else: what it answers then is no
/// older.
pub(crate) fn ask_for_lag() -> Cmd {
    redis::cmd("INFO").arg("replication").take()
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
    replica: bool,
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
            replica: false,
            role_asked: Instant::now(),
            alive: None,
            named: None,
        }
    }

    /// Whether the next batch begins with the question for the role.
    pub(crate) fn is_due(&self) -> bool {
        self.replica || self.role_asked.elapsed() >= ROLE_HOLDS_FOR
    }

    /// Takes in the answer, or does not believe the server.
    pub(crate) fn heard(&mut self, info: &Value, options: &Options) -> Result<(), Reason> {
        self.role_asked = Instant::now();
        let Some(role) = role_of(info) else {
            // The user may not ask.
            return Ok(());
        };
        self.replica = role.is_replica();
        match role.distrust(options) {
            Some(reason) => Err(Reason::of(reason)),
            None => Ok(()),
        }
    }

    /// Whether what was sent then, and has been answered now, may be the answer
    /// of a master that is none any more.
    pub(crate) fn doubt(&self) -> Doubt {
        let within = |time: Option<Instant>, most| time.is_some_and(|at| at.elapsed() < most);
        match within(self.alive, STANDSTILL) {
            false => Doubt::Great,
            true if within(self.named, SENTINELS_ASKED) => Doubt::No,
            true => Doubt::Some,
        }
    }

    /// It is believed: it has answered what was sent then.
    pub(crate) fn believed(&mut self, sent: Instant) {
        self.alive = self.alive.max(Some(sent));
    }

    /// Sentinels have said, at this time or later, that it is the master.
    pub(crate) fn named(&mut self, when: Instant) {
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

/// What a node has answered that Sentinels don't call the master counts for
/// nothing, and what it has executed may be lost.
pub(crate) fn answered_by_another(
    expected: &[Expected],
    outcomes: &mut [Option<Outcome>],
    node: &Address,
    named: Option<&Named>,
) {
    let reason = match named {
        Some(named) if named.master != *node => {
            format!("the Sentinels call {} the master", named.master)
        }
        _ => "no Sentinel confirms that it is still the master".into(),
    };
    distrusted(expected, outcomes, node, &Reason::of(reason));
}

/// Whether a server that says so of itself is no master. One that does not let
/// the user ask is taken for one.
pub(crate) fn is_replica(role: &Value) -> bool {
    matches!(role, Value::Array(role) if !is_text(role.first(), "master"))
}

/// What a server has answered that is not to be believed counts for nothing.
/// Something may have been executed all the same: replicas can be writable.
pub(crate) fn distrusted(
    expected: &[Expected],
    outcomes: &mut [Option<Outcome>],
    node: &Address,
    reason: &Reason,
) {
    for request in expected {
        let outcome = &mut outcomes[request.place];
        if matches!(outcome, Some(Ok(_) | Err(Failure::FewReplicas(_)))) {
            *outcome = Some(Err(Failure::Lost(reason.clone()).at(node)));
        }
    }
}

/// What a replica has answered counts for nothing; what it has executed as a
/// master, a moment before, may be lost.
pub(crate) fn answered_by_replica(
    expected: &[Expected],
    outcomes: &mut [Option<Outcome>],
    node: &Address,
) {
    let reason = Reason::of("a replica, not the master any more");
    distrusted(expected, outcomes, node, &reason);
}

/// Why a request was not answered.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// Not executed: the slot is at another node.
    Moved(Address),
    /// Not executed: the key is on its way to another node.
    Ask(Address),
    /// Not executed, but may be soon.
    NotNow(Reason),
    /// Sent, and no answer came: executed or not.
    Lost(Reason),
    /// Executed, but not by as many replicas as asked for.
    FewReplicas(i64),
    /// Not executed, and will not be.
    Refused(Reason),
}

/// What a node said, or why it said nothing.
#[derive(Clone, Debug)]
pub(crate) struct Reason {
    pub(crate) node: Option<Address>,
    pub(crate) error: RedisError,
}

impl Reason {
    /// Nobody's answer.
    pub(crate) fn of(text: impl Into<String>) -> Self {
        Self::from(RedisError::from(std::io::Error::other(text.into())))
    }

    /// In our words, which name the node.
    fn said(node: &Address, error: &RedisError, text: String) -> Self {
        use std::io::ErrorKind::{ConnectionRefused, ConnectionReset, Other, TimedOut};
        let kind = match error {
            error if error.is_timeout() => TimedOut,
            error if error.is_connection_refusal() => ConnectionRefused,
            error if error.is_connection_dropped() => ConnectionReset,
            _ => Other,
        };
        Self {
            node: Some(node.clone()),
            error: std::io::Error::new(kind, text).into(),
        }
    }
}

impl From<RedisError> for Reason {
    fn from(error: RedisError) -> Self {
        Self { node: None, error }
    }
}

/// With the node, once.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.error.to_string();
        match self.node.as_ref().map(Address::to_string) {
            Some(node) if !text.contains(&node) => write!(f, "{node}: {text}"),
            _ => f.write_str(&text),
        }
    }
}

/// A time as people say it.
fn time(time: Duration) -> String {
    match time.as_secs_f64() {
        short if short < 1.0 => format!("{:.0} ms", short * 1e3),
        long if long < 10.0 => format!("{}", (long * 10.0).round() / 10.0) + " s",
        long => format!("{long:.0} s"),
    }
}

impl Failure {
    /// Names the node that the failure came from.
    pub(crate) fn at(mut self, at: &Address) -> Self {
        if let Self::NotNow(reason) | Self::Lost(reason) | Self::Refused(reason) = &mut self {
            reason.node.get_or_insert_with(|| at.clone());
        }
        self
    }

    /// Sent so long ago, and no answer came.
    pub(crate) fn lost(node: &Address, command: &str, waited: Duration, error: RedisError) -> Self {
        let text = if error.is_timeout() {
            format!("no answer from {node} in {} to {command}", time(waited))
        } else if error.is_connection_dropped() {
            format!("{node} closed the connection before it answered {command}")
        } else {
            format!("{node} did not answer {command}: {error}")
        };
        Self::Lost(Reason::said(node, &error, text))
    }

    /// What an error that came as an answer means.
    pub(crate) fn of_answer(error: RedisError) -> Self {
        use ServerErrorKind as Kind;
        let reason = Reason::from(error.clone());
        let redirect = error
            .redirect_node()
            .and_then(|(node, _)| Address::parse(node));
        match (error.kind(), redirect) {
            (ErrorKind::Server(Kind::Moved), Some(node)) => Self::Moved(node),
            (ErrorKind::Server(Kind::Ask), Some(node)) => Self::Ask(node),
            (
                ErrorKind::Server(
                    Kind::BusyLoading
                    | Kind::TryAgain
                    | Kind::ClusterDown
                    | Kind::MasterDown
                    | Kind::ReadOnly,
                ),
                _,
            ) => Self::NotNow(reason),
            // A script is running, or too few replicas are there to write.
            _ if matches!(error.code(), Some("BUSY" | "NOREPLICAS")) => Self::NotNow(reason),
            _ => Self::Refused(reason),
        }
    }

    /// Of a cluster none of whose nodes knows it.
    pub(crate) fn nobody_answers() -> Self {
        Self::NotNow(Reason::of("no node answers CLUSTER SLOTS"))
    }

    /// Why connecting failed: before anything was sent.
    pub(crate) fn of_connecting(node: &Address, waited: Duration, error: RedisError) -> Self {
        let hopeless = error.kind() == ErrorKind::AuthenticationFailed
            || error.kind() == ErrorKind::InvalidClientConfig
            || matches!(error.code(), Some("NOAUTH" | "WRONGPASS" | "NOPERM"));
        if hopeless {
            return Self::Refused(error.into()).at(node);
        }
        if !error.is_io_error() {
            return Self::of_answer(error).at(node);
        }
        let text = match error.is_timeout() {
            true => format!("no connection to {node} in {}", time(waited)),
            false => format!("no connection to {node}: {error}"),
        };
        Self::NotNow(Reason::said(node, &error, text))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Moved(node) | Self::Ask(node) => write!(f, "the slot moves to {node}"),
            Self::NotNow(reason) | Self::Refused(reason) | Self::Lost(reason) => reason.fmt(f),
            Self::FewReplicas(got) => write!(f, "only {got} replicas have them"),
        }
    }
}

/// Takes one answer apart.
pub(crate) fn answer(value: Value) -> Result<Value, Failure> {
    match value {
        Value::ServerError(error) => Err(Failure::of_answer(error.into())),
        value => Ok(value),
    }
}

/// Where a node is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Address {
    Tcp { host: String, port: u16 },
    Socket(PathBuf),
}

impl Address {
    /// Of `host:port`; IPv6 hosts come without brackets.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        Some(Self::Tcp {
            host: host.trim_matches(['[', ']']).to_owned(),
            port: port.parse().ok()?,
        })
    }

    fn of(info: &ConnectionInfo) -> Option<Self> {
        match info.addr() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                Some(Self::Tcp {
                    host: host.clone(),
                    port: *port,
                })
            }
            ConnectionAddr::Unix(path) => Some(Self::Socket(path.clone())),
            _ => None,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } => f.write_str(&host_and_port(host, port)),
            Self::Socket(path) => path.display().fmt(f),
        }
    }
}

/// The places of the requests for each node.
pub(crate) type ByNode = Vec<(Address, Vec<usize>)>;

/// Which node has which slots.
#[derive(Clone, Debug)]
pub(crate) struct Topology {
    cluster: bool,
    /// Those the user named.
    seeds: Vec<Address>,
    nodes: Vec<Address>,
    /// By slot, an index into `nodes`.
    owners: Vec<u16>,
}

const NOBODY: u16 = u16::MAX;

impl Topology {
    pub(crate) fn new(at: &Location) -> Self {
        let seeds: Vec<_> = at.nodes().iter().filter_map(Address::of).collect();
        Self {
            cluster: at.is_cluster(),
            nodes: match at.reach() {
                // The Sentinels will tell.
                Reach::Sentinel => Vec::new(),
                _ => seeds.clone(),
            },
            seeds,
            owners: match at.is_cluster() {
                true => vec![NOBODY; SLOTS.into()],
                false => vec![0; SLOTS.into()],
            },
        }
    }

    pub(crate) const fn is_cluster(&self) -> bool {
        self.cluster
    }

    pub(crate) fn owner(&self, slot: u16) -> Option<&Address> {
        self.nodes.get(usize::from(self.owners[usize::from(slot)]))
    }

    /// Sorts requests by the nodes that they go to; what goes nowhere has
    /// its outcome.
    pub(crate) fn by_node(&self, requests: &[&Request]) -> (ByNode, Vec<Option<Outcome>>) {
        let mut outcomes: Vec<Option<Outcome>> = vec![None; requests.len()];
        let mut by_node: ByNode = Vec::new();
        for (place, request) in requests.iter().enumerate() {
            let Some(node) = request.ask.as_ref().or(self.owner(request.slot)) else {
                let reason = match self.cluster {
                    true => "no node of the cluster has this slot",
                    false => "no Sentinel knows a master",
                };
                outcomes[place] = Some(Err(Failure::NotNow(Reason::of(reason))));
                continue;
            };
            match by_node.iter_mut().find(|(known, _)| known == node) {
                Some((_, places)) => places.push(place),
                None => by_node.push((node.clone(), vec![place])),
            }
        }
        (by_node, outcomes)
    }

    /// Whom to ask who has which slots: those known, then those named; or the
    /// Sentinels.
    pub(crate) fn informants(&self) -> Vec<Address> {
        if !self.cluster {
            return self.seeds.clone();
        }
        let mut all = self.nodes.clone();
        all.extend(
            self.seeds
                .iter()
                .filter(|seed| !self.nodes.contains(seed))
                .cloned(),
        );
        all
    }

    /// The nodes that have slots, each with the first of them.
    pub(crate) fn masters(&self) -> Vec<(Address, u16)> {
        let mut found: Vec<(Address, u16)> = Vec::new();
        for slot in 0..SLOTS {
            if let Some(owner) = self.owner(slot)
                && !found.iter().any(|(node, _)| node == owner)
            {
                found.push((owner.clone(), slot));
            }
        }
        found
    }

    /// Takes in which master the Sentinels know.
    pub(crate) fn follow(&mut self, master: Address) {
        self.nodes = vec![master];
    }

    /// Remembers where a slot has gone.
    pub(crate) fn moved(&mut self, slot: u16, to: Address) {
        let index = self.nodes.iter().position(|node| *node == to);
        let index = index.unwrap_or_else(|| {
            self.nodes.push(to);
            self.nodes.len() - 1
        });
        self.owners[usize::from(slot)] = index as u16;
    }

    /// Takes in the answer to `CLUSTER SLOTS`, which `informant` gave.
    pub(crate) fn learn(&mut self, answer: &Value, informant: &Address) -> Option<()> {
        let Value::Array(ranges) = answer else {
            return None;
        };
        let mut nodes: Vec<Address> = Vec::new();
        let mut owners = vec![NOBODY; SLOTS.into()];
        for range in ranges {
            let Value::Array(range) = range else {
                return None;
            };
            let [
                Value::Int(first),
                Value::Int(last),
                Value::Array(master),
                ..,
            ] = &range[..]
            else {
                return None;
            };
            let [host, Value::Int(port), ..] = &master[..] else {
                return None;
            };
            let host = match host {
                Value::BulkString(host) => str::from_utf8(host).ok()?,
                Value::SimpleString(host) => host,
                _ => "",
            };
            let node = Address::Tcp {
                // A node that does not know its own name is where we found it.
                host: match (host, informant) {
                    ("" | "?", Address::Tcp { host, .. }) => host.clone(),
                    _ => host.to_owned(),
                },
                port: u16::try_from(*port).ok()?,
            };
            let index = nodes
                .iter()
                .position(|known| *known == node)
                .unwrap_or_else(|| {
                    nodes.push(node);
                    nodes.len() - 1
                });
            let slots = usize::try_from(*first).ok()?..=usize::try_from(*last).ok()?;
            owners.get_mut(slots)?.fill(index as u16);
        }
        if nodes.is_empty() {
            return None;
        }
        (self.nodes, self.owners) = (nodes, owners);
        Some(())
    }
}

/// How to connect to a node: as to the first one that the user named.
pub(crate) fn way_to(at: &Location, node: &Address, options: &Options) -> ConnectionInfo {
    let settings = at.nodes()[0].redis_settings().clone();
    let settings = settings.set_lib_name("tamis", env!("CARGO_PKG_VERSION"));
    way_as(at, node, settings, options)
}

/// How to connect to a Sentinel, who has no databases and may have no users.
pub(crate) fn way_to_sentinel(
    at: &Location,
    node: &Address,
    authenticated: bool,
    options: &Options,
) -> ConnectionInfo {
    let settings = at.nodes()[0].redis_settings();
    let settings = match authenticated {
        true => settings.clone().set_db(0),
        false => RedisConnectionInfo::default(),
    };
    way_as(at, node, settings, options)
}

fn way_as(
    at: &Location,
    node: &Address,
    settings: RedisConnectionInfo,
    options: &Options,
) -> ConnectionInfo {
    let like = &at.nodes()[0];
    let addr = match (like.addr(), node) {
        (_, Address::Socket(path)) => ConnectionAddr::Unix(path.clone()),
        (ConnectionAddr::TcpTls { insecure, .. }, Address::Tcp { host, port }) => {
            ConnectionAddr::TcpTls {
                host: host.clone(),
                port: *port,
                insecure: *insecure || options.insecure,
                tls_params: None,
            }
        }
        (_, Address::Tcp { host, port }) => ConnectionAddr::Tcp(host.clone(), *port),
    };
    like.clone().set_addr(addr).set_redis_settings(settings)
}

/// The configuration of TLS, which takes a while to make: the system's
/// authorities are many.
#[derive(Default)]
pub(crate) struct Tls(OnceLock<Result<Arc<ClientConfig>, String>>);

impl Tls {
    /// For an address that needs it.
    pub(crate) fn for_way(
        &self,
        way: &ConnectionInfo,
        options: &Options,
    ) -> Result<Option<Arc<ClientConfig>>, RedisError> {
        let ConnectionAddr::TcpTls { insecure, .. } = way.addr() else {
            return Ok(None);
        };
        let made = self.0.get_or_init(|| {
            crate::tls::config(options, *insecure).map_err(|error| error.to_string())
        });
        match made {
            Ok(config) => Ok(Some(Arc::clone(config))),
            Err(reason) => Err(RedisError::from((
                ErrorKind::InvalidClientConfig,
                "TLS",
                reason.clone(),
            ))),
        }
    }
}

/// Whom the certificate must be for.
pub(crate) fn server_name(host: &str) -> std::io::Result<ServerName<'static>> {
    let name = ServerName::try_from(host.to_owned());
    name.map_err(|error| std::io::Error::other(format!("{host}: {error}")))
}

/// Says who we are, and which database we want.
pub(crate) fn introduction(way: &ConnectionInfo) -> Vec<Cmd> {
    let settings = way.redis_settings();
    let mut commands = Vec::new();
    let user = settings.username().unwrap_or("default");
    if settings.protocol().supports_resp3() {
        let mut hello = redis::cmd("HELLO");
        hello.arg(3);
        if let Some(password) = settings.password() {
            hello.arg("AUTH").arg(user).arg(password);
        }
        commands.push(hello);
    } else if let Some(password) = settings.password() {
        let mut auth = redis::cmd("AUTH");
        // Servers before users were invented take a password alone.
        if settings.username().is_some() {
            auth.arg(user);
        }
        commands.push(auth.arg(password).take());
    }
    if settings.db() != 0 {
        commands.push(redis::cmd("SELECT").arg(settings.db()).take());
    }
    commands
}

/// What a new connection begins with: its name, for `CLIENT LIST`, and the
/// question what the node is, where that matters.
pub(crate) fn greeting(at: &Location, options: &Options) -> Vec<Cmd> {
    let plain = |c: char| if c.is_ascii_graphic() { c } else { '_' };
    let name: String = at.name().chars().map(plain).collect();
    let mut greeting = vec![
        redis::cmd("CLIENT")
            .arg("SETNAME")
            .arg(format!("tamis:{name}"))
            .take(),
    ];
    if asks_for_role(at) {
        greeting.push(redis::cmd("ROLE"));
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
        Some(Value::ServerError(error)) if error.code() != "NOPERM" => {
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
    let mut command = redis::cmd("SENTINEL");
    command.arg("GET-MASTER-ADDR-BY-NAME").arg(at.service());
    command
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
    let mut command = redis::cmd("SENTINEL");
    command.arg("MASTER").arg(at.service());
    command
}

/// What a Sentinel knows of the master.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) master: Address,
    /// It answers the Sentinel, and is not about to be replaced.
    well: bool,
}

impl Named {
    /// From the two answers. A Sentinel that does not let us ask how the master
    /// is says at least who.
    pub(crate) fn new(master: Address, state: Option<Value>) -> Self {
        type Fields = std::collections::HashMap<String, String>;
        let state = state.and_then(|state| redis::from_redis_value::<Fields>(state).ok());
        let ill = |flags: &String| flags.contains("down") || flags.contains("failover");
        let flags = state.as_ref().and_then(|state| state.get("flags"));
        Self {
            master,
            well: !flags.is_some_and(ill),
        }
    }

    /// Whether this is the node, and nothing speaks against it.
    pub(crate) fn confirms(&self, node: &Address) -> bool {
        self.well && self.master == *node
    }
}

/// Replicas to wait for, and how long.
pub(crate) type Wait = Option<(u32, Duration)>;

/// A way to reach the servers. Requests that were sent are answered in the
/// order of their tickets.
pub(crate) trait Link: Send {
    /// What has been sent and not yet been received.
    type Ticket: Send;

    /// Sends requests, each to the node that has its slot, and waits there for
    /// the replicas of those that need them.
    fn send(
        &mut self,
        requests: &[&Request],
        wait: Wait,
    ) -> impl Future<Output = Self::Ticket> + Send;

    /// Receives the outcome of each request of a ticket.
    fn receive(&mut self, ticket: Self::Ticket) -> impl Future<Output = Vec<Outcome>> + Send;

    /// Asks who has which slots, if this is a cluster.
    fn learn(&mut self) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Remembers where a slot has gone.
    fn moved(&mut self, slot: u16, to: Address);

    fn is_cluster(&self) -> bool;

    /// The nodes that have slots, each with one of them.
    fn masters(&self) -> Vec<(Address, u16)>;

    /// Who has a slot, as far as we know.
    fn owner(&self, slot: u16) -> Option<Address>;

    fn counters(&self) -> &Arc<Counters>;

    fn pause(&self, time: Duration) -> impl Future<Output = ()> + Send;
}

/// Runs a future that never waits, as those of a link that blocks.
pub(crate) fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => unreachable!("a blocking link has its answers at once"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster() -> Topology {
        Topology::new(&"redis-cluster://a:1,b:2/x".parse().unwrap())
    }

    fn range(first: i64, last: i64, host: &str, port: i64) -> Value {
        let host = Value::BulkString(host.into());
        let master = Value::Array(vec![host, Value::Int(port), Value::BulkString("id".into())]);
        let replica = Value::Array(vec![Value::Nil, Value::Int(9)]);
        Value::Array(vec![Value::Int(first), Value::Int(last), master, replica])
    }

    #[test]
    fn slots_are_learnt_and_unlearnt() {
        let mut topology = cluster();
        let a = Address::parse("a:1").unwrap();
        assert_eq!(topology.owner(0), None);
        let answer = Value::Array(vec![range(0, 99, "", 7), range(200, 16383, "c", 8)]);
        topology.learn(&answer, &a).unwrap();
        assert_eq!(topology.owner(99).unwrap().to_string(), "a:7");
        assert_eq!(topology.owner(100), None);
        assert_eq!(topology.owner(16383).unwrap().to_string(), "c:8");
        // Those named are asked as well, lest all we know be gone.
        assert_eq!(topology.informants().len(), 4);
        topology.moved(100, Address::parse("[::1]:5").unwrap());
        assert_eq!(topology.owner(100).unwrap().to_string(), "[::1]:5");

        let request = |slot, ask: Option<&str>| Request {
            ask: ask.and_then(Address::parse),
            ..Request::new(slot, &[])
        };
        let requests = [
            request(0, None),
            request(150, None),
            request(1, Some("c:8")),
            request(2, None),
        ];
        let (by_node, outcomes) = topology.by_node(&requests.each_ref());
        let places: Vec<_> = by_node.iter().map(|(_, places)| places.clone()).collect();
        assert_eq!(places, [vec![0, 3], vec![2]]);
        assert!(matches!(outcomes[1], Some(Err(Failure::NotNow(_)))) && outcomes[0].is_none());
    }

    #[test]
    fn nonsense_is_not_learnt() {
        for answer in [
            Value::Nil,
            Value::Array(vec![]),
            Value::Array(vec![Value::Int(1)]),
            Value::Array(vec![range(0, 16384, "a", 1)]),
            Value::Array(vec![range(-1, 5, "a", 1)]),
            Value::Array(vec![range(9, 5, "a", 70_000)]),
        ] {
            let a = Address::parse("a:1").unwrap();
            assert!(cluster().learn(&answer, &a).is_none(), "{answer:?}");
        }
    }

    #[test]
    fn one_server_has_all_slots() {
        let topology = Topology::new(&"redis://a:1/x".parse().unwrap());
        assert_eq!(topology.owner(16383).unwrap().to_string(), "a:1");
    }

    #[test]
    fn errors_are_told_apart() {
        let of = |text: &str| {
            let bytes = format!("-{text}\r\n");
            answer(redis::parse_redis_value(bytes.as_bytes()).unwrap()).unwrap_err()
        };
        assert!(matches!(of("MOVED 7 h:1"), Failure::Moved(node) if node.to_string() == "h:1"));
        assert!(matches!(of("ASK 7 h:1"), Failure::Ask(_)));
        for text in [
            "LOADING x",
            "TRYAGAIN x",
            "CLUSTERDOWN x",
            "MASTERDOWN x",
            "READONLY x",
            "BUSY x",
        ] {
            assert!(matches!(of(text), Failure::NotNow(_)), "{text}");
        }
        for text in [
            "OOM x",
            "NOPERM x",
            "WRONGTYPE x",
            "NOAUTH x",
            "ERR x",
            "MOVED x",
        ] {
            assert!(matches!(of(text), Failure::Refused(_)), "{text}");
        }
    }
}
