//! The filters and indexes in a folder.

use super::{columns, one_line};
use crate::about::{self, About};
use crate::index::parts::part_number;
use crate::location::{KeyFile, is_index};
use crate::present::{self, Found};
use crate::{Exit, human, output};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// What is known of a file.
enum Listed {
    Filter(Box<About>),
    Index,
    /// Why a filter can't be opened.
    Unread(String),
}

/// Prints the filters and indexes in a folder, sorted by name.
pub(super) fn list(folder: &Path, as_json: bool, key: &KeyFile) -> Result<Exit> {
    let reading = || format!("reading {}", folder.display());
    if !folder.exists() {
        let name = folder.display();
        bail!("{name}: no such folder\nhint: servers are named with their scheme: redis://{name}");
    }
    let entries = fs::read_dir(folder).with_context(reading)?;
    let entries: std::io::Result<Vec<_>> = entries.collect();
    let mut paths: Vec<PathBuf> = entries
        .with_context(reading)?
        .iter()
        .map(fs::DirEntry::path)
        .collect();
    paths.sort();
    let mut listed = Vec::new();
    for path in paths {
        let found = match present::describe(&path) {
            Some((Found::Filter, _)) => {
                let opened = key.open()?.open(&path);
                match opened {
                    Ok(filter) => Listed::Filter(Box::new(About::in_file(&path, &filter))),
                    Err(error) => Listed::Unread(error.to_string()),
                }
            }
            Some((Found::Index, _)) if !is_part(&path) => Listed::Index,
            _ => continue,
        };
        let size = fs::metadata(&path).map_or(0, |file| file.len());
        listed.push((path, size, found));
    }
    if as_json {
        let files: Vec<Value> = listed
            .iter()
            .map(|(path, size, it)| to_json(path, *size, it))
            .collect();
        output::print(&format!("{:#}\n", json!({ "files": files })))?;
    } else {
        output::print(&table(&listed))?;
        if listed.is_empty() {
            say!("tamis: {}: no filters or indexes in it", folder.display());
        }
    }
    let mut is_whole = true;
    for (path, _, found) in &listed {
        match found {
            Listed::Unread(why) => {
                is_whole = false;
                output::warn(format_args!("{}: {why}", path.display()));
            }
            Listed::Filter(about) => about.overfull().iter().for_each(|text| {
                output::warn(format_args!("{}: {text}", path.display()));
            }),
            Listed::Index => {}
        }
    }
    Ok(if listed.is_empty() || !is_whole {
        Exit::NoneFound
    } else {
        Exit::Done
    })
}

/// Whether a file is part of an index, whose name it begins with.
fn is_part(path: &Path) -> bool {
    let index = path.with_extension("");
    part_number(&index, path).is_some() && is_index(&index)
}

fn name(path: &Path) -> String {
    one_line(&path.file_name().unwrap_or_default().to_string_lossy())
}

fn to_json(path: &Path, size: u64, found: &Listed) -> Value {
    let (kind, reason, filter) = match found {
        Listed::Filter(about) => ("filter", None, Some(about::to_json(about))),
        Listed::Index => ("index", None, None),
        Listed::Unread(why) => ("filter", Some(why), None),
    };
    json!({
        "name": name(path),
        "is": kind,
        "file_bytes": size,
        "reason": reason,
        "filter": filter,
    })
}

/// One line per file.
fn table(listed: &[(PathBuf, u64, Listed)]) -> String {
    let head = ["NAME", "KIND", "KEYS", "MADE FOR", "SIZE", "RATE NOW"];
    let mut rows = vec![head.map(String::from).to_vec()];
    for (path, size, found) in listed {
        let facts = match found {
            Listed::Filter(about) => {
                let facts = about::to_json(about);
                let number = |field: &str| match facts[field].as_u64() {
                    Some(number) => human::count(number),
                    None => "-".into(),
                };
                [
                    facts["kind"].as_str().unwrap_or("-").to_owned(),
                    number("keys"),
                    number("capacity"),
                    human::rate(about.rate_now),
                ]
            }
            Listed::Index => ["index", "-", "-", "-"].map(String::from),
            Listed::Unread(_) => ["unreadable", "-", "-", "-"].map(String::from),
        };
        let [kind, keys, capacity, rate] = facts;
        rows.push(vec![
            name(path),
            kind,
            keys,
            capacity,
            human::size(*size),
            rate,
        ]);
    }
    if listed.is_empty() {
        return String::new();
    }
    columns(&rows, 2..=5)
}
