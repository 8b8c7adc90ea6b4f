//! Building an index, entry by entry.

use crate::error::Error;
use crate::index::entry::{BuiltFilter, EntryFilters, IndexOptions};
use crate::index::format::{Directory, EntryRecord, FilterRecord};
use crate::index::pages::Summing;
use crate::index::read::{Entry, FileIndex};
use crate::raw::header::HEADER_LEN;
use crate::store::body::Body;
use crate::store::stamp::Stamp;
#[cfg(feature = "files")]
use crate::store::{
    lock::FileLock,
    replace::{Existing, Replacement},
};
#[cfg(feature = "files")]
use std::{
    fs::File,
    io::{Seek, SeekFrom, Write},
    path::Path,
};

/// Builds an index, entry by entry.
///
/// Filters are written to the file as they arrive, so only the directory is in memory: 32 bytes per
/// filter, 48 per entry, and its id. The same entries in the same order give the same bytes.
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
    /// Whether a write has failed, so that the rest would be misplaced.
    broken: bool,
    /// Where the next body goes.
    at: u64,
    sums: Summing,
    /// Filter records, by spec.
    filters: Vec<Vec<u8>>,
    entries: Vec<u8>,
    count: usize,
    text: Vec<u8>,
}

#[derive(Debug)]
enum Sink {
    /// The bodies.
    Memory(Vec<u8>),
    #[cfg(feature = "files")]
    File {
        file: Replacement,
        /// Bytes not yet written.
        buffer: Vec<u8>,
    },
}

/// Bytes per write to a file.
#[cfg(feature = "files")]
const BUFFER: usize = 1 << 20;

impl IndexBuilder {
    /// Starts an index in memory.
    pub fn in_memory(options: &IndexOptions) -> Self {
        Self::new(options, Sink::Memory(Vec::new()))
    }

    /// Starts an index in a file. When the builder [finishes](Self::finish), the file appears as a
    /// whole and replaces any file with its name. Until then, nothing changes.
    ///
    /// Two builders of the same name wouldn't see each other's entries: take a `FileLock` before
    /// you open the old index, and drop it after the new one is finished.
    #[cfg(feature = "files")]
    pub fn create(path: impl AsRef<Path>, options: &IndexOptions) -> Result<Self, Error> {
        Self::begin(path.as_ref(), Existing::Replace, options)
    }

    /// The same, but fails if a file with that name exists.
    #[cfg(feature = "files")]
    #[doc(hidden)]
    pub fn create_new(path: impl AsRef<Path>, options: &IndexOptions) -> Result<Self, Error> {
        Self::begin(path.as_ref(), Existing::Keep, options)
    }

    #[cfg(feature = "files")]
    fn begin(path: &Path, existing: Existing, options: &IndexOptions) -> Result<Self, Error> {
        let mut file = Replacement::begin(path, existing)?;
        let path = file.path().to_owned();
        // Locked before it takes the old one's name, so that no one waiting for the old file's lock
        // slips in between.
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
    #[doc(hidden)]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no entries yet.
    #[doc(hidden)]
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
        self.options.check_filters(filters)?;
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

    /// Adds an entry whose keys are unknown, such as an unreadable file. It is a candidate for
    /// every key.
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

    /// Adds an entry of another index unchanged. Its filters are copied, not rebuilt, and checked
    /// against their checksums.
    ///
    /// Both indexes must have equal [options](IndexOptions).
    #[doc(hidden)]
    pub fn copy<B: Body>(&mut self, entry: &Entry<'_, B>) -> Result<(), Error> {
        self.options.check_like(entry.index)?;
        entry.verify()?;
        self.add_text(
            entry.id(),
            entry.unindexed().unwrap_or_default(),
            entry.stamp(),
        )?;
        for spec in 0..self.filters.len() {
            let record = entry.record(spec);
            self.add_filter(spec, record, &entry.body(&record))?;
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
        let directory = self.directory()?;
        self.sink.finish(directory)
    }

    /// The same for an index that replaces the locked file: the lock then belongs to the new file,
    /// without a gap that another process could use.
    ///
    /// ```
    /// use tamis::internals::file::FileLock;
    /// use tamis::index::{FileIndex, IndexBuilder, IndexOptions};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("shelf.index");
    /// let options = IndexOptions::new(0.01)?;
    /// IndexBuilder::create_new(&path, &options)?.finish()?;
    /// let mut lock = FileLock::acquire(&path)?;
    /// let mut builder = IndexBuilder::create(lock.path(), &options)?;
    /// builder.add_unindexed("picture", None, "not a text")?;
    /// builder.finish_under(&mut lock)?;
    /// assert!(FileLock::try_acquire(&path).is_err());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[cfg(feature = "files")]
    #[doc(hidden)]
    pub fn finish_under(mut self, lock: &mut FileLock) -> Result<FileIndex, Error> {
        let directory = self.directory()?;
        let Sink::File { file, buffer } = self.sink else {
            return self.sink.finish(directory);
        };
        lock.adopt(place(file, &buffer, &directory)?);
        FileIndex::open(lock.path())
    }

    fn directory(&mut self) -> Result<Directory, Error> {
        if self.broken {
            return Err(Error::Io {
                action: "finishing the index",
                path: None,
                source: std::io::Error::other("an entry before could not be written"),
            });
        }
        let mut bytes = self.filters.concat();
        bytes.append(&mut self.entries);
        let sums = std::mem::replace(&mut self.sums, Summing::new(HEADER_LEN));
        bytes.append(&mut sums.finish());
        let mut end = 0;
        for spec in &self.options.specs {
            end += spec.len() as u64;
            bytes.extend_from_slice(&end.to_le_bytes());
        }
        bytes.extend_from_slice(&self.text);
        Ok(Directory {
            hasher: self.options.hasher,
            rate: self.options.rate,
            width: self.options.width,
            entries: self.count,
            specs: self.options.specs.len(),
            at: self.at as usize,
            text_len: self.text.len(),
            bytes,
        })
    }
}

impl Sink {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        match self {
            Self::Memory(all) => all.extend_from_slice(bytes),
            #[cfg(feature = "files")]
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

    /// Writes the rest, then the header.
    fn finish(self, directory: Directory) -> Result<FileIndex, Error> {
        match self {
            Self::Memory(bodies) => FileIndex::in_memory(&bodies, directory),
            #[cfg(feature = "files")]
            Self::File { file, buffer } => {
                let path = file.path().to_owned();
                let file = place(file, &buffer, &directory)?;
                // A mapping would keep the lock alive.
                file.unlock().map_err(Error::io("unlocking", &path))?;
                FileIndex::map(&file, &path, directory)
            }
        }
    }
}

/// Writes the rest, the header last, and gives the file its name. It stays locked.
#[cfg(feature = "files")]
fn place(mut file: Replacement, rest: &[u8], directory: &Directory) -> Result<File, Error> {
    let path = file.path().to_owned();
    let out = file.file();
    out.write_all(rest)
        .and_then(|()| out.write_all(&directory.bytes))
        .and_then(|()| out.seek(SeekFrom::Start(0)))
        .and_then(|_| out.write_all(&directory.header()))
        .map_err(Error::io("writing", &path))?;
    file.place()
}

#[cfg(all(test, unix, feature = "files"))]
mod tests {
    use super::*;
    use crate::index::EntryKeys;

    /// A caller that continues after a failed write gets an error, not an index with a hole.
    #[test]
    fn a_failed_write_is_not_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index");
        let options = IndexOptions::new(0.01).unwrap();
        let mut builder = IndexBuilder::create(&path, &options).unwrap();
        let mut keys = EntryKeys::new(&options);
        (0..10_000u64).for_each(|i| keys.add(0, i.to_le_bytes()));
        let filters = keys.build().unwrap();
        // A file that refuses writes.
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
