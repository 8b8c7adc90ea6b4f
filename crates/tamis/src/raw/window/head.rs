//! The words before the bins: the latest moment, the count of keys, and every table's count of keys
//! in each generation.

use super::cells::Cells;
use super::shape::{Table, WindowShape};
use crate::moment::Moment;

/// The latest moment added; zero means none.
const LATEST: usize = 0;
/// Keys added so far: the clock of a window that counts keys.
const ADDED: usize = 1;
/// How many slots were ever made that stand for every key of their bin.
const FULL: usize = 2;

/// A count has 40 bits; the 24 bits above are from its generation's number.
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

    /// The newest generation; `None` before the first key.
    #[inline]
    pub(crate) fn newest<C: Cells>(&self, cells: &C) -> Option<i64> {
        match self.is_by_keys() {
            true => Some(self.counted_generation(cells.load(ADDED))),
            false => self.latest(cells).map(|at| self.generation_of(at)),
        }
    }

    /// In a window that counts keys, the generation of the next key.
    pub(super) fn counted_generation(&self, added: u64) -> i64 {
        (added.min(1 << 57) / self.step()) as i64
    }

    /// Advances the clock to this moment; windows that count keys ignore it.
    #[inline]
    pub(super) fn pass<C: Cells>(&self, cells: &mut C, at: Moment) {
        if self.is_by_keys() {
            return;
        }
        // Ordered like moments. Never zero, because no moment is that far away.
        let moved = at.micros().cast_unsigned() ^ 1 << 63;
        if cells.load(LATEST) < moved {
            change(cells, LATEST, |old| (old < moved).then_some(moved));
        }
    }

    /// A table's keys in the generations that are kept when `newest` is the newest.
    pub(crate) fn kept_in<C: Cells>(&self, cells: &C, table: &Table, newest: i64) -> u64 {
        let each = (0..i64::from(self.kept())).map(|age| table.keys_of(cells, newest - age));
        each.sum()
    }

    /// The first generation that keys were added in, new or not, among those with counts.
    pub(crate) fn first<C: Cells>(&self, cells: &C) -> Option<i64> {
        let is_used = |generation: &i64| {
            let mut tables = self.tables();
            tables.any(|table| table.is_used(cells, *generation))
        };
        self.with_counts(self.newest(cells)?).find(is_used)
    }

    /// The generations that have room for a count when `newest` is the newest.
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

    /// Whether keys were added in a generation, new or not. If its tag is 0, a word that was never
    /// written also counts as used.
    pub(super) fn is_used<C: Cells>(&self, cells: &C, generation: i64) -> bool {
        cells.load(self.count_at(generation)) >> COUNT == tag(generation)
    }

    /// Records that keys are added in a generation, even if none are new or stay there.
    pub(super) fn use_generation<C: Cells>(&self, cells: &mut C, generation: i64) {
        if !self.is_used(cells, generation) {
            self.count(cells, generation, 0);
        }
    }

    /// Whether it has counted keys of these generations.
    pub(crate) fn is_live<C: Cells>(&self, cells: &C, oldest: i64, newest: i64) -> bool {
        // Older generations have no counts.
        let oldest = oldest.max(newest - self.counts() + 1);
        (oldest..=newest).any(|generation| self.keys_of(cells, generation) != 0)
    }

    /// Adds to the count of a generation's keys; `more` may be negative.
    pub(super) fn count<C: Cells>(&self, cells: &mut C, generation: i64, more: i64) {
        change(cells, self.count_at(generation), |old| {
            let newer = (tag(generation).wrapping_sub(old >> COUNT)) & 0xFF_FFFF;
            let keys = match newer {
                0 => old & ((1 << COUNT) - 1),
                // An older generation's word is overwritten; a newer one's is left alone.
                1..0x80_0000 => 0,
                _ if old == 0 => 0,
                _ => return None,
            };
            let keys = keys.saturating_add_signed(more).min((1 << COUNT) - 1);
            Some(tag(generation) << COUNT | keys)
        });
    }

    /// A page's epoch: the newest generation when forgotten ones were last removed from the page.
    /// `None` if it was never written to.
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

/// The epoch in a page's word. Even if it is damaged, sums with it don't overflow.
#[inline(always)]
pub(super) const fn epoch_of(word: u64) -> Option<i64> {
    match word {
        0 => None,
        word => Some(moved_epoch(word) - EPOCH_BIAS),
    }
}

/// A page's epoch in its stored form, with the bias; zero if there is none.
#[inline(always)]
pub(super) const fn moved_epoch(word: u64) -> i64 {
    (word & (EPOCH_BIAS as u64 * 2 - 1)).cast_signed()
}

/// The word that stores an epoch.
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
