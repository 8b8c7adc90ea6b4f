//! A key's two bins, looked at as a whole.

use super::cells::Cells;
use super::shape::{Spot, Table};
use crate::raw::isa::Isa;
#[cfg(target_arch = "x86_64")]
use crate::raw::isa::Level;

/// What the words of a key's bins hold, a bit for each: from bit 0 those of the home bin that have
/// the key and from bit 8 those of the second, from bit 16 those of the home bin that have an empty
/// slot and from bit 24 those of the second.
pub(super) type Look = u32;

/// The bits of words that have the key.
pub(super) const HAVING: Look = 0xFFFF;

impl Spot {
    /// The word of a bit: where it is, and whether in the home bin (0) or in the second one (1).
    #[inline(always)]
    pub(super) fn word(&self, bit: u32) -> (usize, usize) {
        let nth = (bit / 8 % 2) as usize;
        (self.firsts[nth] + (bit % 8) as usize, nth)
    }
}

impl Table {
    /// Looks for a key, whose spot is one of this table, and if `EMPTY` for empty slots.
    #[cfg(not(target_arch = "wasm32"))]
    #[inline(always)]
    pub(super) fn look<C: Cells, const EMPTY: bool>(
        &self,
        isa: Isa,
        cells: &C,
        spot: &Spot,
    ) -> Look {
        match self.bin_words {
            2 => self.look_at::<C, EMPTY, 2>(isa, cells, spot),
            4 => self.look_at::<C, EMPTY, 4>(isa, cells, spot),
            _ => self.look_at::<C, EMPTY, 8>(isa, cells, spot),
        }
    }

    /// The same for bins of any size, once: what is downloaded is to be small.
    #[cfg(target_arch = "wasm32")]
    pub(super) fn look<C: Cells, const EMPTY: bool>(&self, _: Isa, cells: &C, spot: &Spot) -> Look {
        let mut look = 0;
        for (nth, first) in spot.firsts.into_iter().enumerate() {
            cells.then();
            let all = self.all_in(spot, nth);
            for i in 0..self.bin_words {
                let word = cells.load(first + i);
                let bit = 8 * nth + i;
                look |= u32::from(self.lanes.like(word, all) != 0) << bit;
                if EMPTY {
                    look |= u32::from(self.lanes.like(word, 0) != 0) << (16 + bit);
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
        let mut look = 0;
        #[cfg(target_arch = "x86_64")]
        let place = cells.place().filter(|_| isa.has(Level::Avx2));
        #[cfg(target_arch = "x86_64")]
        assert!(
            place.is_none_or(|(_, len)| self.end <= len),
            "a table within the words"
        );
        for (nth, first) in spot.firsts.into_iter().enumerate() {
            // The home bin is read first: keys move from there.
            cells.then();
            let all = self.all_in(spot, nth);
            let up = 8 * nth as u32;
            #[cfg(target_arch = "x86_64")]
            if let Some((words, _)) = place {
                use super::x86_64::{like, load};
                // SAFETY: the level was detected, and bins end before their table does, which
                // is within the words.
                unsafe {
                    let bin = load::<WORDS>(words.add(first));
                    look |= like::<WORDS>(&self.lanes, bin, all) << up;
                    if EMPTY {
                        look |= like::<WORDS>(&self.lanes, bin, 0) << (16 + up);
                    }
                }
                continue;
            }
            let _ = isa;
            for (i, word) in (0..).zip(cells.load_bin::<WORDS>(first)) {
                look |= u32::from(self.lanes.like(word, all) != 0) << (up + i);
                if EMPTY {
                    look |= u32::from(self.lanes.like(word, 0) != 0) << (16 + up + i);
                }
            }
        }
        look
    }
}
