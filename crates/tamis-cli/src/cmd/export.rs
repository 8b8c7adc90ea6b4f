use crate::location::{KeyFile, named};
use crate::{Exit, output};
use anyhow::Result;
use std::path::PathBuf;

/// Print a filter as base64 text
///
/// For places that take only text: mails, JSON, environment variables.
/// `tamis import` reads it back.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The filter
    filter: PathBuf,

    #[command(flatten)]
    key: KeyFile,
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    let filter = args
        .key
        .open()?
        .load(&args.filter)
        .map_err(named(&args.filter))?;
    output::print(&(filter.to_base64() + "\n"))?;
    Ok(Exit::Done)
}
