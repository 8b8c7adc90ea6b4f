//! The words before the bins: the latest moment, the count of keys, and how many keys of each
//! generation every table has.

use super::cells::Cells;
use super::shape::{Table, WindowShape};
use crate::moment::Moment;

/// The latest moment that was added; zero means none.
const LATEST: usize = 0;
/// Keys added so far: the clock of a window by keys.
const ADDED: usize = 1;
/// Slots that stand for every key of their bin, ever made.
const FULL: usize = 2;

/// A count has 40 bits, and above them 24 bits of its generation's number.
const COUNT: u32 = 40;
const EPOCH_BIAS: i64 = 1 << 60;

impl WindowShape {
    pub(crate) fn latest<C: Cells>(&self, cells: &C) -> Option<Moment> {
        match cells.load(LATEST) {
            0 => None,
            moved => Some(Moment::from_micros((moved ^ 1 << 63).cast_signed())),
        }
    }

    /// Keys added so far.
    pub(crate) fn added<C: Cells>(&self, cells: &C) -> u64 {
        cells.load(ADDED)
    }

    pub(super) fn count_added<C: Cells>(&self, cells: &mut C, keys: u64) {
        change(cells, ADDED, |added| Some(added.saturating_add(keys)));
    }

    /// The newest generation, if a key was added.
    #[inline]
    pub(crate) fn newest<C: Cells>(&self, cells: &C) -> Option<i64> {
        match self.is_by_keys() {
            true => Some(self.counted_generation(cells.load(ADDED))),
            false => self.latest(cells).map(|at| self.generation_of(at)),
        }
    }

    /// Of a window by keys, the generation of the next key after so many.
    pub(super) fn counted_generation(&self, added: u64) -> i64 {
        (added.min(1 << 57) / self.step()) as i64
    }

    /// Lets time pass until this moment, which a window by keys doesn't.
    #[inline]
    pub(super) fn pass<C: Cells>(&self, cells: &mut C, at: Moment) {
        if self.is_by_keys() {
            return;
        }
        // In the order of moments; never zero, as no moment is that far away.
        let moved = at.micros().cast_unsigned() ^ 1 << 63;
        if cells.load(LATEST) < moved {
            change(cells, LATEST, |old| (old < moved).then_some(moved));
        }
    }

    /// Keys of a table in the generations that are kept when this is the newest.
    pub(crate) fn kept_in<C: Cells>(&self, cells: &C, table: &Table, newest: i64) -> u64 {
        let each = (0..i64::from(self.kept())).map(|age| table.keys_of(cells, newest - age));
        each.sum()
    }

    /// The first generation that keys were added in, new or not, as far as there are counts.
    pub(crate) fn first<C: Cells>(&self, cells: &C) -> Option<i64> {
        let is_used = |generation: &i64| {
            let mut tables = self.tables();
            tables.any(|table| table.is_used(cells, *generation))
        };
        self.with_counts(self.newest(cells)?).find(is_used)
    }

    /// The generations that have a place for their count when this is the newest.
    pub(super) fn with_counts(&self, newest: i64) -> std::ops::RangeInclusive<i64> {
        newest - self.newest_table().counts() + 1..=newest
    }

    /// Keys of a generation in all tables.
    pub(crate) fn keys_of<C: Cells>(&self, cells: &C, generation: i64) -> u64 {
        self.tables()
            .map(|table| table.keys_of(cells, generation))
            .sum()
    }
}

impl Table {
    /// How many generations have a count.
    fn counts(&self) -> i64 {
        1 << self.lanes.stamp_bits()
    }

    fn count_at(&self, generation: i64) -> usize {
        self.ring + (generation & (self.counts() - 1)) as usize
    }

    pub(crate) fn keys_of<C: Cells>(&self, cells: &C, generation: i64) -> u64 {
        let count = cells.load(self.count_at(generation));
        let is_it = count >> COUNT == tag(generation);
        if is_it { count & ((1 << COUNT) - 1) } else { 0 }
    }

    /// Whether keys were added in a generation, new or not. Of one whose number looks like a word that
    /// was never written, that is not known, and so they may have been.
    pub(super) fn is_used<C: Cells>(&self, cells: &C, generation: i64) -> bool {
        cells.load(self.count_at(generation)) >> COUNT == tag(generation)
    }

    /// Notes that keys are added in a generation, though none of them may be new or stay there.
    pub(super) fn use_generation<C: Cells>(&self, cells: &mut C, generation: i64) {
        if !self.is_used(cells, generation) {
            self.count(cells, generation, 0);
        }
    }

    /// Whether it has counted keys of these generations.
    pub(crate) fn is_live<C: Cells>(&self, cells: &C, oldest: i64, newest: i64) -> bool {
        // A question about long ago is about no more than there are counts.
        let oldest = oldest.max(newest - self.counts() + 1);
        (oldest..=newest).any(|generation| self.keys_of(cells, generation) != 0)
    }

    /// Counts keys of a generation: more, or fewer.
    pub(super) fn count<C: Cells>(&self, cells: &mut C, generation: i64, more: i64) {
        change(cells, self.count_at(generation), |old| {
            let newer = (tag(generation).wrapping_sub(old >> COUNT)) & 0xFF_FFFF;
            let keys = match newer {
                0 => old & ((1 << COUNT) - 1),
                // An older generation's word; a newer one's is left alone.
                1..0x80_0000 => 0,
                _ if old == 0 => 0,
                _ => return None,
            };
            let keys = keys.saturating_add_signed(more).min((1 << COUNT) - 1);
            Some(tag(generation) << COUNT | keys)
        });
    }

    /// A page's epoch: the newest generation when it was last emptied of those that are
    /// forgotten. `None` if it was never written to.
    #[inline(always)]
    pub(super) fn epoch<C: Cells>(&self, cells: &C, at: usize) -> Option<i64> {
        epoch_of(cells.load(at))
    }
}

/// Whether there are slots that stand for every key of their bin.
#[inline(always)]
pub(super) fn has_full_bins<C: Cells>(cells: &C) -> bool {
    cells.load(FULL) != 0
}

pub(super) fn count_full_bin<C: Cells>(cells: &mut C) {
    change(cells, FULL, |full| Some(full.saturating_add(1)));
}

/// What a page's word says. No damage makes it so large that sums with it overflow.
#[inline(always)]
pub(super) const fn epoch_of(word: u64) -> Option<i64> {
    match word {
        0 => None,
        word => Some(moved_epoch(word) - EPOCH_BIAS),
    }
}

/// A page's epoch as it is written, so much above what it means; zero if there is none.
#[inline(always)]
pub(super) const fn moved_epoch(word: u64) -> i64 {
    (word & (EPOCH_BIAS as u64 * 2 - 1)).cast_signed()
}

/// An epoch as its page's word holds it.
pub(super) const fn word_of(epoch: i64) -> u64 {
    (epoch + EPOCH_BIAS).cast_unsigned()
}

const fn tag(generation: i64) -> u64 {
    generation.cast_unsigned() & 0xFF_FFFF
}

fn change<C: Cells>(cells: &mut C, at: usize, new: impl Fn(u64) -> Option<u64>) {
    loop {
        let old = cells.load(at);
        match new(old) {
            Some(new) if !cells.exchange(at, old, new) => {}
            _ => return,
        }
    }
}
