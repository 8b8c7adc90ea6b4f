//! The service, end to end: the real command, queried over real sockets.

#[path = "../common/mod.rs"]
#[allow(dead_code)]
mod common;
#[path = "../../../tamis-redis/tests/common/mod.rs"]
#[allow(dead_code, unused_imports)]
mod servers;
#[path = "../../../tamis/tests/common/windows.rs"]
mod windows;

mod answers;
mod health;
mod hostile;
mod packed;
mod pressure;
mod redis;
mod replaced;
mod saving;
mod secured;
mod service;
mod spoken;
mod window;
mod writing;
