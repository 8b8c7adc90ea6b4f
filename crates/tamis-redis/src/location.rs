//! Where a filter lives: its servers, database and name.

use crate::hide::{hide_password, looks_like_location, split_parameters};
use crate::parameters::Parameters;
use crate::{Error, Options};
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};
use std::fmt;
use std::path::Path;
use std::str::FromStr;

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

const fn scheme(prefix: &'static str, tls: bool, reach: Reach) -> Scheme {
    Scheme { prefix, tls, reach }
}

const SCHEMES: [Scheme; 7] = [
    scheme("redis://", false, Reach::Server),
    scheme("rediss://", true, Reach::Server),
    scheme("redis+cluster://", false, Reach::Cluster),
    scheme("rediss+cluster://", true, Reach::Cluster),
    scheme("redis+sentinel://", false, Reach::Sentinel),
    scheme("rediss+sentinel://", true, Reach::Sentinel),
    scheme("redis+unix://", false, Reach::Socket),
];

const FORMS: &str = "redis://HOST/NAME, redis+cluster://HOST:PORT,…/NAME, \
                     redis+sentinel://HOST:PORT,…/SERVICE/NAME or redis+unix:///PATH?name=NAME";
/// Parameters of a socket's location only: its path is the path of the socket.
const OF_SOCKET: [&str; 4] = ["name", "db", "user", "pass"];

fn split_scheme(text: &str) -> Option<(Scheme, &str)> {
    SCHEMES
        .iter()
        .find_map(|scheme| Some((*scheme, text.strip_prefix(scheme.prefix)?)))
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

    fn refuse(expected: impl Into<String>, got: impl Into<String>) -> Error {
        Error::Location {
            expected: expected.into(),
            got: got.into(),
        }
    }

    /// Parses the location of a server's socket. The URL's path is that of the socket, so the name
    /// is a parameter.
    fn parse_socket(scheme: Scheme, text: &str, named: bool) -> Result<Self, Error> {
        let hidden = hide_password(text);
        let refuse = |expected: &str| Self::refuse(expected, hidden.clone());
        let url = redis::parse_redis_url(text);
        let url = url.ok_or_else(|| refuse("redis+unix:///PATH?name=NAME"))?;
        let others = url
            .query_pairs()
            .filter(|(key, _)| !OF_SOCKET.contains(&&**key));
        let parameters = Parameters::read(others, false).map_err(|expected| {
            refuse(&format!(
                "{expected}; with name, db, user and pass for a socket"
            ))
        })?;
        let name = url.query_pairs().find(|(key, _)| key == "name");
        let name = name.map(|(_, name)| name.into_owned()).unwrap_or_default();
        if named != is_name(&name) {
            return Err(refuse(if named {
                "a name without braces: redis+unix:///PATH?name=NAME"
            } else {
                "servers without the name of a filter"
            }));
        }
        Ok(Self {
            scheme,
            nodes: vec![address(text, &hidden)?],
            service: None,
            name,
            parameters: Box::new(parameters),
        })
    }

    /// Parses the location of a filter or, if `named` is false, of servers only.
    fn parse(text: &str, named: bool) -> Result<Self, Error> {
        let hidden = hide_password(text);
        let refuse = |expected: &str| Self::refuse(expected, hidden.clone());
        let (scheme, rest) = split_scheme(text).ok_or_else(|| refuse(FORMS))?;
        if scheme.tls && !cfg!(feature = "tls") {
            return Err(Error::NoTls);
        }
        if scheme.reach == Reach::Socket {
            return Self::parse_socket(scheme, text, named);
        }
        let (rest, text) = split_parameters(rest);
        let parameters = read_parameters(text, scheme.tls).map_err(|expected| {
            refuse(&format!(
                "{expected}; a user and a password stand before the host, as in USER:PASSWORD@HOST"
            ))
        })?;
        if scheme.tls && rest.ends_with("#insecure") {
            return Err(refuse("?tls=insecure in the place of #insecure"));
        }
        // As in every URL, a password may contain a slash only if it is encoded.
        let (servers, path) = match rest.split_once('/') {
            Some(split) => split,
            None if !named => (rest, ""),
            None => {
                let service = (scheme.reach == Reach::Sentinel).then_some("");
                return Err(refuse(&expected_name(scheme, service, "", "")));
            }
        };
        let (user, hosts) = match servers.rsplit_once('@') {
            Some((user, hosts)) => (format!("{user}@"), hosts),
            None => (String::new(), servers),
        };
        let (service, path) = match scheme.reach {
            Reach::Sentinel => match path.split_once('/') {
                Some((service, path)) => (Some(service), path),
                None => (Some(path), ""),
            },
            _ => (None, path),
        };
        if service == Some("") {
            let behind = if named { "/SERVICE/NAME" } else { "/SERVICE" };
            let expected = format!("what the Sentinels call the master: …{behind}");
            return Err(refuse(&expected));
        }
        let (db, name) = match path.split_once('/') {
            _ if scheme.reach == Reach::Cluster => ("", path),
            Some((db, name)) if is_number(db) => (db, name),
            None if is_number(path) => (path, ""),
            _ => ("", path),
        };
        if named && !is_name(name) {
            return Err(refuse(&expected_name(scheme, service, db, name)));
        }
        if !named && !name.is_empty() {
            return Err(refuse("servers without the name of a filter"));
        }
        if hosts.contains(',') && scheme.reach == Reach::Server {
            return Err(refuse("one server, or redis+cluster:// for several"));
        }
        let bare = |host: &str| !host.starts_with('[') && host.matches(':').count() > 1;
        if hosts.split(',').any(bare) {
            return Err(refuse(
                "an IPv6 address in brackets: redis://[::1]:6379/NAME",
            ));
        }
        let protocol = parameters.protocol.as_ref();
        let protocol = protocol.map_or_else(String::new, |it| format!("?protocol={it}"));
        let insecure = parameters.is_insecure;
        let node = |host| {
            let url = format!("redis://{user}{host}/{db}{protocol}");
            let node = address(&url, &hidden)?;
            Ok(match node.addr().clone() {
                ConnectionAddr::Tcp(host, port) if scheme.tls => {
                    node.set_addr(ConnectionAddr::TcpTls {
                        host,
                        port,
                        insecure,
                        tls_params: None,
                    })
                }
                _ => node,
            })
        };
        let nodes = hosts.split(',').map(node).collect::<Result<_, Error>>()?;
        Ok(Self {
            scheme,
            nodes,
            service: service.map(str::to_owned),
            name: name.to_owned(),
            parameters: Box::new(parameters),
        })
    }
}

/// Reads `?timeout=5s&replicas=1`; the error is what was expected.
fn read_parameters(text: &str, with_tls: bool) -> Result<Parameters, String> {
    if text.contains('#') {
        return Err("%23 where a parameter holds a #".into());
    }
    let url = redis::parse_redis_url(&format!("redis://h/{text}"));
    let url = url.ok_or("parameters as in ?timeout=5s&replicas=1")?;
    Parameters::read(url.query_pairs(), with_tls)
}

impl FromStr for Location {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text, true)
    }
}

impl FromStr for Servers {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Location::parse(text, false).map(Self)
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

/// Parses an address as a URL; `hidden` is for the error.
fn address(url: &str, hidden: &str) -> Result<ConnectionInfo, Error> {
    url.into_connection_info().map_err(|error| Error::Location {
        expected: "the address of a Redis server".into(),
        got: format!("{hidden}: {error}"),
    })
}

/// The expected form, for the error about an invalid or missing name.
fn expected_name(scheme: Scheme, service: Option<&str>, db: &str, name: &str) -> String {
    let prefix = scheme.prefix;
    let place = match scheme.reach {
        Reach::Sentinel => "HOST:PORT/SERVICE",
        Reach::Cluster => "HOST:PORT,…",
        Reach::Server | Reach::Socket => "HOST",
    };
    if !name.is_empty() {
        return "a name without braces, which have a meaning in Redis Cluster".into();
    }
    if !db.is_empty() {
        return format!(
            "a filter's name behind the database: {prefix}{place}/{db}/NAME (a filter called \
             {db} is {prefix}{place}/0/{db})"
        );
    }
    match service {
        Some(_) => format!(
            "what the Sentinels call the master, then a filter's name: {prefix}{place}/NAME"
        ),
        None => format!("a filter's name behind the server: {prefix}{place}/NAME"),
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.contains(['{', '}'])
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
            ("redis://host/0/7", "redis://host:6379/0/7"),
            ("redis://host/0/7/x", "redis://host:6379/0/7/x"),
            ("redis://host/7up", "redis://host:6379/7up"),
            ("redis+cluster://a:1/7", "redis+cluster://a:1/7"),
            ("redis://:pw@host/7/8", "redis://:***@host:6379/7/8"),
            ("redis://u:p%2Fw@h/x", "redis://u:***@h:6379/x"),
            ("rediss://host/seen?tls=insecure", "rediss://host:6379/seen"),
            (
                "redis+cluster://a:1,b:2/seen",
                "redis+cluster://a:1,b:2/seen",
            ),
            (
                "rediss+cluster://u:p@a:1,b:2/3/x",
                "rediss+cluster://u:***@a:1,b:2/3/x",
            ),
            ("redis://h/a?b?protocol=resp3", "redis://h:6379/a?b"),
            ("redis://[::1]:7/x", "redis://[::1]:7/x"),
            ("rediss://[fe80::2]/x", "rediss://[fe80::2]:6379/x"),
            (
                "redis+cluster://[::1]:1,b:2/x",
                "redis+cluster://[::1]:1,b:2/x",
            ),
            (
                "redis+sentinel://:p@a:1,b:2/main/3/x",
                "redis+sentinel://:***@a:1,b:2/main/3/x",
            ),
            (
                "redis+unix:///run/redis.sock?name=seen%2Furls&db=2&user=u&pass=p",
                "redis+unix:///run/redis.sock?name=seen/urls&db=2&user=u",
            ),
        ] {
            assert_eq!(shown(text), expected);
        }
        let at: Location = "redis://u:p%2Fw@h/x".parse().unwrap();
        assert_eq!(at.nodes()[0].redis_settings().password(), Some("p/w"));
        let at: Location = "rediss+cluster://u:p@a:1,b:2/3/x".parse().unwrap();
        assert_eq!(
            (at.name(), at.nodes().len(), at.is_cluster()),
            ("3/x", 2, true)
        );
        assert_eq!(at.nodes()[1].redis_settings().username(), Some("u"));
        let at: Location = "redis+sentinel://a:1/main/x".parse().unwrap();
        assert_eq!((at.service(), at.name()), (Some("main"), "x"));
        let at: Location = "redis://h/x?protocol=resp3".parse().unwrap();
        let protocol = at.nodes()[0].redis_settings().protocol();
        assert_eq!(protocol, redis::ProtocolVersion::RESP3);
    }

    /// Locations and server lists agree on the meaning of a number.
    #[test]
    fn a_number_is_the_database() {
        for (text, way_out) in [
            ("redis://host/3", "redis://HOST/3/NAME"),
            ("redis://host/3", "redis://HOST/0/3"),
            ("redis://host/3/", "redis://HOST/3/NAME"),
            ("redis://host", "redis://HOST/NAME"),
            ("redis://host/", "redis://HOST/NAME"),
            (
                "redis+sentinel://a:1/main/3",
                "redis+sentinel://HOST:PORT/SERVICE/3/NAME",
            ),
            (
                "redis+sentinel://a:1/seen",
                "redis+sentinel://HOST:PORT/SERVICE/NAME",
            ),
            (
                "redis+sentinel://a:1",
                "redis+sentinel://HOST:PORT/SERVICE/NAME",
            ),
            ("redis+cluster://a:1/", "redis+cluster://HOST:PORT,…/NAME"),
        ] {
            let error = text.parse::<Location>().unwrap_err().to_string();
            assert!(error.contains(way_out), "{text}: {error}");
        }
        let at: Location = "redis://host/3/seen".parse().unwrap();
        let servers: Servers = "redis://host/3".parse().unwrap();
        assert_eq!(Servers::from(&at).to_string(), servers.to_string());
        assert_eq!(at.nodes()[0].redis_settings().db(), 3);
    }

    #[test]
    fn servers_have_no_name() {
        for (text, expected) in [
            ("redis://host", "redis://host:6379"),
            ("redis://host/", "redis://host:6379"),
            ("redis://:pw@host/3", "redis://:***@host:6379/3"),
            ("redis://host/3/", "redis://host:6379/3"),
            ("redis+cluster://a:1,b:2", "redis+cluster://a:1,b:2"),
            ("redis+sentinel://a:1/main/3", "redis+sentinel://a:1/main/3"),
            ("redis+unix:///s.sock?db=3", "redis+unix:///s.sock?db=3"),
        ] {
            let servers: Servers = text.parse().unwrap();
            assert_eq!(servers.to_string(), expected);
            assert!(servers.location().name().is_empty());
        }
        for text in [
            "redis://host/seen",
            "redis://host/3/seen",
            "redis+cluster://a:1/3",
            "redis+sentinel://a:1",
            "redis+unix:///s.sock?name=seen",
        ] {
            assert!(text.parse::<Servers>().is_err(), "{text}");
        }
        let at: Location = "redis://:pw@host/3/seen".parse().unwrap();
        assert_eq!(Servers::from(&at).to_string(), "redis://:***@host:6379/3");
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
            "redis://u:secret@::1:6379/x",
            "redis+cluster://u:secret@a:1,::1/x",
            "redis+cluster://u:secret@/x",
            "redis://u:secret@host/x?protocol=resp4",
            "redis+sentinel://u:secret@a:1/main",
            "redis+sentinel://u:secret@a:1//x",
            "redis+unix:///run/redis.sock?pass=secret&db=1",
            "redis+unix:///run/redis.sock?db=x&pass=secret&name=y",
            "redis+unix:/run/redis.sock?name=y&pass=secret",
            "redis+unix:///run/redis.sock?name=y&password=secret",
            "redis:/:secret@host/0/x",
            "redis//:secret@host/0/x",
            "redis://:secret/host/x",
            "rediss://u:secret@host/x#insecure",
            "redis://host/0/x?password=secret",
            "redis://host/0/x?protocol=resp3&pass=secret",
            "redis://host/0/x?a?pass=secret?protocol=resp3",
        ] {
            let error = text.parse::<Location>().unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
            assert!(error.contains("expected"), "{error}");
        }
    }
}
