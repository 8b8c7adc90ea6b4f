//! Whether a filter holds more keys than it was made for.

use super::Engine;
use crate::Error;
use crate::body::Cells;
use crate::link::Link;
use crate::warning::Warning;

/// Chunks whose bits are counted to estimate the number of keys.
const COUNTED: usize = 4;
/// The share of the capacity that must be sent between two checks, at least.
const SHARE: u64 = 16;

/// When to check next.
#[derive(Clone, Debug, Default)]
pub(super) struct Fill {
    /// The filter can't be overfull before the mark reaches this.
    look_at: u64,
}

impl Fill {
    /// The mark counts all keys sent, unless others added some before marks
    /// existed.
    pub(super) const fn is_known(&mut self, known: bool, capacity: u64) {
        self.look_at = if known { capacity } else { 0 };
    }
}

/// Whether an estimated number of keys is clearly above the capacity.
pub(super) const fn is_overfull(keys: u64, capacity: u64) -> bool {
    keys > capacity.saturating_add(capacity / 50)
}

impl<L: Link> Engine<L> {
    /// The most keys that the filter holds without being overfull. A window
    /// takes more room instead.
    pub(super) fn most_keys(&self) -> u64 {
        match self.window {
            Some(_) => u64::MAX,
            None => self.header.capacity(),
        }
    }

    /// Warns once if the filter is overfull.
    pub(super) async fn look_at_fill(&mut self) {
        let mark = self.memory.mark;
        let known = |warning: &Warning| matches!(warning, Warning::Overfull { .. });
        if self.growth.is_some() || mark <= self.fill.look_at || self.warnings.iter().any(known) {
            return;
        }
        let capacity = self.header.capacity();
        // If it can't be estimated now, the next check will try again.
        let Ok(keys) = self.some_keys().await else {
            return;
        };
        if is_overfull(keys, capacity) {
            self.warnings.push(Warning::Overfull { keys, capacity });
        }
        let least = (capacity / SHARE).max(1);
        self.fill.look_at = mark + capacity.saturating_sub(keys).max(least);
    }

    /// Estimates the number of keys from a few chunks: keys are spread over all
    /// of them.
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
