//! Room in full bins: keys that move on to their second bins.

use super::cells::Cells;
use super::lanes::Slot;
use super::shape::{Entry, Spot, Table};
use super::table::{Clock, Found};

/// Bins that are looked into to make room, before a table is called full.
const BINS_TRIED: u32 = 500;
/// How many keys move one another on to make room for one.
const LONGEST_CHAIN: u32 = 4;

/// What making room for a key has left to try.
struct Tries {
    bins: u32,
    /// Whether keys of the newest generation move, too. Next to other writers they do so last: whoever adds one of
    /// them at this very moment may be looking for it where it was.
    newest: bool,
}

impl Table {
    /// A slot in one of the bins whose key was copied to its second bin.
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

    /// Copies one key of a full bin to its second bin, where others move on if need be; its slot.
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
                    // Left by somebody who was interrupted here.
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

    /// What a bin has of a value, when all that is forgotten in the clock's newest generation has left its page.
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
