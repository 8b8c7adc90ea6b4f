//! The measurements.

use super::contender::{Contender, one_hash_bytes};
use super::keys::Keys;
use serde::{Deserialize, Serialize};
use tamis::{Kind, Plan};

/// What a contender's process reports to its parent.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Step {
    /// Size of the structure in bytes: of its file, or of its counted allocations.
    pub(crate) size: u64,
    pub(crate) build_seconds: f64,
    pub(crate) answers: Option<Answers>,
    /// None if the system doesn't report it.
    pub(crate) memory: Option<Memory>,
}

/// The peak memory of a process.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Memory {
    /// Everything, as `/usr/bin/time` reports it.
    pub(crate) peak: u64,
    /// Without the program's code, which is in memory to a varying degree.
    pub(crate) own: u64,
}

/// Why a step failed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Refusal {
    /// Not suitable for these keys or this rate.
    Unfit(String),
    Failed(String),
}

pub(crate) type StepResult = Result<Step, Refusal>;

/// Measured answers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Answers {
    pub(crate) present: Asked,
    /// `None` if there are no absent keys.
    pub(crate) absent: Option<Asked>,
    /// In batches, if supported.
    pub(crate) present_in_batches: Option<Asked>,
    pub(crate) absent_in_batches: Option<Asked>,
}

impl Answers {
    /// The rate of single queries for absent keys, or for present keys if there are no absent ones.
    pub(crate) fn speed(&self) -> f64 {
        self.absent.unwrap_or(self.present).per_second
    }

    /// Takes over faster results of another run: slow runs are due to other causes than the structure.
    pub(crate) fn keep_fastest(&mut self, other: &Self) {
        let faster = |ours: &mut Asked, theirs: &Asked| {
            ours.per_second = ours.per_second.max(theirs.per_second);
        };
        faster(&mut self.present, &other.present);
        for (ours, theirs) in [
            (&mut self.absent, &other.absent),
            (&mut self.present_in_batches, &other.present_in_batches),
            (&mut self.absent_in_batches, &other.absent_in_batches),
        ] {
            if let (Some(ours), Some(theirs)) = (ours, theirs) {
                faster(ours, theirs);
            }
        }
    }
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Asked {
    /// Distinct keys.
    pub(crate) keys: u64,
    /// How many of them it reported as present.
    pub(crate) yes: u64,
    pub(crate) per_second: f64,
}

/// The results of one contender.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) contender: Contender,
    pub(crate) result: Result<Measured, Refusal>,
    /// The commands that were run, so that they can be repeated.
    pub(crate) commands: Vec<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) size: u64,
    /// Of the querying process, beyond one that only reads the questions.
    pub(crate) memory: Option<u64>,
    /// Of the building process, likewise.
    pub(crate) build_memory: Option<u64>,
    /// The total memory of the querying process, and of one that only reads the questions.
    pub(crate) process_memory: Option<u64>,
    pub(crate) baseline_memory: Option<u64>,
    pub(crate) build_seconds: f64,
    /// The speed ratio between two runs of the same.
    pub(crate) noise: f64,
    pub(crate) answers: Answers,
}

impl Measured {
    /// The share of absent keys that it reported as present.
    pub(crate) fn false_yes(&self) -> Option<f64> {
        let absent = self.answers.absent.filter(|asked| asked.keys > 0)?;
        Some(absent.yes as f64 / absent.keys as f64)
    }

    /// Whether it was wrong significantly more often than `rate`: by over five standard deviations.
    pub(crate) fn exceeds(&self, rate: f64) -> bool {
        self.answers.absent.is_some_and(|absent| {
            let expected = absent.keys as f64 * rate;
            absent.yes as f64 > expected + 5.0 * expected.sqrt() + 5.0
        })
    }
}

/// Everything that was compared.
pub(crate) struct Comparison {
    pub(crate) keys: Keys,
    pub(crate) rate: f64,
    /// The number of keys that sizes are calculated for.
    pub(crate) for_keys: u64,
    pub(crate) rows: Vec<Row>,
}

impl Comparison {
    /// The contenders that were measured.
    pub(crate) fn measured(&self) -> impl Iterator<Item = (Contender, &Measured)> {
        let rows = self.rows.iter();
        rows.filter_map(|row| Some((row.contender, row.result.as_ref().ok()?)))
    }

    /// All keys, as a multiple of the held ones.
    pub(crate) fn scale(&self) -> f64 {
        self.keys.distinct as f64 / self.keys.held.max(1) as f64
    }

    /// The calculated size for another number of such keys; for filters, from `tamis plan`.
    pub(crate) fn size_for(&self, contender: Contender, measured: &Measured, keys: u64) -> u64 {
        let planned = match contender {
            Contender::OneHash => Some(one_hash_bytes(keys as f64, self.rate) as u64),
            Contender::Filter(kind) if kind != Kind::Cascade => {
                let plan = Plan::for_rate(kind, keys, self.rate).ok();
                plan.map(|plan| plan.bytes())
            }
            _ => None,
        };
        let of = if contender.is_sized_by_keys() {
            self.keys.held
        } else {
            self.keys.distinct
        };
        planned.unwrap_or((measured.size as f64 * (keys as f64 / of.max(1) as f64)) as u64)
    }

    pub(crate) fn bytes_per_key(&self, size: u64) -> f64 {
        size as f64 / self.keys.held.max(1) as f64
    }
}
