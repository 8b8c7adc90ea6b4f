use crate::engine::batch::Print;
use crate::location::{KeyFile, named};
use crate::stream::{InputArgs, Pass};
use crate::{Exit, output};
use anyhow::{Result, bail};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tamis::{AnyFilter, Hash, Hasher, Map};

/// Print the keys that may be in a filter, like grep
///
/// A printed key was added, or is one of the rare false "yes" answers; a key
/// that is not printed was certainly not added.
#[derive(clap::Args)]
#[command(after_long_help = "\
Exit codes: 0 some key may be present, 1 none is, 2 an error.

Examples:
  tamis check blocked.tamis senders.txt       the senders that may be blocked
  tamis check --allow friends.txt blocked.tamis senders.txt
  tamis check -v seen.tamis urls.txt          the URLs that are certainly new
  echo alice@example.org | tamis check -q blocked.tamis && echo blocked")]
pub(crate) struct Args {
    /// The filter
    filter: PathBuf,

    #[command(flatten)]
    input: InputArgs,

    /// Print the keys that are certainly absent instead
    #[arg(short = 'v', long)]
    invert: bool,

    /// Print only how many there are
    #[arg(short, long)]
    count: bool,

    /// Print nothing and stop at the first
    #[arg(short, long, conflicts_with = "count")]
    quiet: bool,

    /// A list of keys that are never reported, looked up exactly; may be given several times
    ///
    /// Read like the other files, and held in memory: 16 bytes a key. `tamis
    /// build --allow` makes a filter that needs no such list.
    #[arg(long, value_name = "FILE")]
    allow: Vec<PathBuf>,

    #[command(flatten)]
    key: KeyFile,
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    let filter = args
        .key
        .open()?
        .map(&args.filter)
        .map_err(named(&args.filter))?;
    let allowed = read_allowed(&args, filter.hasher())?;
    let stop = Arc::new(AtomicBool::new(false));
    let report = Pass {
        input: &args.input,
        hasher: filter.hasher(),
        // Asking changes nothing, so every thread asks the one filter.
        shards: &mut [&filter],
        print: match args.count || args.quiet {
            true => Print::Nothing,
            false => Print::New,
        },
        output: &mut output::stdout()?,
        checkpoint: None,
        stop: Arc::clone(&stop),
    }
    .run(
        |filter: &mut &AnyFilter<Map>, hashes: &[Hash], chosen: &mut [bool]| {
            filter.contains_hashes(hashes, chosen);
            if !allowed.is_empty() {
                for (hash, chosen) in hashes.iter().zip(&mut *chosen) {
                    *chosen = *chosen && allowed.binary_search(hash).is_err();
                }
            }
            if args.invert {
                chosen.iter_mut().for_each(|chosen| *chosen = !*chosen);
            }
            if args.quiet && chosen.contains(&true) {
                stop.store(true, Relaxed);
            }
        },
    )?;
    if args.count {
        output::print(&format!("{}\n", report.chosen))?;
    }
    report.finish()
}

/// The hashes of the allow list, sorted.
fn read_allowed(args: &Args, hasher: &Hasher) -> Result<Vec<Hash>> {
    if args.allow.is_empty() {
        return Ok(Vec::new());
    }
    let input = args.input.with_files(args.allow.clone());
    let mut shards = [Vec::new()];
    let report = Pass {
        input: &input,
        hasher,
        shards: &mut shards,
        print: Print::Nothing,
        output: &mut std::io::sink(),
        checkpoint: None,
        stop: Arc::default(),
    }
    .run(|allowed: &mut Vec<Hash>, hashes: &[Hash], _: &mut [bool]| {
        allowed.extend_from_slice(hashes);
    })?;
    match report.finish()? {
        Exit::Done | Exit::NoneFound => {}
        _ => bail!("the allow list could not be read to its end"),
    }
    let [mut allowed] = shards;
    allowed.sort_unstable();
    allowed.dedup();
    Ok(allowed)
}
