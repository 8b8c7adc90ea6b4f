//! Hashes that don't fit in memory, in unnamed temporary files that vanish with this process.

use crate::error::Error;
use crate::hash::Hash;
use crate::list::parts::{PARTS, starts};
use crate::raw::sorted::sorted_distinct;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Counts hashes by this many top bits: the most that ever choose a shard.
const COUNT_BITS: u32 = 16;
const HASH_LEN: usize = size_of::<Hash>();
/// The bytes to read or write at once.
const PIECE: usize = 1 << 20;

/// Sorted runs of hashes, one after the other in a file.
#[derive(Debug)]
pub(super) struct Spill {
    folder: PathBuf,
    file: Option<TempFile>,
    /// For each run, where each part begins in the file, and where the last ends, in hashes.
    runs: Vec<Box<[u64]>>,
}

impl Spill {
    pub(super) const fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            file: None,
            runs: Vec::new(),
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Writes sorted hashes as a run.
    pub(super) fn add(&mut self, sorted: &[Hash]) -> Result<(), Error> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(TempFile::new(&self.folder)?),
        };
        let begin = self.runs.last().map_or(0, |run| run[PARTS]);
        file.write(begin, sorted)?;
        let run = (0..=PARTS).map(|part| begin + starts(sorted, part) as u64);
        self.runs.push(run.collect());
        Ok(())
    }

    /// All distinct hashes.
    pub(super) fn finish(self, threads: usize) -> Result<DiskSet, Error> {
        let mut set = DiskSet {
            file: TempFile::new(&self.folder)?,
            begins: vec![0],
            counts: vec![0; 1 << COUNT_BITS],
        };
        let mut end = 0;
        for part in 0..PARTS {
            let mut hashes = Vec::new();
            if let Some(file) = &self.file {
                for run in &self.runs {
                    file.read(run[part]..run[part + 1], &mut hashes)?;
                }
            }
            let hashes = sorted_distinct(hashes, threads);
            for hash in &hashes {
                set.counts[(hash.hi >> (64 - COUNT_BITS)) as usize] += 1;
            }
            set.file.write(end, &hashes)?;
            end += hashes.len() as u64;
            set.begins.push(end);
        }
        Ok(set)
    }
}

/// Distinct hashes in ascending order, in a file.
#[derive(Debug)]
pub(crate) struct DiskSet {
    file: TempFile,
    /// Where each part begins in the file, and where the last ends.
    begins: Vec<u64>,
    /// The number of hashes for each value of the top bits.
    counts: Vec<u64>,
}

impl DiskSet {
    pub(super) fn len(&self) -> u64 {
        self.begins[PARTS]
    }

    /// The number of hashes in the fullest of `2^bits` shards.
    pub(super) fn fullest(&self, bits: u32) -> u64 {
        let shards = self.counts.chunks(1 << (COUNT_BITS - bits));
        shards.map(|counts| counts.iter().sum()).max().unwrap_or(0)
    }

    pub(super) fn parts(&self, parts: Range<usize>) -> Result<Vec<Hash>, Error> {
        let mut hashes = Vec::new();
        let range = self.begins[parts.start]..self.begins[parts.end];
        self.file.read(range, &mut hashes)?;
        Ok(hashes)
    }

    /// The bytes that reading a part takes.
    pub(super) fn size_of(&self, part: usize) -> u64 {
        (self.begins[part + 1] - self.begins[part]) * HASH_LEN as u64
    }
}

/// A file of hashes.
#[derive(Debug)]
struct TempFile {
    file: File,
    folder: PathBuf,
}

impl TempFile {
    fn new(folder: &Path) -> Result<Self, Error> {
        let file = tempfile::tempfile_in(folder);
        Ok(Self {
            file: file.map_err(Error::io("creating a temporary file in", folder))?,
            folder: folder.into(),
        })
    }

    fn write(&self, at: u64, hashes: &[Hash]) -> Result<(), Error> {
        let write = || -> io::Result<()> {
            let mut file = &self.file;
            file.seek(SeekFrom::Start(at * HASH_LEN as u64))?;
            let mut bytes = Vec::with_capacity(PIECE);
            for hashes in hashes.chunks(PIECE / HASH_LEN) {
                bytes.clear();
                for hash in hashes {
                    bytes.extend_from_slice(&hash.hi.to_le_bytes());
                    bytes.extend_from_slice(&hash.lo.to_le_bytes());
                }
                file.write_all(&bytes)?;
            }
            Ok(())
        };
        write().map_err(Error::io("writing a temporary file in", &self.folder))
    }

    /// Appends this range of the file's hashes to `out`.
    fn read(&self, range: Range<u64>, out: &mut Vec<Hash>) -> Result<(), Error> {
        let mut read = || -> io::Result<()> {
            let mut file = &self.file;
            file.seek(SeekFrom::Start(range.start * HASH_LEN as u64))?;
            let mut left = (range.end - range.start) as usize;
            out.reserve_exact(left);
            let mut bytes = vec![0; (left * HASH_LEN).min(PIECE)];
            while left > 0 {
                let now = left.min(bytes.len() / HASH_LEN);
                let bytes = &mut bytes[..now * HASH_LEN];
                file.read_exact(bytes)?;
                let words = bytes.as_chunks().0.iter().map(|b| u64::from_le_bytes(*b));
                let words: Vec<u64> = words.collect();
                out.extend(words.as_chunks().0.iter().map(|&[hi, lo]| Hash { hi, lo }));
                left -= now;
            }
            Ok(())
        };
        read().map_err(Error::io("reading a temporary file in", &self.folder))
    }
}
