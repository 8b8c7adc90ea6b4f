use crate::location::{KeyFile, Place, RedisArgs, in_redis};
use crate::{Exit, human};
use anyhow::{Result, bail};
use std::time::Duration;
use tamis_redis::RedisFilter;

/// Delete a filter in Redis, now or later
///
/// Workers that still use the filter get an error, never a wrong answer.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  tamis delete redis://10.0.0.7/seen
  tamis delete --after 7d redis://10.0.0.7/seen
  tamis delete --never redis://10.0.0.7/seen        cancel --after")]
pub(crate) struct Args {
    /// The filter: redis://HOST:PORT/DB/NAME
    filter: Place,

    /// Delete it after this time, e.g. 90s, 12h, 7d
    #[arg(long, value_name = "TIME", value_parser = human::parse_duration)]
    after: Option<Duration>,

    /// Keep it forever: cancel --after
    #[arg(long, conflicts_with = "after")]
    never: bool,

    #[command(flatten)]
    key: KeyFile,

    #[command(flatten)]
    redis: RedisArgs,
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    let Place::Redis(at) = &args.filter else {
        bail!("{}: use `rm` to delete a file", args.filter);
    };
    let open = || args.redis.open(at, &args.key);
    match (args.after, args.never) {
        (Some(time), _) => open()?.expire_in(time),
        (None, true) => open()?.persist(),
        // Even if it can't be opened.
        (None, false) => RedisFilter::delete_at(at, &args.redis.options(&args.key)?),
    }
    .map_err(in_redis(at))?;
    Ok(Exit::Done)
}
