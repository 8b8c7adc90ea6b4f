//! How servers are reached: addresses, TLS, and who we are.

use crate::link::Address;
use crate::{Location, Options};
use redis::{Cmd, ConnectionAddr, ConnectionInfo, ErrorKind, RedisConnectionInfo, RedisError};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::sync::{Arc, OnceLock};

/// How to connect to a node: as to the first one that the user named.
pub(crate) fn way_to(at: &Location, node: &Address, options: &Options) -> ConnectionInfo {
    let settings = at.nodes()[0].redis_settings().clone();
    let settings = settings.set_lib_name("tamis", env!("CARGO_PKG_VERSION"));
    way_as(at, node, settings, options)
}

/// How to connect to a Sentinel, who has no databases and may have no users.
pub(crate) fn way_to_sentinel(
    at: &Location,
    node: &Address,
    authenticated: bool,
    options: &Options,
) -> ConnectionInfo {
    let settings = at.nodes()[0].redis_settings();
    let settings = match authenticated {
        true => settings.clone().set_db(0),
        false => RedisConnectionInfo::default(),
    };
    way_as(at, node, settings, options)
}

fn way_as(
    at: &Location,
    node: &Address,
    settings: RedisConnectionInfo,
    options: &Options,
) -> ConnectionInfo {
    let like = &at.nodes()[0];
    let addr = match (like.addr(), node) {
        (_, Address::Socket(path)) => ConnectionAddr::Unix(path.clone()),
        (ConnectionAddr::TcpTls { insecure, .. }, Address::Tcp { host, port }) => {
            ConnectionAddr::TcpTls {
                host: host.clone(),
                port: *port,
                insecure: *insecure || options.insecure,
                tls_params: None,
            }
        }
        (_, Address::Tcp { host, port }) => ConnectionAddr::Tcp(host.clone(), *port),
    };
    like.clone().set_addr(addr).set_redis_settings(settings)
}

/// The configuration of TLS, which takes a while to make: the system's
/// authorities are many.
#[derive(Default)]
pub(crate) struct Tls(OnceLock<Result<Arc<ClientConfig>, String>>);

impl Tls {
    /// For an address that needs it.
    pub(crate) fn for_way(
        &self,
        way: &ConnectionInfo,
        options: &Options,
    ) -> Result<Option<Arc<ClientConfig>>, RedisError> {
        let ConnectionAddr::TcpTls { insecure, .. } = way.addr() else {
            return Ok(None);
        };
        let made = self.0.get_or_init(|| {
            crate::tls::config(options, *insecure).map_err(|error| error.to_string())
        });
        match made {
            Ok(config) => Ok(Some(Arc::clone(config))),
            Err(reason) => Err(RedisError::from((
                ErrorKind::InvalidClientConfig,
                "TLS",
                reason.clone(),
            ))),
        }
    }
}

/// Whom the certificate must be for.
pub(crate) fn server_name(host: &str) -> std::io::Result<ServerName<'static>> {
    let name = ServerName::try_from(host.to_owned());
    name.map_err(|error| std::io::Error::other(format!("{host}: {error}")))
}

/// Says who we are, and which database we want.
pub(crate) fn introduction(way: &ConnectionInfo) -> Vec<Cmd> {
    let settings = way.redis_settings();
    let mut commands = Vec::new();
    let user = settings.username().unwrap_or("default");
    if settings.protocol().supports_resp3() {
        let mut hello = redis::cmd("HELLO");
        hello.arg(3);
        if let Some(password) = settings.password() {
            hello.arg("AUTH").arg(user).arg(password);
        }
        commands.push(hello);
    } else if let Some(password) = settings.password() {
        let mut auth = redis::cmd("AUTH");
        // Servers before users were invented take a password alone.
        if settings.username().is_some() {
            auth.arg(user);
        }
        commands.push(auth.arg(password).take());
    }
    if settings.db() != 0 {
        commands.push(redis::cmd("SELECT").arg(settings.db()).take());
    }
    commands
}
