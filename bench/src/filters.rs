//! Bloom filters at equal size: how fast they add and ask 64-bit keys that
//! are already hashed, and how often they are wrong.
//!
//! Every library gets keys hashed as it takes them: 64 bits, and 128 for Tamis.
//! Tamis is timed three times: one key at a time, as its peers are, in batches,
//! which only it has, and in batches of 64-bit keys, of which it makes its own
//! hashes on the clock. A large filter of Tamis lies on huge pages; so the peers
//! are timed on the pages that they get by themselves, and on huge ones. And
//! there is a peer that only reads or writes a line of the memory for each key:
//! what no filter can beat that has to look at one.
//!
//! Peers take turns within a round on the same keys, so that a busy machine
//! slows all of them. Only the filters' work is timed, not making the keys.
//! All memory has been touched before.

use crate::clock::{self, Rounds};
use crate::pages::on_huge_pages;
use crate::report::{Row, Suite, machine};
use crate::{Args, number};
use std::time::Duration;
use tamis::{Blocked, Hash, Hasher, Id, Kind, Plan};

const BITS_PER_KEY: u64 = 10;
/// Keys that are made, then timed, at a time.
const CHUNK: usize = 1 << 11;
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
        title: format!("64-bit hashed keys at {BITS_PER_KEY} bits per key"),
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
    fn insert(&mut self, keys: &Keys);
    /// The number of keys it takes for present.
    fn count(&mut self, keys: &Keys) -> usize;
}

/// The same keys as the libraries take them.
#[derive(Default)]
struct Keys {
    short: Vec<u64>,
    long: Vec<Hash>,
}

fn tamis(n: u64) -> Result<Blocked, String> {
    let plan = Plan::for_size(Kind::Blocked, n, n * BITS_PER_KEY / 8).map_err(|e| e.to_string())?;
    Blocked::from_plan(&plan, Hasher::default()).map_err(|e| e.to_string())
}

/// Tamis, through the batch calls: of its own hashes, or of 64-bit ones.
struct Batches {
    filter: Blocked,
    is_short: bool,
    answers: [bool; CHUNK],
}

impl Peer for Batches {
    fn clear(&mut self) {
        self.filter.clear();
    }

    fn insert(&mut self, keys: &Keys) {
        let new = &mut self.answers[..keys.short.len()];
        match self.is_short {
            true => self.filter.insert_many_mut(Id::all(&keys.short), new),
            false => self.filter.insert_many_mut(&keys.long, new),
        }
    }

    fn count(&mut self, keys: &Keys) -> usize {
        let found = &mut self.answers[..keys.short.len()];
        match self.is_short {
            true => self.filter.contains_many(Id::all(&keys.short), found),
            false => self.filter.contains_many(&keys.long, found),
        }
        found.iter().map(|yes| u32::from(*yes)).sum::<u32>() as usize
    }
}

/// Tamis, one key at a time.
impl Peer for Blocked {
    fn clear(&mut self) {
        self.clear();
    }

    fn insert(&mut self, keys: &Keys) {
        for key in &keys.long {
            self.insert_mut(*key);
        }
    }

    fn count(&mut self, keys: &Keys) -> usize {
        let keys = keys.long.iter();
        keys.filter(|key| self.contains(**key)).count()
    }
}

impl Peer for sbbf_rs_safe::Filter {
    fn clear(&mut self) {
        self.reset();
    }

    fn insert(&mut self, keys: &Keys) {
        for key in &keys.short {
            self.insert_hash(*key);
        }
    }

    fn count(&mut self, keys: &Keys) -> usize {
        let keys = keys.short.iter();
        keys.filter(|key| self.contains_hash(**key)).count()
    }
}

impl Peer for fastbloom::BloomFilter {
    fn clear(&mut self) {
        self.clear();
    }

    fn insert(&mut self, keys: &Keys) {
        for key in &keys.short {
            self.insert_hash(*key);
        }
    }

    fn count(&mut self, keys: &Keys) -> usize {
        let keys = keys.short.iter();
        keys.filter(|key| self.contains_hash(**key)).count()
    }
}

/// The memory of such a filter, of which a line is read, or written to, for each
/// key. Whatever its answer, no filter would have had it sooner.
struct Lines(Vec<[u64; 8]>);

impl Lines {
    fn new(n: u64) -> Self {
        Self(vec![[0; 8]; (n * BITS_PER_KEY / 512) as usize])
    }

    fn line_of(&self, key: u64) -> usize {
        ((u128::from(key) * self.0.len() as u128) >> 64) as usize
    }
}

impl Peer for Lines {
    fn clear(&mut self) {
        self.0.fill([0; 8]);
    }

    fn insert(&mut self, keys: &Keys) {
        for key in &keys.short {
            let line = self.line_of(*key);
            self.0[line][0] |= 1;
        }
    }

    fn count(&mut self, keys: &Keys) -> usize {
        let keys = keys.short.iter();
        keys.filter(|key| self.0[self.line_of(**key)][0] < 2)
            .count()
    }
}

/// The three of Tamis first, then the others; the memory is the last.
fn peers(n: u64) -> Result<Vec<Box<dyn Peer>>, String> {
    let sbbf = || sbbf_rs_safe::Filter::new(BITS_PER_KEY as usize, n as usize);
    let fastbloom = || {
        fastbloom::BloomFilter::with_num_bits((n * BITS_PER_KEY) as usize)
            .expected_items(n as usize)
    };
    let batches = |is_short| -> Result<_, String> {
        Ok(Batches {
            filter: tamis(n)?,
            is_short,
            answers: [false; CHUNK],
        })
    };
    Ok(vec![
        Box::new(batches(false)?),
        Box::new(batches(true)?),
        Box::new(tamis(n)?),
        Box::new(sbbf()),
        Box::new(on_huge_pages(sbbf)),
        Box::new(fastbloom()),
        Box::new(on_huge_pages(fastbloom)),
        Box::new(on_huge_pages(|| Lines::new(n))),
    ])
}

/// The times of each way to use Tamis; the peers, whose times are those of
/// single keys, are beside each.
struct Ways {
    batches: Rounds,
    short_batches: Rounds,
    single: Rounds,
}

impl Ways {
    fn new() -> Self {
        Self {
            batches: Rounds::new(),
            short_batches: Rounds::new(),
            single: Rounds::new(),
        }
    }

    fn add(&mut self, times: impl Iterator<Item = f64>) {
        let times: Vec<f64> = times.collect();
        let (ours, peers) = times.split_at(3);
        let ways = [&mut self.batches, &mut self.short_batches, &mut self.single];
        for (way, ours) in ways.into_iter().zip(ours) {
            way.add([&[*ours], peers].concat().into_iter());
        }
    }

    fn rows(&self, group: &str, task: &str) -> [Row; 3] {
        [
            Row::times(group, task, &self.single),
            Row::times(group, &format!("{task}, Tamis in batches"), &self.batches),
            Row::times(
                group,
                &format!("{task}, Tamis in batches of 64-bit keys"),
                &self.short_batches,
            ),
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
fn timed(numbers: impl Iterator<Item = u64>, mut work: impl FnMut(&Keys)) -> f64 {
    let mut numbers = numbers.peekable();
    let mut chunk = Keys::default();
    let (mut total, mut keys) = (Duration::ZERO, 0);
    while numbers.peek().is_some() {
        chunk.short.clear();
        chunk.short.extend(numbers.by_ref().take(CHUNK).map(key));
        chunk.long.clear();
        chunk
            .long
            .extend(chunk.short.iter().map(|key| Hash::from_u64(*key)));
        total += clock::time(|| work(&chunk));
        keys += chunk.short.len();
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
        "one line, nothing else",
    ]
    .map(String::from)
    .to_vec();

    // A small filter is filled anew in every round; a large one once, which
    // takes many rounds.
    let mut insert = Ways::new();
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
    let (mut hit, mut miss) = (Ways::new(), Ways::new());
    let mut wrong = vec![0; peers.len()];
    for round in 0..rounds {
        eprint!("\r{n} keys: asking, round {} of {rounds} ", round + 1);
        let numbers = round * LOOKUPS..(round + 1) * LOOKUPS;
        let hits = numbers.clone().map(|i| i % n);
        hit.add(peers.iter_mut().map(|peer| {
            timed(hits.clone(), |keys| {
                assert_eq!(peer.count(keys), keys.short.len(), "a false no");
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
    let shares = wrong[2..peers.len() - 1]
        .iter()
        .map(|wrong| *wrong as f64 / asked);
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
