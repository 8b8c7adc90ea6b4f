//! Results of a suite: as JSON, as a table; chart.rs draws them.

use crate::chart;
use crate::clock::Rounds;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Serialize, Deserialize)]
pub struct Suite {
    pub name: String,
    pub title: String,
    /// What ran it, from the repository's root.
    pub command: String,
    /// The kind of machine, not which one.
    pub machine: String,
    /// The first is Tamis, which the others are compared with.
    pub peers: Vec<String>,
    pub rows: Vec<Row>,
}

/// One task, and a value of each peer.
#[derive(Serialize, Deserialize)]
pub struct Row {
    pub group: String,
    pub task: String,
    #[serde(flatten)]
    pub values: Values,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Values {
    /// Nanoseconds a key, and how many times Tamis's time that is. Times of
    /// different runs don't compare; ratios do. The spread is where the middle
    /// half of the rounds' ratios lies.
    Time {
        ns: Vec<f64>,
        ratio: Vec<f64>,
        #[serde(default)]
        spread: Vec<[f64; 2]>,
    },
    /// A share of all, such as false answers.
    Share(Vec<f64>),
    /// Bytes of memory.
    Memory(Vec<f64>),
    /// A server's microseconds for a key.
    Microseconds(Vec<f64>),
}

impl Row {
    pub fn times(group: &str, task: &str, rounds: &Rounds) -> Self {
        Self {
            group: group.into(),
            task: task.into(),
            values: Values::Time {
                ns: rounds.medians(),
                ratio: rounds.ratios(),
                spread: rounds.spreads(),
            },
        }
    }

    pub fn shares(group: &str, task: &str, shares: Vec<f64>) -> Self {
        Self {
            group: group.into(),
            task: task.into(),
            values: Values::Share(shares),
        }
    }

    pub fn memory(group: &str, task: &str, bytes: Vec<f64>) -> Self {
        Self {
            group: group.into(),
            task: task.into(),
            values: Values::Memory(bytes),
        }
    }

    pub fn microseconds(group: &str, task: &str, rounds: &Rounds) -> Self {
        Self {
            group: group.into(),
            task: task.into(),
            values: Values::Microseconds(rounds.medians().iter().map(|ns| ns / 1e3).collect()),
        }
    }

    fn cells(&self) -> Vec<String> {
        match &self.values {
            Values::Time { ratio, spread, .. } => {
                let cell = |(i, ratio): (usize, &f64)| match spread.get(i) {
                    Some([low, high]) if i > 0 => format!("{ratio:.2} × ({low:.2}–{high:.2})"),
                    _ => format!("{ratio:.2} ×"),
                };
                ratio.iter().enumerate().map(cell).collect()
            }
            Values::Share(shares) => {
                let percent = |share: &f64| format!("{:.3} %", share * 100.0);
                shares.iter().map(percent).collect()
            }
            Values::Microseconds(each) => each.iter().map(|us| format!("{us:.2} µs")).collect(),
            Values::Memory(bytes) => bytes.iter().map(|b| format!("{:.0} MB", b / 1e6)).collect(),
        }
    }
}

impl Suite {
    /// In Markdown. Times are multiples of Tamis's.
    pub fn table(&self) -> String {
        let mut out = format!("| | task | {} |\n", self.peers.join(" | "));
        let _ = writeln!(out, "| --- | --- |{}", " ---: |".repeat(self.peers.len()));
        for row in &self.rows {
            let mut cells = row.cells();
            cells.resize(self.peers.len(), String::new());
            let cells = cells.join(" | ");
            let _ = writeln!(out, "| {} | {} | {cells} |", row.group, row.task);
        }
        out
    }

    /// Writes `bench/results/NAME.json`.
    pub fn save(&self) -> Result<(), String> {
        let path = results().join(&self.name).with_extension("json");
        let json = serde_json::to_string_pretty(self).map_err(|e| e.to_string())?;
        fs::create_dir_all(results()).map_err(|e| e.to_string())?;
        fs::write(&path, json + "\n").map_err(|e| format!("{}: {e}", path.display()))
    }

    /// The suite's part of docs/benchmarks.md.
    fn section(&self) -> String {
        let Self {
            name,
            title,
            command,
            machine,
            ..
        } = self;
        format!(
            "```\n{command}\n```\nOn: {machine}.\n\n{}\n![{title}: times as multiples of Tamis's](benchmarks-{name}.svg)\n",
            self.table()
        )
    }
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn results() -> PathBuf {
    root().join("bench/results")
}

/// Puts every result into its place in docs/benchmarks.md, between
/// `<!-- NAME -->` and `<!-- /NAME -->`, and draws its chart beside it.
pub fn write_docs() -> Result<(), String> {
    for (path, text) in drawn().map_err(|e| e.to_string())? {
        fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(())
}

/// Whether the page and its charts are what the results say.
pub fn check_docs() -> Result<(), String> {
    for (path, text) in drawn().map_err(|e| e.to_string())? {
        if fs::read_to_string(&path).ok().as_ref() != Some(&text) {
            let path = path.display();
            return Err(format!(
                "{path} is not drawn from bench/results: run `report`"
            ));
        }
    }
    Ok(())
}

/// The page and its charts, and README's: where they lie, and what they say.
fn drawn() -> Result<Vec<(PathBuf, String)>, Box<dyn std::error::Error>> {
    let docs = root().join("docs");
    let page = docs.join("benchmarks.md");
    let mut text = fs::read_to_string(&page)?;
    let (mut files, mut suites) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(results())? {
        let path = entry?.path();
        let named = |e| format!("{}: {e}", path.display());
        let suite: Suite = serde_json::from_slice(&fs::read(&path)?).map_err(named)?;
        let name = &suite.name;
        let (open, close) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
        let at = text.find(&open).map(|at| at + open.len());
        let (Some(at), Some(end)) = (at, text.find(&close)) else {
            return Err(format!("docs/benchmarks.md has no {}", open.trim()).into());
        };
        text.replace_range(at..end, &suite.section());
        let chart = docs.join(format!("benchmarks-{name}.svg"));
        files.push((chart, chart::of_suite(&suite)));
        suites.push(suite);
    }
    files.push((page, text));
    files.push((docs.join("readme-speed.svg"), chart::of_readme(&suites)?));
    Ok(files)
}

/// `Intel Xeon …, 2 cores`: the kind of this machine.
pub fn machine() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = info.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_string())
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let model = field("model name").unwrap_or_else(|| std::env::consts::ARCH.into());
    format!("{model}, {cores} cores")
}
