//! The end of a run: its summary, report and exit code.

use super::Args;
use crate::present::{self, Written};
use crate::stream::Report;
use crate::window::Odd;
use crate::{Exit, human, output};
use anyhow::{Context, Result};
use serde_json::json;
use tamis_redis::Stats;

/// What the decisions were based on, for the summary.
pub(super) struct Memory {
    pub(super) bytes: u64,
    /// The expected number of records wrongly dropped.
    pub(super) wrong: f64,
    /// Statistics of the connections to Redis.
    pub(super) redis: Option<Stats>,
    /// How many records occur once, if that was counted.
    pub(super) once: Option<u64>,
    /// In a window, oddities in the times of records.
    pub(super) times: Option<Odd>,
}

impl Memory {
    /// The memory of this process or of a file.
    pub(super) const fn local(bytes: u64, wrong: f64) -> Self {
        Self {
            bytes,
            wrong,
            once: None,
            redis: None,
            times: None,
        }
    }
}

pub(super) fn finish(args: &Args, report: Report, memory: &Memory) -> Result<Exit> {
    if !args.quiet && report.read_something() {
        summarise(&report, memory);
    }
    if let Some(path) = &args.report {
        present::refuse_others(path, Written::Report)?;
        let text = format!("{:#}\n", report_json(&report, memory));
        std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    let printed = args.printed(&report, memory);
    if args.count {
        output::print(&format!("{printed}\n"))?;
    }
    Ok(match report.finish()? {
        Exit::Done | Exit::NoneFound if args.exit_code && printed == 0 => Exit::NoneFound,
        Exit::Done | Exit::NoneFound => Exit::Done,
        exit => exit,
    })
}

fn summarise(report: &Report, memory: &Memory) {
    let seconds = report.elapsed.as_secs_f64().max(1e-9);
    say!(
        "{}, {} unique, {}, {}/s",
        human::counted(report.records, "record"),
        human::count(report.chosen),
        human::counted(report.records - report.chosen, "duplicate"),
        human::size((report.bytes as f64 / seconds) as u64),
    );
    if let Some(once) = memory.once {
        say!("occurring once: {}", human::counted(once, "record"));
    }
    say!(
        "filter {}, records wrongly dropped by chance: {} expected",
        human::size(memory.bytes),
        human::expectation(memory.wrong),
    );
    let odd = memory.times.unwrap_or_default();
    if odd.too_old > 0 {
        say!(
            "older than the window of the latest record, and so taken for unique: {}",
            human::count(odd.too_old)
        );
    }
    if odd.late > 0 {
        say!(
            "late by more than a generation, and compared with what was still remembered: {}",
            human::count(odd.late)
        );
    }
}

fn report_json(report: &Report, memory: &Memory) -> serde_json::Value {
    let mut all = json!({
        "records": report.records,
        "unique": report.chosen,
        "duplicates": report.records - report.chosen,
        "without_key": report.without_key,
        "not_urls": report.not_urls,
        "bytes": report.bytes,
        "seconds": report.elapsed.as_secs_f64(),
        "filter_bytes": memory.bytes,
        "expected_wrongly_dropped": memory.wrong,
        "interrupted": report.signal.is_some(),
    });
    if let Some(once) = memory.once {
        all["once"] = once.into();
    }
    if let Some(odd) = memory.times {
        all["too_old"] = odd.too_old.into();
        all["late"] = odd.late.into();
        all["in_the_future"] = odd.ahead.into();
        all["without_time"] = report.without_time.into();
    }
    if let Some(stats) = &memory.redis {
        all["redis"] = json!({
            "connections": stats.connections,
            "reconnects": stats.reconnects,
            "retries": stats.retries,
            "redirects": stats.redirects,
            "ambiguous_keys": stats.ambiguous_keys,
        });
    }
    all
}
