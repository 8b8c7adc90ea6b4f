use crate::location::{KeyFile, Place, RedisArgs};
use crate::{Exit, human, output};
use anyhow::Result;

/// Copy a filter between files and Redis, bit for bit
///
/// Blocked, counting and growing filters live in Redis; the others only in
/// files.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  tamis copy seen.tamis redis://10.0.0.7/seen       share a filter that was made offline
  tamis copy redis://10.0.0.7/seen backup.tamis     and back: the same bits")]
pub(crate) struct Args {
    /// The filter: a file, or redis://HOST:PORT/DB/NAME
    from: Place,

    /// Where to copy it
    to: Place,

    /// Replace what is there
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    key: KeyFile,

    #[command(flatten)]
    redis: RedisArgs,
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    if let Place::File(path) = &args.to {
        output::check_place(path, args.force)?;
    }
    let filter = args.from.load(&args.key, &args.redis)?;
    args.to.save(&filter, args.force, &args.key, &args.redis)?;
    eprintln!("{}: {}", args.to, human::size(filter.bytes()));
    Ok(Exit::Done)
}
