//! The files that hold an index's filters: the index itself and, if it is large, parts next to it.
//!
//! The index holds the table of files and the newest filters. When these take too much room, they move to a part, which
//! never changes again. So an update only writes new filters and at most `YOUNG` bytes more. Small parts, and parts of
//! which little is still needed, are merged. Part numbers are never reused, so an index restored from a copy can't
//! mistake another part for its own.

use super::table::{At, Table};
use crate::location::named;
use anyhow::{Context, Result};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use tamis::index::{Entry, EntryFilters, EntryKeys, FileIndex, IndexBuilder, IndexOptions};
use tamis::internals::file::FileLock;

/// The most bytes of filters that the index itself holds.
const YOUNG: u64 = 16 << 20;
/// Filters are written once this many bytes wait.
pub(crate) const WAITING: u64 = 16 << 20;
/// Smaller parts are merged if there are several ...
const SMALL: u64 = 64 << 20;
const SEVERAL: usize = 4;
/// ... into one of at most this size.
const LARGE: u64 = 256 << 20;

/// The part number of unwritten filters; the entry is their place among these.
pub(crate) const NOT_WRITTEN: usize = usize::MAX;

/// The reason recorded for an entry whose filters were damaged.
pub(crate) const DAMAGED: &str = "its filters were damaged";

/// All files of an index, open.
pub(crate) struct Parts {
    pub(crate) index: FileIndex,
    /// One for each part in the table; `None` if missing or damaged.
    others: Vec<Option<FileIndex>>,
}

impl Parts {
    pub(crate) fn open(path: &Path, index: FileIndex, table: &Table) -> Self {
        let others = table.parts.iter();
        let others = others.map(|number| FileIndex::open(part_path(path, *number)).ok());
        Self {
            index,
            others: others.collect(),
        }
    }

    /// All files in order of part number; `None` if missing.
    pub(crate) fn all(&self) -> impl Iterator<Item = Option<&FileIndex>> {
        std::iter::once(Some(&self.index)).chain(self.others.iter().map(Option::as_ref))
    }

    /// How many parts can't be read.
    pub(crate) fn missing(&self) -> usize {
        self.others.iter().filter(|part| part.is_none()).count()
    }

    /// The keys of all segments added up, and the bytes.
    pub(crate) fn size(&self) -> (u64, u64) {
        let infos = self.all().flatten().map(FileIndex::info);
        infos.fold((0, 0), |(keys, bytes), info| {
            (keys + info.keys.iter().sum::<u64>(), bytes + info.bytes())
        })
    }

    /// The filters of a segment, if available.
    pub(crate) fn entry(&self, at: At) -> Option<Entry<'_>> {
        let part = match at.part {
            0 => &self.index,
            part => self.others.get(part - 1)?.as_ref()?,
        };
        (at.entry < part.len()).then(|| part.entry(at.entry))
    }
}

/// The path of a part.
pub(crate) fn part_path(index: &Path, number: u64) -> PathBuf {
    let mut name = index.as_os_str().to_owned();
    name.push(format!(".{number:016x}"));
    name.into()
}

/// The number of a part of this index, if the file's name is one.
pub(crate) fn part_number(index: &Path, file: &Path) -> Option<u64> {
    let (index, file) = (index.file_name()?, file.file_name()?);
    let rest = file
        .as_encoded_bytes()
        .strip_prefix(index.as_encoded_bytes())?;
    let digits = std::str::from_utf8(rest.strip_prefix(b".")?).ok()?;
    let lower = |digit: u8| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit);
    (digits.len() == 16 && digits.bytes().all(lower)).then_some(())?;
    u64::from_str_radix(digits, 16).ok()
}

fn new_number() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_nanos() as u64)
}

/// Writes an index any number of times, holding its lock.
pub(crate) struct Writer {
    /// The file itself, not a link to it.
    path: PathBuf,
    options: IndexOptions,
    lock: FileLock,
    /// As last written.
    pub(crate) parts: Parts,
}

impl Writer {
    pub(crate) fn new(
        path: &Path,
        options: IndexOptions,
        lock: FileLock,
        parts: Parts,
    ) -> Result<Self> {
        let path = fs::canonicalize(path).with_context(|| path.display().to_string())?;
        Ok(Self {
            path,
            options,
            lock,
            parts,
        })
    }

    /// The approximate size of filters for this many keys.
    fn bytes(&self, keys: u64) -> u64 {
        (keys as f64 * (1.02 * -self.options.rate().log2()) / 8.0) as u64
    }

    pub(crate) fn bytes_of(&self, filters: &EntryFilters) -> u64 {
        let specs = 0..self.options.spec_texts().len();
        self.bytes(specs.map(|spec| filters.keys(spec)).sum())
    }

    fn bytes_at(&self, at: At) -> u64 {
        let specs = 0..self.options.spec_texts().len();
        let entry = self.parts.entry(at);
        self.bytes(entry.map_or(0, |entry| specs.map(|spec| entry.keys(spec)).sum()))
    }

    /// Writes the table and its unwritten filters, and updates the table's references to them.
    pub(crate) fn commit(&mut self, table: &mut Table, waiting: &[EntryFilters]) -> Result<()> {
        let young: HashSet<&At> = segments(table).filter(|at| at.part == 0).collect();
        let young: u64 = young.into_iter().map(|at| self.bytes_at(*at)).sum();
        let new: u64 = waiting.iter().map(|filters| self.bytes_of(filters)).sum();
        let is_young = |at: At| at.part == 0 || at.part == NOT_WRITTEN;
        if young + new > YOUNG {
            self.write_part(table, waiting, is_young)?;
        }
        self.drop_unused(table);
        let mut builder =
            IndexBuilder::create(self.lock.path(), &self.options).map_err(named(&self.path))?;
        self.move_filters(table, &mut builder, 0, waiting, is_young)?;
        let keyless = EntryKeys::new(&self.options)
            .build()
            .map_err(named(&self.path))?;
        builder
            .add(table.to_id(), None, &keyless)
            .map_err(named(&self.path))?;
        let index = builder
            .finish_under(&mut self.lock)
            .map_err(named(&self.path))?;
        self.parts = Parts::open(&self.path, index, table);
        self.sweep(table);
        Ok(())
    }

    /// Merges parts if that makes them fewer or smaller. Returns how many were merged into one.
    pub(crate) fn merge(&mut self, table: &mut Table) -> Result<usize> {
        let mut live = vec![0; table.parts.len() + 1];
        segments(table).for_each(|at| live[at.part] += self.bytes_at(*at));
        let size = |part: usize| {
            let bytes = self.parts.others[part - 1].as_ref();
            bytes.map_or(0, |part| part.info().bytes())
        };
        let mut chosen: Vec<usize> = (1..live.len())
            .filter(|part| live[*part] < SMALL || live[*part] < size(*part) / 2)
            .collect();
        let mostly_unused = chosen.iter().any(|part| live[*part] < size(*part) / 2);
        chosen.sort_by_key(|part| live[*part]);
        let mut sum = 0;
        chosen.retain(|part| {
            sum += live[*part];
            sum <= LARGE
        });
        if chosen.len() < SEVERAL && !mostly_unused || chosen.is_empty() {
            return Ok(0);
        }
        self.write_part(table, &[], |at| chosen.contains(&at.part))?;
        self.commit(table, &[])?;
        Ok(chosen.len())
    }

    /// Moves filters to a new part.
    fn write_part(
        &self,
        table: &mut Table,
        waiting: &[EntryFilters],
        moves: impl Fn(At) -> bool,
    ) -> Result<()> {
        let number = new_number();
        let path = part_path(&self.path, number);
        let mut builder = IndexBuilder::create_new(&path, &self.options).map_err(named(&path))?;
        let part = table.parts.len() + 1;
        self.move_filters(table, &mut builder, part, waiting, moves)?;
        builder.finish().map_err(named(&path))?;
        table.parts.push(number);
        Ok(())
    }

    /// Adds filters to a part and updates the table's references. Entries for several names of one file share filters.
    fn move_filters(
        &self,
        table: &mut Table,
        builder: &mut IndexBuilder,
        part: usize,
        waiting: &[EntryFilters],
        moves: impl Fn(At) -> bool,
    ) -> Result<()> {
        let mut moved = HashMap::new();
        for at in segments_mut(table).filter(|at| moves(**at)) {
            let to = At {
                part,
                entry: builder.len(),
            };
            let to = *moved.entry(*at).or_insert(to);
            if to.entry == builder.len() {
                let added = match self.parts.entry(*at) {
                    _ if at.part == NOT_WRITTEN => builder.add("", None, &waiting[at.entry]),
                    Some(entry) if entry.verify().is_ok() => builder.copy(&entry),
                    _ => builder.add_unindexed("", None, DAMAGED),
                };
                added.map_err(named(&self.path))?;
            }
            *at = to;
        }
        Ok(())
    }

    /// Drops parts that no segment needs.
    fn drop_unused(&self, table: &mut Table) {
        let used: HashSet<usize> = segments(table).map(|at| at.part).collect();
        let mut kept = vec![0; table.parts.len() + 1];
        let mut parts = Vec::new();
        for (at, number) in table.parts.iter().enumerate() {
            if used.contains(&(at + 1)) {
                parts.push(*number);
                kept[at + 1] = parts.len();
            }
        }
        for at in segments_mut(table).filter(|at| at.part != NOT_WRITTEN) {
            at.part = kept[at.part];
        }
        table.parts = parts;
    }

    /// Deletes the files of parts that are no longer needed, or that a killed run left.
    fn sweep(&self, table: &Table) {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        let files = fs::read_dir(folder).into_iter().flatten().flatten();
        for file in files {
            let number = part_number(&self.path, Path::new(&file.file_name()));
            if number.is_some_and(|number| !table.parts.contains(&number)) {
                // If this fails, the next run tries again.
                let _ = fs::remove_file(file.path());
            }
        }
    }
}

fn segments(table: &Table) -> impl Iterator<Item = &At> {
    let files = table.files.iter();
    files.flat_map(|file| file.segments.iter().map(|segment| &segment.filters))
}

fn segments_mut(table: &mut Table) -> impl Iterator<Item = &mut At> {
    let files = table.files.iter_mut();
    files.flat_map(|file| file.segments.iter_mut().map(|segment| &mut segment.filters))
}
