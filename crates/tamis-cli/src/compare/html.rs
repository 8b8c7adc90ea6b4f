//! The comparison as a self-contained page: charts, the table and the recommendation.

use super::advice::Advice;
use super::contender::Contender;
use super::plot::Plot;
use super::report::{Comparison, Measured};
use super::table;
use crate::human;
use std::path::PathBuf;

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#222;--back:#fff;--faint:#ddd;--soft:#f3f6f9}\
@media(prefers-color-scheme:dark){:root{--ink:#e6e6e6;--back:#16181b;--faint:#444;--soft:#22262b}}\
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--back);max-width:60rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.5rem}.verdict{background:var(--soft);border-left:4px solid #0b62b0;padding:.6rem 1rem;font-size:1.1rem}\
figure{margin:2rem 0}svg{width:100%;height:auto}.wide{overflow-x:auto}\
table{border-collapse:collapse;font-variant-numeric:tabular-nums}th,td{padding:.2rem .6rem;text-align:right;border-bottom:1px solid var(--faint);white-space:nowrap}\
th:first-child,td:first-child{text-align:left}";

pub(crate) fn page(comparison: &Comparison, advice: &Advice, inputs: &[PathBuf]) -> String {
    let names: Vec<_> = inputs
        .iter()
        .map(|path| escape(&path.display().to_string()))
        .collect();
    let names = names.join(", ");
    let plots: String = plots(comparison)
        .iter()
        .filter(|plot| !plot.rows.is_empty())
        .map(|plot| format!("<figure>{}</figure>\n", plot.svg()))
        .collect();
    let others: String = advice
        .others()
        .into_iter()
        .map(|(need, pick)| {
            let pick = pick.map_or("nothing here".into(), |pick| {
                format!("<b>{}</b>: {}", pick.contender.name(), escape(&pick.why))
            });
            format!("<li>to {}: {pick}</li>\n", need.to_do())
        })
        .collect();
    let others = if others.is_empty() {
        others
    } else {
        format!("<p>If you also need</p>\n<ul>\n{others}</ul>\n")
    };
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>tamis compare {names}</title><style>{STYLE}</style></head><body>\n\
         <h1>Ways to hold the keys of {names}</h1>\n<p>{about}. Asked for a false yes of {rate}.</p>\n\
         <p class=\"verdict\">{verdict}</p>\n{others}{plots}\
         <h2>All figures</h2>\n<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"All figures\">{figures}</div>\n\
         <p>{for_more}</p>\n\
         <p>Size is counted: the file, or what was allocated. Memory is what the system counted of a process that \
         answers, or builds, beyond one that only reads the questions.</p>\n</body></html>\n",
        about = escape(&table::about(comparison)),
        rate = human::rate(comparison.rate),
        verdict = escape(&table::verdict(advice)),
        figures = figures(comparison),
        for_more = escape(&table::for_more(comparison)),
    )
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

fn figures(comparison: &Comparison) -> String {
    let mut out = String::from(
        "<table><thead><tr><th scope=\"col\"></th><th scope=\"col\">size</th><th scope=\"col\">bytes/key</th>\
         <th scope=\"col\">memory</th><th scope=\"col\">to build</th><th scope=\"col\">process</th><th scope=\"col\">built in</th>\
         <th scope=\"col\">present/s</th><th scope=\"col\">absent/s</th><th scope=\"col\">batches: present/s</th>\
         <th scope=\"col\">absent/s</th><th scope=\"col\">false yes</th></tr></thead><tbody>",
    );
    let row = |(contender, measured): (Contender, &Measured)| {
        let cells: String = table::figures(measured, comparison)
            .iter()
            .map(|text| format!("<td>{}</td>", escape(text)))
            .collect();
        let name = contender.name();
        format!("<tr><th scope=\"row\">{name}</th>{cells}</tr>\n")
    };
    out.extend(comparison.measured().map(row));
    out.push_str("</tbody></table>");
    out
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
