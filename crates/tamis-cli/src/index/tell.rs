//! The output of `tamis info` and `tamis verify` for an index.

use super::parts::DAMAGED;
use super::survey::{Freshness, Survey, Surveyed};
use super::{Index, path_bytes};
use crate::location::named;
use crate::{Exit, human, output};
use anyhow::{Result, bail};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;
use tamis_records::grep::json_text;

/// The states of files that an update would fix, or at least retry.
const STATES: [(&str, &str); 6] = [
    ("grown", "have grown since they were indexed"),
    ("stale", "changed since they were indexed"),
    ("new", "not in the index yet"),
    ("unread", "could not be indexed"),
    ("damaged", "damaged in the index"),
    ("gone", "gone since they were indexed"),
];

/// An index and the state of its files.
struct Facts<'a> {
    index: &'a Index,
    states: Vec<(&'a Surveyed, Freshness)>,
    gone: usize,
}

pub(crate) fn info(path: &Path, as_json: bool) -> Result<Exit> {
    let index = Index::open(path, &[])?;
    let survey = Survey::of(&index)?;
    let states = survey
        .files
        .iter()
        .map(|file| (file, index.state(file, None)));
    let facts = Facts {
        index: &index,
        states: states.collect(),
        gone: survey.gone.len(),
    };
    for (path, cause) in &survey.unlisted {
        say!("tamis: {}: {cause}", path.display());
    }
    if as_json {
        output::print(&format!("{:#}\n", facts.json()))?;
    } else {
        output::print(&facts.text())?;
        let remarks = facts.states.iter();
        let remarks = remarks.filter_map(|(file, state)| Some((file, state.remark()?)));
        for (file, remark) in remarks.take(20) {
            output::warn(format_args!("{}: {remark}", file.shown.display()));
        }
        let calls_for_update = ["grown", "stale", "new", "gone", "damaged"];
        if calls_for_update.iter().any(|state| facts.count(state) > 0) {
            say!("hint: `tamis index {}` updates the index", path.display());
        }
    }
    Ok(if survey.unlisted.is_empty() {
        Exit::Done
    } else {
        Exit::InputFailed
    })
}

impl Facts<'_> {
    fn count(&self, name: &str) -> usize {
        if name == "gone" {
            return self.gone;
        }
        let states = self.states.iter();
        states.filter(|(_, state)| state.name() == name).count()
    }

    fn json(&self) -> Value {
        let (index, info) = (self.index, self.size());
        let specs = index.specs.iter().zip(&info.keys);
        let specs = specs.map(|(spec, keys)| json!({ "key": spec.to_string(), "keys": keys }));
        let changed = self.states.iter();
        let changed = changed.filter(|(_, state)| *state != Freshness::Fresh).map(
            |(file, state)| json!({ "file": json_text(&path_bytes(&file.shown)), "state": state.name() }),
        );
        let table = &index.table;
        let roots = table.roots.paths.iter();
        let roots = roots.map(|path| json_text(&path_bytes(path)));
        let mut all = json!({
            "kind": "index",
            "files": table.files.len(),
            "segments": info.segments,
            "text_bytes": info.text_bytes,
            "parts": 1 + table.parts.len(),
            "specs": specs.collect::<Vec<_>>(),
            "keys": info.keys.iter().sum::<u64>(),
            "rate": index.parts.index.rate(),
            "bytes": info.bytes,
            "filter_bytes": info.filter_bytes,
            "name_bytes": info.name_bytes,
            "folder": json_text(&path_bytes(&table.roots.folder)),
            "roots": roots.collect::<Vec<_>>(),
            "fresh": self.count("fresh"),
            "not_fresh": changed.collect::<Vec<_>>(),
        });
        for (state, _) in STATES {
            all[state] = self.count(state).into();
        }
        all
    }

    fn text(&self) -> String {
        let (index, info) = (self.index, self.size());
        let keys: u64 = info.keys.iter().sum();
        let roots = index
            .table
            .roots
            .paths
            .iter()
            .map(|path| path.display().to_string());
        let mut out = String::new();
        let mut line = |name: &str, value: String| {
            // Writing to a String can't fail.
            let _ = writeln!(out, "{name:<14} {value}");
        };
        line("kind", "index".into());
        line(
            "size",
            format!(
                "{} ({} of it filters, {:.2} bits a key)",
                human::size(info.bytes),
                human::size(info.filter_bytes),
                info.filter_bytes as f64 * 8.0 / keys.max(1) as f64
            ),
        );
        let files = human::count(index.table.files.len() as u64);
        let roots = roots.collect::<Vec<_>>().join(" ");
        line("files", format!("{files}, of {roots}"));
        line("folder", index.table.roots.folder.display().to_string());
        let (segments, text) = (
            human::count(info.segments as u64),
            human::size(info.text_bytes),
        );
        line("segments", format!("{segments}, of {text} of text"));
        if !index.table.parts.is_empty() {
            line("parts", human::count(1 + index.table.parts.len() as u64));
        }
        for (spec, keys) in index.specs.iter().zip(&info.keys) {
            line("keys", format!("{} of {spec}", human::count(*keys)));
        }
        line("rate promised", human::rate(index.parts.index.rate()));
        for (state, meaning) in STATES {
            let count = self.count(state) as u64;
            if count > 0 {
                line(state, format!("{} {meaning}", human::count(count)));
            }
        }
        out
    }
}

/// The total size of an index, over all its parts.
struct Size {
    keys: Vec<u64>,
    bytes: u64,
    filter_bytes: u64,
    name_bytes: u64,
    segments: usize,
    text_bytes: u64,
}

impl Facts<'_> {
    fn size(&self) -> Size {
        let files = &self.index.table.files;
        let mut size = Size {
            keys: vec![0; self.index.specs.len()],
            bytes: 0,
            filter_bytes: 0,
            name_bytes: 0,
            segments: files.iter().map(|known| known.segments.len()).sum(),
            text_bytes: files.iter().map(|known| known.text_bytes()).sum(),
        };
        for info in self.index.parts.all().flatten().map(|part| part.info()) {
            size.keys
                .iter_mut()
                .zip(&info.keys)
                .for_each(|(sum, keys)| *sum += keys);
            size.bytes += info.bytes();
            size.filter_bytes += info.filter_bytes;
            size.name_bytes += info.name_bytes;
        }
        size
    }
}

pub(crate) fn verify(path: &Path) -> Result<Exit> {
    let index = Index::open(path, &[])?;
    for part in index.parts.all() {
        let Some(part) = part else {
            bail!(
                "{}: a part of it is missing or damaged\nhint: `tamis index {} --verify` reads the files again",
                path.display(),
                path.display()
            );
        };
        part.verify().map_err(named(path))?;
        if part
            .entries()
            .any(|entry| entry.unindexed() == Some(DAMAGED))
        {
            bail!(
                "{}: {DAMAGED}\nhint: `tamis index {}` reads the files again",
                path.display(),
                path.display()
            );
        }
    }
    output::print("header, directory and filter checksums: valid\n")?;
    Ok(Exit::Done)
}
