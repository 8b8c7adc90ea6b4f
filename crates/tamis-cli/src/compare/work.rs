//! The keys, and passing them to contenders. Reading keys is never part of a measured time.

use super::contender::Contender;
use super::key_file::{self, KeyReader};
use super::keys::{ABSENT, HELD, PRESENT};
use super::report::{Answers, Asked, Step};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Querying repeats until it took this long: a hundred keys are queried many times.
const LONG_ENOUGH: Duration = Duration::from_millis(50);
/// Querying stops after this long, including reading, even if some keys are left.
const LONG: Duration = Duration::from_secs(3);

/// What all steps need to know, in a file next to the keys.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub(crate) rate: f64,
    pub(crate) held: u64,
    pub(crate) range: Option<(i128, i128)>,
    /// Whether the absent keys may be given to a cascade as its allow list.
    pub(crate) absent_is_given: bool,
}

impl Settings {
    const NAME: &str = "settings.json";

    pub(crate) fn save(&self, dir: &Path) -> Result<()> {
        let path = dir.join(Self::NAME);
        let text = serde_json::to_string(self)?;
        std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))
    }

    fn load(dir: &Path) -> Result<Self> {
        let path = dir.join(Self::NAME);
        let text = std::fs::read_to_string(&path);
        let text = text.with_context(|| format!("reading {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("reading {}", path.display()))
    }
}

/// The contender can't hold these keys or reach this rate. Not a failure.
#[derive(Debug)]
pub(crate) struct Unfit(pub(crate) String);

impl std::fmt::Display for Unfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unfit {}

/// The keys and the folder.
pub(crate) struct Work {
    pub(crate) settings: Settings,
    dir: PathBuf,
}

impl Work {
    pub(crate) fn open(dir: &Path) -> Result<Self> {
        let settings = Settings::load(dir)?;
        let dir = dir.to_owned();
        Ok(Self { settings, dir })
    }

    /// The file of a contender that has one.
    pub(crate) fn file(&self, contender: Contender) -> PathBuf {
        self.dir.join(contender.name())
    }

    /// Passes the keys of a file to `each`, in chunks.
    pub(crate) fn each(
        &self,
        name: &str,
        mut each: impl FnMut(&[&[u8]]) -> Result<()>,
    ) -> Result<()> {
        let reading = || format!("reading the keys again: {name}");
        let mut reader = KeyReader::open(&self.dir.join(name)).with_context(reading)?;
        loop {
            let keys = reader.chunk().with_context(reading)?;
            if keys.is_empty() {
                return Ok(());
            }
            each(&keys)?;
        }
    }

    /// Passes all keys to hold to `add`; returns the seconds it took.
    pub(crate) fn add_held(&self, add: impl FnMut(&[&[u8]]) -> Result<()>) -> Result<f64> {
        self.add_from(HELD, add)
    }

    /// The same with the keys of a file.
    pub(crate) fn add_from(
        &self,
        name: &str,
        mut add: impl FnMut(&[&[u8]]) -> Result<()>,
    ) -> Result<f64> {
        let mut seconds = 0.0;
        self.each(name, |keys| {
            let start = Instant::now();
            let added = add(keys);
            seconds += start.elapsed().as_secs_f64();
            added
        })?;
        Ok(seconds)
    }

    /// Queries one key at a time.
    pub(crate) fn ask_singly(
        &self,
        mut contains: impl FnMut(&[u8]) -> Result<bool>,
    ) -> Result<Answers> {
        let mut ask = |name| {
            self.ask(name, |keys| {
                let mut yes = 0;
                for key in keys {
                    yes += u64::from(contains(key)?);
                }
                Ok(yes)
            })
        };
        Ok(Answers {
            present: ask(PRESENT)?.unwrap_or_default(),
            absent: ask(ABSENT)?,
            ..Answers::default()
        })
    }

    /// Queries many keys at once.
    pub(crate) fn ask_in_batches(
        &self,
        answers: &mut Answers,
        contains: impl Fn(&[&[u8]], &mut [bool]),
    ) -> Result<()> {
        let mut found = Vec::new();
        let mut ask = |name| {
            self.ask(name, |keys| {
                found.resize(keys.len(), false);
                contains(keys, &mut found);
                Ok(found.iter().map(|yes| u64::from(*yes)).sum())
            })
        };
        answers.present_in_batches = ask(PRESENT)?;
        answers.absent_in_batches = ask(ABSENT)?;
        Ok(())
    }

    /// Queries all keys of a file: repeatedly if they are few, only some if they take too long.
    fn ask(
        &self,
        name: &str,
        mut count_yes: impl FnMut(&[&[u8]]) -> Result<u64>,
    ) -> Result<Option<Asked>> {
        let path = self.dir.join(name);
        let begun = Instant::now();
        let mut spent = Duration::ZERO;
        let mut seconds_a_key = Vec::new();
        let mut first = Asked::default();
        let mut is_first = true;
        loop {
            let mut reader = KeyReader::open(&path)?;
            loop {
                let mut keys = reader.chunk()?;
                if keys.is_empty() {
                    break;
                }
                if !is_first {
                    // Reading the clock after every few keys would dominate the times and disturb the caches.
                    keys = keys.repeat(key_file::fit(&keys));
                }
                let start = Instant::now();
                let yes = black_box(count_yes(&keys)?);
                let took = start.elapsed();
                spent += took;
                seconds_a_key.push(took.as_secs_f64() / keys.len() as f64);
                if is_first {
                    first.keys += keys.len() as u64;
                    first.yes += yes;
                }
                if begun.elapsed() > LONG {
                    break;
                }
            }
            is_first = false;
            if seconds_a_key.is_empty() {
                return Ok(None);
            }
            if spent >= LONG_ENOUGH || begun.elapsed() > LONG {
                break;
            }
        }
        // The median leaves out interruptions.
        let middle = seconds_a_key.len() / 2;
        let (_, median, _) = seconds_a_key.select_nth_unstable_by(middle, f64::total_cmp);
        first.per_second = 1.0 / median.max(1e-12);
        Ok(Some(first))
    }
}

/// The step report of a built file.
pub(crate) fn built(path: &Path, build_seconds: f64) -> Result<Step> {
    Ok(Step {
        size: std::fs::metadata(path)?.len(),
        build_seconds,
        ..Step::default()
    })
}

/// The step report of a queried file.
pub(crate) fn answered(path: &Path, answers: Answers) -> Result<Step> {
    Ok(Step {
        size: std::fs::metadata(path)?.len(),
        answers: Some(answers),
        ..Step::default()
    })
}
