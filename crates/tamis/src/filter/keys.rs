//! Keys on their way into a filter, and the number of those in it.

use crate::hash::Hash;
use crate::hasher::Hasher;

/// How many distinct keys a filter holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyCount {
    /// Counted when they were added. A new key that seemed present was not
    /// counted, so this is too low by about the rate.
    Counted(u64),
    /// The count is unknown (after a union, an intersection or the death of a
    /// writer); this is an estimate from how full the filter is.
    Estimated(u64),
}

impl KeyCount {
    /// The number, however it was found.
    ///
    /// ```
    /// assert_eq!(tamis::KeyCount::Counted(3).get(), 3);
    /// ```
    pub const fn get(self) -> u64 {
        match self {
            Self::Counted(n) | Self::Estimated(n) => n,
        }
    }
}

/// Hashes at most as many keys as there is room for.
#[inline]
pub(crate) fn hash_all<'a, K: AsRef<[u8]>>(
    hasher: &Hasher,
    keys: &[K],
    hashes: &'a mut [Hash],
) -> &'a [Hash] {
    for (hash, key) in hashes.iter_mut().zip(keys) {
        *hash = hasher.hash(key.as_ref());
    }
    &hashes[..keys.len()]
}
