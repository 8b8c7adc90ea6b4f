use crate::engine::batch::Print;
use crate::location::{KeyFile, named};
use crate::stream::{InputArgs, Pass, Report};
use crate::{Exit, human, output};
use anyhow::Result;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tamis::{AnyFilter, Error, FileLock, Hash};

/// Remove keys from a counting or cuckoo filter, one a line
///
/// Takes back one adding of each key. Remove only keys that were added: one
/// that never was seems present at the filter's rate, and removing it can make
/// another key go missing. The filter is read and written back as a whole;
/// other writers wait.
#[derive(clap::Args)]
#[command(after_long_help = "\
Exit codes: 0 some key was removed, 1 none was there, 2 an error.

Examples:
  tamis create online.tamis -n 10M --kind cuckoo
  tamis add online.tamis logins.txt
  tamis remove online.tamis logouts.txt
  tamis remove --absent online.tamis logouts.txt > never-logged-in.txt")]
pub(crate) struct Args {
    /// The filter
    filter: PathBuf,

    #[command(flatten)]
    input: InputArgs,

    /// Print the records whose keys were certainly not in the filter
    #[arg(long)]
    absent: bool,

    #[command(flatten)]
    key: KeyFile,
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    let named = || named(&args.filter);
    let mut lock = FileLock::acquire(&args.filter).map_err(named())?;
    let mut filter = args.key.open()?.load(&args.filter).map_err(named())?;
    // Says it before any input is read.
    filter.remove_hashes(&[], &mut []).map_err(named())?;
    let report = remove(&mut filter, &args)?;
    filter.save_under(&mut lock).map_err(named())?;
    eprintln!(
        "{}: {} keys read, {} removed",
        args.filter.display(),
        human::count(report.records),
        human::count(report.chosen),
    );
    report.finish()
}

/// The filter, and why it could not go on.
struct Removing<'a> {
    filter: &'a mut AnyFilter,
    failed: Option<Error>,
}

fn remove(filter: &mut AnyFilter, args: &Args) -> Result<Report> {
    let hasher = *filter.hasher();
    let stop = Arc::new(AtomicBool::new(false));
    let mut shards = [Removing {
        filter,
        failed: None,
    }];
    let report = Pass {
        input: &args.input,
        hasher: &hasher,
        shards: &mut shards,
        // What was chosen was removed.
        print: match args.absent {
            true => Print::Duplicates,
            false => Print::Nothing,
        },
        output: &mut output::stdout()?,
        checkpoint: None,
        stop: Arc::clone(&stop),
    }
    .run(
        |removing: &mut Removing<'_>, hashes: &[Hash], removed: &mut [bool]| {
            if removing.failed.is_none()
                && let Err(error) = removing.filter.remove_hashes(hashes, removed)
            {
                removing.failed = Some(error);
                stop.store(true, Relaxed);
            }
        },
    )?;
    let [removing] = shards;
    match removing.failed {
        Some(error) => Err(error.into()),
        None => Ok(report),
    }
}
