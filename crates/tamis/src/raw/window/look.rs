//! Reads a key's two bins at once.

use super::cells::Cells;
use super::shape::{Spot, Table};
use crate::raw::isa::Isa;
#[cfg(target_arch = "x86_64")]
use crate::raw::isa::Level;

/// The content of the words of a key's bins, a bit for each word, those of the home bin first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Look {
    /// Words with the key.
    pub(super) having: u32,
    /// Words with an empty slot.
    pub(super) empty: u32,
}

impl Table {
    /// The word of a bit: its index, and whether it is in the home bin (0) or the second one (1).
    #[inline(always)]
    pub(super) fn word(&self, spot: &Spot, bit: u32) -> (usize, usize) {
        // Not a comparison, which would become an unpredictable branch.
        let nth = (bit >> self.bin_words.trailing_zeros()) as usize % 2;
        (
            spot.firsts[nth] + (bit as usize & (self.bin_words - 1)),
            nth,
        )
    }

    /// Looks for a key by its spot in this table and, if `EMPTY`, for empty slots, which are
    /// otherwise unspecified.
    #[cfg(not(target_arch = "wasm32"))]
    #[inline(always)]
    pub(super) fn look<C: Cells, const EMPTY: bool>(
        &self,
        isa: Isa,
        cells: &C,
        spot: &Spot,
    ) -> Look {
        match self.bin_words {
            4 => self.look_at::<C, EMPTY, 4>(isa, cells, spot),
            2 => self.look_at::<C, EMPTY, 2>(isa, cells, spot),
            _ => self.look_at::<C, EMPTY, 8>(isa, cells, spot),
        }
    }

    /// The same, with one copy for all bin sizes, to keep downloads small.
    #[cfg(target_arch = "wasm32")]
    pub(super) fn look<C: Cells, const EMPTY: bool>(&self, _: Isa, cells: &C, spot: &Spot) -> Look {
        let mut look = Look::default();
        for (nth, first) in spot.firsts.into_iter().enumerate() {
            cells.then();
            let all = self.all_in(spot, nth);
            for i in 0..self.bin_words {
                let word = cells.load(first + i);
                let bit = nth * self.bin_words + i;
                look.having |= u32::from(self.lanes.like(word, all) != 0) << bit;
                if EMPTY {
                    look.empty |= u32::from(self.lanes.like(word, 0) != 0) << bit;
                }
            }
        }
        look
    }

    #[cfg(not(target_arch = "wasm32"))]
    #[inline(always)]
    fn look_at<C: Cells, const EMPTY: bool, const WORDS: usize>(
        &self,
        isa: Isa,
        cells: &C,
        spot: &Spot,
    ) -> Look {
        let mut look = Look::default();
        #[cfg(target_arch = "x86_64")]
        let place = cells.place().filter(|_| isa.has(Level::Avx2));
        #[cfg(target_arch = "x86_64")]
        assert!(
            place.is_none_or(|(_, len)| self.end <= len),
            "a table within the words"
        );
        #[cfg(target_arch = "x86_64")]
        if WORDS == 4
            && isa.has(Level::Avx512)
            && let Some((words, _)) = place
        {
            cells.then();
            // SAFETY: as below.
            let (having, empty) = unsafe {
                let bins = spot.firsts.map(|first| words.add(first));
                super::x86_64::look_avx512(&self.lanes, bins, spot.prints)
            };
            return Look { having, empty };
        }
        for (nth, first) in spot.firsts.into_iter().enumerate() {
            // The home bin is read first, because keys move away from there.
            cells.then();
            let all = self.all_in(spot, nth);
            let up = (nth * WORDS) as u32;
            #[cfg(target_arch = "x86_64")]
            if let Some((words, _)) = place {
                use super::x86_64::{like, load};
                // SAFETY: the level was detected, and bins end before their table does, which
                // is within the words.
                unsafe {
                    let bin = load::<WORDS>(words.add(first));
                    look.having |= like::<WORDS>(&self.lanes, bin, all) << up;
                    if EMPTY {
                        look.empty |= like::<WORDS>(&self.lanes, bin, 0) << up;
                    }
                }
                continue;
            }
            let _ = isa;
            for (i, word) in (up..).zip(cells.load_bin::<WORDS>(first)) {
                look.having |= u32::from(self.lanes.like(word, all) != 0) << i;
                if EMPTY {
                    look.empty |= u32::from(self.lanes.like(word, 0) != 0) << i;
                }
            }
        }
        look
    }
}
