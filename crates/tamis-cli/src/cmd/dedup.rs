use crate::cmd::info::About;
use crate::engine::batch::Print;
use crate::engine::exact::ExactSet;
use crate::engine::pipeline::Checkpoint;
use crate::estimate;
use crate::location::{KeyFile, Place, RedisArgs, in_redis, named};
use crate::output::Sink;
use crate::stream::{InputArgs, Pass, Report, claim};
use crate::{Exit, human, output};
use anyhow::{Context, Result};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tamis::{AnyFilter, Blocked, Error, FileLock, Growing, Hash, Hasher, Kind, Plan};
use tamis_redis::{Location, RedisFilter};

/// Drop what was already seen
///
/// Each distinct record comes out once, in the order of the input, the first
/// occurrence. With --filter it also drops what earlier runs have seen.
///
/// A new record is wrongly dropped about once in a million (-p); the summary
/// says how many to expect. --exact drops none, for 20 to 30 bytes a record.
///
/// With --filter, output is written before the filter that claims it is saved:
/// after a crash a record may be printed again, but none is lost.
#[derive(clap::Args)]
#[command(after_long_help = "\
Exit codes: 0 something was printed (or counted), 1 nothing, 2 an error.

Examples:
  tamis dedup urls.txt.gz -o unique.txt.zst
  crawl | tamis dedup --filter seen.tamis | fetch      drop what earlier runs saw, too
  tamis dedup --url urls.txt                           http://A/ and http://a:80/#x are one
  tamis dedup --csv customer,date orders.csv           one row per customer and date
  tamis dedup --jsonl /id events.jsonl                 one line per id
  tamis dedup -d urls.txt                              the duplicates instead")]
pub(crate) struct Args {
    #[command(flatten)]
    input: InputArgs,

    /// Write here instead of to standard output; .gz, .zst, .bz2, .xz compress
    ///
    /// OUT appears when all went well. What a failed run has written stays
    /// beside it, as OUT.partial.
    #[arg(short, long, value_name = "OUT", conflicts_with = "count")]
    output: Option<PathBuf>,

    /// Replace OUT if it exists
    #[arg(long)]
    force: bool,

    /// Remember across runs in this filter; made if absent
    ///
    /// A file is saved every few seconds (with -o, at the end), at the end,
    /// and on SIGINT or SIGTERM. In Redis (redis://HOST:PORT/DB/NAME) many
    /// workers share one filter, and each record is new for exactly one of
    /// them: a record is claimed there just before it is printed.
    #[arg(long, value_name = "FILTER", conflicts_with = "exact")]
    filter: Option<Place>,

    /// Seconds between two saves of the filter
    #[arg(long, value_name = "SECONDS", default_value = "5", requires = "filter")]
    save_every: f64,

    /// How often a new record may be wrongly dropped
    #[arg(short = 'p', long = "rate", value_name = "P", default_value = "1e-6", value_parser = human::parse_rate)]
    rate: f64,

    /// Drop nothing wrongly: keep a 128-bit digest of every key
    #[arg(long)]
    exact: bool,

    /// How many distinct records to expect [default: measured, or growing]
    #[arg(short = 'n', long = "keys", value_name = "N", value_parser = human::parse_count)]
    keys: Option<u64>,

    /// Print the duplicates instead: every record but the first of its key
    #[arg(short, long)]
    duplicates: bool,

    /// Print only how many there are
    #[arg(short, long)]
    count: bool,

    /// No summary
    #[arg(short, long)]
    quiet: bool,

    /// Write the summary as JSON to this file
    #[arg(long, value_name = "FILE")]
    json_report: Option<PathBuf>,

    #[command(flatten)]
    key: KeyFile,

    #[command(flatten)]
    redis: RedisArgs,
}

/// A key belongs to one of these by its hash. Their number is fixed, so that
/// no answer depends on the number of threads.
const SHARDS: usize = 16;
/// Where nothing can be measured, the filter starts for so many keys.
const UNMEASURED: u64 = 1 << 20;

/// What was decided with, for the summary.
struct Memory {
    bytes: u64,
    /// Expected number of records wrongly dropped.
    wrong: f64,
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    let mut sink = Sink::open(args.output.as_deref(), args.force, &args.not_outputs())?;
    let (report, memory) = match &args.filter {
        Some(Place::File(path)) => with_file(path, &args, &mut sink)?,
        Some(Place::Redis(at)) => with_redis(at, &args, &mut sink)?,
        None => {
            let done = match args.exact {
                true => with_exact_set(&args, &mut sink)?,
                false => with_filters(&args, &mut sink)?,
            };
            sink.finish(done.0.went_well())
                .context("writing the output")?;
            done
        }
    };
    finish(&args, report, &memory)
}

fn finish(args: &Args, report: Report, memory: &Memory) -> Result<Exit> {
    if !args.quiet {
        summarise(&report, memory);
    }
    if let Some(path) = &args.json_report {
        let text = format!("{:#}\n", report_json(&report, memory));
        std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    let printed = args.printed(&report);
    if args.count {
        output::print(&format!("{printed}\n"))?;
    }
    Ok(match report.finish()? {
        Exit::Done | Exit::NoneFound if printed > 0 => Exit::Done,
        Exit::Done => Exit::NoneFound,
        exit => exit,
    })
}

impl Args {
    /// What must not be written to: the inputs, and the filter.
    fn not_outputs(&self) -> Vec<PathBuf> {
        let mut paths = self.input.paths();
        if let Some(Place::File(filter)) = &self.filter {
            paths.push(filter.clone());
        }
        paths
    }

    fn print(&self) -> Print {
        match (self.count, self.duplicates) {
            (true, _) => Print::Nothing,
            (false, true) => Print::Others,
            (false, false) => Print::Chosen,
        }
    }

    /// How many records the user asked to see.
    fn printed(&self, report: &Report) -> u64 {
        match self.duplicates {
            true => report.records - report.chosen,
            false => report.chosen,
        }
    }

    /// The number of distinct keys to be ready for, if that can be told.
    fn expected_keys(&self) -> Result<Option<u64>> {
        Ok(match self.keys {
            Some(keys) => Some(keys.max(1)),
            None => estimate::records(&self.input.paths(), &self.input.rule()?),
        })
    }
}

fn with_exact_set(args: &Args, sink: &mut Sink) -> Result<(Report, Memory)> {
    let expected = args.expected_keys()?.unwrap_or(0) as usize;
    let shard = |_| ExactSet::with_capacity(expected / SHARDS);
    let mut shards: Vec<ExactSet> = (0..SHARDS).map(shard).collect();
    let report = Pass {
        input: &args.input,
        hasher: &Hasher::default(),
        shards: &mut shards,
        print: args.print(),
        output: sink,
        checkpoint: None,
    }
    .run(|set: &mut ExactSet, hashes, new| {
        set.insert_many(hashes, new);
        Ok(())
    })?;
    let bytes = shards.iter().map(|set| set.memory() as u64).sum();
    Ok((report, Memory { bytes, wrong: 0.0 }))
}

/// Keys seen, in one shard: a filter of the right size for what was expected,
/// and one that grows for what comes beyond.
struct Seen {
    sized: Option<Blocked>,
    growing: Option<Growing>,
    /// What either may be wrong.
    rate: f64,
}

impl Seen {
    /// `expected` keys, if that is known; both filters may be needed then, and
    /// each has half of the rate.
    fn new(expected: Option<u64>, rate: f64) -> Result<Self, Error> {
        Ok(match expected {
            Some(keys) => Self {
                sized: Some(Blocked::new(keys, rate / 2.0)?),
                growing: None,
                rate: rate / 2.0,
            },
            None => Self {
                sized: None,
                growing: Some(Growing::new(UNMEASURED, rate)?),
                rate,
            },
        })
    }

    /// Another of the same size: planning takes longer than making.
    fn template(&self) -> Result<Self, Error> {
        Ok(Self {
            sized: self.sized.as_ref().map(Blocked::template).transpose()?,
            growing: self.growing.as_ref().map(Growing::template).transpose()?,
            rate: self.rate,
        })
    }

    fn insert(&mut self, hashes: &[Hash], new: &mut [bool]) -> Result<(), Error> {
        let Some(sized) = &mut self.sized else {
            return growing(&mut self.growing, self.rate)?.insert_hashes(hashes, new);
        };
        if sized.keys().get() < sized.capacity() {
            sized.insert_hashes(hashes, new);
            return Ok(());
        }
        // Full: what it does not have goes on to the one that grows.
        sized.contains_hashes(hashes, new);
        let mut beyond = Vec::new();
        for (hash, new) in hashes.iter().zip(new.iter_mut()) {
            *new = !*new;
            if *new {
                beyond.push(*hash);
            }
        }
        let mut new_beyond = vec![false; beyond.len()];
        growing(&mut self.growing, self.rate)?.insert_hashes(&beyond, &mut new_beyond)?;
        let asked = new.iter_mut().filter(|new| **new);
        asked
            .zip(new_beyond)
            .for_each(|(new, answer)| *new = answer);
        Ok(())
    }

    fn keys(&self) -> u64 {
        let sized = self.sized.as_ref().map_or(0, |sized| sized.keys().get());
        sized
            + self
                .growing
                .as_ref()
                .map_or(0, |growing| growing.keys().get())
    }

    fn bytes(&self) -> u64 {
        let sized = self.sized.as_ref().map_or(0, Blocked::bytes);
        sized + self.growing.as_ref().map_or(0, Growing::bytes)
    }

    fn expected_wrong(&self) -> f64 {
        let sized = self.sized.as_ref().map_or(0.0, Blocked::expected_wrong);
        let beyond = self.growing.as_ref().map_or(0.0, |growing| {
            // The full filter was asked first.
            let also_sized = self.sized.as_ref().map_or(0.0, Blocked::rate_now);
            growing.expected_wrong() + growing.keys().get() as f64 * also_sized
        });
        sized + beyond
    }
}

fn growing(filter: &mut Option<Growing>, rate: f64) -> Result<&mut Growing, Error> {
    Ok(match filter {
        Some(filter) => filter,
        None => filter.insert(Growing::new(UNMEASURED / SHARDS as u64, rate)?),
    })
}

fn with_filters(args: &Args, sink: &mut Sink) -> Result<(Report, Memory)> {
    // Shards get their share and three standard deviations more.
    let share = |keys: u64| {
        let share = keys.div_ceil(SHARDS as u64);
        share + 3 * (share as f64).sqrt() as u64
    };
    let expected = args.expected_keys()?.map(share);
    // Where nothing is known, one filter: several that grow would do so at other
    // moments than the one that `tamis plan --grow` tells the memory of.
    let shard_count = if expected.is_some() { SHARDS } else { 1 };
    let seen = Seen::new(expected, args.rate)?;
    let shard = |_| seen.template();
    let mut shards = (0..shard_count)
        .map(shard)
        .collect::<Result<Vec<_>, Error>>()?;
    let report = Pass {
        input: &args.input,
        hasher: &Hasher::default(),
        shards: &mut shards,
        print: args.print(),
        output: sink,
        checkpoint: None,
    }
    .run(|seen: &mut Seen, hashes, new| {
        Ok(seen.insert(hashes, new).map_err(anyhow::Error::from)?)
    })?;
    let bytes = shards.iter().map(Seen::bytes).sum();
    // The shards are alike, so the fullest speaks for all.
    let fullest = shards.iter().max_by_key(|seen| seen.keys());
    let wrong = fullest.map_or(0.0, Seen::expected_wrong);
    let wrong = wrong * shard_count as f64;
    Ok((report, Memory { bytes, wrong }))
}

fn with_file(path: &Path, args: &Args, sink: &mut Sink) -> Result<(Report, Memory)> {
    let named = || named(path);
    if !path.exists() {
        let filter = Growing::new(args.expected_keys()?.unwrap_or(UNMEASURED), args.rate)?;
        match filter.save_new(path) {
            // Another run has just made it, which is as well.
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::AlreadyExists => {
            }
            saved => saved.map_err(named())?,
        }
    }
    let mut lock = FileLock::acquire(path).map_err(named())?;
    let filter: AnyFilter = args.key.open()?.load(path).map_err(named())?;
    let hasher = *filter.hasher();
    let before = filter.expected_wrong();
    let mut shards = [filter];
    // A save needs the output to be where it stays; a file that appears only
    // at the end is not there yet.
    let mut periodic_save = |shards: &mut [&mut AnyFilter]| {
        for filter in shards {
            if let Err(error) = filter.save_under(&mut lock) {
                output::warn(format_args!(
                    "saving the filter failed, will try again: {error}"
                ));
            }
        }
        Ok(())
    };
    let checkpoint = (!sink.appears_at_end()).then(|| Checkpoint {
        every: Duration::try_from_secs_f64(args.save_every).unwrap_or(Duration::MAX),
        save: Box::new(&mut periodic_save) as _,
    });
    let report = Pass {
        input: &args.input,
        hasher: &hasher,
        shards: &mut shards,
        print: args.print(),
        output: sink,
        checkpoint,
    }
    .run(|filter: &mut AnyFilter, hashes, new| {
        Ok(filter.insert_hashes(hashes, new).map_err(named())?)
    })?;
    let [filter] = shards;
    if report.is_printed() {
        sink.finish(report.went_well())
            .context("writing the output")?;
        filter.save_under(&mut lock).map_err(named())?;
    }
    if filter.keys().get() > filter.capacity() {
        About::of(&filter).warn_if_over();
    }
    let memory = Memory {
        bytes: filter.bytes(),
        wrong: (filter.expected_wrong() - before).max(0.0),
    };
    Ok((report, memory))
}

fn with_redis(at: &Location, args: &Args, sink: &mut Sink) -> Result<(Report, Memory)> {
    let options = args.redis.options(&args.key)?;
    let mut filter = match RedisFilter::open(at, &options) {
        Err(tamis_redis::Error::NotFound { .. }) => {
            let keys = args.expected_keys()?.unwrap_or(UNMEASURED);
            let plan = Plan::one_line(Kind::Growing, keys, args.rate)?;
            match RedisFilter::create(at, &plan, Hasher::default(), &options) {
                // Another worker has just made it, which is as well.
                Err(tamis_redis::Error::Exists { .. }) => RedisFilter::open(at, &options),
                created => created,
            }
        }
        opened => opened,
    }
    .map_err(in_redis(at))?;
    let hasher = *filter.hasher();
    let report = Pass {
        input: &args.input,
        hasher: &hasher,
        shards: &mut [&mut filter],
        print: args.print(),
        output: sink,
        checkpoint: None,
    }
    .run(|filter, hashes, new| claim(filter, hashes, new));
    // What was claimed is printed, even when the server failed.
    sink.finish(report.as_ref().is_ok_and(Report::went_well))
        .context("writing the output")?;
    let report = report.with_context(|| at.to_string())?;
    let rate = filter.rate_now().map_err(in_redis(at))?;
    let memory = Memory {
        bytes: filter.bytes(),
        // Each new record met a filter that was no fuller than it is now.
        wrong: rate * report.chosen as f64,
    };
    Ok((report, memory))
}

fn summarise(report: &Report, memory: &Memory) {
    let seconds = report.elapsed.as_secs_f64().max(1e-9);
    eprintln!(
        "{} records, {} unique, {} duplicates, {}/s",
        human::count(report.records),
        human::count(report.chosen),
        human::count(report.records - report.chosen),
        human::size((report.bytes as f64 / seconds) as u64),
    );
    eprintln!(
        "memory {}, records wrongly dropped: {} expected",
        human::size(memory.bytes),
        human::expectation(memory.wrong),
    );
}

fn report_json(report: &Report, memory: &Memory) -> serde_json::Value {
    json!({
        "records": report.records,
        "unique": report.chosen,
        "duplicates": report.records - report.chosen,
        "without_key": report.without_key,
        "bytes": report.bytes,
        "seconds": report.elapsed.as_secs_f64(),
        "filter_bytes": memory.bytes,
        "expected_wrongly_dropped": memory.wrong,
        "interrupted": report.signal.is_some(),
    })
}
