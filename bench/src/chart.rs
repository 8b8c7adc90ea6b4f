//! Charts of results, as SVG that stands alone, for light and dark pages.

use crate::report::{Row, Suite, Values};
use std::fmt::Write as _;

/// Every chart has the same style. The ground is drawn, so that a page whose colours are not those of the system does
/// not hide the text.
const STYLE: &str = "<style>
.ground { fill: #fff }
text { fill: #212529 }
.small { font-size: 11px; fill: #495057 }
.ours { fill: #d9480f }
.peer { fill: #868e96 }
.other { fill: #ced4da }
@media (prefers-color-scheme: dark) {
.ground { fill: #0d1117 }
text { fill: #e6edf3 }
.small { fill: #b1bac4 }
.ours { fill: #f76707 }
.peer { fill: #7d8590 }
.other { fill: #484f58 }
}
</style>
";

const WIDTH: f64 = 720.0;
const LEFT: f64 = 16.0;
const BAR: f64 = 16.0;
/// Of a letter at 11 and at 13 pixels, at most on average: text can't be measured here.
const SMALL_LETTER: f64 = 6.2;
const LETTER: f64 = 7.4;

/// Bars of all timed rows, as long as the ratios. Names stand above and behind the bars, where they have room.
pub fn of_suite(suite: &Suite) -> String {
    let timed: Vec<(&Row, &[f64])> = (suite.rows.iter())
        .filter_map(|row| match &row.values {
            Values::Time { ratio, .. } => Some((row, &ratio[..])),
            Values::Share(_) | Values::Memory(_) | Values::Microseconds(_) => None,
        })
        .collect();
    let ratios = timed.iter().flat_map(|(_, ratios)| *ratios);
    let longest = ratios.copied().fold(1.0, f64::max);
    let name = suite.peers.iter().map(|name| name.chars().count()).max();
    let right = 12.0 + (name.unwrap_or(0) as f64 + 5.0) * SMALL_LETTER;
    let scale = (WIDTH - LEFT - right) / longest;

    let mut bars = String::new();
    let mut y = 50.0;
    let mut group = "";
    for (row, ratios) in timed {
        if row.group != group {
            group = &row.group;
            y += 24.0;
            let _ = writeln!(bars, "{}", heading(LEFT, y, "", group));
            y += 4.0;
        }
        y += 16.0;
        let _ = writeln!(bars, "{}", text(LEFT, y, "", &row.task));
        y += 5.0;
        for (i, (ratio, peer)) in ratios.iter().zip(&suite.peers).enumerate() {
            let class = match i {
                0 => "ours",
                1 | 2 => "peer",
                _ => "other",
            };
            // Of what is faster, 0.1 would be a coarse step.
            let places = if *ratio < 0.95 { 2 } else { 1 };
            let said = format!("{ratio:.places$} {peer}");
            bars += &bar(LEFT, y, ratio * scale, class, &said);
            y += BAR;
        }
        y += 6.0;
    }
    let lead = match suite.peers.first() {
        Some(first) => format!("time, where that of {first} is 1; shorter is faster"),
        None => String::new(),
    };
    document(&suite.title, &[lead], y + 6.0, &bars)
}

/// What README shows of `dedup`: beside its peers where that was measured, otherwise with different numbers of threads.
pub fn of_readme(suites: &[Suite]) -> Result<String, String> {
    let suite = |name| suites.iter().find(|suite: &&Suite| suite.name == name);
    let missing = || "no results of dedup, nor of scale".to_string();
    let suite = suite("dedup")
        .or_else(|| suite("scale"))
        .ok_or_else(missing)?;
    let bars = match suite.name.as_str() {
        "dedup" => beside_peers(suite)?,
        _ => by_threads(suite)?,
    };
    let fastest = bars.iter().map(|bar| bar.speed()).fold(0.0, f64::max);
    let name = bars.iter().map(|bar| bar.name.chars().count()).max();
    let left = LEFT + name.unwrap_or(0) as f64 * LETTER + 8.0;
    let scale = (WIDTH - left - 4.0 - 10.0 * SMALL_LETTER) / fastest;
    let mut drawn = String::new();
    let mut y = 82.0;
    for each in &bars {
        let style = r#" text-anchor="end""#;
        let _ = writeln!(
            drawn,
            "{}",
            text(left - 8.0, y + BAR - 4.0, style, &each.name)
        );
        let speed = each.speed();
        drawn += &bar(
            left,
            y,
            speed * scale,
            each.class,
            &format!("{speed:.1} M/s"),
        );
        y += BAR + 6.0;
    }
    let lines = suite.rows.first().map_or("", |row| &row.group);
    let lead = [
        "million lines a second, from the page cache to a file in memory; longer is faster".into(),
        format!(
            "{lines} of about 60 bytes, 30 % of them repeated; {}",
            suite.machine
        ),
    ];
    Ok(document(
        "Removing repeated lines: tamis dedup",
        &lead,
        y + 8.0,
        &drawn,
    ))
}

/// A bar of README's picture.
struct Speed {
    name: String,
    /// Nanoseconds a line.
    ns: f64,
    class: &'static str,
}

impl Speed {
    /// Millions of lines a second.
    fn speed(&self) -> f64 {
        1e3 / self.ns
    }
}

/// The nanoseconds a line of a task.
fn times<'a>(suite: &'a Suite, task: &str) -> Result<&'a [f64], String> {
    let row = suite.rows.iter().find(|row| row.task == task);
    match row.map(|row| &row.values) {
        Some(Values::Time { ns, .. }) => Ok(ns),
        _ => Err(format!("{}: no times of {task:?}", suite.name)),
    }
}

/// The command first, as many as there are of it, and then its peers, the fastest first.
fn beside_peers(suite: &Suite) -> Result<Vec<Speed>, String> {
    let bar = |(name, ns): (&String, &f64)| {
        let (name, class) = match name.as_str() {
            "tamis dedup" => (name.clone(), "ours"),
            option if option.starts_with('-') => (format!("tamis dedup {option}"), "ours"),
            "cat" => (COPIED.into(), "other"),
            _ => (name.clone(), "peer"),
        };
        Speed {
            name,
            ns: *ns,
            class,
        }
    };
    let mut bars: Vec<_> = (suite.peers.iter().zip(times(suite, "a file")?))
        .map(bar)
        .collect();
    bars.sort_by(|a, b| {
        (a.class != "ours", a.ns)
            .partial_cmp(&(b.class != "ours", b.ns))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    Ok(bars)
}

/// What reading and writing alone take.
const COPIED: &str = "cat (only copies)";

/// The command with most threads first, without an error at as many, and what copying takes.
fn by_threads(suite: &Suite) -> Result<Vec<Speed>, String> {
    let all = times(suite, "dedup > OUT")?;
    let threads = |peer: &str| peer.strip_prefix("-j ").map(str::to_owned);
    let mut bars: Vec<_> = (suite.peers.iter().zip(all))
        .filter_map(|(peer, ns)| {
            let name = match threads(peer)?.as_str() {
                "1" => "tamis dedup, 1 thread".into(),
                many => format!("tamis dedup, {many} threads"),
            };
            let class = "ours";
            Some(Speed {
                name,
                ns: *ns,
                class,
            })
        })
        .collect();
    bars.reverse();
    let exact = suite.peers.iter().zip(times(suite, "dedup --exact > OUT")?);
    let exact = exact
        .filter_map(|(peer, ns)| Some((threads(peer)?, ns)))
        .next_back();
    bars.extend(exact.map(|(many, ns)| Speed {
        name: format!("tamis dedup --exact, {many} threads"),
        ns: *ns,
        class: "ours",
    }));
    let cat = suite
        .peers
        .iter()
        .zip(all)
        .find(|(peer, _)| peer.starts_with("cat"));
    bars.extend(cat.map(|(_, ns)| Speed {
        name: COPIED.into(),
        ns: *ns,
        class: "other",
    }));
    Ok(bars)
}

/// A bar, and what is said behind it.
fn bar(x: f64, y: f64, width: f64, class: &str, said: &str) -> String {
    let (height, behind, base) = (BAR - 2.0, x + width + 4.0, y + BAR - 5.0);
    let said = escaped(said);
    format!(
        r#"<rect x="{x}" y="{y}" width="{width:.1}" height="{height}" class="{class}"/>
<text x="{behind:.1}" y="{base}" class="small">{said}</text>
"#
    )
}

fn text(x: f64, y: f64, style: &str, said: &str) -> String {
    format!(r#"<text x="{x}" y="{y}"{style}>{}</text>"#, escaped(said))
}

fn heading(x: f64, y: f64, style: &str, said: &str) -> String {
    text(x, y, &format!(r#" font-weight="bold"{style}"#), said)
}

/// A title and lines below it, and then what is drawn.
fn document(title: &str, lead: &[String], height: f64, drawn: &str) -> String {
    let mut out = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="13">
<title>{}</title>
{STYLE}<rect width="100%" height="100%" class="ground"/>
{}
"#,
        escaped(title),
        heading(LEFT, 24.0, r#" font-size="15""#, title)
    );
    for (i, line) in lead.iter().enumerate() {
        let _ = writeln!(
            out,
            "{}",
            text(LEFT, 42.0 + 16.0 * i as f64, r#" class="small""#, line)
        );
    }
    out + drawn + "</svg>\n"
}

/// As SVG has it; a page's backticks mean nothing there.
fn escaped(text: &str) -> String {
    let text = text.replace('`', "").replace('&', "&amp;");
    text.replace('<', "&lt;").replace('>', "&gt;")
}
