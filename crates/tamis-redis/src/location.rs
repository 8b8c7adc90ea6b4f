//! Where a filter lives: which servers, which database, which name.

use crate::Error;
use redis::{ConnectionInfo, IntoConnectionInfo};
use std::fmt;
use std::str::FromStr;

/// Where a filter lives.
///
/// ```text
/// redis://[user:password@]host[:port]/[DB/]NAME          one server
/// redis-cluster://[user:password@]host:port,host:port/NAME   a cluster, some of its nodes
/// rediss://…   rediss-cluster://…                        the same over TLS
/// ```
///
/// A first part of the path that is a number is the database if another part
/// follows. The name may hold anything but braces, which Redis Cluster gives a
/// meaning. `#insecure` behind a TLS location accepts any certificate.
///
/// ```
/// use tamis_redis::Location;
/// let at: Location = "redis://ada:secret@example.org/2/seen".parse()?;
/// assert_eq!(at.name(), "seen");
/// assert_eq!(at.to_string(), "redis://ada:***@example.org:6379/2/seen");
/// assert!("redis://example.org/{seen}".parse::<Location>().is_err());
/// # Ok::<(), tamis_redis::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Location {
    scheme: Scheme,
    nodes: Vec<ConnectionInfo>,
    name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scheme {
    tls: bool,
    cluster: bool,
}

const SCHEMES: [(&str, Scheme); 4] = [
    (
        "redis://",
        Scheme {
            tls: false,
            cluster: false,
        },
    ),
    (
        "rediss://",
        Scheme {
            tls: true,
            cluster: false,
        },
    ),
    (
        "redis-cluster://",
        Scheme {
            tls: false,
            cluster: true,
        },
    ),
    (
        "rediss-cluster://",
        Scheme {
            tls: true,
            cluster: true,
        },
    ),
];

const INSECURE: &str = "#insecure";

fn split_scheme(text: &str) -> Option<(Scheme, &str)> {
    SCHEMES
        .iter()
        .find_map(|(prefix, scheme)| Some((*scheme, text.strip_prefix(prefix)?)))
}

impl Location {
    /// Whether a text is meant as a location, and not as the name of a file.
    ///
    /// ```
    /// use tamis_redis::Location;
    /// assert!(Location::looks_like("redis://localhost/seen"));
    /// assert!(!Location::looks_like("seen.tamis"));
    /// ```
    pub fn looks_like(text: &str) -> bool {
        split_scheme(text).is_some()
    }

    /// The filter's name, which is the key of its header in Redis.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The servers to ask first; a cluster's others are learnt from them.
    pub(crate) fn nodes(&self) -> &[ConnectionInfo] {
        &self.nodes
    }

    pub(crate) const fn is_cluster(&self) -> bool {
        self.scheme.cluster
    }

    fn refuse(expected: impl Into<String>, got: impl Into<String>) -> Error {
        Error::Location {
            expected: expected.into(),
            got: got.into(),
        }
    }
}

impl FromStr for Location {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let hidden = hide_password(text);
        let refuse = |expected: &str| Self::refuse(expected, hidden.clone());
        let Some((scheme, rest)) = split_scheme(text) else {
            return Err(refuse(
                "redis://HOST/NAME or redis-cluster://HOST:PORT,…/NAME",
            ));
        };
        let (rest, fragment) = match rest.strip_suffix(INSECURE) {
            Some(rest) if scheme.tls => (rest, INSECURE),
            _ => (rest, ""),
        };
        // A password may hold a slash only if it is encoded, as in every URL.
        let (servers, path) = rest
            .split_once('/')
            .ok_or_else(|| refuse("a name behind the server: redis://HOST/NAME"))?;
        let (user, hosts) = match servers.rsplit_once('@') {
            Some((user, hosts)) => (format!("{user}@"), hosts),
            None => (String::new(), servers),
        };
        let (db, name) = match path.split_once('/') {
            Some((db, name)) if !scheme.cluster && is_number(db) => (db, name),
            _ => ("", path),
        };
        if name.is_empty() || name.contains(['{', '}']) {
            return Err(refuse("a name without braces behind the server"));
        }
        if hosts.contains(',') && !scheme.cluster {
            return Err(refuse("one server, or redis-cluster:// for several"));
        }
        let tls = if scheme.tls { "rediss" } else { "redis" };
        let nodes = hosts
            .split(',')
            .map(|host| {
                format!("{tls}://{user}{host}/{db}{fragment}")
                    .into_connection_info()
                    .map_err(|e| {
                        Self::refuse("the address of a Redis server", format!("{hidden}: {e}"))
                    })
            })
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            scheme,
            nodes,
            name: name.to_owned(),
        })
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// An unparsed text without what may be a password.
fn hide_password(text: &str) -> String {
    match (text.find("://"), text.rfind('@')) {
        (Some(scheme), Some(at)) if scheme + 3 < at => {
            format!("{}***{}", &text[..scheme + 3], &text[at..])
        }
        _ => text.to_owned(),
    }
}

/// Without the password.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = SCHEMES.iter().find(|(_, scheme)| *scheme == self.scheme);
        f.write_str(scheme.map_or("", |(prefix, _)| prefix))?;
        let settings = self.nodes[0].redis_settings();
        match (settings.username(), settings.password()) {
            (user, Some(_)) => write!(f, "{}:***@", user.unwrap_or(""))?,
            (Some(user), None) => write!(f, "{user}@")?,
            (None, None) => {}
        }
        for (i, node) in self.nodes.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            write!(f, "{comma}{}", node.addr())?;
        }
        match settings.db() {
            0 => write!(f, "/{}", self.name),
            db => write!(f, "/{db}/{}", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        text.parse::<Location>().unwrap().to_string()
    }

    #[test]
    fn all_forms_are_understood() {
        for (text, expected) in [
            ("redis://host/seen", "redis://host:6379/seen"),
            ("redis://host:1/3/seen", "redis://host:1/3/seen"),
            ("redis://host/seen/urls", "redis://host:6379/seen/urls"),
            ("redis://host/7", "redis://host:6379/7"),
            ("redis://:pw@host/7/8", "redis://:***@host:6379/7/8"),
            ("redis://u:p%2Fw@h/x", "redis://u:***@h:6379/x"),
            ("rediss://host/seen#insecure", "rediss://host:6379/seen"),
            (
                "redis-cluster://a:1,b:2/seen",
                "redis-cluster://a:1,b:2/seen",
            ),
            (
                "rediss-cluster://u:p@a:1,b:2/3/x",
                "rediss-cluster://u:***@a:1,b:2/3/x",
            ),
        ] {
            assert_eq!(shown(text), expected);
        }
        let at: Location = "redis://u:p%2Fw@h/x".parse().unwrap();
        assert_eq!(at.nodes()[0].redis_settings().password(), Some("p/w"));
        let at: Location = "rediss-cluster://u:p@a:1,b:2/3/x".parse().unwrap();
        assert_eq!(
            (at.name(), at.nodes().len(), at.is_cluster()),
            ("3/x", 2, true)
        );
        assert_eq!(at.nodes()[1].redis_settings().username(), Some("u"));
    }

    #[test]
    fn what_is_wrong_is_said_without_the_password() {
        for text in [
            "seen.tamis",
            "redis://host",
            "redis://u:secret@host/",
            "redis://u:secret@host/2/",
            "redis://u:secret@a:1,b:2/name",
            "redis://u:secret@host/{x}",
            "redis://u:secret@host:port/x",
            "redis-cluster://u:secret@/x",
        ] {
            let error = text.parse::<Location>().unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
            assert!(error.contains("expected"), "{error}");
        }
    }
}
