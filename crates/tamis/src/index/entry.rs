//! The keys of an entry, and their filters.

use crate::error::Error;
use crate::hash::Hash;
use crate::hasher::Hasher;
use crate::index::format::MAX_SPECS;
use crate::index::read::FileIndex;
use crate::key::Key;
use crate::raw::ribbon::compact::{self, Compact, Width};
use crate::raw::sorted::sorted_distinct;
use crate::store::body::Body;

/// Options of a whole index: rate, hash, and which keys of an entry are indexed.
///
/// ```
/// use tamis::index::IndexOptions;
/// use tamis::Hasher;
/// let options = IndexOptions::new(0.01)?
///     .hasher(Hasher::seeded(7))
///     .specs(["row", "row and column"])?;
/// assert_eq!(options.spec_texts(), ["row", "row and column"]);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct IndexOptions {
    pub(super) hasher: Hasher,
    pub(super) rate: f64,
    pub(super) width: Width,
    pub(super) specs: Vec<String>,
}

impl IndexOptions {
    /// An entry that doesn't hold a key is a candidate with a probability of at most `rate`, which
    /// must be between 2^-32 and 0.5. There is one sort of keys, `"key"`, unless you name others
    /// with [`specs`](Self::specs).
    pub fn new(rate: f64) -> Result<Self, Error> {
        Ok(Self {
            hasher: Hasher::default(),
            rate,
            width: Width::for_rate(rate)?,
            specs: vec!["key".into()],
        })
    }

    /// Sets how keys are hashed; the default is [`Hasher::default`].
    pub fn hasher(mut self, hasher: Hasher) -> Self {
        self.hasher = hasher;
        self
    }

    /// Sets the sorts of keys that every entry has, each with a separate filter: 1 to 255 different
    /// names, which the library doesn't interpret.
    pub fn specs<S: Into<String>>(
        mut self,
        specs: impl IntoIterator<Item = S>,
    ) -> Result<Self, Error> {
        self.specs = specs.into_iter().map(Into::into).collect();
        let mut sorted: Vec<&String> = self.specs.iter().collect();
        sorted.sort();
        let twice = sorted.windows(2).any(|pair| pair[0] == pair[1]);
        if !twice && (1..=MAX_SPECS).contains(&self.specs.len()) {
            return Ok(self);
        }
        let got = format_args!("{:?}", self.specs);
        Err(Error::parameter(
            "key specs",
            "1 to 255 different ones",
            got,
        ))
    }

    /// The options the index was made with, which an update needs.
    #[doc(hidden)]
    pub fn of<B: Body>(index: &FileIndex<B>) -> Self {
        Self {
            hasher: index.directory.hasher,
            rate: index.directory.rate,
            width: index.directory.width,
            specs: index.specs().map(|spec| spec.text().into()).collect(),
        }
    }

    /// How keys are hashed.
    #[doc(hidden)]
    pub const fn key_hasher(&self) -> &Hasher {
        &self.hasher
    }

    /// The rate promised.
    #[doc(hidden)]
    pub const fn rate(&self) -> f64 {
        self.rate
    }

    /// The sorts of keys.
    #[doc(hidden)]
    pub fn spec_texts(&self) -> &[String] {
        &self.specs
    }

    /// Checks that entries of this index can be copied to one with these options; otherwise an
    /// [`Error::Unlike`] says why.
    #[doc(hidden)]
    pub fn check_like<B: Body>(&self, index: &FileIndex<B>) -> Result<(), Error> {
        let theirs = Self::of(index);
        self.check_hasher(&theirs.hasher)?;
        if self.width != theirs.width || self.rate != theirs.rate {
            let (ours, theirs) = (self.rate.to_string(), theirs.rate.to_string());
            return Err(unlike("rate", ours, theirs));
        }
        if self.specs != theirs.specs {
            let (ours, theirs) = (&self.specs, &theirs.specs);
            return Err(unlike(
                "key specs",
                format!("{ours:?}"),
                format!("{theirs:?}"),
            ));
        }
        Ok(())
    }

    fn check_hasher(&self, theirs: &Hasher) -> Result<(), Error> {
        if self.hasher.agrees_with(theirs) {
            return Ok(());
        }
        let seed = |hasher: &Hasher| match hasher {
            Hasher::Fast { seed, .. } => format!("{} with seed {seed}", hasher.name()),
            Hasher::Keyed { .. } => format!("{} with a secret", hasher.name()),
        };
        Err(unlike("hash", seed(&self.hasher), seed(theirs)))
    }

    /// Checks that these filters were made with these options.
    pub(super) fn check_filters(&self, filters: &EntryFilters) -> Result<(), Error> {
        self.check_hasher(&filters.hasher)?;
        let (ours, theirs) = (
            (self.width, self.specs.len()),
            (filters.width, filters.filters.len()),
        );
        if ours == theirs {
            return Ok(());
        }
        let text = |(width, specs): (Width, usize)| format!("{}, {specs}", width.rate());
        Err(unlike(
            "rate or number of key specs",
            text(ours),
            text(theirs),
        ))
    }
}

fn unlike(what: &'static str, ours: String, theirs: String) -> Error {
    Error::Unlike { what, ours, theirs }
}

/// Collects the keys of one entry. Keys may repeat; memory is about twice that of the distinct
/// keys.
///
/// ```
/// use tamis::index::{EntryKeys, IndexOptions};
/// let options = IndexOptions::new(0.01)?;
/// let mut keys = EntryKeys::new(&options);
/// for word in "the cat and the dog".split(' ') {
///     keys.add(0, word);
/// }
/// let filters = keys.build()?; // on any thread
/// assert_eq!(filters.keys(0), 4);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct EntryKeys {
    hasher: Hasher,
    width: Width,
    specs: Vec<Distinct>,
    /// Why keys of some specs are unknown.
    reasons: Vec<String>,
}

/// Hashes with many duplicates.
#[derive(Clone, Debug)]
struct Distinct {
    hashes: Vec<Hash>,
    /// When to remove duplicates next.
    full: usize,
    /// Whether there are more keys, which couldn't be read.
    unknown: bool,
}

impl Distinct {
    const LEAST: usize = 1 << 16;

    #[inline]
    fn add(&mut self, hash: Hash) {
        if self.hashes.len() >= self.full {
            self.remove_duplicates();
        }
        self.hashes.push(hash);
    }

    /// Skips sorting if they are already distinct and in order.
    fn into_sorted(self) -> Vec<Hash> {
        if self.hashes.is_sorted_by(|one, next| one < next) {
            return self.hashes;
        }
        sorted_distinct(self.hashes, 1)
    }

    #[cold]
    fn remove_duplicates(&mut self) {
        self.hashes = sorted_distinct(std::mem::take(&mut self.hashes), 1);
        self.full = (2 * self.hashes.len()).max(Self::LEAST);
    }
}

impl EntryKeys {
    /// An empty collection.
    pub fn new(options: &IndexOptions) -> Self {
        let empty = Distinct {
            hashes: Vec::new(),
            full: Distinct::LEAST,
            unknown: false,
        };
        Self {
            hasher: options.hasher,
            width: options.width,
            specs: vec![empty; options.specs.len()],
            reasons: Vec::new(),
        }
    }

    /// Adds a key to the spec with this number.
    ///
    /// # Panics
    /// If the spec doesn't exist.
    #[inline]
    pub fn add(&mut self, spec: usize, key: impl Key) {
        self.specs[spec].add(key.key_hash(&self.hasher));
    }

    /// Adds many keys that are already hashed. If they come all at once, distinct and ascending,
    /// they needn't be sorted.
    ///
    /// ```
    /// use tamis::index::{EntryKeys, IndexOptions};
    /// use tamis::Hash;
    /// let mut keys = EntryKeys::new(&IndexOptions::new(0.01)?);
    /// keys.add_all(0, (0..1000).map(Hash::from_u64).collect());
    /// assert_eq!(keys.build()?.keys(0), 1000);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    ///
    /// # Panics
    /// If the spec doesn't exist.
    pub fn add_all(&mut self, spec: usize, hashes: Vec<Hash>) {
        let spec = &mut self.specs[spec];
        if spec.hashes.is_empty() {
            spec.hashes = hashes;
        } else {
            spec.hashes.extend_from_slice(&hashes);
        }
    }

    /// Records that some keys of the spec with this number are unknown, and why. The entry is then
    /// a candidate for every key of that spec.
    ///
    /// ```
    /// use tamis::index::{EntryKeys, IndexBuilder, IndexOptions};
    /// let options = IndexOptions::new(0.01)?.specs(["title", "word"])?;
    /// let mut keys = EntryKeys::new(&options);
    /// keys.add(0, "Ulysses");
    /// keys.set_unknown(1, "the text is encrypted");
    /// let mut builder = IndexBuilder::in_memory(&options);
    /// builder.add("book", None, &keys.build()?)?;
    /// let index = builder.finish()?;
    /// assert!(index.spec("title")?.candidates("Dubliners").is_empty());
    /// assert_eq!(index.spec("word")?.candidates("river").len(), 1);
    /// assert_eq!(index.entry(0).unindexed(), Some("the text is encrypted"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    ///
    /// # Panics
    /// If the spec doesn't exist.
    pub fn set_unknown(&mut self, spec: usize, reason: &str) {
        let spec = &mut self.specs[spec];
        spec.unknown = true;
        spec.hashes = Vec::new();
        if !self.reasons.iter().any(|known| known == reason) {
            self.reasons.push(reason.into());
        }
    }

    /// Builds the filters of these keys. This is the slow part; threads can build different entries
    /// in parallel.
    pub fn build(self) -> Result<EntryFilters, Error> {
        let width = self.width;
        let build = |keys: Distinct| {
            if keys.unknown {
                return Ok(BuiltFilter::Unknown);
            }
            let sorted = keys.into_sorted();
            let keys = sorted.len() as u64;
            let table = match keys {
                0 => None,
                _ => Some(compact::build(&sorted, width)?),
            };
            Ok(BuiltFilter::Of { keys, table })
        };
        let filters: Result<_, Error> = self.specs.into_iter().map(build).collect();
        Ok(EntryFilters {
            hasher: self.hasher,
            width,
            filters: filters?,
            reason: self.reasons.join("; "),
        })
    }
}

/// The finished filters of one entry, for [`IndexBuilder::add`](super::IndexBuilder::add).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryFilters {
    hasher: Hasher,
    width: Width,
    pub(super) filters: Vec<BuiltFilter>,
    /// Why some keys are unknown.
    pub(super) reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BuiltFilter {
    Unknown,
    Of { keys: u64, table: Option<Compact> },
}

impl EntryFilters {
    /// Distinct keys of the spec with this number; 0 if unknown.
    ///
    /// # Panics
    /// If the spec doesn't exist.
    pub fn keys(&self, spec: usize) -> u64 {
        match self.filters[spec] {
            BuiltFilter::Unknown => 0,
            BuiltFilter::Of { keys, .. } => keys,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::IndexBuilder;

    /// With a different hash, every answer about the entry would be wrong.
    #[test]
    fn keys_hashed_otherwise_are_refused() {
        let options = IndexOptions::new(0.01).unwrap();
        let other = options.clone().hasher(Hasher::seeded(7));
        let filters = EntryKeys::new(&other).build().unwrap();
        let mut builder = IndexBuilder::in_memory(&options);
        let refused = builder.add("entry", None, &filters).unwrap_err();
        assert!(
            matches!(refused, Error::Unlike { what: "hash", .. }),
            "{refused}"
        );
        let filters = EntryKeys::new(&options).build().unwrap();
        builder.add("entry", None, &filters).unwrap();
        assert_eq!(builder.len(), 1);
    }
}
