//! A filter in Redis beside what people do without one: a bitmap with SETBIT
//! and GETBIT, seven commands a key at 1 %, a Redis key for each key, and a set
//! of them, one command a key.
//!
//! All talk to one server of the suite's own, over one connection each, in
//! batches of the same keys that are sent whole before the answers are read.
//! The clock is the wall's, because most of the work is the server's.

use crate::clock::{self, Rounds};
use crate::report::{Row, Suite, machine};
use crate::server::Server;
use crate::{Args, number};
use redis::{Connection, Pipeline, RedisError};
use std::time::Instant;
use tamis::{Hash, Hasher, Kind, Plan};
use tamis_redis::{Options, RedisFilter};

/// Keys that the filters are made for.
const CAPACITY: u64 = 20_000_000;
/// Checks in a round that wait for each answer: so many that the first of them, for which the
/// scheduler still moves client and server between cores, don't count.
const SINGLE: usize = 10_000;

type Result<T> = std::result::Result<T, String>;

pub fn run(mut args: Args) -> Result<Suite> {
    let keys = args.take("--keys", "1e5")?;
    let batch = args.take("--batch", "1e4")?;
    let rounds = args.take("--rounds", "9")?;
    let rate = args.take("--rate", "0.01")?;
    // With an append-only file the server writes down what changes.
    let aof = args.take("--aof", "no")?;
    args.finish()?;
    let mut suite = Suite {
        name: "redis".into(),
        title: format!("Filters in Redis, batches of {batch} keys"),
        command: format!(
            "cargo run --release --manifest-path bench/Cargo.toml -- \
             redis --keys {keys} --batch {batch} --rounds {rounds} --rate {rate} --aof {aof}"
        ),
        machine: machine(),
        peers: NAMES.map(String::from).into(),
        rows: Vec::new(),
    };
    let server = Server::start(&[&format!("appendonly {aof}")[..], "appendfsync no"]);
    let rate: f64 = rate.parse().map_err(text)?;
    let mut peers = [
        Peer::Tamis(tamis(&server, rate)?),
        Peer::Bitmap(connect(&server)?, Bitmap::of(rate)),
        Peer::Keys(connect(&server)?),
        Peer::Set(connect(&server)?),
    ];
    let mut logged = [0.0; NAMES.len()];
    let (keys, batch) = (number(&keys)?, number(&batch)? as usize);
    let mut tasks = Task::ALL.map(|task| (task, [(); 4].map(|()| Rounds::new())));
    for round in 0..number(&rounds)? {
        eprint!("\rround {} of {rounds} ", round + 1);
        for (task, rounds) in &mut tasks {
            let work = task.keys(round, keys);
            let mut costs = [[0.0; COSTS.len()]; NAMES.len()];
            // Another peer is first in each round.
            for turn in 0..peers.len() {
                let i = (turn + round as usize) % peers.len();
                let before = log_size(&server);
                costs[i] = cost(&server, &mut peers[i], *task, &work, batch)?;
                if *task == Task::AddNew {
                    logged[i] = (log_size(&server) - before) / work.len() as f64;
                }
            }
            for (i, rounds) in rounds.iter_mut().enumerate() {
                rounds.add(costs.iter().map(|cost| cost[i]));
            }
        }
    }
    eprintln!();
    if aof == "yes" {
        for (name, logged) in NAMES.iter().zip(logged) {
            eprintln!("{name}: {logged:.0} bytes of AOF for a new key");
        }
    }
    for (i, what) in COSTS.into_iter().enumerate() {
        for (task, rounds) in &tasks {
            suite.rows.push(match i {
                0 => Row::times(what, task.name(), &rounds[i]),
                _ => Row::microseconds(what, task.name(), &rounds[i]),
            });
        }
    }
    Ok(suite)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Task {
    AddNew,
    AddMixed,
    AddOld,
    CheckOld,
    CheckNew,
    Single,
}

impl Task {
    const ALL: [Self; 6] = [
        Self::AddNew,
        Self::AddMixed,
        Self::AddOld,
        Self::CheckOld,
        Self::CheckNew,
        Self::Single,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::AddNew => "add, all new",
            Self::AddMixed => "add, 70 % old",
            Self::AddOld => "add, all old",
            Self::CheckOld => "check, present",
            Self::CheckNew => "check, absent",
            Self::Single => "one check, one answer",
        }
    }

    const fn adds(self) -> bool {
        matches!(self, Self::AddNew | Self::AddMixed | Self::AddOld)
    }

    /// The keys of a round, which differ from those of other rounds.
    fn keys(self, round: u64, number: u64) -> Vec<u64> {
        let first = round * 4 * number;
        let new = first..first + number;
        match self {
            Self::AddNew | Self::AddOld | Self::CheckOld => new.collect(),
            Self::AddMixed => {
                let mixed = |i| {
                    if i % 10 < 7 {
                        first + i
                    } else {
                        first + number + i
                    }
                };
                (0..number).map(mixed).collect()
            }
            Self::CheckNew => (first + 2 * number..first + 3 * number).collect(),
            Self::Single => new.take(SINGLE).collect(),
        }
    }
}

const NAMES: [&str; 4] = ["Tamis", "SETBIT, GETBIT", "SET NX, GET", "SADD, SISMEMBER"];

enum Peer {
    Tamis(Box<RedisFilter>),
    Bitmap(Connection, Bitmap),
    Keys(Connection),
    Set(Connection),
}

/// The textbook's Bloom filter.
#[derive(Clone, Copy)]
struct Bitmap {
    bits: u128,
    /// Positions of a key.
    hashes: usize,
}

impl Bitmap {
    fn of(rate: f64) -> Self {
        let hashes = -rate.log2();
        let bits_per_key = hashes / std::f64::consts::LN_2;
        Self {
            bits: (CAPACITY as f64 * bits_per_key).ceil() as u128,
            hashes: hashes.round().max(1.0) as usize,
        }
    }
}

/// The bytes of the append-only file so far; 0 without one.
fn log_size(server: &Server) -> f64 {
    let size = server.info("persistence", "aof_current_size");
    size.and_then(|size| size.parse().ok()).unwrap_or(0.0)
}

fn tamis(server: &Server, rate: f64) -> Result<Box<RedisFilter>> {
    let at = format!("redis://{}/seen", server.address())
        .parse()
        .map_err(text)?;
    let plan = Plan::one_line(Kind::Blocked, CAPACITY, rate).map_err(text)?;
    let filter = RedisFilter::create(&at, &plan, Hasher::default(), &Options::new());
    filter.map(Box::new).map_err(text)
}

fn connect(server: &Server) -> Result<Connection> {
    let client = redis::Client::open(format!("redis://{}/", server.address()));
    client
        .and_then(|client| client.get_connection())
        .map_err(text)
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

impl Peer {
    /// Adds keys; how many were new.
    fn add(&mut self, keys: &[u64]) -> Result<usize> {
        match self {
            Self::Tamis(filter) => {
                let mut new = vec![false; keys.len()];
                filter
                    .insert_hashes(&hashes(keys), &mut new)
                    .map_err(text)?;
                Ok(new.iter().filter(|new| **new).count())
            }
            Self::Bitmap(connection, bitmap) => {
                let old = bits(connection, *bitmap, keys, |pipe, bit| {
                    pipe.setbit("bitmap", bit, true);
                });
                Ok(keys.len() - old.map_err(text)?)
            }
            Self::Keys(connection) => {
                let mut pipe = Pipeline::with_capacity(keys.len());
                for key in keys {
                    pipe.set_nx(format!("key:{key:x}"), 1);
                }
                let new: Vec<bool> = pipe.query(connection).map_err(text)?;
                Ok(new.iter().filter(|new| **new).count())
            }
            Self::Set(connection) => {
                let mut pipe = Pipeline::with_capacity(keys.len());
                for key in keys {
                    pipe.sadd("set", format!("key:{key:x}"));
                }
                let new: Vec<usize> = pipe.query(connection).map_err(text)?;
                Ok(new.iter().sum())
            }
        }
    }

    /// How many of the keys are found.
    fn check(&mut self, keys: &[u64]) -> Result<usize> {
        match self {
            Self::Tamis(filter) => {
                let mut found = vec![false; keys.len()];
                filter
                    .contains_hashes(&hashes(keys), &mut found)
                    .map_err(text)?;
                Ok(found.iter().filter(|found| **found).count())
            }
            Self::Bitmap(connection, bitmap) => bits(connection, *bitmap, keys, |pipe, bit| {
                pipe.getbit("bitmap", bit);
            })
            .map_err(text),
            Self::Keys(connection) => {
                let mut pipe = Pipeline::with_capacity(keys.len());
                for key in keys {
                    pipe.get(format!("key:{key:x}"));
                }
                let found: Vec<Option<u8>> = pipe.query(connection).map_err(text)?;
                Ok(found.iter().flatten().count())
            }
            Self::Set(connection) => {
                let mut pipe = Pipeline::with_capacity(keys.len());
                for key in keys {
                    pipe.sismember("set", format!("key:{key:x}"));
                }
                let found: Vec<bool> = pipe.query(connection).map_err(text)?;
                Ok(found.iter().filter(|found| **found).count())
            }
        }
    }
}

fn hashes(keys: &[u64]) -> Vec<Hash> {
    keys.iter().map(|key| Hash::from_u64(*key)).collect()
}

/// Sends a command for each bit of each key; how many keys had all bits set.
/// The bitmap is as large as the filter.
fn bits(
    connection: &mut Connection,
    bitmap: Bitmap,
    keys: &[u64],
    command: impl Fn(&mut Pipeline, usize),
) -> std::result::Result<usize, RedisError> {
    let mut pipe = Pipeline::with_capacity(keys.len() * bitmap.hashes);
    for key in keys {
        let hash = Hash::from_u64(*key).as_u128();
        let (mut at, step) = ((hash >> 64) as u64, hash as u64);
        for _ in 0..bitmap.hashes {
            command(&mut pipe, ((u128::from(at) * bitmap.bits) >> 64) as usize);
            at = at.wrapping_add(step);
        }
    }
    let set: Vec<u8> = pipe.query(connection)?;
    let whole = |bits: &&[u8]| bits.iter().all(|bit| *bit == 1);
    Ok(set.chunks(bitmap.hashes).filter(whole).count())
}

/// What is measured of each task, in nanoseconds a key.
const COSTS: [&str; 4] = [
    "time",
    "server, `INFO commandstats`",
    "server, all it does",
    "client",
];

fn cost(
    server: &Server,
    peer: &mut Peer,
    task: Task,
    keys: &[u64],
    batch: usize,
) -> Result<[f64; 4]> {
    let batch = if task == Task::Single { 1 } else { batch };
    let (commands, cpu) = (command_time(server)?, cpu_time(server)?);
    let start = Instant::now();
    let mut yes: Result<usize> = Ok(0);
    let client = clock::time(|| {
        yes = keys.chunks(batch).try_fold(0, |sum, keys| {
            let yes = match task.adds() {
                true => peer.add(keys)?,
                false => peer.check(keys)?,
            };
            Ok(sum + yes)
        });
    });
    let wall = start.elapsed().as_nanos() as f64;
    let share = yes? as f64 / keys.len() as f64;
    let right = match task {
        Task::AddNew => share > 0.98,
        Task::AddMixed => (0.29..=0.3).contains(&share),
        Task::AddOld => share == 0.0,
        Task::CheckOld | Task::Single => share == 1.0,
        Task::CheckNew => share < 0.02,
    };
    if !right {
        return Err(format!("{}: {share} of the answers are yes", task.name()));
    }
    let commands = command_time(server)? - commands;
    let cpu = cpu_time(server)? - cpu;
    let all = [wall, commands, cpu, client.as_nanos() as f64];
    Ok(all.map(|total| total / keys.len() as f64))
}

/// What the server has spent in the commands of the peers, in nanoseconds.
fn command_time(server: &Server) -> Result<f64> {
    let info = server.cli(&["INFO", "commandstats"]);
    // cmdstat_getrange:calls=1,usec=9,…
    let spent = |line: &str| -> Option<f64> {
        let (command, figures) = line.strip_prefix("cmdstat_")?.split_once(':')?;
        let ours = !matches!(command, "info" | "command|docs" | "ping" | "client|setinfo");
        let usec = figures
            .split(',')
            .find_map(|figure| figure.strip_prefix("usec="))?;
        ours.then(|| usec.parse::<f64>().ok()).flatten()
    };
    Ok(info.lines().filter_map(spent).sum::<f64>() * 1e3)
}

/// All processor time of the server, in nanoseconds.
fn cpu_time(server: &Server) -> Result<f64> {
    let field = |name| -> Result<f64> {
        let value = server
            .info("cpu", name)
            .ok_or("INFO cpu has no such field")?;
        value.parse().map_err(text)
    };
    Ok((field("used_cpu_user")? + field("used_cpu_sys")?) * 1e9)
}
