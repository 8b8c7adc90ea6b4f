//! The filters of a Parquet file's columns, by row group.

use super::named;
use crate::{human, output};
use anyhow::Result;
use serde_json::json;
use std::path::Path;
use tamis_formats::{Bytes, Foreign, Format, ParquetChunk};

const HEADINGS: [&str; 7] = [
    "group",
    "column",
    "values are",
    "filter",
    "keys",
    "rate now",
    "fill",
];

/// Lists every column of every row group, with its filter.
pub(super) fn info(path: &Path, bytes: &Bytes<'_>, as_json: bool) -> Result<()> {
    let chunks = tamis_formats::parquet_chunks(bytes.clone()).map_err(named(path))?;
    let filter = |chunk: &ParquetChunk| -> Result<Option<Foreign<'_>>> {
        let bytes = chunk.filter.clone().map(|range| bytes.slice(range));
        let opened = bytes.map(|bytes| tamis_formats::open(bytes, Format::Parquet));
        opened.transpose().map_err(named(path))
    };
    let groups = chunks
        .iter()
        .map(|chunk| chunk.row_group + 1)
        .max()
        .unwrap_or(0);
    let filtered = chunks.iter().filter(|chunk| chunk.filter.is_some()).count();
    if as_json {
        let mut listed = Vec::new();
        for chunk in &chunks {
            let filter = filter(chunk)?;
            listed.push(json!({
                "row_group": chunk.row_group,
                "column": chunk.column,
                "key_encoding": chunk.keys.map(|keys| keys.name()),
                "filter_bytes": chunk.filter.as_ref().map(ExactSizeIterator::len),
                "fill": filter.as_ref().map(Foreign::fill),
                "rate_now": filter.as_ref().map(Foreign::rate_now),
                "keys_estimated": filter.as_ref()
                    .and_then(Foreign::keys_now)
                    .map(|keys| keys.round() as u64),
            }));
        }
        let answer = json!({
            "format": "parquet",
            "bytes": bytes.len(),
            "row_groups": groups,
            "filters": filtered,
            "columns": listed,
        });
        return output::print(&format!("{answer:#}\n"));
    }
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    for chunk in &chunks {
        let mut row: [String; 7] = Default::default();
        row[0] = chunk.row_group.to_string();
        row[1].clone_from(&chunk.column);
        row[2] = chunk.keys.map_or("-".into(), |keys| keys.to_string());
        match filter(chunk)? {
            None => row[3] = "none".into(),
            Some(filter) => {
                let size = chunk.filter.as_ref().map_or(0, ExactSizeIterator::len);
                row[3] = human::size(size as u64);
                row[4] = filter.keys_now().map_or("-".into(), |keys| {
                    format!("about {}", human::count(keys.round() as u64))
                });
                row[5] = human::rate(filter.rate_now());
                row[6] = format!("{:.1} %", filter.fill() * 100.0);
            }
        }
        rows.push(row);
    }
    let mut out = format!(
        "{:<14} parquet\n{:<14} {}\n{:<14} {}\n{:<14} {} of {}\n\n",
        "format",
        "size",
        human::size(bytes.len() as u64),
        "row groups",
        human::count(groups as u64),
        "filters",
        human::count(filtered as u64),
        human::counted(chunks.len() as u64, "column chunk"),
    );
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: [usize; 7] = std::array::from_fn(|column| width(column).unwrap_or(0));
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            line += &format!("{cell:<width$}  ");
        }
        out += &format!("{}\n", line.trim_end());
    }
    output::print(&out)
}
