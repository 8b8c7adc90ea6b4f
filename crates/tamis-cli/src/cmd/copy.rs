use crate::location::{KeyFile, Place, RedisArgs};
use crate::{Exit, human, output};
use anyhow::Result;

/// Copy a filter between files and Redis, bit for bit
///
/// Blocked, counting and growing filters live in Redis; the others only in
/// files.
///
/// With --as blocked, a counting filter becomes the blocked filter that its
/// keys would have built: a quarter of the size, without removal.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  tamis copy seen.tamis redis://10.0.0.7/seen       share a filter that was made offline
  tamis copy redis://10.0.0.7/seen backup.tamis     and back: the same bits
  tamis copy online.tamis list.tamis --as blocked   a counting filter, to be handed out")]
pub(crate) struct Args {
    /// The filter: a file, or redis://HOST:PORT/DB/NAME
    from: Place,

    /// Where to copy it
    to: Place,

    /// Change the kind on the way
    #[arg(long = "as", value_name = "KIND")]
    as_kind: Option<As>,

    /// Replace what is there
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    key: KeyFile,

    #[command(flatten)]
    redis: RedisArgs,
}

/// What a filter can become.
#[derive(Clone, Copy, clap::ValueEnum)]
enum As {
    /// Of a counting filter: without its counters
    Blocked,
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    if let Place::File(path) = &args.to {
        output::check_place(path, args.force)?;
    }
    let mut filter = args.from.load(&args.key, &args.redis)?;
    if let Some(As::Blocked) = args.as_kind {
        filter = filter.to_blocked()?.into();
    }
    args.to.save(&filter, args.force, &args.key, &args.redis)?;
    eprintln!("{}: {}", args.to, human::size(filter.bytes()));
    Ok(Exit::Done)
}
