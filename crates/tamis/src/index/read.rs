//! Reading and querying an index.

use crate::error::Error;
use crate::filter::keys::hashed;
use crate::hasher::{Hasher, SecretKey};
use crate::index::format::{Directory, FilterRecord, MAGIC_BYTES, corrupt};
use crate::index::pages::Pages;
use crate::index::query::{self, Filters};
use crate::key::Key;
use crate::raw::header::HEADER_LEN;
use crate::store::body::{Body, Map};
use crate::store::bytes;
use crate::store::stamp::Stamp;
#[cfg(feature = "files")]
use crate::store::{
    mode::Readers,
    replace::{Existing, open_regular, write_atomically},
};
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
#[cfg(feature = "files")]
use std::{
    fs::File,
    io::{Read, Seek, SeekFrom, Write},
    path::Path,
};

/// Finds which of many entries, files or sets of keys, may hold a key.
///
/// Every entry has an id and a small static filter of its keys, or one for each *spec*: an index of
/// table files may have one for rows and another for pairs of row and column. A key is hashed once
/// and looked up in the filters of all entries. An entry that holds the key is always a candidate;
/// any other is a candidate at most at the promised rate.
///
/// ```
/// use tamis::index::{EntryKeys, FileIndex, IndexBuilder, IndexOptions};
///
/// let options = IndexOptions::new(0.01)?;
/// let mut builder = IndexBuilder::in_memory(&options);
/// for (id, rows) in [("sf1", ["r1", "r2"]), ("sf2", ["r3", "r4"])] {
///     let mut keys = EntryKeys::new(&options);
///     rows.iter().for_each(|row| keys.add(0, row));
///     builder.add(id, None, &keys.build()?)?;
/// }
/// let index = builder.finish()?;
/// let candidates = index.candidates("r1");
/// assert_eq!(candidates.len(), 1); // sf2 is not opened
/// assert_eq!(candidates[0].id(), b"sf1");
/// # Ok::<(), tamis::Error>(())
/// ```
///
/// Opening an index reads its directory into memory and checks it. The filters stay in the mapped
/// file. They are compared with their checksums, page by page, when an answer depends on them: an
/// entry is ruled out only if the pages involved are intact. Damage adds candidates; it never
/// causes a false "no". [`verify`](Self::verify) checks all filters.
///
/// An index is never changed in place. [`IndexBuilder`](super::IndexBuilder) makes a new one from an
/// old one, copying unchanged entries.
///
/// `B` owns the filters: [`Map`] (in memory, or a file mapped for reading) or
/// `&[u8]`.
pub struct FileIndex<B = Map> {
    bodies: B,
    pub(super) directory: Directory,
    pages: Pages,
}

impl<B> fmt::Debug for FileIndex<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileIndex")
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

/// The system's read-ahead on a page fault in a mapping.
#[cfg(feature = "files")]
const READ_AHEAD: usize = 128 << 10;

#[cfg(feature = "files")]
impl FileIndex {
    /// Maps an index file. This reads and checks the directory: 32 bytes per filter, 48 per entry,
    /// and its id. A query reads only the parts of filters that it needs.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(path.as_ref(), None)
    }

    /// Maps a keyed index whose secret isn't in the file.
    #[doc(hidden)]
    pub fn open_keyed(path: impl AsRef<Path>, key: &SecretKey) -> Result<Self, Error> {
        Self::open_with(path.as_ref(), Some(key))
    }

    fn open_with(path: &Path, key: Option<&SecretKey>) -> Result<Self, Error> {
        let reading = || Error::io("reading", path);
        let mut file = open_regular(path, false)?;
        let len = file.metadata().map_err(reading())?.len();
        let directory = Directory::decode(len, key, |range| {
            let mut bytes = Vec::new();
            file.seek(SeekFrom::Start(range.start))
                .and_then(|_| {
                    (&file)
                        .take(range.end - range.start)
                        .read_to_end(&mut bytes)
                })
                .map_err(reading())?;
            Ok(bytes)
        })?;
        Self::map(&file, path, directory)
    }

    pub(super) fn map(file: &File, path: &Path, directory: Directory) -> Result<Self, Error> {
        let bodies = Map::of_file(file, path, HEADER_LEN as u64, directory.body_len())?;
        // A query reads small filters roughly in order, where read-ahead helps; in large ones it
        // needs a page each.
        if directory.at / directory.specs > READ_AHEAD * directory.entries {
            bodies.advise_random();
        }
        Ok(Self::new(bodies, directory))
    }
}

impl FileIndex {
    /// The index in these bytes.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, Error> {
        let view = FileIndex::view(&bytes)?;
        Self::in_memory(view.bodies, view.directory)
    }

    pub(super) fn in_memory(bodies: &[u8], directory: Directory) -> Result<Self, Error> {
        Ok(Self::new(Map::of_bytes(bodies)?, directory))
    }

    /// Whether these bytes start an index; `false` for a filter.
    ///
    /// ```
    /// use tamis::index::{FileIndex, IndexBuilder, IndexOptions};
    /// let empty = IndexBuilder::in_memory(&IndexOptions::new(0.01)?).finish()?;
    /// assert!(FileIndex::is_index(&empty.to_bytes()));
    /// assert!(!FileIndex::is_index(b"TAMIS"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[doc(hidden)]
    pub fn is_index(beginning: &[u8]) -> bool {
        beginning.starts_with(&MAGIC_BYTES)
    }
}

impl<'a> FileIndex<&'a [u8]> {
    /// The index in bytes that the caller owns, at any alignment.
    pub fn view(bytes: &'a [u8]) -> Result<Self, Error> {
        Self::view_with(bytes, None)
    }

    /// The same for a keyed index whose secret isn't in the bytes.
    #[doc(hidden)]
    pub fn view_keyed(bytes: &'a [u8], key: &SecretKey) -> Result<Self, Error> {
        Self::view_with(bytes, Some(key))
    }

    fn view_with(bytes: &'a [u8], key: Option<&SecretKey>) -> Result<Self, Error> {
        let directory = Directory::decode(bytes.len() as u64, key, |range| {
            Ok(bytes[range.start as usize..range.end as usize].to_vec())
        })?;
        Ok(Self::new(&bytes[HEADER_LEN..directory.at], directory))
    }
}

impl<B: Body> FileIndex<B> {
    fn new(bodies: B, directory: Directory) -> Self {
        Self {
            pages: Pages::new(&directory),
            bodies,
            directory,
        }
    }

    pub(super) fn filters(&self) -> Filters<'_, B::Word> {
        Filters {
            directory: &self.directory,
            bodies: self.bodies.words(),
            pages: &self.pages,
        }
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.directory.entries
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.directory.entries == 0
    }

    /// How keys are hashed.
    pub fn hasher(&self) -> &Hasher {
        &self.directory.hasher
    }

    /// The promised rate: the maximum probability that an entry without the key is a candidate.
    #[doc(hidden)]
    pub fn rate(&self) -> f64 {
        self.directory.rate
    }

    /// The entry with this number; entries are numbered in the order of adding.
    ///
    /// # Panics
    /// If the entry doesn't exist.
    #[doc(hidden)]
    pub fn entry(&self, number: usize) -> Entry<'_, B> {
        assert!(number < self.len(), "entry {number} of {}", self.len());
        Entry {
            index: self,
            number,
        }
    }

    /// All entries, in the order of adding.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = Entry<'_, B>> {
        (0..self.len()).map(|number| self.entry(number))
    }

    /// The number of each entry by its id; if ids repeat, the last entry's.
    #[doc(hidden)]
    pub fn by_id(&self) -> HashMap<&[u8], usize> {
        self.entries()
            .map(|entry| (entry.id(), entry.number))
            .collect()
    }

    /// The sorts of keys in the index.
    #[doc(hidden)]
    pub fn specs(&self) -> impl ExactSizeIterator<Item = Spec<'_, B>> {
        (0..self.directory.specs).map(|number| Spec {
            index: self,
            number,
        })
    }

    /// The sort of keys with this name, ready for look-ups. If it doesn't exist, the error lists
    /// those that do.
    ///
    /// ```
    /// use tamis::index::{IndexBuilder, IndexOptions};
    /// let options = IndexOptions::new(0.01)?.specs(["word", "line"])?;
    /// let index = IndexBuilder::in_memory(&options).finish()?;
    /// assert!(index.spec("line")?.candidates("a whole line").is_empty());
    /// assert!(index.spec("page").is_err());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn spec(&self, text: &str) -> Result<Spec<'_, B>, Error> {
        let found = self.specs().find(|spec| spec.text() == text);
        found.ok_or_else(|| Error::NoSpec {
            spec: text.into(),
            specs: self.specs().map(|spec| spec.text().into()).collect(),
        })
    }

    /// The entries that may hold the key, by the first spec, in order.
    pub fn candidates(&self, key: impl Key) -> Vec<Entry<'_, B>> {
        let first = Spec {
            index: self,
            number: 0,
        };
        first.candidates(key)
    }

    /// Compares all filters with their checksums. Everything else was checked on opening.
    pub fn verify(&self) -> Result<(), Error> {
        self.check_words(0..self.bodies.words().len())
    }

    fn check_words(&self, words: Range<usize>) -> Result<(), Error> {
        let (directory, bodies) = (&self.directory, self.bodies.words());
        if self.pages.are_sound(directory, bodies, words) {
            return Ok(());
        }
        Err(corrupt(
            "filter checksum",
            "that of the filter that was written",
            "another one",
        ))
    }

    /// The sizes of the index and its parts.
    #[doc(hidden)]
    pub fn info(&self) -> IndexInfo {
        let directory = &self.directory;
        let specs: u64 = self.specs().map(|spec| spec.text().len() as u64).sum();
        let unindexed = |entry: &Entry<'_, B>| entry.unindexed().is_some();
        IndexInfo {
            entries: self.len(),
            unindexed: self.entries().filter(unindexed).count(),
            keys: self.specs().map(|spec| spec.keys()).collect(),
            filter_bytes: directory.body_len(),
            directory_bytes: (HEADER_LEN + directory.text_at()) as u64 + specs,
            name_bytes: directory.text_len as u64 - specs,
        }
    }

    /// All bytes of the index, as in its file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = self.directory.header().to_vec();
        let bodies = self.bodies.words();
        out.extend(bytes::read(&[bodies], 0, size_of_val(bodies)));
        out.extend_from_slice(&self.directory.bytes);
        out
    }

    /// Writes the index to a file, which appears or is replaced as a whole.
    #[cfg(feature = "files")]
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        write_atomically(path.as_ref(), Existing::Replace, Readers::AsUsual, |file| {
            file.write_all(&self.to_bytes())
        })
        .map(drop)
    }
}

/// The sizes of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexInfo {
    /// All entries.
    pub entries: usize,
    /// Entries with some unknown keys.
    pub unindexed: usize,
    /// For each spec, the distinct keys of every entry, added up.
    pub keys: Vec<u64>,
    /// Bytes of the filters.
    pub filter_bytes: u64,
    /// Bytes of header and directory.
    pub directory_bytes: u64,
    /// Bytes of ids and reasons.
    pub name_bytes: u64,
}

impl IndexInfo {
    /// Bytes of the whole index.
    #[doc(hidden)]
    pub const fn bytes(&self) -> u64 {
        self.filter_bytes + self.directory_bytes + self.name_bytes
    }
}

/// One entry of an index.
pub struct Entry<'a, B = Map> {
    pub(super) index: &'a FileIndex<B>,
    number: usize,
}

impl<B> Clone for Entry<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for Entry<'_, B> {}

impl<B: Body> fmt::Debug for Entry<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("number", &self.number)
            .field("id", &self.id().escape_ascii().to_string())
            .field("stamp", &self.stamp())
            .field("unindexed", &self.unindexed())
            .finish()
    }
}

impl<'a, B: Body> Entry<'a, B> {
    /// Its number in the index.
    #[doc(hidden)]
    pub const fn number(&self) -> usize {
        self.number
    }

    /// What it was added as: the bytes of a path, or any others.
    pub fn id(&self) -> &'a [u8] {
        self.index.directory.entry_text(self.number).0
    }

    /// The stamp of the file when it was indexed, if the entry is a file.
    #[doc(hidden)]
    pub fn stamp(&self) -> Option<Stamp> {
        self.index.directory.entry(self.number).stamp()
    }

    /// Why the keys of some spec are unknown, if they are. For those keys the entry is always a
    /// candidate.
    #[doc(hidden)]
    pub fn unindexed(&self) -> Option<&'a str> {
        let directory = &self.index.directory;
        directory
            .has_unknown(self.number)
            .then(|| directory.entry_text(self.number).1)
    }

    /// Whether all keys of the spec with this number are known.
    ///
    /// # Panics
    /// If the spec doesn't exist.
    #[doc(hidden)]
    pub fn is_indexed(&self, spec: usize) -> bool {
        !self.record(spec).is_unknown()
    }

    /// Whether its filters still apply to the file with stamp `now`, because the file has certainly
    /// not changed since it was indexed. If not, treat the entry as a candidate, or a "no" could be
    /// false.
    #[doc(hidden)]
    pub fn is_fresh(&self, now: &Stamp) -> bool {
        self.stamp().is_some_and(|stamp| stamp.proves(now))
    }

    /// Distinct keys of the spec with this number; 0 if unknown.
    ///
    /// # Panics
    /// If the spec doesn't exist.
    #[doc(hidden)]
    pub fn keys(&self, spec: usize) -> u64 {
        self.record(spec).known_keys()
    }

    /// Compares its filters with their checksums. A damaged filter makes the entry a candidate for
    /// every key whose answer depends on the damage.
    pub fn verify(&self) -> Result<(), Error> {
        let directory = &self.index.directory;
        (0..directory.specs)
            .try_for_each(|spec| self.index.check_words(directory.body(&self.record(spec))))
    }

    pub(super) fn record(&self, spec: usize) -> FilterRecord {
        self.index.directory.filter(spec, self.number)
    }

    /// The bytes of a filter.
    pub(super) fn body(&self, record: &FilterRecord) -> Vec<u8> {
        let words = &self.index.bodies.words()[self.index.directory.body(record)];
        bytes::read(&[words], 0, size_of_val(words))
    }
}

/// One sort of keys of an index.
pub struct Spec<'a, B = Map> {
    index: &'a FileIndex<B>,
    number: usize,
}

impl<B> Clone for Spec<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for Spec<'_, B> {}

impl<B: Body> fmt::Debug for Spec<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Spec({:?})", self.text())
    }
}

impl<'a, B: Body> Spec<'a, B> {
    /// Its number in the index.
    #[doc(hidden)]
    pub const fn number(&self) -> usize {
        self.number
    }

    /// Its name.
    #[doc(hidden)]
    pub fn text(&self) -> &'a str {
        self.index.directory.spec_text(self.number)
    }

    /// The distinct keys of every entry, added up.
    #[doc(hidden)]
    pub fn keys(&self) -> u64 {
        let records = self.index.directory.filters(self.number);
        let keys = records
            .iter()
            .map(|record| FilterRecord::decode(record).known_keys());
        keys.fold(0, u64::saturating_add)
    }

    /// The entries that may hold the key, in order: all that do, others at most at the promised
    /// rate, and those that are unindexed or damaged.
    pub fn candidates(&self, key: impl Key) -> Vec<Entry<'a, B>> {
        let index = self.index;
        let hash = key.key_hash(index.hasher());
        let mut out = Vec::new();
        query::candidates(index.filters(), self.number, hash, |number| {
            out.push(Entry { index, number });
        });
        out
    }

    /// The candidates for each of these keys, in one pass over the filters: an index larger than
    /// the caches is read only once for all keys.
    pub fn candidates_many<K: Key>(&self, keys: &[K]) -> Vec<Vec<Entry<'a, B>>> {
        let index = self.index;
        let hashes = hashed(index.hasher(), keys);
        let mut out = vec![Vec::new(); hashes.len()];
        let found = |key: usize, number| out[key].push(Entry { index, number });
        query::candidates_many(index.filters(), self.number, &hashes, found);
        out
    }
}
