//! What can go wrong, said for people: what, expected, got, and the way out.

use redis::RedisError;
use std::fmt;

/// Every error of this crate.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The text is not a location.
    Location {
        /// What it must be.
        expected: String,
        /// What it is, without a password.
        got: String,
    },
    /// There is no filter of this name.
    NotFound {
        /// The filter.
        name: String,
    },
    /// There is something of this name already.
    Exists {
        /// The filter.
        name: String,
    },
    /// The filter is being created, or the one who did so has died.
    Unfinished {
        /// The filter.
        name: String,
    },
    /// There is no filter of this name, but parts of one are there whose record
    /// has gone: someone deleted or renamed that alone, or the server evicted
    /// it.
    Remains {
        /// The filter.
        name: String,
    },
    /// The filter was deleted, has expired, or was replaced by another one
    /// since it was opened.
    Gone {
        /// The filter.
        name: String,
    },
    /// A part of the filter is not where it must be: its keys are lost, and
    /// nothing it says can be trusted.
    MissingChunk {
        /// The filter.
        name: String,
        /// The key of the part in Redis.
        chunk: String,
    },
    /// What the key holds is not a filter of this crate.
    Corrupt {
        /// The key in Redis.
        key: String,
        /// What is wrong.
        reason: String,
    },
    /// These keys were perhaps added (or removed), and perhaps not: an answer
    /// did not come. The answers for all other keys hold.
    Unconfirmed {
        /// Which of the caller's keys, as indices.
        keys: Vec<usize>,
        /// Of how many.
        of: usize,
        /// Why.
        reason: String,
    },
    /// The server refuses, or could not be reached.
    Server {
        /// What was being done.
        action: &'static str,
        /// Which server, if it was one.
        node: Option<String>,
        /// The server's reason.
        source: RedisError,
    },
    /// The library refuses.
    Filter(tamis::Error),
}

impl Error {
    /// Which of the caller's keys were not confirmed; none of another error.
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
                "{name}: there is no such filter on the server; create it, or check database and name"
            ),
            Self::Exists { name } => write!(
                f,
                "{name}: there is something of this name on the server already; \
                 delete it first, or choose another name"
            ),
            Self::Unfinished { name } => write!(
                f,
                "{name}: the filter is still being created, or being deleted; \
                 if nobody is at it any more, delete it and begin again"
            ),
            Self::Remains { name } => write!(
                f,
                "{name}: the record of the filter has gone (deleted, renamed or evicted by itself), \
                 but its parts are still there; bring the record back, or delete what is left"
            ),
            Self::Gone { name } => write!(
                f,
                "{name}: the filter was deleted, renamed, replaced or evicted, or has expired, \
                 since it was opened; open it again"
            ),
            Self::MissingChunk { name, chunk } => write!(
                f,
                "{name}: its part {chunk} is missing on the server: evicted, expired or lost in a \
                 failover; keys are lost, so delete the filter and build it anew from its keys \
                 (and let the server evict nothing: maxmemory-policy noeviction)"
            ),
            Self::Corrupt { key, reason } => {
                write!(f, "{key}: not a sound tamis filter in Redis: {reason}")
            }
            Self::Unconfirmed { keys, of, reason } => {
                write!(
                    f,
                    "{} of {of} keys were not confirmed: {reason}; ",
                    keys.len()
                )?;
                write!(
                    f,
                    "they may be in the filter or not; send them again if adding twice is harmless"
                )
            }
            Self::Server {
                action,
                node,
                source,
            } => {
                let reason = source.to_string();
                match node {
                    Some(node) if !reason.contains(node) => {
                        write!(f, "{action}: {node}: {reason}")
                    }
                    _ => write!(f, "{action}: {reason}"),
                }
            }
            Self::Filter(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Server { source, .. } => Some(source),
            Self::Filter(error) => error.source(),
            _ => None,
        }
    }
}
