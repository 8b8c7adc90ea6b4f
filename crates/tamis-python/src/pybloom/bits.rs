//! Where the bits live: in memory or in a mapped file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use memmap2::{MmapMut, MmapOptions, MmapRaw};

use tamis_formats::pybloomfilter::{BITS_AT, Shape};

/// From here on the heap is mapped, on huge pages where the system has them.
const HUGE_FROM: u64 = 1 << 20;

/// The bits of a filter, in words that other processes may change.
pub(super) struct Bits {
    place: Place,
    /// Bytes that are bits; the last word may reach beyond them.
    len: u64,
}

enum Place {
    Small(Vec<AtomicU64>),
    Huge(MmapRaw),
    File(Mapped),
}

/// A file that is a filter, mapped from its first byte.
pub(super) struct Mapped {
    map: MmapRaw,
    pub(super) file: File,
    pub(super) path: PathBuf,
    pub(super) writable: bool,
}

impl Bits {
    /// `len` zero bytes in memory, or an error if there is not as much.
    pub(super) fn zeroed(len: u64) -> io::Result<Self> {
        let no_memory = || io::Error::from(io::ErrorKind::OutOfMemory);
        let words = usize::try_from(len.div_ceil(8)).map_err(|_| no_memory())?;
        let place = if len >= HUGE_FROM {
            let bytes = words.checked_mul(8).ok_or_else(no_memory)?;
            let map = MmapMut::map_anon(bytes).map_err(|_| no_memory())?;
            // Best effort: without huge pages the filter is only slower.
            #[cfg(target_os = "linux")]
            let _ = map.advise(memmap2::Advice::HugePage);
            Place::Huge(map.into())
        } else {
            let mut heap = Vec::new();
            heap.try_reserve_exact(words).map_err(|_| no_memory())?;
            heap.resize_with(words, AtomicU64::default);
            Place::Small(heap)
        };
        Ok(Self { place, len })
    }

    /// Maps a file whose length was checked against its shape.
    pub(super) fn map(
        file: File,
        path: PathBuf,
        writable: bool,
        shape: &Shape,
    ) -> io::Result<Self> {
        let too_large = |_| io::Error::from(io::ErrorKind::FileTooLarge);
        let len = shape.bytes();
        // A last word that reaches beyond the file still lies in its last page:
        // the bits begin at a multiple of eight, and pages end at one.
        let whole_words = usize::try_from(len.next_multiple_of(8)).map_err(too_large)?;
        let mut options = MmapOptions::new();
        options.len(BITS_AT + whole_words);
        let map = if writable {
            options.map_raw(&file)
        } else {
            options.map_raw_read_only(&file)
        }?;
        let mapped = Mapped {
            map,
            file,
            path,
            writable,
        };
        Ok(Self {
            place: Place::File(mapped),
            len,
        })
    }

    pub(super) fn mapped(&self) -> Option<&Mapped> {
        match &self.place {
            Place::File(mapped) => Some(mapped),
            Place::Small(_) | Place::Huge(_) => None,
        }
    }

    pub(super) fn read_only(&self) -> bool {
        self.mapped().is_some_and(|mapped| !mapped.writable)
    }

    #[inline]
    fn words(&self) -> &[AtomicU64] {
        let (first, len) = match &self.place {
            Place::Small(words) => return words,
            Place::Huge(map) => (map.as_ptr(), map.len()),
            // SAFETY: a mapped file is longer than what precedes its bits.
            Place::File(mapped) => (
                unsafe { mapped.map.as_ptr().add(BITS_AT) },
                mapped.map.len() - BITS_AT,
            ),
        };
        // SAFETY: mappings are page-aligned, live as long as `self`, and are a
        // multiple of eight long from `first`; other processes may write, which
        // atomics allow. A mapping for reading is only ever loaded from: every
        // writing method is behind `read_only`.
        unsafe { std::slice::from_raw_parts(first.cast(), len / 8) }
    }

    /// Whether all of these bits are set. All are looked at, so that their
    /// cache misses overlap.
    #[inline]
    pub(super) fn all_set(&self, positions: &[u64]) -> bool {
        let words = self.words();
        positions.iter().fold(true, |all, &position| {
            let (word, bit) = place_of(position);
            all & (words[word].load(Relaxed) & bit != 0)
        })
    }

    /// Sets these bits; says how many were not. `&mut`, so that nobody in this
    /// process sets others meanwhile.
    #[inline]
    pub(super) fn set(&mut self, positions: &[u64]) -> u64 {
        // A set bit costs no write and no dirty page, and this look brings all
        // the lines before the writes, which may wait for one another.
        if self.all_set(positions) {
            return 0;
        }
        let shared = matches!(self.place, Place::File(_));
        let words = self.words();
        let mut new = 0;
        for &position in positions {
            let (word, bit) = place_of(position);
            let word = &words[word];
            let was = word.load(Relaxed);
            if was & bit != 0 {
                continue;
            }
            new += 1;
            if shared {
                // Other processes set bits too: theirs must not be lost.
                word.fetch_or(bit, Relaxed);
            } else {
                word.store(was | bit, Relaxed);
            }
        }
        new
    }

    /// How many bits are set.
    pub(super) fn count_ones(&self) -> u64 {
        let (whole, last) = self.whole_and_last();
        let ones = |words: &[AtomicU64]| -> u64 {
            let ones = words
                .iter()
                .map(|w| u64::from(w.load(Relaxed).count_ones()));
            ones.sum()
        };
        let last = last.map_or(0, |(word, ours)| (word.load(Relaxed) & ours).count_ones());
        ones(whole) + u64::from(last)
    }

    pub(super) fn any_set(&self) -> bool {
        let (whole, last) = self.whole_and_last();
        whole.iter().any(|word| word.load(Relaxed) != 0)
            || last.is_some_and(|(word, ours)| word.load(Relaxed) & ours != 0)
    }

    pub(super) fn clear(&self) {
        let (whole, last) = self.whole_and_last();
        for word in whole {
            word.store(0, Relaxed);
        }
        if let Some((word, ours)) = last {
            word.fetch_and(!ours, Relaxed);
        }
    }

    /// Sets every bit that is set in `other`, which is as long.
    pub(super) fn unite(&self, other: &Self) {
        let (whole, last) = self.whole_and_last();
        for (word, other) in whole.iter().zip(other.words()) {
            let other = other.load(Relaxed);
            if other & !word.load(Relaxed) != 0 {
                word.fetch_or(other, Relaxed);
            }
        }
        if let (Some((word, ours)), Some(other)) = (last, other.words().last()) {
            word.fetch_or(other.load(Relaxed) & ours, Relaxed);
        }
    }

    /// Clears every bit that is not set in `other`, which is as long.
    pub(super) fn intersect(&self, other: &Self) {
        let (whole, last) = self.whole_and_last();
        for (word, other) in whole.iter().zip(other.words()) {
            let other = other.load(Relaxed);
            if word.load(Relaxed) & !other != 0 {
                word.fetch_and(other, Relaxed);
            }
        }
        if let (Some((word, ours)), Some(other)) = (last, other.words().last()) {
            word.fetch_and(other.load(Relaxed) | !ours, Relaxed);
        }
    }

    /// Fills memory with bytes, which are as many.
    pub(super) fn load(&self, bytes: &[u8]) {
        debug_assert_eq!(bytes.len() as u64, self.len);
        for (word, bytes) in self.words().iter().zip(bytes.chunks(8)) {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_le_bytes(padded).to_le(), Relaxed);
        }
    }

    pub(super) fn len(&self) -> usize {
        usize::try_from(self.len).expect("bits in memory have a length in memory")
    }

    /// Writes the bytes to a buffer that is as long.
    pub(super) fn store(&self, bytes: &mut [u8]) {
        for (bytes, word) in bytes.chunks_mut(8).zip(self.words()) {
            let word = u64::from_le(word.load(Relaxed)).to_le_bytes();
            bytes.copy_from_slice(&word[..bytes.len()]);
        }
    }

    /// The words that are bits throughout, and of the last what is.
    fn whole_and_last(&self) -> (&[AtomicU64], Option<(&AtomicU64, u64)>) {
        let words = self.words();
        match (self.len % 8, words.split_last()) {
            (0, _) | (_, None) => (words, None),
            (rest, Some((last, whole))) => {
                let ours = ((1u64 << (8 * rest)) - 1).to_le();
                (whole, Some((last, ours)))
            }
        }
    }
}

/// The word of a bit, and the bit in it as memory has it on any machine.
#[inline]
fn place_of(position: u64) -> (usize, u64) {
    let word = (position >> 6) as usize;
    (word, (1u64 << (position & 63)).to_le())
}

impl Mapped {
    /// Waits until the file is on disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.map.flush()?;
        self.file.sync_all()
    }

    /// The whole file, and what may follow the bits in it.
    pub(super) fn contents(&self) -> io::Result<Vec<u8>> {
        let len = self.file.metadata()?.len();
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let mut bytes = Vec::new();
        bytes
            .try_reserve_exact(len)
            .map_err(|_| io::ErrorKind::OutOfMemory)?;
        bytes.resize(len, 0);
        self.file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }
}
