//! The output of `tamis info` for other systems' filters.

use super::{ForeignArgs, Opened, columns};
use crate::output;
use anyhow::Result;
use serde_json::json;
use std::path::Path;
use tamis_report::foreign::{Standing, overfull};

/// Prints facts about the filters in a file, if it is another system's.
pub(crate) fn info(path: &Path, args: &ForeignArgs, as_json: bool) -> Result<bool> {
    if let Some(bytes) = args.parquet_file(path)? {
        columns::info(path, &bytes, as_json)?;
        return Ok(true);
    }
    let Some(opened) = args.open_all(path)? else {
        return Ok(false);
    };
    print(&opened, as_json)?;
    opened.iter().for_each(warn_if_over);
    Ok(true)
}

fn print(opened: &[Opened], as_json: bool) -> Result<()> {
    let size = |opened: &Opened| std::fs::metadata(&opened.path).map_or(0, |file| file.len());
    let standings = opened.iter().map(|one| (one, Standing::of(&one.filter)));
    if as_json {
        let mut all: Vec<_> = standings
            .map(|(one, standing)| standing.to_json(one.name.as_deref()))
            .collect();
        let mut answer = match &all[..] {
            [_] => all.remove(0),
            _ => json!({ "format": all[0]["format"], "filters": all }),
        };
        answer["bytes"] = opened.first().map_or(0, size).into();
        return output::print(&format!("{answer:#}\n"));
    }
    let texts: Vec<_> = standings
        .map(|(one, standing)| standing.describe(one.name.as_deref(), size(one)))
        .collect();
    output::print(&texts.join("\n"))
}

/// Warns of a filter with more keys than its capacity.
pub(crate) fn warn_if_over(opened: &Opened) {
    overfull(&opened.filter).iter().for_each(output::warn);
}
