//! The geometry of a counting filter: a blocked one with counters for bits.

use crate::error::Error;
use crate::raw::blocked::BlockedShape;

/// Bits of a counter.
pub(super) const COUNTER_BITS: usize = 4;

/// Lines, and counters per key, of a [`Counting`](crate::Counting) filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountingShape(BlockedShape);

impl CountingShape {
    /// A shape with exactly these numbers; `lines` must be a multiple of `lines_per_key`.
    pub fn new(lines: u64, hashes_per_line: u32, lines_per_key: u32) -> Result<Self, Error> {
        BlockedShape::new(lines, hashes_per_line, lines_per_key).map(Self::of)
    }

    /// The shape with a counter for each bit of `bits`.
    pub(crate) const fn of(bits: BlockedShape) -> Self {
        Self(bits)
    }

    /// The shape of the blocked filter with a bit for each counter.
    #[inline]
    pub const fn bits(&self) -> BlockedShape {
        self.0
    }

    /// The number of 256-byte lines, of 512 counters each.
    #[inline]
    pub const fn lines(&self) -> u64 {
        self.0.lines()
    }

    /// How many counters a key has in each of its lines: 1 to 8.
    #[inline]
    pub const fn hashes_per_line(&self) -> u32 {
        self.0.hashes_per_line()
    }

    /// How many lines hold a key's counters: 1 to 4. More lines give a lower rate.
    #[inline]
    pub const fn lines_per_key(&self) -> u32 {
        self.0.lines_per_key()
    }

    pub(crate) const fn body_len(&self) -> u64 {
        self.0.body_len() * COUNTER_BITS as u64
    }
}
