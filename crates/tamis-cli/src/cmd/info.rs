use crate::about::{self, About};
use crate::foreign::{self, ForeignArgs};
use crate::location::{KeyFile, Place, RedisArgs, in_redis, named};
use crate::redisson::Live;
use crate::{Exit, output};
use anyhow::Result;

/// Describe a filter and how full it is, or an index
///
/// Reads the whole filter to find its fill and the rate to expect now. For an
/// index, it shows which files have changed; for another system's filter, what
/// its file says, what follows from its bits, and what the file does not say;
/// for a Parquet file, the filters of its columns and row groups.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The filter or index: a file, or redis://HOST:PORT/DB/NAME
    filter: Place,

    /// Print JSON, for programs
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    key: KeyFile,

    #[command(flatten)]
    foreign: ForeignArgs,

    #[command(flatten)]
    redis: RedisArgs,
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    let about = match &args.filter {
        Place::File(path) if crate::index::is_index(path) => {
            return crate::index::tell::info(path, args.json);
        }
        Place::File(path) => {
            if foreign::tell::info(path, &args.foreign, args.json)? {
                return Ok(Exit::Done);
            }
            let filter = args.key.open()?.open(path).map_err(named(path))?;
            About::in_file(path, &filter)
        }
        Place::Redis(at) if args.foreign.is_redisson()? => {
            Live::open(at, &args.redis.options(&args.key)?)?.info(args.json)?;
            return Ok(Exit::Done);
        }
        Place::Redis(at) => {
            let mut filter = args.redis.open(at, &args.key)?;
            tamis_report::redis::about(&mut filter).map_err(in_redis(at))?
        }
    };
    if args.json {
        output::print(&format!("{:#}\n", about::to_json(&about)))?
    } else {
        output::print(&about::describe(&about))?
    }
    about.overfull().iter().for_each(output::warn);
    Ok(Exit::Done)
}
