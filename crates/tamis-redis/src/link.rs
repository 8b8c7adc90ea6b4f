//! What is sent to the servers, who gets it, and what may come back. Nothing
//! here does input or output: the two ways to do that are in `blocking` and
//! `aio`.

use redis::{Cmd, ConnectionAddr, ConnectionInfo, ErrorKind, RedisError, ServerErrorKind, Value};
use std::fmt;
use std::time::Duration;

use crate::chunks::SLOTS;
use crate::packed::Packed;
use crate::{Location, Options};

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
        }
    }

    /// The same, taken as done only when replicas have it. Its last command
    /// must change something: `WAIT` waits for the last write of a connection,
    /// and one that changes nothing is none.
    pub(crate) const fn replicated(mut self) -> Self {
        self.replicated = true;
        self
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

/// Why a request was not answered.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// Not executed: the slot is at another node.
    Moved(Address),
    /// Not executed: the key is on its way to another node.
    Ask(Address),
    /// Not executed, but may be soon.
    NotNow(RedisError),
    /// Sent, and no answer came: executed or not.
    Lost(RedisError),
    /// Executed, but not by as many replicas as asked for.
    FewReplicas(i64),
    /// Not executed, and will not be.
    Refused(RedisError),
}

impl Failure {
    /// What an error that came as an answer means.
    pub(crate) fn of_answer(error: RedisError) -> Self {
        use ServerErrorKind as Kind;
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
            ) => Self::NotNow(error),
            // A script is running, or too few replicas are there to write.
            _ if matches!(error.code(), Some("BUSY" | "NOREPLICAS")) => Self::NotNow(error),
            _ => Self::Refused(error),
        }
    }

    /// Of a cluster none of whose nodes knows it.
    pub(crate) fn nobody_answers() -> Self {
        Self::NotNow(std::io::Error::other("no node answers CLUSTER SLOTS").into())
    }

    /// Why connecting failed: before anything was sent.
    pub(crate) fn of_connecting(error: RedisError) -> Self {
        let hopeless = error.kind() == ErrorKind::AuthenticationFailed
            || error.kind() == ErrorKind::InvalidClientConfig
            || matches!(error.code(), Some("NOAUTH" | "WRONGPASS" | "NOPERM"));
        match hopeless {
            true => Self::Refused(error),
            false => match Self::of_answer(error) {
                Self::Refused(error) if !error.is_io_error() => Self::Refused(error),
                Self::Refused(error) => Self::NotNow(error),
                other => other,
            },
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Moved(node) | Self::Ask(node) => write!(f, "the slot moves to {node}"),
            Self::NotNow(error) | Self::Refused(error) => error.fmt(f),
            Self::Lost(error) => write!(f, "no answer came: {error}"),
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

/// A node's host and port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Address {
    /// Of `host:port`; IPv6 hosts come without brackets.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        Some(Self {
            host: host.trim_matches(['[', ']']).to_owned(),
            port: port.parse().ok()?,
        })
    }

    fn of(info: &ConnectionInfo) -> Option<Self> {
        match info.addr() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                Some(Self {
                    host: host.clone(),
                    port: *port,
                })
            }
            _ => None,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
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
            nodes: seeds.clone(),
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

    fn owner(&self, slot: u16) -> Option<&Address> {
        self.nodes.get(usize::from(self.owners[usize::from(slot)]))
    }

    /// Sorts requests by the nodes that they go to; what goes nowhere has
    /// its outcome.
    pub(crate) fn by_node(&self, requests: &[&Request]) -> (ByNode, Vec<Option<Outcome>>) {
        let mut outcomes: Vec<Option<Outcome>> = vec![None; requests.len()];
        let mut by_node: ByNode = Vec::new();
        for (place, request) in requests.iter().enumerate() {
            let Some(node) = request.ask.as_ref().or(self.owner(request.slot)) else {
                let error = std::io::Error::other("no node of the cluster has this slot");
                outcomes[place] = Some(Err(Failure::NotNow(error.into())));
                continue;
            };
            match by_node.iter_mut().find(|(known, _)| known == node) {
                Some((_, places)) => places.push(place),
                None => by_node.push((node.clone(), vec![place])),
            }
        }
        (by_node, outcomes)
    }

    /// The nodes that have these slots, each with one of its slots.
    pub(crate) fn nodes_of(&self, slots: &[u16]) -> Vec<(u16, Address)> {
        let mut nodes: Vec<(u16, Address)> = Vec::new();
        for slot in slots {
            if let Some(node) = self.owner(*slot)
                && nodes.iter().all(|(_, known)| known != node)
            {
                nodes.push((*slot, node.clone()));
            }
        }
        nodes
    }

    /// Whom to ask who has which slots: those known, then those named.
    pub(crate) fn informants(&self) -> Vec<Address> {
        let mut all = self.nodes.clone();
        all.extend(
            self.seeds
                .iter()
                .filter(|seed| !self.nodes.contains(seed))
                .cloned(),
        );
        all
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
            let node = Address {
                // A node that does not know its own name is where we found it.
                host: match host {
                    "" | "?" => informant.host.clone(),
                    host => host.to_owned(),
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
pub(crate) fn client(
    at: &Location,
    node: &Address,
    options: &Options,
) -> Result<redis::Client, RedisError> {
    let like = &at.nodes()[0];
    let addr = match like.addr() {
        ConnectionAddr::TcpTls {
            insecure,
            tls_params,
            ..
        } => ConnectionAddr::TcpTls {
            host: node.host.clone(),
            port: node.port,
            insecure: *insecure || options.insecure,
            tls_params: tls_params.clone(),
        },
        _ => ConnectionAddr::Tcp(node.host.clone(), node.port),
    };
    if let ConnectionAddr::TcpTls { .. } = addr {
        // The first choice holds; a program that has made one keeps it.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    let info = like.clone().set_addr(addr);
    match options.certificates() {
        Some(certificates) if matches!(info.addr(), ConnectionAddr::TcpTls { .. }) => {
            redis::Client::build_with_tls(info, certificates)
        }
        _ => redis::Client::open(info),
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

    /// The nodes that have these slots, each with one of its slots.
    fn nodes_of(&self, slots: &[u16]) -> Vec<(u16, Address)>;

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
        assert_eq!(topology.owner(100).unwrap().host, "::1");

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
