//! Queries Parquet files' own filters instead of an index: which files may hold a value, without building anything.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use tamis_formats::{Bytes, Foreign, Format};
use tamis_records::input::InputError;
use tamis_records::key::KeySpec;
use tamis_records::key::parquet::plain::PlainColumn;
use tamis_records::key::parquet::{Failure, Table};
use tamis_records::progress::Progress;
use tamis_records::scan::{Opened, Way};

/// The row groups of a file that may hold a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) groups: Vec<usize>,
    /// The number of row groups.
    pub(crate) of: usize,
}

/// The result of querying a file's filters.
pub(crate) enum Asked {
    /// The file certainly has no such column: it isn't Parquet, or has other columns.
    NoColumn,
    /// One answer per key, and why some row groups may hold any key.
    Answers(Vec<Answer>, Option<&'static str>),
    /// The file may hold anything, because it could not be read.
    Unread(String),
}

/// Queries a file's filters for keys, each with as many values as the spec has columns. Only a "no" from every row
/// group excludes the file: anything unreadable may hold the key.
pub(crate) fn ask(path: &Path, spec: &KeySpec, keys: &[Vec<Vec<u8>>]) -> Asked {
    let failed = |error: InputError| {
        if !error.is_no_column() {
            Asked::Unread(error.cause.to_string())
        } else if is_called_parquet(path) {
            // Named like a Parquet file, so it may have been one.
            Asked::Unread("it does not begin as a Parquet file does".into())
        } else {
            Asked::NoColumn
        }
    };
    let opened = match Opened::open(path, &Arc::<Progress>::default()) {
        Err(error) => return failed(error),
        Ok(opened) => opened,
    };
    let names = match opened.way(spec) {
        Err(error) => return failed(error),
        Ok(Way::Text) => return Asked::NoColumn,
        Ok(Way::Parquet(names)) => names,
    };
    // The decoder may panic on a damaged file, which must not end the run.
    match catch_unwind(AssertUnwindSafe(|| {
        ask_table(opened.into_file(), names, keys)
    })) {
        Ok(Ok(asked)) => asked,
        Ok(Err(Failure::NoColumn(_))) => Asked::NoColumn,
        Ok(Err(Failure::Read(cause))) => Asked::Unread(cause.to_string()),
        Err(_) => Asked::Unread("the Parquet data is damaged".into()),
    }
}

fn is_called_parquet(path: &Path) -> bool {
    let end = path.extension().and_then(|end| end.to_str());
    end.is_some_and(|end| ["parquet", "parq", "pq"].contains(&end))
}

/// For each key and each of its values, the byte strings that a filter may have hashed.
type Encoded = Vec<Vec<Option<Vec<Vec<u8>>>>>;

fn ask_table(file: File, names: &[String], keys: &[Vec<Vec<u8>>]) -> Result<Asked, Failure> {
    let table = Table::open(file.try_clone().map_err(Failure::Read)?)?;
    let columns = names.iter().map(|name| table.plain(name));
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let bytes = Bytes::map(&file).map_err(Failure::Read)?;
    let chunks = match tamis_formats::parquet_chunks(bytes.clone()) {
        Ok(chunks) => chunks,
        Err(error) => return Ok(Asked::Unread(error.to_string())),
    };
    let groups = chunks.iter().map(|chunk| chunk.row_group + 1);
    let of = groups.max().unwrap_or(0);
    let answer = Answer {
        groups: Vec::new(),
        of,
    };
    let mut answers = vec![answer; keys.len()];
    let encode = |values: &Vec<Vec<u8>>| {
        let values = columns.iter().zip(values);
        values
            .map(|(column, text)| column.encodings(text))
            .collect()
    };
    let encoded: Encoded = keys.iter().map(encode).collect();
    let mut why = None;
    if encoded.iter().flatten().any(Option::is_none) {
        why = Some("what is asked for can't be told apart by a filter of such a column");
    }
    for group in 0..of {
        let of_group = chunks.iter().filter(|chunk| chunk.row_group == group);
        let of_group: Vec<_> = of_group.collect();
        let open = |column: &PlainColumn| {
            let chunk = of_group.get(column.number)?;
            let place = chunk.filter.clone();
            let place = place.filter(|_| chunk.column == column.path)?;
            tamis_formats::open(bytes.slice(place), Format::Parquet).ok()
        };
        let filters: Vec<Option<Foreign<'_>>> = columns.iter().map(open).collect();
        if filters.iter().any(Option::is_none) {
            why = Some("not every row group has a filter");
        }
        for (values, answer) in encoded.iter().zip(&mut answers) {
            let may_hold = filters.iter().zip(values).all(|pair| match pair {
                (Some(filter), Some(values)) => values.iter().any(|value| filter.contains(value)),
                _ => true,
            });
            if may_hold {
                answer.groups.push(group);
            }
        }
    }
    Ok(Asked::Answers(answers, why))
}
