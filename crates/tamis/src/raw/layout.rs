//! The interface between the kinds and the shell around them.

use super::explain::Explanation;
use super::word::{SharedWord, Word};
use crate::error::Error;
use crate::hash::Hash;
use crate::kind::Kind;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Keys that are hashed and prefetched together: enough to hide the memory's latency, few enough to
/// stay in the first-level cache.
pub(crate) const BLOCK: usize = 64;

/// Seals [`Layout`] and similar traits.
pub trait Sealed {}

/// A kind of filter: its geometry, and its answers from a slice of words.
/// Sealed; the kinds are listed in [`Kind`].
#[doc(hidden)]
pub trait Layout: Sealed + Copy + PartialEq + fmt::Debug {
    const KIND: Kind;
    /// The shape, completed and checked with the part in the body.
    fn complete<W: Word>(self, _words: &[W]) -> Result<Self, Error> {
        Ok(self)
    }
    /// The body's length in bytes.
    fn body_len(&self) -> u64;
    /// The first difference between two shapes.
    fn difference(&self, other: &Self) -> Option<Difference>;
    fn contains<W: Word>(&self, words: &[W], hash: Hash) -> bool;
    /// What [`contains`](Self::contains) reads, and what it finds.
    fn explain<W: Word>(&self, words: &[W], hash: Hash) -> Explanation;
    /// Prefetches the key's words; a hint.
    fn prefetch<T>(&self, _words: &[T], _hash: Hash) {}
    /// Looks up at most [`BLOCK`] prefetched keys.
    fn contains_many<W: Word>(&self, words: &[W], hashes: &[Hash], out: &mut [bool]);
    /// Looks up any number of keys that are hashes, or become hashes cheaply.
    fn contains_hashes<W: Word, H: Copy + Into<Hash>>(
        &self,
        words: &[W],
        keys: &[H],
        out: &mut [bool],
    ) {
        let mut hashes = [Hash::default(); BLOCK];
        for (keys, out) in keys.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
            let hashes = hash_block(self, words, keys, |key| (*key).into(), &mut hashes);
            self.contains_many(words, hashes, out);
        }
    }
    /// The number of keys, if the words count them.
    fn counted<W: Word>(&self, _words: &[W]) -> Option<u64> {
        None
    }
    /// The number of keys, estimated from the words' content.
    fn keys_now<W: Word>(&self, words: &[W]) -> f64;
}

/// A kind whose answers depend only on the key; those of a window also depend on the moment.
#[doc(hidden)]
pub trait Timeless: Layout {}

/// A kind that starts empty, as all zeros, and takes keys. Finished lists don't.
#[doc(hidden)]
pub trait Creatable: Layout {
    /// The shape without what keys have added to it.
    fn emptied(self) -> Self {
        self
    }
}

/// A kind whose keys are sets of bits or counters. Adding is one atomic step per word, in any
/// order, so it needs no exclusive access and never fails.
#[doc(hidden)]
pub trait BitLayout: Creatable {
    fn insert<W: SharedWord>(&self, words: &[W], hash: Hash) -> bool;
    /// [`insert`](Self::insert) with exclusive access.
    #[inline]
    fn insert_alone(&self, words: &mut [u64], hash: Hash) -> bool {
        let mut new = [false];
        self.insert_many(words, &[hash], &mut new);
        new[0]
    }
    /// Adds at most [`BLOCK`] prefetched keys while other threads and processes may add.
    fn insert_many_shared<W: SharedWord>(&self, words: &[W], hashes: &[Hash], new: &mut [bool]);
    /// Adds at most [`BLOCK`] prefetched keys with exclusive access.
    fn insert_many(&self, words: &mut [u64], hashes: &[Hash], new: &mut [bool]);
    /// Changes a word to that of the union.
    fn unite(word: &AtomicU64, theirs: u64) {
        word.set(theirs);
    }
    /// Changes a word to that of the intersection.
    fn intersect(word: &AtomicU64, theirs: u64) {
        word.fetch_and(theirs.to_le(), Relaxed);
    }
    /// Adds any number of keys that are hashes, or become hashes cheaply, with exclusive access.
    fn insert_hashes<H: Copy + Into<Hash>>(&self, words: &mut [u64], keys: &[H], new: &mut [bool]) {
        let mut hashes = [Hash::default(); BLOCK];
        for (keys, new) in keys.chunks(BLOCK).zip(new.chunks_mut(BLOCK)) {
            let hashes = hash_block(self, words, keys, |key| (*key).into(), &mut hashes);
            self.insert_many(words, hashes, new);
        }
    }
}

/// How two filters differ, for [`Error::Unlike`].
#[doc(hidden)]
#[derive(Debug)]
pub struct Difference {
    pub(crate) what: &'static str,
    pub(crate) ours: String,
    pub(crate) theirs: String,
}

impl Difference {
    pub(crate) fn between<T: PartialEq + fmt::Display>(
        what: &'static str,
        ours: T,
        theirs: T,
    ) -> Option<Self> {
        (ours != theirs).then(|| Self {
            what,
            ours: ours.to_string(),
            theirs: theirs.to_string(),
        })
    }
}

/// Hashes a block of keys and prefetches their words.
#[inline]
pub(crate) fn hash_block<'a, L: Layout, T, K>(
    shape: &L,
    words: &[T],
    keys: &[K],
    hash: impl Fn(&K) -> Hash,
    hashes: &'a mut [Hash; BLOCK],
) -> &'a [Hash] {
    for (slot, key) in hashes.iter_mut().zip(keys) {
        *slot = hash(key);
        shape.prefetch(words, *slot);
    }
    &hashes[..keys.len()]
}
