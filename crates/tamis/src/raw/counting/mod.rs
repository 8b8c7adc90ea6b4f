//! The counting filter: blocked, with 4-bit counters instead of bits, so that
//! keys can be removed.
//!
//! A 64-byte line holds 128 counters. With a quarter of a blocked filter's
//! cells a line fills less evenly, so a key has twice as many lines, with half
//! of its counters in each: two, or four for rates below about 1e-3. That keeps
//! the size at four times the blocked one's (3.9 to 4.02), where one line a key
//! would need 4.35 times at 1 % and 4.83 at 0.1 %. A group of four adjacent
//! lines would be as small, but reads three or four of them.
//!
//! A counter that has reached 15 stays there: how much it stands for is not
//! known any more, and taking one away could hide another key.

pub(crate) mod counters;

use crate::error::Error;
use crate::hash::{Hash, mix, reduce};
use crate::kind::Kind;
use crate::raw::blocked::{LINE_WORDS, line};
use crate::raw::isa::{self, prefetch};
use crate::raw::layout::{BitLayout, Creatable, Difference, Layout, Sealed};
use crate::raw::word::Word;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters of a line.
pub(crate) const LINE_CELLS: u32 = 128;
/// Bits of a position.
pub(crate) const FIELD_BITS: u32 = LINE_CELLS.ilog2();
/// Positions that one word holds.
pub(crate) const FIELDS: u32 = 64 / FIELD_BITS;
const MAX_HASHES_PER_LINE: u32 = 32;
/// 2^60 bytes, as in a blocked filter.
const MAX_LINES: u64 = 1 << 54;

/// The lowest bit of each counter of a word.
const ONES: u64 = 0x1111_1111_1111_1111;

/// Lines, and counters per key, of a [`Counting`](crate::Counting) filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountingShape {
    lines: u64,
    hashes_per_line: u32,
    lines_per_key: u32,
}

impl CountingShape {
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
        if ![1, 2, 4].contains(&lines_per_key) {
            return refuse("lines per key", "1, 2 or 4", lines_per_key.into());
        }
        Ok(Self {
            lines,
            hashes_per_line,
            lines_per_key,
        })
    }

    /// The number of 64-byte lines, of 128 counters each.
    pub const fn lines(&self) -> u64 {
        self.lines
    }

    /// How many counters a key has in each of its lines.
    pub const fn hashes_per_line(&self) -> u32 {
        self.hashes_per_line
    }

    /// How many lines hold a key's counters: 2, or 4 for rates below about
    /// 1e-3, or 1 in small filters.
    pub const fn lines_per_key(&self) -> u32 {
        self.lines_per_key
    }

    pub(crate) const fn body_len(&self) -> u64 {
        self.lines * 64
    }

    /// The indices of the key's lines.
    #[inline(always)]
    pub(crate) fn lines_of(self, hash: Hash) -> impl Iterator<Item = usize> {
        let mut x = hash.hi;
        (0..self.lines_per_key).map(move |_| {
            let index = reduce(x, self.lines) as usize;
            x = mix(x);
            index
        })
    }

    /// Calls `each` with the index of each of the key's lines and its counters
    /// in it, marked by the lowest of their four bits in the line's eight
    /// little-endian words.
    ///
    /// ```
    /// use tamis::raw::CountingShape;
    /// use tamis::Hasher;
    /// let shape = CountingShape::new(1_000, 4, 2)?;
    /// let mut lines = 0;
    /// shape.for_each_line(Hasher::default().hash(b"key"), |line, marks| {
    ///     assert!(line < 1_000);
    ///     assert_eq!(marks.iter().map(|word| word.count_ones()).sum::<u32>(), 4);
    ///     lines += 1;
    /// });
    /// assert_eq!(lines, 2);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[inline]
    pub fn for_each_line(&self, hash: Hash, mut each: impl FnMut(u64, [u64; 8])) {
        let mut fields = Fields::new(hash);
        for index in self.lines_of(hash) {
            each(
                index as u64,
                line_marks(fields.of_line(self.hashes_per_line), self.hashes_per_line),
            );
        }
    }

    /// Asks the memory for all lines of the keys, which a change needs.
    #[inline]
    pub(crate) fn prefetch_all<T>(&self, words: &[T], hashes: &[Hash]) {
        for index in hashes.iter().flat_map(|hash| self.lines_of(*hash)) {
            prefetch(line(words, index));
        }
    }

    /// The least of the key's counters.
    pub(crate) fn count<W: Word>(&self, words: &[W], hash: Hash) -> u64 {
        let mut least = 15;
        self.for_each_line(hash, |index, marks| {
            for (word, marks) in line(words, index as usize).iter().zip(marks) {
                let mut left = marks;
                while left != 0 {
                    least = least.min(word.get() >> left.trailing_zeros() & 15);
                    left &= left - 1;
                }
            }
        });
        least
    }

    /// Takes one from each of the key's counters, if the key seems present;
    /// whether it did, and whether it still does.
    pub(crate) fn remove(&self, words: &[AtomicU64], hash: Hash) -> (bool, bool) {
        if !self.contains(words, hash) {
            return (false, false);
        }
        self.for_each_line(hash, |index, marks| {
            for (word, marks) in line(words, index as usize).iter().zip(marks) {
                if marks != 0 {
                    update(word, |word| subtract(word, marks));
                }
            }
        });
        (true, self.contains(words, hash))
    }
}

/// The key's positions in its lines: 7-bit fields of a 64-bit word, nine a
/// word, lowest first; when fewer are left than a line needs (or nine, if it
/// needs more), the next word is begun, which is the [`mix`] of the last. The
/// first is the hash's low half.
#[derive(Clone, Copy)]
pub(crate) struct Fields {
    word: u64,
    /// What is left of the word, and how many fields that is.
    rest: u64,
    left: u32,
}

impl Fields {
    #[inline(always)]
    pub(crate) fn new(hash: Hash) -> Self {
        Self {
            word: hash.lo,
            rest: hash.lo,
            left: FIELDS,
        }
    }

    #[inline(always)]
    fn next_word(&mut self) {
        self.word = mix(self.word);
        (self.rest, self.left) = (self.word, FIELDS);
    }

    /// The fields of the next line; `self` moves on to the one after it.
    #[inline(always)]
    pub(crate) fn of_line(&mut self, hashes: u32) -> Self {
        if self.left < hashes.min(FIELDS) {
            self.next_word();
        }
        let line = *self;
        match hashes <= FIELDS {
            true => {
                self.rest >>= hashes * FIELD_BITS;
                self.left -= hashes;
            }
            false => self.by_ref().take(hashes as usize).for_each(drop),
        }
        line
    }

    /// The first fields as they lie in the word, up to nine.
    #[inline(always)]
    pub(crate) fn in_word(&self) -> u64 {
        self.rest
    }
}

impl Iterator for Fields {
    type Item = u32;

    #[inline(always)]
    fn next(&mut self) -> Option<u32> {
        if self.left == 0 {
            self.next_word();
        }
        let field = self.rest as u32 % LINE_CELLS;
        self.rest >>= FIELD_BITS;
        self.left -= 1;
        Some(field)
    }
}

/// The word of a line and the shift in it of a counter.
#[inline(always)]
const fn place(cell: u32) -> (usize, u32) {
    ((cell / 16) as usize, cell % 16 * 4)
}

/// The counters of a key in one line, marked by their lowest bits. A counter
/// that the key has already taken moves to the next free one, as in a blocked
/// filter.
#[inline]
fn line_marks(fields: Fields, hashes: u32) -> [u64; LINE_WORDS] {
    let mut marks = [0; LINE_WORDS];
    for cell in fields.take(hashes as usize) {
        let mut cell = cell;
        while marks[place(cell).0] >> place(cell).1 & 1 != 0 {
            cell = (cell + 1) % LINE_CELLS;
        }
        marks[place(cell).0] |= 1 << place(cell).1;
    }
    marks
}

/// Whether all counters of the key in this line are above zero.
#[inline(always)]
fn line_has<W: Word>(line: &[W; LINE_WORDS], fields: Fields, hashes: u32) -> bool {
    // Distinct low six bits prove distinct counters, which is the usual case
    // and spares the search for repeated ones.
    let mut low_bits = 0u64;
    let all_above = fields.take(hashes as usize).all(|cell| {
        low_bits |= 1 << (cell % 64);
        let (word, shift) = place(cell);
        line[word].get() >> shift & 15 != 0
    });
    all_above
        && (low_bits.count_ones() == hashes
            || line_marks(fields, hashes)
                .iter()
                .zip(line)
                .all(|(marks, word)| above_zero(word.get()) & marks == *marks))
}

/// Adds one to each of the key's counters in this line; whether one was zero.
#[inline(always)]
fn add_to_line(line: &mut [u64; LINE_WORDS], fields: Fields, hashes: u32) -> bool {
    let fields_of_line = || fields.take(hashes as usize);
    let low_bits = fields_of_line().fold(0u64, |bits, cell| bits | 1 << (cell % 64));
    let mut new = false;
    let mut add_to = |word: &mut u64, marks: u64| {
        let before = u64::from_le(*word);
        new |= marks & !above_zero(before) != 0;
        *word = add(before, marks).to_le();
    };
    if low_bits.count_ones() == hashes {
        for (word, shift) in fields_of_line().map(place) {
            add_to(&mut line[word], 1 << shift);
        }
    } else {
        for (word, marks) in line.iter_mut().zip(line_marks(fields, hashes)) {
            add_to(word, marks);
        }
    }
    new
}

/// Marks the counters that are not 0.
#[inline(always)]
pub(crate) const fn above_zero(word: u64) -> u64 {
    (word | word >> 1 | word >> 2 | word >> 3) & ONES
}

/// Marks the counters that are 15.
#[inline(always)]
const fn full(word: u64) -> u64 {
    word & word >> 1 & word >> 2 & word >> 3 & ONES
}

/// One more in each marked counter; full ones stay.
#[inline(always)]
const fn add(word: u64, marks: u64) -> u64 {
    word + (marks & !full(word))
}

/// One less in each marked counter; full ones stay, and empty ones.
#[inline(always)]
const fn subtract(word: u64, marks: u64) -> u64 {
    word - (marks & !full(word) & above_zero(word))
}

/// Combines the counters of two words, one by one.
fn zip_counters(a: u64, b: u64, combine: impl Fn(u64, u64) -> u64) -> u64 {
    (0..64).step_by(4).fold(0, |word, shift| {
        word | combine(a >> shift & 15, b >> shift & 15) << shift
    })
}

/// Changes a word while others may change it, too; what it was.
#[inline(always)]
fn update(word: &AtomicU64, change: impl Fn(u64) -> u64) -> u64 {
    let change = |word| Some(change(u64::from_le(word)).to_le());
    match word.fetch_update(Relaxed, Relaxed, change) {
        Ok(before) | Err(before) => u64::from_le(before),
    }
}

impl Sealed for CountingShape {}

impl Creatable for CountingShape {}

impl Layout for CountingShape {
    const KIND: Kind = Kind::Counting;

    fn difference(&self, other: &Self) -> Option<Difference> {
        let (ours, theirs) = (self.hashes_per_line, other.hashes_per_line);
        Difference::between("lines", self.lines, other.lines)
            .or_else(|| Difference::between("hashes per line", ours, theirs))
            .or_else(|| {
                Difference::between("lines per key", self.lines_per_key, other.lines_per_key)
            })
    }

    #[inline]
    fn contains<W: Word>(&self, words: &[W], hash: Hash) -> bool {
        let (mut fields, k) = (Fields::new(hash), self.hashes_per_line);
        self.lines_of(hash)
            .all(|index| line_has(line(words, index), fields.of_line(k), k))
    }

    /// The first line alone: an absent key seldom needs another.
    #[inline]
    fn prefetch<T>(&self, words: &[T], hash: Hash) {
        let lines: *const [T; LINE_WORDS] = words.as_ptr().cast();
        prefetch(lines.wrapping_add(reduce(hash.hi, self.lines) as usize));
    }

    fn contains_many<W: Word>(&self, words: &[W], hashes: &[Hash], out: &mut [bool]) {
        counters::contains_block(isa::Path::best(), self, words, hashes, out);
    }

    /// As in a blocked filter, from the share of counters that are 0.
    fn keys_now<W: Word>(&self, words: &[W]) -> f64 {
        let cells = f64::from(LINE_CELLS);
        let used: u64 = words
            .iter()
            .map(|w| u64::from(above_zero(w.get()).count_ones()))
            .sum();
        let fill = used as f64 / (self.lines as f64 * cells);
        let keys_per_line = -(-fill).ln_1p() * cells / f64::from(self.hashes_per_line);
        keys_per_line * self.lines as f64 / f64::from(self.lines_per_key)
    }
}

impl BitLayout for CountingShape {
    #[inline]
    fn insert(&self, words: &[AtomicU64], hash: Hash) -> bool {
        let mut new = false;
        self.for_each_line(hash, |index, marks| {
            for (word, marks) in line(words, index as usize).iter().zip(marks) {
                if marks != 0 {
                    let before = update(word, |word| add(word, marks));
                    new |= marks & !above_zero(before) != 0;
                }
            }
        });
        new
    }

    fn insert_many_shared(&self, words: &[AtomicU64], hashes: &[Hash], new: &mut [bool]) {
        self.prefetch_all(words, hashes);
        for (hash, new) in hashes.iter().zip(new) {
            *new = self.insert(words, *hash);
        }
    }

    fn insert_many(&self, words: &mut [u64], hashes: &[Hash], new: &mut [bool]) {
        self.prefetch_all(words, hashes);
        let lines = words.as_chunks_mut::<LINE_WORDS>().0;
        for (hash, new) in hashes.iter().zip(new) {
            let (mut fields, k) = (Fields::new(*hash), self.hashes_per_line);
            *new = self.lines_of(*hash).fold(false, |new, index| {
                new | add_to_line(&mut lines[index], fields.of_line(k), k)
            });
        }
    }

    /// The sums: as if the keys of both had been added to one.
    fn unite(word: &AtomicU64, theirs: u64) {
        update(word, |ours| {
            zip_counters(ours, theirs, |a, b| (a + b).min(15))
        });
    }

    /// The smaller of the two, which is at least what the common keys add up
    /// to, so these can go on being removed.
    fn intersect(word: &AtomicU64, theirs: u64) {
        update(word, |ours| zip_counters(ours, theirs, u64::min));
    }
}
