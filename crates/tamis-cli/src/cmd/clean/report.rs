//! The results of a run, for people and as JSON.

use super::args::Args;
use super::inputs::Inputs;
use crate::{human, output};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fmt::Write as _;
use tamis_corpus::engine::Outcome;
use tamis_corpus::near::Bands;
use tamis_corpus::rule::TextUnit;
use tamis_corpus::seen::Seen;
use tamis_corpus::settings::{Settings, Use};
use tamis_corpus::summary::{Counts, Summary};

pub(super) fn finish(
    args: &Args,
    settings: &Settings,
    inputs: &Inputs,
    seen: &Seen,
    wrong_before: f64,
    outcome: &Outcome,
) -> Result<()> {
    let summary = &outcome.summary;
    let wrong = expected_wrong(settings, seen, wrong_before, summary);
    if let Some(path) = &args.report {
        let report = as_json(settings, inputs, seen, wrong, summary);
        std::fs::write(path, format!("{report:#}\n"))
            .with_context(|| format!("writing {}", path.display()))?;
    }
    // A run that failed in its first input has nothing to sum up.
    if outcome.result.is_err() && summary.total().records == 0 {
        return Ok(());
    }
    if args.dry_run {
        output::print(&as_text(settings, inputs, summary))?;
    }
    name_odd(inputs, summary);
    if args.quiet {
        return Ok(());
    }
    say_sum(args, settings, seen, wrong, summary);
    Ok(())
}

/// The expected number of units wrongly taken for repetitions; unknown for n-grams, which decide together.
fn expected_wrong(settings: &Settings, seen: &Seen, before: f64, summary: &Summary) -> Option<f64> {
    let units = summary.total().units as f64;
    match (settings.use_of_filter, settings.rule.unit()) {
        (_, TextUnit::Words(_)) => None,
        (Use::Learn, _) => Some(0.0),
        // One false band is enough.
        (Use::Ask, TextUnit::Alike(percent)) => {
            let bands = Bands::for_threshold(f64::from(percent) / 100.0).bands();
            let none = (1.0 - seen.rate_now()).powi(bands as i32);
            Some((1.0 - none) * units)
        }
        (Use::Ask, _) => Some(seen.rate_now() * units),
        (Use::Judge, _) => Some(seen.expected_wrong() - before),
    }
}

/// The unit counted, in the singular.
fn noun(settings: &Settings) -> &'static str {
    match settings.judged() {
        TextUnit::Paragraph => "paragraph",
        TextUnit::Sentence => "sentence",
        TextUnit::Line => "line",
        _ => "document",
    }
}

fn share(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}

fn say_sum(args: &Args, settings: &Settings, seen: &Seen, wrong: Option<f64>, summary: &Summary) {
    let total = summary.total();
    let units = human::counted(total.units, noun(settings));
    if settings.use_of_filter == Use::Learn {
        say!(
            "{} in {}: the filter holds {} in {}",
            units,
            human::counted(total.records, "record"),
            human::counted(seen.units(), "unit"),
            human::size(seen.bytes())
        );
        return;
    }
    let (dropped, changed, cut) = if args.dry_run {
        ("to drop", "to change", "to cut")
    } else {
        ("dropped", "changed", "cut")
    };
    say!(
        "{}: {} {dropped}, {} {changed}; {} of {units} repeated ({})",
        human::counted(total.records, "record"),
        human::count(total.dropped),
        human::count(total.changed),
        human::count(total.repeats),
        share(total.repeats, total.units),
    );
    if total.short > 0 {
        say!(
            "too short to be judged: {}",
            human::counted(total.short, noun(settings))
        );
    }
    let chance = match wrong {
        Some(wrong) => format!(
            "wrongly taken for repeated: {} expected",
            human::expectation(wrong)
        ),
        None => format!(
            "an n-gram is wrongly taken for seen at a rate of {}",
            human::rate(seen.rate())
        ),
    };
    say!(
        "{} of {} {cut}; filter: {}; {chance}",
        human::size(total.cut),
        human::size(total.bytes),
        human::size(seen.bytes()),
    );
    if let TextUnit::Alike(percent) = settings.rule.unit() {
        say!("{}", likeness(percent));
    }
}

/// What similarity the bands find, and how often they err.
fn likeness(percent: u8) -> String {
    let threshold = f64::from(percent) / 100.0;
    let bands = Bands::for_threshold(threshold);
    let (wrong, missed) = bands.errors(threshold);
    format!(
        "{} bands of {}: of pairs of every likeness, {:.1} % are wrongly taken for alike and {:.1} % missed; at {threshold}, {:.0} % are found",
        bands.bands(),
        human::counted(bands.rows() as u64, "value"),
        100.0 * wrong,
        100.0 * missed,
        100.0 * bands.chance(threshold),
    )
}

/// Reports lines that were kept because they have no text.
fn name_odd(inputs: &Inputs, summary: &Summary) {
    for odd in &summary.odd {
        output::warn(format_args!(
            "{}:{}: {}; the line is kept as it is",
            inputs.sources[odd.input].path.display(),
            odd.line,
            odd.what
        ));
    }
    let more = summary
        .total()
        .odd()
        .saturating_sub(summary.odd.len() as u64);
    if more > 0 {
        output::warn(format_args!(
            "{} more are kept as they are",
            human::counted(more, "line")
        ));
    }
}

fn as_text(settings: &Settings, inputs: &Inputs, summary: &Summary) -> String {
    let noun = noun(settings);
    let width = summary
        .sources
        .iter()
        .map(|(input, _)| inputs.names[*input].as_os_str().len());
    let width = width.max().unwrap_or(0).max("input".len());
    let mut text = format!(
        "{:width$} {:>12} {:>12} {:>12} {:>8}\n",
        "input",
        "records",
        format!("{noun}s"),
        "repeated",
        "share"
    );
    for (input, counts) in &summary.sources {
        row(
            &mut text,
            width,
            &inputs.names[*input].display().to_string(),
            counts,
        );
    }
    row(&mut text, width, "all", &summary.total());
    if !summary.most_repeated.is_empty() {
        text += "\nrepeated most\n";
        for unit in &summary.most_repeated {
            let _ = writeln!(text, "{:>8} times  {}", human::count(unit.times), unit.text);
        }
    }
    text
}

fn row(text: &mut String, width: usize, name: &str, counts: &Counts) {
    // Writing to a String can't fail.
    let _ = writeln!(
        text,
        "{name:width$} {:>12} {:>12} {:>12} {:>8}",
        human::count(counts.records),
        human::count(counts.units),
        human::count(counts.repeats),
        share(counts.repeats, counts.units),
    );
}

fn as_json(
    settings: &Settings,
    inputs: &Inputs,
    seen: &Seen,
    wrong: Option<f64>,
    summary: &Summary,
) -> Value {
    let sources = summary.sources.iter().map(|(input, counts)| {
        let mut source = counts_json(counts);
        source["input"] = inputs.sources[*input].path.display().to_string().into();
        source
    });
    let repeated = summary.most_repeated.iter();
    let repeated: Vec<Value> = repeated
        .map(|unit| json!({ "text": unit.text, "times": unit.times }))
        .collect();
    let mut report = json!({
        "expected_wrongly_dropped": wrong,
        "filter": { "bytes": seen.bytes(), "units": seen.units(), "rate": seen.rate(), "rate_now": seen.rate_now() },
        "inputs": sources.collect::<Vec<_>>(),
        "most_repeated": repeated,
        "rule": settings.rule.key_rule().to_string(),
        "total": counts_json(&summary.total()),
    });
    if let TextUnit::Alike(percent) = settings.rule.unit() {
        let threshold = f64::from(percent) / 100.0;
        let bands = Bands::for_threshold(threshold);
        let (wrong, missed) = bands.errors(threshold);
        report["near"] = json!({
            "threshold": threshold,
            "bands": bands.bands(),
            "rows": bands.rows(),
            "wrongly_alike": wrong,
            "missed": missed,
        });
    }
    report
}

fn counts_json(counts: &Counts) -> Value {
    json!({
        "records": counts.records,
        "dropped": counts.dropped,
        "emptied": counts.emptied,
        "changed": counts.changed,
        "units": counts.units,
        "repeats": counts.repeats,
        "short": counts.short,
        "bytes": counts.bytes,
        "bytes_cut": counts.cut,
        "broken": counts.broken,
        "without_text": counts.missing,
        "not_text": counts.not_text,
    })
}
