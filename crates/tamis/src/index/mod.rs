//! Which of these files can hold the key? One filter per entry, all in one file:
//! [`FileIndex`] queries it, [`IndexBuilder`] makes it.
//!
//! An index is written once and replaced as a whole.

// `format.rs` alone knows its bytes.

mod build;
mod format;
mod pages;
mod query;
mod stamp;

pub use build::{EntryFilters, EntryKeys, IndexBuilder, IndexOptions};
pub use stamp::Stamp;

use crate::error::Error;
use crate::hash::Hash;
use crate::hasher::{Hasher, SecretKey};
use crate::raw::header::HEADER_LEN;
use crate::store::replace::{Existing, Readers, open_regular, write_atomically};
use format::{FilterRecord, Layout, MAGIC_BYTES, corrupt};
use memmap2::{Mmap, MmapOptions};
use pages::Pages;
use query::Filters;
use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

/// Finds which of many entries, files or sets of keys, may hold a key.
///
/// Every entry has an id and a small static filter of its keys, or one for
/// each *spec*: an index of table files may have one for rows and another for
/// pairs of row and column. A key is hashed once and looked up in the filters
/// of all entries. An entry that holds the key is always a candidate; one that
/// does not is a candidate at most at the promised rate.
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
/// [`open`](Self::open) maps a file and checks everything but the filters
/// themselves. Those are compared with their checksums, page by page, when an
/// answer depends on them: an entry is left out only if the pages that say so
/// are intact. Damage adds candidates; it never causes a false "no".
/// [`verify`](Self::verify) checks all of them.
///
/// An index is never changed in place. [`IndexBuilder`] makes a new one from an
/// old one and copies the entries that have not changed.
pub struct FileIndex<B = IndexBytes> {
    bytes: B,
    layout: Layout,
    pages: Pages,
}

/// Who owns the bytes of an index: the heap, or a file mapped for reading.
///
/// The file must not be changed in place while it is mapped. Tamis never does
/// that: it replaces the file, and the old mapping keeps the old bytes.
pub struct IndexBytes(Owner);

enum Owner {
    Heap(Vec<u8>),
    Map(Mmap),
}

impl IndexBytes {
    fn heap(bytes: Vec<u8>) -> Self {
        Self(Owner::Heap(bytes))
    }

    fn map(file: &File, path: &Path) -> Result<Self, Error> {
        // SAFETY: an index file is written under another name and never
        // changed in place; that nobody else may is documented.
        let map = unsafe { MmapOptions::new().map(file) };
        let map = map.map_err(Error::io("mapping", path))?;
        Ok(Self(Owner::Map(map)))
    }
}

impl AsRef<[u8]> for IndexBytes {
    fn as_ref(&self) -> &[u8] {
        match &self.0 {
            Owner::Heap(bytes) => bytes,
            Owner::Map(map) => map,
        }
    }
}

impl fmt::Debug for IndexBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IndexBytes({} bytes)", self.as_ref().len())
    }
}

impl<B: AsRef<[u8]>> fmt::Debug for FileIndex<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileIndex")
            .field("layout", &self.layout)
            .finish_non_exhaustive()
    }
}

/// What systems read ahead of a mapped page that is missing.
#[cfg(unix)]
const READ_AHEAD: usize = 128 << 10;

impl FileIndex {
    /// Maps an index file. This reads and checks the directory: 32 bytes per
    /// filter, 48 per entry, and its id. Of the filters, a query reads only
    /// what it needs.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(path.as_ref(), None)
    }

    /// Maps a keyed index whose secret is not in the file.
    pub fn open_keyed(path: impl AsRef<Path>, key: &SecretKey) -> Result<Self, Error> {
        Self::open_with(path.as_ref(), Some(key))
    }

    fn open_with(path: &Path, key: Option<&SecretKey>) -> Result<Self, Error> {
        let file = open_regular(path, false)?;
        let meta = file.metadata().map_err(Error::io("reading", path))?;
        if !meta.is_file() || meta.len() < HEADER_LEN as u64 {
            // A pipe can't be mapped, nor on every system nothing.
            let mut bytes = Vec::new();
            let read = (&file).read_to_end(&mut bytes);
            read.map_err(Error::io("reading", path))?;
            return Self::decode(IndexBytes::heap(bytes), key);
        }
        let bytes = IndexBytes::map(&file, path)?;
        let index = Self::decode(bytes, key)?;
        // A query goes through small filters about in order, where reading
        // ahead helps; of large ones it needs a page each.
        #[cfg(unix)]
        if let Owner::Map(map) = &index.bytes.0
            && index.layout.directory / index.layout.specs > READ_AHEAD * index.len()
        {
            let _ = map.advise(memmap2::Advice::Random);
        }
        Ok(index)
    }

    /// Takes the bytes of an index without copying them.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, Error> {
        Self::decode(IndexBytes::heap(bytes), None)
    }

    /// Whether a file that begins with these bytes is meant to be an index; a
    /// filter is not.
    ///
    /// ```
    /// use tamis::index::{FileIndex, IndexBuilder, IndexOptions};
    /// let empty = IndexBuilder::in_memory(&IndexOptions::new(0.01)?).finish()?;
    /// assert!(FileIndex::is_index(&empty.to_bytes()));
    /// assert!(!FileIndex::is_index(b"TAMIS"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn is_index(beginning: &[u8]) -> bool {
        beginning.starts_with(&MAGIC_BYTES)
    }
}

impl<'a> FileIndex<&'a [u8]> {
    /// The index in bytes that the caller owns, at any alignment.
    pub fn view(bytes: &'a [u8]) -> Result<Self, Error> {
        Self::decode(bytes, None)
    }

    /// The same for a keyed index that does not hold its secret.
    pub fn view_keyed(bytes: &'a [u8], key: &SecretKey) -> Result<Self, Error> {
        Self::decode(bytes, Some(key))
    }
}

impl<B: AsRef<[u8]>> FileIndex<B> {
    fn decode(bytes: B, key: Option<&SecretKey>) -> Result<Self, Error> {
        let layout = Layout::decode(bytes.as_ref(), key)?;
        Ok(Self::with_layout(bytes, layout))
    }

    fn with_layout(bytes: B, layout: Layout) -> Self {
        Self {
            pages: Pages::new(&layout),
            bytes,
            layout,
        }
    }

    fn filters(&self) -> Filters<'_> {
        Filters {
            layout: &self.layout,
            bytes: self.bytes(),
            pages: &self.pages,
        }
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.layout.entries
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.layout.entries == 0
    }

    /// How keys are hashed.
    pub fn hasher(&self) -> &Hasher {
        &self.layout.hasher
    }

    /// The promised rate: how likely an entry without the key is a candidate,
    /// at most.
    pub fn rate(&self) -> f64 {
        self.layout.rate
    }

    /// The entry with this number; entries are numbered as they were added.
    ///
    /// # Panics
    /// If there is no such entry.
    pub fn entry(&self, number: usize) -> Entry<'_, B> {
        assert!(number < self.len(), "entry {number} of {}", self.len());
        Entry {
            index: self,
            number,
        }
    }

    /// All entries, in the order in which they were added.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = Entry<'_, B>> {
        (0..self.len()).map(|number| self.entry(number))
    }

    /// The number of each entry by its id; of entries with the same id, the last.
    pub fn by_id(&self) -> HashMap<&[u8], usize> {
        self.entries()
            .map(|entry| (entry.id(), entry.number))
            .collect()
    }

    /// The sorts of keys in the index.
    pub fn specs(&self) -> impl ExactSizeIterator<Item = Spec<'_, B>> {
        (0..self.layout.specs).map(|number| Spec {
            index: self,
            number,
        })
    }

    /// The sort of keys with this name, ready to look up keys. If there is none,
    /// the error names those that exist.
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
    pub fn candidates(&self, key: impl AsRef<[u8]>) -> Vec<Entry<'_, B>> {
        let first = Spec {
            index: self,
            number: 0,
        };
        first.candidates(key)
    }

    /// Compares all filters with their checksums. Everything else was checked
    /// when the index was opened.
    pub fn verify(&self) -> Result<(), Error> {
        self.check_pages(HEADER_LEN..self.layout.directory)
    }

    fn check_pages(&self, range: std::ops::Range<usize>) -> Result<(), Error> {
        match self.pages.are_sound(&self.layout, self.bytes(), range) {
            true => Ok(()),
            false => Err(corrupt(
                "filter checksum",
                "that of the filter that was written",
                "another one",
            )),
        }
    }

    /// How large it is, and where the bytes go.
    pub fn info(&self) -> IndexInfo {
        let layout = &self.layout;
        let specs: u64 = self.specs().map(|spec| spec.text().len() as u64).sum();
        let unindexed = |entry: &Entry<'_, B>| entry.unindexed().is_some();
        let text = layout.text_len as u64;
        IndexInfo {
            entries: self.len(),
            unindexed: self.entries().filter(unindexed).count(),
            keys: self.specs().map(|spec| spec.keys()).collect(),
            filter_bytes: (layout.directory - HEADER_LEN) as u64,
            directory_bytes: (HEADER_LEN + layout.text_at() - layout.directory) as u64 + specs,
            name_bytes: text - specs,
        }
    }

    /// All bytes of the index, as they are in its file.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.bytes().to_vec()
    }

    /// Writes the index to a file, which appears or is replaced as a whole.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        write_atomically(path.as_ref(), Existing::Replace, Readers::AsUsual, |file| {
            file.write_all(self.bytes())
        })
        .map(drop)
    }
}

/// How large an index is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexInfo {
    /// All entries.
    pub entries: usize,
    /// Entries for which some keys are not known.
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
    pub const fn bytes(&self) -> u64 {
        self.filter_bytes + self.directory_bytes + self.name_bytes
    }
}

/// One entry of an index.
pub struct Entry<'a, B = IndexBytes> {
    index: &'a FileIndex<B>,
    number: usize,
}

impl<B> Clone for Entry<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for Entry<'_, B> {}

impl<B: AsRef<[u8]>> fmt::Debug for Entry<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("number", &self.number)
            .field("id", &self.id().escape_ascii().to_string())
            .field("stamp", &self.stamp())
            .field("unindexed", &self.unindexed())
            .finish()
    }
}

impl<'a, B: AsRef<[u8]>> Entry<'a, B> {
    /// Its number in the index.
    pub const fn number(&self) -> usize {
        self.number
    }

    /// What it was added as: the bytes of a path, or anything.
    pub fn id(&self) -> &'a [u8] {
        &self.text()[self
            .index
            .layout
            .entry_text(self.index.bytes(), self.number)
            .0]
    }

    /// The state of the file when it was indexed, if the entry is a file.
    pub fn stamp(&self) -> Option<Stamp> {
        let record = self.index.layout.entry(self.index.bytes(), self.number);
        record.stamp()
    }

    /// Why the keys of some spec are not known, if so. For those keys the entry
    /// is always a candidate.
    pub fn unindexed(&self) -> Option<&'a str> {
        let (layout, bytes) = (&self.index.layout, self.index.bytes());
        let reason = layout.entry_text(bytes, self.number).1;
        // It was checked to be text.
        layout
            .has_unknown(bytes, self.number)
            .then(|| std::str::from_utf8(&self.text()[reason]).unwrap_or_default())
    }

    /// Whether all keys of the spec with this number are known.
    ///
    /// # Panics
    /// If there is no such spec.
    pub fn is_indexed(&self, spec: usize) -> bool {
        !self.record(spec).is_unknown()
    }

    /// Whether its filters still hold for the file as it is `now`, because the
    /// file has certainly not changed since it was indexed. If not, treat the
    /// entry as a candidate, or a "no" could be false.
    pub fn is_fresh(&self, now: &Stamp) -> bool {
        self.stamp().is_some_and(|stamp| stamp.proves(now))
    }

    /// Distinct keys of the spec with this number; 0 if they are not known.
    ///
    /// # Panics
    /// If there is no such spec.
    pub fn keys(&self, spec: usize) -> u64 {
        self.record(spec).known_keys()
    }

    /// Compares its filters with their checksums. Where a filter is damaged, the
    /// entry is a candidate for every key whose answer depends on the damage.
    pub fn verify(&self) -> Result<(), Error> {
        let layout = &self.index.layout;
        for spec in 0..layout.specs {
            let body = layout.body_range(&self.record(spec));
            self.index.check_pages(body)?;
        }
        Ok(())
    }

    fn record(&self, spec: usize) -> FilterRecord {
        let (layout, bytes) = (&self.index.layout, self.index.bytes());
        layout.filter(bytes, spec, self.number)
    }

    fn text(&self) -> &'a [u8] {
        self.index.layout.text(self.index.bytes())
    }
}

/// One sort of keys of an index.
pub struct Spec<'a, B = IndexBytes> {
    index: &'a FileIndex<B>,
    number: usize,
}

impl<B> Clone for Spec<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for Spec<'_, B> {}

impl<B: AsRef<[u8]>> fmt::Debug for Spec<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Spec({:?})", self.text())
    }
}

impl<'a, B: AsRef<[u8]>> Spec<'a, B> {
    /// Its number in the index.
    pub const fn number(&self) -> usize {
        self.number
    }

    /// Its name.
    pub fn text(&self) -> &'a str {
        let (layout, bytes) = (&self.index.layout, self.index.bytes());
        let text = &layout.text(bytes)[layout.spec_text(bytes, self.number)];
        // It was checked to be text.
        std::str::from_utf8(text).unwrap_or_default()
    }

    /// The distinct keys of every entry, added up.
    pub fn keys(&self) -> u64 {
        let records = self.index.layout.filters(self.index.bytes(), self.number);
        let keys = records
            .iter()
            .map(|record| FilterRecord::decode(record).known_keys());
        keys.fold(0, u64::saturating_add)
    }

    /// The entries that may hold the key, in order: all that do, others at most
    /// at the promised rate, and those that were not indexed or are damaged.
    pub fn candidates(&self, key: impl AsRef<[u8]>) -> Vec<Entry<'a, B>> {
        self.candidates_hash(self.index.hasher().hash(key.as_ref()))
    }

    /// The same for a key that is already hashed.
    pub fn candidates_hash(&self, hash: Hash) -> Vec<Entry<'a, B>> {
        let index = self.index;
        let mut out = Vec::new();
        query::candidates(index.filters(), self.number, hash, |number| {
            out.push(Entry { index, number });
        });
        out
    }

    /// The candidates for each of these keys, in one pass over the filters: an
    /// index larger than the caches is read once for all keys.
    pub fn candidates_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Vec<Entry<'a, B>>> {
        let hasher = self.index.hasher();
        let hashes = keys.iter().map(|key| hasher.hash(key.as_ref()));
        self.candidates_hashes(&hashes.collect::<Vec<_>>())
    }

    /// The same for keys that are already hashed.
    pub fn candidates_hashes(&self, hashes: &[Hash]) -> Vec<Vec<Entry<'a, B>>> {
        let index = self.index;
        let mut out = vec![Vec::new(); hashes.len()];
        let found = |key: usize, number| out[key].push(Entry { index, number });
        query::candidates_many(index.filters(), self.number, hashes, found);
        out
    }
}
