//! Warnings: not wrong yet, but may become so.

use crate::info;
use std::fmt;

/// Something the user of a filter should know, although nothing is wrong yet.
///
/// ```no_run
/// use tamis_redis::{Options, RedisFilter};
/// let filter = RedisFilter::open(&"redis://localhost/seen".parse()?, &Options::new())?;
/// for warning in filter.warnings() {
///     eprintln!("warning: {warning}");
/// }
/// # Ok::<(), tamis_redis::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// When this server's memory is full, it may evict parts of the filter.
    MayEvict {
        /// The server.
        node: String,
        /// Its `maxmemory-policy`.
        policy: String,
    },
    /// The filter holds more keys than it was made for, so its rate is above
    /// the promised one.
    Overfull {
        /// The estimated number of keys.
        keys: u64,
        /// The number of keys it was made for.
        capacity: u64,
    },
}

impl Warning {
    /// Reads a server's `INFO memory`. `expires`: whether the filter has an
    /// expiry. A server without a memory limit evicts nothing, whatever its
    /// policy.
    pub(crate) fn of_memory(node: &str, info: &str, expires: bool) -> Option<Self> {
        let policy = info::field(info, "maxmemory_policy")?;
        let evicts = match policy.split_once('-') {
            Some(("allkeys", _)) => true,
            Some(("volatile", _)) => expires,
            _ => false,
        };
        (evicts && info::number(info, "maxmemory") != Some(0)).then(|| Self::MayEvict {
            node: node.to_owned(),
            policy: policy.to_owned(),
        })
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MayEvict { node, policy } => write!(
                f,
                "{node} may throw away parts of the filter when its memory is full, and the filter \
                 is then lost: maxmemory-policy is {policy}; set it to noeviction"
            ),
            Self::Overfull { keys, capacity } => write!(
                f,
                "the filter holds about {keys} keys but was made for {capacity}: its rate is above \
                 the promised one, and rises; create a larger filter, or a growing one, and add \
                 the keys again"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_evict_is_warned_of() {
        let warns = |policy: &str, limit: &str, expires: bool| {
            let info = format!(
                "# Memory\r\nused_memory:1\r\nmaxmemory:{limit}\r\n\
                 maxmemory_human:1M\r\nmaxmemory_policy:{policy}\r\n"
            );
            Warning::of_memory("h:1", &info, expires).is_some()
        };
        assert!(warns("allkeys-lru", "1000", false));
        assert!(!warns("allkeys-lru", "0", false));
        assert!(warns("volatile-ttl", "1000", true));
        assert!(!warns("volatile-ttl", "1000", false));
        assert!(!warns("noeviction", "1000", true));
        assert_eq!(Warning::of_memory("h:1", "", true), None);
    }
}
