//! Makes room in full bins by moving keys to their second bins.

use super::cells::Cells;
use super::lanes::Slot;
use super::shape::{Entry, Spot, Table};
use super::table::{Clock, Found};

/// How many second bins to search for room before a table counts as full.
const BINS_TRIED: u32 = 500;
/// How many keys may move in a chain to make room for one.
const LONGEST_CHAIN: u32 = 4;

/// The remaining attempts to make room for a key.
struct Tries {
    bins: u32,
    /// Whether keys of the newest generation move, too. With concurrent writers they do so last, because another
    /// writer that is adding the same key may be looking for it at its old place.
    newest: bool,
}

impl Table {
    /// Copies a key from one of the bins to its second bin, and returns its old slot.
    #[cold]
    #[inline(never)]
    pub(super) fn make_room<C: Cells>(
        &self,
        cells: &mut C,
        spot: &Spot,
        clock: &Clock,
    ) -> Option<(Slot, usize)> {
        let bins = BINS_TRIED;
        let mut tries = Tries {
            bins,
            newest: false,
        };
        for chain in 1..=LONGEST_CHAIN {
            for newest in [false, true] {
                if !newest && !C::SHARED {
                    continue;
                }
                tries.newest = newest;
                for (nth, first) in spot.firsts.into_iter().enumerate() {
                    if let Some(slot) = self.move_on(cells, first, chain, clock, &mut tries) {
                        return Some((slot, nth));
                    }
                }
            }
        }
        None
    }

    /// Copies one key of a full bin to its second bin, moving others there on if needed, and
    /// returns its old slot.
    fn move_on<C: Cells>(
        &self,
        cells: &mut C,
        first: usize,
        chain: u32,
        clock: &Clock,
        tries: &mut Tries,
    ) -> Option<Slot> {
        let home = ((first - self.words) / self.bin_words) as u64;
        for at in first..first + self.bin_words {
            let (epoch, word) = self.read(cells, at)?;
            for shift in self.lanes.shifts() {
                let (is_second, print) = self.lanes.parts(self.lanes.value_at(word, shift));
                let generation = self.lanes.generation(word, shift, epoch);
                let stays = is_second || print == 0;
                if stays || !tries.newest && generation >= clock.now {
                    continue;
                }
                tries.bins = tries.bins.checked_sub(1)?;
                let second = self.bin(self.second(Entry { home, print }));
                let value = self.lanes.value(print, true);
                let found = self.find_as_of(cells, second, value, clock);
                let is_there = match (found.slot, found.empty) {
                    // Left by an interrupted writer.
                    (Some((_, there)), _) if there >= generation => true,
                    (Some((slot, _)), _) | (None, Some(slot)) => {
                        self.put(cells, slot, value, generation, clock)
                    }
                    (None, None) if chain > 1 => self
                        .move_on(cells, second, chain - 1, clock, tries)
                        .is_some_and(|slot| self.put(cells, slot, value, generation, clock)),
                    _ => false,
                };
                if is_there {
                    return Some(Slot { at, word, shift });
                }
            }
        }
        None
    }

    /// Finds a value in a bin, after removing from its page all keys that the clock's newest generation forgets.
    fn find_as_of<C: Cells>(
        &self,
        cells: &mut C,
        first: usize,
        value: u64,
        clock: &Clock,
    ) -> Found {
        let page = self.epoch_of(first);
        loop {
            let epoch = self.renew(cells, page, clock.newest, clock);
            cells.then();
            let found = self.find(cells, first, value, epoch, false);
            cells.then();
            if !C::SHARED || self.epoch(cells, page) == Some(epoch) {
                return found;
            }
        }
    }
}
