use crate::apart::{Apart, Role};
use crate::location::{KeyFile, named};
use crate::{Exit, output};
use anyhow::{Context, Result};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Create a filter from base64 text
///
/// Reads what `tamis export` printed, from a file or standard input.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The file to create
    filter: PathBuf,

    /// The text
    #[arg(default_value = "-", value_name = "FILE")]
    text: PathBuf,

    /// Replace the filter if it exists
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    key: KeyFile,
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    let mut apart = Apart::default();
    apart.note(Role::Filter, &args.filter)?;
    args.key.note(&mut apart)?;
    apart.check_input(&args.text)?;
    output::check_place(&args.filter, args.force)?;
    let mut text = String::new();
    if args.text == Path::new("-") {
        io::stdin()
            .read_to_string(&mut text)
            .context("reading stdin")?;
    } else {
        text = std::fs::read_to_string(&args.text)
            .with_context(|| format!("reading {}", args.text.display()))?;
    }
    let filter = args
        .key
        .open()?
        .decode_base64(&text)
        .with_context(|| format!("{}", args.text.display()))?;
    match args.force {
        true => filter.save(&args.filter),
        false => filter.save_new(&args.filter),
    }
    .map_err(named(&args.filter))?;
    Ok(Exit::Done)
}
