//! The hashes of a list on their way into a static filter: collected in any
//! order, then there in ascending order, each once; in memory, or in a
//! temporary file when there are too many.

use crate::error::Error;
use crate::hash::Hash;
use crate::raw::roomy::roomy;
use crate::raw::sorted::{sorted_distinct, sorted_distinct_of};
use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A set in a file is sorted part by part, by the top bits of the hash.
const PART_BITS: u32 = 8;
const PARTS: usize = 1 << PART_BITS;
/// Hashes are counted by this many top bits: as many as ever choose a shard.
const COUNT_BITS: u32 = 16;
const HASH_LEN: usize = size_of::<Hash>();
/// Fewer are never spilled.
const LEAST: usize = 1 << 12;

/// Takes hashes, in any order and as often as they come.
#[derive(Debug)]
pub(crate) struct Collector {
    /// In vectors that are never moved: that would cost more than to fill them.
    hashes: Vec<Vec<Hash>>,
    /// How many these are.
    held: usize,
    /// How many to hold before the rest goes to disk.
    most: usize,
    threads: usize,
    dir: PathBuf,
    spilled: Option<Runs>,
}

/// Sorted runs of hashes, one after the other in a file.
#[derive(Debug)]
struct Runs {
    file: TempFile,
    /// For each run, where in the file each part begins, and where the last
    /// ends, in hashes.
    runs: Vec<Box<[u64]>>,
}

impl Collector {
    /// Spills to `dir` what does not fit in `memory` bytes.
    pub(crate) fn new(memory: u64, dir: PathBuf, threads: usize) -> Self {
        // Sorting needs each hash twice; the rest is for everything else.
        let most = usize::try_from(memory / (3 * HASH_LEN as u64)).unwrap_or(usize::MAX);
        Self {
            hashes: Vec::new(),
            held: 0,
            most: most.max(LEAST),
            threads,
            dir,
            spilled: None,
        }
    }

    pub(crate) fn add(&mut self, mut hashes: &[Hash]) -> Result<(), Error> {
        /// As many as the vectors before it, so that small lists stay small.
        const VECTOR: Range<usize> = LEAST..1 << 20;
        while !hashes.is_empty() {
            let last = self.hashes.last_mut();
            let Some(last) = last.filter(|last| last.len() < last.capacity()) else {
                if self.held == self.most {
                    self.make_room()?;
                }
                let size = self.held.clamp(VECTOR.start, VECTOR.end);
                self.hashes.push(roomy(size.min(self.most - self.held))?);
                continue;
            };
            let room = last.capacity() - last.len();
            let (now, later) = hashes.split_at(room.min(hashes.len()));
            last.extend_from_slice(now);
            self.held += now.len();
            hashes = later;
        }
        Ok(())
    }

    /// Removes duplicates, and if that is not much, moves all to disk.
    fn make_room(&mut self) -> Result<(), Error> {
        let sorted = self.sorted()?;
        if sorted.len() > self.most / 2 {
            return self.spill(&sorted);
        }
        self.held = sorted.len();
        self.hashes = vec![sorted];
        Ok(())
    }

    fn sorted(&mut self) -> Result<Vec<Hash>, Error> {
        self.held = 0;
        sorted_distinct_of(std::mem::take(&mut self.hashes), self.threads)
    }

    /// Writes sorted hashes as a run.
    fn spill(&mut self, sorted: &[Hash]) -> Result<(), Error> {
        let runs = match &mut self.spilled {
            Some(runs) => runs,
            none => none.insert(Runs {
                file: TempFile::new(&self.dir)?,
                runs: Vec::new(),
            }),
        };
        let begin = runs.runs.last().map_or(0, |run| run[PARTS]);
        runs.file.write(begin, sorted)?;
        let run = (0..=PARTS).map(|part| begin + starts(sorted, part) as u64);
        runs.runs.push(run.collect());
        Ok(())
    }

    /// Takes the hashes as they came, if none is on disk.
    pub(crate) fn take_unsorted(&mut self) -> Option<Vec<Vec<Hash>>> {
        let in_memory = self.spilled.is_none();
        in_memory.then(|| {
            self.held = 0;
            std::mem::take(&mut self.hashes)
        })
    }

    /// All hashes, each once.
    pub(crate) fn finish(mut self) -> Result<KeySet, Error> {
        let hashes = self.sorted()?;
        if self.spilled.is_none() {
            return Ok(KeySet::of(hashes));
        }
        self.spill(&hashes)?;
        drop(hashes);
        let Some(runs) = self.spilled.take() else {
            unreachable!("it spilled just now")
        };
        let file = TempFile::new(&self.dir)?;
        let mut begins = vec![0];
        let mut counts = vec![0; 1 << COUNT_BITS];
        let mut end = 0;
        for part in 0..PARTS {
            let mut hashes = Vec::new();
            for run in &runs.runs {
                runs.file.read(run[part]..run[part + 1], &mut hashes)?;
            }
            let hashes = sorted_distinct(hashes, self.threads);
            for hash in &hashes {
                counts[(hash.hi >> (64 - COUNT_BITS)) as usize] += 1;
            }
            file.write(end, &hashes)?;
            end += hashes.len() as u64;
            begins.push(end);
        }
        Ok(KeySet {
            len: end,
            place: Place::Disk {
                file,
                begins,
                counts,
            },
        })
    }
}

/// Where a part begins in sorted hashes.
fn starts(sorted: &[Hash], part: usize) -> usize {
    sorted.partition_point(|hash| ((hash.hi >> (64 - PART_BITS)) as usize) < part)
}

/// Hashes in ascending order, each once.
#[derive(Debug)]
pub(crate) struct KeySet {
    len: u64,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Memory(Vec<Hash>),
    Disk {
        file: TempFile,
        /// Where in the file each part begins, and where the last ends.
        begins: Vec<u64>,
        /// How many hashes have each value of their top bits.
        counts: Vec<u64>,
    },
}

impl KeySet {
    /// Sorted hashes, each once.
    pub(crate) fn of(hashes: Vec<Hash>) -> Self {
        Self {
            len: hashes.len() as u64,
            place: Place::Memory(hashes),
        }
    }

    pub(crate) const fn len(&self) -> u64 {
        self.len
    }

    /// How many hashes the fullest of `2^bits` shards has.
    pub(crate) fn fullest(&self, bits: u32) -> u64 {
        let fullest = match &self.place {
            Place::Memory(hashes) => {
                let starts = |shard: u64| {
                    hashes.partition_point(|hash| (hash.hi >> 1) >> (63 - bits) < shard)
                };
                let sizes = (0..1u64 << bits).map(|shard| starts(shard + 1) - starts(shard));
                sizes.max().map(|size| size as u64)
            }
            Place::Disk { counts, .. } => {
                let shards = counts.chunks(1 << (COUNT_BITS - bits));
                shards.map(|counts| counts.iter().sum()).max()
            }
        };
        fullest.unwrap_or(0)
    }

    /// The hashes of these parts.
    pub(crate) fn parts(&self, parts: Range<usize>) -> Result<Cow<'_, [Hash]>, Error> {
        match &self.place {
            Place::Memory(hashes) => {
                let range = starts(hashes, parts.start)..starts(hashes, parts.end);
                Ok(Cow::Borrowed(&hashes[range]))
            }
            Place::Disk { file, begins, .. } => {
                let mut hashes = Vec::new();
                file.read(begins[parts.start]..begins[parts.end], &mut hashes)?;
                Ok(Cow::Owned(hashes))
            }
        }
    }

    /// What reading a part takes, in bytes: nothing if it is in memory.
    fn size_of(&self, part: usize) -> u64 {
        match &self.place {
            Place::Memory(_) => 0,
            Place::Disk { begins, .. } => (begins[part + 1] - begins[part]) * HASH_LEN as u64,
        }
    }
}

/// Runs of parts that can each be read into this many bytes.
pub(crate) fn pieces(sets: &[&KeySet], memory: u64) -> Vec<Range<usize>> {
    let mut pieces: Vec<Range<usize>> = Vec::new();
    let mut taken = 0;
    for part in 0..PARTS {
        let size: u64 = sets.iter().map(|set| set.size_of(part)).sum();
        match pieces.last_mut() {
            Some(piece) if taken + size <= memory => {
                piece.end = part + 1;
                taken += size;
            }
            _ => {
                pieces.push(part..part + 1);
                taken = size;
            }
        }
    }
    pieces
}

/// A file of hashes that vanishes with this process.
#[derive(Debug)]
struct TempFile {
    file: File,
    path: PathBuf,
}

impl TempFile {
    fn new(dir: &Path) -> Result<Self, Error> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NEXT.fetch_add(1, Relaxed);
            let path = dir.join(format!(".tamis-spill-{}-{number}", std::process::id()));
            match OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .open(&path)
            {
                Ok(file) => {
                    // Without a name it is gone even if this process is killed.
                    #[cfg(unix)]
                    std::fs::remove_file(&path).map_err(Error::io("unlinking", &path))?;
                    return Ok(Self { file, path });
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(Error::io("creating the temporary file", &path)(e)),
            }
        }
    }

    fn write(&self, at: u64, hashes: &[Hash]) -> Result<(), Error> {
        let write = || {
            let mut file = &self.file;
            file.seek(SeekFrom::Start(at * HASH_LEN as u64))?;
            let mut bytes = Vec::with_capacity(1 << 20);
            for hashes in hashes.chunks((1 << 20) / HASH_LEN) {
                bytes.clear();
                for hash in hashes {
                    bytes.extend_from_slice(&hash.hi.to_le_bytes());
                    bytes.extend_from_slice(&hash.lo.to_le_bytes());
                }
                file.write_all(&bytes)?;
            }
            Ok(())
        };
        write().map_err(Error::io("writing the temporary file", &self.path))
    }

    /// Appends these hashes of the file to `out`.
    fn read(&self, range: Range<u64>, out: &mut Vec<Hash>) -> Result<(), Error> {
        let mut read = || {
            let mut file = &self.file;
            file.seek(SeekFrom::Start(range.start * HASH_LEN as u64))?;
            let mut left = (range.end - range.start) as usize;
            out.reserve_exact(left);
            let mut bytes = vec![0; (left * HASH_LEN).min(1 << 20)];
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
        read().map_err(Error::io("reading the temporary file", &self.path))
    }
}

#[cfg(not(unix))]
impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;

    #[test]
    fn the_disk_holds_the_same_set() {
        let dir = tempfile::tempdir().unwrap();
        let hash = |i: u64| Hash {
            hi: mix(mix(i)),
            lo: mix(i),
        };
        for (keys, repeats) in [(0u64, 1), (10, 3), (40_000, 1), (40_000, 2), (1500, 30)] {
            let collect = |memory| {
                let mut collector = Collector::new(memory, dir.path().into(), 2);
                for _ in 0..repeats {
                    let hashes: Vec<Hash> = (0..keys).map(hash).collect();
                    hashes
                        .chunks(999)
                        .for_each(|some| collector.add(some).unwrap());
                }
                collector.finish().unwrap()
            };
            let (memory, disk) = (collect(1 << 30), collect(0));
            assert!(matches!(memory.place, Place::Memory(_)));
            assert_eq!(matches!(disk.place, Place::Disk { .. }), keys == 40_000);
            assert_eq!((memory.len(), disk.len()), (keys, keys));
            for bits in [0, 1, 5, 16] {
                assert_eq!(memory.fullest(bits), disk.fullest(bits));
            }
            for budget in [0, 50_000, u64::MAX] {
                let mut all = Vec::new();
                for piece in pieces(&[&disk], budget) {
                    let hashes = disk.parts(piece.clone()).unwrap();
                    assert_eq!(hashes, memory.parts(piece).unwrap());
                    all.extend_from_slice(&hashes);
                }
                assert!(all.is_sorted() && all.len() as u64 == keys);
            }
        }
        assert_eq!(dir.path().read_dir().unwrap().count(), 0, "no litter");
    }
}
