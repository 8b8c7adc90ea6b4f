//! Looks up single keys and batches.

use super::ahead::Ahead;
use super::cells::{Cells, Read};
use super::head::has_full_bins;
use super::shape::{Table, WindowShape};
use super::table::Asked;
use super::when::{end_of, moment_of};
use crate::hash::Hash;
use crate::moment::Moment;
use crate::raw::isa::{Batch, Isa};
use crate::raw::word::Word;
use std::ops::Range;

/// Looks up many keys.
struct Ask<'a, W> {
    shape: &'a WindowShape,
    cells: Read<'a, W>,
    hashes: &'a [Hash],
    times: &'a [Moment],
    out: &'a mut [bool],
}

impl<W: Word> Batch for Ask<'_, W> {
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    fn run(self, isa: Isa) {
        let (shape, hashes, times, out) = (self.shape, self.hashes, self.times, self.out);
        let cells = &Read(self.cells.0);
        let table = *shape.newest_table();
        let mut ahead = Ahead::new(table, cells, hashes);
        let mut first = 0;
        while first < hashes.len() {
            let (asked, range) = shape.asked(cells, moment_of(times, first));
            let older = match shape.table_count() {
                1 => Vec::new(),
                _ => shape.live_tables(cells, asked.oldest, table.ring),
            };
            let end = end_of(times, first, hashes.len(), &range);
            for (number, found) in (first..end).zip(&mut out[first..end]) {
                *found = table.contains(isa, cells, ahead.spot(number), &asked)
                    || !older.is_empty() && any_has(isa, cells, &older, hashes[number], &asked);
                ahead.next(cells, number);
            }
            if !asked.full_bins && has_full_bins(cells) {
                // Slots that stand for all may have replaced some of the keys in the meantime.
                for (hash, found) in hashes[first..end].iter().zip(&mut out[first..end]) {
                    *found = *found || table.is_marked(cells, &table.spot_of(*hash), &asked);
                }
            }
            first = end;
        }
    }
}

/// Looks up one key.
struct AskOne<'a, W> {
    shape: &'a WindowShape,
    cells: Read<'a, W>,
    hash: Hash,
    at: Moment,
    found: &'a mut bool,
}

impl<W: Word> Batch for AskOne<'_, W> {
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    fn run(self, isa: Isa) {
        let (asked, _) = self.shape.asked(&self.cells, self.at);
        let newest = self.shape.newest_table();
        *self.found = newest.holds(isa, &self.cells, &newest.spot_of(self.hash), &asked);
        if self.shape.table_count() > 1 && !*self.found {
            let older = (self.shape).live_tables(&self.cells, asked.oldest, newest.ring);
            *self.found = any_has(isa, &self.cells, &older, self.hash, &asked);
        }
    }
}

/// Looks up one key in several tables.
struct AskTables<'a, C> {
    cells: &'a C,
    tables: &'a [Table],
    hash: Hash,
    asked: &'a Asked,
    found: &'a mut bool,
}

impl<C: Cells> Batch for AskTables<'_, C> {
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    fn run(self, isa: Isa) {
        let mut tables = self.tables.iter();
        *self.found = tables
            .any(|table| table.contains(isa, self.cells, &table.spot_of(self.hash), self.asked));
    }
}

/// Whether one of these tables has the key. Rare, so it isn't inlined into the loops.
#[inline(never)]
pub(super) fn any_has<C: Cells>(
    isa: Isa,
    cells: &C,
    tables: &[Table],
    hash: Hash,
    asked: &Asked,
) -> bool {
    let mut found = false;
    isa.run(AskTables {
        cells,
        tables,
        hash,
        asked,
        found: &mut found,
    });
    found
}

impl WindowShape {
    /// What to look for at a moment, and the moments for which that stays the same.
    pub(super) fn asked<C: Cells>(&self, cells: &C, at: Moment) -> (Asked, Range<i64>) {
        let (now, times) = match self.is_by_keys() {
            true => (
                self.counted_generation(self.added(cells)),
                i64::MIN..i64::MAX,
            ),
            false => {
                let now = self.generation_of(at);
                let step = self.step() as i64;
                (now, now * step..(now + 1) * step)
            }
        };
        let asked = Asked {
            oldest: self.oldest_for(now),
            full_bins: has_full_bins(cells),
        };
        (asked, times)
    }

    #[inline]
    pub(crate) fn contains_at<W: Word>(&self, words: &[W], hash: Hash, at: Moment) -> bool {
        let mut found = false;
        self.isa.run(AskOne {
            shape: self,
            cells: Read(words),
            hash,
            at,
            found: &mut found,
        });
        found
    }

    pub(crate) fn contains_many_at<W: Word>(
        &self,
        words: &[W],
        hashes: &[Hash],
        times: &[Moment],
        out: &mut [bool],
    ) {
        self.isa.run(Ask {
            shape: self,
            cells: Read(words),
            hashes,
            times,
            out,
        });
    }

    /// The tables that have keys of this generation or later ones, except the one whose ring starts
    /// at `but`.
    pub(super) fn live_tables<C: Cells>(&self, cells: &C, oldest: i64, but: usize) -> Vec<Table> {
        let newest = self.newest(cells).unwrap_or(oldest);
        let is_live = |table: &Table| table.ring != but && table.is_live(cells, oldest, newest);
        self.tables().filter(is_live).collect()
    }
}
