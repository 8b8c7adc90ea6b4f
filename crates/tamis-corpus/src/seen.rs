//! The filter that remembers units: every call into the library's filters is here.

use crate::rule::UnitRule;
use std::path::Path;
use tamis::internals::file::FileLock;
use tamis::{AnyFilter, Error, Growing, Hash, Hasher, Open};

/// What a guess may cost, for it may be wrong.
const GUESSED: u64 = 64 << 20;
/// Units that a filter is made for at least.
const LEAST: u64 = 1 << 12;

/// What was seen so far.
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
    /// An empty filter, which grows with what it is given and keeps the rate.
    pub fn new(rule: UnitRule, expected: u64, rate: f64) -> Result<Self, Error> {
        let hasher = Hasher::default().with_rule(rule.key_rule());
        let filter = Growing::with_hasher(expected.max(1), rate, hasher)?.into();
        Ok(Self { filter, rule })
    }

    /// An empty filter for about so many bytes of text. It takes little memory at first, and grows if there is more.
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

    /// The filter in a file, which must hold units of text.
    pub fn load(path: &Path) -> Result<Self, Unusable> {
        let filter = Open::new().load(path).map_err(Unusable::Failed)?;
        let recorded = *filter.hasher().rule();
        match UnitRule::of(&recorded) {
            Some(rule) => Ok(Self { filter, rule }),
            None => Err(Unusable::OtherKeys(recorded.to_string())),
        }
    }

    /// Makes the file; it must not exist.
    pub fn save_new(&self, path: &Path) -> Result<(), Error> {
        self.filter.save_new(path)
    }

    /// Replaces the locked file.
    pub fn save_under(&self, lock: &mut FileLock) -> Result<(), Error> {
        self.filter.update_under(lock)
    }

    /// Replaces a file that is ours alone.
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

    /// Which of them were seen.
    pub(crate) fn contains(&self, units: &[Hash], found: &mut [bool]) {
        self.filter.contains_many(units, found);
    }

    /// Bytes of memory it takes.
    pub fn bytes(&self) -> u64 {
        self.filter.bytes()
    }

    /// How many units it holds.
    pub fn units(&self) -> u64 {
        self.filter.keys().get()
    }

    /// The rate of false "yes" it promises.
    pub fn rate(&self) -> f64 {
        self.filter.rate()
    }

    /// The rate now.
    pub fn rate_now(&self) -> f64 {
        self.filter.rate_now()
    }

    /// How many of the units that were added while it grew to this were wrongly taken for seen, as far as one expects.
    pub fn expected_wrong(&self) -> f64 {
        self.filter.expected_wrong()
    }
}
