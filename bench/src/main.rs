//! Tamis beside its peers: same machine, same run, same keys.
//!
//! One file a suite. A suite prints a table of ratios and writes
//! `bench/results/SUITE.json`; `report` draws `docs/benchmarks.md` and README's picture from those.

mod chart;
mod child;
mod clock;
#[path = "../../crates/tamis-cli/tests/command/grep/corpus/mod.rs"]
#[allow(dead_code)] // tests do more with it
mod corpus;
mod cuckoo;
mod dedup;
mod docs;
mod everywhere;
mod filters;
mod formats;
mod fuse;
mod growing;
mod index;
mod module;
mod pages;
#[path = "../../crates/tamis-cli/tests/command/grep/queries.rs"]
#[allow(dead_code)]
mod queries;
mod race;
mod redis;
mod report;
mod scale;
mod serve;
#[path = "../../crates/tamis-redis/tests/common/server.rs"]
#[allow(dead_code)] // tests do more with a server
mod server;
mod urls;
mod window;

use std::process::ExitCode;

const USAGE: &str = "\
usage: tamis-bench SUITE [OPTIONS]

suites:
  filters [--keys 1e6,4e8] [--rounds 15]   Bloom filters at equal size, hashed keys
  urls [--keys 1e6,1e8] [--rounds 15]      Bloom filters at equal size, keys of 60 bytes
  dedup [--lines 1e7] [--rounds 5]         `tamis dedup` and the tools for the same job
  scale [--lines 6e7] [--threads 1,2,4,8,16] [--rounds 2]   the command with so many threads
  cuckoo [--keys 1e7] [--rounds 5]         filters whose keys can be removed
  growing                                  a growing filter and a right-sized one
  fuse                                     filters of finished lists
  window [--keys 1e6,1e8] [--longest 1e8]  windows and a blocked filter of the same bytes
  redis [--keys 1e5] [--batch 1e4] [--rounds 9]   filters in Redis
  module [--keys 1e7] [--calls 2e4] [--rounds 9]  BF.* of the module beside SETBIT, GETBIT, SET, GET
  index [--files 5000] [--bytes 4e9] [--rounds 3]   sixty questions about a tree of logs
  formats [--keys 1e7] [--rounds 9] [--python target/venv-peers/bin/python]   other systems' files
  serve [--rounds 15] [--connections 500] [--seconds 30]   `tamis serve` beside the library and a bare axum
  everywhere [--only js,java,c,sqlite] [--rounds 3]   one filter asked from other languages, and their peers
  race [--additions 1e9] [--generations 1e4] [--processes 4] [--threads 4] [--rate 1e-6]   many writers of one window: a trial
  report [--check]                         docs/benchmarks.md and docs/readme-speed.svg from the results
";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("tamis-bench: {message}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), String> {
    let mut args = std::env::args().skip(1);
    let suite = args.next().ok_or(USAGE)?;
    let args = Args(args.collect());
    let results = match suite.as_str() {
        "filters" => filters::run(args)?,
        "urls" => urls::run(args)?,
        "dedup" => dedup::run(args)?,
        "scale" => scale::run(args)?,
        "cuckoo" => cuckoo::run(args)?,
        "growing" => growing::run(args)?,
        "fuse" => fuse::run(args)?,
        "window" => window::run(args)?,
        "redis" => redis::run(args)?,
        "module" => module::run(args)?,
        "index" => index::run(args)?,
        "formats" => formats::run(args)?,
        "serve" => serve::run(args)?,
        "everywhere" => everywhere::run(args)?,
        "race" => return race(args),
        race::WRITER => return race::write(&args.0),
        serve::HELLO => return serve::hello(),
        "report" => return report(args),
        _ => return Err(format!("no suite {suite:?}\n{USAGE}")),
    };
    print!("{}", results.table());
    results.save()
}

fn race(mut args: Args) -> Result<(), String> {
    let additions = number(&args.take("--additions", "1e9")?)?;
    let generations = number(&args.take("--generations", "1e4")?)?;
    let processes = number(&args.take("--processes", "4")?)?;
    let threads = number(&args.take("--threads", "4")?)?;
    let rate = args.take("--rate", "1e-6")?;
    let rate = rate.parse().map_err(|e| format!("{rate}: {e}"))?;
    args.finish()?;
    let writers = (processes, threads);
    race::run(additions, generations, writers, rate, None)?;
    let often = Some(std::time::Duration::from_millis(200));
    race::run(additions / 4, generations, writers, rate, often)
}

fn report(mut args: Args) -> Result<(), String> {
    let check = args.flag("--check");
    args.finish()?;
    match check {
        true => docs::check(),
        false => docs::write(),
    }
}

/// What follows the suite's name: flags, and options with a value each.
struct Args(Vec<String>);

impl Args {
    fn take(&mut self, name: &str, default: &str) -> Result<String, String> {
        let Some(at) = self.0.iter().position(|arg| arg == name) else {
            return Ok(default.into());
        };
        if at + 1 == self.0.len() {
            return Err(format!("{name} needs a value"));
        }
        self.0.remove(at);
        Ok(self.0.remove(at))
    }

    fn flag(&mut self, name: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|arg| arg != name);
        self.0.len() < before
    }

    /// Nothing may be left over.
    fn finish(self) -> Result<(), String> {
        match self.0.first() {
            None => Ok(()),
            Some(arg) => Err(format!("unexpected {arg:?}\n{USAGE}")),
        }
    }
}

/// `1000` or `1e3`.
fn number(text: &str) -> Result<u64, String> {
    match text.parse::<f64>() {
        Ok(x) if (1.0..1e18).contains(&x) => Ok(x as u64),
        _ => Err(format!("expected a number such as 1e6, got {text:?}")),
    }
}
