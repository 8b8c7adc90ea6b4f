mod grown;
mod kept;
mod local;
mod redis;
mod shared;
mod summary;
mod tally;
mod windowed;
mod wrong;

use self::summary::Memory;
use crate::apart::{Apart, Role};
use crate::location::{self, KeyFile, Place};
use crate::lock::LockArgs;
use crate::output::Sink;
use crate::present::{self, Written};
use crate::stream::{InputArgs, Report, Run};
use crate::window::{TimeArgs, WindowArgs};
use crate::{Exit, estimate, human, output};
use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::time::Duration;
use tamis::{
    AnyFilter, Growing, Hasher, Kind, Plan, SecretKey,
    file::FileLock,
    window::{Span, WindowOptions},
};
use tamis_records::batch::Print;

/// Drop records that were already seen
///
/// Prints each distinct record once, where it first occurs. Input order is
/// kept. With --filter, it also drops what earlier runs have seen.
///
/// About one new record in a million is wrongly dropped (-p); the summary says
/// how many to expect. --exact drops none, for 20 to 30 bytes per record.
///
/// With --filter, records are printed before the filter is saved: after a
/// crash a record may be printed again, but none is lost. --count and -v
/// remember what they see, too; --dry-run remembers nothing.
///
/// A stream has no end. With --within or --last, records are forgotten after a
/// while, and memory stays as it is.
#[derive(clap::Args)]
#[command(after_long_help = "\
Exit codes: 0 all is well, 2 an error; with --exit-code, 1 if nothing was printed (or counted).

Examples:
  tamis dedup urls.txt.gz -o unique.txt.zst
  crawl | tamis dedup --filter seen.tamis | fetch           drop what earlier runs saw, too
  tamis dedup --url urls.txt                                http://A/ and http://a:80/#x are one
  tamis dedup -k csv:customer,date orders.csv               one row per customer and date
  tamis dedup -k jsonl:/id events.jsonl                     one line per id
  events | tamis dedup --within 24h --capacity 10M -k jsonl:/id --time jsonl:/ts
                                                            one per id and day, by the events' time
  alerts | tamis dedup --within 1h --renew --capacity 1M    again after an hour without it
  tamis dedup -v urls.txt                                   the duplicates instead
  tamis dedup -k field:1,3 access.log                       one line per first and third field
  tamis dedup --tally urls.txt | sort -rn | head            the most frequent lines")]
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

    /// Time between two saves of the filter
    ///
    /// Twelve times as long while fewer than 1,000 records are new.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_interval, requires = "filter")]
    save_every: Duration,

    /// How often a new record may be wrongly dropped [default: 1e-6]
    ///
    /// A filter that exists has its rate: what is given again must agree with it.
    #[arg(short = 'p', long = "rate", value_name = "P", value_parser = human::parse_rate, allow_negative_numbers = true)]
    rate: Option<f64>,

    /// Drop nothing wrongly: keep a 128-bit digest of every key
    ///
    /// The digest is SipHash-128 under a secret drawn for this run, so nobody
    /// can construct two keys with the same digest.
    #[arg(long, conflicts_with_all = ["within", "last"])]
    exact: bool,

    /// How many distinct records to expect [default: a guess of up to 64 MiB]
    ///
    /// Memory for this many is reserved at the start. More are no problem.
    /// With a --filter that exists and can't grow, no more than it was made for.
    ///
    /// With --within, how many in that time: more are no problem
    /// there, either. For a window that exists, it must be what it was made for.
    #[arg(long = "capacity", value_name = "N", value_parser = human::parse_count, allow_negative_numbers = true)]
    keys: Option<u64>,

    /// Print the duplicates instead: every record except the first with its key
    #[arg(short = 'v', long = "invert")]
    duplicates: bool,

    /// Print each record once, behind the number of times it occurs, as `uniq -c` does
    ///
    /// Nothing is printed before all is read. Every different record is held in
    /// memory, and so is a digest of its key: the numbers are exact.
    #[arg(long, conflicts_with_all = ["filter", "within", "last", "duplicates", "count"])]
    tally: bool,

    /// Print only the records that occur once, as `uniq -u` does; held in memory as with --tally
    #[arg(short, long, conflicts_with_all = ["filter", "within", "last", "duplicates"])]
    unique: bool,

    /// Print only the number of records
    #[arg(long)]
    count: bool,

    /// No summary and no progress bar
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    window: WindowArgs,

    /// Let a window grow to this size at most, e.g. 2GiB
    ///
    /// A window that is full then drops more new records than it should, and
    /// the summary estimates how many; with --strict that is an error before
    /// anything is dropped.
    #[arg(long, value_name = "SIZE", value_parser = human::parse_size, help_heading = "Windows")]
    max_memory: Option<u64>,

    #[command(flatten)]
    time: TimeArgs,

    /// Exit with 1 if nothing was printed, or counted with --count
    #[arg(long)]
    exit_code: bool,

    /// Write the summary as JSON to this file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Create a keyed filter: it hashes under a random secret, against keys chosen by an attacker
    ///
    /// The secret is stored in the filter; --secret-file stores it separately.
    #[arg(long = "secret", requires = "filter", conflicts_with = "key_file")]
    keyed: bool,

    #[command(flatten)]
    key: KeyFile,

    #[command(flatten)]
    lock: LockArgs,
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

const DEFAULT_RATE: f64 = 1e-6;
/// Rates are shown with three digits; users may pass them back as shown.
const ROUNDED: f64 = 0.005;
/// If the input can't be measured, a filter starts with room for this many keys.
const UNMEASURED: u64 = 1 << 20;
/// The same for a filter that is saved to a file repeatedly.
const UNMEASURED_KEPT: u64 = 1 << 12;
/// The most memory that a guess may take, since it may be wrong.
const GUESS_BYTES: u64 = 64 << 20;

/// What an existing filter was made for.
struct MadeFor<'a> {
    name: &'a Place,
    kind: Kind,
    keys: u64,
    rate: f64,
    window: Option<WindowOptions>,
}

/// What to do when a filter exceeds its capacity.
struct Over<'a> {
    filter: &'a Place,
    /// The filter's promised rate.
    rate: f64,
    strict: bool,
}

impl Over<'_> {
    fn say(&self, keys: u64, capacity: u64, rate_now: f64) -> Result<()> {
        let holds = if keys > capacity {
            format!(
                "holds about {} but was made for {}",
                human::counted(keys, "key"),
                human::count(capacity)
            )
        } else {
            format!(
                "has reached its capacity of {}",
                human::counted(capacity, "key")
            )
        };
        let text = format!(
            "{} {holds}: new records are now wrongly dropped at a rate of {} and rising, instead of {}\n\
             hint: a filter that dedup creates itself, or `tamis create --kind growing`, has no such limit",
            self.filter,
            human::rate(rate_now),
            human::rate(self.rate),
        );
        self.say_text(text)
    }

    /// The same for a window, which can't grow.
    fn say_of_window(&self, capacity: u64, rate_now: f64) -> Result<()> {
        let name = self.filter.to_string();
        self.say_text(windowed::over(&name, capacity, rate_now, self.rate))
    }

    fn say_text(&self, text: String) -> Result<()> {
        if self.strict {
            bail!(text);
        }
        output::warn(text);
        Ok(())
    }
}

/// Parses a duration that may be 0.
fn parse_interval(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(0.0) => Ok(Duration::ZERO),
        _ => human::parse_duration(text),
    }
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    if args.claim == Claim::Before && matches!(args.filter, Some(Place::File(_))) {
        bail!(
            "--claim before needs a filter in Redis: a filter file is saved after its records are printed"
        );
    }
    if let Some(Place::File(path)) = &args.filter
        && let Some(format) = location::recognised(path)
    {
        let path = path.display();
        bail!(
            "{path} is a {format} filter; dedup needs a Tamis filter\n\
             hint: `tamis add --new {path}` adds to it and prints the new keys"
        );
    }
    let mut task = Task::new(&args)?;
    if let Some(path) = &args.report {
        present::refuse_others(path, Written::Report)?;
    }
    let mut sink = Sink::open(args.output.as_deref(), args.force, Written::Records)?;
    let prints = task.print() != Print::Nothing;
    task.input.hides_bar = args.quiet || prints && sink.is_terminal();
    if prints {
        sink.end_last_line(task.input.rule.framing().delimiter())
            .context("writing the output")?;
    }
    let (report, memory) = match &args.filter {
        Some(Place::File(path)) => local::with_file(path, &task, &mut sink)?,
        Some(Place::Redis(at)) => redis::with_redis(at, &task, &mut sink)?,
        None => {
            let done = match &task.window {
                Some(options) => windowed::with_memory(options, &task, &mut sink)?,
                None if args.tally || args.unique => tally::with_counts(&task, &mut sink)?,
                None if args.exact => local::with_digests(&task, &mut sink)?,
                None => local::with_memory(&task, &mut sink)?,
            };
            sink.finish(done.0.went_well())
                .context("writing the output")?;
            done
        }
    };
    summary::finish(&args, report, &memory)
}

impl Args {
    /// Settles which files are read, and that each has only one use.
    fn find(&self) -> Result<Run> {
        let mut apart = Apart::default();
        if let Some(filter) = &self.filter {
            filter.note(Role::Filter, &mut apart)?;
        }
        self.key.note(&mut apart)?;
        apart.note_output(self.output.as_deref())?;
        if let Some(report) = &self.report {
            apart.note(Role::Report, report)?;
        }
        self.input.find(&mut apart)
    }

    fn rate(&self) -> f64 {
        self.rate.unwrap_or(DEFAULT_RATE)
    }

    /// Refuses a rate or a number of keys that differs from the existing filter's.
    fn check_made_for(&self, made: &MadeFor) -> Result<()> {
        let name = made.name;
        if let Some(asked) = self.rate
            && (asked / made.rate - 1.0).abs() > ROUNDED
        {
            bail!(
                "{name} has a rate of {}, but you asked for {} (-p)\n\
                 hint: omit -p, or use another filter",
                human::rate(made.rate),
                human::rate(asked)
            );
        }
        let Some(asked) = self.keys else {
            return Ok(());
        };
        let agrees = match (made.kind, &made.window) {
            (Kind::Growing, _) => true,
            (_, Some(window)) => match window.span() {
                Span::Time(_) => Plan::window(window, asked, made.rate)?.keys() == made.keys,
                // The number of keys is already checked.
                Span::Keys(_) => true,
            },
            _ => asked <= made.keys,
        };
        if !agrees {
            bail!(
                "{name} was made for {}, but you expect {} (--capacity)\n\
                 hint: omit --capacity, or use another filter",
                human::counted(made.keys, "key"),
                human::count(asked)
            );
        }
        Ok(())
    }

    /// How many records the user asked to see.
    fn printed(&self, report: &Report, memory: &Memory) -> u64 {
        match memory.once {
            Some(once) if self.unique => once,
            _ if self.duplicates => report.records - report.chosen,
            _ => report.chosen,
        }
    }
}

/// A filter that decides which records are new, and is kept in a file.
trait Judge: Send {
    /// Keys added so far. Never decreases.
    fn added(&self) -> u64;

    /// Called when all records are decided; adds those that waited for others.
    fn finish(&mut self) {}
    fn save(&self, lock: &mut FileLock) -> Result<(), tamis::Error>;

    /// What the run used and did.
    fn memory(self, report: &Report) -> Memory;
}

/// The arguments and the input.
struct Task<'a> {
    args: &'a Args,
    input: Run,
    /// The window asked for.
    window: Option<WindowOptions>,
}

impl<'a> Task<'a> {
    fn new(args: &'a Args) -> Result<Self> {
        let mut input = args.find()?;
        let window = args.window.options()?;
        match &window {
            Some(options) => args.time.check(options)?,
            None if args.time.is_given() && args.filter.is_none() => {
                bail!("--time is for a window: --within TIME")
            }
            None if args.max_memory.is_some() && args.filter.is_none() => {
                bail!(
                    "--max-memory is for a window: --within TIME, --within TIME --renew or --last N"
                )
            }
            None => {}
        }
        input.rule = args.time.rule(input.rule)?;
        Ok(Self {
            args,
            input,
            window,
        })
    }

    fn print(&self) -> Print {
        match (self.args.count, self.args.duplicates) {
            (true, _) => Print::Nothing,
            (false, true) => Print::Others,
            (false, false) => Print::Chosen,
        }
    }

    /// The number of distinct keys to make room for at first: what the user says, or a guess that takes at most
    /// [`GUESS_BYTES`]. `bytes` returns the size of a filter of that many keys, or nothing if that is impossible.
    fn first_keys(&self, bytes: impl Fn(u64) -> Option<u64>) -> u64 {
        let (paths, packing) = (&self.input.files, self.input.packing());
        if let Some(keys) = self.args.keys {
            // Without a filter file, this run needs no more room than its input; with one, later runs may.
            let most = match self.args.filter {
                None => estimate::most_records(paths, packing).unwrap_or(u64::MAX),
                Some(_) => u64::MAX,
            };
            return keys.clamp(1, most.max(1));
        }
        let framing = self.input.rule.framing();
        let unmeasured = match self.args.filter {
            Some(Place::File(_)) => UNMEASURED_KEPT,
            _ => UNMEASURED,
        };
        let records = estimate::records(paths, framing, packing);
        let mut keys = records.unwrap_or(unmeasured);
        while keys > UNMEASURED && bytes(keys).is_none_or(|bytes| bytes > GUESS_BYTES) {
            keys /= 2;
        }
        keys.max(1)
    }

    /// How the filter hashes if this run makes it.
    fn new_hasher(&self) -> Result<Hasher> {
        let hasher = if self.args.keyed {
            Hasher::keyed(SecretKey::random()?)
        } else {
            self.args.key.hasher()?
        };
        Ok(self.input.hasher(hasher))
    }

    /// The filter to start with if there is none yet.
    fn new_filter(&self, hasher: Hasher) -> Result<AnyFilter> {
        Ok(match &self.window {
            Some(options) => AnyFilter::from_plan(&self.window_plan(options)?, hasher)?,
            None => self.first_filter(hasher)?.into(),
        })
    }

    /// A window for the estimated number of keys; it grows if there are more.
    fn window_plan(&self, options: &WindowOptions) -> Result<Plan> {
        let (paths, packing) = (&self.input.files, self.input.packing());
        let framing = self.input.rule.framing();
        let guess = || {
            let records = estimate::records(paths, framing, packing);
            Some(records.unwrap_or(UNMEASURED).max(UNMEASURED_KEPT))
        };
        let mut keys = WindowArgs::keys(options, self.args.keys, guess)?;
        let plan = |keys| Plan::window(options, keys, self.args.rate());
        let most = self.args.max_memory.unwrap_or(u64::MAX);
        // A guess may be reduced; a size that was asked for may not.
        let is_guessed = self.args.keys.is_none() && matches!(options.span(), Span::Time(_));
        while is_guessed && keys > 1 && plan(keys)?.bytes() > most {
            keys /= 2;
        }
        let plan = plan(keys)?;
        if plan.bytes() > most {
            bail!(
                "a window for {} takes {}, more than --max-memory",
                human::counted(keys, "key"),
                human::size(plan.bytes())
            );
        }
        Ok(plan)
    }

    /// A growing filter.
    fn first_filter(&self, hasher: Hasher) -> Result<Growing> {
        let make = |keys| Growing::with_hasher(keys, self.args.rate(), hasher);
        // Untouched memory costs nothing, so trying sizes is cheap.
        let keys = self.first_keys(|keys| Some(make(keys).ok()?.bytes()));
        Ok(make(keys)?)
    }
}
