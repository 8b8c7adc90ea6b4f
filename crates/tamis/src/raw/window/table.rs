//! Look-ups and changes in one table: the slots of a key's two bins.
//!
//! A key is in its home bin or, if that is full, in its second one. Keys move at most once, from
//! home to second bin, and are copied before they are removed, so reading the home bin first finds
//! them always. `writers.rs` explains how writers of one key agree.
//!
//! A slot's stamp is the low part of its generation's number, so it wraps around. The epoch of a
//! page resolves that: nothing on a page is newer than its epoch, and before an epoch advances, the
//! slots of all generations forgotten by then are emptied. Only after that is a key of a newer
//! generation added. So a pause of any length costs nothing and brings nothing back.

// In WebAssembly, size matters more, so functions aren't inlined for speed.

use super::cells::Cells;
use super::head::{epoch_of, has_full_bins, moved_epoch, word_of};
use super::lanes::{Lanes, Slot};
use super::shape::{Spot, Table, WindowShape};
use crate::raw::isa::{Batch, Isa, prefetch};

/// When a key is added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// The generation of the key.
    pub(crate) now: i64,
    /// The newest generation of all.
    pub(crate) newest: i64,
    /// Keys of this generation or a later one are in the window.
    pub(crate) oldest: i64,
    /// Slots of generations before this one are empty.
    pub(crate) kept: i64,
    /// Whether seeing a key again renews it.
    pub(crate) renews: bool,
    /// Whether there are slots that stand for all keys of their bins.
    pub(crate) full_bins: bool,
}

impl Clock {
    pub(crate) fn new(shape: &WindowShape, now: i64, newest: i64, full_bins: bool) -> Self {
        Self {
            now,
            newest,
            oldest: shape.oldest_for(now),
            kept: newest - i64::from(shape.kept()) + 1,
            renews: shape.is_renewed(),
            full_bins,
        }
    }
}

/// The result of adding a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// It wasn't in the window. Includes the previous generation of its slot, if it had one.
    New(Option<i64>),
    /// It was in the window.
    Seen,
    /// It was in the window, and now has the generation of the clock. Includes the previous
    /// generation of its slot, if it had one.
    Renewed(Option<i64>),
    /// It wasn't in the window, and has no slot: a slot of its home bin now stands for all keys.
    Marked,
    /// There is no room for it. Returned only with exclusive access.
    Full,
}

/// What a query looks for: keys of this generation or later ones.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) oldest: i64,
    pub(crate) full_bins: bool,
}

/// The result of searching a bin.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Found {
    /// The newest slot with the value.
    pub(super) slot: Option<(Slot, i64)>,
    /// The first empty slot.
    pub(super) empty: Option<Slot>,
    /// The newest slot that stands for all keys.
    pub(super) full: Option<i64>,
}

/// Removes slots from before a generation from a page, with exclusive access.
struct Empty<'a> {
    words: &'a mut [u64],
    lanes: Lanes,
    epoch: i64,
    before: i64,
}

impl Batch for Empty<'_> {
    #[inline(always)]
    fn run(self, _: Isa) {
        for words in self.words.chunks_mut(64) {
            // Prefetches the following words meanwhile, a line of eight at a time.
            for line in 8..16 {
                prefetch(words.as_ptr().wrapping_add(8 * line));
            }
            for word in words {
                let kept = (self.lanes).without(u64::from_le(*word), self.before, self.epoch);
                *word = kept.to_le();
            }
        }
    }
}

impl Table {
    /// A word with the key in all slots, for its home bin or its second one.
    #[inline(always)]
    pub(super) fn all_in(&self, spot: &Spot, nth: usize) -> u64 {
        self.lanes.all_in(spot.prints, nth)
    }

    /// A slot's value for a key, in its home bin or its second one.
    #[inline(always)]
    pub(super) fn value_in(&self, spot: &Spot, nth: usize) -> u64 {
        self.lanes.value_at(self.all_in(spot, nth), 0)
    }

    /// Whether the table has the key.
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    pub(crate) fn contains<C: Cells>(
        &self,
        isa: Isa,
        cells: &C,
        spot: &Spot,
        asked: &Asked,
    ) -> bool {
        let having = self.look::<C, false>(isa, cells, spot).having;
        if having == 0 {
            // Most absent keys end here.
            return asked.full_bins && { *self }.is_there(cells, *spot, *asked);
        }
        // Most present keys end here. The rare call gets copies, so that the compiler knows the
        // originals don't change and keeps them in registers.
        self.has_recent(cells, spot, having.trailing_zeros(), asked) || { *self }
            .is_there(cells, *spot, *asked)
    }

    /// [`contains`](Self::contains), which also works if a slot that stands for all keys replaces the
    /// key's slot concurrently, and `asked` doesn't know of any.
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    pub(crate) fn holds<C: Cells>(&self, isa: Isa, cells: &C, spot: &Spot, asked: &Asked) -> bool {
        self.contains(isa, cells, spot, asked)
            || !asked.full_bins && self.is_marked(cells, spot, asked)
    }

    /// Whether a slot that stands for all keys, made after `asked`, holds the key.
    #[inline(always)]
    pub(super) fn is_marked<C: Cells>(&self, cells: &C, spot: &Spot, asked: &Asked) -> bool {
        cells.then();
        let (oldest, full_bins) = (asked.oldest, true);
        has_full_bins(cells) && { *self }.is_there(cells, *spot, Asked { oldest, full_bins })
    }

    /// Whether the first slot with the key in this word is of a generation that counts. If not,
    /// others may be.
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    fn has_recent<C: Cells>(&self, cells: &C, spot: &Spot, bit: u32, asked: &Asked) -> bool {
        let (at, nth) = self.word(spot, bit);
        let page = self.epoch_of(at);
        cells.then();
        let epoch = cells.load(page);
        cells.then();
        let word = cells.load(at);
        cells.then();
        let like = self.lanes.like(word, self.all_in(spot, nth));
        let is_same = !C::SHARED || epoch == cells.load(page);
        like != 0 && is_same && self.is_since(word, like, epoch, asked.oldest)
    }

    /// Whether the first of these slots is of this generation or a later one, given its page's word.
    #[inline(always)]
    fn is_since(&self, word: u64, slots: u64, page: u64, oldest: i64) -> bool {
        let epoch = moved_epoch(page);
        // Compares stored epochs: zero, which means none, is below all.
        epoch - self.lanes.age(word >> slots.trailing_zeros(), epoch)
            >= word_of(oldest).cast_signed()
    }

    #[cold]
    fn is_there<C: Cells>(&self, cells: &C, spot: Spot, asked: Asked) -> bool {
        (0..2).any(|nth| {
            let (first, value) = (spot.firsts[nth], self.value_in(&spot, nth));
            let at = self.epoch_of(first);
            loop {
                cells.then();
                let Some(epoch) = self.epoch(cells, at) else {
                    return false;
                };
                cells.then();
                let found = self.find(cells, first, value, epoch, asked.full_bins);
                let newest = found.slot.map(|(_, generation)| generation).max(found.full);
                cells.then();
                if !C::SHARED || self.epoch(cells, at) == Some(epoch) {
                    return newest >= Some(asked.oldest);
                }
            }
        })
    }

    pub(super) fn find<C: Cells>(
        &self,
        cells: &C,
        first: usize,
        value: u64,
        epoch: i64,
        full_bins: bool,
    ) -> Found {
        let mut found = Found::default();
        for at in first..first + self.bin_words {
            let word = cells.load(at);
            let mut having = self.lanes.having(word, value);
            while having != 0 {
                let shift = self.lanes.shift(having);
                let generation = self.lanes.generation(word, shift, epoch);
                if found.slot.is_none_or(|(_, newest)| newest < generation) {
                    found.slot = Some((Slot { at, word, shift }, generation));
                }
                having &= having - 1;
            }
            let empty = self.lanes.having(word, 0);
            if empty != 0 && found.empty.is_none() {
                let shift = self.lanes.shift(empty);
                found.empty = Some(Slot { at, word, shift });
            }
            if full_bins {
                let mut full = self.lanes.having(word, self.lanes.full());
                while full != 0 {
                    let shift = self.lanes.shift(full);
                    found.full = found
                        .full
                        .max(Some(self.lanes.generation(word, shift, epoch)));
                    full &= full - 1;
                }
            }
        }
        found
    }

    /// Empties the forgotten slots of a page, so that keys of the newest generation can be added
    /// there; returns the page's epoch.
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    pub(super) fn renew<C: Cells>(
        &self,
        cells: &mut C,
        at: usize,
        until: i64,
        clock: &Clock,
    ) -> i64 {
        match self.epoch(cells, at) {
            Some(epoch) if epoch >= until => epoch,
            _ => self.sweep(cells, at, clock),
        }
    }

    #[cold]
    #[inline(never)]
    fn sweep<C: Cells>(&self, cells: &mut C, at: usize, clock: &Clock) -> i64 {
        loop {
            let old = cells.load(at);
            match epoch_of(old) {
                Some(epoch) if epoch >= clock.newest => return epoch,
                Some(epoch) if !self.empty_page(cells, at, epoch, clock.kept) => continue,
                _ => {}
            }
            if cells.exchange(at, old, word_of(clock.newest)) {
                return clock.newest;
            }
        }
    }

    /// Empties the slots of a page from before a generation. False if the page's epoch, which
    /// determines the meaning of stamps, changed concurrently.
    fn empty_page<C: Cells>(&self, cells: &mut C, at: usize, epoch: i64, before: i64) -> bool {
        if let Some(words) = cells.alone() {
            let words = &mut words[self.page_of(at)];
            let lanes = self.lanes;
            Isa::best().run(Empty {
                words,
                lanes,
                epoch,
                before,
            });
            return true;
        }
        for word in self.page_of(at) {
            loop {
                let old = cells.load(word);
                let kept = self.lanes.without(old, before, epoch);
                if kept == old {
                    break;
                }
                // A slot newer than our epoch was added after the epoch had changed: if we read
                // such a slot, we read the new epoch here.
                cells.then();
                if C::SHARED && self.epoch(cells, at) != Some(epoch) {
                    return false;
                }
                if cells.exchange(word, old, kept) {
                    break;
                }
            }
        }
        true
    }

    /// Adds a key, unless it is in the window.
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    pub(crate) fn insert<C: Cells>(
        &self,
        isa: Isa,
        cells: &mut C,
        spot: &Spot,
        clock: &Clock,
    ) -> Told {
        match self.insert_simply(isa, cells, spot, clock) {
            Some(true) => Told::New(None),
            Some(false) => Told::Seen,
            None => { *self }.insert_any(cells, *spot, *clock),
        }
    }

    /// The usual cases: adds a key that no slot has to a bin with an empty slot, or finds one that is
    /// in the window. Returns whether it is new; `None` in any other case.
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    pub(super) fn insert_simply<C: Cells>(
        &self,
        isa: Isa,
        cells: &mut C,
        spot: &Spot,
        clock: &Clock,
    ) -> Option<bool> {
        let pages = spot.firsts.map(|first| self.epoch_of(first));
        let epochs = pages.map(|page| cells.load(page));
        let look = self.look::<C, true>(isa, cells, spot);
        let since = |epoch: u64| epoch.wrapping_sub(word_of(clock.now));
        // Negative, or from a damaged page: generations are never that far apart.
        let is_older = (since(epochs[0]) | since(epochs[1])) >> 59 != 0;
        let is_known = look.having != 0;
        if is_older || clock.full_bins || !is_known && look.empty == 0 {
            return None;
        }
        let (home, second) = (
            look.empty & ((1 << self.bin_words) - 1),
            look.empty >> self.bin_words << self.bin_words,
        );
        // Evenly filled bins are seldom full. Concurrent writers must take the first empty slot, so
        // that they meet.
        let bit = match is_known {
            true => look.having,
            false if !C::SHARED && second.count_ones() > home.count_ones() => second,
            false => look.empty,
        }
        .trailing_zeros();
        let (at, nth) = self.word(spot, bit);
        cells.then();
        // Reload it: this value is the one to exchange.
        let word = cells.load(at);
        if C::SHARED && !is_known {
            // Check the others again, later than this one; see `writers.rs`.
            cells.agree();
            if self.look::<C, false>(isa, cells, spot).having != 0 || has_full_bins(cells) {
                return None;
            }
        }
        cells.then();
        if C::SHARED && epochs != pages.map(|page| cells.load(page)) {
            return None;
        }
        let all = self.all_in(spot, nth);
        if is_known {
            let like = self.lanes.like(word, all);
            let oldest = if clock.renews {
                clock.now
            } else {
                clock.oldest
            };
            let is_seen = like != 0 && self.is_since(word, like, epochs[nth], oldest);
            return is_seen.then_some(false);
        }
        let like = self.lanes.like(word, 0);
        if C::SHARED && (like == 0 || self.lanes.like(word, all) != 0) {
            return None;
        }
        let shift = self.lanes.shift(like);
        let slot = Slot { at, word, shift };
        if !self.put(cells, slot, self.lanes.value_at(all, 0), clock.now, clock) {
            return None;
        }
        if C::SHARED {
            cells.agree();
            let look = self.look::<C, true>(isa, cells, spot);
            let before = (look.having | look.empty) & ((1 << bit) - 1);
            if before != 0 {
                return Some({ *self }.is_first(cells, *spot, *clock, at));
            }
        }
        Some(true)
    }
}
