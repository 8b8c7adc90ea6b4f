//! A set of 128-bit digests: 16 bytes per key at 53 to 80 % load, rounded up to whole huge pages.
//!
//! Open addressing with cache lines of four digests: a key's home line is the multiply-shift of its low half, and a
//! full line overflows into the next. So a table is nearly sorted, and growing it walks through both tables from front
//! to back. The command keeps one set per shard, so that only a small part of the keys exists twice while a table
//! grows.

use memmap2::MmapMut;
use std::fmt;
use std::ops::{Deref, DerefMut};
use tamis::Hash;
use tamis::internals::raw::prefetch;

/// Marks a free slot. The digest with this value is stored separately.
const FREE: [u64; 2] = [0, 0];
const SLOTS: usize = 4;
const SMALLEST: usize = 256;
/// Room is reserved for this many digests at once.
const BATCH: usize = 512;
/// How many digests ahead a line is prefetched.
const AHEAD: usize = 24;
/// Lines per huge page.
const HUGE_PAGE: usize = (2 << 20) / size_of::<Line>();

/// Slots fill from the front and are never emptied.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line([[u64; 2]; SLOTS]);

/// A set of digests.
pub struct ExactSet {
    lines: Table,
    used: usize,
    holds_free_mark: bool,
}

impl Default for ExactSet {
    fn default() -> Self {
        Self::with_capacity(0).expect("memory for a small table")
    }
}

impl ExactSet {
    /// A set that holds `keys` without growing; fails if the system lacks the memory.
    pub fn with_capacity(keys: usize) -> Result<Self, OutOfMemory> {
        let lines = keys.saturating_add(BATCH).saturating_mul(5) / (SLOTS * 4) + 1;
        Ok(Self {
            lines: Table::new(lines.max(SMALLEST))?,
            used: 0,
            holds_free_mark: false,
        })
    }

    /// The number of digests.
    pub fn len(&self) -> usize {
        self.used + usize::from(self.holds_free_mark)
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of its table.
    pub fn memory(&self) -> usize {
        size_of_val(&*self.lines)
    }

    /// Adds digests in order; `new[i]` says whether the i-th wasn't there before. Fails if memory runs out.
    pub fn insert_many(&mut self, digests: &[Hash], new: &mut [bool]) -> Result<(), OutOfMemory> {
        for (digests, new) in digests.chunks(BATCH).zip(new.chunks_mut(BATCH)) {
            self.reserve(digests.len())?;
            digests
                .iter()
                .take(AHEAD)
                .for_each(|digest| self.fetch(digest));
            for (i, (digest, new)) in digests.iter().zip(new).enumerate() {
                if let Some(ahead) = digests.get(i + AHEAD) {
                    self.fetch(ahead);
                }
                *new = self.insert(halves(*digest));
            }
        }
        Ok(())
    }

    #[inline]
    fn home(&self, lo: u64) -> usize {
        ((u128::from(lo) * self.lines.len() as u128) >> 64) as usize
    }

    #[inline]
    fn fetch(&self, digest: &Hash) {
        prefetch(&raw const self.lines[self.home(halves(*digest)[1])]);
    }

    /// Requires a free slot.
    #[inline]
    pub fn insert(&mut self, digest: [u64; 2]) -> bool {
        if digest == FREE {
            return !std::mem::replace(&mut self.holds_free_mark, true);
        }
        let mut at = self.home(digest[1]);
        loop {
            // Looks at all slots: the processor can't predict where an early exit would stop.
            let Line(slots) = &mut self.lines[at];
            let (mut found, mut used) = (false, 0);
            for slot in slots.iter() {
                found |= *slot == digest;
                used += usize::from(*slot != FREE);
            }
            if found {
                return false;
            }
            if let Some(slot) = slots.get_mut(used) {
                *slot = digest;
                self.used += 1;
                return true;
            }
            at = if at + 1 == self.lines.len() {
                0
            } else {
                at + 1
            };
        }
    }

    fn reserve(&mut self, more: usize) -> Result<(), OutOfMemory> {
        if (self.used + more) * 5 <= self.lines.len() * SLOTS * 4 {
            return Ok(());
        }
        let larger = Table::new(self.lines.len() + self.lines.len() / 2)?;
        let old = std::mem::replace(&mut self.lines, larger);
        self.used = 0;
        for digest in old
            .iter()
            .flat_map(|line| line.0)
            .filter(|digest| *digest != FREE)
        {
            self.insert(digest);
        }
        Ok(())
    }
}

/// The system lacks the memory for a part of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// The size of the part.
    pub bytes: u64,
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(
            f,
            "out of memory: a part of the exact set needs {} bytes",
            self.bytes
        )
    }
}

impl std::error::Error for OutOfMemory {}

/// The two halves of a digest, as stored in the table.
#[inline]
fn halves(digest: Hash) -> [u64; 2] {
    let digest = digest.as_u128();
    [(digest >> 64) as u64, digest as u64]
}

/// Lines mapped directly from the system: zeroed without being touched, on huge pages where available, and returned at
/// once when a larger table replaces them.
struct Table {
    map: MmapMut,
    lines: usize,
}

impl Table {
    /// A table of at least this many lines.
    fn new(lines: usize) -> Result<Self, OutOfMemory> {
        Self::try_new(lines).ok_or_else(|| OutOfMemory {
            bytes: (lines as u64).saturating_mul(size_of::<Line>() as u64),
        })
    }

    fn try_new(lines: usize) -> Option<Self> {
        // Whole huge pages, because the system only aligns such mappings to them.
        let lines = if lines < HUGE_PAGE {
            lines
        } else {
            lines.checked_next_multiple_of(HUGE_PAGE)?
        };
        let map = MmapMut::map_anon(lines.checked_mul(size_of::<Line>())?).ok()?;
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage); // only a matter of speed
        Some(Self { map, lines })
    }
}

impl Deref for Table {
    type Target = [Line];
    fn deref(&self) -> &[Line] {
        // SAFETY: the map is page-aligned and as long as this many lines, for which any bytes are valid.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().cast(), self.lines) }
    }
}

impl DerefMut for Table {
    fn deref_mut(&mut self) -> &mut [Line] {
        // SAFETY: as above, and borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.map.as_mut_ptr().cast(), self.lines) }
    }
}
