use crate::engine::batch::Print;
use crate::engine::pipeline::Halt;
use crate::foreign::{self, ForeignArgs};
use crate::location::{KeyFile, Place, RedisArgs, in_redis, named};
use crate::redisson::Live;
use crate::remote::{Remote, with_keys};
use crate::stream::{InputArgs, Keyed, Pass};
use crate::{Exit, output};
use anyhow::{Result, bail};
use std::path::PathBuf;

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
  echo alice@example.org | tamis check -q blocked.tamis && echo blocked
  tamis check --keys upper hashlookup-full.bloom sha1.txt    another system's filter")]
pub(crate) struct Args {
    /// The filter: a file, or redis://HOST:PORT/DB/NAME
    filter: Place,

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

    #[command(flatten)]
    foreign: ForeignArgs,

    #[command(flatten)]
    redis: RedisArgs,
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    match &args.filter {
        Place::File(path) => {
            if let Some(opened) = args.foreign.open(path)? {
                let encoding = args.foreign.encoding_of(&args.input, &opened)?;
                return check(&args, &encoding, &opened.filter, |filter, keys, found| {
                    foreign::ask(filter, keys, found)
                });
            }
            let filter = args.key.open()?.map(path).map_err(named(path))?;
            // Asking changes nothing, so every thread asks the one filter.
            check(&args, filter.hasher(), &filter, |filter, hashes, found| {
                filter.contains_hashes(hashes, found);
                Ok(())
            })
        }
        Place::Redis(at) if args.foreign.is_redisson()? => {
            let encoding = args.foreign.codec(&args.input)?;
            let live = Live::open(at, &args.redis.options(&args.key)?)?;
            check(&args, &encoding, live, Live::ask)
        }
        Place::Redis(at) => {
            let filter = args.redis.open(at, &args.key)?;
            with_keys!(filter, keyed => check(&args, keyed, filter, |filter, keys, found| {
                Remote::contains(filter, keys, found).map_err(in_redis(at))
            }))
        }
    }
}

fn check<F: Send, H: Keyed<Token: Ord + Clone + Send + Sync>>(
    args: &Args,
    hasher: &H,
    filter: F,
    ask: impl Fn(&mut F, &[H::Token], &mut [bool]) -> Result<()> + Sync,
) -> Result<Exit> {
    let allowed = read_allowed(args, hasher)?;
    let report = Pass {
        input: &args.input,
        hasher,
        shards: &mut [filter],
        print: match args.count || args.quiet {
            true => Print::Nothing,
            false => Print::Chosen,
        },
        output: &mut output::Sink::stdout(&args.input.paths())?,
        checkpoint: None,
    }
    .run(|filter, hashes, chosen| {
        ask(filter, hashes, chosen)?;
        if !allowed.is_empty() {
            for (hash, chosen) in hashes.iter().zip(&mut *chosen) {
                *chosen = *chosen && allowed.binary_search(hash).is_err();
            }
        }
        if args.invert {
            chosen.iter_mut().for_each(|chosen| *chosen = !*chosen);
        }
        match args.quiet && chosen.contains(&true) {
            true => Err(Halt::Enough),
            false => Ok(()),
        }
    })?;
    if args.count {
        output::print(&format!("{}\n", report.chosen))?;
    }
    report.finish()
}

/// The hashes of the allow list, sorted.
fn read_allowed<H: Keyed<Token: Ord + Clone + Send>>(
    args: &Args,
    hasher: &H,
) -> Result<Vec<H::Token>> {
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
    }
    .run(|allowed: &mut Vec<H::Token>, hashes, _| {
        allowed.extend_from_slice(hashes);
        Ok(())
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
