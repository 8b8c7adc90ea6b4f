use crate::about::About;
use crate::foreign::{self, ForeignArgs};
use crate::location::{KeyFile, Place, named, refuse_waiting, warn_if_overfull};
use crate::lock::LockArgs;
use crate::redisson::Live;
use crate::remote::{Dates, Timely, claim, with_keys};
use crate::stream::{Halt, InputArgs, Keyed, Pass, Report, Run};
use crate::window::{Odd, TimeArgs, Timed, Times};
use crate::{Exit, human, output};
use anyhow::{Context, Result, bail};
use std::path::Path;
use tamis::{AnyFilter, Window};
use tamis_records::batch::Print;
use tamis_redis::RedisFilter;

/// Add keys to a filter, one per line
///
/// A filter file is read, extended and written back as a whole: after a crash
/// you have either the old or the new one. Other writers wait.
///
/// The summary counts as new the keys that the filter did not know. A false
/// "yes" to a key makes the count too small by one; the key is in all the same.
///
/// A filter in Redis receives keys as they are read, from any number of workers
/// at the same time; each key is new for exactly one of them.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  tamis add seen.tamis urls.txt.gz
  tamis add --new seen.tamis urls.txt > new-urls.txt
  cut -f1 table.tsv | tamis add seen.tamis
  crawl | tamis add --new redis://10.0.0.7/seen | fetch
  tamis add -k csv:customer,date seen.tamis orders.csv
  tamis add -k jsonl:/id --time jsonl:/ts seen.tamis events.jsonl   a window, by the events' times
  tamis add --format guava,keys=utf8 users.bin users.txt      another system's filter")]
pub(crate) struct Args {
    /// The filter: a file, or redis://HOST:PORT/DB/NAME
    filter: Place,

    #[command(flatten)]
    input: InputArgs,

    /// Print the records whose keys were new
    #[arg(long)]
    new: bool,

    /// No summary and no progress bar
    #[arg(short, long)]
    quiet: bool,

    /// Add in place through a shared memory map
    ///
    /// Several processes can add at the same time, and only the pages they touch
    /// need memory. Once added, a key is in the file, even if this process is
    /// killed; but if the machine goes down, the file is refused afterwards.
    #[arg(long)]
    shared: bool,

    #[command(flatten)]
    time: TimeArgs,

    #[command(flatten)]
    key: KeyFile,

    #[command(flatten)]
    lock: LockArgs,

    #[command(flatten)]
    foreign: ForeignArgs,
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    let mut input = args.input.find_for(&args.filter, &args.key, &[])?;
    input.rule = args.time.rule(input.rule)?;
    let input = &input;
    let report = match &args.filter {
        Place::File(path) => add_to_file(path, &args, input)?,
        Place::Redis(at) if args.foreign.is_redisson()? => {
            refuse_waiting(at)?;
            let encoding = args.foreign.codec(input)?;
            let mut live = Live::open(at, &args.key.redis_options()?)?;
            let report = add(&mut live, &encoding, (&args, input), |live, keys, new| {
                live.add(keys, new)
            })?;
            summarise(&report, &args);
            report
        }
        Place::Redis(at) => {
            let mut filter = args.key.open_redis(at)?;
            if let Some(window) = filter.window() {
                args.time.check(&window)?;
                let by_record = input.rule.has_time();
                let (report, ahead) = with_keys!(filter, keyed => {
                    let keyed = Timely { keyed, by_record };
                    let mut adding = (&mut filter, Dates::default());
                    let report = add(&mut adding, &keyed, (&args, input), |(filter, dates), keys, new| {
                        dates.claim(filter, keys, new)
                    });
                    let (filter, mut dates) = adding;
                    report.and_then(|report| {
                        dates.finish(filter)?;
                        Ok((report, dates.ahead))
                    })
                })
                .with_context(|| at.to_string())?;
                return finish_window(&filter, report, ahead, &args);
            }
            args.time.refuse(&args.filter, filter.kind())?;
            let report =
                with_keys!(filter, keyed => add(&mut filter, keyed, (&args, input), |filter, keys, new| {
                    claim(filter, keys, new)
                }))
                .with_context(|| at.to_string())?;
            summarise(&report, &args);
            warn_if_overfull(&filter);
            report
        }
    };
    finish(report)
}

/// Adding nothing new isn't a failure.
fn finish(report: Report) -> Result<Exit> {
    Ok(match report.finish()? {
        Exit::NoneFound => Exit::Done,
        exit => exit,
    })
}

/// Reports on keys added to a window in Redis.
fn finish_window(filter: &RedisFilter, report: Report, ahead: u64, args: &Args) -> Result<Exit> {
    summarise(&report, args);
    warn_if_overfull(filter);
    let stats = filter.stats();
    let odd = Odd {
        too_old: stats.too_old_keys,
        ahead,
        ..Odd::default()
    };
    odd.warn(report.without_time);
    warn_of_too_old(&odd);
    finish(report)
}

fn warn_of_too_old(odd: &Odd) {
    if odd.too_old > 0 {
        output::warn(format_args!(
            "older than the window of the latest one, and so not added: {}",
            human::counted(odd.too_old, "key")
        ));
    }
}

fn add_to_file(path: &Path, args: &Args, input: &Run) -> Result<Report> {
    if let Some(report) = add_to_foreign(path, args, input)? {
        return Ok(report);
    }
    let named = || named(path);
    let open = args.key.open()?;
    let (mut lock, filter) = if args.shared {
        (None, open.share(path))
    } else {
        let lock = args.lock.acquire(path)?;
        (Some(lock), open.load(path))
    };
    let mut filter = filter.map_err(named())?;
    if lock.is_some() {
        input.settle_rule(&mut filter)?;
    }
    let hasher = *filter.hasher();
    let report = match &mut filter {
        AnyFilter::Window(window) => {
            args.time.check(&window.options())?;
            add_to_window(window, (args, input))?
        }
        filter => {
            args.time.refuse(&args.filter, filter.kind())?;
            let adding = filter.in_order(input.threads, |_| ());
            let mut stdout = output::Sink::stdout()?;
            pass::<(), _>(&mut [], &hasher, (args, input), &mut stdout)?.run_in_order(
                |number, hashes, new, wanted| {
                    let added = adding.insert_hashes(number, hashes, new, wanted);
                    added.map_err(named())
                },
            )?
        }
    };
    // A key whose record could not be printed as new isn't remembered, so the next run prints it.
    if let Some(lock) = &mut lock
        && (report.is_printed() || !args.new)
    {
        filter.save_under(lock).map_err(named())?;
    }
    summarise(&report, args);
    if filter.keys().get() > filter.capacity() {
        About::of(&filter).overfull().iter().for_each(output::warn);
    }
    filter.close().map_err(named())?;
    Ok(report)
}

/// Adds keys as of their records' times, or as of now.
fn add_to_window(window: &mut Window, (args, input): (&Args, &Run)) -> Result<Report> {
    let hasher = Timed(*window.hasher());
    let mut adding = (window, Times::new(&input.rule));
    let report = add(&mut adding, &hasher, (args, input), |adding, keys, new| {
        let (window, times) = adding;
        times.insert(window, keys, new, true);
        Ok(())
    })?;
    let (window, mut times) = adding;
    times.finish(window);
    times.warn(report.without_time);
    warn_of_too_old(&times.odd());
    Ok(report)
}

/// Adds to another system's filter, if the file is one.
fn add_to_foreign(path: &Path, args: &Args, input: &Run) -> Result<Option<Report>> {
    if args.foreign.open(path)?.is_none() {
        return Ok(None);
    }
    args.time.refuse(&args.filter, "foreign")?;
    if args.shared {
        bail!(
            "--shared is for Tamis filters: other systems don't know how to share a file with us"
        );
    }
    // Opened again now that we hold the lock.
    let _lock = args.lock.acquire(path)?;
    let Some(mut opened) = args.foreign.open(path)? else {
        bail!(
            "{}: the file was replaced while we waited for it",
            path.display()
        );
    };
    opened.check_writable()?;
    let encoding = args.foreign.encoding_of(input, &opened)?;
    let report = add(
        &mut opened.filter,
        &encoding,
        (args, input),
        |filter, keys, new| Ok(foreign::add(filter, keys, new)?),
    )
    .with_context(|| format!("{} (unchanged)", path.display()))?;
    if report.is_printed() || !args.new {
        opened.save()?;
    }
    summarise(&report, args);
    foreign::tell::warn_if_over(&opened);
    Ok(Some(report))
}

fn add<F: Send, H: Keyed>(
    filter: &mut F,
    hasher: &H,
    (args, input): (&Args, &Run),
    insert: impl Fn(&mut F, &[H::Token], &mut [bool]) -> Result<(), Halt> + Sync,
) -> Result<Report> {
    let mut stdout = output::Sink::stdout()?;
    pass(&mut [filter], hasher, (args, input), &mut stdout)?
        .run(|filter, hashes, new| insert(filter, hashes, new))
}

/// A pass that prints new records, if asked to.
fn pass<'a, S: Send, H: Keyed>(
    shards: &'a mut [S],
    hasher: &'a H,
    (args, input): (&Args, &'a Run),
    stdout: &'a mut output::Sink,
) -> Result<Pass<'a, S, H>> {
    let mut print = Print::Nothing;
    if args.new {
        stdout.end_last_line(input.rule.framing().delimiter())?;
        print = Print::Chosen;
    }
    let mixes = args.new && stdout.is_terminal();
    Ok(Pass::new(input, hasher, shards)
        .print(print, stdout)
        .hide_bar_if(args.quiet || mixes))
}

fn summarise(report: &Report, args: &Args) {
    if !args.quiet && report.read_something() {
        say!(
            "{}: {} read, {} new",
            args.filter,
            human::counted(report.records, "key"),
            human::count(report.chosen),
        );
    }
}
