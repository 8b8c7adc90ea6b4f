//! What `tamis info` says of filters of other systems.

use super::{ForeignArgs, Opened, columns};
use crate::{human, output};
use anyhow::Result;
use serde_json::json;
use std::fmt::Write as _;
use std::path::Path;
use tamis_formats::{Foreign, Format, Keys};

/// How a filter stands: what the file says and what follows from its bits.
struct Standing<'f> {
    filter: &'f Foreign<'static>,
    fill: f64,
    rate_now: f64,
    estimated: Option<f64>,
}

impl<'f> Standing<'f> {
    fn of(filter: &'f Foreign<'static>) -> Self {
        Self {
            filter,
            fill: filter.fill(),
            rate_now: filter.rate_now(),
            estimated: filter.keys_now(),
        }
    }

    /// What the file leaves open.
    fn not_said(&self) -> Vec<&'static str> {
        let facts = self.filter.facts();
        [
            ("capacity", facts.capacity.is_none()),
            ("rate", facts.rate.is_none()),
            ("keys", facts.keys.is_none()),
            ("key_encoding", self.filter.keys().len() > 1),
        ]
        .into_iter()
        .filter_map(|(what, open)| open.then_some(what))
        .collect()
    }

    fn to_json(&self, opened: &Opened) -> serde_json::Value {
        let facts = self.filter.facts();
        let names: Vec<&str> = self.filter.keys().iter().map(|keys| keys.name()).collect();
        json!({
            "format": self.filter.format().name(),
            "name": opened.name,
            "gzipped": self.filter.is_gzipped(),
            "bits": self.filter.bits(),
            "hashes": self.filter.hashes(),
            "key_encodings": names,
            "capacity": facts.capacity,
            "rate": facts.rate,
            "keys": facts.keys,
            "keys_estimated": self.estimated.map(|keys| keys.round() as u64),
            "fill": self.fill,
            "rate_now": self.rate_now,
            "data_bytes": facts.data,
            "not_said": self.not_said(),
        })
    }

    fn describe(&self, opened: &Opened, size: u64) -> String {
        let filter = self.filter;
        let facts = filter.facts();
        let not_said = || "the file does not say".to_owned();
        let estimated = match self.estimated {
            Some(keys) => format!("about {} (estimated)", human::count(keys.round() as u64)),
            None => "unknown: every bit is set".into(),
        };
        let keys = match facts.keys {
            Some(keys) => format!("{} (the file's count), {estimated}", human::count(keys)),
            None => estimated,
        };
        let packed = if filter.is_gzipped() { ", gzipped" } else { "" };
        let mut out = String::new();
        let mut line = |name: &str, value: String| {
            // Writing to a String can't fail.
            let _ = writeln!(out, "{name:<14} {value}");
        };
        line("format", filter.format().to_string());
        if let Some(name) = &opened.name {
            line("name", name.clone());
        }
        line("size", format!("{}{packed}", human::size(size)));
        line("shape", shape(filter));
        line("keys are", key_names(filter));
        line(
            "capacity",
            facts
                .capacity
                .map_or_else(not_said, |keys| human::counted(keys, "key")),
        );
        line("keys", keys);
        line(
            "rate promised",
            facts.rate.map_or_else(not_said, human::rate),
        );
        line(
            "rate now",
            format!("{} (computed)", human::rate(self.rate_now)),
        );
        line("fill", format!("{:.1} % (computed)", self.fill * 100.0));
        if facts.data > 0 {
            line(
                "data",
                format!(
                    "{} behind the filter",
                    human::counted(facts.data as u64, "byte")
                ),
            );
        }
        out
    }
}

fn shape(filter: &Foreign<'_>) -> String {
    let bits = human::counted(filter.bits(), "bit");
    match filter.hashes() {
        Some(hashes) => format!("{bits}, {}", human::counted(hashes, "hash")),
        None if filter.format() == Format::RedisCuckoo => {
            format!("{} of 8 bits", human::counted(filter.bits() / 8, "slot"))
        }
        None => bits,
    }
}

fn key_names(filter: &Foreign<'_>) -> String {
    match filter.keys() {
        [only] => only.to_string(),
        choices => {
            let names: Vec<&str> = choices.iter().copied().map(Keys::name).collect();
            format!(
                "one of {}: the file does not say which (--keys)",
                names.join(", ")
            )
        }
    }
}

/// Prints what is known of the filters of a file, if it is another system's.
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
            .map(|(one, standing)| standing.to_json(one))
            .collect();
        let mut answer = match &all[..] {
            [_] => all.remove(0),
            _ => json!({ "format": all[0]["format"], "filters": all }),
        };
        answer["bytes"] = opened.first().map_or(0, size).into();
        return output::print(&format!("{answer:#}\n"));
    }
    let texts: Vec<_> = standings
        .map(|(one, standing)| standing.describe(one, size(one)))
        .collect();
    output::print(&texts.join("\n"))
}

/// What is known of a filter, for programs.
#[cfg(feature = "serve")]
pub(crate) fn to_json(opened: &Opened) -> serde_json::Value {
    Standing::of(&opened.filter).to_json(opened)
}

/// Says when a filter holds more than it was made for.
pub(crate) fn warn_if_over(opened: &Opened) {
    let facts = opened.filter.facts();
    let keys = facts
        .keys
        .or_else(|| Some(opened.filter.keys_now()?.round() as u64));
    if let (Some(keys), Some(capacity), Some(rate)) = (keys, facts.capacity, facts.rate)
        && keys > capacity
        && opened.filter.rate_now() > rate
    {
        output::warn(format_args!(
            "the filter holds {} but was made for {}: the rate is now {} instead of {}\n\
             hint: build a larger filter from the keys",
            human::counted(keys, "key"),
            human::count(capacity),
            human::rate(opened.filter.rate_now()),
            human::rate(rate),
        ));
    }
}
