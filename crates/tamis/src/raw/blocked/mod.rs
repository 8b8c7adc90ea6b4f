//! The line-blocked Bloom filter: the default kind.
//!
//! All bits of a key lie in one 64-byte line (or half of them in each of two
//! lines), so a key costs one cache miss, one page, one command to a server.
//! Lines fill unevenly, which the classic formula ignores; `plan` sizes with
//! the exact distribution, so the promised rate is the measured one.

mod fields;
pub(crate) mod scalar;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86_64;

use crate::error::Error;
use crate::hash::{Hash, mix, reduce};
use crate::kind::Kind;
use crate::raw::isa;
use crate::raw::layout::{BitLayout, Creatable, Difference, Layout, Sealed};
use crate::raw::word::Word;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Words of a line.
pub(crate) const LINE_WORDS: usize = 8;
/// Bits of a line.
pub(crate) const LINE_BITS: u32 = 512;
const MAX_HASHES_PER_LINE: u32 = 32;
/// 2^60 bytes: far beyond any machine, and no product below overflows.
const MAX_LINES: u64 = 1 << 54;

/// Lines, and bits per key, of a [`Blocked`](crate::Blocked) filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockedShape {
    lines: u64,
    hashes_per_line: u32,
    lines_per_key: u32,
}

impl BlockedShape {
    /// A shape of exactly these numbers.
    pub fn new(lines: u64, hashes_per_line: u32, lines_per_key: u32) -> Result<Self, Error> {
        let refuse = |what, expected, got: u64| {
            Err(Error::Parameter {
                what,
                expected,
                got: got.to_string(),
            })
        };
        if !(1..=MAX_LINES).contains(&lines) {
            return refuse("lines", "1 to 2^54", lines);
        }
        if !(1..=MAX_HASHES_PER_LINE).contains(&hashes_per_line) {
            return refuse("hashes per line", "1 to 32", hashes_per_line.into());
        }
        if !(1..=2).contains(&lines_per_key) {
            return refuse("lines per key", "1 or 2", lines_per_key.into());
        }
        Ok(Self {
            lines,
            hashes_per_line,
            lines_per_key,
        })
    }

    /// The number of 64-byte lines.
    pub const fn lines(&self) -> u64 {
        self.lines
    }

    /// How many bits a key sets in each of its lines.
    pub const fn hashes_per_line(&self) -> u32 {
        self.hashes_per_line
    }

    /// How many lines hold a key's bits: 1, or 2 for rates below about 1e-3.
    pub const fn lines_per_key(&self) -> u32 {
        self.lines_per_key
    }

    pub(crate) const fn body_len(&self) -> u64 {
        self.lines * 64
    }

    /// Calls `each` with the index of each of the key's lines and its bits in
    /// it, as the line's eight little-endian words: what a filter that lives
    /// elsewhere than in memory needs to be asked and added to.
    ///
    /// ```
    /// use tamis::raw::BlockedShape;
    /// use tamis::Hasher;
    /// let shape = BlockedShape::new(1_000, 6, 1)?;
    /// shape.for_each_line(Hasher::default().hash(b"key"), |line, bits| {
    ///     assert!(line < 1_000);
    ///     assert_eq!(bits.iter().map(|word| word.count_ones()).sum::<u32>(), 6);
    /// });
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[inline]
    pub fn for_each_line(&self, hash: Hash, mut each: impl FnMut(u64, [u64; 8])) {
        scalar::for_each_line(self, hash, |line, bits| each(line as u64, bits));
    }

    /// The number of keys, estimated from how many bits are set in all.
    ///
    /// ```
    /// let shape = tamis::raw::BlockedShape::new(1_000, 6, 1)?;
    /// assert_eq!(shape.keys_from_ones(0), 0.0);
    /// assert!((shape.keys_from_ones(60) - 10.0).abs() < 0.01);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn keys_from_ones(&self, ones: u64) -> f64 {
        // A key leaves a bit of its line unset with probability 1 - k/512, and
        // lines receive a Poisson number of keys, so the share of unset bits
        // is exp(-keys per line · k/512).
        let fill = ones as f64 / (self.lines as f64 * f64::from(LINE_BITS));
        let keys_per_line =
            -(-fill).ln_1p() * f64::from(LINE_BITS) / f64::from(self.hashes_per_line);
        keys_per_line * self.lines as f64 / f64::from(self.lines_per_key)
    }

    /// The index of a key's first line.
    #[inline(always)]
    pub(crate) fn first_line(&self, hash: Hash) -> usize {
        reduce(hash.hi, self.lines) as usize
    }

    /// The index of a key's second line, where it has one.
    #[inline(always)]
    pub(crate) fn second_line(&self, hash: Hash) -> usize {
        reduce(mix(hash.hi), self.lines) as usize
    }
}

/// The eight words of a line.
#[inline(always)]
pub(crate) fn line<T>(words: &[T], index: usize) -> &[T; LINE_WORDS] {
    &words.as_chunks().0[index]
}

impl Sealed for BlockedShape {}

impl Creatable for BlockedShape {}

impl Layout for BlockedShape {
    const KIND: Kind = Kind::Blocked;

    fn difference(&self, other: &Self) -> Option<Difference> {
        Difference::between("lines", self.lines, other.lines)
            .or_else(|| {
                Difference::between(
                    "hashes per line",
                    self.hashes_per_line,
                    other.hashes_per_line,
                )
            })
            .or_else(|| {
                Difference::between("lines per key", self.lines_per_key, other.lines_per_key)
            })
    }

    #[inline]
    fn contains<W: Word>(&self, words: &[W], hash: Hash) -> bool {
        scalar::contains(self, words, hash)
    }

    #[inline(always)]
    fn prefetch<T>(&self, words: &[T], hash: Hash) {
        let lines: *const [T; LINE_WORDS] = words.as_ptr().cast();
        isa::prefetch(lines.wrapping_add(self.first_line(hash)));
        if self.lines_per_key == 2 {
            isa::prefetch(lines.wrapping_add(self.second_line(hash)));
        }
    }

    fn contains_many<W: Word>(&self, words: &[W], hashes: &[Hash], out: &mut [bool]) {
        self.contains_hashes(words, hashes, out);
    }

    fn contains_hashes<W: Word, H: Copy + Into<Hash>>(
        &self,
        words: &[W],
        hashes: &[H],
        out: &mut [bool],
    ) {
        isa::contains(isa::Path::best(), self, words, hashes, out);
    }

    fn keys_now<W: Word>(&self, words: &[W]) -> f64 {
        self.keys_from_ones(crate::raw::bloom::ones(words))
    }
}

impl BitLayout for BlockedShape {
    #[inline]
    fn insert(&self, words: &[AtomicU64], hash: Hash) -> bool {
        let mut new = false;
        scalar::for_each_line(self, hash, |index, mask| {
            for (word, bits) in line(words, index).iter().zip(mask) {
                // Words that have the bits are left alone: reading keeps the
                // line shared between the cores.
                if bits != 0 && word.get() & bits != bits {
                    let before = u64::from_le(word.fetch_or(bits.to_le(), Relaxed));
                    new |= before & bits != bits;
                }
            }
        });
        new
    }

    #[inline]
    fn insert_alone(&self, words: &mut [u64], hash: Hash) -> bool {
        scalar::insert_exclusive(self, words, hash)
    }

    fn insert_many_shared(&self, words: &[AtomicU64], hashes: &[Hash], new: &mut [bool]) {
        for (hash, new) in hashes.iter().zip(new) {
            *new = self.insert(words, *hash);
        }
    }

    fn insert_many(&self, words: &mut [u64], hashes: &[Hash], new: &mut [bool]) {
        self.insert_hashes(words, hashes, new);
    }

    fn insert_hashes<H: Copy + Into<Hash>>(
        &self,
        words: &mut [u64],
        hashes: &[H],
        new: &mut [bool],
    ) {
        isa::insert(isa::Path::best(), self, words, hashes, new);
    }
}
