//! The bits of a filter, in memory or in a mapped file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tamis::internals::file::Words;
use tamis::internals::raw::Word;
use tamis_formats::pybloomfilter::{BITS_AT, Shape};

/// The bits of a filter, in words that other processes may change.
pub struct Bits {
    words: Words,
    /// The mapped file, if any.
    file: Option<BitsFile>,
    /// The number of bytes; the last word may extend beyond.
    len: u64,
}

/// A filter's file.
pub struct BitsFile {
    /// The open file.
    pub file: File,
    /// Its path as given.
    pub path: PathBuf,
    /// Whether it is mapped for writing.
    pub writable: bool,
}

impl Bits {
    /// `len` zero bytes in memory.
    pub fn zeroed(len: u64) -> io::Result<Self> {
        let words = Words::zeroed(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
        Ok(Self {
            words,
            file: None,
            len,
        })
    }

    /// Maps a file whose length was already checked against its shape.
    pub fn map(file: BitsFile, shape: &Shape) -> io::Result<Self> {
        let len = shape.bytes();
        let map = if file.writable {
            Words::map
        } else {
            Words::map_read_only
        };
        Ok(Self {
            words: map(&file.file, BITS_AT as u64, len)?,
            file: Some(file),
            len,
        })
    }

    /// The mapped file, if any.
    pub const fn file(&self) -> Option<&BitsFile> {
        self.file.as_ref()
    }

    /// Whether they are mapped read-only.
    pub fn read_only(&self) -> bool {
        self.file.as_ref().is_some_and(|file| !file.writable)
    }

    /// Whether all these bits are set. Reads them all, so that cache misses overlap.
    #[inline]
    pub fn all_set(&self, positions: &[u64]) -> bool {
        let words = self.words.get();
        positions.iter().fold(true, |all, &position| {
            all & (words[(position >> 6) as usize].get() >> (position & 63) & 1 != 0)
        })
    }

    /// Sets these bits; returns how many were new. Takes `&mut`, so that nobody else in this process sets bits
    /// meanwhile.
    ///
    /// # Panics
    /// If the bits are read-only.
    #[inline]
    pub fn set(&mut self, positions: &[u64]) -> u64 {
        // Setting bits that are already set would dirty pages for nothing. This check also loads all lines before the
        // writes, which may wait for one another.
        if self.all_set(positions) {
            return 0;
        }
        let place = |position: u64| ((position >> 6) as usize, (1u64 << (position & 63)).to_le());
        let mut new = 0;
        if let Some(words) = self.words.exclusive() {
            for (word, bit) in positions.iter().map(|position| place(*position)) {
                new += u64::from(words[word] & bit == 0);
                words[word] |= bit;
            }
            return new;
        }
        let words = self.writable();
        for (word, bit) in positions.iter().map(|position| place(*position)) {
            // Other processes set bits, too, which must not be lost.
            if words[word].load(Relaxed) & bit == 0 {
                new += u64::from(words[word].fetch_or(bit, Relaxed) & bit == 0);
            }
        }
        new
    }

    /// The number of set bits.
    pub fn count_ones(&self) -> u64 {
        self.values().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Whether any bit is set.
    pub fn any_set(&self) -> bool {
        self.values().any(|word| word != 0)
    }

    /// Clears all bits.
    ///
    /// # Panics
    /// If the bits are read-only.
    pub fn clear(&mut self) {
        match self.words.exclusive() {
            Some(words) => words.fill(0),
            None => self.keep(std::iter::repeat(0)),
        }
    }

    /// Sets every bit that is set in `other`, which has the same length.
    ///
    /// # Panics
    /// If the bits are read-only.
    pub fn unite(&mut self, other: &Self) {
        for (word, other) in self.writable().iter().zip(other.values()) {
            if other & !word.get() != 0 {
                word.fetch_or(other.to_le(), Relaxed);
            }
        }
    }

    /// Clears every bit that isn't set in `other`, which has the same length.
    ///
    /// # Panics
    /// If the bits are read-only.
    pub fn intersect(&mut self, other: &Self) {
        self.keep(other.values());
    }

    /// Clears every bit that isn't set in these words. In a file, the last word may extend beyond the bits: the rest of
    /// it is left unchanged.
    fn keep(&self, words: impl Iterator<Item = u64>) {
        let (last, ours) = self.last();
        for (at, (word, kept)) in self.writable().iter().zip(words).enumerate() {
            let kept = if at == last { kept | !ours } else { kept };
            if word.get() & !kept != 0 {
                word.fetch_and(kept.to_le(), Relaxed);
            }
        }
    }

    /// Overwrites bits in memory with the same number of bytes.
    pub fn load(&mut self, bytes: &[u8]) {
        debug_assert_eq!(bytes.len() as u64, self.len);
        let words = self.words.exclusive().unwrap_or_default();
        for (word, bytes) in words.iter_mut().zip(bytes.chunks(8)) {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_le_bytes(padded).to_le();
        }
    }

    /// The number of bytes.
    pub fn byte_len(&self) -> usize {
        usize::try_from(self.len).expect("bits in memory have a length in memory")
    }

    /// Copies the bytes to a buffer of the same length.
    pub fn store(&self, bytes: &mut [u8]) {
        for (bytes, word) in bytes.chunks_mut(8).zip(self.values()) {
            bytes.copy_from_slice(&word.to_le_bytes()[..bytes.len()]);
        }
    }

    /// Waits until the bits of a file are on disk.
    pub fn sync(&self) -> io::Result<()> {
        self.words.flush()?;
        self.file
            .as_ref()
            .map_or(Ok(()), |file| file.file.sync_all())
    }

    /// All bits, in words; beyond the bits, the last word is 0.
    fn values(&self) -> impl Iterator<Item = u64> {
        let (whole, ours) = self.last();
        let words = self.words.get();
        let last = (ours != 0).then(|| words[whole].get() & ours);
        words[..whole].iter().map(Word::get).chain(last)
    }

    /// The index of the word that is only partly bits, and a mask of those; an empty mask if there is none.
    const fn last(&self) -> (usize, u64) {
        ((self.len / 8) as usize, (1 << (8 * (self.len % 8))) - 1)
    }

    fn writable(&self) -> &[AtomicU64] {
        let words = self.words.writable();
        words.expect("whoever writes has looked whether that is possible")
    }
}

impl BitsFile {
    /// An open file, and whether to map it for writing.
    pub const fn new(file: File, path: PathBuf, writable: bool) -> Self {
        Self {
            file,
            path,
            writable,
        }
    }

    /// The whole file, including anything after the bits.
    pub fn contents(&self) -> io::Result<Vec<u8>> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use tamis_formats::pybloomfilter::Hash;

    fn shape(bytes: u64) -> Shape {
        Shape {
            capacity: 1,
            error_rate: 0.5,
            bits: 8 * bytes,
            seeds: vec![1],
            hash: Hash::Murmur,
        }
    }

    /// A filter's file filled with ones after `bytes` bytes of bits.
    fn mapped(bytes: u64) -> Bits {
        let mut content = vec![0; BITS_AT + bytes as usize];
        content.extend([0xff; 16]);
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&content, 0).unwrap();
        Bits::map(BitsFile::new(file, "f".into(), true), &shape(bytes)).unwrap()
    }

    /// In memory and in files, whether or not the bits end inside a word, everything does the same, and the bytes after
    /// the bits stay unchanged.
    #[test]
    #[cfg_attr(miri, ignore = "maps files")]
    fn a_last_word_is_ours_as_far_as_the_bits_go() {
        for bytes in [1, 7, 8, 9, 16, 23] {
            let last = 8 * bytes - 1;
            for mut bits in [Bits::zeroed(bytes).unwrap(), mapped(bytes)] {
                assert!(!bits.any_set());
                assert_eq!(bits.set(&[0, last, last]), 2);
                assert_eq!((bits.set(&[0]), bits.count_ones()), (0, 2));
                assert!(bits.all_set(&[0, last]) && !bits.all_set(&[0, 1]));
                let mut stored = vec![0xaa; bytes as usize];
                bits.store(&mut stored);
                let mut other = Bits::zeroed(bytes).unwrap();
                other.load(&stored);
                assert_eq!(other.count_ones(), 2);

                assert_eq!(other.set(&[1]), 1);
                bits.unite(&other);
                assert!(bits.all_set(&[0, 1, last]));
                let mut one = Bits::zeroed(bytes).unwrap();
                one.set(&[1]);
                bits.intersect(&one);
                assert!(bits.all_set(&[1]) && bits.count_ones() == 1);
                bits.clear();
                assert!(!bits.any_set());
                if let Some(file) = bits.file() {
                    let after = file.contents().unwrap();
                    assert_eq!(after[BITS_AT + bytes as usize..], [0xff; 16]);
                }
            }
        }
    }
}
