//! A growing filter from a file that judges records; several threads add to it at once.

use super::{Judge, Memory};
use crate::stream::Report;
use tamis::{
    AnyFilter, Error, Growing,
    file::FileLock,
    internals::{Expansion, InOrder},
};

pub(super) struct Grown<'a> {
    pub(super) adding: InOrder<'a>,
    /// Wrong answers that the filter recorded before this run.
    wrong_before: f64,
}

impl<'a> Grown<'a> {
    pub(super) fn new(filter: &'a mut AnyFilter, threads: usize) -> Self {
        Self {
            wrong_before: filter.expected_wrong(),
            adding: filter.in_order(threads, grow_fast_while_small),
        }
    }
}

impl Judge for Grown<'_> {
    fn added(&self) -> u64 {
        self.adding.with(|filter| filter.keys().get())
    }

    fn save(&self, lock: &mut FileLock) -> Result<(), Error> {
        self.adding.with(|filter| filter.update_under(lock))
    }

    fn memory(self, _: &Report) -> Memory {
        let (bytes, wrong) = self
            .adding
            .with(|filter| (filter.bytes(), filter.expected_wrong()));
        Memory::local(bytes, (wrong - self.wrong_before).max(0.0))
    }
}

/// A small filter grows in large steps: each layer costs a lookup, and size doesn't matter yet.
fn grow_fast_while_small(filter: &mut Growing) {
    const SMALL: u64 = 1 << 20;
    const STEP: u64 = 16;
    let times = (SMALL / filter.capacity().max(1)).min(STEP);
    filter.set_expansion(match times {
        0..=2 => Expansion::Auto,
        _ => Expansion::Times(times as u32),
    });
}
