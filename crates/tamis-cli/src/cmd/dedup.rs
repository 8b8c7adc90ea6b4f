mod kept;
mod shared;
mod wrong;

use self::kept::Kept;
use self::shared::Shared;
use crate::apart::{Apart, Role};
use crate::location::{KeyFile, Place, RedisArgs, in_redis, named, warn_of};
use crate::lock::LockArgs;
use crate::output::Sink;
use crate::remote::{Remote, with_keys};
use crate::stream::{Checkpoint, InputArgs, Keyed, Pass, Report};
use crate::{Exit, human, output};
use crate::{estimate, foreign};
use anyhow::{Context, Result, anyhow, bail};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tamis::{AnyFilter, Error, Growing, Hasher, Kind, Plan, SecretKey};
use tamis_records::batch::Print;
use tamis_records::exact::{ExactSet, OutOfMemory};
use tamis_redis::{Location, RedisFilter, Stats};

/// Drop records that were already seen
///
/// Prints each distinct record once, where it first occurs. Input order is
/// kept. With --filter, it also drops what earlier runs have seen.
///
/// About one new record in a million is wrongly dropped (-p); the summary says
/// how many to expect. --exact drops none, for 20 to 30 bytes per record.
///
/// With --filter, records are printed before the filter is saved: after a
/// crash a record may be printed again, but none is lost. -c and -d remember
/// what they see, too; --dry-run remembers nothing.
#[derive(clap::Args)]
#[command(after_long_help = "\
Exit codes: 0 all is well, 2 an error; with --exit-status, 1 if nothing was printed (or counted).

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
    /// OUT appears once the run has succeeded. Whatever a failed run has written
    /// stays next to it, as OUT.partial.
    #[arg(short, long, value_name = "OUT", conflicts_with = "count")]
    output: Option<PathBuf>,

    /// Replace OUT if it exists
    #[arg(long)]
    force: bool,

    /// Remember across runs in this filter, which is created if it does not exist
    ///
    /// A file is saved every few seconds (with -o, only at the end), at the end,
    /// and on SIGINT, SIGTERM or SIGHUP. In Redis (redis://HOST:PORT/DB/NAME)
    /// many workers share one filter; see --claim.
    #[arg(long, value_name = "FILTER", conflicts_with = "exact")]
    filter: Option<Place>,

    /// When a record is added to a filter in Redis: before or after it is printed
    #[arg(
        long,
        value_name = "WHEN",
        requires = "filter",
        default_value = "after"
    )]
    claim: Claim,

    /// Add nothing to the filter
    #[arg(long, requires = "filter")]
    dry_run: bool,

    /// Fail, instead of create it, when the filter does not exist
    ///
    /// For workers that a supervisor restarts: a filter that is lost must not
    /// become an empty one, to which every record is new.
    #[arg(long, requires = "filter")]
    must_exist: bool,

    /// Seconds between two saves of the filter
    ///
    /// Twelve times as many while fewer than 1,000 records are new.
    #[arg(long, value_name = "SECONDS", default_value = "5", requires = "filter")]
    save_every: f64,

    /// How often a new record may be wrongly dropped
    #[arg(short = 'p', long = "rate", value_name = "P", default_value = "1e-6", value_parser = human::parse_rate)]
    rate: f64,

    /// Drop nothing wrongly: keep a 128-bit digest of every key
    ///
    /// The digest is SipHash-128 under a secret drawn for this run, so nobody
    /// can construct two keys with the same digest.
    #[arg(long)]
    exact: bool,

    /// How many distinct records to expect [default: a guess of up to 64 MiB]
    ///
    /// Memory for this many is reserved at the start. More are no problem.
    #[arg(short = 'n', long = "keys", value_name = "N", value_parser = human::parse_count)]
    keys: Option<u64>,

    /// Print the duplicates instead: every record except the first with its key
    #[arg(short, long)]
    duplicates: bool,

    /// Print only the number of records
    #[arg(short, long)]
    count: bool,

    /// No summary and no progress bar
    #[arg(short, long)]
    quiet: bool,

    /// Exit with 1 if nothing was printed, or counted with -c
    #[arg(long)]
    exit_status: bool,

    /// Write the summary as JSON to this file
    #[arg(long, value_name = "FILE")]
    json_report: Option<PathBuf>,

    /// Create a keyed filter: it hashes under a random secret, against keys chosen by an attacker
    ///
    /// The secret is stored in the filter; --key-file stores it separately.
    #[arg(long, requires = "filter", conflicts_with = "key_file")]
    keyed: bool,

    #[command(flatten)]
    key: KeyFile,

    #[command(flatten)]
    lock: LockArgs,

    #[command(flatten)]
    redis: RedisArgs,
}

/// When a key is added to a filter that workers share.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    /// A record is printed at most once, by one worker; if a worker is killed,
    /// up to 64 KiB of records that it had added but not printed are lost
    Before,
    /// No record is lost; after a crash, or when several workers reach the same
    /// record at the same moment, it is printed again
    After,
}

/// A digest belongs to one of these by its hash. Their number is fixed, so that
/// no answer depends on the number of threads.
const EXACT_SHARDS: usize = 16;
/// Where nothing can be measured, a filter starts for this many keys.
const UNMEASURED: u64 = 1 << 20;
/// The same of a filter that is written to a file time and again.
const UNMEASURED_KEPT: u64 = 1 << 12;
/// While fewer keys than these are new, the filter is saved less often...
const FEW_KEYS: u64 = 1000;
/// ... by this factor.
const SELDOM: u32 = 12;
/// What a guess may cost, for it may be wrong.
const GUESS_BYTES: u64 = 64 << 20;
/// What a digest takes in a set that is as full as it gets.
const DIGEST_BYTES: u64 = 20;

/// What was decided with, for the summary.
struct Memory {
    bytes: u64,
    /// Expected number of records wrongly dropped.
    wrong: f64,
    /// What the connections to Redis have been through.
    redis: Option<Stats>,
}

impl Memory {
    /// Of this process or a file.
    const fn local(bytes: u64, wrong: f64) -> Self {
        Self {
            bytes,
            wrong,
            redis: None,
        }
    }
}

/// What to do when a filter holds more than it was made for.
struct Over<'a> {
    filter: &'a Place,
    /// What the filter promises.
    rate: f64,
    strict: bool,
}

impl Over<'_> {
    fn say(&self, keys: u64, capacity: u64, rate_now: f64) -> Result<()> {
        let holds = match keys > capacity {
            true => format!(
                "holds about {} but was made for {}",
                human::counted(keys, "key"),
                human::count(capacity)
            ),
            false => format!(
                "is full, with the {} it was made for",
                human::counted(keys, "key")
            ),
        };
        let text = format!(
            "{} {holds}: new records are now wrongly dropped at a rate of {} and rising, instead of {}\n\
             hint: a filter that dedup creates itself, or `tamis create --kind growing`, has no such limit",
            self.filter,
            human::rate(rate_now),
            human::rate(self.rate),
        );
        match self.strict {
            true => bail!(text),
            false => output::warn(text),
        }
        Ok(())
    }
}

pub(crate) fn run(mut args: Args) -> Result<Exit> {
    if args.claim == Claim::Before && matches!(args.filter, Some(Place::File(_))) {
        bail!(
            "--claim before needs a filter in Redis: a filter file is saved after its records are printed"
        );
    }
    if let Some(Place::File(path)) = &args.filter
        && let Some(format) = foreign::recognised(path)
    {
        let path = path.display();
        bail!(
            "{path} is a {format} filter; dedup needs a Tamis filter\n\
             hint: `tamis add --new {path}` adds to it and prints the new keys"
        );
    }
    args.find()?;
    let mut sink = Sink::open(args.output.as_deref(), args.force)?;
    let prints = args.print() != Print::Nothing;
    let mixes = prints && sink.is_terminal();
    args.input = args.input.hiding_bar_if(args.quiet || mixes);
    if prints {
        sink.end_last_line(args.input.rule()?.framing().delimiter())
            .context("writing the output")?;
    }
    let (report, memory) = match &args.filter {
        Some(Place::File(path)) => with_file(path, &args, &mut sink)?,
        Some(Place::Redis(at)) => with_redis(at, &args, &mut sink)?,
        None => {
            let done = match args.exact {
                true => with_digests(&args, &mut sink)?,
                false => with_memory(&args, &mut sink)?,
            };
            sink.finish(done.0.went_well())
                .context("writing the output")?;
            done
        }
    };
    finish(&args, report, &memory)
}

fn finish(args: &Args, report: Report, memory: &Memory) -> Result<Exit> {
    if !args.quiet && report.read_something() {
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
        Exit::Done | Exit::NoneFound if args.exit_status && printed == 0 => Exit::NoneFound,
        Exit::Done | Exit::NoneFound => Exit::Done,
        exit => exit,
    })
}

impl Args {
    /// Settles which files are read, and that each is used for one thing only.
    fn find(&mut self) -> Result<()> {
        let mut apart = Apart::default();
        if let Some(filter) = &self.filter {
            filter.note(Role::Filter, &mut apart)?;
        }
        self.key.note(&mut apart)?;
        self.redis.note(&mut apart)?;
        apart.note_output(self.output.as_deref())?;
        if let Some(report) = &self.json_report {
            apart.note(Role::Report, report)?;
        }
        self.input.find(&mut apart)
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

    /// The number of distinct keys to make room for at first: what the user
    /// says, or a guess that takes no more than [`GUESS_BYTES`]. `bytes` tells
    /// what keys take, and nothing if there are too many to be had.
    fn first_keys(&self, bytes: impl Fn(u64) -> Option<u64>) -> Result<u64> {
        let paths = self.input.paths();
        if let Some(keys) = self.keys {
            // This run can't use more than it reads; later ones can.
            let most = match self.filter {
                None => estimate::most_records(&paths, self.input.packing()).unwrap_or(u64::MAX),
                Some(_) => u64::MAX,
            };
            return Ok(keys.clamp(1, most.max(1)));
        }
        let framing = self.input.rule()?.framing();
        let unmeasured = match self.filter {
            Some(Place::File(_)) => UNMEASURED_KEPT,
            _ => UNMEASURED,
        };
        let records = estimate::records(&paths, framing, self.input.packing());
        let mut keys = records.unwrap_or(unmeasured);
        while keys > UNMEASURED && bytes(keys).is_none_or(|bytes| bytes > GUESS_BYTES) {
            keys /= 2;
        }
        Ok(keys.max(1))
    }

    /// How the filter hashes if this run makes it.
    fn new_hasher(&self) -> Result<Hasher> {
        let hasher = match self.keyed {
            true => Hasher::keyed(SecretKey::random()?),
            false => self.key.hasher()?,
        };
        self.input.hasher(hasher)
    }

    /// A filter that grows with what it is given.
    fn first_filter(&self, hasher: Hasher) -> Result<Growing> {
        let make = |keys| Growing::with_hasher(keys, self.rate, hasher);
        // Memory that is not touched costs nothing, so trying is fast.
        let keys = self.first_keys(|keys| Some(make(keys).ok()?.bytes()))?;
        Ok(make(keys)?)
    }
}

fn with_digests(args: &Args, sink: &mut Sink) -> Result<(Report, Memory)> {
    let keys = args.first_keys(|keys| keys.checked_mul(DIGEST_BYTES))?;
    let shard = |_| match ExactSet::with_capacity(keys as usize / EXACT_SHARDS) {
        // A guess may be wrong.
        Err(_) if args.keys.is_none() => ExactSet::with_capacity(0),
        set => set,
    };
    let mut shards: Vec<ExactSet> = (0..EXACT_SHARDS)
        .map(|at| shard(at).map_err(no_memory))
        .collect::<Result<_>>()?;
    let report = Pass {
        input: &args.input,
        hasher: &args.input.hasher(Hasher::keyed(SecretKey::random()?))?,
        shards: &mut shards,
        print: args.print(),
        output: sink,
        checkpoint: None,
    }
    .run(|set: &mut ExactSet, hashes, new| {
        Ok(set.insert_many(hashes, new).map_err(no_memory)?)
    })?;
    let bytes = shards.iter().map(|set| set.memory() as u64).sum();
    Ok((report, Memory::local(bytes, 0.0)))
}

fn no_memory(error: OutOfMemory) -> anyhow::Error {
    anyhow!(
        "out of memory: a part of the exact set needs {}\n\
         hint: without --exact, a record takes a quarter of that",
        human::size(error.bytes)
    )
}

fn with_memory(args: &Args, sink: &mut Sink) -> Result<(Report, Memory)> {
    let hasher = args.input.hasher(Hasher::default())?;
    let mut seen = args.first_filter(hasher)?;
    let report = Pass {
        input: &args.input,
        hasher: &hasher,
        shards: &mut [&mut seen],
        print: args.print(),
        output: sink,
        checkpoint: None,
    }
    .run(|seen, hashes, new| {
        Ok(seen
            .insert_hashes(hashes, new)
            .map_err(anyhow::Error::from)?)
    })?;
    let memory = Memory::local(seen.bytes(), seen.expected_wrong());
    Ok((report, memory))
}

fn with_file(path: &Path, args: &Args, sink: &mut Sink) -> Result<(Report, Memory)> {
    let named = || named(path);
    let place = Place::File(path.to_owned());
    let is_new = !path.exists();
    if is_new && args.must_exist {
        bail!("{}: no such filter, and --must-exist", path.display());
    }
    if is_new && !args.dry_run {
        match args.first_filter(args.new_hasher()?)?.save_new(path) {
            // Another run has just made it, which is as well.
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::AlreadyExists => {
            }
            saved => saved.map_err(named())?,
        }
    }
    let mut lock = match args.dry_run {
        true => None,
        false => Some(args.lock.acquire(path)?),
    };
    let mut filter = match is_new && args.dry_run {
        true => AnyFilter::Growing(args.first_filter(args.new_hasher()?)?),
        false => args.key.open()?.load(path).map_err(named())?,
    };
    args.input.settle_rule(&mut filter)?;
    // A finished one says so before any input is read.
    filter.insert_hashes(&[], &mut []).map_err(named())?;
    let hasher = *filter.hasher();
    let over = Over {
        filter: &place,
        rate: filter.rate(),
        strict: args.input.strict,
    };
    let mut kept = [Kept::new(filter, &over)?];
    let every = Duration::try_from_secs_f64(args.save_every).unwrap_or(Duration::MAX);
    let mut saved = (Instant::now(), kept[0].keys());
    let mut periodic_save = |kept: &mut [&mut Kept]| {
        for (kept, lock) in kept.iter().zip(&mut lock) {
            let few = kept.keys() - saved.1 < FEW_KEYS;
            if few && saved.0.elapsed() < every.saturating_mul(SELDOM) {
                continue;
            }
            saved = (Instant::now(), kept.keys());
            if let Err(error) = kept.filter().update_under(lock) {
                output::warn(format_args!(
                    "saving the filter failed; trying again later: {error}"
                ));
            }
        }
        Ok(())
    };
    // A save needs the output to be where it stays; a file that appears only
    // at the end is not there yet.
    let checkpoint = (!sink.appears_at_end() && !args.dry_run).then(|| Checkpoint {
        every,
        save: Box::new(&mut periodic_save) as _,
    });
    let report = Pass {
        input: &args.input,
        hasher: &hasher,
        shards: &mut kept,
        print: args.print(),
        output: sink,
        checkpoint,
    }
    .run(|kept: &mut Kept, hashes, new| kept.decide(hashes, new, &over, |error| named()(error)))?;
    let [kept] = kept;
    if report.is_printed() {
        sink.finish(report.went_well())
            .context("writing the output")?;
        if let Some(lock) = &mut lock {
            kept.filter().update_under(lock).map_err(named())?;
        }
    }
    Ok((report, kept.memory()))
}

fn with_redis(at: &Location, args: &Args, sink: &mut Sink) -> Result<(Report, Memory)> {
    if args.claim == Claim::Before && sink.appears_at_end() {
        bail!(
            "--claim before prints records as it claims them, but OUT appears at the end\n\
             hint: write to standard output, or use --claim after"
        );
    }
    let filter = open_or_create(at, args)?;
    with_keys!(filter, keyed => with_shared(at, filter, keyed, args, sink))
}

fn with_shared<H: Keyed<Token: Remote>>(
    at: &Location,
    filter: RedisFilter,
    keyed: &H,
    args: &Args,
    sink: &mut Sink,
) -> Result<(Report, Memory)> {
    let place = Place::Redis(at.clone());
    let over = Over {
        filter: &place,
        rate: filter.rate(),
        strict: args.input.strict,
    };
    let mut shared = Shared::new(filter, args.claim, &over)?;
    let claims_before = args.claim == Claim::Before && !args.dry_run;
    let claims_after = args.claim == Claim::After && !args.dry_run;
    let mut add_printed = |shared: &mut [&mut &mut Shared<H::Token>]| {
        shared
            .iter_mut()
            .try_for_each(|shared| shared.add_printed())?;
        Ok(())
    };
    let appears_at_end = sink.appears_at_end();
    let result = Pass {
        input: &args.input.in_small_steps(),
        hasher: keyed,
        shards: &mut [&mut shared],
        print: args.print(),
        output: &mut *sink,
        checkpoint: (claims_after && !appears_at_end).then(|| Checkpoint {
            every: Duration::ZERO,
            save: Box::new(&mut add_printed) as _,
        }),
    }
    .run(|shared, hashes, new| match claims_before {
        true => shared.claim(hashes, new, &over),
        false => shared.ask(hashes, new, &over),
    });
    // What was claimed is printed, even when the server failed.
    sink.finish(result.as_ref().is_ok_and(Report::went_well))
        .context("writing the output")?;
    let report = result.with_context(|| at.to_string())?;
    if claims_after && report.is_printed() {
        shared.add_printed().map_err(in_redis(at))?;
    }
    if shared.raced() > 0 && !args.quiet {
        say!(
            "unique records that another worker printed, too: {}",
            human::count(shared.raced())
        );
    }
    Ok((report, shared.memory().map_err(in_redis(at))?))
}

fn open_or_create(at: &Location, args: &Args) -> Result<RedisFilter> {
    let options = args.redis.options(&args.key)?;
    match RedisFilter::open(at, &options) {
        Err(tamis_redis::Error::NotFound { .. }) if !args.dry_run && !args.must_exist => {
            let plan = |keys| Plan::one_line(Kind::Growing, keys, args.rate);
            let keys = args.first_keys(|keys| Some(plan(keys).ok()?.bytes()))?;
            match RedisFilter::create(at, &plan(keys)?, args.new_hasher()?, &options) {
                // Another worker has just made it, which is as well.
                Err(tamis_redis::Error::Exists { .. }) => RedisFilter::open(at, &options),
                created => created.inspect(|_| {
                    // Said even if quiet: from now on nothing is known as seen.
                    output::warn(format_args!(
                        "{at}: not found, so a growing filter was created: every record is new\n\
                         hint: if it was there before, it is lost; with --must-exist that is an error"
                    ));
                }),
            }
        }
        opened => opened,
    }
    .inspect(warn_of)
    .map_err(in_redis(at))
}

fn summarise(report: &Report, memory: &Memory) {
    let seconds = report.elapsed.as_secs_f64().max(1e-9);
    say!(
        "{}, {} unique, {}, {}/s",
        human::counted(report.records, "record"),
        human::count(report.chosen),
        human::counted(report.records - report.chosen, "duplicate"),
        human::size((report.bytes as f64 / seconds) as u64),
    );
    say!(
        "filter {}, records wrongly dropped by chance: {} expected",
        human::size(memory.bytes),
        human::expectation(memory.wrong),
    );
}

fn report_json(report: &Report, memory: &Memory) -> serde_json::Value {
    let mut all = json!({
        "records": report.records,
        "unique": report.chosen,
        "duplicates": report.records - report.chosen,
        "without_key": report.without_key,
        "not_urls": report.not_urls,
        "bytes": report.bytes,
        "seconds": report.elapsed.as_secs_f64(),
        "filter_bytes": memory.bytes,
        "expected_wrongly_dropped": memory.wrong,
        "interrupted": report.signal.is_some(),
    });
    if let Some(stats) = &memory.redis {
        all["redis"] = json!({
            "connections": stats.connections,
            "reconnects": stats.reconnects,
            "retries": stats.retries,
            "redirects": stats.redirects,
            "ambiguous_keys": stats.ambiguous_keys,
        });
    }
    all
}
