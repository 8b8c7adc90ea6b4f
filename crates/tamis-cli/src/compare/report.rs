//! What was measured.

use super::contender::Contender;
use super::keys::Keys;
use serde::{Deserialize, Serialize};
use tamis::{Kind, Plan};

/// The report of one process to the one that started it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Step {
    /// Bytes that the structure takes, counted: of its file, or of what it has allocated.
    pub(crate) size: u64,
    pub(crate) build_seconds: f64,
    pub(crate) answers: Option<Answers>,
    /// Where the system reports it.
    pub(crate) memory: Option<Memory>,
}

/// The most memory that a process had.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Memory {
    /// All of it, as `/usr/bin/time` reports it.
    pub(crate) peak: u64,
    /// Without the program itself, of which more or less is in memory by chance.
    pub(crate) own: u64,
}

/// Why a process did not do it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Refusal {
    /// It is not for these keys or this rate.
    Unfit(String),
    Failed(String),
}

pub(crate) type StepResult = Result<Step, Refusal>;

/// How it answered.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Answers {
    pub(crate) present: Asked,
    /// `None` where there is nothing to ask for.
    pub(crate) absent: Option<Asked>,
    /// In batches, if it takes those.
    pub(crate) present_in_batches: Option<Asked>,
    pub(crate) absent_in_batches: Option<Asked>,
}

impl Answers {
    /// Of absent keys if there are any, else of present ones, one at a time.
    pub(crate) fn speed(&self) -> f64 {
        self.absent.unwrap_or(self.present).per_second
    }

    /// Takes over what another run did faster: what slows a run down is not the structure.
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
    /// Different keys.
    pub(crate) keys: u64,
    /// Of those, how many it seems to hold.
    pub(crate) yes: u64,
    pub(crate) per_second: f64,
}

/// What is known of one contender.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) contender: Contender,
    pub(crate) result: Result<Measured, Refusal>,
    /// What was run, to be run again.
    pub(crate) commands: Vec<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) size: u64,
    /// Of the process that answers, beyond one that only reads the questions.
    pub(crate) memory: Option<u64>,
    /// Of the process that builds, likewise.
    pub(crate) build_memory: Option<u64>,
    /// All that the process that answers has, and the one that only reads the questions.
    pub(crate) process_memory: Option<u64>,
    pub(crate) baseline_memory: Option<u64>,
    pub(crate) build_seconds: f64,
    /// How many times faster it answered in one run than in another.
    pub(crate) noise: f64,
    pub(crate) answers: Answers,
}

impl Measured {
    /// The part of absent keys that it seemed to hold.
    pub(crate) fn false_yes(&self) -> Option<f64> {
        let absent = self.answers.absent.filter(|asked| asked.keys > 0)?;
        Some(absent.yes as f64 / absent.keys as f64)
    }

    /// Whether it was wrong more often than five deviations beyond a rate would be.
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
    /// How many keys sizes are calculated for.
    pub(crate) for_keys: u64,
    pub(crate) rows: Vec<Row>,
}

impl Comparison {
    /// Those that were measured.
    pub(crate) fn measured(&self) -> impl Iterator<Item = (Contender, &Measured)> {
        let rows = self.rows.iter();
        rows.filter_map(|row| Some((row.contender, row.result.as_ref().ok()?)))
    }

    /// All keys, as a multiple of those that were held.
    pub(crate) fn scale(&self) -> f64 {
        self.keys.distinct as f64 / self.keys.held.max(1) as f64
    }

    /// What it would take for another number of such keys: calculated, and of filters what `tamis plan` says.
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

/// The bytes of a bitmap with one hash for so many keys: with `n` keys in `m` bits a bit is set with probability 1 - (1 - 1/m)^n, which must be
/// the rate.
pub(crate) fn one_hash_bytes(keys: f64, rate: f64) -> f64 {
    let bits = keys / -(-rate).ln_1p();
    (bits / 64.0).ceil() * 8.0
}
