mod folder;
mod metrics;

use crate::location::{KeyFile, parse_servers, redis_options};
use crate::{Exit, human, output};
use anyhow::{Context, Result, bail};
use clap::builder::{OsStringValueParser, TypedValueParser};
use serde_json::json;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;
use tamis_redis::{Condition, Found, Location, Orphan, Servers, Survey};
use tamis_report::redis::{nodes_json, shares_json};

/// List the filters in a folder, or on Redis servers with orphaned parts
///
/// In a folder, reads every filter to say how full it is; indexes are named, too.
///
/// On servers, scans all keys of the database and counts the bits of every filter, a
/// few milliseconds at a time. The numbers of keys are estimates. Orphans are parts
/// of deleted filters; `tamis drop --orphans` deletes them.
///
/// A server that can't be asked and a filter that can't be read are reported, and the
/// exit code is 1; the rest is listed.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  tamis list .
  tamis list redis://10.0.0.7
  tamis list redis://10.0.0.7/2                               database 2
  tamis list redis+cluster://10.0.0.7:6379,10.0.0.8:6379
  tamis list redis+sentinel://10.0.0.7:26379/main
  tamis list --json redis+unix:///run/redis.sock
  tamis list --metrics redis://10.0.0.7 > /var/lib/node_exporter/tamis.prom")]
pub(crate) struct Args {
    /// The folder, or the servers: redis://HOST:PORT[/DB]
    #[arg(value_name = "FOLDER|SERVERS", value_parser = OsStringValueParser::new().try_map(parse_where))]
    place: Where,

    /// Print JSON, for programs
    #[arg(long)]
    json: bool,

    /// Print metrics as Prometheus reads them, e.g. by its node exporter
    #[arg(long, conflicts_with = "json")]
    metrics: bool,

    #[command(flatten)]
    key: KeyFile,
}

/// What to list.
#[derive(Clone, Debug)]
enum Where {
    Folder(PathBuf),
    Servers(Box<Servers>),
}

fn parse_where(text: OsString) -> Result<Where> {
    match text.to_str() {
        Some(text) if text.contains("://") || Location::looks_like(text) => {
            Ok(Where::Servers(Box::new(parse_servers(text)?)))
        }
        _ => Ok(Where::Folder(text.into())),
    }
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    let servers = match &args.place {
        Where::Folder(_) if args.metrics => bail!("--metrics is for servers"),
        Where::Folder(folder) => return folder::list(folder, args.json, &args.key),
        Where::Servers(servers) => servers,
    };
    let options = redis_options()?;
    let survey = Survey::of(servers, &options).with_context(|| servers.to_string())?;
    match (args.json, args.metrics) {
        (true, _) => output::print(&format!("{:#}\n", to_json(&survey)))?,
        (_, true) => output::print(&metrics::page(&survey))?,
        _ => {
            output::print(&table(&survey.filters))?;
            tell(&survey);
        }
    }
    if !survey.is_whole() && (args.json || args.metrics) {
        tell_what_is_broken(&survey);
    }
    Ok(if survey.filters.is_empty() || !survey.is_whole() {
        Exit::NoneFound
    } else {
        Exit::Done
    })
}

/// One line per filter, in columns as wide as needed.
fn table(filters: &[Found]) -> String {
    let head = [
        "NAME", "KIND", "KEYS", "MADE FOR", "MEMORY", "ENDS IN", "NODES", "STATE",
    ];
    let mut rows = vec![head.map(String::from)];
    for filter in filters {
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".into());
        rows.push([
            one_line(&filter.name),
            or_none(filter.kind.map(|kind| kind.to_string())),
            or_none(filter.keys.map(estimated)),
            human::count(filter.capacity),
            human::size(filter.bytes()),
            or_none(filter.time_to_live.map(human::duration)),
            filter.shares.len().to_string(),
            filter.condition.to_string(),
        ]);
    }
    if filters.is_empty() {
        return String::new();
    }
    let rows: Vec<Vec<String>> = rows.into_iter().map(Vec::from).collect();
    columns(&rows, 2..=6)
}

/// Rows in columns as wide as needed; numbers are aligned right.
fn columns(rows: &[Vec<String>], numbers: RangeInclusive<usize>) -> String {
    let of_column = |i: usize| rows.iter().map(move |row| row[i].chars().count());
    let count = rows.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..count)
        .map(|i| of_column(i).max().unwrap_or(0))
        .collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (i, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = if numbers.contains(&i) {
                write!(line, "{cell:>width$}  ")
            } else {
                write!(line, "{cell:<width$}  ")
            };
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// An estimate from the bits set; with none set, there is certainly no key.
fn estimated(keys: u64) -> String {
    match keys {
        0 => "0".into(),
        keys => format!("about {}", human::count(keys)),
    }
}

/// A name on one line: a Redis key may contain anything.
fn one_line(name: &str) -> String {
    name.replace('\n', "\\n").replace('\t', "\\t")
}

/// Reports servers that can't be queried and filters that can't be read.
pub(super) fn tell_what_is_broken(survey: &Survey) {
    use Condition::{Damaged, Unreachable, Unreadable};
    for node in &survey.nodes {
        if let Some(reason) = &node.unreachable {
            output::warn(format_args!("{}: {reason}", node.address));
        }
    }
    for filter in &survey.filters {
        if let Damaged(reason) | Unreadable(reason) | Unreachable(reason) = &filter.condition {
            output::warn(format_args!("{}: {reason}", one_line(&filter.name)));
        }
    }
}

/// Reports, for people, what isn't in the table.
fn tell(survey: &Survey) {
    tell_what_is_broken(survey);
    for filter in &survey.filters {
        let over;
        let hint = match &filter.condition {
            Condition::Overfull => {
                over = format!(
                    "it holds more keys than it was made for: the rate is now {} instead of {}",
                    filter.rate_now.map_or_else(|| "?".into(), human::rate),
                    human::rate(filter.rate)
                );
                &over
            }
            Condition::Remains => {
                "its record was deleted, renamed, evicted or lost; `tamis drop` removes the rest"
            }
            Condition::Deleting => "a deletion was interrupted; `tamis drop` completes it",
            _ => continue,
        };
        output::warn(format_args!("{}: {hint}", one_line(&filter.name)));
    }
    if !survey.orphans.is_empty() {
        let bytes = survey.orphans.iter().map(|orphan| orphan.bytes).sum();
        say!(
            "{} of filters that are gone, {}: `tamis drop --orphans` deletes what nobody has used for an hour",
            human::counted(survey.orphans.len() as u64, "part"),
            human::size(bytes),
        );
    }
}

fn to_json(survey: &Survey) -> serde_json::Value {
    let filter = |filter: &Found| {
        json!({
            "name": filter.name,
            "kind": filter.kind.map(|kind| kind.name()),
            "state": filter.condition.to_string(),
            "reason": match &filter.condition {
                Condition::Damaged(reason)
                | Condition::Unreadable(reason)
                | Condition::Unreachable(reason) => Some(reason),
                _ => None,
            },
            "generation": format!("{:016x}", filter.generation),
            "keys": filter.keys,
            "capacity": filter.capacity,
            "rate": filter.rate,
            "rate_now": filter.rate_now,
            "fill": filter.fill(),
            "seconds_since_write": seconds(filter.last_write),
            "memory_bytes": filter.bytes(),
            "seconds_to_live": seconds(filter.time_to_live),
            "nodes": shares_json(&filter.shares),
        })
    };
    let orphan = |orphan: &Orphan| {
        json!({
            "key": orphan.key,
            "node": orphan.node,
            "memory_bytes": orphan.bytes,
            "seconds_idle": seconds(orphan.idle),
            "seconds_to_live": seconds(orphan.time_to_live),
        })
    };
    json!({
        "filters": survey.filters.iter().map(filter).collect::<Vec<_>>(),
        "orphans": survey.orphans.iter().map(orphan).collect::<Vec<_>>(),
        "nodes": nodes_json(&survey.nodes),
    })
}

fn seconds(time: Option<Duration>) -> Option<f64> {
    time.map(|time| time.as_secs_f64())
}
