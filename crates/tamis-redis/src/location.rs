//! Where a filter lives: its servers, database and name.

mod parse;

use crate::hide::looks_like_location;
use crate::parameters::Parameters;
use crate::{Error, Options};
use redis::{ConnectionAddr, ConnectionInfo};
use std::fmt;
use std::path::Path;

/// The location of a filter.
///
/// ```text
/// redis://[user:password@]host[:port]/[DB/]NAME               one server
/// redis+cluster://[user:password@]host:port,host:port/NAME    a cluster, some of its nodes
/// redis+sentinel://[user:password@]host:port,…/SERVICE/[DB/]NAME   the master that Sentinels know
/// redis+unix:///path/of/socket?name=NAME[&db=DB][&user=…&pass=…]   a server of this machine
/// rediss://…   rediss+cluster://…   rediss+sentinel://…       the same over TLS
/// ```
///
/// TLS needs the feature `tls`.
///
/// A number behind the server is the database: `redis://host/3/seen` is the filter
/// `seen` in database 3. A filter whose name is a number, or begins with one and a
/// slash, needs the database in front: `redis://host/0/3`.
/// The name may contain anything but braces, which have a meaning in Redis Cluster. IPv6 addresses
/// are in brackets. Sentinels get the user and the password only if they ask for them.
///
/// Parameters behind the name replace [`Options`] for these servers:
/// `redis://host/seen?timeout=2s&replicas=1`. So a name can't contain `?` followed by a word and
/// `=`.
///
/// | parameter | meaning |
/// | --- | --- |
/// | `timeout=TIME` | how long connecting, an answer and the confirmation of replicas may take: 500ms, 5s, 2m |
/// | `retry=TIME` | [`Options::retry_for`] |
/// | `replicas=N` | [`Options::wait_replicas`] |
/// | `max-lag=TIME` | [`Options::max_lag`]; `max-lag=any` is [`Options::allow_stale`] |
/// | `write=replica` | [`Options::allow_replica_writes`] |
/// | `ca=FILE` | for TLS, the certificate authority to trust (PEM) |
/// | `cert=FILE&key=FILE` | for TLS, the client's certificate and its private key (PEM) |
/// | `tls=insecure` | [`Options::insecure`]: anyone can pose as the server, so only for tests |
/// | `protocol=resp3` | the newer protocol |
///
/// Any other parameter is an error. In a value, `%26` stands for `&`, `%23` for `#` and `%2B` for `+`.
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
    /// The Sentinels' name for the master.
    service: Option<String>,
    name: String,
    parameters: Box<Parameters>,
}

/// Servers, without a filter's name: where [`Survey`](crate::Survey) looks for filters.
///
/// ```
/// use tamis_redis::Servers;
/// let servers: Servers = "redis://example.org/2".parse()?;
/// assert_eq!(servers.to_string(), "redis://example.org:6379/2");
/// # Ok::<(), tamis_redis::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Servers(Location);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scheme {
    prefix: &'static str,
    tls: bool,
    reach: Reach,
}

/// How the servers are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    Server,
    Cluster,
    Sentinel,
    Socket,
}

impl Location {
    /// Whether a text is meant as a location rather than the name of a file, even if it is mistyped.
    ///
    /// ```
    /// use tamis_redis::Location;
    /// assert!(Location::looks_like("redis://localhost/seen"));
    /// assert!(Location::looks_like("redis:/localhost/seen"));
    /// assert!(!Location::looks_like("seen.tamis"));
    /// ```
    pub fn looks_like(text: &str) -> bool {
        looks_like_location(text)
    }

    /// The same location with this password, unless it has one already. A
    /// password in the location itself is visible in process lists and shell
    /// histories.
    ///
    /// ```
    /// use tamis_redis::Location;
    /// let at: Location = "redis://ada@example.org/seen".parse()?;
    /// let at = at.with_password("secret");
    /// assert_eq!(at.to_string(), "redis://ada:***@example.org:6379/seen");
    /// # Ok::<(), tamis_redis::Error>(())
    /// ```
    pub fn with_password(mut self, password: &str) -> Self {
        for node in &mut self.nodes {
            let settings = node.redis_settings().clone();
            if settings.password().is_none() {
                *node = node
                    .clone()
                    .set_redis_settings(settings.set_password(password));
            }
        }
        self
    }

    /// Whether it contains a password, which anyone who reads the text could use.
    pub fn has_password(&self) -> bool {
        let settings = |node: &ConnectionInfo| node.redis_settings().password().is_some();
        self.nodes.iter().any(settings)
    }

    /// The filter's name, which is the key of its header in Redis.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The servers to ask first; in a cluster, they name the other nodes.
    pub(crate) fn nodes(&self) -> &[ConnectionInfo] {
        &self.nodes
    }

    pub(crate) const fn reach(&self) -> Reach {
        self.scheme.reach
    }

    pub(crate) const fn is_cluster(&self) -> bool {
        matches!(self.scheme.reach, Reach::Cluster)
    }

    /// These options, replaced by the location's parameters where it has any. Reads the certificate
    /// files. All functions that take a location and options apply this.
    ///
    /// ```
    /// use tamis_redis::{Location, Options};
    /// let at: Location = "redis://example.org/seen?timeout=500ms&retry=1m".parse()?;
    /// let options = at.options(&Options::new())?;
    /// # Ok::<(), tamis_redis::Error>(())
    /// ```
    pub fn options(&self, options: &Options) -> Result<Options, Error> {
        self.parameters.over(options)
    }

    /// The files that the location names: a certificate authority, the client's
    /// certificate and its private key.
    ///
    /// ```
    /// # #[cfg(feature = "tls")] {
    /// use std::path::Path;
    /// let at: tamis_redis::Location = "rediss://example.org/seen?ca=/etc/ca.pem".parse()?;
    /// assert_eq!(at.files(), [Some(Path::new("/etc/ca.pem")), None, None]);
    /// # }
    /// # Ok::<(), tamis_redis::Error>(())
    /// ```
    pub fn files(&self) -> [Option<&Path>; 3] {
        self.parameters.files()
    }

    /// The number of replicas that must confirm an addition, if the location sets it.
    ///
    /// ```
    /// let at: tamis_redis::Location = "redis://example.org/seen?replicas=1".parse()?;
    /// assert_eq!(at.replicas(), Some(1));
    /// # Ok::<(), tamis_redis::Error>(())
    /// ```
    pub const fn replicas(&self) -> Option<u32> {
        self.parameters.replicas
    }

    /// Whether anyone may pose as the server: a TLS location with
    /// `?tls=insecure`.
    pub fn is_insecure(&self) -> bool {
        let insecure = |node: &ConnectionInfo| {
            matches!(node.addr(), ConnectionAddr::TcpTls { insecure: true, .. })
        };
        self.nodes.iter().any(insecure)
    }

    /// The Sentinels' name for the master, if Sentinels are used.
    pub(crate) fn service(&self) -> Option<&str> {
        self.service.as_deref()
    }
}

impl Servers {
    /// See [`Location::with_password`].
    pub fn with_password(self, password: &str) -> Self {
        Self(self.0.with_password(password))
    }

    /// See [`Location::files`].
    pub fn files(&self) -> [Option<&Path>; 3] {
        self.0.files()
    }

    /// See [`Location::is_insecure`].
    pub fn is_insecure(&self) -> bool {
        self.0.is_insecure()
    }

    /// The location of the servers, with an empty name.
    pub(crate) const fn location(&self) -> &Location {
        &self.0
    }
}

/// The servers that a filter lives on.
impl From<&Location> for Servers {
    fn from(at: &Location) -> Self {
        Self(Location {
            name: String::new(),
            ..at.clone()
        })
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// As people write it: IPv6 hosts in brackets.
pub(crate) fn host_and_port(host: &str, port: impl fmt::Display) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

/// Without the password.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.scheme.prefix)?;
        let settings = self.nodes[0].redis_settings();
        let db = settings.db();
        if self.scheme.reach == Reach::Socket {
            write!(f, "{}", self.nodes[0].addr())?;
            let mut mark = '?';
            let mut field = |key: &str, value: &str| {
                let mark = std::mem::replace(&mut mark, '&');
                write!(f, "{mark}{key}={value}")
            };
            if !self.name.is_empty() {
                field("name", &self.name)?;
            }
            if db != 0 {
                field("db", &db.to_string())?;
            }
            return settings
                .username()
                .map_or(Ok(()), |user| field("user", user));
        }
        match (settings.username(), settings.password()) {
            (user, Some(_)) => write!(f, "{}:***@", user.unwrap_or(""))?,
            (Some(user), None) => write!(f, "{user}@")?,
            (None, None) => {}
        }
        for (i, node) in self.nodes.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            match node.addr() {
                ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                    write!(f, "{comma}{}", host_and_port(host, port))?;
                }
                other => write!(f, "{comma}{other}")?,
            }
        }
        if let Some(service) = &self.service {
            write!(f, "/{service}")?;
        }
        // Without the database, a name that begins with a number would be read as one.
        let first = self.name.split('/').next().unwrap_or_default();
        if db != 0 || self.scheme.reach != Reach::Cluster && is_number(first) {
            write!(f, "/{db}")?;
        }
        match &self.name[..] {
            "" => Ok(()),
            name => write!(f, "/{name}"),
        }
    }
}

/// Without the password.
impl fmt::Display for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests;
