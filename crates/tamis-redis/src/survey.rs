//! For operators: all filters on a set of servers, and orphaned parts.

use crate::{Servers, info};
use std::fmt;
use std::time::Duration;
use tamis::Kind;

/// All filters on a set of servers, and parts that belong to no filter.
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
/// The survey names servers that can't be asked and filters that can't be read
/// ([`is_whole`](Self::is_whole)); the rest is complete.
///
/// Surveying scans every key of the database (`SCAN`) and counts the bits of
/// every filter, in steps of a few milliseconds.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Survey {
    /// The servers.
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
    /// Whether it is complete.
    pub condition: Condition,
    /// The number that distinguishes it from others with this name.
    pub generation: u64,
    /// The number of keys it is made for.
    pub capacity: u64,
    /// The promised rate.
    pub rate: f64,
    /// The estimated number of keys; only for a filter that is whole or overfull.
    pub keys: Option<u64>,
    /// The rate to expect now, from how full it is; known together with `keys`.
    pub rate_now: Option<f64>,
    /// How long ago keys were last added or removed; unknown until a client of
    /// this version changes the filter.
    pub last_write: Option<Duration>,
    /// The remaining time to live; `None` if it doesn't expire.
    pub time_to_live: Option<Duration>,
    /// Its share of each server.
    pub shares: Vec<Share>,
}

/// Whether a filter is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Condition {
    /// Complete.
    Whole,
    /// Complete, but with more keys than it was made for: its rate is above the
    /// promised one.
    Overfull,
    /// It is being created, or its creator has died.
    Creating,
    /// It is being deleted, or the process that was deleting it died: delete it
    /// again.
    Deleting,
    /// Its record was deleted, renamed, evicted, or lost with its node; the
    /// rest exists.
    Remains,
    /// A part is missing or isn't a part of it; keys are lost.
    Damaged(String),
    /// A server that has parts of it can't be asked.
    Unreachable(String),
    /// Another version of Tamis wrote it, or it is corrupt.
    Unreadable(String),
}

/// A filter's share of a server.
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
    /// How long it has been idle; unknown on servers with an LFU policy.
    pub idle: Option<Duration>,
    /// When it expires, if it does.
    pub time_to_live: Option<Duration>,
}

/// A server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Node {
    /// Its address.
    pub address: String,
    /// Redis or Valkey, and the version; empty if the user isn't allowed to
    /// ask.
    pub version: String,
    /// Its memory in use, in bytes.
    pub used: u64,
    /// The limit of its memory, in bytes; 0 means none.
    pub most: u64,
    /// Its `maxmemory-policy`: what it does at the limit.
    pub policy: String,
    /// `master` or `slave`, as servers call it; empty if the user isn't allowed
    /// to ask.
    pub role: String,
    /// For a replica, whether it is connected to its master.
    pub link_up: Option<bool>,
    /// For a replica, the time since it heard from its master; for a master,
    /// the time since it heard from the replica that is furthest behind.
    pub lag: Option<Duration>,
    /// For a master, the number of its replicas that are in sync.
    pub replicas: u64,
    /// Counters of its module `tamis`, by name, such as `bloom_items_asked`;
    /// empty without the module.
    pub module: Vec<(String, u64)>,
    /// Why it couldn't be asked; if set, nothing else is known about it.
    pub unreachable: Option<String>,
}

impl Survey {
    /// An orphan that has been idle this long doesn't belong to a filter that
    /// is still being created.
    pub const IDLE: Duration = Duration::from_secs(3600);

    /// Whether every server answered and every filter could be read completely.
    pub fn is_whole(&self) -> bool {
        let unread = |filter: &Found| {
            use Condition::{Damaged, Unreachable, Unreadable};
            matches!(
                filter.condition,
                Damaged(_) | Unreachable(_) | Unreadable(_)
            )
        };
        let silent = |node: &Node| node.unreachable.is_some();
        !self.filters.iter().any(unread) && !self.nodes.iter().any(silent)
    }

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
    pub(crate) fn new(name: &str, condition: Condition) -> Self {
        Self {
            name: name.to_owned(),
            kind: None,
            condition,
            generation: 0,
            capacity: 0,
            rate: 0.0,
            keys: None,
            rate_now: None,
            last_write: None,
            time_to_live: None,
            shares: Vec::new(),
        }
    }

    /// How full it is; 1 at its capacity.
    pub fn fill(&self) -> Option<f64> {
        Some(self.keys? as f64 / self.capacity.max(1) as f64)
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
    /// A node that can't be asked.
    pub(crate) fn silent(address: String, reason: String) -> Self {
        Self {
            address,
            unreachable: Some(reason),
            ..Self::default()
        }
    }

    /// Reads the sections `server`, `memory`, `replication` and `tamis_filters`
    /// of `INFO`.
    pub(crate) fn of_info(address: &str, info: &str) -> Self {
        let field = |name: &str| info::field(info, name);
        let text = |name: &str| field(name).unwrap_or_default().to_owned();
        let number = |name: &str| info::number(info, name).unwrap_or(0);
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
            policy: text("maxmemory_policy"),
            role: text("role"),
            link_up: field("master_link_status").map(|status| status == "up"),
            lag: Self::lag(info).map(Duration::from_secs),
            replicas: replicas(info)
                .filter(|about| about.contains("state=online"))
                .count() as u64,
            module: module(info).collect(),
            unreachable: None,
        }
    }

    fn lag(info: &str) -> Option<u64> {
        let field = |name: &str| info::field(info, name)?.parse::<i64>().ok();
        // A link that never existed has no known age (negative).
        let silent = [
            field("master_link_down_since_seconds"),
            field("master_last_io_seconds_ago"),
        ];
        if let Some(silent) = silent.into_iter().flatten().max() {
            return u64::try_from(silent).ok();
        }
        let lag = |about: &str| {
            let mut parts = about.trim().split(',');
            parts.find_map(|part| part.strip_prefix("lag=")?.parse::<u64>().ok())
        };
        replicas(info).filter_map(lag).max()
    }
}

/// The counters of the module.
fn module(info: &str) -> impl Iterator<Item = (String, u64)> {
    info.lines().filter_map(|line| {
        let (name, number) = line.strip_prefix("tamis_")?.trim_end().split_once(':')?;
        let is_plain = |b: u8| b.is_ascii_lowercase() || b == b'_';
        let named = name.bytes().all(is_plain) && !name.is_empty();
        Some((name.to_owned(), number.parse().ok()?)).filter(|_| named)
    })
}

/// A master's lines about its replicas.
fn replicas(info: &str) -> impl Iterator<Item = &str> {
    info.lines().filter_map(|line| {
        let (name, about) = line.split_once(':')?;
        let number = name.strip_prefix("slave")?;
        number.bytes().all(|b| b.is_ascii_digit()).then_some(about)
    })
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Whole => "whole",
            Self::Overfull => "overfull",
            Self::Creating => "being created",
            Self::Deleting => "being deleted",
            Self::Remains => "its record is gone",
            Self::Damaged(_) => "damaged",
            Self::Unreachable(_) => "unreachable",
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

    #[test]
    fn a_module_tells_what_it_counts() {
        let node = Node::of_info(
            "h:1",
            "role:master\r\n# tamis_filters\r\ntamis_bloom_keys:3\r\ntamis_bytes:70\r\n\
             tamis_odd name:1\r\ntamis_text:x\r\ntamis_:1\r\n",
        );
        let expected = [("bloom_keys".to_owned(), 3), ("bytes".to_owned(), 70)];
        assert_eq!(node.module, expected);
        assert_eq!(Node::of_info("h:1", "role:master\r\n").module, []);
    }

    #[test]
    fn servers_tell_how_far_behind_they_are() {
        let master = Node::of_info(
            "h:1",
            "role:master\r\nconnected_slaves:2\r\n\
             slave0:ip=1.2.3.4,port=1,state=online,offset=9,lag=1\r\n\
             slave1:ip=1.2.3.4,port=2,state=wait_bgsave,offset=0,lag=7\r\n",
        );
        assert_eq!((&master.role[..], master.replicas), ("master", 1));
        assert_eq!(master.lag, Some(Duration::from_secs(7)));
        assert_eq!(master.link_up, None);
        let replica = Node::of_info(
            "h:1",
            "role:slave\r\nmaster_link_status:down\r\nmaster_last_io_seconds_ago:-1\r\n\
             master_link_down_since_seconds:42\r\n",
        );
        assert_eq!((replica.link_up, replica.replicas), (Some(false), 0));
        assert_eq!(replica.lag, Some(Duration::from_secs(42)));
        assert_eq!(Node::of_info("h:1", "role:master\r\n").lag, None);
    }
}
