//! The service, end to end: the real command, asked over real sockets.

#[path = "../common/mod.rs"]
#[allow(dead_code)]
mod common;
#[path = "../../../tamis-redis/tests/common/mod.rs"]
#[allow(dead_code, unused_imports)]
mod servers;

mod answers;
mod hostile;
mod redis;
mod replaced;
mod secured;
mod service;
mod writing;
