//! The comparison as text and as JSON.

use super::advice::{Advice, Pick};
use super::contender::Contender;
use super::report::{Asked, Comparison, Measured, Refusal, Row};
use crate::human;
use serde_json::{Value, json};

/// Memory below this can't be distinguished from a process's usual memory.
pub(crate) const VISIBLE: u64 = 500_000;

pub(crate) fn text(comparison: &Comparison, advice: &Advice) -> String {
    let mut lines = vec![about(comparison), String::new()];
    lines.push(format!(
        "{:<9} {:>8} {:>10}  {:>8} {:>8} {:>8}  {:>8}  {:^15}  {:^15}  {}",
        "", "", "", "memory:", "", "", "", "lookups/s", "in batches", ""
    ));
    lines.push(format!(
        "{:<9} {:>8} {:>10}  {:>8} {:>8} {:>8}  {:>8}  {:>7} {:>7}  {:>7} {:>7}  {:>9}",
        "",
        "size",
        "bytes/key",
        "asked",
        "built",
        "process",
        "built in",
        "present",
        "absent",
        "present",
        "absent",
        "false yes"
    ));
    let left_out = comparison.rows.iter().filter_map(|row| {
        let (Refusal::Unfit(why) | Refusal::Failed(why)) = row.result.as_ref().err()?;
        Some(format!("{:<9} {why}", row.contender.name()))
    });
    lines.extend(
        comparison
            .measured()
            .map(|(contender, measured)| line(contender.name(), measured, comparison)),
    );
    lines.extend(left_out);
    lines.push(String::new());
    lines.push(for_more(comparison));
    lines.push(String::new());
    lines.push(verdict(advice));
    let others = advice.others();
    if !others.is_empty() {
        lines.push("If you also need to".into());
        for (need, pick) in others {
            let pick = match pick {
                Some(pick) => format!("{:<9} {}", pick.contender.name(), pick.why),
                None => "nothing here can do it".into(),
            };
            lines.push(format!("  {:<27} {pick}", need.to_do()));
        }
    }
    let mut text = String::new();
    for line in lines {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// What was read and how it is used.
pub(crate) fn about(comparison: &Comparison) -> String {
    let keys = &comparison.keys;
    let about = if keys.is_sample { "about " } else { "" };
    let mut text = format!(
        "{}, {about}{}; {} held, {:.1} bytes each",
        human::counted(keys.records, "record"),
        human::counted(keys.distinct, "distinct key"),
        human::count(keys.held),
        keys.held_bytes as f64 / keys.held.max(1) as f64,
    );
    if keys.is_sample {
        text.push_str(" (an even sample; --sample sets its size)");
    }
    text.push_str(&match (keys.absent, keys.absent_is_given) {
        (0, true) => "; every key of --absent is held".into(),
        (0, false) => "; no absent key to ask for".into(),
        (absent, true) => format!("; {} of --absent asked for", human::count(absent)),
        (absent, false) => format!("; {} held back to ask for", human::count(absent)),
    });
    if keys.overlapping > 0 {
        text.push_str(&format!(
            "; {} of --absent left out: also held",
            human::counted(keys.overlapping, "record")
        ));
    }
    text
}

/// `For 100,000,000 such keys, calculated: hash-set 5.43 GB, …`
pub(crate) fn for_more(comparison: &Comparison) -> String {
    let keys = comparison.for_keys;
    let sizes = comparison.measured().map(|(contender, measured)| {
        let size = comparison.size_for(contender, measured, keys);
        format!("{} {}", contender.name(), human::size(size))
    });
    let sizes: Vec<_> = sizes.collect();
    format!(
        "For {} such keys, calculated: {}.",
        human::count(keys),
        sizes.join(", ")
    )
}

fn line(name: &str, measured: &Measured, comparison: &Comparison) -> String {
    let [
        size,
        per_key,
        asked,
        built,
        process,
        time,
        present,
        absent,
        batch,
        others,
        wrong,
    ] = figures(measured, comparison);
    let too_many = if measured.exceeds(comparison.rate) {
        " (too many)"
    } else {
        ""
    };
    format!(
        "{name:<9} {size:>8} {per_key:>10}  {asked:>8} {built:>8} {process:>8}  {time:>8}  \
         {present:>7} {absent:>7}  {batch:>7} {others:>7}  {wrong:>9}{too_many}"
    )
}

/// The figures of a contender, for the table and the page.
pub(crate) fn figures(measured: &Measured, comparison: &Comparison) -> [String; 11] {
    let answers = &measured.answers;
    let speed = |asked: Option<Asked>| asked.map_or("-".into(), |asked| speed(asked.per_second));
    [
        human::size(measured.size),
        format!("{:.2}", comparison.bytes_per_key(measured.size)),
        memory(measured.memory),
        memory(measured.build_memory),
        memory(measured.process_memory),
        seconds(measured.build_seconds),
        speed(Some(answers.present)),
        speed(answers.absent),
        speed(answers.present_in_batches),
        speed(answers.absent_in_batches),
        measured.false_yes().map_or("-".into(), human::rate),
    ]
}

/// The recommendation in one line.
pub(crate) fn verdict(advice: &Advice) -> String {
    let Some(Pick { contender, why, .. }) = &advice.pick else {
        return "Nothing here can do all of that.".into();
    };
    let name = contender.name();
    match contender {
        Contender::Filter(_) => format!("Take {name}: {why}."),
        Contender::HashSet | Contender::Bitmap => {
            format!("No filter is needed. Take {name}: {why}.")
        }
        _ => format!("No filter can do this. Take {name}: {why}."),
    }
}

fn memory(bytes: Option<u64>) -> String {
    match bytes {
        None => "-".into(),
        Some(bytes) if bytes < VISIBLE => "<0.5 MB".into(),
        Some(bytes) => human::size(bytes),
    }
}

/// `12.3 M` per second.
pub(crate) fn speed(per_second: f64) -> String {
    let (value, unit) = match per_second {
        v if v >= 999.5e3 => (v / 1e6, " M"),
        v if v >= 999.5 => (v / 1e3, " k"),
        v => (v, ""),
    };
    let places = usize::from(value < 10.0) + usize::from(value < 100.0);
    format!("{value:.places$}{unit}")
}

pub(crate) fn seconds(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.0} µs", s * 1e6),
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s => format!("{s:.1} s"),
    }
}

pub(crate) fn json(comparison: &Comparison, advice: &Advice) -> Value {
    let pick = |pick: &Option<Pick>| match pick {
        None => Value::Null,
        Some(Pick {
            contender,
            size,
            why,
        }) => json!({
            "take": contender.name(),
            "is_filter": contender.is_filter(),
            "bytes": size,
            "why": why,
        }),
    };
    let others = advice.others.iter().map(|(need, other)| {
        let name = serde_json::to_value(need).unwrap_or_default();
        (name.as_str().unwrap_or_default().to_owned(), pick(other))
    });
    json!({
        "keys": comparison.keys,
        "rate": comparison.rate,
        "for_keys": comparison.for_keys,
        "contenders": comparison.rows.iter().map(|row| row_json(row, comparison)).collect::<Vec<_>>(),
        "recommendation": pick(&advice.pick),
        "if_also_needed": others.collect::<serde_json::Map<_, _>>(),
    })
}

fn row_json(row: &Row, comparison: &Comparison) -> Value {
    let mut all = match &row.result {
        Ok(measured) => json!({
            "bytes": measured.size,
            "bytes_for_keys": comparison.size_for(row.contender, measured, comparison.for_keys),
            "memory": measured.memory,
            "build_memory": measured.build_memory,
            "process_memory": measured.process_memory,
            "baseline_memory": measured.baseline_memory,
            "build_seconds": measured.build_seconds,
            "false_yes": measured.false_yes(),
            "answers": measured.answers,
        }),
        Err(Refusal::Unfit(why)) => json!({ "left_out": why }),
        Err(Refusal::Failed(why)) => json!({ "failed": why }),
    };
    all["name"] = row.contender.name().into();
    all["commands"] = json!(row.commands);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_and_times_have_three_digits() {
        for (value, text) in [
            (3.0, "3.00"),
            (999.0, "999"),
            (1_000.0, "1.00 k"),
            (12_345.0, "12.3 k"),
            (999_900.0, "1.00 M"),
            (123_456_789.0, "123 M"),
        ] {
            assert_eq!(speed(value), text);
        }
        assert_eq!(seconds(0.000_012), "12 µs");
        assert_eq!(seconds(0.5), "500 ms");
        assert_eq!(seconds(12.34), "12.3 s");
        assert_eq!(memory(Some(1000)), "<0.5 MB");
        assert_eq!(memory(None), "-");
    }
}
