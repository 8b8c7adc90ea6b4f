//! Bloom filters at equal size: what a key of 60 bytes costs, from its text to
//! the answer, one key at a time; each with the hash that it has by default.

use crate::clock::{self, Rounds};
use crate::filters::name_of;
use crate::pages::on_huge_pages;
use crate::report::{Row, Suite, machine};
use crate::{Args, number};
use std::time::Duration;
use tamis::{Blocked, Hasher, Kind, Plan};

const BITS_PER_KEY: u64 = 10;
/// Keys that are made, then timed, at a time.
const CHUNK: u64 = 1 << 12;
/// Keys added, and asked, in a round.
const ROUND: u64 = 1 << 20;

pub fn run(mut args: Args) -> Result<Suite, String> {
    let sizes = args.take("--keys", "1e6,1e8")?;
    let rounds = args.take("--rounds", "15")?;
    args.finish()?;
    let mut suite = Suite {
        name: "urls".into(),
        title: format!("URLs of 60 bytes at {BITS_PER_KEY} bits per key"),
        command: format!(
            "cargo run --release --manifest-path bench/Cargo.toml -- \
             urls --keys {sizes} --rounds {rounds}"
        ),
        machine: machine(),
        peers: ["Tamis", "fastbloom", "fastbloom, huge pages"]
            .map(String::from)
            .to_vec(),
        rows: Vec::new(),
    };
    for n in sizes.split(',') {
        compare(&mut suite, number(n)?, number(&rounds)?)?;
    }
    Ok(suite)
}

trait Peer {
    fn insert(&mut self, urls: &[String]);
    /// The number of keys it takes for present.
    fn count(&self, urls: &[String]) -> usize;
}

impl Peer for Blocked {
    fn insert(&mut self, urls: &[String]) {
        for url in urls {
            let hash = self.hasher().hash(url.as_bytes());
            self.insert_mut(hash);
        }
    }

    fn count(&self, urls: &[String]) -> usize {
        urls.iter()
            .filter(|url| self.contains(url.as_str()))
            .count()
    }
}

impl Peer for fastbloom::BloomFilter {
    fn insert(&mut self, urls: &[String]) {
        for url in urls {
            self.insert(url.as_str());
        }
    }

    fn count(&self, urls: &[String]) -> usize {
        urls.iter()
            .filter(|url| self.contains(url.as_str()))
            .count()
    }
}

fn url(i: u64) -> String {
    // 60 bytes; the digits are spread as those of real ids.
    let id = i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    format!("https://www.example.org/article/2026/{id:016x}/p.html")
}

/// Nanoseconds for each of so many keys from the first on.
fn timed(numbers: std::ops::Range<u64>, mut work: impl FnMut(&[String])) -> f64 {
    let (mut total, len) = (Duration::ZERO, numbers.end - numbers.start);
    for first in numbers.clone().step_by(CHUNK as usize) {
        let chunk: Vec<String> = (first..numbers.end.min(first + CHUNK)).map(url).collect();
        total += clock::time(|| work(&chunk));
    }
    total.as_nanos() as f64 / len as f64
}

fn compare(suite: &mut Suite, n: u64, rounds: u64) -> Result<(), String> {
    assert_eq!(url(n).len(), 60);
    let plan = Plan::for_size(Kind::Blocked, n, n * BITS_PER_KEY / 8).map_err(|e| e.to_string())?;
    let tamis = Blocked::from_plan(&plan, Hasher::default()).map_err(|e| e.to_string())?;
    let fastbloom = || {
        fastbloom::BloomFilter::with_num_bits((n * BITS_PER_KEY) as usize)
            .expected_items(n as usize)
    };
    let mut peers: Vec<Box<dyn Peer>> = vec![
        Box::new(tamis),
        Box::new(fastbloom()),
        Box::new(on_huge_pages(fastbloom)),
    ];
    let (mut insert, mut hit, mut miss) = (Rounds::new(), Rounds::new(), Rounds::new());
    for first in (0..n).step_by(ROUND as usize) {
        eprint!("\r{n} URLs: adding, {} % ", first * 100 / n);
        let numbers = first..n.min(first + ROUND);
        insert.add((peers.iter_mut()).map(|p| timed(numbers.clone(), |urls| p.insert(urls))));
    }
    for round in 0..rounds {
        eprint!("\r{n} URLs: asking, round {} of {rounds} ", round + 1);
        let start = round * ROUND % n.saturating_sub(ROUND).max(1);
        let present = start..n.min(start + ROUND);
        hit.add(peers.iter().map(|peer| {
            timed(present.clone(), |urls| {
                assert_eq!(peer.count(urls), urls.len(), "a false no");
            })
        }));
        let absent = n + round * ROUND..n + (round + 1) * ROUND;
        miss.add(peers.iter().map(|peer| {
            timed(absent.clone(), |urls| {
                std::hint::black_box(peer.count(urls));
            })
        }));
    }
    eprintln!();
    let group = name_of(n);
    suite.rows.extend([
        Row::times(&group, "insert", &insert),
        Row::times(&group, "look up, present", &hit),
        Row::times(&group, "look up, absent", &miss),
    ]);
    Ok(())
}
