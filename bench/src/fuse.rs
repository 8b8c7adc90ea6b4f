//! Finished lists: how long fuse and ribbon filters take to build from 64-bit
//! keys and to ask them, beside xorf's binary fuse filter.
//!
//! Tamis builds on all cores, so builds are timed by the wall clock, and once
//! more by the processor time of all threads. Peers take turns within a round
//! on the same keys. Making Tamis's 128-bit hashes is on the clock.

use crate::clock::{self, Rounds};
use crate::report::{Row, Suite, machine};
use crate::{Args, number};
use std::time::{Duration, Instant};
use tamis::{AnyFilter, Hash, Kind, ListBuilder};
use xorf::{BinaryFuse8, Filter as _};

/// Keys that are made, then timed, at a time.
const CHUNK: usize = 1 << 14;
/// Keys of one batch call.
const BATCH: usize = 1 << 10;
/// Lookups of a round.
const LOOKUPS: u64 = 4 << 20;
/// As xorf's fingerprints of eight bits.
const RATE: f64 = 1.0 / 256.0;

pub fn run(mut args: Args) -> Result<Suite, String> {
    let keys = args.take("--keys", "1e7")?;
    let rounds = args.take("--rounds", "5")?;
    args.finish()?;
    let mut suite = Suite {
        name: "fuse".into(),
        title: "Finished lists of 64-bit keys at 8 bits a fingerprint".into(),
        command: format!(
            "cargo run --release --manifest-path bench/Cargo.toml -- \
             fuse --keys {keys} --rounds {rounds}"
        ),
        machine: machine(),
        peers: PEERS.iter().map(|peer| peer.name().into()).collect(),
        rows: Vec::new(),
    };
    for n in keys.split(',') {
        compare(&mut suite, number(n)?, number(&rounds)?)?;
    }
    Ok(suite)
}

#[derive(Clone, Copy)]
enum Peer {
    Fuse,
    Ribbon,
    Xorf,
}

const PEERS: [Peer; 3] = [Peer::Fuse, Peer::Ribbon, Peer::Xorf];

enum Built {
    Tamis(Box<AnyFilter>),
    Xorf(BinaryFuse8),
}

impl Peer {
    const fn name(self) -> &'static str {
        match self {
            Self::Fuse => "Tamis fuse",
            Self::Ribbon => "ribbon",
            Self::Xorf => "xorf",
        }
    }

    fn build(self, keys: &[u64]) -> Result<Built, String> {
        let kind = match self {
            Self::Fuse => Kind::Fuse,
            Self::Ribbon => Kind::Ribbon,
            Self::Xorf => {
                let built = BinaryFuse8::try_from(keys).map_err(|e| e.to_string())?;
                return Ok(Built::Xorf(built));
            }
        };
        let build = || {
            let mut list = ListBuilder::new(kind, RATE)?;
            let mut hashes = [Hash::default(); BATCH];
            for keys in keys.chunks(BATCH) {
                list.add_hashes(hash_all(keys, &mut hashes))?;
            }
            list.build()
        };
        build()
            .map(|filter| Built::Tamis(Box::new(filter)))
            .map_err(|e: tamis::Error| e.to_string())
    }
}

fn hash_all<'a>(keys: &[u64], hashes: &'a mut [Hash; BATCH]) -> &'a [Hash] {
    for (hash, key) in hashes.iter_mut().zip(keys) {
        *hash = Hash::from_u64(*key);
    }
    &hashes[..keys.len()]
}

impl Built {
    fn bits(&self) -> f64 {
        8.0 * match self {
            Self::Tamis(filter) => filter.bytes() as f64,
            Self::Xorf(filter) => filter.fingerprints.len() as f64,
        }
    }

    /// How many keys it takes for present, asked one at a time.
    fn count_singly(&self, keys: &[u64]) -> usize {
        // The kind is known before the loop, as in a program that holds one.
        let hashes = || keys.iter().map(|key| Hash::from_u64(*key));
        match self {
            Self::Xorf(filter) => keys.iter().filter(|key| filter.contains(key)).count(),
            Self::Tamis(filter) => match &**filter {
                AnyFilter::Fuse(filter) => hashes().filter(|&hash| filter.contains(hash)).count(),
                filter => hashes().filter(|&hash| filter.contains(hash)).count(),
            },
        }
    }

    /// The same in batches, where the peer has them.
    fn count(&self, keys: &[u64]) -> usize {
        match self {
            Self::Xorf(_) => self.count_singly(keys),
            Self::Tamis(filter) => {
                let mut hashes = [Hash::default(); BATCH];
                let mut answers = [false; BATCH];
                let mut count = 0;
                for keys in keys.chunks(BATCH) {
                    let answers = &mut answers[..keys.len()];
                    filter.contains_many(hash_all(keys, &mut hashes), answers);
                    count += answers.iter().filter(|yes| **yes).count();
                }
                count
            }
        }
    }
}

/// The key of a number; different numbers have different keys.
fn key(i: u64) -> u64 {
    let z = i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The processor time that all threads have used.
fn process_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid place for the answer.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    assert_eq!(status, 0, "the system has no clock of process time");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn compare(suite: &mut Suite, n: u64, rounds: u64) -> Result<(), String> {
    let keys: Vec<u64> = (0..n).map(key).collect();
    let (mut wall, mut processor) = (Rounds::new(), Rounds::new());
    let mut built = Vec::new();
    for round in 0..rounds {
        eprint!("\r{n} keys: building, round {} of {rounds} ", round + 1);
        built.clear();
        let (mut walls, mut processors) = (Vec::new(), Vec::new());
        for peer in PEERS {
            let (start, before) = (Instant::now(), process_time());
            built.push(peer.build(&keys)?);
            processors.push((process_time() - before).as_nanos() as f64 / n as f64);
            walls.push(start.elapsed().as_nanos() as f64 / n as f64);
        }
        wall.add(walls.into_iter());
        processor.add(processors.into_iter());
    }
    let (mut hit, mut miss) = (Rounds::new(), Rounds::new());
    let (mut single_hit, mut single_miss) = (Rounds::new(), Rounds::new());
    let mut wrong = vec![0; built.len()];
    let timed = |first: u64, step: u64, work: &mut dyn FnMut(&[u64])| {
        let mut chunk = Vec::with_capacity(CHUNK);
        let mut total = Duration::ZERO;
        for start in (0..LOOKUPS).step_by(CHUNK) {
            chunk.clear();
            // Steps through all keys, in an order of its own.
            let number = |i: u64| first + (start + i).wrapping_mul(step) % n;
            chunk.extend((0..CHUNK as u64).map(|i| key(number(i))));
            total += clock::time(|| work(&chunk));
        }
        total.as_nanos() as f64 / LOOKUPS as f64
    };
    for round in 0..rounds {
        eprint!("\r{n} keys: asking, round {} of {rounds}   ", round + 1);
        hit.add(built.iter().map(|filter| {
            timed(0, 7919, &mut |keys| {
                assert_eq!(filter.count(keys), keys.len(), "a false no");
            })
        }));
        single_hit.add(built.iter().map(|filter| {
            timed(0, 7919, &mut |keys| {
                assert_eq!(filter.count_singly(keys), keys.len(), "a false no");
            })
        }));
        let absent = n * (round + 1);
        single_miss.add(built.iter().map(|filter| {
            timed(absent, 1, &mut |keys| {
                std::hint::black_box(filter.count_singly(keys));
            })
        }));
        miss.add(
            built
                .iter()
                .zip(&mut wrong)
                .map(|(filter, wrong)| timed(absent, 1, &mut |keys| *wrong += filter.count(keys))),
        );
    }
    eprintln!();
    let bits: Vec<String> = (PEERS.iter().zip(&built))
        .map(|(peer, built)| format!("{} {:.4}", peer.name(), built.bits() / n as f64))
        .collect();
    eprintln!("bits a key: {}", bits.join(", "));
    let group = format!("{} M keys", n as f64 / 1e6);
    let asked = (rounds * LOOKUPS) as f64;
    suite.rows.extend([
        Row::times(&group, "build, wall clock", &wall),
        Row::times(&group, "build, processor time", &processor),
        Row::times(&group, "single look-up, present", &single_hit),
        Row::times(&group, "single look-up, absent", &single_miss),
        Row::times(&group, "batch look-up, present", &hit),
        Row::times(&group, "batch look-up, absent", &miss),
        Row::shares(
            &group,
            "false yes",
            wrong.iter().map(|wrong| *wrong as f64 / asked).collect(),
        ),
    ]);
    Ok(())
}
