//! Results of a suite: as JSON, and as a table.

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
}

/// The repository's, for this workspace and for the test that draws the page again.
pub fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let is_root = |folder: &&Path| folder.join("bench/results").is_dir();
    (package.ancestors().find(is_root)).expect("bench/results is in the repository")
}

pub fn results() -> PathBuf {
    root().join("bench/results")
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
