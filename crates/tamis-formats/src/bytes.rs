//! A file's bytes: borrowed, owned, or mapped while others may write to them.

use memmap2::{MmapOptions, MmapRaw};
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::Relaxed};

/// The bytes of a file: a slice, a vector, or a file that is mapped.
///
/// Functions that take `Bytes` also take slices and vectors. A mapped file is never exposed as a
/// slice, since other processes may write to it: its bytes are loaded one by one when needed.
#[derive(Clone, Debug)]
pub struct Bytes<'a>(Owner<'a>);

#[derive(Clone, Debug)]
enum Owner<'a> {
    Lent(&'a [u8]),
    Owned(Vec<u8>),
    Mapped(Arc<MmapRaw>, Range<usize>),
}

impl Bytes<'static> {
    /// Maps a file. Pages are read when first used, so mapping takes the same time at any size.
    ///
    /// If another process writes to the file, answers change. The file must not be truncated while
    /// it is mapped: the system would kill the program with a signal.
    ///
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("tamis-bytes-{}", std::process::id()));
    /// use tamis_formats::{Bytes, Create, Format};
    /// let mut filter = tamis_formats::create(Create::Dcso, 1_000, 0.01)?;
    /// filter.insert(b"key")?;
    /// std::fs::write(&dir, filter.to_bytes())?;
    ///
    /// let bytes = Bytes::map(&std::fs::File::open(&dir)?)?;
    /// assert!(tamis_formats::open(bytes, Format::Dcso)?.contains(b"key"));
    /// # std::fs::remove_file(&dir)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn map(file: &File) -> io::Result<Self> {
        if file.metadata()?.len() == 0 {
            return Ok(Vec::new().into());
        }
        let map = MmapOptions::new().map_raw_read_only(file)?;
        let all = 0..map.len();
        Ok(Self(Owner::Mapped(Arc::new(map), all)))
    }
}

impl<'a> Bytes<'a> {
    /// Their number.
    pub fn len(&self) -> usize {
        self.view().len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether they begin with `start`.
    pub fn starts_with(&self, start: &[u8]) -> bool {
        self.view().starts_with(start)
    }

    /// A part of them; for a mapped file, without copying.
    ///
    /// # Panics
    /// If the range is out of bounds.
    ///
    /// ```
    /// use tamis_formats::Bytes;
    /// assert_eq!(Bytes::from(b"abc").slice(1..2).to_vec(), b"b");
    /// ```
    pub fn slice(&self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.len());
        Self(match &self.0 {
            Owner::Lent(bytes) => Owner::Lent(&bytes[range]),
            Owner::Owned(bytes) => Owner::Owned(bytes[range].to_vec()),
            Owner::Mapped(map, all) => {
                let at = all.start;
                Owner::Mapped(map.clone(), at + range.start..at + range.end)
            }
        })
    }

    /// A copy.
    pub fn to_vec(&self) -> Vec<u8> {
        self.view().to_vec()
    }

    /// Writes all of them.
    pub fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        self.view().pieces(|piece| out.write_all(piece))
    }

    /// For changes; copies bytes that aren't owned.
    pub(crate) fn to_mut(&mut self) -> &mut Vec<u8> {
        if !matches!(self.0, Owner::Owned(_)) {
            self.0 = Owner::Owned(self.to_vec());
        }
        match &mut self.0 {
            Owner::Owned(bytes) => bytes,
            _ => unreachable!("they are owned now"),
        }
    }

    pub(crate) fn into_owned(self) -> Bytes<'static> {
        Bytes(match self.0 {
            Owner::Lent(bytes) => Owner::Owned(bytes.to_vec()),
            Owner::Owned(bytes) => Owner::Owned(bytes),
            Owner::Mapped(map, range) => Owner::Mapped(map, range),
        })
    }

    #[inline]
    pub(crate) fn view(&self) -> View<'_> {
        match &self.0 {
            Owner::Lent(bytes) => View::Plain(bytes),
            Owner::Owned(bytes) => View::Plain(bytes),
            Owner::Mapped(map, range) => {
                let start = map.as_ptr().cast::<AtomicU8>();
                // SAFETY: the mapping has `map.len()` bytes, and lives as long as `self`. Only
                // other processes may write to it; here it is only loaded from, with relaxed
                // atomics, which is allowed on memory that is mapped for reading.
                let all = unsafe { std::slice::from_raw_parts(start, map.len()) };
                View::Mapped(&all[range.clone()])
            }
        }
    }
}

impl<'a> From<&'a [u8]> for Bytes<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self(Owner::Lent(bytes))
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for Bytes<'a> {
    fn from(bytes: &'a [u8; N]) -> Self {
        Self(Owner::Lent(bytes))
    }
}

impl<'a> From<&'a Vec<u8>> for Bytes<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        Self(Owner::Lent(bytes))
    }
}

impl From<Vec<u8>> for Bytes<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Owner::Owned(bytes))
    }
}

/// Bytes to read. Private, so that no caller gets the atomics, which could be written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum View<'v> {
    Plain(&'v [u8]),
    Mapped(&'v [AtomicU8]),
}

impl<'v> View<'v> {
    #[inline(always)]
    pub(crate) const fn len(self) -> usize {
        match self {
            Self::Plain(bytes) => bytes.len(),
            Self::Mapped(bytes) => bytes.len(),
        }
    }

    /// # Panics
    /// If it is out of bounds.
    #[inline(always)]
    pub(crate) fn get(self, at: usize) -> u8 {
        match self {
            Self::Plain(bytes) => bytes[at],
            Self::Mapped(bytes) => bytes[at].load(Relaxed),
        }
    }

    /// Prefetches a byte's cache line.
    #[inline(always)]
    pub(crate) fn prefetch(self, at: usize) {
        tamis::internals::raw::prefetch(match self {
            Self::Plain(bytes) => bytes.as_ptr().wrapping_add(at),
            Self::Mapped(bytes) => bytes.as_ptr().cast::<u8>().wrapping_add(at),
        });
    }

    pub(crate) fn slice(self, range: Range<usize>) -> Self {
        match self {
            Self::Plain(bytes) => Self::Plain(&bytes[range]),
            Self::Mapped(bytes) => Self::Mapped(&bytes[range]),
        }
    }

    /// A part of them, as a slice.
    pub(crate) fn read(self, range: Range<usize>) -> Cow<'v, [u8]> {
        match self.slice(range) {
            Self::Plain(bytes) => Cow::Borrowed(bytes),
            some => Cow::Owned(some.to_vec()),
        }
    }

    #[inline]
    pub(crate) fn array<const N: usize>(self, at: usize) -> Option<[u8; N]> {
        let end = at.checked_add(N).filter(|end| *end <= self.len())?;
        let some = self.slice(at..end);
        Some(std::array::from_fn(|i| some.get(i)))
    }

    pub(crate) fn last_array<const N: usize>(self) -> Option<[u8; N]> {
        self.array(self.len().checked_sub(N)?)
    }

    pub(crate) fn starts_with(self, start: &[u8]) -> bool {
        self.len() >= start.len() && *self.read(0..start.len()) == *start
    }

    pub(crate) fn to_vec(self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.len());
        let _ = self.pieces(|piece| {
            all.extend_from_slice(piece);
            Ok::<(), ()>(())
        });
        all
    }

    /// Calls `each` with all bytes, in pieces.
    pub(crate) fn pieces<E>(self, mut each: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let bytes = match self {
            Self::Plain(bytes) => return each(bytes),
            Self::Mapped(bytes) => bytes,
        };
        // SAFETY: words consist of initialised bytes, and are only loaded from.
        let (start, words, end) = unsafe { bytes.align_to::<AtomicUsize>() };
        let mut piece = Vec::with_capacity(1 << 16);
        piece.extend(start.iter().map(|byte| byte.load(Relaxed)));
        for run in words.chunks((1 << 16) / size_of::<usize>()) {
            // In memory order.
            #[allow(clippy::host_endian_bytes)]
            piece.extend(run.iter().flat_map(|word| word.load(Relaxed).to_ne_bytes()));
            each(&piece)?;
            piece.clear();
        }
        piece.extend(end.iter().map(|byte| byte.load(Relaxed)));
        each(&piece)
    }

    /// The number of set bits.
    pub(crate) fn ones(self) -> u64 {
        let mut ones = 0;
        let _ = self.pieces(|piece| {
            let (words, rest) = piece.as_chunks::<8>();
            let of = |word: &[u8; 8]| u64::from(u64::from_le_bytes(*word).count_ones());
            ones += words.iter().map(of).sum::<u64>();
            ones += rest
                .iter()
                .map(|byte| u64::from(byte.count_ones()))
                .sum::<u64>();
            Ok::<(), ()>(())
        });
        ones
    }
}

impl<'v> From<&'v [u8]> for View<'v> {
    fn from(bytes: &'v [u8]) -> Self {
        Self::Plain(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapped_bytes_are_those_of_the_file() {
        let path = std::env::temp_dir().join(format!("tamis-formats-bytes-{}", std::process::id()));
        let content: Vec<u8> = (0..200_003u32).map(|i| ((i * 7) >> 3) as u8).collect();
        std::fs::write(&path, &content).unwrap();
        let mapped = Bytes::map(&File::open(&path).unwrap()).unwrap();
        assert_eq!(
            (mapped.len(), mapped.to_vec()),
            (content.len(), content.clone())
        );
        for range in [0..0, 0..1, 3..19, 5..200_003, 100_001..100_007] {
            let (some, expected) = (mapped.slice(range.clone()), &content[range]);
            let view = some.view();
            assert_eq!(some.to_vec(), expected);
            assert_eq!(view.ones(), View::Plain(expected).ones());
            assert!((0..expected.len()).all(|i| view.get(i) == expected[i]));
            assert_eq!(view.array::<4>(1), View::Plain(expected).array::<4>(1));
            assert!(some.starts_with(&expected[..expected.len().min(9)]));
        }
        // As another process would do it.
        std::fs::OpenOptions::new()
            .write(true)
            .open(&path)
            .unwrap()
            .write_all(&[0xEE; 9])
            .unwrap();
        assert_eq!(mapped.slice(0..9).to_vec(), [0xEE; 9]);
        let mut changed = mapped.clone();
        changed.to_mut()[0] = 1;
        assert_eq!((changed.view().get(0), mapped.view().get(0)), (1, 0xEE));
        std::fs::remove_file(&path).unwrap();
    }
}
