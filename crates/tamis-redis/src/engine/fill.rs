//! Whether a filter holds more keys than it was made for.

use super::Engine;
use super::reading::number;
use crate::Error;
use crate::body::Cells;
use crate::link::Link;
use crate::request::Request;
use crate::warning::Warning;

/// Chunks whose bits are counted to estimate the number of keys.
const COUNTED: usize = 4;
/// How much of the capacity may be sent between two looks, at least.
const SHARE: u64 = 16;

/// When to look next.
#[derive(Clone, Debug, Default)]
pub(super) struct Fill {
    /// Before the mark is there, the filter can't be overfull.
    look_at: u64,
}

impl Fill {
    /// As many keys were sent as the mark says, unless others have added some
    /// before there was a mark.
    pub(super) const fn is_known(&mut self, known: bool, capacity: u64) {
        self.look_at = if known { capacity } else { 0 };
    }
}

/// Whether so many keys, by an estimate, are more than there should be.
pub(super) const fn is_overfull(keys: u64, capacity: u64) -> bool {
    keys > capacity + capacity / 50
}

impl<L: Link> Engine<L> {
    /// The keys that the body which is being filled is made for.
    pub(super) fn capacity_now(&self) -> u64 {
        let capacity = self.header.capacity();
        (self.window.as_ref()).map_or(capacity, |window| window.share_of(capacity))
    }

    /// The most keys that the filter holds if it is not overfull: those of a
    /// window's span, and of the generation that is being filled.
    pub(super) fn most_keys(&self) -> u64 {
        let more = self.window.as_ref().map_or(0, |_| self.capacity_now());
        self.header.capacity().saturating_add(more)
    }

    /// Warns, once, if the filter holds more than it was made for.
    pub(super) async fn look_at_fill(&mut self) {
        let mark = self.memory.mark;
        let known = |warning: &Warning| {
            matches!(
                warning,
                Warning::Overfull { .. } | Warning::OverfullGeneration { .. }
            )
        };
        if self.growth.is_some() || mark <= self.fill.look_at || self.warnings.iter().any(known) {
            return;
        }
        if self.window.is_some() {
            return self.look_at_period().await;
        }
        let capacity = self.header.capacity();
        // If it can't be known now, then another time.
        let Ok(keys) = self.some_keys().await else {
            return;
        };
        if is_overfull(keys, capacity) {
            self.warnings.push(Warning::Overfull { keys, capacity });
        }
        let least = (capacity / SHARE).max(1);
        self.fill.look_at = mark + capacity.saturating_sub(keys).max(least);
    }

    /// The same for the newest generation of a window.
    async fn look_at_period(&mut self) {
        let Some(window) = &self.window else {
            return;
        };
        let capacity = self.capacity_now();
        let (Some(newest), some) = (window.newest, window.chunks.len().min(COUNTED)) else {
            return;
        };
        let count = |i: usize| {
            let ones = command!(
                "BITCOUNT",
                window.string(i, newest),
                0,
                window.chunks[i].len - 1
            );
            Request::new(window.chunks[i].slot, &[ones])
        };
        let shape = *window.shape();
        let counted: u64 = window.chunks[..some].iter().map(|chunk| chunk.len).sum();
        let requests = (0..some).map(count).collect();
        let Ok(answers) = self.wire.ask("counting the keys", requests).await else {
            return;
        };
        let ones = answers.iter().flatten().filter_map(number).sum::<u64>();
        let ones = ones as f64 * shape.part_len() as f64 / counted as f64;
        let keys = shape.keys_from_ones(ones as u64).round() as u64;
        if is_overfull(keys, capacity) {
            self.warnings
                .push(Warning::OverfullGeneration { keys, capacity });
        }
        self.fill.look_at = self.memory.mark + (capacity / SHARE).max(1);
    }

    /// The number of keys by a few chunks: keys are spread over all of them.
    async fn some_keys(&mut self) -> Result<u64, Error> {
        let body = &self.bodies[0];
        Ok(match body.cells() {
            Cells::Bits(shape) => {
                let some = body.chunks.len().min(COUNTED);
                let counted: u64 = body.chunks[..some].iter().map(|chunk| chunk.len).sum();
                let all = shape.lines() * 64;
                let ones = self.ones(0, some).await?;
                let ones = ones as f64 * all as f64 / counted as f64;
                shape.keys_from_ones(ones as u64).round() as u64
            }
            Cells::Counters(_) => self.sampled_keys(0).await?.0.round() as u64,
        })
    }
}
