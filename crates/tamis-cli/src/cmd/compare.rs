use crate::apart::Apart;
use crate::compare::advice::{self, Advice, Wanted};
use crate::compare::contender::{Contender, Need};
use crate::compare::keys::{self, Collected};
use crate::compare::measure::{self, Folder, Lab};
use crate::compare::report::{Comparison, Refusal};
use crate::compare::step::{self, What};
use crate::compare::{pictures, table};
use crate::stream::{self, InputArgs};
use crate::{Exit, human, output};
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Compare ways to store your own keys, and recommend one
///
/// Stores the keys of FILE in a hash set, sorted digests, a bitmap (for
/// integers), a bitmap with one hash, SQLite and redb on disk, and every kind of
/// filter. Each is built and queried in its own process, one after the other, on
/// one thread.
///
/// The table shows the size of each, the memory of its process while it answers
/// and while it is built, how fast it is built, how fast it answers for keys
/// that are present and absent, one at a time and in batches, and how often it
/// says "yes" to an absent key.
///
/// Absent keys come from --absent; without it, half of the keys of FILE are
/// held back and serve as absent keys.
#[derive(clap::Args)]
#[command(after_long_help = "\
What it recommends, among those that can do everything you need (--need):
  1. a hash set, if all keys fit in --memory: you need no filter
  2. otherwise the smallest, or one at most a quarter larger that answers faster;
     where speeds tie, the kind that `tamis plan` picks;
     a database, whose size is on disk, only if nothing else but a hash set will do

Exit codes: 0 success, 2 an error; results that could be measured are still shown.

Examples:
  tamis compare urls.txt
  tamis compare --absent today.txt blocked.txt -p 0.001
  tamis compare -k csv:id orders.csv --need delete
  tamis compare urls.txt.gz --keep compared    and the pictures in compared/")]
pub(crate) struct Args {
    #[command(flatten)]
    input: InputArgs,

    /// Absent keys to ask for, read like FILE; may be given several times
    ///
    /// Keys that are also in FILE are left out.
    #[arg(long, value_name = "FILE")]
    absent: Vec<PathBuf>,

    /// The acceptable rate of false "yes" answers, e.g. 0.01, 1%, 1e-6
    #[arg(short = 'p', long = "rate", value_name = "P", default_value = "0.01", value_parser = human::parse_rate, allow_negative_numbers = true)]
    rate: f64,

    /// What else must be possible; separate several with commas
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    need: Vec<Need>,

    /// Recommend a hash set if it takes no more than this
    #[arg(long, value_name = "S", default_value = "2MB", value_parser = human::parse_size)]
    memory: u64,

    /// Store at most this many keys, sampled evenly
    #[arg(long = "sample", value_name = "N", default_value = "2M", value_parser = human::parse_count, allow_negative_numbers = true)]
    keys: u64,

    /// Calculate the sizes for this many such keys, too
    #[arg(long = "for", value_name = "N", default_value = "100M", value_parser = human::parse_count)]
    for_keys: u64,

    /// Give up on anything that takes longer to build or query, e.g. 30s, 5m
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = human::parse_duration)]
    limit: Duration,

    /// Print JSON, for programs
    #[arg(long)]
    json: bool,

    /// Keep keys, everything built and pictures in this new folder, and print the commands that ran
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

/// One contender, in a process of its own. `tamis compare --keep` tells how it is run.
#[derive(clap::Args)]
pub(crate) struct StepArgs {
    dir: PathBuf,

    #[arg(value_parser = Contender::parse)]
    contender: Contender,

    what: What,
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    let mut apart = Apart::default();
    for file in &args.absent {
        apart.check_input(file)?;
    }
    let input = args.input.find(&mut apart)?;
    let absent = (!args.absent.is_empty()).then(|| input.with_files(args.absent.clone()));
    let inputs = input.files.iter().chain(&args.absent);
    if inputs.filter(|path| *path == Path::new("-")).count() > 1 {
        bail!("FILE and --absent can't both be standard input");
    }
    // Before the folder is created, so that no signal leaves it behind.
    let stop = Arc::new(AtomicBool::new(false));
    let signal = stream::stop_on_signals(&stop)?;
    let folder = Folder::create(args.keep.as_deref())?;

    let most = usize::try_from(args.keys).unwrap_or(usize::MAX).max(1);
    let keys = match keys::collect(&input, absent.as_ref(), most, folder.path())? {
        Collected::Keys(keys) => keys,
        Collected::Interrupted(signal) => return Ok(Exit::Interrupted(signal)),
    };
    if keys.held == 0 {
        bail!("the input has no keys, so there is nothing to compare");
    }
    let lab = Lab {
        dir: folder.path(),
        limit: args.limit,
        stop: &stop,
    };
    let Some(rows) = lab.measure(&keys, args.rate)? else {
        let signal = signal.load(std::sync::atomic::Ordering::Relaxed);
        return Ok(Exit::Interrupted(signal as i32));
    };
    let mut comparison = Comparison {
        keys,
        rate: args.rate,
        for_keys: args.for_keys.max(1),
        rows,
    };
    let wanted = Wanted {
        needs: &args.need,
        memory: args.memory,
    };
    let advice = settle(&lab, &mut comparison, &wanted)?;
    drop(folder);

    output::print(&if args.json {
        format!("{:#}\n", table::json(&comparison, &advice))
    } else {
        table::text(&comparison, &advice)
    })?;
    if let Some(folder) = &args.keep {
        pictures::draw(&comparison, folder)?;
        for command in comparison.rows.iter().flat_map(|row| &row.commands) {
            say!("{command}");
        }
    }
    let mut exit = Exit::Done;
    for row in &comparison.rows {
        if let Err(Refusal::Failed(why)) = &row.result {
            output::complain(format_args!("{}: {why}", row.contender.name()));
            exit = Exit::InputFailed;
        }
    }
    Ok(exit)
}

/// Repeats until two rounds in a row give the same advice.
fn settle(lab: &Lab, comparison: &mut Comparison, wanted: &Wanted) -> Result<Advice> {
    const MOST_ROUNDS: usize = 6;
    let mut advice = advice::give(comparison, wanted);
    for _ in 1..MOST_ROUNDS {
        let rivals = advice::rivals(comparison, wanted);
        if rivals.is_empty() {
            break;
        }
        lab.ask_again(&mut comparison.rows, &rivals)?;
        let again = advice::give(comparison, wanted);
        let picked = |advice: &Advice| advice.pick.as_ref().map(|pick| pick.contender);
        let is_settled = picked(&again) == picked(&advice);
        advice = again;
        if is_settled {
            break;
        }
    }
    Ok(advice)
}

pub(crate) fn run_step(args: StepArgs) -> Result<Exit> {
    measure::end_with_parent();
    let result = step::run(&args.dir, args.contender, args.what);
    output::print(&serde_json::to_string(&result)?)?;
    Ok(Exit::Done)
}
