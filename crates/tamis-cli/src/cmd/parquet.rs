use crate::present::{self, Written};
use crate::{Exit, foreign, human, output};
use anyhow::{Context, Result, anyhow};
use std::fs::File;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use tamis::Hasher;
use tamis_formats::{Create, Foreign, ParquetFilter};
use tamis_records::key::parquet::Failure;
use tamis_records::key::parquet::plain::Values;
use tamis_records::key::{KeySpec, Source};

/// Add filters to the columns of an existing Parquet file
///
/// Writes a copy of the file with a split-block filter for the column in every
/// row group, as DuckDB, Spark and Arrow write them. Readers such as DuckDB and
/// `tamis grep --candidates` ask it before they read any data. The data
/// pages stay the same, byte for byte; the filters and a new footer follow
/// them. Existing filters of the column are replaced.
///
/// Each filter is sized for the distinct values of its row group and keeps the
/// rate.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  tamis parquet events.parquet -k parquet:user_id -o events-with-filters.parquet
  tamis parquet events.parquet -k parquet:user_id -k parquet:url -p 0.001 -o events.parquet --force")]
pub(crate) struct Args {
    /// The Parquet file
    file: PathBuf,

    /// The column: parquet:COLUMN, inside a group parquet:GROUP.COLUMN; may be given several times
    #[arg(short = 'k', long = "key", value_name = "KEY", required = true, value_parser = parse_column)]
    columns: Vec<String>,

    /// How often a filter may wrongly say "yes"
    #[arg(short = 'p', long = "rate", value_name = "P", default_value = "0.01", value_parser = human::parse_rate, allow_negative_numbers = true)]
    rate: f64,

    /// The file to write
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,

    /// Replace OUT if it exists; OUT may be the file itself
    #[arg(long)]
    force: bool,
}

/// The name of a single column.
fn parse_column(text: &str) -> Result<String, String> {
    let spec: KeySpec = text.parse()?;
    match spec.source() {
        Source::Parquet(columns) if columns.len() == 1 && !spec.is_prefix() => {
            Ok(columns[0].clone())
        }
        _ => Err("expected one column, as in -k parquet:COLUMN".into()),
    }
}

/// A filter to write into the file.
struct Made {
    row_group: usize,
    column: String,
    filter: Vec<u8>,
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    present::check(&args.output, args.force, Written::Parquet)?;
    let name = || args.file.display().to_string();
    let file = foreign::regular(&args.file)?;
    let mut made = Vec::new();
    for column in &args.columns {
        // The decoder may panic on a damaged file.
        let filters = catch_unwind(AssertUnwindSafe(|| filters(&file, column, args.rate)));
        let filters = filters.map_err(|_| anyhow!("the Parquet data is damaged"));
        made.extend(filters.and_then(|made| made).with_context(name)?);
    }
    let bytes = foreign::map(&args.file, &file)?;
    let new: Vec<ParquetFilter<'_>> = made
        .iter()
        .map(|made| ParquetFilter {
            row_group: made.row_group,
            column: &made.column,
            filter: &made.filter,
        })
        .collect();
    let added = tamis_formats::parquet_with_filters(bytes.clone(), &new).with_context(name)?;
    let existing = present::check(&args.output, args.force, Written::Parquet)?;
    foreign::write_with(&args.output, existing, |file| {
        bytes.slice(0..added.data_end).write_to(file)?;
        file.write_all(&added.bytes)
    })?;
    summarise(
        &args.output,
        &made,
        bytes.len(),
        added.data_end + added.bytes.len(),
    );
    Ok(Exit::Done)
}

/// The filters of a column, one for each row group.
fn filters(file: &File, column: &str, rate: f64) -> Result<Vec<Made>> {
    let values = Values::open(file.try_clone()?, column).map_err(told)?;
    let make = |row_group| {
        let filter = filter_of(&values, row_group, rate)?;
        Ok(Made {
            row_group,
            column: values.column.path.clone(),
            filter,
        })
    };
    (0..values.row_groups()).map(make).collect()
}

fn told(failure: Failure) -> anyhow::Error {
    match failure {
        Failure::NoColumn(what) => anyhow!(what),
        Failure::Read(cause) => cause.into(),
    }
}

fn filter_of(values: &Values, row_group: usize, rate: f64) -> Result<Vec<u8>> {
    let mut keys = distinct(values, row_group)?;
    loop {
        let mut filter = tamis_formats::create(Create::Parquet, keys, rate)?;
        let mut failure = None;
        let each = |value: &[u8]| {
            failure = filter.insert(value).err().or(failure.take());
        };
        values.each(row_group, each).map_err(told)?;
        if let Some(failure) = failure {
            return Err(failure.into());
        }
        // The usual formula assumes that all blocks are equally full; we measure how full they really are.
        if filter.rate_now() <= rate || is_largest(&filter) {
            return Ok(filter.to_bytes());
        }
        keys *= 2;
    }
}

/// Readers refuse filters larger than 128 MiB.
fn is_largest(filter: &Foreign<'_>) -> bool {
    let is_largest = filter.bits() >= 8 * (128 << 20);
    if is_largest {
        output::warn(format_args!(
            "the filter has reached the largest allowed size, 128 MiB, and has a rate of {}",
            human::rate(filter.rate_now())
        ));
    }
    is_largest
}

/// How many distinct values a row group has.
fn distinct(values: &Values, row_group: usize) -> Result<u64> {
    /// How many hashes to deduplicate at once.
    const MANY: usize = 1 << 20;
    let hasher = Hasher::default();
    let mut hashes = Vec::new();
    let mut limit = MANY;
    let sort_out = |hashes: &mut Vec<_>| {
        hashes.sort_unstable();
        hashes.dedup();
    };
    let each = |value: &[u8]| {
        hashes.push(hasher.hash(value));
        if hashes.len() >= limit {
            sort_out(&mut hashes);
            limit = MANY.max(2 * hashes.len());
        }
    };
    values.each(row_group, each).map_err(told)?;
    sort_out(&mut hashes);
    Ok(hashes.len() as u64)
}

fn summarise(path: &Path, made: &[Made], before: usize, after: usize) {
    let bytes: usize = made.iter().map(|made| made.filter.len()).sum();
    say!(
        "{}: {}, {} of {} (it was {})",
        path.display(),
        human::counted(made.len() as u64, "filter"),
        human::size(bytes as u64),
        human::size(after as u64),
        human::size(before as u64),
    );
}
