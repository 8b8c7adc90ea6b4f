//! The words before the rows: which generation each column belongs to.
//!
//! A column that gets a new generation also gets the next tag. Words of the
//! rows that have another tag are empty, whatever they hold: so a generation is
//! forgotten by changing one word.

use super::shape::{FIXED, MAX_COLUMNS, RUN, TAG_BITS, WindowShape};
use crate::moment::Moment;
use crate::raw::word::Word;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Relaxed},
};

/// The latest moment that was added, moved so that zero is none.
const LATEST: usize = 0;
/// Keys written so far: the clock of a window by keys.
const WRITTEN: usize = 1;
/// The row to be cleaned next.
const CLEANING: usize = 2;
/// How many rows should have been cleaned by now.
const OWED: usize = 3;

/// The mark of each column, as its words have it.
pub(super) type Marks = [[u64; RUN]; MAX_COLUMNS];

/// Tags go around from 1; a word that was never written has none.
const TAGS: u64 = (1 << TAG_BITS) - 1;
const NUMBER_BIAS: i64 = 1 << 58;

/// A column's generation and tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) generation: i64,
    pub(crate) tag: u64,
}

impl Column {
    /// Zero is a column that never had a generation.
    fn decode(word: u64) -> Option<Self> {
        let tag = word & TAGS;
        (tag != 0).then_some(Self {
            generation: (word >> TAG_BITS).cast_signed() - NUMBER_BIAS,
            tag,
        })
    }

    fn encode(self) -> u64 {
        (self.generation + NUMBER_BIAS).cast_unsigned() << TAG_BITS | self.tag
    }

    /// The tag where the words of a row have it.
    #[inline]
    pub(super) const fn mark(self) -> u64 {
        self.tag << (64 - TAG_BITS)
    }
}

#[inline]
fn set(word: &AtomicU64, value: u64) {
    word.store(value.to_le(), Relaxed);
}

fn update(word: &AtomicU64, change: impl Fn(u64) -> Option<u64>) {
    let _ = word.fetch_update(Relaxed, Relaxed, |word| {
        change(u64::from_le(word)).map(u64::to_le)
    });
}

impl WindowShape {
    pub(crate) fn latest<W: Word>(&self, words: &[W]) -> Option<Moment> {
        match words[LATEST].get() {
            0 => None,
            moved => Some(Moment::from_micros(unmoved(moved))),
        }
    }

    pub(crate) fn written<W: Word>(&self, words: &[W]) -> u64 {
        words[WRITTEN].get()
    }

    /// The generation of the newest key, if there is one.
    #[inline]
    pub(crate) fn newest<W: Word>(&self, words: &[W]) -> Option<i64> {
        match self.is_by_keys() {
            true => Some(self.counted_generation(words)),
            false => self.latest(words).map(|at| self.generation_of(at)),
        }
    }

    /// Of a window by keys, the generation that is being filled.
    #[inline]
    pub(super) fn counted_generation<W: Word>(&self, words: &[W]) -> i64 {
        self.written_and(words, 0).div_euclid(self.step() as i64)
    }

    /// Of a window by keys, what its clock says after some more.
    #[inline]
    pub(super) fn written_and<W: Word>(&self, words: &[W], keys: u64) -> i64 {
        words[WRITTEN].get().saturating_add(keys).min(1 << 57) as i64
    }

    pub(crate) fn column<W: Word>(&self, words: &[W], column: usize) -> Option<Column> {
        Column::decode(words[FIXED + 2 * column].get())
    }

    /// How many keys were added to a column's generation.
    pub(crate) fn column_keys<W: Word>(&self, words: &[W], column: usize) -> u64 {
        words[FIXED + 2 * column + 1].get()
    }

    /// The marks of the words that count for a question about this generation, one for each word
    /// of a run; of other columns zero, which matches no key.
    #[inline]
    pub(super) fn marks<W: Word>(&self, words: &[W], generation: i64) -> Marks {
        let mut marks = [[0; RUN]; MAX_COLUMNS];
        let oldest = self.oldest_for(generation);
        let columns = words[FIXED..].chunks_exact(2);
        for (mark, word) in marks[..self.columns()].iter_mut().zip(columns) {
            if let Some(column) = Column::decode(word[0].get())
                && column.generation >= oldest
            {
                *mark = [column.mark(); RUN];
            }
        }
        marks
    }

    /// The column of a generation that keys are to be added to, given to it if an
    /// older one had it. `None` if a newer one has it: then the keys are too old.
    pub(super) fn claim(&self, words: &[AtomicU64], generation: i64) -> Option<Column> {
        let at = self.column_of(generation);
        let word = &words[FIXED + 2 * at];
        let mut old = word.load(Relaxed);
        loop {
            let tag = match Column::decode(u64::from_le(old)) {
                Some(column) if column.generation == generation => return Some(column),
                Some(column) if column.generation > generation => return None,
                Some(column) => column.tag % TAGS + 1,
                None => 1,
            };
            let column = Column { generation, tag };
            match word.compare_exchange(old, column.encode().to_le(), AcqRel, Relaxed) {
                Ok(_) => {
                    set(&words[FIXED + 2 * at + 1], 0);
                    self.owe(words);
                    return Some(column);
                }
                Err(other) => old = other,
            }
        }
    }

    /// Whether the column still belongs to this generation.
    pub(super) fn is_still(&self, words: &[AtomicU64], column: Column) -> bool {
        self.column(words, self.column_of(column.generation)) == Some(column)
    }

    pub(super) fn count(&self, words: &[AtomicU64], column: usize, keys: u64) {
        let word = &words[FIXED + 2 * column + 1];
        update(word, |old| Some(old.saturating_add(keys)));
    }

    pub(super) fn count_written(&self, words: &[AtomicU64], keys: u64) {
        update(&words[WRITTEN], |old| Some(old.saturating_add(keys)));
    }

    /// Gives a column of a body that is nobody else's to a generation; its mark.
    pub(super) fn put_column(
        &self,
        words: &mut [[u8; 8]],
        generation: i64,
        keys: u64,
        latest: Moment,
    ) -> u64 {
        let at = FIXED + 2 * self.column_of(generation);
        let column = Column { generation, tag: 1 };
        words[at] = column.encode().to_le_bytes();
        words[at + 1] = keys.to_le_bytes();
        words[WRITTEN] = (words[WRITTEN].get().saturating_add(keys)).to_le_bytes();
        let latest = moved(latest.micros()).max(words[LATEST].get());
        words[LATEST] = latest.to_le_bytes();
        column.mark()
    }

    pub(super) fn pass(&self, words: &[AtomicU64], at: Moment) {
        let moved = moved(at.micros());
        if words[LATEST].get() < moved {
            update(&words[LATEST], |old| (old < moved).then_some(moved));
        }
    }

    /// A column's tag comes again after its fifteenth generation; until then, every
    /// word that still has it must have been cleaned. So each new generation owes a part of all rows,
    /// and a round is complete when a column has had seven: a round that somebody died in
    /// is made up for by the next.
    fn owe(&self, words: &[AtomicU64]) {
        update(&words[OWED], |owed| {
            Some(owed.saturating_add(self.owed_once()))
        });
    }

    fn owed_once(&self) -> u64 {
        self.rows().div_ceil(7 * self.columns() as u64)
    }

    /// The rows to be cleaned now: at least `few`, and more if they are overdue.
    pub(super) fn rows_to_clean(&self, words: &[AtomicU64], few: u64) -> std::ops::Range<u64> {
        let owed = words[OWED].get();
        if owed == 0 {
            return 0..0;
        }
        // What an earlier generation left is due when the next begins.
        let due = owed.saturating_sub(self.owed_once());
        let rows = owed.min(few.max(due)).min(self.rows());
        let old = words[CLEANING].load(Relaxed);
        let start = u64::from_le(old).min(self.rows() - 1);
        let end = (start + rows).min(self.rows());
        let next = if end == self.rows() { 0 } else { end };
        let taken = words[CLEANING].compare_exchange(old, next.to_le(), Relaxed, Relaxed);
        if taken.is_err() {
            return 0..0; // somebody else does it
        }
        update(&words[OWED], |owed| Some(owed.saturating_sub(end - start)));
        start..end
    }
}

/// In the order of moments, and never zero: that is no moment at all.
const fn moved(micros: i64) -> u64 {
    micros.cast_unsigned() ^ 1 << 63
}

const fn unmoved(moved: u64) -> i64 {
    (moved ^ 1 << 63).cast_signed()
}
