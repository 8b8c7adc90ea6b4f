//! Errors: what went wrong, what was expected, what we got, and the way out.

use redis::RedisError;
use std::fmt;

/// Every error of this crate.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The text is not a location.
    Location {
        /// What was expected.
        expected: String,
        /// What was given, without a password.
        got: String,
    },
    /// There is no filter with this name.
    NotFound {
        /// The filter.
        name: String,
    },
    /// Something with this name already exists.
    Exists {
        /// The filter.
        name: String,
    },
    /// The filter is being created, or its creator has died.
    Unfinished {
        /// The filter.
        name: String,
    },
    /// No filter has this name, but parts of one exist whose record is gone:
    /// someone deleted or renamed only the record, the server evicted it, or
    /// its node came back empty.
    Remains {
        /// The filter.
        name: String,
    },
    /// The filter that was opened has since been deleted, has expired, or was
    /// replaced.
    Gone {
        /// The filter.
        name: String,
    },
    /// A part of the filter is missing: its keys are lost, and its answers can't
    /// be trusted.
    MissingChunk {
        /// The filter.
        name: String,
        /// The key of the part in Redis.
        chunk: String,
    },
    /// Keys that were confirmed are gone: a server came back with older data, or
    /// a replica without them took over.
    RolledBack {
        /// The filter.
        name: String,
        /// The evidence.
        reason: String,
    },
    /// A server has no room for the filter, or for its next layer.
    NoRoom {
        /// The filter.
        name: String,
        /// The server.
        node: String,
        /// Bytes needed there.
        needed: u64,
        /// Bytes free there.
        free: u64,
    },
    /// Something that isn't a filter has this name.
    Taken {
        /// The filter.
        name: String,
    },
    /// The key doesn't hold a filter of this crate.
    Corrupt {
        /// The key in Redis.
        key: String,
        /// What is wrong.
        reason: String,
    },
    /// These keys may or may not have been added (or removed): no answer came.
    /// The answers for all other keys hold.
    Unconfirmed {
        /// Which of the caller's keys, as indices.
        keys: Vec<usize>,
        /// The number of keys in the call.
        of: usize,
        /// Why.
        reason: String,
    },
    /// The server refused, or couldn't be reached.
    Server {
        /// What was being done.
        action: &'static str,
        /// The server, if one was involved.
        node: Option<String>,
        /// The server's reason.
        source: RedisError,
    },
    /// A location over TLS, or a certificate, in a build without the feature `tls`.
    NoTls,
    /// A certificate or a key can't be used.
    Certificates(String),
    /// An error of the `tamis` library.
    Filter(tamis::Error),
}

impl Error {
    /// The indices of the unconfirmed keys; empty for other errors.
    pub fn unconfirmed(&self) -> &[usize] {
        match self {
            Self::Unconfirmed { keys, .. } => keys,
            _ => &[],
        }
    }
}

impl From<tamis::Error> for Error {
    fn from(error: tamis::Error) -> Self {
        Self::Filter(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Location { expected, got } => {
                write!(f, "location: expected {expected}, got {got}")
            }
            Self::NotFound { name } => write!(
                f,
                "{name}: no such filter on the server; create it, or check the database and the name"
            ),
            Self::Exists { name } => write!(
                f,
                "{name}: something with this name already exists on the server; \
                 delete it first, or choose another name"
            ),
            Self::Unfinished { name } => write!(
                f,
                "{name}: the filter is still being created or deleted; \
                 if nobody is working on it any more, delete it and start again"
            ),
            Self::Remains { name } => write!(
                f,
                "{name}: the filter's record is gone (deleted, renamed, evicted, or lost with its \
                 node), but its parts are still there; restore the record, or delete what is left"
            ),
            Self::Gone { name } => write!(
                f,
                "{name}: the filter was deleted, renamed, replaced or evicted, or has expired, \
                 since it was opened; open it again"
            ),
            Self::MissingChunk { name, chunk } => write!(
                f,
                "{name}: the part {chunk} is missing on the server: evicted, expired or lost in a \
                 failover; keys are lost, so delete the filter and build it again from its keys \
                 (and stop the server from evicting keys: maxmemory-policy noeviction)"
            ),
            Self::RolledBack { name, reason } => write!(
                f,
                "{name}: keys that were confirmed are gone: {reason}; a server came back with \
                 older data, or a replica that did not have them took over; add again what was \
                 added last, or build the filter again from its keys"
            ),
            Self::NoRoom {
                name,
                node,
                needed,
                free,
            } => write!(
                f,
                "{name}: no room on {node}: {needed} bytes are needed and {free} are free under \
                 its maxmemory; raise that, or delete something"
            ),
            Self::Taken { name } => write!(
                f,
                "{name}: something that is not a filter has this name on the server; \
                 choose another name"
            ),
            Self::Corrupt { key, reason } => {
                write!(f, "{key}: not a valid Tamis filter in Redis: {reason}")
            }
            Self::Unconfirmed { keys, of, reason } => unconfirmed(f, keys.len(), *of, reason),
            Self::Server {
                action,
                node,
                source,
            } => refused(f, action, node.as_deref(), source),
            Self::NoTls => {
                f.write_str("this build has no TLS: tamis-redis lacks the feature `tls`")
            }
            Self::Certificates(reason) => f.write_str(reason),
            Self::Filter(error) => error.fmt(f),
        }
    }
}

fn unconfirmed(f: &mut fmt::Formatter<'_>, keys: usize, of: usize, reason: &str) -> fmt::Result {
    write!(
        f,
        "no confirmation for {keys} of {of} {}: {reason}; ",
        if of == 1 { "key" } else { "keys" }
    )?;
    write!(
        f,
        "unconfirmed keys may or may not be in the filter; send them again if adding \
         twice is harmless"
    )
}

fn refused(
    f: &mut fmt::Formatter<'_>,
    action: &str,
    node: Option<&str>,
    source: &RedisError,
) -> fmt::Result {
    let reason = source.to_string();
    match node {
        Some(node) if !reason.contains(node) => write!(f, "{action}: {node}: {reason}"),
        _ => write!(f, "{action}: {reason}"),
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // The text already contains the server's reason.
            Self::Filter(error) => error.source(),
            _ => None,
        }
    }
}
