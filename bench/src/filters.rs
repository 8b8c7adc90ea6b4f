//! Bloom filters at equal size: how fast they add and ask 64-bit keys that
//! are already hashed, and how often they are wrong.
//!
//! Peers take turns within a round on the same keys, so that a busy machine
//! slows all of them. Only the filters' work is timed, not making the keys.
//! All memory has been touched before.

use crate::clock::{self, Rounds};
use crate::report::{Row, Suite, machine};
use crate::{Args, number};
use std::time::Duration;
use tamis::{Blocked, Hasher, Kind, Plan};

const BITS_PER_KEY: u64 = 10;
/// Keys that are made, then timed, at a time.
const CHUNK: usize = 1 << 14;
/// Keys of one batch call, for those who have such.
const BATCH: usize = 1 << 12;
/// Keys added in a round.
const INSERTS: u64 = 1 << 20;
/// Lookups of a round: the first ones bring a small filter back into the cache
/// after its peers' turns, so there must be many.
const LOOKUPS: u64 = 8 << 20;

pub fn run(mut args: Args) -> Result<Suite, String> {
    let sizes = args.take("--keys", "1e6,4e8")?;
    let rounds = args.take("--rounds", "15")?;
    args.finish()?;
    let mut suite = Suite {
        name: "filters".into(),
        title: format!("64-bit hashed keys at {BITS_PER_KEY} bits a key"),
        command: format!(
            "cargo run --release --manifest-path bench/Cargo.toml -- \
             filters --keys {sizes} --rounds {rounds}"
        ),
        machine: machine(),
        peers: Vec::new(),
        rows: Vec::new(),
    };
    for n in sizes.split(',') {
        compare(&mut suite, number(n)?, number(&rounds)?)?;
    }
    Ok(suite)
}

trait Peer {
    fn name(&self) -> &'static str;
    fn clear(&mut self);
    fn insert(&mut self, keys: &[u64]);
    /// The number of keys it takes for present.
    fn count(&mut self, keys: &[u64]) -> usize;
}

/// Tamis, through the batch calls. Making its 128-bit hashes is on the clock.
struct Tamis {
    filter: Blocked,
    answers: [bool; BATCH],
}

impl Tamis {
    fn new(n: u64) -> Result<Self, tamis::Error> {
        let plan = Plan::for_size(Kind::Blocked, n, n * BITS_PER_KEY / 8)?;
        Ok(Self {
            filter: Blocked::from_plan(&plan, Hasher::default())?,
            answers: [false; BATCH],
        })
    }
}

impl Peer for Tamis {
    fn name(&self) -> &'static str {
        "Tamis"
    }

    fn clear(&mut self) {
        self.filter.clear();
    }

    fn insert(&mut self, keys: &[u64]) {
        for keys in keys.chunks(BATCH) {
            let new = &mut self.answers[..keys.len()];
            self.filter.insert_hashes(keys, new);
        }
    }

    fn count(&mut self, keys: &[u64]) -> usize {
        let mut count = 0;
        for keys in keys.chunks(BATCH) {
            let found = &mut self.answers[..keys.len()];
            self.filter.contains_hashes(keys, found);
            count += found.iter().map(|yes| u32::from(*yes)).sum::<u32>();
        }
        count as usize
    }
}

impl Peer for sbbf_rs_safe::Filter {
    fn name(&self) -> &'static str {
        "sbbf-rs"
    }

    fn clear(&mut self) {
        self.reset();
    }

    fn insert(&mut self, keys: &[u64]) {
        for key in keys {
            self.insert_hash(*key);
        }
    }

    fn count(&mut self, keys: &[u64]) -> usize {
        keys.iter().filter(|key| self.contains_hash(**key)).count()
    }
}

impl Peer for fastbloom::BloomFilter {
    fn name(&self) -> &'static str {
        "fastbloom"
    }

    fn clear(&mut self) {
        self.clear();
    }

    fn insert(&mut self, keys: &[u64]) {
        for key in keys {
            self.insert_hash(*key);
        }
    }

    fn count(&mut self, keys: &[u64]) -> usize {
        keys.iter().filter(|key| self.contains_hash(**key)).count()
    }
}

/// The key of a number; different numbers have different keys.
fn key(i: u64) -> u64 {
    let z = i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Times `work` on the keys of `numbers`, chunk by chunk.
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
        Box::new(Tamis::new(n).map_err(|e| e.to_string())?),
        Box::new(sbbf_rs_safe::Filter::new(BITS_PER_KEY as usize, n as usize)),
        Box::new(
            fastbloom::BloomFilter::with_num_bits((n * BITS_PER_KEY) as usize)
                .expected_items(n as usize),
        ),
    ];
    suite.peers = peers.iter().map(|peer| peer.name().into()).collect();

    // A small filter is filled anew in every round; a large one once, which
    // takes many rounds.
    let mut insert = Rounds::new();
    for _fill in 0..(rounds * INSERTS).div_ceil(n).min(rounds) {
        for peer in &mut peers {
            peer.clear();
        }
        for first in (0..n).step_by(INSERTS as usize) {
            eprint!("\r{n} keys: adding, {} % ", first * 100 / n);
            let numbers = first..n.min(first + INSERTS);
            insert.add(
                (peers.iter_mut()).map(|peer| timed(numbers.clone(), |keys| peer.insert(keys))),
            );
        }
    }
    let (mut hit, mut miss) = (Rounds::new(), Rounds::new());
    let mut wrong = vec![0; peers.len()];
    for round in 0..rounds {
        eprint!("\r{n} keys: asking, round {} of {rounds} ", round + 1);
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
    let group = name_of(n);
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

/// `1 M keys`.
fn name_of(n: u64) -> String {
    match n {
        1_000_000.. => format!("{} M keys", n as f64 / 1e6),
        1_000.. => format!("{} k keys", n as f64 / 1e3),
        _ => format!("{n} keys"),
    }
}
