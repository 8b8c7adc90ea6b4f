//! What `tamis info` and `tamis verify` say of an index.

use super::{Index, State};
use crate::location::named;
use crate::{Exit, human, output};
use anyhow::Result;
use serde_json::json;
use std::fmt::Write as _;
use std::path::Path;

pub(crate) fn info(path: &Path, as_json: bool) -> Result<Exit> {
    let index = Index::open(path)?;
    let survey = index.survey(None);
    let states: Vec<_> = survey
        .files
        .iter()
        .map(|file| (file, index.state(file)))
        .collect();
    let count = |name| {
        states
            .iter()
            .filter(|(_, state)| state.name() == name)
            .count()
    };
    for (path, cause) in &survey.unlisted {
        say!("tamis: {}: {cause}", path.display());
    }
    let exit = match survey.unlisted.is_empty() {
        true => Exit::Done,
        false => Exit::InputFailed,
    };
    let info = index.file.info();
    let files = index.files().count();
    let keys: u64 = info.keys.iter().sum();
    if as_json {
        let specs = index.specs.iter().zip(&info.keys);
        let specs: Vec<_> = specs
            .map(|(spec, keys)| json!({ "key": spec.to_string(), "keys": keys }))
            .collect();
        let changed = states.iter().filter(|(_, state)| *state != State::Fresh);
        let changed: Vec<_> = changed
            .map(|(file, state)| json!({ "file": file.shown.to_string_lossy(), "state": state.name() }))
            .collect();
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let answer = json!({
            "kind": "index",
            "files": files,
            "specs": specs,
            "keys": keys,
            "rate": index.file.rate(),
            "bytes": info.bytes(),
            "filter_bytes": info.filter_bytes,
            "name_bytes": info.name_bytes,
            "folder": text(&index.roots.folder),
            "roots": index.roots.paths.iter().map(|path| text(path)).collect::<Vec<_>>(),
            "fresh": count("fresh"),
            "stale": count("stale"),
            "new": count("new"),
            "gone": count("gone"),
            "unread": count("unread"),
            "damaged": count("damaged"),
            "not_fresh": changed,
        });
        output::print(&format!("{answer:#}\n"))?;
        return Ok(exit);
    }
    let roots: Vec<_> = index
        .roots
        .paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
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
    line(
        "files",
        format!("{}, of {}", human::count(files as u64), roots.join(" ")),
    );
    line("folder", index.roots.folder.display().to_string());
    for (spec, keys) in index.specs.iter().zip(&info.keys) {
        line("keys", format!("{} of {spec}", human::count(*keys)));
    }
    line("rate promised", human::rate(index.file.rate()));
    for (state, meaning) in [
        ("stale", "changed since they were indexed"),
        ("new", "not in the index yet"),
        ("unread", "could not be indexed"),
        ("damaged", "damaged in the index"),
        ("gone", "gone since they were indexed"),
    ] {
        if count(state) > 0 {
            line(
                state,
                format!("{} {meaning}", human::count(count(state) as u64)),
            );
        }
    }
    output::print(&out)?;
    let changed = states
        .iter()
        .filter_map(|(file, state)| Some((file, state.remark()?)));
    for (file, remark) in changed.take(20) {
        output::warn(format_args!("{}: {remark}", file.shown.display()));
    }
    if count("stale") + count("new") + count("gone") + count("damaged") > 0 {
        say!(
            "hint: `tamis index -o {}` updates the index",
            path.display()
        );
    }
    Ok(exit)
}

pub(crate) fn verify(path: &Path) -> Result<Exit> {
    let index = Index::open(path)?;
    index.file.verify().map_err(named(path))?;
    output::print("header, directory and filter checksums: valid\n")?;
    Ok(Exit::Done)
}
