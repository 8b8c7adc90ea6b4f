//! Collects the hashes of a list for a static filter, in any order, then sorts them and removes
//! duplicates; in memory, or in a temporary file if there are too many.

use crate::error::Error;
use crate::hash::Hash;
use crate::list::parts::{PARTS, starts};
#[cfg(feature = "files")]
use crate::list::spill::{DiskSet, Spill};
use crate::raw::roomy::roomy;
use crate::raw::sorted::sorted_distinct_of;
use std::borrow::Cow;
use std::ops::Range;

/// Fewer hashes than this are never spilled.
const LEAST: usize = 1 << 12;

/// Takes hashes in any order, with duplicates.
#[derive(Debug)]
pub(crate) struct Collector {
    /// In vectors that never move: moving would cost more than filling them.
    hashes: Vec<Vec<Hash>>,
    /// How many hashes these are.
    held: usize,
    /// How many to keep in memory before spilling to disk.
    most: usize,
    threads: usize,
    #[cfg(feature = "files")]
    spill: Option<Spill>,
}

impl Collector {
    /// Holds all hashes in memory.
    pub(crate) const fn new(threads: usize) -> Self {
        Self {
            hashes: Vec::new(),
            held: 0,
            most: usize::MAX,
            threads,
            #[cfg(feature = "files")]
            spill: None,
        }
    }

    /// Spills hashes beyond `memory` bytes to `folder`.
    #[cfg(feature = "files")]
    pub(crate) fn spilling(memory: u64, folder: &std::path::Path, threads: usize) -> Self {
        // Sorting needs each hash twice; the last third is for everything else.
        let most = usize::try_from(memory / (3 * size_of::<Hash>() as u64)).unwrap_or(usize::MAX);
        Self {
            most: most.max(LEAST),
            spill: Some(Spill::new(folder.into())),
            ..Self::new(threads)
        }
    }

    pub(crate) fn add(&mut self, mut hashes: &[Hash]) -> Result<(), Error> {
        /// Each vector is as long as all before it, so that small lists stay small.
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

    /// Removes duplicates and, if that frees little, moves all to disk.
    fn make_room(&mut self) -> Result<(), Error> {
        let sorted = self.sorted()?;
        #[cfg(feature = "files")]
        if let Some(spill) = &mut self.spill
            && sorted.len() > self.most / 2
        {
            return spill.add(&sorted);
        }
        self.held = sorted.len();
        self.hashes = vec![sorted];
        Ok(())
    }

    fn sorted(&mut self) -> Result<Vec<Hash>, Error> {
        self.held = 0;
        sorted_distinct_of(std::mem::take(&mut self.hashes), self.threads)
    }

    /// Takes the hashes unsorted, if none is on disk.
    pub(crate) fn take_unsorted(&mut self) -> Option<Vec<Vec<Hash>>> {
        #[cfg(feature = "files")]
        if self.spill.as_ref().is_some_and(|spill| !spill.is_empty()) {
            return None;
        }
        self.held = 0;
        Some(std::mem::take(&mut self.hashes))
    }

    /// All distinct hashes.
    pub(crate) fn finish(mut self) -> Result<KeySet, Error> {
        let hashes = self.sorted()?;
        #[cfg(feature = "files")]
        if let Some(mut spill) = self.spill.filter(|spill| !spill.is_empty()) {
            spill.add(&hashes)?;
            drop(hashes);
            return spill.finish(self.threads).map(KeySet::Disk);
        }
        Ok(KeySet::of(hashes))
    }
}

/// Distinct hashes in ascending order.
#[derive(Debug)]
pub(crate) enum KeySet {
    Memory(Vec<Hash>),
    #[cfg(feature = "files")]
    Disk(DiskSet),
}

impl KeySet {
    /// Sorted, distinct hashes.
    pub(crate) const fn of(hashes: Vec<Hash>) -> Self {
        Self::Memory(hashes)
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Memory(hashes) => hashes.len() as u64,
            #[cfg(feature = "files")]
            Self::Disk(set) => set.len(),
        }
    }

    /// The number of hashes in the fullest of `2^bits` shards.
    pub(crate) fn fullest(&self, bits: u32) -> u64 {
        let hashes = match self {
            Self::Memory(hashes) => hashes,
            #[cfg(feature = "files")]
            Self::Disk(set) => return set.fullest(bits),
        };
        let starts =
            |shard: u64| hashes.partition_point(|hash| (hash.hi >> 1) >> (63 - bits) < shard);
        let sizes = (0..1u64 << bits).map(|shard| starts(shard + 1) - starts(shard));
        sizes.max().unwrap_or(0) as u64
    }

    /// The hashes of these parts.
    pub(crate) fn parts(&self, parts: Range<usize>) -> Result<Cow<'_, [Hash]>, Error> {
        match self {
            Self::Memory(hashes) => {
                let range = starts(hashes, parts.start)..starts(hashes, parts.end);
                Ok(Cow::Borrowed(&hashes[range]))
            }
            #[cfg(feature = "files")]
            Self::Disk(set) => set.parts(parts).map(Cow::Owned),
        }
    }

    /// The bytes that reading a part takes: 0 if it is in memory.
    #[cfg_attr(not(feature = "files"), expect(unused_variables))]
    fn size_of(&self, part: usize) -> u64 {
        match self {
            Self::Memory(_) => 0,
            #[cfg(feature = "files")]
            Self::Disk(set) => set.size_of(part),
        }
    }
}

/// Runs of parts, each of which fits into this many bytes.
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

#[cfg(all(test, feature = "files"))]
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
                let mut collector = Collector::spilling(memory, dir.path(), 2);
                for _ in 0..repeats {
                    let hashes: Vec<Hash> = (0..keys).map(hash).collect();
                    hashes
                        .chunks(999)
                        .for_each(|some| collector.add(some).unwrap());
                }
                collector.finish().unwrap()
            };
            let (memory, disk) = (collect(1 << 30), collect(0));
            assert!(matches!(memory, KeySet::Memory(_)));
            assert_eq!(matches!(disk, KeySet::Disk(_)), keys == 40_000);
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
