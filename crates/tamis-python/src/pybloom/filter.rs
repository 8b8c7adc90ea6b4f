//! A filter of pybloomfiltermmap3, without Python.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};

use super::hash::Probes;
use super::layout::Shape;
use super::store::{self, Bits, OpenError, record};

pub(super) struct Filter {
    pub(super) capacity: u64,
    pub(super) error_rate: f64,
    probes: Probes,
    pub(super) bits: Bits,
    count: Count,
    /// Whether a file changed since it was opened.
    changed: AtomicBool,
}

/// How many keys, and how many bits were new when they came.
struct Count {
    keys: AtomicU64,
    bits: AtomicU64,
    trust: AtomicU8,
}

/// This process saw every key come.
const EXACT: u8 = 0;
/// The file says so; right if it has as many bits set as it had then.
const RECORDED: u8 = 1;
/// Made by the original, or united with another.
const UNKNOWN: u8 = 2;

impl Count {
    fn new(recorded: Option<(u64, u64)>, trust: u8) -> Self {
        let (keys, bits) = recorded.unwrap_or_default();
        Self {
            keys: keys.into(),
            bits: bits.into(),
            trust: trust.into(),
        }
    }
}

impl Filter {
    fn new(shape: Shape, bits: Bits, count: Count) -> Self {
        Self {
            capacity: shape.capacity,
            error_rate: shape.error_rate,
            probes: Probes::new(&shape.seeds, shape.bits),
            bits,
            count,
            changed: false.into(),
        }
    }

    /// A filter in memory, empty or with the bits of another.
    pub(super) fn in_memory(shape: Shape, data: Option<&[u8]>) -> io::Result<Self> {
        let bits = Bits::zeroed(shape.bytes())?;
        let trust = match data {
            Some(data) => {
                bits.load(data);
                if bits.any_set() { UNKNOWN } else { EXACT }
            }
            None => EXACT,
        };
        Ok(Self::new(shape, bits, Count::new(None, trust)))
    }

    /// An empty filter in a new file.
    pub(super) fn create(path: PathBuf, perm: u32, shape: Shape) -> io::Result<Self> {
        let header = shape.encode();
        let file = store::create(&path, perm, shape.file_len(), |file| {
            file.write_all_at(&header, 0)
        })?;
        record::write(&file, Some((0, 0)));
        let bits = Bits::map(file, path, true, &shape)?;
        let filter = Self::new(shape, bits, Count::new(None, EXACT));
        filter.changed.store(true, Relaxed);
        Ok(filter)
    }

    pub(super) fn open(path: PathBuf, writable: bool) -> Result<Self, OpenError> {
        let (file, shape) = store::open(&path, writable)?;
        let recorded = record::read(&file);
        let trust = if recorded.is_some() { RECORDED } else { UNKNOWN };
        let bits = Bits::map(file, path, writable, &shape)?;
        Ok(Self::new(shape, bits, Count::new(recorded, trust)))
    }

    /// What would make an empty filter that this one can be united with.
    pub(super) fn shape(&self) -> Shape {
        Shape {
            capacity: self.capacity,
            error_rate: self.error_rate,
            bits: self.probes.bits(),
            seeds: self.probes.seeds().to_vec(),
        }
    }

    pub(super) fn seeds(&self) -> &[u32] {
        self.probes.seeds()
    }

    pub(super) fn num_bits(&self) -> u64 {
        self.probes.bits()
    }

    #[inline]
    pub(super) fn contains(&self, key: &[u8]) -> bool {
        self.probes
            .all(key, |positions| self.bits.all_set(positions))
    }

    /// Adds a key to a filter that may be written; true if it was there.
    #[inline]
    pub(super) fn add(&mut self, key: &[u8]) -> bool {
        let mut new = 0;
        self.probes.all(key, |positions| {
            new += self.bits.set(positions);
            true
        });
        if new == 0 {
            return true;
        }
        *self.count.keys.get_mut() += 1;
        *self.count.bits.get_mut() += new;
        *self.changed.get_mut() = true;
        false
    }

    pub(super) fn clear(&self) {
        self.bits.clear();
        self.count.keys.store(0, Relaxed);
        self.count.bits.store(0, Relaxed);
        self.count.trust.store(EXACT, Relaxed);
        self.changed.store(true, Relaxed);
    }

    /// Whether a key sets the same bits in both.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.num_bits() == other.num_bits() && self.seeds() == other.seeds()
    }

    /// The union with a filter that is like this one.
    pub(super) fn unite(&self, other: &Self) {
        self.bits.unite(&other.bits);
        self.forget_count();
    }

    /// The intersection with a filter that is like this one.
    pub(super) fn intersect(&self, other: &Self) {
        self.bits.intersect(&other.bits);
        self.forget_count();
    }

    fn forget_count(&self) {
        self.count.trust.store(UNKNOWN, Relaxed);
        self.changed.store(true, Relaxed);
    }

    /// How many keys, if that is known.
    pub(super) fn exact_len(&self) -> Option<u64> {
        if self.count.trust.load(Relaxed) == RECORDED {
            // Whoever else wrote to the file left more bits or fewer.
            let right = self.bits.count_ones() == self.count.bits.load(Relaxed);
            let trust = if right { EXACT } else { UNKNOWN };
            self.count.trust.store(trust, Relaxed);
        }
        (self.count.trust.load(Relaxed) == EXACT).then(|| self.count.keys.load(Relaxed))
    }

    /// How many keys set as many bits as are set; none can tell if all are.
    pub(super) fn estimated_len(&self) -> Option<u64> {
        let bits = self.num_bits() as f64;
        let ones = self.bits.count_ones() as f64;
        let each = bits / self.seeds().len() as f64;
        let keys = (-each * (1.0 - ones / bits).ln()).round_ties_even();
        keys.is_finite().then_some(keys as u64)
    }

    /// Waits until a file and its count are on disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        let Some(mapped) = self.bits.mapped() else {
            return Ok(());
        };
        if !mapped.writable || !self.changed.swap(false, Relaxed) {
            return Ok(());
        }
        self.record(&mapped.file);
        mapped.sync()
    }

    fn record(&self, file: &File) {
        let known = self.count.trust.load(Relaxed) != UNKNOWN;
        let count = || {
            let count = &self.count;
            (count.keys.load(Relaxed), count.bits.load(Relaxed))
        };
        record::write(file, known.then(count));
    }

    /// Copies a filter's file.
    pub(super) fn copy_to(&self, path: &Path) -> Option<io::Result<()>> {
        let mapped = self.bits.mapped()?;
        Some(store::copy(mapped, path, |file| self.record(file)))
    }
}

impl Drop for Filter {
    fn drop(&mut self) {
        // `close` reports what goes wrong here.
        let _ = self.sync();
    }
}
