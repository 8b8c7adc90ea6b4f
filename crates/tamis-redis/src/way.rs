//! How to connect to servers: addresses, TLS, and credentials.

use crate::Location;
use crate::address::Address;
use redis::{Cmd, ConnectionAddr, ConnectionInfo, RedisConnectionInfo};

/// How to connect to a node: with the settings of the first one that the user
/// named.
pub(crate) fn way_to(at: &Location, node: &Address) -> ConnectionInfo {
    let settings = at.nodes()[0].redis_settings().clone();
    let settings = settings.set_lib_name("tamis", env!("CARGO_PKG_VERSION"));
    way_as(at, node, settings)
}

/// How to connect to a Sentinel, which has no databases and may have no users.
pub(crate) fn way_to_sentinel(
    at: &Location,
    node: &Address,
    authenticated: bool,
) -> ConnectionInfo {
    let settings = at.nodes()[0].redis_settings();
    let settings = if authenticated {
        settings.clone().set_db(0)
    } else {
        RedisConnectionInfo::default()
    };
    way_as(at, node, settings)
}

fn way_as(at: &Location, node: &Address, settings: RedisConnectionInfo) -> ConnectionInfo {
    let like = &at.nodes()[0];
    let addr = match (like.addr(), node) {
        (_, Address::Socket(path)) => ConnectionAddr::Unix(path.clone()),
        (ConnectionAddr::TcpTls { insecure, .. }, Address::Tcp { host, port }) => {
            ConnectionAddr::TcpTls {
                host: host.clone(),
                port: *port,
                insecure: *insecure,
                tls_params: None,
            }
        }
        (_, Address::Tcp { host, port }) => ConnectionAddr::Tcp(host.clone(), *port),
    };
    like.clone().set_addr(addr).set_redis_settings(settings)
}

/// The commands that authenticate us and select the database.
pub(crate) fn introduction(way: &ConnectionInfo) -> Vec<Cmd> {
    let settings = way.redis_settings();
    let mut commands = Vec::new();
    let user = settings.username().unwrap_or("default");
    if settings.protocol().supports_resp3() {
        let mut hello = command!("HELLO", 3);
        if let Some(password) = settings.password() {
            hello.arg("AUTH").arg(user).arg(password);
        }
        commands.push(hello);
    } else if let Some(password) = settings.password() {
        let mut auth = command!("AUTH");
        // Servers older than ACLs take only a password.
        if settings.username().is_some() {
            auth.arg(user);
        }
        commands.push(auth.arg(password).take());
    }
    if settings.db() != 0 {
        commands.push(command!("SELECT", settings.db()));
    }
    commands
}
