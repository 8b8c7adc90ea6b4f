//! Sets of hashes are sorted and read in parts, by their top bits.

use crate::hash::Hash;

const PART_BITS: u32 = 8;
pub(super) const PARTS: usize = 1 << PART_BITS;

/// Where a part begins in sorted hashes.
pub(super) fn starts(sorted: &[Hash], part: usize) -> usize {
    sorted.partition_point(|hash| ((hash.hi >> (64 - PART_BITS)) as usize) < part)
}
