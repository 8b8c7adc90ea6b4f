//! Real redis-servers for tests, on free loopback ports, each with its own
//! folder. They end with the test, however it ends.

mod certificate;
mod cluster;
mod proxy;
mod server;

pub(crate) use certificate::Certificate;
pub(crate) use cluster::Cluster;
pub(crate) use proxy::{Proxy, When};
pub(crate) use server::{Server, until};
