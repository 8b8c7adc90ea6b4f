//! Hashing keys in batches, and counting the keys of a filter.

use crate::hash::Hash;
use crate::hasher::Hasher;
use crate::key::Key;
use std::borrow::Cow;

/// How many distinct keys a filter holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyCount {
    /// Counted when they were added. New keys that seemed present weren't counted, so this is too
    /// low by about the rate.
    Counted(u64),
    /// An estimate from how full the filter is, because the count is unknown (after a union, an
    /// intersection or the death of a writer).
    Estimated(u64),
}

impl KeyCount {
    /// The number, counted or estimated.
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

/// Calls `each` with the hashes of some keys and the room for their answers, as many at once as
/// `hashes` holds. Keys that are hashes aren't copied.
///
/// # Panics
/// If there are not as many answers as keys.
#[inline]
pub(crate) fn in_blocks<K: Key, E>(
    hasher: Hasher,
    keys: &[K],
    answers: &mut [bool],
    hashes: &mut [Hash],
    mut each: impl FnMut(&[Hash], &mut [bool]) -> Result<(), E>,
) -> Result<(), E> {
    assert_eq!(keys.len(), answers.len(), "one answer for each key");
    let block = hashes.len();
    if let Some(hashes) = K::batch(keys).hashes() {
        for (hashes, answers) in hashes.chunks(block).zip(answers.chunks_mut(block)) {
            each(hashes, answers)?;
        }
        return Ok(());
    }
    for (keys, answers) in keys.chunks(block).zip(answers.chunks_mut(block)) {
        for (hash, key) in hashes.iter_mut().zip(keys) {
            *hash = key.key_hash(&hasher);
        }
        each(&hashes[..keys.len()], answers)?;
    }
    Ok(())
}

/// The hashes of all keys; copied only if the keys aren't hashes.
pub(crate) fn hashed<'k, K: Key>(hasher: &Hasher, keys: &'k [K]) -> Cow<'k, [Hash]> {
    match K::batch(keys).hashes() {
        Some(hashes) => Cow::Borrowed(hashes),
        None => Cow::Owned(keys.iter().map(|key| key.key_hash(hasher)).collect()),
    }
}
