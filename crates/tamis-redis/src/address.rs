//! The address of a node.

use crate::location::host_and_port;
use redis::{ConnectionAddr, ConnectionInfo};
use std::fmt;
use std::path::PathBuf;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Address {
    Tcp { host: String, port: u16 },
    Socket(PathBuf),
}

impl Address {
    /// Parses `host:port`; IPv6 hosts come without brackets.
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
