//! Filters whose keys can be removed, at a rate of 0.1 %: the cuckoo filter
//! beside other crates', and the counting filter beside the blocked one.
//!
//! Peers are filled with the same keys in the same run and take turns. Keys
//! are 64-bit numbers; every filter hashes them itself, on the clock. Tamis
//! works through its batch calls.

use crate::clock::{self, Rounds};
use crate::report::{Row, Suite, machine};
use crate::{Args, number};
use std::collections::hash_map::DefaultHasher;
use std::time::Duration;
use tamis::{AnyFilter, Hasher, Kind, Plan};

const RATE: f64 = 1e-3;
/// Keys that are made, then timed, at a time.
const CHUNK: usize = 1 << 12;
/// Lookups of a round.
const LOOKUPS: u64 = 1 << 20;

pub fn run(mut args: Args) -> Result<Suite, String> {
    let keys = args.take("--keys", "1e7")?;
    let rounds = args.take("--rounds", "9")?;
    args.finish()?;
    let mut suite = Suite {
        name: "cuckoo".into(),
        title: "Filters with removal at a rate of 0.1 %".into(),
        command: format!(
            "cargo run --release --manifest-path bench/Cargo.toml -- \
             cuckoo --keys {keys} --rounds {rounds}"
        ),
        machine: machine(),
        peers: Vec::new(),
        rows: Vec::new(),
    };
    let (n, rounds) = (number(&keys)?, number(&rounds)?);
    compare(&mut suite, n, rounds)?;
    Ok(suite)
}

trait Peer {
    fn name(&self) -> &'static str;
    fn insert(&mut self, keys: &[u64]);
    /// The number of keys it takes for present.
    fn count(&mut self, keys: &[u64]) -> usize;
    fn bits(&self) -> f64;
}

struct Tamis {
    name: &'static str,
    filter: AnyFilter,
    answers: Vec<bool>,
}

impl Tamis {
    fn new(name: &'static str, kind: Kind, n: u64) -> Result<Self, String> {
        let plan = Plan::for_rate(kind, n, RATE).map_err(|e| e.to_string())?;
        let filter = AnyFilter::from_plan(&plan, Hasher::default()).map_err(|e| e.to_string())?;
        Ok(Self {
            name,
            filter,
            answers: vec![false; CHUNK],
        })
    }
}

/// The bytes of numbers are keys as they are.
fn as_keys(numbers: &[u64]) -> Vec<[u8; 8]> {
    numbers.iter().map(|n| n.to_le_bytes()).collect()
}

impl Peer for Tamis {
    fn name(&self) -> &'static str {
        self.name
    }

    fn insert(&mut self, keys: &[u64]) {
        let answers = &mut self.answers[..keys.len()];
        (self.filter.insert_many(&as_keys(keys), answers)).expect("room for every key");
    }

    fn count(&mut self, keys: &[u64]) -> usize {
        let answers = &mut self.answers[..keys.len()];
        self.filter.contains_many(&as_keys(keys), answers);
        answers.iter().filter(|yes| **yes).count()
    }

    fn bits(&self) -> f64 {
        self.filter.bytes() as f64 * 8.0
    }
}

impl Peer for qfilter::Filter {
    fn name(&self) -> &'static str {
        "qfilter"
    }

    fn insert(&mut self, keys: &[u64]) {
        for key in keys {
            qfilter::Filter::insert(self, key).expect("room for every key");
        }
    }

    fn count(&mut self, keys: &[u64]) -> usize {
        keys.iter().filter(|key| self.contains(*key)).count()
    }

    fn bits(&self) -> f64 {
        self.memory_usage() as f64 * 8.0
    }
}

impl Peer for cuckoofilter::CuckooFilter<DefaultHasher> {
    fn name(&self) -> &'static str {
        "cuckoofilter"
    }

    fn insert(&mut self, keys: &[u64]) {
        for key in keys {
            self.add(key).expect("room for every key");
        }
    }

    fn count(&mut self, keys: &[u64]) -> usize {
        keys.iter().filter(|key| self.contains(*key)).count()
    }

    fn bits(&self) -> f64 {
        self.memory_usage() as f64 * 8.0
    }
}

impl Peer for scalable_cuckoo_filter::ScalableCuckooFilter<u64> {
    fn name(&self) -> &'static str {
        "scalable_cuckoo_filter"
    }

    fn insert(&mut self, keys: &[u64]) {
        for key in keys {
            scalable_cuckoo_filter::ScalableCuckooFilter::insert(self, key);
        }
    }

    fn count(&mut self, keys: &[u64]) -> usize {
        keys.iter().filter(|key| self.contains(*key)).count()
    }

    fn bits(&self) -> f64 {
        scalable_cuckoo_filter::ScalableCuckooFilter::bits(self) as f64
    }
}

/// The key of a number; different numbers have different keys.
fn key(i: u64) -> u64 {
    let z = i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z ^ (z >> 31)
}

/// Nanoseconds a key of `work` on the keys of `numbers`, chunk by chunk.
fn timed(numbers: impl Iterator<Item = u64>, mut work: impl FnMut(&[u64])) -> f64 {
    let mut numbers = numbers.peekable();
    let mut chunk = Vec::with_capacity(CHUNK);
    let (mut total, mut keys) = (Duration::ZERO, 0);
    while numbers.peek().is_some() {
        chunk.clear();
        chunk.extend(numbers.by_ref().take(CHUNK).map(key));
        total += clock::time(|| work(&chunk));
        keys += chunk.len();
    }
    total.as_nanos() as f64 / keys as f64
}

fn compare(suite: &mut Suite, n: u64, rounds: u64) -> Result<(), String> {
    let mut peers: Vec<Box<dyn Peer>> = vec![
        Box::new(Tamis::new("Tamis cuckoo", Kind::Cuckoo, n)?),
        // Its rate at the load it ends with is half of what it is asked for.
        Box::new(qfilter::Filter::new(n, 2.0 * RATE).map_err(|e| format!("{e:?}"))?),
        Box::new(cuckoofilter::CuckooFilter::<DefaultHasher>::with_capacity(
            n as usize,
        )),
        Box::new(scalable_cuckoo_filter::ScalableCuckooFilter::<u64>::new(
            n as usize, RATE,
        )),
        Box::new(Tamis::new("Tamis counting", Kind::Counting, n)?),
        Box::new(Tamis::new("Tamis blocked", Kind::Blocked, n)?),
    ];
    suite.peers = peers.iter().map(|peer| peer.name().into()).collect();
    let group = format!("{} M keys", n as f64 / 1e6);

    // Filled once: a round is a twentieth, and the last ones are the hardest
    // for a cuckoo filter, so the row is the whole.
    let mut spent = vec![0.0; peers.len()];
    let part = n.div_ceil(20);
    for first in (0..n).step_by(part as usize) {
        eprint!("\r{group}: adding, {} % ", first * 100 / n);
        let numbers = first..n.min(first + part);
        let share = (numbers.end - numbers.start) as f64 / n as f64;
        for (peer, spent) in peers.iter_mut().zip(&mut spent) {
            *spent += share * timed(numbers.clone(), |keys| peer.insert(keys));
        }
    }
    let mut insert = Rounds::new();
    insert.add(spent.into_iter());

    let (mut hit, mut miss) = (Rounds::new(), Rounds::new());
    let mut wrong = vec![0; peers.len()];
    for round in 0..rounds {
        eprint!("\r{group}: asking, round {} of {rounds} ", round + 1);
        let numbers = round * LOOKUPS..(round + 1) * LOOKUPS;
        let hits = numbers.clone().map(|i| i % n);
        hit.add(peers.iter_mut().map(|peer| {
            timed(hits.clone(), |keys| {
                assert_eq!(peer.count(keys), keys.len(), "a false no");
            })
        }));
        let misses = numbers.map(|i| n + i);
        miss.add(
            (peers.iter_mut().zip(&mut wrong))
                .map(|(peer, wrong)| timed(misses.clone(), |keys| *wrong += peer.count(keys))),
        );
    }
    eprintln!();
    let asked = (rounds * LOOKUPS) as f64;
    let bits: Vec<String> = (peers.iter())
        .map(|peer| format!("{} {:.2}", peer.name(), peer.bits() / n as f64))
        .collect();
    eprintln!("bits a key: {}", bits.join(", "));
    suite.rows.extend([
        Row::times(&group, "insert", &insert),
        Row::times(&group, "look up, present", &hit),
        Row::times(&group, "look up, absent", &miss),
        Row::shares(
            &group,
            "false yes",
            wrong.iter().map(|wrong| *wrong as f64 / asked).collect(),
        ),
    ]);
    Ok(())
}
