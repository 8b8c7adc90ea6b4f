use crate::cmd::info::About;
use crate::location::{KeyFile, Place, RedisArgs, named};
use crate::{Exit, human, output};
use anyhow::{Context, Result};
use tamis::{AnyFilter, Body, Error};

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

    /// The filter to make: a file, or redis://HOST:PORT/DB/NAME
    #[arg(short, long, value_name = "OUT")]
    output: Place,

    /// Replace it if it exists
    #[arg(long)]
    force: bool,

    /// The filters to combine
    #[arg(required = true, num_args = 2.., value_name = "FILTER")]
    filters: Vec<Place>,

    #[command(flatten)]
    key: KeyFile,

    #[command(flatten)]
    redis: RedisArgs,
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
    if let Place::File(path) = &args.output {
        output::check_place(path, args.force)?;
    }
    let (first, others) = args.filters.split_first().context("no filters")?;
    let mut merged = first.load(&args.key, &args.redis)?;
    for place in others {
        match place {
            // Read once, so that it need not be in memory.
            Place::File(path) => {
                let other = args.key.open()?.map(path).map_err(named(path))?;
                args.how.combine(&mut merged, &other)
            }
            Place::Redis(_) => {
                let other = place.load(&args.key, &args.redis)?;
                args.how.combine(&mut merged, &other)
            }
        }
        .with_context(|| format!("{first} and {place}"))?;
    }
    args.output
        .save(&merged, args.force, &args.key, &args.redis)?;
    let about = About::of(&merged);
    eprintln!(
        "{}: about {} keys, rate now {}",
        args.output,
        human::count(merged.keys().get()),
        human::rate(about.rate_now),
    );
    about.warn_if_over();
    Ok(Exit::Done)
}

impl How {
    fn combine<B: Body>(&self, merged: &mut AnyFilter, other: &AnyFilter<B>) -> Result<(), Error> {
        match self.union {
            true => merged.union_with(other),
            false => merged.intersect_with(other),
        }
    }
}
