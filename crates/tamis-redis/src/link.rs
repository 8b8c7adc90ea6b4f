//! What is sent to the servers, and what may come back. Nothing
//! here does input or output: the two ways to do that are in `blocking` and
//! `aio`.

use redis::{Cmd, ConnectionAddr, ConnectionInfo, ErrorKind, RedisError, ServerErrorKind, Value};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::Options;
use crate::location::host_and_port;
use crate::packed::Packed;
use crate::stats::Counters;

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
        // Waiting changes no certificate.
        let reason = error.to_string();
        if reason.contains("CertificateRequired") {
            let text = format!(
                "no connection to {node}: it asks clients for certificates; name yours and its key"
            );
            return Self::Refused(Reason::said(node, &error, text));
        }
        if reason.contains("invalid peer certificate") {
            let text = format!("no connection to {node}: {reason}");
            return Self::Refused(Reason::said(node, &error, text));
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

    pub(crate) fn of(info: &ConnectionInfo) -> Option<Self> {
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
