//! The comparison as pictures that need nothing else.

use super::plot::Plot;
use super::report::{Comparison, Measured};
use super::table;
use crate::human;
use anyhow::{Context as _, Result};
use std::path::Path;

/// Draws the comparison into files of this folder: `size.svg` and the like.
pub(crate) fn draw(comparison: &Comparison, folder: &Path) -> Result<()> {
    for plot in plots(comparison) {
        if plot.rows.is_empty() {
            continue;
        }
        let path = folder.join(format!("{}.svg", plot.id));
        std::fs::write(&path, plot.svg()).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

fn plots(comparison: &Comparison) -> [Plot<'_>; 4] {
    let rows = |of: &dyn Fn(&Measured) -> Vec<Option<f64>>| {
        comparison
            .measured()
            .map(|(contender, measured)| (contender.name(), of(measured)))
            .collect()
    };
    let speed = |asked: Option<super::report::Asked>| asked.map(|asked| asked.per_second);
    let visible = |bytes: Option<u64>| {
        bytes
            .filter(|bytes| *bytes >= table::VISIBLE)
            .map(|bytes| bytes as f64)
    };
    [
        Plot {
            id: "size",
            title: "Size, and memory of the process that answers",
            series: &["size", "memory", "memory while it is built"],
            rows: rows(&|m| {
                vec![
                    Some(m.size as f64),
                    visible(m.memory),
                    visible(m.build_memory),
                ]
            }),
            show: |bytes| human::size(bytes as u64),
        },
        Plot {
            id: "build",
            title: "Time to build",
            series: &["seconds"],
            rows: rows(&|m| vec![Some(m.build_seconds)]),
            show: table::seconds,
        },
        Plot {
            id: "speed",
            title: "Look-ups a second",
            series: &[
                "present",
                "absent",
                "present, in batches",
                "absent, in batches",
            ],
            rows: rows(&|m| {
                vec![
                    Some(m.answers.present.per_second),
                    speed(m.answers.absent),
                    speed(m.answers.present_in_batches),
                    speed(m.answers.absent_in_batches),
                ]
            }),
            show: table::speed,
        },
        Plot {
            id: "wrong",
            title: "False yes, of absent keys",
            series: &["measured", "asked for"],
            rows: comparison
                .measured()
                .filter(|(contender, _)| contender.is_filter())
                .filter_map(|(contender, m)| {
                    Some((
                        contender.name(),
                        vec![Some(m.false_yes()?), Some(comparison.rate)],
                    ))
                })
                .collect(),
            show: human::rate,
        },
    ]
}
