//! Filters kept by a module, on real servers with Tamis's module, whose path is
//! in TAMIS_MODULE. `./test --all` builds the module and runs these tests on
//! Redis 7, Valkey and Redis 8; otherwise they are ignored:
//!
//! ```text
//! TAMIS_MODULE=…/libtamis_module.so cargo test -p tamis-redis --test live module:: -- --ignored
//! ```

mod copies;
mod faults;
mod keys;

use crate::common::Server;
use crate::{at, impatient, location};
use std::sync::OnceLock;
use std::time::Duration;
use tamis::{Hasher, Kind, Plan};
use tamis_redis::{Location, Options, RedisFilter};

/// The configuration line that loads the module.
fn load() -> String {
    let path = std::env::var("TAMIS_MODULE")
        .expect("TAMIS_MODULE is not set: it names libtamis_module.so (crates/tamis-module)");
    format!("loadmodule {path}")
}

/// A server for tests that leave it unchanged. It ends with the process.
fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start(&[&load()]))
}

fn in_module() -> Options {
    Options::new().in_module()
}

fn create(place: &Location, kind: Kind, keys: u64, rate: f64) -> RedisFilter {
    let plan = Plan::for_rate(kind, keys, rate).unwrap();
    RedisFilter::create(place, &plan, Hasher::default(), &in_module()).unwrap()
}

/// Keys of very different lengths, the same in every run.
fn keys(numbers: std::ops::Range<u32>) -> Vec<Vec<u8>> {
    let key = |i: u32| {
        let mut key = format!("key {i}").into_bytes();
        key.resize(key.len() + [0, 3, 40, 0][i as usize % 4], b'.');
        if i % 10_007 == 3 {
            key.resize(300_000, 0);
        }
        key
    };
    numbers.map(key).collect()
}

fn insert(filter: &mut RedisFilter, keys: &[Vec<u8>]) -> Vec<bool> {
    let mut new = vec![false; keys.len()];
    filter.insert_many(keys, &mut new).unwrap();
    new
}

fn contains(filter: &mut RedisFilter, keys: &[Vec<u8>]) -> Vec<bool> {
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
