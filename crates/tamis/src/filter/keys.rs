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

/// Hashes keys, as many at once as `hashes` has room for, and calls `each` with their
/// hashes and the room for their answers.
///
/// # Panics
/// If there are not as many answers as keys.
#[inline]
pub(crate) fn in_blocks<K: AsRef<[u8]>, E>(
    hasher: Hasher,
    keys: &[K],
    answers: &mut [bool],
    hashes: &mut [Hash],
    mut each: impl FnMut(&[Hash], &mut [bool]) -> Result<(), E>,
) -> Result<(), E> {
    assert_eq!(keys.len(), answers.len(), "one answer for each key");
    let block = hashes.len();
    for (keys, answers) in keys.chunks(block).zip(answers.chunks_mut(block)) {
        for (hash, key) in hashes.iter_mut().zip(keys) {
            *hash = hasher.hash(key.as_ref());
        }
        each(&hashes[..keys.len()], answers)?;
    }
    Ok(())
}
