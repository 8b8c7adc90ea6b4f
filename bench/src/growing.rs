//! Growing filters beside the blocked filter that was sized right from the
//! start: what not knowing the number of keys costs.
//!
//! All take turns within a round on the same keys, which are hashed already.

use crate::clock::{self, Rounds};
use crate::report::{Row, Suite, machine};
use crate::{Args, number};
use std::time::Duration;
use tamis::{Blocked, Error, Growing, Hash};

/// Keys that are made, then timed, at a time.
const CHUNK: usize = 1 << 14;
/// Keys added or asked in a round.
const ROUND: u64 = 1 << 20;

pub fn run(mut args: Args) -> Result<Suite, String> {
    let keys = args.take("--keys", "1e8")?;
    let rate = args.take("--rate", "1e-6")?;
    let firsts = args.take("--first", "1e7,1e6,1e3")?;
    let rounds = args.take("--rounds", "15")?;
    args.finish()?;
    let mut suite = Suite {
        name: "growing".into(),
        title: format!("Filters that grew to {keys} keys at a rate of {rate}"),
        command: format!(
            "cargo run --release --manifest-path bench/Cargo.toml -- \
             growing --keys {keys} --rate {rate} --first {firsts} --rounds {rounds}"
        ),
        machine: machine(),
        peers: Vec::new(),
        rows: Vec::new(),
    };
    let n = number(&keys)?;
    let p: f64 = rate.parse().map_err(|e| format!("--rate: {e}"))?;
    let mut peers = vec![(
        "blocked, sized right".to_string(),
        Peer::Blocked(Blocked::new(n, p).map_err(text)?),
    )];
    for first in firsts.split(',') {
        let filter = Growing::new(number(first)?, p).map_err(text)?;
        peers.push((format!("growing from {first}"), Peer::Growing(filter)));
    }
    compare(&mut suite, &mut peers, n, number(&rounds)?).map_err(text)?;
    suite.peers = peers.into_iter().map(|(name, _)| name).collect();
    Ok(suite)
}

fn text(error: Error) -> String {
    error.to_string()
}

enum Peer {
    Blocked(Blocked),
    Growing(Growing),
}

impl Peer {
    fn insert(&mut self, keys: &[Hash], new: &mut [bool]) -> Result<(), Error> {
        match self {
            Self::Blocked(filter) => filter.insert_many_mut(keys, new),
            Self::Growing(filter) => filter.insert_many(keys, new)?,
        }
        Ok(())
    }

    fn ask(&self, keys: &[Hash], found: &mut [bool]) {
        match self {
            Self::Blocked(filter) => filter.contains_many(keys, found),
            Self::Growing(filter) => filter.contains_many(keys, found),
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Self::Blocked(filter) => filter.bytes(),
            Self::Growing(filter) => filter.bytes(),
        }
    }
}

/// Nanoseconds a key that `work` takes, chunk by chunk.
fn timed(numbers: impl Iterator<Item = u64>, mut work: impl FnMut(&[Hash], &mut [bool])) -> f64 {
    let mut numbers = numbers.peekable();
    let mut chunk = Vec::with_capacity(CHUNK);
    let mut answers = vec![false; CHUNK];
    let (mut total, mut keys) = (Duration::ZERO, 0);
    while numbers.peek().is_some() {
        chunk.clear();
        chunk.extend(numbers.by_ref().take(CHUNK).map(Hash::from_u64));
        let answers = &mut answers[..chunk.len()];
        total += clock::time(|| work(&chunk, answers));
        keys += chunk.len();
    }
    total.as_nanos() as f64 / keys as f64
}

fn compare(
    suite: &mut Suite,
    peers: &mut [(String, Peer)],
    n: u64,
    rounds: u64,
) -> Result<(), Error> {
    let mut insert = Rounds::new();
    for first in (0..n).step_by(ROUND as usize) {
        eprint!("\radding, {} % ", first * 100 / n);
        let mut times = Vec::new();
        for (_, peer) in &mut *peers {
            let mut result = Ok(());
            times.push(timed(first..n.min(first + ROUND), |keys, new| {
                if result.is_ok() {
                    result = peer.insert(keys, new);
                }
            }));
            result?;
        }
        insert.add(times.into_iter());
    }
    let (mut hit, mut miss) = (Rounds::new(), Rounds::new());
    for round in 0..rounds {
        eprint!("\rasking, round {} of {rounds} ", round + 1);
        let numbers = round * ROUND..(round + 1) * ROUND;
        // Spread over the whole history, as a stream's repeats are.
        let old = numbers.clone().map(|i| i.wrapping_mul(0x9E37_79B9) % n);
        hit.add(peers.iter().map(|(_, peer)| {
            timed(old.clone(), |keys, found| {
                peer.ask(keys, found);
                assert!(found.iter().all(|found| *found), "a false no");
            })
        }));
        let new = numbers.map(|i| n + i);
        miss.add(
            peers
                .iter()
                .map(|(_, peer)| timed(new.clone(), |keys, found| peer.ask(keys, found))),
        );
    }
    eprintln!();
    for (name, peer) in &*peers {
        let layers = match peer {
            Peer::Blocked(_) => 1,
            Peer::Growing(filter) => filter.shape().layers(),
        };
        eprintln!("{name}: {layers} layers, {} MB", peer.bytes() / 1_000_000);
    }
    let group = format!("{} M keys", n as f64 / 1e6);
    suite.rows.extend([
        Row::times(&group, "insert", &insert),
        Row::times(&group, "look up, present", &hit),
        Row::times(&group, "look up, absent", &miss),
    ]);
    Ok(())
}
