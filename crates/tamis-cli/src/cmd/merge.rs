use crate::location::{KeyFile, named};
use crate::{Exit, human};
use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use tamis::AnyFilter;

/// Combine filters of equal shape and hash into one
///
/// The union answers for the keys of every filter. The intersection answers
/// for the keys that are in all of them, at a rate somewhat above that of a
/// filter built from those keys alone.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  tamis merge --union -o all.tamis monday.tamis tuesday.tamis
  tamis merge --intersect -o both.tamis a.tamis b.tamis")]
pub(crate) struct Args {
    #[command(flatten)]
    how: How,

    /// The file to create
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,

    /// Replace the file if it exists
    #[arg(long)]
    force: bool,

    /// The filters to combine
    #[arg(required = true, num_args = 2.., value_name = "FILTER")]
    filters: Vec<PathBuf>,

    #[command(flatten)]
    key: KeyFile,
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct How {
    /// Keys of any of the filters
    #[arg(long)]
    union: bool,
    /// Keys of all of the filters
    #[arg(long)]
    intersect: bool,
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    if args.output.exists() && !args.force {
        bail!(
            "{} exists already\nhint: --force replaces it",
            args.output.display()
        );
    }
    let open = args.key.open()?;
    let (first, others) = args.filters.split_first().context("no filters")?;
    let mut merged: AnyFilter = open.load(first).map_err(named(first))?;
    for path in others {
        let other = open.map(path).map_err(named(path))?;
        match args.how.union {
            true => merged.union_with(&other),
            false => merged.intersect_with(&other),
        }
        .with_context(|| format!("{} and {}", first.display(), path.display()))?;
    }
    match args.force {
        true => merged.save(&args.output),
        false => merged.save_new(&args.output),
    }
    .map_err(named(&args.output))?;
    let rate_now = merged.rate_now();
    eprintln!(
        "{}: about {} keys, rate now {}",
        args.output.display(),
        human::count(merged.keys().get()),
        human::rate(rate_now),
    );
    super::info::warn_if_over(&merged, rate_now);
    Ok(Exit::Done)
}
