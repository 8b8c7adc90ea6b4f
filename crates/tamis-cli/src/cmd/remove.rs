use crate::foreign::{self, ForeignArgs};
use crate::location::{KeyFile, Place, in_redis, named};
use crate::lock::LockArgs;
use crate::remote::{Bytes, Remote, with_keys};
use crate::stream::{InputArgs, Keyed, Pass, Report, Run};
use crate::{Exit, human, output};
use anyhow::{Context, Result, bail};
use std::path::Path;
use tamis_records::batch::Print;

/// Remove keys from a counting or cuckoo filter, one per line
///
/// Undoes one addition of each key. Remove only keys that were added: at the
/// filter's rate, a key that never was seems present, and removing it can make
/// another key disappear. A filter file is read and written back as a whole;
/// other writers wait.
#[derive(clap::Args)]
#[command(after_long_help = "\
Exit codes: 0 some key was removed, 1 none was there, 2 an error.

Examples:
  tamis create online.tamis --capacity 10M --kind cuckoo
  tamis add online.tamis logins.txt
  tamis remove online.tamis logouts.txt
  tamis remove --absent online.tamis logouts.txt > never-logged-in.txt")]
pub(crate) struct Args {
    /// The filter: a file, or redis://HOST:PORT/DB/NAME
    filter: Place,

    #[command(flatten)]
    input: InputArgs,

    /// Print the records whose keys were certainly not in the filter
    #[arg(long)]
    absent: bool,

    /// No summary and no progress bar
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    key: KeyFile,

    #[command(flatten)]
    lock: LockArgs,

    #[command(flatten)]
    foreign: ForeignArgs,
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    let input = &args.input.find_for(&args.filter, &args.key, &[])?;
    let report = match &args.filter {
        Place::File(path) if args.foreign.open(path)?.is_some() => {
            remove_from_foreign(path, &args, input)?
        }
        Place::File(path) => {
            let named = || named(path);
            let mut lock = args.lock.acquire(path)?;
            let mut filter = args.key.open()?.load(path).map_err(named())?;
            // Fails before any input is read.
            filter.remove_many::<&[u8]>(&[], &mut []).map_err(named())?;
            let hasher = *filter.hasher();
            let report = remove(
                &mut filter,
                &hasher,
                (&args, input),
                |filter, hashes, removed| filter.remove_many(hashes, removed).map_err(named()),
            )?;
            filter.save_under(&mut lock).map_err(named())?;
            report
        }
        Place::Redis(at) => {
            args.foreign.refuse_in_redis()?;
            let mut filter = args.key.open_redis(at)?;
            filter
                .remove_many::<Bytes>(&[], &mut [])
                .map_err(in_redis(at))?;
            with_keys!(filter, keyed => remove(&mut filter, keyed, (&args, input), |filter, keys, removed| {
                Remote::remove(filter, keys, removed).map_err(in_redis(at))
            }))?
        }
    };
    if !args.quiet && report.read_something() {
        say!(
            "{}: {} read, {} removed",
            args.filter,
            human::counted(report.records, "key"),
            human::count(report.chosen),
        );
    }
    report.finish()
}

fn remove_from_foreign(path: &Path, args: &Args, input: &Run) -> Result<Report> {
    let _lock = args.lock.acquire(path)?;
    let Some(mut opened) = args.foreign.open(path)? else {
        bail!(
            "{}: the file was replaced while we waited for it",
            path.display()
        );
    };
    opened.check_writable()?;
    // Fails before any input is read.
    opened
        .filter
        .check_removable()
        .map_err(foreign::named(path))?;
    let encoding = args.foreign.encoding_of(input, &opened)?;
    let report = remove(
        &mut opened.filter,
        &encoding,
        (args, input),
        |filter, keys, had| foreign::remove(filter, keys, had),
    )
    .with_context(|| format!("{} (unchanged)", path.display()))?;
    opened.save()?;
    Ok(report)
}

fn remove<F: Send, H: Keyed>(
    filter: &mut F,
    hasher: &H,
    (args, input): (&Args, &Run),
    take: impl Fn(&mut F, &[H::Token], &mut [bool]) -> Result<()> + Sync,
) -> Result<Report> {
    // Keys are removed whether or not anybody reads which were absent.
    let stdout = output::Sink::stdout()?;
    let mixes = args.absent && stdout.is_terminal();
    // Chosen records are those that were removed.
    let print = if args.absent {
        Print::Others
    } else {
        Print::Nothing
    };
    Pass::new(input, hasher, &mut [filter])
        .print(print, &mut output::UntilClosed(Some(stdout)))
        .hide_bar_if(args.quiet || mixes)
        .run(|filter, hashes, removed| Ok(take(filter, hashes, removed)?))
}
