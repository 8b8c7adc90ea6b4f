use crate::cmd::info::warn_if_over;
use crate::engine::batch::Print;
use crate::location::{KeyFile, named};
use crate::stream::{InputArgs, Pass, Report};
use crate::{Exit, human, output};
use anyhow::Result;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tamis::{AnyFilter, Error, FileLock, Hash};

/// Add keys to a filter, one a line
///
/// The filter is read, the keys are added, and it is written back as a whole:
/// after a crash the file is the old or the new one. Other writers wait.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  tamis add seen.tamis urls.txt.gz
  tamis add --new seen.tamis urls.txt > new-urls.txt
  cut -f1 table.tsv | tamis add seen.tamis
  tamis add --csv customer,date seen.tamis orders.csv")]
pub(crate) struct Args {
    /// The filter
    filter: PathBuf,

    #[command(flatten)]
    input: InputArgs,

    /// Print the records whose keys were new
    #[arg(long)]
    new: bool,

    /// Add in place through a shared memory map
    ///
    /// Several processes can add at once, and only the pages that are touched
    /// need memory. A key is in the file once it was added, even if this
    /// process is killed; if the machine goes down, the file is refused
    /// afterwards.
    #[arg(long)]
    shared: bool,

    #[command(flatten)]
    key: KeyFile,
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    let named = || named(&args.filter);
    let open = args.key.open()?;
    if args.shared {
        let mut filter = open.share(&args.filter).map_err(named())?;
        let report = add(&mut filter, &args)?;
        summarise(&filter, &report, &args);
        filter.close().map_err(named())?;
        return report.finish_adding();
    }
    let mut lock = FileLock::acquire(&args.filter).map_err(named())?;
    let mut filter = open.load(&args.filter).map_err(named())?;
    let report = add(&mut filter, &args)?;
    // Keys whose records could not be printed as new are not remembered: the
    // next run prints them.
    if report.is_printed() || !args.new {
        filter.save_under(&mut lock).map_err(named())?;
    }
    summarise(&filter, &report, &args);
    report.finish_adding()
}

/// The filter, and why it took no more keys.
struct Adding<'a> {
    filter: &'a mut AnyFilter,
    refused: Option<Error>,
}

fn add(filter: &mut AnyFilter, args: &Args) -> Result<Report> {
    let hasher = *filter.hasher();
    let stop = Arc::new(AtomicBool::new(false));
    let mut shards = [Adding {
        filter,
        refused: None,
    }];
    let report = Pass {
        input: &args.input,
        hasher: &hasher,
        shards: &mut shards,
        print: match args.new {
            true => Print::New,
            false => Print::Nothing,
        },
        output: &mut output::stdout()?,
        checkpoint: None,
        stop: Arc::clone(&stop),
    }
    .run(
        |adding: &mut Adding<'_>, hashes: &[Hash], new: &mut [bool]| {
            if adding.refused.is_none()
                && let Err(error) = adding.filter.insert_hashes(hashes, new)
            {
                adding.refused = Some(error);
                stop.store(true, Relaxed);
            }
        },
    )?;
    match shards {
        [
            Adding {
                refused: Some(error),
                ..
            },
        ] => Err(error.into()),
        _ => Ok(report),
    }
}

fn summarise(filter: &AnyFilter, report: &Report, args: &Args) {
    eprintln!(
        "{}: {} keys read, {} new",
        args.filter.display(),
        human::count(report.records),
        human::count(report.chosen),
    );
    if filter.keys().get() > filter.capacity() {
        warn_if_over(filter, filter.rate_now());
    }
}

impl Report {
    /// Adding nothing new is no failure.
    fn finish_adding(self) -> Result<Exit> {
        Ok(match self.finish()? {
            Exit::NoneFound => Exit::Done,
            exit => exit,
        })
    }
}
