//! The role of a server: master, or replica and how far behind it is.

use crate::Options;
use std::fmt;
use std::time::Duration;

/// A master, or a replica with the state of its replication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServerRole {
    /// A master, or a standalone server.
    Master,
    Replica {
        /// Its master, as `host:port`.
        of: String,
        /// Whether it is connected to its master.
        linked: bool,
        /// Whether it is copying everything from its master.
        copying: bool,
        /// How long ago it last heard from its master; `None` if it never did.
        silent_for: Option<Duration>,
    },
}

impl ServerRole {
    /// Reads `INFO replication`.
    pub(crate) fn of_info(info: &str) -> Option<Self> {
        let field = |name: &str| crate::info::field(info, name);
        if field("role")? == "master" {
            return Some(Self::Master);
        }
        let (host, port) = (field("master_host")?, field("master_port")?);
        let silent_for = crate::info::number(info, "master_last_io_seconds_ago");
        Some(Self::Replica {
            of: crate::location::host_and_port(host, port),
            linked: field("master_link_status") == Some("up"),
            copying: field("master_sync_in_progress") == Some("1"),
            silent_for: silent_for.map(Duration::from_secs),
        })
    }

    /// Why we don't write to it, if it is a replica.
    pub(crate) fn refusal(&self, options: &Options) -> Option<String> {
        match self {
            Self::Replica { of, .. } if !options.allow_replica_writes => Some(format!(
                "replica of {of}: its master does not get what is written there, and the next \
                 copy of the master replaces it; write to the master, or allow writes to replicas"
            )),
            _ => None,
        }
    }

    /// Why its answers can't be trusted, if so.
    pub(crate) fn distrust(&self, options: &Options) -> Option<String> {
        let Self::Replica {
            linked,
            copying,
            silent_for,
            ..
        } = self
        else {
            return None;
        };
        let late = silent_for.is_none_or(|time| time > options.max_lag);
        let stale = !options.allow_stale && (!linked || *copying || late);
        stale.then(|| {
            format!(
                "{self}: it may lack keys, and answers \"no\" to them; ask the master, or allow \
                 stale answers"
            )
        })
    }
}

impl fmt::Display for ServerRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Master => f.write_str("master"),
            Self::Replica {
                of,
                linked,
                copying,
                silent_for,
            } => {
                let link = match (linked, copying) {
                    (true, false) => "link up",
                    (true, true) => "link up, copying everything",
                    (false, true) => "link down, copying everything",
                    (false, false) => "link down",
                };
                write!(f, "replica of {of}, {link}")?;
                match silent_for {
                    Some(time) => write!(f, ", heard from it {} s ago", time.as_secs()),
                    None => f.write_str(", not heard from it"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replica(link: &str, syncing: u8, heard: i64) -> ServerRole {
        let info = format!(
            "# Replication\r\nrole:slave\r\nmaster_host:::1\r\nmaster_port:6379\r\n\
             master_link_status:{link}\r\nmaster_last_io_seconds_ago:{heard}\r\n\
             master_sync_in_progress:{syncing}\r\nslave_repl_offset:14\r\n"
        );
        ServerRole::of_info(&info).unwrap()
    }

    #[test]
    fn only_a_replica_in_touch_is_trusted() {
        let options = Options::new().max_lag(Duration::from_secs(5));
        let master = ServerRole::of_info("role:master\r\nconnected_slaves:2\r\n").unwrap();
        assert_eq!(master.refusal(&options), None);
        let refusal = replica("up", 0, 5).refusal(&options).unwrap();
        assert!(refusal.contains("replica of [::1]:6379"), "{refusal}");
        let lenient = options.clone().allow_replica_writes();
        assert_eq!(replica("up", 0, 5).refusal(&lenient), None);
        assert_eq!(master.distrust(&options), None);
        assert_eq!(replica("up", 0, 5).distrust(&options), None);
        for role in [
            replica("down", 0, 1),
            replica("up", 1, 1),
            replica("up", 0, 6),
            replica("down", 0, -1),
        ] {
            let why = role.distrust(&options).unwrap();
            assert!(why.contains("replica of [::1]:6379, link"), "{why}");
            assert_eq!(role.distrust(&options.clone().allow_stale()), None);
        }
        assert_eq!(ServerRole::of_info("# Nothing\r\n"), None);
    }
}
