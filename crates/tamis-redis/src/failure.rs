//! Why a request has no answer, and whether it may be sent again.

use crate::address::Address;
use redis::{ErrorKind, RedisError, ServerErrorKind, Value};
use std::fmt;
use std::time::Duration;

/// The answers to a request, one for each command, or why there are none.
pub(crate) type Outcome = Result<Vec<Value>, Failure>;

/// Why a request was not answered.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// Not executed: the slot is at another node.
    Moved(Address),
    /// Not executed: the key is moving to another node.
    Ask(Address),
    /// Not executed, but may be soon.
    NotNow(Reason),
    /// Sent but not answered: may have been executed.
    Lost(Reason),
    /// Executed, but not by as many replicas as asked for.
    FewReplicas(i64),
    /// Not executed, and will not be.
    Refused(Reason),
}

/// A node's error, or why it sent none.
#[derive(Clone, Debug)]
pub(crate) struct Reason {
    pub(crate) node: Option<Address>,
    pub(crate) error: RedisError,
}

impl Reason {
    /// An error of our own, without a node.
    pub(crate) fn of(text: impl Into<String>) -> Self {
        Self::from(RedisError::from(std::io::Error::other(text.into())))
    }

    /// An error in our words, which name the node.
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

/// Names the node, unless the error does already.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.error.to_string();
        match self.node.as_ref().map(Address::to_string) {
            Some(node) if !text.contains(&node) => write!(f, "{node}: {text}"),
            _ => f.write_str(&text),
        }
    }
}

/// Formats a time for people.
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

    /// The error for a command without an answer.
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

    /// Classifies an error that came as an answer.
    pub(crate) fn of_answer(error: RedisError) -> Self {
        use ServerErrorKind as Kind;
        let reason = explained(&error).map_or_else(|| Reason::from(error.clone()), Reason::of);
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

    /// The error when no node of a cluster knows the slots.
    pub(crate) fn nobody_answers() -> Self {
        Self::NotNow(Reason::of("no node answers CLUSTER SLOTS"))
    }

    /// The error for a node whose cluster is empty.
    pub(crate) fn no_slots() -> Self {
        Self::NotNow(Reason::of(
            "its cluster has no slots: it was reset, or never set up",
        ))
    }

    /// The error when connecting failed, before anything was sent.
    pub(crate) fn of_connecting(node: &Address, waited: Duration, error: RedisError) -> Self {
        let hopeless = error.kind() == ErrorKind::AuthenticationFailed
            || error.kind() == ErrorKind::InvalidClientConfig
            || matches!(error.code(), Some("NOAUTH" | "WRONGPASS" | "NOPERM"));
        if hopeless {
            return Self::Refused(error.into()).at(node);
        }
        if error.kind() == ErrorKind::Parse {
            let text = format!(
                "{node} does not answer as a Redis server: another service has this port (HTTP?), \
                 or it needs TLS (rediss://)"
            );
            return Self::Refused(Reason::said(node, &error, text));
        }
        if !error.is_io_error() {
            return Self::of_answer(error).at(node);
        }
        // Retrying doesn't help against certificate errors.
        let reason = error.to_string();
        if reason.contains("CertificateRequired") {
            let text = format!(
                "no connection to {node}: it asks clients for certificates; name yours and its key"
            );
            return Self::Refused(Reason::said(node, &error, text));
        }
        if reason.contains("InvalidContentType") {
            let text = format!(
                "{node} does not answer in TLS: this is not its TLS port, or it has none (redis://)"
            );
            return Self::Refused(Reason::said(node, &error, text));
        }
        if reason.contains("invalid peer certificate") {
            let text = format!("no connection to {node}: {reason}");
            return Self::Refused(Reason::said(node, &error, text));
        }
        let text = if error.is_timeout() {
            format!("no connection to {node} in {}", time(waited))
        } else {
            format!("no connection to {node}: {error}")
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

/// A clearer text for server errors whose own text misleads.
fn explained(error: &RedisError) -> Option<String> {
    let said = error.detail()?;
    if error.kind() == ErrorKind::Server(ServerErrorKind::ClusterDown) {
        return Some(format!(
            "the cluster does not serve this slot ({said}): a node is down, or the cluster was \
             reset or never set up"
        ));
    }
    if said.contains("cluster support disabled") {
        return Some("not a node of a cluster; use redis:// instead of redis+cluster://".into());
    }
    let unknown = said.strip_prefix("unknown command")?;
    match unknown.split(['\'', '`']).nth(1)? {
        "SENTINEL" => Some("not a Sentinel; use redis:// instead of redis+sentinel://".into()),
        name @ ("EXISTS" | "GETRANGE" | "HMGET" | "SCAN" | "TYPE") => Some(format!(
            "it does not know {name}, so it is not a Redis server; if it is a Sentinel, use \
             redis+sentinel://HOST:PORT/SERVICE/NAME"
        )),
        _ => None,
    }
}

/// Turns an error answer into a failure.
pub(crate) fn answer(value: Value) -> Result<Value, Failure> {
    match value {
        Value::ServerError(error) => Err(Failure::of_answer(error.into())),
        value => Ok(value),
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
