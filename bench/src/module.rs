//! The module beside the server's own commands: what one item costs the
//! server, by its own count (`INFO commandstats`), in the same run.
//!
//! The filter and the bitmap are as large as ten million items at 1 % need, or at `--rate`. Four
//! fifths of them are there before the first round, so that it need not grow.

use crate::clock::Rounds;
use crate::report::{Row, Suite, machine};
use crate::server::Server;
use crate::{Args, number};
use redis::{Cmd, Connection, Pipeline};

/// Items of a command that takes many.
const MANY: usize = 100;
/// Commands sent before the answers are read.
const PIPELINE: usize = 500;

type Result<T> = std::result::Result<T, String>;

pub fn run(mut args: Args) -> Result<Suite> {
    let keys = args.take("--keys", "1e7")?;
    let rate = args.take("--rate", "0.01")?;
    let calls = args.take("--calls", "2e4")?;
    let rounds = args.take("--rounds", "9")?;
    let module = args.take(
        "--module",
        "crates/tamis-module/target/release/libtamis_module.so",
    )?;
    args.finish()?;
    let module = std::fs::canonicalize(&module)
        .map_err(|e| format!("{module}: {e}; build crates/tamis-module first"))?;
    let mut suite = Suite {
        name: "module".into(),
        title: format!("The module, {keys} items at a rate of {rate}"),
        command: format!(
            "cargo run --release --manifest-path bench/Cargo.toml -- \
             module --keys {keys} --rate {rate} --calls {calls} --rounds {rounds}"
        ),
        machine: machine(),
        peers: ["Tamis's module", "SETBIT, GETBIT", "SET, GET"]
            .map(String::from)
            .into(),
        rows: Vec::new(),
    };
    let server = Server::start(&[&format!("loadmodule {}", module.display())]);
    let client = redis::Client::open(format!("redis://{}/", server.address())).map_err(text)?;
    let mut connection = client.get_connection().map_err(text)?;
    let (keys, calls) = (number(&keys)?, number(&calls)? as usize);
    let filled = keys / 5 * 4;
    fill(&mut connection, keys, &rate, filled)?;
    let mut tasks = Task::ALL.map(|task| (task, Rounds::new()));
    for round in 0..number(&rounds)? {
        eprint!("\rround {} of {rounds} ", round + 1);
        for (task, rounds) in &mut tasks {
            let first = keys + round * calls as u64 * MANY as u64 * 2;
            let mut costs = Vec::new();
            for peer in Peer::ALL {
                costs.push(cost(
                    &server,
                    &mut connection,
                    peer,
                    *task,
                    keys,
                    first,
                    calls,
                )?);
            }
            rounds.add(costs.into_iter());
        }
    }
    eprintln!();
    for (task, rounds) in &tasks {
        suite
            .rows
            .push(Row::times("server's time an item", task.name(), rounds));
    }
    for (task, rounds) in &tasks {
        suite
            .rows
            .push(Row::microseconds("server", task.name(), rounds));
    }
    Ok(suite)
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

/// The filter with all its items, and a bitmap and keys of that many.
fn fill(connection: &mut Connection, keys: u64, rate: &str, filled: u64) -> Result<()> {
    let reserve = redis::cmd("BF.RESERVE")
        .arg("filter")
        .arg(rate)
        .arg(keys)
        .to_owned();
    let _: () = reserve.query(connection).map_err(text)?;
    for first in (0..filled).step_by(1000 * PIPELINE) {
        let mut pipe = Pipeline::new();
        for at in (first..filled.min(first + 1000 * PIPELINE as u64)).step_by(1000) {
            pipe.add_command(many("BF.MADD", at..filled.min(at + 1000)))
                .ignore();
        }
        let _: () = pipe.query(connection).map_err(text)?;
    }
    let bits = keys * 10;
    let _: () = (redis::cmd("SETBIT").arg("bitmap").arg(bits).arg(1))
        .query(connection)
        .map_err(text)
        .map(|_: u8| ())?;
    Ok(())
}

fn item(i: u64) -> String {
    format!("item:{i:x}")
}

fn many(command: &str, items: impl Iterator<Item = u64>) -> Cmd {
    let mut command = redis::cmd(command);
    command.arg("filter");
    items.for_each(|i| {
        command.arg(item(i));
    });
    command
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Task {
    AddMany,
    AskMany,
    AddOne,
    AskOne,
}

impl Task {
    const ALL: [Self; 4] = [Self::AddMany, Self::AskMany, Self::AddOne, Self::AskOne];

    const fn name(self) -> &'static str {
        match self {
            Self::AddMany => "add, 100 a command",
            Self::AskMany => "ask, 100 a command",
            Self::AddOne => "add, one a command",
            Self::AskOne => "ask, one a command",
        }
    }

    const fn adds(self) -> bool {
        matches!(self, Self::AddMany | Self::AddOne)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Peer {
    Module,
    Bitmap,
    Keys,
}

impl Peer {
    const ALL: [Self; 3] = [Self::Module, Self::Bitmap, Self::Keys];

    /// The command for an item, or many; only the module has those for many.
    fn command(self, task: Task, first: u64, keys: u64) -> Cmd {
        let one = item(first);
        let bit = (first.wrapping_mul(0x9E37_79B9_7F4A_7C15) as u128 * u128::from(keys * 10)) >> 64;
        match (self, task) {
            (Self::Module, Task::AddMany) => many("BF.MADD", first..first + MANY as u64),
            (Self::Module, Task::AskMany) => many("BF.MEXISTS", first..first + MANY as u64),
            (Self::Module, Task::AddOne) => many("BF.ADD", std::iter::once(first)),
            (Self::Module, Task::AskOne) => many("BF.EXISTS", std::iter::once(first)),
            (Self::Bitmap, task) if task.adds() => redis::cmd("SETBIT")
                .arg("bitmap")
                .arg(bit as u64)
                .arg(1)
                .to_owned(),
            (Self::Bitmap, _) => redis::cmd("GETBIT")
                .arg("bitmap")
                .arg(bit as u64)
                .to_owned(),
            (Self::Keys, task) if task.adds() => redis::cmd("SET").arg(one).arg(1).to_owned(),
            (Self::Keys, _) => redis::cmd("GET").arg(one).to_owned(),
        }
    }
}

/// What the server says that an item costs it, in nanoseconds.
fn cost(
    server: &Server,
    connection: &mut Connection,
    peer: Peer,
    task: Task,
    keys: u64,
    first: u64,
    calls: usize,
) -> Result<f64> {
    let many = peer == Peer::Module && matches!(task, Task::AddMany | Task::AskMany);
    // Fewer commands with many items: as many items must be enough.
    let calls = if many { calls / 10 } else { calls };
    let each = if many { MANY } else { 1 };
    server.cli(&["CONFIG", "RESETSTAT"]);
    for start in (0..calls).step_by(PIPELINE) {
        let mut pipe = Pipeline::new();
        for call in start..calls.min(start + PIPELINE) {
            // Items that the filter is full of, and new ones, by turns.
            let at = match (task.adds(), call % 2) {
                (false, 0) => {
                    (first + (call * each) as u64).wrapping_mul(7919) % (keys / 5 * 4 - MANY as u64)
                }
                _ => first + (call * each) as u64,
            };
            pipe.add_command(peer.command(task, at, keys)).ignore();
        }
        let _: () = pipe.query(connection).map_err(text)?;
    }
    let info = server.cli(&["INFO", "commandstats"]);
    // cmdstat_bf.add:calls=1,usec=9,…
    let spent = |line: &str| -> Option<(f64, f64)> {
        let (command, figures) = line.strip_prefix("cmdstat_")?.split_once(':')?;
        let figure = |name: &str| {
            figures
                .split(',')
                .find_map(|f| f.strip_prefix(name)?.parse::<f64>().ok())
        };
        let ours = command.to_lowercase().starts_with("bf.")
            || matches!(command, "setbit" | "getbit" | "set" | "get");
        ours.then(|| Some((figure("calls=")?, figure("usec=")?)))?
    };
    let (calls, usec) = info
        .lines()
        .filter_map(spent)
        .fold((0.0, 0.0), |(c, u), (calls, usec)| (c + calls, u + usec));
    if calls == 0.0 {
        return Err("the server counted no commands".into());
    }
    Ok(usec * 1e3 / (calls * each as f64))
}
