//! Filters on real servers. All in one test binary, so that harmless tests
//! share a server and a cluster.

#[path = "../common/mod.rs"]
mod common;
#[path = "../../examples/crawler.rs"]
mod example;
#[path = "../../../tamis/tests/common/windows.rs"]
mod windows;

mod asynchronous;
mod broken;
mod confirmed;
mod connections;
mod counting;
mod crawl;
mod failover;
mod files;
mod forged;
mod full;
mod growing;
mod homeless;
mod homes;
mod hostile;
mod identity;
mod layers;
mod lifetime;
mod loss;
mod module;
mod one_node;
mod operators;
mod resharding;
mod restored;
mod rollback;
mod sentinel;
mod signals;
mod silence;
mod spread;
mod stale;
mod window;
mod witness;
mod workers;

use common::{Cluster, Server};
use std::sync::OnceLock;
use std::time::Duration;
use tamis::{
    AnyFilter, Hasher, Kind, Plan,
    window::{Span, WindowOptions},
};
use tamis_redis::{Location, Options, RedisFilter};

/// A server for tests that leave it unchanged. It ends with the process.
fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start(&[]))
}

/// A cluster for the same purpose.
fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| Cluster::start(&[]))
}

/// The location of a filter with this name on a server without passwords.
fn at(server: &Server, name: &str) -> Location {
    location(&format!("redis://{}/{name}", server.address()))
}

fn location(text: &str) -> Location {
    text.parse().unwrap()
}

fn options() -> Options {
    Options::new()
}

/// Options with short timeouts, but long enough for a slow server.
fn impatient() -> Options {
    Options::new()
        .connect_timeout(Duration::from_secs(2))
        .response_timeout(Duration::from_secs(2))
        .retry_for(Duration::from_secs(1))
}

/// Options that give up at once, for servers that never answer.
fn hasty() -> Options {
    Options::new()
        .connect_timeout(Duration::from_millis(100))
        .response_timeout(Duration::from_millis(100))
        .retry_for(Duration::from_millis(200))
}

/// Keys that are the same in every run.
fn keys(numbers: impl Iterator<Item = u64>) -> Vec<String> {
    numbers
        .map(|i| format!("https://example.org/page/{i}"))
        .collect()
}

fn plan(keys: u64, rate: f64) -> Plan {
    Plan::one_line(Kind::Blocked, keys, rate).unwrap()
}

/// A window of a day, which forgets nothing during a test.
fn daily() -> Plan {
    let day = WindowOptions::new(Span::Time(Duration::from_secs(24 * 3_600)));
    Plan::window(&day, 1_000_000, 0.001).unwrap()
}

/// An empty filter in Redis, and the one in memory that it must equal.
fn pair(at: &Location, plan: &Plan) -> (RedisFilter, AnyFilter) {
    let hasher = Hasher::seeded(7);
    let remote = RedisFilter::create(at, plan, hasher, &options()).unwrap();
    (remote, AnyFilter::from_plan(plan, hasher).unwrap())
}

/// Adds keys and returns which were new.
fn insert(filter: &mut RedisFilter, keys: &[String]) -> Vec<bool> {
    let mut new = vec![false; keys.len()];
    filter.insert_many(keys, &mut new).unwrap();
    new
}

/// Looks up keys.
fn contains(filter: &mut RedisFilter, keys: &[String]) -> Vec<bool> {
    let mut found = vec![false; keys.len()];
    filter.contains_many(keys, &mut found).unwrap();
    found
}

fn all(answers: &[bool]) -> bool {
    answers.iter().all(|answer| *answer)
}

fn count(answers: &[bool]) -> usize {
    answers.iter().filter(|answer| **answer).count()
}

/// The body only: counts and checksums in the header may differ.
fn body(filter: &AnyFilter) -> Vec<u8> {
    filter
        .to_bytes()
        .split_off(tamis::internals::raw::HEADER_LEN)
}
