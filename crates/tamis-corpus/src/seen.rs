//! The filter of seen units. Every call into the filter library is here.

use crate::rule::UnitRule;
use std::path::Path;
use tamis::internals::file::FileLock;
use tamis::{AnyFilter, Error, Growing, Hash, Hasher, Open};

/// The most memory that a guess may take, since it may be wrong.
const GUESSED: u64 = 64 << 20;
/// The fewest units that a filter is made for.
const LEAST: u64 = 1 << 12;

/// The units seen so far.
pub struct Seen {
    filter: AnyFilter,
    rule: UnitRule,
}

/// Why a filter can't be used for text.
#[derive(Debug)]
pub enum Unusable {
    /// It could not be read.
    Failed(Error),
    /// Its keys are made by another rule, which this text describes.
    OtherKeys(String),
}

impl Seen {
    /// An empty filter that grows as needed and keeps the rate.
    pub fn new(rule: UnitRule, expected: u64, rate: f64) -> Result<Self, Error> {
        let hasher = Hasher::default().with_rule(rule.key_rule());
        let filter = Growing::with_hasher(expected.max(1), rate, hasher)?.into();
        Ok(Self { filter, rule })
    }

    /// An empty filter for about this many bytes of text. It takes little memory at first, and grows if there is more.
    pub fn sized(rule: UnitRule, text: u64, rate: f64) -> Result<Self, Error> {
        let mut expected = (text / rule.usual_bytes()).clamp(LEAST, u64::MAX >> 8);
        loop {
            match Self::new(rule, expected, rate) {
                Ok(seen) if seen.bytes() <= GUESSED || expected == LEAST => return Ok(seen),
                Err(error) if expected == LEAST => return Err(error),
                _ => expected = (expected / 2).max(LEAST),
            }
        }
    }

    /// Loads a filter, which must hold units of text.
    pub fn load(path: &Path) -> Result<Self, Unusable> {
        let filter = Open::new().load(path).map_err(Unusable::Failed)?;
        let recorded = *filter.hasher().rule();
        match UnitRule::of(&recorded) {
            Some(rule) => Ok(Self { filter, rule }),
            None => Err(Unusable::OtherKeys(recorded.to_string())),
        }
    }

    /// Creates the file, which must not exist.
    pub fn save_new(&self, path: &Path) -> Result<(), Error> {
        self.filter.save_new(path)
    }

    /// Replaces the locked file.
    pub fn save_under(&self, lock: &mut FileLock) -> Result<(), Error> {
        self.filter.update_under(lock)
    }

    /// Replaces a file that only this run uses.
    pub(crate) fn save(&self, path: &Path) -> Result<(), Error> {
        self.filter.save(path)
    }

    /// What its units are.
    pub const fn rule(&self) -> UnitRule {
        self.rule
    }

    pub(crate) const fn hasher(&self) -> &Hasher {
        self.filter.hasher()
    }

    /// Adds units; `new[i]` says whether `units[i]` was new.
    pub(crate) fn insert(&mut self, units: &[Hash], new: &mut [bool]) -> Result<(), Error> {
        self.filter.insert_many(units, new)
    }

    /// Which units were seen.
    pub(crate) fn contains(&self, units: &[Hash], found: &mut [bool]) {
        self.filter.contains_many(units, found);
    }

    /// Its memory in bytes.
    pub fn bytes(&self) -> u64 {
        self.filter.bytes()
    }

    /// How many units it holds.
    pub fn units(&self) -> u64 {
        self.filter.keys().get()
    }

    /// The promised false-positive rate.
    pub fn rate(&self) -> f64 {
        self.filter.rate()
    }

    /// The current rate.
    pub fn rate_now(&self) -> f64 {
        self.filter.rate_now()
    }

    /// The expected number of units that were wrongly taken for seen while it grew to this size.
    pub fn expected_wrong(&self) -> f64 {
        self.filter.expected_wrong()
    }
}
