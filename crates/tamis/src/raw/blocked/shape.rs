//! Where a key's lines and bits are.

use super::scalar::{self, LINE_WORDS};
use crate::error::Error;
use crate::hash::{Hash, reduce};
use crate::raw::explain::Cell;
use crate::raw::isa::{InPlace, Isa};

/// Bits of a line.
pub(crate) const LINE_BITS: u64 = 512;
/// The most bits of a key in a line, one in each word.
pub(crate) const MAX_HASHES_PER_LINE: u32 = LINE_WORDS as u32;
/// The most lines of a key.
pub(crate) const MAX_LINES_PER_KEY: u32 = 4;
/// 2^60 bytes: far beyond any machine, and products below don't overflow.
const MAX_LINES: u64 = 1 << 54;

/// Lines, and bits per key, of a [`Blocked`](crate::Blocked) filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockedShape {
    lines_per_bank: u64,
    covers: [u8; LINE_WORDS],
    /// The number of banks.
    lines_per_key: u32,
    /// Detected once, so that single keys needn't.
    pub(super) isa: Isa,
    /// `Some` if keys have one line, visited in place.
    pub(super) in_place: Option<InPlace>,
}

impl BlockedShape {
    /// A shape with exactly these numbers. `lines` must be a multiple of `lines_per_key`.
    ///
    /// ```
    /// use tamis::internals::raw::BlockedShape;
    /// assert!(BlockedShape::new(1_000, 6, 1).is_ok());
    /// assert!(BlockedShape::new(1_000, 9, 1).is_err()); // a line has eight words
    /// assert!(BlockedShape::new(1_000, 6, 3).is_err()); // no three equal banks
    /// ```
    pub fn new(lines: u64, hashes_per_line: u32, lines_per_key: u32) -> Result<Self, Error> {
        let refuse = |what, expected, got| Err(Error::parameter(what, expected, got));
        if !(1..=MAX_LINES).contains(&lines) {
            return refuse("lines", "1 to 2^54", lines);
        }
        if !(1..=MAX_HASHES_PER_LINE).contains(&hashes_per_line) {
            return refuse("hashes per line", "1 to 8", hashes_per_line.into());
        }
        if !(1..=MAX_LINES_PER_KEY).contains(&lines_per_key) {
            return refuse("lines per key", "1 to 4", lines_per_key.into());
        }
        if !lines.is_multiple_of(lines_per_key.into()) {
            return refuse("lines", "a multiple of the lines per key", lines);
        }
        let isa = Isa::best();
        let shape = Self {
            lines_per_bank: lines / u64::from(lines_per_key),
            covers: covers(hashes_per_line),
            lines_per_key,
            isa,
            in_place: None,
        };
        Ok(shape.on(isa))
    }

    /// The same shape with other instructions.
    pub(super) fn on(mut self, isa: Isa) -> Self {
        self.isa = isa;
        self.in_place = isa.in_place().filter(|_| self.lines_per_key == 1);
        self
    }

    /// The number of 64-byte lines.
    #[inline]
    pub const fn lines(&self) -> u64 {
        self.lines_per_bank * self.lines_per_key as u64
    }

    /// How many bits a key sets in each of its lines: 1 to 8.
    #[inline]
    pub const fn hashes_per_line(&self) -> u32 {
        self.covers[0].count_ones()
    }

    /// How many lines hold a key's bits: 1 to 4. More lines give a lower rate.
    #[inline]
    pub const fn lines_per_key(&self) -> u32 {
        self.lines_per_key
    }

    #[inline]
    pub(crate) const fn lines_per_bank(&self) -> u64 {
        self.lines_per_bank
    }

    pub(crate) const fn body_len(&self) -> u64 {
        self.lines() * 64
    }

    /// Calls `each` with the index of each of the key's lines and its bits there, as the line's
    /// eight little-endian words: enough to query and add to a filter stored elsewhere.
    ///
    /// ```
    /// use tamis::internals::raw::BlockedShape;
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
        for (line, lo) in self.lines_of(hash) {
            each(line as u64, scalar::mask(lo, self.cover(lo)));
        }
    }

    /// The key's bits, with the value of each by its number in the filter.
    pub(crate) fn cells(&self, hash: Hash, holds: impl Fn(u64) -> u64) -> Vec<Cell> {
        let mut cells = Vec::new();
        self.for_each_line(hash, |line, words| {
            for (word, bits) in (0..).zip(words) {
                if bits != 0 {
                    let at = word * 64 + u64::from(bits.trailing_zeros());
                    let value = holds(line * LINE_BITS + at);
                    let line = Some(line);
                    cells.push(Cell { line, at, value });
                }
            }
        });
        cells
    }

    /// The number of keys, estimated from the number of set bits. If all are set, as many keys as
    /// would leave one unset, because no better estimate exists.
    ///
    /// ```
    /// let shape = tamis::internals::raw::BlockedShape::new(1_000, 6, 1)?;
    /// assert_eq!(shape.keys_from_ones(0), 0.0);
    /// assert!((shape.keys_from_ones(60) - 10.0).abs() < 0.01);
    /// assert!(shape.keys_from_ones(1_000 * 512).is_finite());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn keys_from_ones(&self, ones: u64) -> f64 {
        // A key leaves a bit of its bank unset with probability 1 - k/512/lines, independently of
        // other keys.
        let lines = self.lines_per_bank as f64;
        let bits = self.lines() as f64 * LINE_BITS as f64;
        let fill = (ones as f64).min(bits - 1.0) / bits;
        let share = f64::from(self.hashes_per_line()) / LINE_BITS as f64 / lines;
        libm::log1p(-fill) / libm::log1p(-share)
    }

    /// The words of its line in which the key has a bit, as a bit set.
    #[inline(always)]
    pub(super) fn cover(&self, lo: u64) -> u8 {
        self.covers[(lo >> 61) as usize]
    }

    /// The index of the key's line in bank number `nth`.
    #[inline(always)]
    pub(super) fn line_of(&self, nth: u32, hash: Hash) -> usize {
        (u64::from(nth) * self.lines_per_bank + reduce(hash.hi, self.lines_per_bank)) as usize
    }

    /// The key's lines: the index of each, and the hash half that its bits come from.
    #[inline(always)]
    pub(crate) fn lines_of(self, mut hash: Hash) -> impl Iterator<Item = (usize, u64)> {
        (0..self.lines_per_key).map(move |nth| {
            if nth > 0 {
                hash = scalar::next(hash);
            }
            (self.line_of(nth, hash), hash.lo)
        })
    }
}

/// For each word that a key's bits may start in: which words have a bit, as a bit set. They are
/// consecutive, wrapping around the end.
pub(crate) fn covers(hashes_per_line: u32) -> [u8; LINE_WORDS] {
    let from_first = ((1u32 << hashes_per_line) - 1) as u8;
    std::array::from_fn(|first| from_first.rotate_left(first as u32))
}
