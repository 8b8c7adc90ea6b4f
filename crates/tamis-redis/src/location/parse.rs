//! From text to a location.

use super::{Location, Reach, Scheme, Servers, is_number};
use crate::Error;
use crate::hide::{hide_password, split_parameters};
use crate::parameters::Parameters;
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};
use std::str::FromStr;

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
        let nodes = nodes(scheme, servers, db, &parameters, &hidden)?;
        Ok(Self {
            scheme,
            nodes,
            service: service.map(str::to_owned),
            name: name.to_owned(),
            parameters: Box::new(parameters),
        })
    }
}

/// The nodes of `[USER:PASSWORD@]HOST,HOST`; `hidden` is for the error.
fn nodes(
    scheme: Scheme,
    servers: &str,
    db: &str,
    parameters: &Parameters,
    hidden: &str,
) -> Result<Vec<ConnectionInfo>, Error> {
    let refuse = |expected: &str| Location::refuse(expected, hidden);
    let (user, hosts) = match servers.rsplit_once('@') {
        Some((user, hosts)) => (format!("{user}@"), hosts),
        None => (String::new(), servers),
    };
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
        let node = address(&url, hidden)?;
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
    hosts.split(',').map(node).collect()
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
