//! The command on filters in Redis, with real servers.

#[path = "../common/mod.rs"]
#[allow(dead_code)]
mod common;
#[path = "../../../tamis-redis/tests/common/mod.rs"]
#[allow(dead_code, unused_imports)]
mod servers;

mod commands;
mod faults;
mod module;
mod strings;
mod trust;
mod windows;
mod workers;

use servers::Server;

/// The filter of this name on the server.
fn at(server: &Server, name: &str) -> String {
    format!("redis://{}/{name}", server.address())
}
