//! All filters on some servers, and what belongs to none: for operators.

use crate::Servers;
use std::fmt;
use std::time::Duration;
use tamis::Kind;
use tamis::raw::Header;

/// All filters on some servers, and what belongs to none of them.
///
/// ```no_run
/// use tamis_redis::{Options, Survey};
/// let survey = Survey::of(&"redis://localhost/0".parse()?, &Options::new())?;
/// for filter in &survey.filters {
///     println!("{}: {} bytes, {}", filter.name, filter.bytes(), filter.condition);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Every key of the database is looked at (`SCAN`), and the bits of every
/// filter are counted, some milliseconds at a time.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Survey {
    /// Where.
    pub servers: Servers,
    /// By name.
    pub filters: Vec<Found>,
    /// Parts of filters that are gone.
    pub orphans: Vec<Orphan>,
    /// The servers that have keys: the masters of a cluster.
    pub nodes: Vec<Node>,
}

/// A filter, as [`Survey`] finds it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Found {
    /// Its name.
    pub name: String,
    /// Its kind, if it can be read.
    pub kind: Option<Kind>,
    /// Whether it is all there.
    pub condition: Condition,
    /// The number that tells it from others of this name.
    pub generation: u64,
    /// The number of keys that it is made for.
    pub capacity: u64,
    /// The promised rate.
    pub rate: f64,
    /// The number of keys, estimated; not of one that is not whole.
    pub keys: Option<u64>,
    /// How long it lives, if not forever.
    pub time_to_live: Option<Duration>,
    /// Which servers have how much of it.
    pub shares: Vec<Share>,
}

/// Whether a filter is all there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Condition {
    /// It is.
    Whole,
    /// It is being created, or its creator has died.
    Creating,
    /// It is being deleted, or the process that deleted it has died: delete it again.
    Deleting,
    /// Its record was deleted, renamed or evicted; the rest is there.
    Remains,
    /// A part is missing; keys are lost.
    Damaged(String),
    /// Another version of Tamis wrote it, or it is corrupt.
    Unreadable(String),
}

/// What a server has of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Share {
    /// The server.
    pub node: String,
    /// How many keys of Redis.
    pub keys: u64,
    /// What they take of its memory, in bytes.
    pub bytes: u64,
}

/// A part of a filter that is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Orphan {
    /// Its key.
    pub key: String,
    /// The server.
    pub node: String,
    /// What it takes of the server's memory, in bytes.
    pub bytes: u64,
    /// For how long nobody has used it; unknown to servers with an LFU policy.
    pub idle: Option<Duration>,
    /// When it ends by itself, if it does.
    pub time_to_live: Option<Duration>,
}

/// A server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Node {
    /// Its address.
    pub address: String,
    /// Redis or Valkey, and the version; empty if the user may not ask.
    pub version: String,
    /// Its memory in use, in bytes.
    pub used: u64,
    /// The most it may use; 0 is no limit.
    pub most: u64,
    /// Its `maxmemory-policy`: what happens then.
    pub policy: String,
}

impl Survey {
    /// What nobody has used for so long belongs to nobody any more, and not to
    /// a filter that is being created.
    pub const IDLE: Duration = Duration::from_secs(3600);

    /// The orphans that [`collect`](Self::collect) would forget.
    pub fn collectable(&self) -> impl Iterator<Item = &Orphan> {
        let old = |orphan: &&Orphan| orphan.idle.is_some_and(|idle| idle >= Self::IDLE);
        self.orphans
            .iter()
            .filter(|orphan| orphan.time_to_live.is_none())
            .filter(old)
    }
}

impl Found {
    pub(crate) fn of(name: &str, generation: u64, header: &Header) -> Self {
        Self {
            name: name.to_owned(),
            kind: Some(header.shape().kind()),
            condition: Condition::Whole,
            generation,
            capacity: header.capacity(),
            rate: header.rate(),
            keys: None,
            time_to_live: None,
            shares: Vec::new(),
        }
    }

    pub(crate) fn unreadable(name: &str, reason: String) -> Self {
        Self {
            name: name.to_owned(),
            kind: None,
            condition: Condition::Unreadable(reason),
            generation: 0,
            capacity: 0,
            rate: 0.0,
            keys: None,
            time_to_live: None,
            shares: Vec::new(),
        }
    }

    /// What it takes of the servers' memory.
    pub fn bytes(&self) -> u64 {
        self.shares.iter().map(|share| share.bytes).sum()
    }
}

impl Share {
    pub(crate) const fn new(node: String) -> Self {
        Self {
            node,
            keys: 0,
            bytes: 0,
        }
    }
}

impl Node {
    /// From the sections `server` and `memory` of `INFO`.
    pub(crate) fn of_info(address: &str, info: &str) -> Self {
        let field = |name: &str| {
            let mut lines = info.lines();
            lines.find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'))
        };
        let number = |name: &str| field(name).and_then(|n| n.parse().ok()).unwrap_or(0);
        let version = match (field("valkey_version"), field("redis_version")) {
            (Some(version), _) => format!("Valkey {version}"),
            (None, Some(version)) => format!("Redis {version}"),
            (None, None) => String::new(),
        };
        Self {
            address: address.to_owned(),
            version,
            used: number("used_memory"),
            most: number("maxmemory"),
            policy: field("maxmemory_policy").unwrap_or_default().to_owned(),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Whole => "whole",
            Self::Creating => "being created",
            Self::Deleting => "being deleted",
            Self::Remains => "its record is gone",
            Self::Damaged(_) => "damaged",
            Self::Unreadable(_) => "unreadable",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_tell_their_versions() {
        let info = "# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\n\
                    # Memory\r\nused_memory:10\r\nused_memory_human:1K\r\nmaxmemory:20\r\n\
                    maxmemory_policy:allkeys-lru\r\n";
        let node = Node::of_info("h:1", info);
        assert_eq!(node.version, "Valkey 9.1.2");
        assert_eq!(
            (node.used, node.most, &node.policy[..]),
            (10, 20, "allkeys-lru")
        );
        assert_eq!(
            Node::of_info("h:1", "redis_version:8.2.3\r\n").version,
            "Redis 8.2.3"
        );
        assert_eq!(Node::of_info("h:1", "").version, "");
    }
}
