//! Bloom filters at equal size: how fast they add and ask 64-bit keys that
//! are already hashed, and how often they are wrong.
//!
//! Tamis is timed twice: one key at a time, as its peers are, and in batches,
//! which only it has. A large filter of Tamis lies on huge pages; so the peers
//! are timed on the pages that they get by themselves, and on huge ones.
//!
//! Peers take turns within a round on the same keys, so that a busy machine
//! slows all of them. Only the filters' work is timed, not making the keys.
//! All memory has been touched before.

use crate::clock::{self, Rounds};
use crate::pages::on_huge_pages;
use crate::report::{Row, Suite, machine};
use crate::{Args, number};
use std::time::Duration;
use tamis::{Blocked, Hash, Hasher, Kind, Plan};

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
    fn clear(&mut self);
    fn insert(&mut self, keys: &[u64]);
    /// The number of keys it takes for present.
    fn count(&mut self, keys: &[u64]) -> usize;
}

fn tamis(n: u64) -> Result<Blocked, String> {
    let plan = Plan::for_size(Kind::Blocked, n, n * BITS_PER_KEY / 8).map_err(|e| e.to_string())?;
    Blocked::from_plan(&plan, Hasher::default()).map_err(|e| e.to_string())
}

/// Tamis, through the batch calls. Making its 128-bit hashes is on the clock.
struct Batches {
    filter: Blocked,
    answers: [bool; BATCH],
}

impl Peer for Batches {
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

/// Tamis, one key at a time, hashes made on the clock.
impl Peer for Blocked {
    fn clear(&mut self) {
        self.clear();
    }

    fn insert(&mut self, keys: &[u64]) {
        for key in keys {
            self.insert_hash_mut(Hash::from_u64(*key));
        }
    }

    fn count(&mut self, keys: &[u64]) -> usize {
        let contains = |key: &&u64| self.contains_hash(Hash::from_u64(**key));
        keys.iter().filter(contains).count()
    }
}

impl Peer for sbbf_rs_safe::Filter {
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

/// The two of Tamis first, then the others.
fn peers(n: u64) -> Result<Vec<Box<dyn Peer>>, String> {
    let sbbf = || sbbf_rs_safe::Filter::new(BITS_PER_KEY as usize, n as usize);
    let fastbloom = || {
        fastbloom::BloomFilter::with_num_bits((n * BITS_PER_KEY) as usize)
            .expected_items(n as usize)
    };
    let batches = Batches {
        filter: tamis(n)?,
        answers: [false; BATCH],
    };
    Ok(vec![
        Box::new(batches),
        Box::new(tamis(n)?),
        Box::new(sbbf()),
        Box::new(on_huge_pages(sbbf)),
        Box::new(fastbloom()),
        Box::new(on_huge_pages(fastbloom)),
    ])
}

/// Times, and those of Tamis in batches apart from those of single keys; the
/// peers, whose times are those of single keys, are beside either.
struct Both {
    batches: Rounds,
    single: Rounds,
}

impl Both {
    fn new() -> Self {
        Self {
            batches: Rounds::new(),
            single: Rounds::new(),
        }
    }

    fn add(&mut self, times: impl Iterator<Item = f64>) {
        let times: Vec<f64> = times.collect();
        let peers = &times[2..];
        self.batches.add([&times[..1], peers].concat().into_iter());
        self.single.add([&times[1..2], peers].concat().into_iter());
    }

    fn rows(&self, group: &str, task: &str) -> [Row; 2] {
        [
            Row::times(group, task, &self.single),
            Row::times(group, &format!("{task}, Tamis in batches"), &self.batches),
        ]
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
    let mut peers = peers(n)?;
    suite.peers = [
        "Tamis",
        "sbbf-rs",
        "sbbf-rs, huge pages",
        "fastbloom",
        "fastbloom, huge pages",
    ]
    .map(String::from)
    .to_vec();

    // A small filter is filled anew in every round; a large one once, which
    // takes many rounds.
    let mut insert = Both::new();
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
    let (mut hit, mut miss) = (Both::new(), Both::new());
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
    suite.rows.extend(insert.rows(&group, "insert"));
    suite.rows.extend(hit.rows(&group, "look up, present"));
    suite.rows.extend(miss.rows(&group, "look up, absent"));
    let shares = wrong[1..].iter().map(|wrong| *wrong as f64 / asked);
    suite
        .rows
        .push(Row::shares(&group, "false yes", shares.collect()));
    Ok(())
}

/// `1 M keys`.
pub(crate) fn name_of(n: u64) -> String {
    match n {
        1_000_000.. => format!("{} M keys", n as f64 / 1e6),
        1_000.. => format!("{} k keys", n as f64 / 1e3),
        _ => format!("{n} keys"),
    }
}
