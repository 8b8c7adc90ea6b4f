//! Windows beside a blocked filter of the same bytes: what forgetting costs.
//!
//! Both take turns within a round on the same keys, which are hashed already. A
//! blocked filter of these bytes would be asked far less well filled; here it is
//! filled alike, so that both read as much of what they read.

use crate::clock::{self, Rounds};
use crate::report::{Row, Suite, machine};
use crate::{Args, number};
use std::time::Duration;
use tamis::internals::raw::BlockedShape;
use tamis::{
    Blocked, Error, Hash, Hasher, Kind, Moment, Plan, Window,
    window::{Span, WindowOptions},
};

/// Keys that are made, then timed, at a time.
const CHUNK: u64 = 1 << 14;
/// Keys added or asked in a round.
const ROUND: u64 = 1 << 20;
const SPAN: Duration = Duration::from_secs(86_400);

pub fn run(mut args: Args) -> Result<Suite, String> {
    let keys = args.take("--keys", "1e6,1e8")?;
    let rate = args.take("--rate", "0.01")?;
    let rounds = args.take("--rounds", "15")?;
    let longest = args.take("--longest", "1e8")?;
    args.finish()?;
    let mut suite = Suite {
        name: "window".into(),
        title: format!("Windows of 8 generations at a rate of {rate}"),
        command: format!(
            "cargo run --release --manifest-path bench/Cargo.toml -- \
             window --keys {keys} --rate {rate} --rounds {rounds} --longest {longest}"
        ),
        machine: machine(),
        peers: vec!["window".into(), "blocked of the same bytes".into()],
        rows: Vec::new(),
    };
    let p: f64 = rate.parse().map_err(|e| format!("--rate: {e}"))?;
    for keys in keys.split(',') {
        compare(&mut suite, number(keys)?, p, number(&rounds)?).map_err(text)?;
    }
    longest_insertion(number(&longest)?, p).map_err(text)?;
    Ok(suite)
}

fn text(error: Error) -> String {
    error.to_string()
}

/// The moment of a key of a stream that fills the window once in its span.
fn moment(number: u64, keys: u64) -> Moment {
    let micros = u128::from(number) * SPAN.as_micros() / u128::from(keys);
    Moment::from_micros(micros as i64)
}

/// Nanoseconds a key that `work` takes, chunk by chunk.
fn timed(numbers: std::ops::Range<u64>, mut work: impl FnMut(u64, &[Hash], &mut [bool])) -> f64 {
    let mut answers = vec![false; CHUNK as usize];
    let mut total = Duration::ZERO;
    let keys = numbers.end - numbers.start;
    for first in numbers.clone().step_by(CHUNK as usize) {
        let end = numbers.end.min(first + CHUNK);
        let chunk: Vec<Hash> = (first..end).map(Hash::from_u64).collect();
        total += clock::time(|| work(first, &chunk, &mut answers[..chunk.len()]));
    }
    total.as_nanos() as f64 / keys as f64
}

fn compare(suite: &mut Suite, n: u64, rate: f64, rounds: u64) -> Result<(), Error> {
    let plan = Plan::window(&WindowOptions::new(Span::Time(SPAN)), n, rate)?;
    let mut window = Window::from_plan(&plan, Hasher::default())?;
    let hashes = Plan::for_rate(Kind::Blocked, n, rate)?.hashes().min(8);
    let shape = BlockedShape::new(plan.bytes() / 64, hashes, 1)?;
    let mut blocked = Blocked::from_plan(&Plan::of(shape, n), Hasher::default())?;
    let group = format!("{} M keys", n as f64 / 1e6);
    // A window and a quarter: then every generation is full, and some are forgotten.
    let all = n + n / 4;
    let mut insert = Rounds::new();
    for first in (0..all).step_by(ROUND as usize) {
        eprint!("\r{group}: adding, {} % ", first * 100 / all);
        let numbers = first..all.min(first + ROUND);
        let ours = timed(numbers.clone(), |number, keys, new| {
            window.insert_many_mut(keys, moment(number, n), new);
        });
        let theirs = timed(numbers, |_, keys, new| blocked.insert_many_mut(keys, new));
        insert.add([ours, theirs].into_iter());
    }
    let now = moment(all, n);
    let (mut hit, mut miss) = (Rounds::new(), Rounds::new());
    let (mut single_hit, mut single_miss) = (Rounds::new(), Rounds::new());
    for round in 0..rounds {
        eprint!("\r{group}: asking, round {} of {rounds} ", round + 1);
        for (rounds, singles, first) in [
            (
                &mut hit,
                &mut single_hit,
                all - n + round * ROUND % (n - n.min(ROUND)).max(1),
            ),
            (&mut miss, &mut single_miss, (1 << 40) + round * ROUND),
        ] {
            let numbers = first..first + ROUND.min(n);
            let ours = timed(numbers.clone(), |_, keys, found| {
                window.contains_many(keys, now, found);
            });
            let theirs = timed(numbers.clone(), |_, keys, found| {
                blocked.contains_many(keys, found);
            });
            rounds.add([ours, theirs].into_iter());
            let ours = timed(numbers.clone(), |_, keys, found| {
                for (key, found) in keys.iter().zip(found) {
                    *found = std::hint::black_box(window.contains(*key, now));
                }
            });
            let theirs = timed(numbers, |_, keys, found| {
                for (key, found) in keys.iter().zip(found) {
                    *found = std::hint::black_box(blocked.contains(*key));
                }
            });
            singles.add([ours, theirs].into_iter());
        }
    }
    eprintln!(
        "\r{group}: {:.1} bits a key, {} MB; two bins of {} slots of {} bits are read",
        plan.bits_per_key(),
        plan.bytes() / 1_000_000,
        window.shape().slots_of_bin(),
        window.shape().slot_bits(),
    );
    suite.rows.extend([
        Row::times(&group, "insert (and ask)", &insert),
        Row::times(&group, "look up, present", &hit),
        Row::times(&group, "look up, absent", &miss),
        Row::times(&group, "look up one by one, present", &single_hit),
        Row::times(&group, "look up one by one, absent", &single_miss),
    ]);
    Ok(())
}

/// Adds so many keys one by one and says how long the longest took, by processor time: forgetting
/// is done in small steps. The same stream runs twice and each key counts with its faster time, because what the
/// machine does meanwhile is not ours. A dense stream, and one with a key in each generation.
fn longest_insertion(keys: u64, rate: f64) -> Result<(), Error> {
    if keys < 2 {
        return Ok(());
    }
    let mut times = vec![u32::MAX; keys as usize];
    let mut sparse = vec![u32::MAX; 1_000];
    for round in 1..=2 {
        let mut window = Window::within(SPAN, keys, rate)?;
        let mut took = |number: u64, at: Moment, time: &mut u32| {
            let hash = Hash::from_u64(number);
            let took = clock::time(|| {
                window.insert_mut(hash, at);
            });
            *time = (*time).min(took.as_nanos() as u32);
        };
        for (number, time) in (0..).zip(&mut times) {
            took(number, moment(2 * number, keys), time);
            if number % (1 << 22) == 0 {
                eprint!(
                    "\radding one by one, round {round}, {} % ",
                    number * 100 / keys
                );
            }
        }
        for (generation, time) in (1..).zip(&mut sparse) {
            let at = moment(2 * keys, keys) + SPAN / 8 * generation;
            took((1 << 50) + u64::from(generation), at, time);
        }
    }
    let longest = |times: &[u32]| times.iter().max().copied().unwrap_or(0) / 1_000;
    eprintln!("\rthe longest of {keys} insertions: {} µs", longest(&times));
    eprintln!(
        "the longest of 1,000, one in a generation: {} µs",
        longest(&sparse)
    );
    Ok(())
}
