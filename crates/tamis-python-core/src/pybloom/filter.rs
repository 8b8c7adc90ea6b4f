//! A filter compatible with pybloomfiltermmap3, without Python.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::bits::{Bits, BitsFile};
use super::file::{self, OpenError, Record, record};
use tamis_formats::pybloomfilter::{Hash, Key, Probes, Shape};

/// A filter, in memory or in a mapped file.
pub struct Filter {
    /// The number of keys it is made for.
    pub capacity: u64,
    /// The rate with that many keys.
    pub error_rate: f64,
    probes: Probes,
    /// The bits.
    pub bits: Bits,
    count: Count,
    /// Other hashes that a file may use; it doesn't record which.
    pub other_hashes: &'static [Hash],
    /// Whether a file was changed since it was opened.
    changed: bool,
}

/// The number of keys, and of the bits they set.
struct Count {
    keys: u64,
    bits: u64,
    trust: Trust,
}

#[derive(Clone, Copy, PartialEq)]
enum Trust {
    /// This process saw every addition.
    Exact,
    /// From the file's record; correct if as many bits are set as then.
    Recorded,
    /// Made by the original, or merged with another.
    Unknown,
}

impl Count {
    const ZERO: Self = Self {
        keys: 0,
        bits: 0,
        trust: Trust::Exact,
    };
    const UNKNOWN: Self = Self {
        trust: Trust::Unknown,
        ..Self::ZERO
    };
}

impl Filter {
    fn new(shape: Shape, bits: Bits, count: Count) -> Self {
        Self {
            capacity: shape.capacity,
            error_rate: shape.error_rate,
            probes: Probes::new(shape.hash, &shape.seeds, shape.bits),
            bits,
            count,
            other_hashes: &[],
            changed: false,
        }
    }

    /// A filter in memory, empty or with the given bits.
    pub fn in_memory(shape: Shape, data: Option<&[u8]>) -> io::Result<Self> {
        let mut bits = Bits::zeroed(shape.bytes())?;
        let mut count = Count::ZERO;
        if let Some(data) = data {
            bits.load(data);
            if bits.any_set() {
                count = Count::UNKNOWN;
            }
        }
        Ok(Self::new(shape, bits, count))
    }

    /// An empty filter in a new file.
    pub fn create(path: PathBuf, perm: u32, shape: Shape) -> io::Result<Self> {
        let header = shape.encode();
        let file = file::create(&path, perm, shape.file_len(), |file| {
            file.write_all_at(&header, 0)
        })?;
        record::write(&file, Some(Record::new(Some((0, 0)), shape.hash)));
        let bits = Bits::map(BitsFile::new(file, path, true), &shape)?;
        let mut filter = Self::new(shape, bits, Count::ZERO);
        filter.changed = true;
        Ok(filter)
    }

    /// Opens the filter in a file; `hash` if known.
    pub fn open(path: PathBuf, writable: bool, hash: Option<Hash>) -> Result<Self, OpenError> {
        let (file, shape, others) = file::open(&path, writable, hash)?;
        let recorded = record::read(&file).and_then(|record| record.count);
        let count = recorded.map_or(Count::UNKNOWN, |(keys, bits)| Count {
            keys,
            bits,
            trust: Trust::Recorded,
        });
        let bits = Bits::map(BitsFile::new(file, path, writable), &shape)?;
        let mut filter = Self::new(shape, bits, count);
        filter.other_hashes = others;
        Ok(filter)
    }

    /// The shape of an empty filter that can be merged with this one.
    pub fn shape(&self) -> Shape {
        Shape {
            capacity: self.capacity,
            error_rate: self.error_rate,
            bits: self.probes.bits(),
            seeds: self.probes.seeds().to_vec(),
            hash: self.hash(),
        }
    }

    /// How keys are hashed.
    pub fn hash(&self) -> Hash {
        self.probes.hash()
    }

    /// One seed per hash.
    pub fn seeds(&self) -> &[u32] {
        self.probes.seeds()
    }

    /// The number of bits.
    pub fn num_bits(&self) -> u64 {
        self.probes.bits()
    }

    /// Whether a key may have been added.
    #[inline]
    pub fn contains<'k>(&self, key: impl Into<Key<'k>>) -> bool {
        self.probes
            .all(key.into(), |positions| self.bits.all_set(positions))
    }

    /// Adds a key to a writable filter; returns true if it was present.
    #[inline]
    pub fn add<'k>(&mut self, key: impl Into<Key<'k>>) -> bool {
        let mut new = 0;
        self.probes.all(key.into(), |positions| {
            new += self.bits.set(positions);
            true
        });
        if new == 0 {
            return true;
        }
        self.count.keys += 1;
        self.count.bits += new;
        self.changed = true;
        false
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        self.bits.clear();
        self.count = Count::ZERO;
        self.changed = true;
    }

    /// Whether a key sets the same bits in both filters.
    pub fn is_like(&self, other: &Self) -> bool {
        let of = |filter: &Self| (filter.num_bits(), filter.hash());
        of(self) == of(other) && self.seeds() == other.seeds()
    }

    /// Sets this filter to the union with a similar one.
    pub fn unite(&mut self, other: &Self) {
        self.bits.unite(&other.bits);
        self.forget_count();
    }

    /// Sets this filter to the intersection with a similar one.
    pub fn intersect(&mut self, other: &Self) {
        self.bits.intersect(&other.bits);
        self.forget_count();
    }

    fn forget_count(&mut self) {
        self.count = Count::UNKNOWN;
        self.changed = true;
    }

    /// The number of keys, if known.
    pub fn exact_len(&mut self) -> Option<u64> {
        if self.count.trust == Trust::Recorded {
            // If others wrote to the file, the number of set bits has changed.
            let right = self.bits.count_ones() == self.count.bits;
            self.count.trust = if right { Trust::Exact } else { Trust::Unknown };
        }
        (self.count.trust == Trust::Exact).then_some(self.count.keys)
    }

    /// The number of keys that would set as many bits; `None` if all are set.
    pub fn estimated_len(&self) -> Option<u64> {
        let bits = self.num_bits() as f64;
        let ones = self.bits.count_ones() as f64;
        let each = bits / self.seeds().len() as f64;
        let keys = (-each * (1.0 - ones / bits).ln()).round_ties_even();
        keys.is_finite().then_some(keys as u64)
    }

    /// Waits until the file and its count are on disk.
    pub fn sync(&mut self) -> io::Result<()> {
        if self.changed
            && let Some(file) = self.bits.file()
        {
            self.record(&file.file);
            self.bits.sync()?;
            self.changed = false;
        }
        Ok(())
    }

    fn record(&self, file: &File) {
        let known = self.count.trust != Trust::Unknown;
        let count = known.then_some((self.count.keys, self.count.bits));
        // If the hash was only assumed, don't record it: the next time, it is assumed and reported again.
        let is_sure = known || self.other_hashes.is_empty();
        record::write(file, is_sure.then_some(Record::new(count, self.hash())));
    }

    /// Copies a filter's file.
    pub fn copy_to(&self, path: &Path) -> io::Result<()> {
        let from = self.bits.file().ok_or(io::ErrorKind::Unsupported)?;
        file::copy(from, path, |file| self.record(file))
    }
}

impl Drop for Filter {
    fn drop(&mut self) {
        let _ = self.sync(); // `close` reports errors
    }
}
