use crate::bitmap::Bitmap;
use crate::foreign::{self, ForeignArgs};
use crate::location::{KeyFile, Place, in_redis, named};
use crate::redisson::Live;
use crate::remote::{Dated, Remote, Timely, with_keys};
use crate::stream::{Halt, InputArgs, Keyed, Pass, Run};
use crate::window::{self, AskedAt, Odd, TimeArgs, Timed};
use crate::{Exit, human, output};
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};
use tamis::{AnyFilter, Window, body::Body};
use tamis_records::batch::{Prefix, Print};
use tamis_redis::Location;

/// Print the keys that may be in a filter, like grep
///
/// A printed key was added, or is one of the rare false "yes" answers. A key
/// that is not printed was certainly never added. Input order is kept.
#[derive(clap::Args)]
#[command(after_long_help = "\
Exit codes: 0 a key may be present, 1 none is, 2 an error.

Examples:
  tamis check blocked.tamis senders.txt       the senders that may be blocked
  tamis check --allow friends.txt blocked.tamis senders.txt
  tamis check -v seen.tamis urls.txt          the URLs that are certainly new
  echo alice@example.org | tamis check -q blocked.tamis && echo blocked
  tamis check -Hn blocked.tamis *.txt         with file and line number
  tamis check --tally logins.tamis names.txt  how often each was added
  tamis check --hex digests.tamis hex.txt     binary keys, written in hexadecimal
  tamis check -k csv:id --time csv:at day.tamis events.csv    a window, each event at its own time
  tamis check --format keys=upper hashlookup-full.bloom sha1.txt    another system's filter")]
pub(crate) struct Args {
    /// The filter: a file, or redis://HOST:PORT/DB/NAME
    filter: Place,

    #[command(flatten)]
    input: InputArgs,

    /// Print the keys that are certainly absent instead
    #[arg(short = 'v', long)]
    invert: bool,

    /// Print only the number of keys
    #[arg(short, long)]
    count: bool,

    /// Print how often each key was added, a tab and the record: for counting and cuckoo filters
    ///
    /// The count is never too low, except that a counter stops at 15 and a cuckoo
    /// filter holds only a few copies. It is too high only at the filter's rate.
    #[arg(long, conflicts_with_all = [
        "invert", "count", "quiet", "max_count", "with_filename", "line_number", "allow", "at", "time",
        "ForeignArgs",
    ])]
    tally: bool,

    /// Print nothing and stop at the first key found
    #[arg(short, long, conflicts_with = "count")]
    quiet: bool,

    /// Stop after this many keys, counted over all files
    #[arg(short, long, value_name = "NUM", value_parser = human::parse_count)]
    max_count: Option<u64>,

    /// Print the file name before each key
    ///
    /// Unlike grep, several files alone do not turn this on: what reads the
    /// output gets only keys. Standard input is called stdin.
    #[arg(short = 'H', long, conflicts_with = "count")]
    with_filename: bool,

    /// Print the line number before each key
    ///
    /// It is the record's number in its file, from 1, and counts the header row
    /// of CSV and TSV.
    #[arg(short = 'n', long, conflicts_with = "count")]
    line_number: bool,

    /// A list of keys that are never reported, matched exactly; may be given several times
    ///
    /// It is read like the other files and held in memory, 16 bytes per key.
    /// `tamis build --allow` makes a filter that needs no such list.
    #[arg(long, value_name = "FILE")]
    allow: Vec<PathBuf>,

    /// Ask a window as of this time, or of its latest key (latest), instead of now
    ///
    /// For example 2026-11-17T10:30:00Z, 2h (ago), or seconds since 1970. Before the
    /// first key that the window knows of, every answer is no; after it, a key that
    /// was only added later is reported, too.
    #[arg(
        long,
        value_name = "TIME",
        conflicts_with = "time",
        help_heading = "Windows"
    )]
    at: Option<AskedAt>,

    #[command(flatten)]
    time: TimeArgs,

    #[command(flatten)]
    key: KeyFile,

    #[command(flatten)]
    foreign: ForeignArgs,
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    // Allow lists are read like other inputs; a command may also name them as inputs.
    let mut input = args.input.find_for(&args.filter, &args.key, &args.allow)?;
    input.rule = args.time.rule(input.rule)?;
    let input = &input;
    match &args.filter {
        place if args.tally => super::count::run(place, &args.key, input),
        place if args.foreign.is_bitmap() => {
            args.time.refuse(place, "foreign")?;
            let opened = Bitmap::open(place, &args.foreign, input, &args.key)?;
            let (bitmap, encoding) = (Mutex::new(opened.0), opened.1);
            check(&args, input, &encoding, |keys, found| {
                alone(&bitmap).ask(keys, found)
            })
        }
        Place::File(path) => check_file(&args, input, path),
        Place::Redis(at) if args.foreign.is_redisson()? => {
            args.time.refuse(&args.filter, "foreign")?;
            let encoding = args.foreign.codec(input)?;
            let live = Mutex::new(Live::open(at, &args.key.redis_options()?)?);
            check(&args, input, &encoding, |keys, found| {
                alone(&live).ask(keys, found)
            })
        }
        Place::Redis(at) => check_redis(&args, input, at),
    }
}

/// Asks a filter in a file.
fn check_file(args: &Args, input: &Run, path: &Path) -> Result<Exit> {
    if let Some(opened) = args.foreign.open(path)? {
        window::refuse_at(&args.filter, args.at)?;
        args.time.refuse(&args.filter, "foreign")?;
        let encoding = args.foreign.encoding_of(input, &opened)?;
        return check(args, input, &encoding, |keys, found| {
            foreign::ask(&opened.filter, keys, found)
        });
    }
    let filter = args.key.open()?.open(path).map_err(named(path))?;
    match &filter {
        AnyFilter::Window(window) => {
            args.time.check(&window.options())?;
            if input.rule.has_time() {
                return check_at_own_times(args, input, window);
            }
        }
        other => args.time.refuse(&args.filter, other.kind())?,
    }
    let at = window::asked_at(&args.filter, &filter, args.at)?;
    check(args, input, filter.hasher(), |hashes, found| {
        match at {
            Some(at) => filter.contains_many_at(hashes, at, found),
            None => filter.contains_many(hashes, found),
        }
        Ok(())
    })
}

/// Asks a filter in Redis.
fn check_redis(args: &Args, input: &Run, at: &Location) -> Result<Exit> {
    let filter = args.key.open_redis(at)?;
    let by_record = input.rule.has_time();
    let moment = match (filter.window(), args.at) {
        (None, asked) => {
            window::refuse_at(&args.filter, asked)?;
            args.time.refuse(&args.filter, filter.kind())?;
            None
        }
        (Some(_), Some(AskedAt::Latest)) => filter.latest(),
        (Some(options), Some(AskedAt::Moment(moment))) => {
            window::warn_if_late(&args.filter, &options, filter.latest(), moment);
            Some(moment)
        }
        (Some(options), None) => {
            args.time.check(&options)?;
            if !by_record {
                window::warn_if_past(&args.filter, &options, filter.latest());
            }
            None
        }
    };
    with_keys!(filter, keyed => {
        let filter = Mutex::new(filter);
        match moment {
            _ if by_record => {
                let keyed = Timely { keyed, by_record };
                let (ahead, late) = (AtomicU64::new(0), AtomicU64::new(0));
                let exit = check(args, input, &keyed, |keys, found| {
                    let filter = &mut alone(&filter);
                    Remote::contains(filter, keys, found).map_err(in_redis(at))?;
                    ahead.fetch_add(Remote::ahead(filter, keys), Relaxed);
                    late.fetch_add(Remote::late(filter, keys), Relaxed);
                    Ok(())
                })?;
                warn_of_times(ahead, late);
                Ok(exit)
            }
            Some(moment) => check(args, input, keyed, |keys, found| {
                let moments = vec![moment; keys.len()];
                Dated::contains_at(&mut alone(&filter), keys, &moments, found)
                    .map_err(in_redis(at))
            }),
            None => check(args, input, keyed, |keys, found| {
                Remote::contains(&mut alone(&filter), keys, found).map_err(in_redis(at))
            }),
        }
    })
}

/// Queries a window for each record as of the record's own time.
fn check_at_own_times<B: Body + Sync>(
    args: &Args,
    input: &Run,
    window: &Window<B>,
) -> Result<Exit> {
    let (ahead, late) = (AtomicU64::new(0), AtomicU64::new(0));
    let exit = check(args, input, &Timed(*window.hasher()), |keys, found| {
        let asked = window::asked_times(window, keys);
        ahead.fetch_add(asked.ahead, Relaxed);
        late.fetch_add(asked.late, Relaxed);
        window.contains_many(&asked.hashes, &asked.moments[..], found);
        Ok(())
    })?;
    warn_of_times(ahead, late);
    Ok(exit)
}

fn warn_of_times(ahead: AtomicU64, late: AtomicU64) {
    let odd = Odd {
        ahead: ahead.into_inner(),
        ..Odd::default()
    };
    odd.warn(0);
    window::warn_of_late(late.into_inner());
}

/// One connection, so one query at a time.
fn alone<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().expect("a panic ends the process")
}

impl Args {
    fn print(&self) -> Print {
        let prefix = Prefix {
            name: self.with_filename,
            number: self.line_number,
        };
        match prefix {
            _ if self.count || self.quiet => Print::Nothing,
            Prefix {
                name: false,
                number: false,
            } => Print::Chosen,
            prefix => Print::Located(prefix),
        }
    }

    /// How many keys to find at most.
    fn most(&self) -> u64 {
        let most = self.max_count.unwrap_or(u64::MAX);
        if self.quiet { most.min(1) } else { most }
    }
}

/// `ask` runs on all threads at once. Only the limit in `left` is counted in input order.
fn check<H: Keyed<Token: Ord + Clone + Send + Sync>>(
    args: &Args,
    input: &Run,
    hasher: &H,
    ask: impl Fn(&[H::Token], &mut [bool]) -> Result<()> + Sync,
) -> Result<Exit> {
    if args.most() == 0 {
        if args.count {
            output::print("0\n")?;
        }
        return Ok(Exit::NoneFound);
    }
    let allowed = read_allowed(args, input, hasher)?;
    let ask = |hashes: &[H::Token], chosen: &mut [bool]| {
        ask(hashes, chosen)?;
        if !allowed.is_empty() {
            for (hash, chosen) in hashes.iter().zip(&mut *chosen) {
                *chosen = *chosen && allowed.binary_search(hash).is_err();
            }
        }
        if args.invert {
            chosen.iter_mut().for_each(|chosen| *chosen = !*chosen);
        }
        Ok(())
    };
    let mut stdout = output::Sink::stdout()?;
    // A progress bar, where it doesn't mix with records.
    let mixes = args.print() != Print::Nothing && stdout.is_terminal();
    let mut left = [args.most()];
    // If everything is counted and nothing printed, order doesn't matter.
    let is_counted = args.print() == Print::Nothing && args.most() == u64::MAX;
    let left = if is_counted { &mut [][..] } else { &mut left };
    let report = Pass::new(input, hasher, left)
        .print(args.print(), &mut stdout)
        .hide_bar_if(args.quiet || mixes)
        .run_asking(ask, |left, _, chosen| {
            if *left < u64::MAX {
                for chosen in chosen.iter_mut() {
                    *chosen &= *left > 0;
                    *left -= u64::from(*chosen);
                }
            }
            match left {
                0 => Err(Halt::Enough),
                _ => Ok(()),
            }
        })?;
    if args.count {
        output::print(&format!("{}\n", report.chosen))?;
    }
    Odd::default().warn(report.without_time);
    report.finish()
}

/// The hashes of the allow list, sorted.
fn read_allowed<H: Keyed<Token: Ord + Clone + Send>>(
    args: &Args,
    input: &Run,
    hasher: &H,
) -> Result<Vec<H::Token>> {
    if args.allow.is_empty() {
        return Ok(Vec::new());
    }
    let input = input.with_files(args.allow.clone());
    let mut shards = [Vec::new()];
    let report = Pass::new(&input, hasher, &mut shards)
        .hide_bar_if(args.quiet)
        .run(|allowed: &mut Vec<H::Token>, hashes, _| {
            allowed.extend_from_slice(hashes);
            Ok(())
        })?;
    match report.finish()? {
        Exit::Done | Exit::NoneFound => {}
        _ => bail!("the allow list could not be read completely"),
    }
    let [mut allowed] = shards;
    allowed.sort_unstable();
    allowed.dedup();
    Ok(allowed)
}
