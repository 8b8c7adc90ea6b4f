use crate::about::About;
use crate::apart::{Apart, Role};
use crate::foreign::{self, ForeignArgs, Opened};
use crate::location::{KeyFile, Place, named};
use crate::present::{self, Written};
use crate::{Exit, human, output};
use anyhow::{Context, Result, anyhow, bail};
use tamis::{AnyFilter, Error, body::Body};

/// Combine filters with the same shape and hash into one
///
/// The union contains the keys of every filter. The intersection contains the
/// keys that are in all of them, at a rate slightly above that of a filter built
/// from those keys alone.
///
/// Other systems' filters can be united if they have the same format, size and
/// number of hashes.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  tamis merge --union -o all.tamis monday.tamis tuesday.tamis
  tamis merge --intersect -o both.tamis a.tamis b.tamis")]
pub(crate) struct Args {
    #[command(flatten)]
    how: How,

    /// The filter to create: a file, or redis://HOST:PORT/DB/NAME
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
    foreign: ForeignArgs,
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct How {
    /// Keys in any of the filters
    #[arg(long)]
    union: bool,
    /// Keys in all of the filters
    #[arg(long)]
    intersect: bool,
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    let mut apart = Apart::default();
    args.output.note(Role::Output, &mut apart)?;
    args.key.note(&mut apart)?;
    for filter in &args.filters {
        filter.note(Role::Input, &mut apart)?;
    }
    if let Place::File(path) = &args.output {
        // Which of the two it is isn't known until the filters are opened.
        present::check(path, args.force, Written::Foreign(args.foreign.format()))?;
    }
    if let Some(opened) = open_foreign(&args)? {
        return merge_foreign(&opened, &args);
    }
    if let Place::File(path) = &args.output {
        present::check(path, args.force, Written::Filter)?;
    }
    args.foreign.refuse_in_redis()?;
    let (first, others) = args.filters.split_first().context("no filters")?;
    let mut merged = first.load(&args.key)?;
    for place in others {
        match place {
            // Read once, so it isn't loaded into memory.
            Place::File(path) => {
                let other = args.key.open()?.open(path).map_err(named(path))?;
                args.how.combine(&mut merged, &other)
            }
            Place::Redis(_) => {
                let other = place.load(&args.key)?;
                args.how.combine(&mut merged, &other)
            }
        }
        .with_context(|| format!("{first} and {place}"))?;
    }
    args.output
        .save(&merged, args.force, || args.key.redis_options())?;
    let about = About::of(&merged);
    say!(
        "{}: about {}, rate now {}",
        args.output,
        human::counted(merged.keys().get(), "key"),
        human::rate(about.rate_now),
    );
    about.overfull().iter().for_each(output::warn);
    Ok(Exit::Done)
}

/// The filters, if they belong to another system.
fn open_foreign(args: &Args) -> Result<Option<Vec<Opened>>> {
    let mut opened = Vec::new();
    for place in &args.filters {
        if let Place::File(path) = place {
            opened.extend(args.foreign.open(path)?);
        }
    }
    match opened.len() {
        0 => Ok(None),
        all if all == args.filters.len() => Ok(Some(opened)),
        _ => bail!(
            "{} is a {} filter, others are not: a filter can't be converted to another layout\n\
             hint: build one filter from all the keys",
            opened[0].path.display(),
            opened[0].filter.format()
        ),
    }
}

fn merge_foreign(opened: &[Opened], args: &Args) -> Result<Exit> {
    let (first, others) = opened.split_first().context("no filters")?;
    let Place::File(output) = &args.output else {
        bail!(
            "{}: other systems' filters can only be merged into a file",
            args.output
        );
    };
    if !args.how.union {
        bail!("other systems' filters can be united (--union), but not intersected");
    }
    let mut merged = first.clone();
    merged.filter.unpack();
    for other in others {
        let united = merged.filter.union_with(&other.filter);
        united.map_err(|error| {
            let (first, other) = (first.path.display(), other.path.display());
            anyhow!("{first} and {other}: {error}")
        })?;
    }
    let bytes = merged.filter.to_bytes();
    let written = Written::Foreign(Some(merged.filter.format()));
    foreign::write(output, &bytes, present::check(output, args.force, written)?)?;
    let keys = merged.filter.keys_now().unwrap_or(f64::INFINITY);
    say!(
        "{}: about {}, rate now {}",
        args.output,
        human::counted(keys.round() as u64, "key"),
        human::rate(merged.filter.rate_now()),
    );
    foreign::tell::warn_if_over(&merged);
    Ok(Exit::Done)
}

impl How {
    fn combine<B: Body>(&self, merged: &mut AnyFilter, other: &AnyFilter<B>) -> Result<(), Error> {
        if self.union {
            merged.union_with(other)
        } else {
            merged.intersect_with(other)
        }
    }
}
