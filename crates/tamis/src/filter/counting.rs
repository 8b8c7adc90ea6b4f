//! The counting filter.

use crate::error::Error;
use crate::filter::keys::in_blocks;
use crate::filter::kinds::Blocked;
use crate::filter::shell::Filter;
use crate::hash::Hash;
use crate::key::Key;
use crate::raw::counting::{CountingShape, blocked_words};
use crate::raw::layout::BLOCK;
use crate::store::body::{Body, Bytes};
use std::convert::Infallible;

/// A counting filter: a blocked filter whose keys can be removed; see
/// [`Filter`] for its other methods.
///
/// A key that was added several times stays present until it has been removed as often. The number
/// of copies is unlimited, but beyond about 15 they are no longer counted and can't be removed.
///
/// ```
/// use tamis::Counting;
/// let mut online = Counting::new(1_000_000, 0.01)?;
/// online.insert("ada");
/// online.insert("ada");
/// assert_eq!(online.count("ada"), 2);
/// assert!(online.remove("ada") && online.contains("ada"));
/// assert!(online.remove("ada") && !online.contains("ada"));
/// assert!(!online.remove("ada"));
/// # Ok::<(), tamis::Error>(())
/// ```
pub type Counting<B = Bytes> = Filter<CountingShape, B>;

impl<B: Body> Filter<CountingShape, B> {
    /// An upper bound on how often the key was added: other keys may share all of its counters.
    /// Never too low, except that it stops at 15, which means "15 or more".
    ///
    /// ```
    /// use tamis::Counting;
    /// let mut online = Counting::new(1_000, 0.01)?;
    /// online.insert("ada");
    /// online.insert("ada");
    /// assert_eq!(online.count("ada"), 2);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn count(&self, key: impl Key) -> u64 {
        self.shape()
            .count(self.words(), key.key_hash(self.hasher()))
    }

    /// The blocked filter that these keys would have built, bit for bit: a quarter of the size,
    /// with the same rate, but without removal. Removed keys aren't in it, unless one of their
    /// counters had reached 15 and so stays set.
    ///
    /// ```
    /// use tamis::{Blocked, Counting};
    /// let (mut counting, blocked) = (Counting::new(1_000, 0.01)?, Blocked::new(1_000, 0.01)?);
    /// for key in ["apple", "pear", "fig"] { counting.insert(key); }
    /// counting.remove("pear");
    /// for key in ["apple", "fig"] { blocked.insert(key); }
    /// assert_eq!(counting.to_blocked()?.to_bytes(), blocked.to_bytes());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn to_blocked(&self) -> Result<Blocked, Error> {
        let mut header = self.header();
        header.shape = self.shape().bits().into();
        let mut body = Bytes::zeroed(header.body_len())?;
        for (word, bits) in body
            .exclusive()
            .into_iter()
            .flatten()
            .zip(blocked_words(self.words()))
        {
            *word = bits.to_le();
        }
        Blocked::assemble((header, body))
    }
}

impl Filter<CountingShape> {
    /// Undoes one addition of the key and returns whether it seemed present. If it didn't, nothing
    /// changes.
    ///
    /// Remove only keys that were added. At the filter's rate, a key that was never added seems
    /// present, and removing it lowers counters of other keys, which may then disappear: the false
    /// "no" that a filter otherwise never gives.
    ///
    /// Processes that share the file may remove keys at the same time, if all of them follow that
    /// rule.
    ///
    /// ```
    /// use tamis::Counting;
    /// let mut online = Counting::new(1_000, 0.01)?;
    /// online.insert("ada");
    /// online.insert("ada");
    /// assert!(online.remove("ada") && online.contains("ada")); // once more
    /// assert!(online.remove("ada") && !online.contains("ada"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn remove(&mut self, key: impl Key) -> bool {
        let hash = key.key_hash(self.hasher());
        let (was, is) = self.shape().remove(self.words(), hash);
        if was && !is {
            self.count_fewer(1);
        }
        was
    }

    /// Removes many keys; `removed[i]` is the answer for `keys[i]`.
    ///
    /// # Panics
    /// If `removed` is not as long as `keys`.
    ///
    /// ```
    /// use tamis::Counting;
    /// let mut online = Counting::new(1_000, 0.01)?;
    /// online.insert("ada");
    /// online.insert("ada");
    /// let mut removed = [false; 2];
    /// online.remove_many(&["ada", "bob"], &mut removed);
    /// assert_eq!(removed, [true, false]);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn remove_many<K: Key>(&mut self, keys: &[K], removed: &mut [bool]) {
        let hasher = *self.hasher();
        let mut block = [Hash::default(); BLOCK];
        let Ok(()) = in_blocks(hasher, keys, removed, &mut block, |hashes, removed| {
            for hash in hashes {
                self.shape().prefetch_all(self.words(), *hash);
            }
            for (hash, removed) in hashes.iter().zip(removed) {
                *removed = self.remove(*hash);
            }
            Ok::<(), Infallible>(())
        });
    }
}
