//! Sorts a batch's keys by ranges of lines, so that several threads can add batches at once.
//!
//! Adding sets a key's bits in its lines regardless of their content, and whether a line lacked a bit depends only
//! on that line. So if every range gets the batches in one order, bits and answers are those of one thread.

use super::{BlockedShape, LINE_WORDS, Line, scalar, set};
use crate::hash::{Hash, reduce};
use crate::raw::isa::{Batch, Isa, prefetch};
use std::ops::Range;
use std::sync::atomic::AtomicU64;

/// The most ranges of a bank.
const RANGES: usize = 32;
/// How many keys ahead lines are prefetched.
const AHEAD: usize = 24;

impl BlockedShape {
    /// The most ranges of its lines; some may be empty.
    pub(crate) const fn ranges(&self) -> usize {
        self.lines_per_key() as usize * RANGES
    }

    /// The binary logarithm of a range's number of lines.
    fn range_log(&self) -> u32 {
        let lines = self.lines_per_bank().div_ceil(RANGES as u64);
        lines.next_power_of_two().ilog2()
    }

    /// The lines of a range.
    fn lines_in(&self, range: usize) -> Range<usize> {
        let bank = (range / RANGES) as u64 * self.lines_per_bank();
        let border = |at: usize| ((at as u64) << self.range_log()).min(self.lines_per_bank());
        let at = range % RANGES;
        (bank + border(at)) as usize..(bank + border(at + 1)) as usize
    }
}

/// A key, for one of its lines.
#[derive(Clone, Copy, Default)]
struct Visitor {
    lo: u64,
    /// The line, relative to the range's first, and in the low half the key's number, so that one store
    /// writes both.
    place: u64,
}

impl Visitor {
    #[inline(always)]
    const fn line(self) -> usize {
        (self.place >> 32) as usize
    }

    #[inline(always)]
    const fn key(self) -> usize {
        self.place as u32 as usize
    }
}

/// Keys sorted by ranges, in batch order within each. Reuses its memory from batch to batch.
#[derive(Default)]
pub(crate) struct Sorted {
    /// The keys' numbers, and their hashes for the current bank.
    numbers: Vec<u32>,
    hashes: Vec<Hash>,
    lines: Vec<u64>,
    visitors: Vec<Visitor>,
    /// Where each range's visitors end.
    ends: Vec<usize>,
}

impl Sorted {
    /// Sorts keys, except those that are `known`.
    pub(crate) fn sort(&mut self, shape: &BlockedShape, hashes: &[Hash], known: &[bool]) {
        self.numbers.clear();
        self.hashes.clear();
        if known.is_empty() {
            self.numbers.extend(0..hashes.len() as u32);
            self.hashes.extend_from_slice(hashes);
        } else {
            let unknown = (0..).zip(hashes).zip(known).filter(|(_, known)| !**known);
            for ((number, hash), _) in unknown {
                self.numbers.push(number);
                self.hashes.push(*hash);
            }
        }
        let count = self.hashes.len();
        self.lines.resize(count, 0);
        let all = count * shape.lines_per_key() as usize;
        if self.visitors.len() < all {
            self.visitors.resize(all, Visitor::default());
        }
        self.ends.clear();
        shape.isa.run(Sort(self, shape));
    }

    /// Sorts the keys by their lines in a bank, into `start..`.
    #[inline(always)]
    fn sort_bank(&mut self, shape: &BlockedShape, start: usize) {
        let (log, lines) = (shape.range_log(), shape.lines_per_bank());
        let range = |line: u64| (line >> log) as usize % RANGES;
        let mut at = [0usize; RANGES];
        for (hash, line) in self.hashes.iter().zip(&mut self.lines) {
            *line = reduce(hash.hi, lines);
            at[range(*line)] += 1;
        }
        let mut end = start;
        for at in &mut at {
            let len = std::mem::replace(at, end);
            end += len;
            self.ends.push(end);
        }
        let visitors = &mut self.visitors[..end];
        let keys = self.numbers.iter().zip(&self.hashes).zip(&self.lines);
        for ((&key, hash), &line) in keys {
            let at = &mut at[range(line)];
            visitors[*at] = Visitor {
                lo: hash.lo,
                place: (line & ((1 << log) - 1)) << 32 | u64::from(key),
            };
            *at += 1;
        }
    }

    /// Adds the keys to one range of a filter's words. Sets `lacked[key]` if a line lacked a bit of the key.
    ///
    /// # Safety
    /// Nobody else uses the range's words meanwhile.
    pub(crate) unsafe fn add(
        &self,
        shape: &BlockedShape,
        words: &[AtomicU64],
        range: usize,
        lacked: &mut [bool],
    ) {
        let start = if range == 0 { 0 } else { self.ends[range - 1] };
        let words = words.as_chunks::<LINE_WORDS>().0;
        let lines = &words[shape.lines_in(range)];
        // SAFETY: atomics may be written to through a shared reference, they have the layout of plain words, and the
        // caller promises that nobody else uses these.
        let lines = unsafe {
            std::slice::from_raw_parts_mut(lines.as_ptr().cast_mut().cast(), lines.len())
        };
        shape.isa.run(Visit {
            shape,
            lines,
            visitors: &self.visitors[start..self.ends[range]],
            lacked,
        });
    }
}

struct Sort<'a>(&'a mut Sorted, &'a BlockedShape);

impl Batch for Sort<'_> {
    #[inline(always)]
    fn run(self, _: Isa) {
        let Self(sorted, shape) = self;
        let count = sorted.hashes.len();
        for bank in 0..shape.lines_per_key() as usize {
            if bank > 0 {
                for hash in &mut sorted.hashes {
                    *hash = scalar::next(*hash);
                }
            }
            sorted.sort_bank(shape, bank * count);
        }
    }
}

struct Visit<'a> {
    shape: &'a BlockedShape,
    lines: &'a mut [Line<u64>],
    visitors: &'a [Visitor],
    lacked: &'a mut [bool],
}

impl Batch for Visit<'_> {
    #[inline(always)]
    fn run(self, isa: Isa) {
        let fetch = |lines: &[Line<u64>], visitor: &Visitor| {
            prefetch(lines.as_ptr().wrapping_add(visitor.line()));
        };
        let (first, rest) = self.visitors.split_at(AHEAD.min(self.visitors.len()));
        for visitor in first {
            fetch(self.lines, visitor);
        }
        let mut next = rest.iter();
        for visitor in self.visitors {
            if let Some(next) = next.next() {
                fetch(self.lines, next);
            }
            let (line, lo) = (&mut self.lines[visitor.line()], visitor.lo);
            self.lacked[visitor.key()] |= set(isa, line, lo, self.shape.cover(lo));
        }
    }
}
