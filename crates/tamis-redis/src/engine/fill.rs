//! Whether a filter holds more keys than it was made for.

use super::Engine;
use crate::Error;
use crate::body::Cells;
use crate::link::Link;
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
    keys > capacity.saturating_add(capacity / 50)
}

impl<L: Link> Engine<L> {
    /// The most keys that the filter holds if it is not overfull. A window takes
    /// more room instead.
    pub(super) fn most_keys(&self) -> u64 {
        match self.window {
            Some(_) => u64::MAX,
            None => self.header.capacity(),
        }
    }

    /// Warns, once, if the filter holds more than it was made for.
    pub(super) async fn look_at_fill(&mut self) {
        let mark = self.memory.mark;
        let known = |warning: &Warning| matches!(warning, Warning::Overfull { .. });
        if self.growth.is_some() || mark <= self.fill.look_at || self.warnings.iter().any(known) {
            return;
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
