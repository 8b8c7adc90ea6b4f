//! What `tamis info` and `tamis verify` say of an index.

use super::{Freshness, Index, Surveyed};
use crate::location::named;
use crate::{Exit, human, output};
use anyhow::Result;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;

/// The states of files that call for an update, or would if they could.
const STATES: [(&str, &str); 5] = [
    ("stale", "changed since they were indexed"),
    ("new", "not in the index yet"),
    ("unread", "could not be indexed"),
    ("damaged", "damaged in the index"),
    ("gone", "gone since they were indexed"),
];

/// An index, and what has become of its files.
struct Facts<'a> {
    index: &'a Index,
    states: Vec<(&'a Surveyed, Freshness)>,
}

pub(crate) fn info(path: &Path, as_json: bool) -> Result<Exit> {
    let index = Index::open(path)?;
    let survey = index.survey(None);
    let states = survey.files.iter().map(|file| (file, index.state(file)));
    let facts = Facts {
        index: &index,
        states: states.collect(),
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
        if ["stale", "new", "gone", "damaged"].map(|state| facts.count(state)) != [0; 4] {
            say!(
                "hint: `tamis index -o {}` updates the index",
                path.display()
            );
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
        let states = self.states.iter();
        states.filter(|(_, state)| state.name() == name).count()
    }

    fn json(&self) -> Value {
        let (index, info) = (self.index, self.index.file.info());
        let specs = index.specs.iter().zip(&info.keys);
        let specs = specs.map(|(spec, keys)| json!({ "key": spec.to_string(), "keys": keys }));
        let changed = self.states.iter();
        let changed = changed.filter(|(_, state)| *state != Freshness::Fresh).map(
            |(file, state)| json!({ "file": file.shown.to_string_lossy(), "state": state.name() }),
        );
        let roots = index.roots.paths.iter().map(|path| path.to_string_lossy());
        let mut all = json!({
            "kind": "index",
            "files": index.files().count(),
            "specs": specs.collect::<Vec<_>>(),
            "keys": info.keys.iter().sum::<u64>(),
            "rate": index.file.rate(),
            "bytes": info.bytes(),
            "filter_bytes": info.filter_bytes,
            "name_bytes": info.name_bytes,
            "folder": index.roots.folder.to_string_lossy(),
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
        let (index, info) = (self.index, self.index.file.info());
        let keys: u64 = info.keys.iter().sum();
        let roots = index
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
                human::size(info.bytes()),
                human::size(info.filter_bytes),
                info.filter_bytes as f64 * 8.0 / keys.max(1) as f64
            ),
        );
        let files = human::count(index.files().count() as u64);
        let roots = roots.collect::<Vec<_>>().join(" ");
        line("files", format!("{files}, of {roots}"));
        line("folder", index.roots.folder.display().to_string());
        for (spec, keys) in index.specs.iter().zip(&info.keys) {
            line("keys", format!("{} of {spec}", human::count(*keys)));
        }
        line("rate promised", human::rate(index.file.rate()));
        for (state, meaning) in STATES {
            let count = self.count(state) as u64;
            if count > 0 {
                line(state, format!("{} {meaning}", human::count(count)));
            }
        }
        out
    }
}

pub(crate) fn verify(path: &Path) -> Result<Exit> {
    let index = Index::open(path)?;
    index.file.verify().map_err(named(path))?;
    output::print("header, directory and filter checksums: valid\n")?;
    Ok(Exit::Done)
}
