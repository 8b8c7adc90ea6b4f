//! Adding a key with concurrent writers, exactly one of which gets "new".
//!
//! A writer reads the words of both bins from the left, and puts the key into the first word with an empty
//! slot, by an exchange that fails if the word has changed since it was read. Between reading this word and
//! exchanging it, the writer reads the words further right (*look*), and afterwards those further left
//! (*check*). If one of those has the key, the writer wasn't the first. If one has an empty slot, the writer
//! puts the key there, too, in the same manner. If neither, the key is new.
//!
//! Suppose that two writers get "new", one whose leftmost slot is in word `a`, and one whose leftmost is in word
//! `b`, further right. (It can't be the same word, because the second exchange would have found the key in it.) The
//! check of `b` found `a` full and without the key. From when `a` was read until it was exchanged it had an empty
//! slot, and then it had the key, so the check came before `a` was read. Then the key was in `b` when the writer of
//! `a` looked further right, and it would have seen it. And the writer of the leftmost slot of all gets "new",
//! because its check finds nothing.
//!
//! **A bin that is full of keys that can't move** gets a slot that stands for all keys, by an exchange of its first
//! word. Writers that look and see it add nothing. The writer that put it there then looks for the key once more. If
//! another writer added it, that one had read an empty slot before the bin stood for all, and gets "new" or has seen
//! the key. If there is an empty slot, the key is put there as above. If neither, the key is new, and any writer
//! that reads an empty slot from now on sees that the bin stands for all.
//!
//! **The remaining case:** the second argument assumes that the key stays in `a`. Two writers get "new" if one of them
//! stops between look and check, while others empty a slot of its full home bin, add the same key there, fill the bin
//! again, and this very key then moves to its second bin or gives its slot to all keys. A key of the newest generation
//! moves only where no older one can.

use super::cells::Cells;
use super::head::{count_full_bin, has_full_bins};
use super::lanes::Slot;
use super::shape::{Spot, Table};
use super::table::{Clock, Found, Told};

/// The two bins of a key, read from the left.
struct Scan {
    /// The epochs of their pages.
    epochs: [i64; 2],
    bins: [Found; 2],
}

impl Table {
    #[inline(never)]
    pub(super) fn insert_any<C: Cells>(&self, cells: &mut C, spot: Spot, mut clock: Clock) -> Told {
        // Whether a slot from before stands for this key, and whether we added one.
        let (mut was_marked, mut is_marked) = (false, false);
        loop {
            let Scan { epochs, bins } = self.scan(cells, &spot, &mut clock);
            let full = match is_marked {
                true => bins[1].full,
                false => bins[0].full.max(bins[1].full),
            };
            was_marked |= full >= Some(clock.oldest);
            if full
                >= Some(if clock.renews {
                    clock.now
                } else {
                    clock.oldest
                })
            {
                return Told::Seen;
            }
            let newest = match (bins[0].slot, bins[1].slot) {
                (Some(a), Some(b)) => Some(if b.1 > a.1 { (b, 1) } else { (a, 0) }),
                (a, b) => a.map(|a| (a, 0)).or(b.map(|b| (b, 1))),
            };
            if let Some(((slot, generation), nth)) = newest {
                let is_known = generation >= clock.oldest;
                if is_known && (!clock.renews || generation >= clock.now) {
                    return Told::Seen;
                }
                if !self.put(cells, slot, self.value_in(&spot, nth), clock.now, &clock) {
                    continue;
                }
                return match is_known || was_marked {
                    true => Told::Renewed(Some(generation)),
                    false => Told::New(Some(generation)),
                };
            }
            let (slot, nth) = match (bins[0].empty, bins[1].empty) {
                (Some(slot), _) => (slot, 0),
                (None, Some(slot)) => (slot, 1),
                // Slots that are forgotten by now also make room.
                (None, None) if epochs.iter().any(|epoch| *epoch < clock.newest) => {
                    for first in spot.firsts {
                        self.renew(cells, self.epoch_of(first), clock.newest, &clock);
                    }
                    continue;
                }
                (None, None) if is_marked && was_marked => return Told::Seen,
                (None, None) if is_marked => return Told::Marked,
                (None, None) => match self.make_room(cells, &spot, &clock) {
                    Some(made) if !C::SHARED => made,
                    // Only empty slots take keys, because writers of one key meet there.
                    Some((Slot { at, word, shift }, _)) => {
                        cells.exchange(at, word, self.lanes.with(word, shift, 0, 0));
                        continue;
                    }
                    None if !C::SHARED => return Told::Full,
                    None => {
                        is_marked = self.mark(cells, &spot, was_marked, &clock);
                        continue;
                    }
                },
            };
            if !self.put(cells, slot, self.value_in(&spot, nth), clock.now, &clock) {
                continue;
            }
            return match was_marked {
                true => Told::Renewed(None),
                false if C::SHARED && !self.is_first(cells, spot, clock, slot.at) => Told::Seen,
                false => Told::New(None),
            };
        }
    }

    /// Reads the bins of a key, on pages whose epochs are at least its generation. If the result has neither the key
    /// nor a slot that stands for all, the bins still had neither after the empty slots were read.
    fn scan<C: Cells>(&self, cells: &mut C, spot: &Spot, clock: &mut Clock) -> Scan {
        let pages = spot.firsts.map(|first| self.epoch_of(first));
        loop {
            let epochs = pages.map(|page| self.renew(cells, page, clock.now, clock));
            let mut bins = self.find_both(cells, spot, epochs, clock);
            if C::SHARED {
                cells.agree();
                let later = self.find_both(cells, spot, epochs, clock);
                let has = |bins: &[Found; 2]| bins.iter().any(|bin| bin.slot.is_some());
                if has(&later) && !has(&bins) {
                    continue;
                }
                for (bin, later) in bins.iter_mut().zip(later) {
                    bin.full = later.full;
                }
                cells.then();
                if epochs != pages.map(|page| self.epoch(cells, page).unwrap_or(i64::MIN)) {
                    continue;
                }
            }
            if !clock.full_bins && has_full_bins(cells) {
                clock.full_bins = true;
                continue;
            }
            return Scan { epochs, bins };
        }
    }

    fn find_both<C: Cells>(
        &self,
        cells: &C,
        spot: &Spot,
        epochs: [i64; 2],
        clock: &Clock,
    ) -> [Found; 2] {
        let mut bins = [Found::default(); 2];
        for nth in 0..2 {
            cells.then();
            let (first, value) = (spot.firsts[nth], self.value_in(spot, nth));
            bins[nth] = self.find(cells, first, value, epochs[nth], clock.full_bins);
        }
        bins
    }

    /// Whether a key that was put into a word is new: no word further left has the key or room for
    /// it.
    #[cold]
    #[inline(never)]
    pub(super) fn is_first<C: Cells>(
        &self,
        cells: &mut C,
        spot: Spot,
        clock: Clock,
        mut last: usize,
    ) -> bool {
        loop {
            cells.agree();
            let mut room = None;
            for (at, value) in self.words_before(&spot, last) {
                cells.then();
                let word = self.read(cells, at);
                if self.is_since_oldest(word, value, &clock) {
                    return false;
                }
                room = room.or(word.and_then(|(_, word)| self.room_in(at, word, value)));
            }
            let Some((slot, value)) = room else {
                return true;
            };
            cells.agree();
            for (at, value) in self.words_before(&spot, last) {
                if at != slot.at && self.is_since_oldest(self.read(cells, at), value, &clock) {
                    return false;
                }
            }
            if self.put(cells, slot, value, clock.now, &clock) {
                last = slot.at;
            }
        }
    }

    /// The words of a key's bins before word `last`, each with the key's slot value there.
    fn words_before(&self, spot: &Spot, last: usize) -> impl Iterator<Item = (usize, u64)> + use<> {
        let (firsts, len) = (spot.firsts, self.bin_words);
        let values = [0, 1].map(|nth| self.value_in(spot, nth));
        let words = (0..2 * len).map(move |i| (firsts[i / len] + i % len, values[i / len]));
        words.take_while(move |(at, _)| *at != last)
    }

    /// Whether a word, read with its epoch, has a value of a generation that counts.
    fn is_since_oldest(&self, word: Option<(i64, u64)>, value: u64, clock: &Clock) -> bool {
        let Some((epoch, word)) = word else {
            return false;
        };
        let mut having = self.lanes.having(word, value);
        while having != 0 {
            let shift = self.lanes.shift(having);
            if self.lanes.generation(word, shift, epoch) >= clock.oldest {
                return true;
            }
            having &= having - 1;
        }
        false
    }

    /// The first empty slot of a word, and the value to put there.
    fn room_in(&self, at: usize, word: u64, value: u64) -> Option<(Slot, u64)> {
        let room = self.lanes.having(word, 0);
        (room != 0).then(|| {
            let shift = self.lanes.shift(room);
            (Slot { at, word, shift }, value)
        })
    }

    /// Makes a key's home bin stand for all keys, because it has no room, and with concurrent writers the table can't
    /// be replaced by a larger one. False if another writer has done so, or if the key or room for it has appeared.
    /// Keys that `were_marked` get a slot as new as they are.
    #[cold]
    fn mark<C: Cells>(&self, cells: &mut C, spot: &Spot, were_marked: bool, clock: &Clock) -> bool {
        // Count first, so that no look-up misses the key that the slot replaces.
        count_full_bin(cells);
        let (at, shift) = (spot.firsts[0], 0);
        while let Some((epoch, word)) = self.read(cells, at) {
            let generation = self.lanes.generation(word, shift, epoch);
            let since = if were_marked { clock.now } else { clock.oldest };
            let is_there = self.lanes.value_at(word, shift) == self.lanes.full();
            let has = |value| self.lanes.having(word, value) != 0;
            if is_there && generation >= since || has(0) || has(self.value_in(spot, 0)) {
                return false;
            }
            // The newer generation, so that the key in the slot isn't forgotten early.
            let (slot, newer) = (Slot { at, word, shift }, generation.max(clock.now));
            if self.put(cells, slot, self.lanes.full(), newer, clock) {
                cells.agree();
                return true;
            }
        }
        false
    }

    /// Makes a bin stand for all keys, with exclusive access.
    pub(super) fn mark_alone<C: Cells>(&self, cells: &mut C, bin: u64, clock: &Clock) {
        count_full_bin(cells);
        let (at, shift) = (self.bin(bin), 0);
        let epoch = self.renew(cells, self.epoch_of(at), clock.newest, clock);
        let word = cells.load(at);
        let generation = match self.lanes.value_at(word, shift) {
            0 => clock.now,
            // The newer generation, so that the key in the slot isn't forgotten early.
            _ => self.lanes.generation(word, shift, epoch).max(clock.now),
        };
        let slot = Slot { at, word, shift };
        self.put(cells, slot, self.lanes.full(), generation, clock);
    }

    /// Puts a value of a generation into a slot, unless its word has changed. If the writer was
    /// stopped so long that the generation is forgotten, it removes the value again.
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    pub(super) fn put<C: Cells>(
        &self,
        cells: &mut C,
        slot: Slot,
        value: u64,
        generation: i64,
        clock: &Clock,
    ) -> bool {
        let Slot { at, word, shift } = slot;
        let new = self.lanes.with(word, shift, value, generation);
        if !cells.exchange(at, word, new) {
            return false;
        }
        if C::SHARED
            && let Some(epoch) = self.epoch(cells, self.epoch_of(at))
            && epoch - (clock.newest - clock.kept) > generation
        {
            self.take_back(cells, at, shift, value, generation);
        }
        true
    }

    #[cold]
    fn take_back<C: Cells>(
        &self,
        cells: &mut C,
        at: usize,
        shift: u32,
        value: u64,
        generation: i64,
    ) {
        loop {
            let word = cells.load(at);
            if self.lanes.with(word, shift, value, generation) != word {
                return; // another writer has changed it
            }
            if cells.exchange(at, word, self.lanes.with(word, shift, 0, 0)) {
                return;
            }
        }
    }

    /// A word, and the epoch for its stamps. `None` if its page was never written to.
    pub(super) fn read<C: Cells>(&self, cells: &C, at: usize) -> Option<(i64, u64)> {
        let page = self.epoch_of(at);
        loop {
            let epoch = self.epoch(cells, page)?;
            cells.then();
            let word = cells.load(at);
            cells.then();
            if !C::SHARED || self.epoch(cells, page) == Some(epoch) {
                return Some((epoch, word));
            }
        }
    }
}
