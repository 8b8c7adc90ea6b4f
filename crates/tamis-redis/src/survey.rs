//! All filters on a set of servers, and orphaned parts: for operators.

use crate::Servers;
use std::fmt;
use std::time::Duration;
use tamis::Kind;
use tamis::raw::Header;

/// All filters on a set of servers, and parts that belong to none of them.
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
/// This looks at every key of the database (`SCAN`) and counts the bits of every
/// filter, a few milliseconds at a time.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Survey {
    /// Where they are.
    pub servers: Servers,
    /// The filters, sorted by name.
    pub filters: Vec<Found>,
    /// Parts of filters that no longer exist.
    pub orphans: Vec<Orphan>,
    /// The servers that hold keys; in a cluster, the masters.
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
    /// The number that distinguishes it from others with this name.
    pub generation: u64,
    /// The number of keys that it is made for.
    pub capacity: u64,
    /// The promised rate.
    pub rate: f64,
    /// The estimated number of keys; only for a filter that is whole.
    pub keys: Option<u64>,
    /// How long it will live, if not forever.
    pub time_to_live: Option<Duration>,
    /// How much of it each server has.
    pub shares: Vec<Share>,
}

/// Whether a filter is all there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Condition {
    /// All of it is there.
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
    /// The number of Redis keys.
    pub keys: u64,
    /// The memory they use, in bytes.
    pub bytes: u64,
}

/// A part of a filter that no longer exists.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Orphan {
    /// Its key.
    pub key: String,
    /// The server.
    pub node: String,
    /// The memory it uses, in bytes.
    pub bytes: u64,
    /// How long it has been idle; servers with an LFU policy don't know.
    pub idle: Option<Duration>,
    /// When it expires by itself, if it does.
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
    /// The most memory it may use, in bytes; 0 means no limit.
    pub most: u64,
    /// Its `maxmemory-policy`: what it does at that limit.
    pub policy: String,
}

impl Survey {
    /// An orphan that has been idle this long is not part of a filter that is
    /// still being created.
    pub const IDLE: Duration = Duration::from_secs(3600);

    /// The orphans that [`collect`](Self::collect) would delete.
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

    /// The memory it uses on all servers, in bytes.
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
