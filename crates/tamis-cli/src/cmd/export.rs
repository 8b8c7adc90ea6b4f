use crate::location::{KeyFile, Place, RedisArgs, warn_of_secret};
use crate::{Exit, output};
use anyhow::Result;

/// Print a filter as base64 text
///
/// For places that accept only text: mail, JSON, environment variables.
/// `tamis import` reads it back.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The filter: a file, or redis://HOST:PORT/DB/NAME
    filter: Place,

    #[command(flatten)]
    key: KeyFile,

    #[command(flatten)]
    redis: RedisArgs,
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    let filter = args.filter.load(&args.key, &args.redis)?;
    warn_of_secret(filter.hasher(), "the text");
    output::print(&(filter.to_base64() + "\n"))?;
    Ok(Exit::Done)
}
