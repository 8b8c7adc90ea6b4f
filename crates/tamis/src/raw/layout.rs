//! The interface between the kinds and the shell around all of them.

use super::explain::Explanation;
use super::word::{SharedWord, Word};
use crate::error::Error;
use crate::hash::Hash;
use crate::kind::Kind;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Keys that are hashed and prefetched together: enough to hide the memory's
/// latency, few enough to stay in the first-level cache.
pub(crate) const BLOCK: usize = 64;

/// Keeps [`Layout`] and its like this crate's own.
pub trait Sealed {}

/// A kind of filter: its geometry, and its answers from a slice of words.
/// Sealed; the kinds are listed in [`Kind`].
#[doc(hidden)]
pub trait Layout: Sealed + Copy + PartialEq + fmt::Debug {
    const KIND: Kind;
    /// The shape, completed by the part that is in the body, which is checked.
    fn complete<W: Word>(self, _words: &[W]) -> Result<Self, Error> {
        Ok(self)
    }
    /// The body's length in bytes.
    fn body_len(&self) -> u64;
    /// The first difference between two shapes.
    fn difference(&self, other: &Self) -> Option<Difference>;
    fn contains<W: Word>(&self, words: &[W], hash: Hash) -> bool;
    /// What [`contains`](Self::contains) looks at, and what it finds.
    fn explain<W: Word>(&self, words: &[W], hash: Hash) -> Explanation;
    /// Asks the memory for the key's words; a hint.
    fn prefetch<T>(&self, _words: &[T], _hash: Hash) {}
    /// Asks at most [`BLOCK`] keys, which have been prefetched.
    fn contains_many<W: Word>(&self, words: &[W], hashes: &[Hash], out: &mut [bool]);
    /// Asks any number of keys that are hashes, or become hashes cheaply.
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
    /// The number of keys, where the words themselves count them.
    fn counted<W: Word>(&self, _words: &[W]) -> Option<u64> {
        None
    }
    /// The number of keys estimated from what the words hold.
    fn keys_now<W: Word>(&self, words: &[W]) -> f64;
}

/// A kind whose answers depend on the key alone; those of a window depend on the
/// moment, too.
#[doc(hidden)]
pub trait Timeless: Layout {}

/// A kind that starts empty and takes keys: all zeros hold none. Finished lists
/// are not.
#[doc(hidden)]
pub trait Creatable: Layout {
    /// The shape without what keys have added to it.
    fn emptied(self) -> Self {
        self
    }
}

/// A kind whose keys are sets of bits or counters: adding is one atomic step a
/// word, in any order, so it needs no exclusive access and never fails.
#[doc(hidden)]
pub trait BitLayout: Creatable {
    fn insert<W: SharedWord>(&self, words: &[W], hash: Hash) -> bool;
    /// [`insert`](Self::insert) with the words to itself.
    #[inline]
    fn insert_alone(&self, words: &mut [u64], hash: Hash) -> bool {
        let mut new = [false];
        self.insert_many(words, &[hash], &mut new);
        new[0]
    }
    /// Adds at most [`BLOCK`] prefetched keys, next to other threads and processes.
    fn insert_many_shared<W: SharedWord>(&self, words: &[W], hashes: &[Hash], new: &mut [bool]);
    /// Adds at most [`BLOCK`] prefetched keys with the words to itself.
    fn insert_many(&self, words: &mut [u64], hashes: &[Hash], new: &mut [bool]);
    /// Makes a word that of the union.
    fn unite(word: &AtomicU64, theirs: u64) {
        word.set(theirs);
    }
    /// Makes a word that of the intersection.
    fn intersect(word: &AtomicU64, theirs: u64) {
        word.fetch_and(theirs.to_le(), Relaxed);
    }
    /// Adds any number of keys that are hashes, or become hashes cheaply, with
    /// the words to itself.
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

/// Hashes a block of keys and asks the memory for their words.
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
