//! Prefetches the bins of a batch's next keys.

use super::cells::Cells;
use super::shape::{Spot, Table};
use crate::hash::Hash;

/// How many keys ahead bins are prefetched.
const AHEAD: usize = 16;

/// The spots of a batch's next keys, whose bins are being prefetched.
pub(super) struct Ahead<'a> {
    table: Table,
    spots: [Spot; AHEAD],
    /// The keys after those.
    later: std::slice::Iter<'a, Hash>,
}

impl<'a> Ahead<'a> {
    /// Prefetches the bins of the first keys.
    #[inline(always)]
    pub(super) fn new<C: Cells>(table: Table, cells: &C, hashes: &'a [Hash]) -> Self {
        let mut ahead = Self {
            table,
            spots: [Spot::default(); AHEAD],
            later: hashes.iter(),
        };
        for number in 0..AHEAD {
            ahead.next(cells, number);
        }
        ahead
    }

    /// The spot of this key; call [`next`](Self::next) afterwards.
    #[inline(always)]
    pub(super) fn spot(&self, number: usize) -> &Spot {
        &self.spots[number % AHEAD]
    }

    /// Prefetches the bins of a later key.
    #[inline(always)]
    pub(super) fn next<C: Cells>(&mut self, cells: &C, number: usize) {
        if let Some(hash) = self.later.next() {
            let spot = self.table.spot_of(*hash);
            cells.prefetch(&spot);
            self.spots[number % AHEAD] = spot;
        }
    }
}
