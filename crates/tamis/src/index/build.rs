//! Making an index: the keys of an entry, their filters, and the file.

use super::format::{EntryRecord, FilterRecord, Layout, MAX_SPECS};
use super::pages::Summing;
use super::stamp::Stamp;
use super::{FileIndex, IndexBytes};
use crate::error::Error;
use crate::hash::Hash;
use crate::hasher::Hasher;
use crate::raw::header::HEADER_LEN;
use crate::raw::ribbon::compact::{self, Compact, Width};
use crate::raw::sorted::sorted_distinct;
use crate::store::replace::{Existing, Replacement};
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use xxhash_rust::xxh3::Xxh3;

/// What applies to a whole index: rate, hash, and which keys of an entry are
/// indexed.
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
    hasher: Hasher,
    rate: f64,
    width: Width,
    specs: Vec<String>,
}

impl IndexOptions {
    /// An entry that does not hold a key is a candidate with a probability of
    /// at most `rate`, which must be between 2^-32 and 0.5. There is one sort of
    /// keys, `"key"`, unless you name others with [`specs`](Self::specs).
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

    /// Sets the sorts of keys that every entry has, each with its own filter:
    /// 1 to 255 different names, which mean nothing to the library.
    pub fn specs<S: Into<String>>(
        mut self,
        specs: impl IntoIterator<Item = S>,
    ) -> Result<Self, Error> {
        self.specs = specs.into_iter().map(Into::into).collect();
        let mut sorted: Vec<&String> = self.specs.iter().collect();
        sorted.sort();
        let twice = sorted.windows(2).any(|pair| pair[0] == pair[1]);
        match twice || !(1..=MAX_SPECS).contains(&self.specs.len()) {
            false => Ok(self),
            true => Err(Error::parameter(
                "key specs",
                "1 to 255 different ones",
                format_args!("{:?}", self.specs),
            )),
        }
    }

    /// The options the index was made with; an update needs the same.
    pub fn of<B: AsRef<[u8]>>(index: &FileIndex<B>) -> Self {
        Self {
            hasher: index.layout.hasher,
            rate: index.layout.rate,
            width: index.layout.width,
            specs: index.specs().map(|spec| spec.text().into()).collect(),
        }
    }

    /// How keys are hashed.
    pub const fn key_hasher(&self) -> &Hasher {
        &self.hasher
    }

    /// The rate promised.
    pub const fn rate(&self) -> f64 {
        self.rate
    }

    /// The sorts of keys.
    pub fn spec_texts(&self) -> &[String] {
        &self.specs
    }

    /// Checks that entries of this index can be copied to one with these
    /// options; if not, an [`Error::Unlike`] says why.
    pub fn check_like<B: AsRef<[u8]>>(&self, index: &FileIndex<B>) -> Result<(), Error> {
        let unlike = |what, ours: String, theirs: String| Error::Unlike { what, ours, theirs };
        let theirs = Self::of(index);
        if !self.hasher.agrees_with(&theirs.hasher) {
            let seed = |hasher: &Hasher| match hasher {
                Hasher::Fast { seed, .. } => format!("{} with seed {seed}", hasher.name()),
                Hasher::Keyed { .. } => format!("{} with a secret", hasher.name()),
            };
            return Err(unlike("hash", seed(&self.hasher), seed(&theirs.hasher)));
        }
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
}

/// Collects the keys of one entry. Keys may repeat; memory grows to about twice
/// the number of distinct keys.
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
    /// Why keys of some specs are not known.
    reasons: Vec<String>,
}

/// Hashes, many of which repeat.
#[derive(Clone, Debug)]
struct Distinct {
    hashes: Vec<Hash>,
    /// When to remove duplicates next.
    full: usize,
    /// Whether there are more keys that could not be read.
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

    #[cold]
    fn remove_duplicates(&mut self) {
        self.hashes = sorted_distinct(std::mem::take(&mut self.hashes), 1);
        self.full = (2 * self.hashes.len()).max(Self::LEAST);
    }
}

impl EntryKeys {
    /// No keys yet.
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
    /// If there is no such spec.
    #[inline]
    pub fn add(&mut self, spec: usize, key: impl AsRef<[u8]>) {
        self.add_hash(spec, self.hasher.hash(key.as_ref()));
    }

    /// Adds a key that is already hashed.
    ///
    /// # Panics
    /// If there is no such spec.
    #[inline]
    pub fn add_hash(&mut self, spec: usize, hash: Hash) {
        self.specs[spec].add(hash);
    }

    /// Records that not all keys of the spec with this number are known, and
    /// why. The entry is then a candidate for every key of that spec.
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
    /// If there is no such spec.
    pub fn set_unknown(&mut self, spec: usize, reason: &str) {
        let spec = &mut self.specs[spec];
        spec.unknown = true;
        spec.hashes = Vec::new();
        if !self.reasons.iter().any(|known| known == reason) {
            self.reasons.push(reason.into());
        }
    }

    /// Builds the filters of these keys. This is the slow part; different
    /// entries can be built on different threads.
    pub fn build(self) -> Result<EntryFilters, Error> {
        let width = self.width;
        let build = |keys: Distinct| {
            if keys.unknown {
                return Ok(BuiltFilter::Unknown);
            }
            let sorted = sorted_distinct(keys.hashes, 1);
            let keys = sorted.len() as u64;
            let table = match keys {
                0 => None,
                _ => Some(compact::build(&sorted, width)?),
            };
            Ok(BuiltFilter::Of { keys, table })
        };
        let filters: Result<_, Error> = self.specs.into_iter().map(build).collect();
        Ok(EntryFilters {
            width,
            filters: filters?,
            reason: self.reasons.join("; "),
        })
    }
}

/// The finished filters of one entry, for [`IndexBuilder::add`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryFilters {
    width: Width,
    filters: Vec<BuiltFilter>,
    /// Why some are unknown.
    reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum BuiltFilter {
    Unknown,
    Of { keys: u64, table: Option<Compact> },
}

impl EntryFilters {
    /// Distinct keys of the spec with this number; 0 if they are not known.
    ///
    /// # Panics
    /// If there is no such spec.
    pub fn keys(&self, spec: usize) -> u64 {
        match self.filters[spec] {
            BuiltFilter::Unknown => 0,
            BuiltFilter::Of { keys, .. } => keys,
        }
    }
}

/// Puts an index together, entry by entry.
///
/// Filters are written to the file as they arrive, so only the directory is
/// held in memory: 32 bytes per filter, 48 per entry, and its id. The same
/// entries in the same order give the same bytes.
///
/// ```
/// use tamis::index::{EntryKeys, FileIndex, IndexBuilder, IndexOptions};
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("shelf.index");
/// let options = IndexOptions::new(0.01)?;
/// let mut builder = IndexBuilder::create(&path, &options)?;
/// for (id, text) in [("poem", "roses are red"), ("song", "roses in the rain")] {
///     let mut keys = EntryKeys::new(&options);
///     text.split(' ').for_each(|word| keys.add(0, word));
///     builder.add(id, None, &keys.build()?)?;
/// }
/// let old = builder.finish()?; // until now, nothing was at `path`
///
/// // The next day: what did not change is copied.
/// let mut builder = IndexBuilder::create(&path, &IndexOptions::of(&old))?;
/// builder.copy(&old.entry(1))?;
/// builder.add_unindexed("picture", None, "not a text")?;
/// let new = builder.finish()?;
/// let ids: Vec<_> = new.candidates("rain").iter().map(|entry| entry.id()).collect();
/// assert_eq!(ids, [&b"song"[..], b"picture"]);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug)]
pub struct IndexBuilder {
    options: IndexOptions,
    sink: Sink,
    /// Whether something could not be written, so that the rest is misplaced.
    broken: bool,
    /// Where the next body goes.
    at: u64,
    sums: Summing,
    /// Records of each spec's filters.
    filters: Vec<Vec<u8>>,
    entries: Vec<u8>,
    count: usize,
    text: Vec<u8>,
}

#[derive(Debug)]
enum Sink {
    Memory(Vec<u8>),
    File {
        file: Replacement,
        /// What is not yet written.
        buffer: Vec<u8>,
    },
}

/// Bytes that are written to a file at once.
const BUFFER: usize = 1 << 20;

impl IndexBuilder {
    /// Starts an index in memory.
    pub fn in_memory(options: &IndexOptions) -> Self {
        Self::new(options, Sink::Memory(vec![0; HEADER_LEN]))
    }

    /// Starts an index in a file. When the builder [finishes](Self::finish), the
    /// file appears as a whole and replaces any file with its name. Until then,
    /// nothing changes.
    ///
    /// Two builders working on the same name at the same time would not see
    /// each other's entries: take a [`FileLock`](crate::FileLock) before you open
    /// the old index, and drop it after the new one is finished.
    pub fn create(path: impl AsRef<Path>, options: &IndexOptions) -> Result<Self, Error> {
        let mut file = Replacement::begin(path.as_ref(), Existing::Replace)?;
        let path = file.path().to_owned();
        // Locked before it takes the old one's name: who waits for the lock of
        // the old file must not slip in between.
        file.file().lock().map_err(Error::io("locking", &path))?;
        let buffer = vec![0; HEADER_LEN];
        Ok(Self::new(options, Sink::File { file, buffer }))
    }

    fn new(options: &IndexOptions, sink: Sink) -> Self {
        let texts = options.specs.iter();
        Self {
            sink,
            broken: false,
            at: HEADER_LEN as u64,
            sums: Summing::new(HEADER_LEN),
            filters: vec![Vec::new(); options.specs.len()],
            entries: Vec::new(),
            count: 0,
            text: texts.flat_map(|spec| spec.bytes()).collect(),
            options: options.clone(),
        }
    }

    /// The number of entries so far.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether there is no entry yet.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds an entry: a file with its stamp, or any set of keys.
    pub fn add(
        &mut self,
        id: impl AsRef<[u8]>,
        stamp: Option<Stamp>,
        filters: &EntryFilters,
    ) -> Result<(), Error> {
        let (ours, theirs) = (
            (self.options.width, self.options.specs.len()),
            (filters.width, filters.filters.len()),
        );
        if ours != theirs {
            return Err(Error::Unlike {
                what: "rate or number of key specs",
                ours: format!("{}, {}", ours.0.rate(), ours.1),
                theirs: format!("{}, {}", theirs.0.rate(), theirs.1),
            });
        }
        self.add_text(id.as_ref(), &filters.reason, stamp)?;
        let mut body = Vec::new();
        for (spec, filter) in filters.filters.iter().enumerate() {
            body.clear();
            let record = match filter {
                BuiltFilter::Unknown => FilterRecord::UNKNOWN,
                BuiltFilter::Of { keys, table } => {
                    let words = table.iter().flat_map(|table| &table.words);
                    body.extend(words.flat_map(|word| word.to_le_bytes()));
                    FilterRecord {
                        offset: 0,
                        keys: *keys,
                        shape: table.as_ref().map_or([0; 2], |table| table.shape),
                    }
                }
            };
            self.add_filter(spec, record, &body)?;
        }
        Ok(())
    }

    /// Adds an entry whose keys are not known, such as a file that can't be
    /// read. It is a candidate for every key.
    pub fn add_unindexed(
        &mut self,
        id: impl AsRef<[u8]>,
        stamp: Option<Stamp>,
        reason: &str,
    ) -> Result<(), Error> {
        self.add_text(id.as_ref(), reason, stamp)?;
        for spec in 0..self.filters.len() {
            self.add_filter(spec, FilterRecord::UNKNOWN, &[])?;
        }
        Ok(())
    }

    /// Adds an entry of another index unchanged. Its filters are copied, not
    /// rebuilt, and checked against their checksums on the way.
    ///
    /// Both indexes must have been made with equal [options](IndexOptions).
    pub fn copy<B: AsRef<[u8]>>(&mut self, entry: &super::Entry<'_, B>) -> Result<(), Error> {
        self.options.check_like(entry.index)?;
        entry.verify()?;
        let (layout, bytes) = (&entry.index.layout, entry.index.bytes());
        self.add_text(
            entry.id(),
            entry.unindexed().unwrap_or_default(),
            entry.stamp(),
        )?;
        for spec in 0..layout.specs {
            let record = layout.filter(bytes, spec, entry.number);
            self.add_filter(spec, record, &bytes[layout.body_range(&record)])?;
        }
        Ok(())
    }

    fn add_text(&mut self, id: &[u8], reason: &str, stamp: Option<Stamp>) -> Result<(), Error> {
        let id_len = u32::try_from(id.len()).map_err(|_| {
            Error::parameter("id", "less than 4 GiB", format_args!("{} bytes", id.len()))
        })?;
        self.text.extend_from_slice(id);
        self.text.extend_from_slice(reason.as_bytes());
        let record = EntryRecord::new(self.text.len() as u64, id_len, stamp);
        self.entries.extend_from_slice(&record.encode());
        self.count += 1;
        Ok(())
    }

    fn add_filter(
        &mut self,
        spec: usize,
        mut record: FilterRecord,
        body: &[u8],
    ) -> Result<(), Error> {
        record.offset = match body {
            [] => 0,
            _ => self.at,
        };
        self.at += body.len() as u64;
        self.sums.update(body);
        self.filters[spec].extend_from_slice(&record.encode());
        self.sink.write(body).inspect_err(|_| self.broken = true)
    }

    /// Writes the directory and gives the index its name. Returns the new index,
    /// mapped if it is in a file.
    pub fn finish(mut self) -> Result<FileIndex, Error> {
        if self.broken {
            return Err(Error::Io {
                action: "finishing the index",
                path: None,
                source: io::Error::other("an entry before could not be written"),
            });
        }
        let mut ends = Vec::new();
        let mut end = 0;
        for spec in &self.options.specs {
            end += spec.len() as u64;
            ends.extend_from_slice(&end.to_le_bytes());
        }
        let layout = Layout {
            hasher: self.options.hasher,
            rate: self.options.rate,
            width: self.options.width,
            entries: self.count,
            specs: self.options.specs.len(),
            directory: self.at as usize,
            text_len: self.text.len(),
        };
        let mut sum = Xxh3::new();
        let sums = self.sums.finish();
        let parts = self
            .filters
            .iter()
            .chain([&self.entries, &sums, &ends, &self.text]);
        for part in parts {
            sum.update(part);
            self.sink.write(part)?;
        }
        let bytes = self.sink.finish(&layout.encode(sum.digest()))?;
        Ok(FileIndex::with_layout(bytes, layout))
    }
}

impl Sink {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        match self {
            Self::Memory(all) => all.extend_from_slice(bytes),
            Self::File { file, buffer } => {
                buffer.extend_from_slice(bytes);
                if buffer.len() >= BUFFER {
                    let written = file.file().write_all(buffer);
                    written.map_err(Error::io("writing", file.path()))?;
                    buffer.clear();
                }
            }
        }
        Ok(())
    }

    /// Writes the rest, and the header before all.
    fn finish(self, header: &[u8; HEADER_LEN]) -> Result<IndexBytes, Error> {
        match self {
            Self::Memory(mut all) => {
                all[..HEADER_LEN].copy_from_slice(header);
                Ok(IndexBytes::heap(all))
            }
            Self::File { mut file, buffer } => {
                let end = |file: &mut File| -> io::Result<()> {
                    file.write_all(&buffer)?;
                    file.seek(SeekFrom::Start(0))?;
                    file.write_all(header)
                };
                end(file.file()).map_err(Error::io("writing", file.path()))?;
                let path = file.path().to_owned();
                let file = file.place()?;
                // A mapping would keep the lock.
                file.unlock().map_err(Error::io("unlocking", &path))?;
                IndexBytes::map(&file, &path)
            }
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// A caller that continues after a failed write gets an error, not an index
    /// with a hole in it.
    #[test]
    fn a_failed_write_is_not_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index");
        let options = IndexOptions::new(0.01).unwrap();
        let mut builder = IndexBuilder::create(&path, &options).unwrap();
        let mut keys = EntryKeys::new(&options);
        (0..10_000u64).for_each(|i| keys.add(0, i.to_le_bytes()));
        let filters = keys.build().unwrap();
        // A file that takes nothing.
        if let Sink::File { file, buffer } = &mut builder.sink {
            *file.file() = File::open(dir.path()).unwrap();
            buffer.resize(BUFFER, 0);
        }
        assert!(builder.add("lost", None, &filters).is_err());
        if let Sink::File { buffer, .. } = &mut builder.sink {
            buffer.clear();
        }
        builder.add("kept", None, &filters).unwrap();
        assert!(builder.finish().is_err());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
