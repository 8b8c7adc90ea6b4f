//! The cuckoo filter.

use crate::error::Error;
use crate::filter::keys::in_blocks;
use crate::filter::shell::Filter;
use crate::hash::Hash;
use crate::key::Key;
use crate::raw::cuckoo::CuckooShape;
use crate::raw::cuckoo::table::{BATCH, Entry, Full};
use crate::store::body::{Body, Bytes};
use std::convert::Infallible;

/// A cuckoo filter: small, and its keys can be removed; see [`Filter`] for its
/// other methods.
///
/// Every addition is stored: a key added twice is present until it is removed twice. There is room
/// for 4 to 8 copies of a key ([`CuckooShape::max_copies`]), and in total for about as many keys as
/// the filter was made for; after that, adding fails and nothing is lost. [`keys`](Filter::keys) is
/// exact and counts copies.
///
/// Adding moves the entries of other keys, so it needs exclusive access, and writers can't
/// [`share`](Filter::share) a file. Instead [`load`](Filter::load) it, add keys and save it, under
/// a [`FileLock`](crate::file::FileLock) if there are other writers.
///
/// ```
/// use tamis::Cuckoo;
/// let mut online = Cuckoo::new(1_000_000, 0.001)?; // 13.1 bits a key
/// assert!(online.insert("ada")?);
/// assert!(online.contains("ada"));
/// assert!(online.remove("ada"));
/// assert!(!online.contains("ada"));
/// # Ok::<(), tamis::Error>(())
/// ```
pub type Cuckoo<B = Bytes> = Filter<CuckooShape, B>;

impl<B: Body> Filter<CuckooShape, B> {
    /// An upper bound on how often the key was added: keys with the same fingerprint and places
    /// count as the same. Never too low.
    ///
    /// ```
    /// use tamis::Cuckoo;
    /// let mut online = Cuckoo::new(1_000, 0.01)?;
    /// assert!(online.insert("ada")?);
    /// assert_eq!(online.count("ada"), 1);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn count(&self, key: impl Key) -> u64 {
        let entry = self.shape().entry(key.key_hash(self.hasher()));
        self.shape().copies(self.words(), entry)
    }

    /// The share of slots in use. A filter is made for a load of 92 to 98 %, and reaches at least
    /// 95 % before it refuses a key.
    ///
    /// ```
    /// use tamis::Cuckoo;
    /// let mut online = Cuckoo::new(1_000, 0.01)?;
    /// assert!(online.insert("ada")?);
    /// assert!(online.load_factor() < 0.01);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    #[doc(hidden)]
    pub fn load_factor(&self) -> f64 {
        self.keys().get() as f64 / self.shape().slots() as f64
    }
}

impl Filter<CuckooShape> {
    /// Adds a copy of the key and returns whether it was new. "New" is always
    /// right; "not new" is wrong for about one in `1/rate` new keys, which seem
    /// present.
    ///
    /// Fails if there is no room ([`Error::Full`]) or there are too many copies of
    /// this key ([`Error::TooManyCopies`]); the filter is then unchanged.
    ///
    /// ```
    /// use tamis::Cuckoo;
    /// let mut online = Cuckoo::new(1_000, 0.01)?;
    /// assert!(online.insert("ada")?);
    /// assert!(!online.insert("ada")?); // another copy, not new
    /// assert_eq!(online.count("ada"), 2);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[inline]
    pub fn insert(&mut self, key: impl Key) -> Result<bool, Error> {
        let hash = key.key_hash(self.hasher());
        let (shape, words) = self.exclusive();
        let entry = shape.entry(hash);
        let new = !shape.holds(words, entry);
        shape
            .insert(words, entry)
            .map_err(|full| self.refusal(full))?;
        self.count_more(1);
        Ok(new)
    }

    /// Adds many keys; `new[i]` is the answer for `keys[i]`. If a key is refused, the keys before
    /// it were added and the rest were not; [`keys`](Filter::keys) shows how many. The answers
    /// match repeated [`insert`](Self::insert)s, but entries may end up in other slots.
    ///
    /// # Panics
    /// If `new` is not as long as `keys`.
    ///
    /// ```
    /// use tamis::Cuckoo;
    /// let mut seen = Cuckoo::new(1_000, 0.01)?;
    /// let mut new = [false; 3];
    /// seen.insert_many(&["a", "b", "a"], &mut new)?;
    /// assert_eq!(new, [true, true, false]);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn insert_many<K: Key>(&mut self, keys: &[K], new: &mut [bool]) -> Result<(), Error> {
        let hasher = *self.hasher();
        let mut block = [Hash::default(); BATCH];
        let mut entries = [Entry::default(); BATCH];
        in_blocks(hasher, keys, new, &mut block, |hashes, new| {
            let (shape, words) = self.exclusive();
            for (entry, hash) in entries.iter_mut().zip(hashes) {
                *entry = shape.entry(*hash);
            }
            let entries = &entries[..hashes.len()];
            shape.are_new(words, entries, new);
            let (added, result) = shape.insert_many(words, entries);
            self.count_more(added as u64);
            result.map_err(|full| self.refusal(full))
        })
    }

    #[cold]
    fn refusal(&self, full: Full) -> Error {
        match full {
            Full::Table => Error::Full {
                entries: self.keys().get(),
                load: self.load_factor(),
            },
            Full::Key { copies } => Error::TooManyCopies { copies },
        }
    }

    /// Removes a copy of the key and returns whether it found one. `false` proves that the key
    /// wasn't there; `true` proves nothing.
    ///
    /// Remove only keys that were added. At the filter's rate, a key that was never added is found,
    /// and removing it removes another key's entry. That key is then missing: the false "no" that a
    /// filter otherwise never gives.
    ///
    /// ```
    /// use tamis::Cuckoo;
    /// let mut online = Cuckoo::new(1_000, 0.01)?;
    /// assert!(online.insert("ada")?);
    /// assert!(online.remove("ada") && !online.contains("ada"));
    /// assert!(!online.remove("ada"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn remove(&mut self, key: impl Key) -> bool {
        let hash = key.key_hash(self.hasher());
        let (shape, words) = self.exclusive();
        let removed = shape.remove(words, shape.entry(hash));
        if removed {
            self.count_fewer(1);
        }
        removed
    }

    /// Removes many keys; `removed[i]` is the answer for `keys[i]`.
    ///
    /// # Panics
    /// If `removed` is not as long as `keys`.
    ///
    /// ```
    /// use tamis::Cuckoo;
    /// let mut online = Cuckoo::new(1_000, 0.01)?;
    /// assert!(online.insert("ada")?);
    /// let mut removed = [false; 2];
    /// online.remove_many(&["ada", "bob"], &mut removed);
    /// assert_eq!(removed, [true, false]);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn remove_many<K: Key>(&mut self, keys: &[K], removed: &mut [bool]) {
        let hasher = *self.hasher();
        let mut block = [Hash::default(); BATCH];
        let Ok(()) = in_blocks(hasher, keys, removed, &mut block, |hashes, removed| {
            let (shape, words) = self.exclusive();
            shape.remove_many(words, hashes, removed);
            self.count_fewer(removed.iter().filter(|removed| **removed).count() as u64);
            Ok::<(), Infallible>(())
        });
    }

    /// Adds all keys of `other`, with all copies, by moving its entries: a fingerprint and a place
    /// are enough. Fails and changes nothing if the two differ in shape or hash, don't fit into one
    /// table ([`Error::Full`]) or together have too many copies of a key.
    ///
    /// The result holds as many entries as both together. If both were full, that is more than it
    /// was made for; two half-full filters fit.
    ///
    /// ```
    /// use tamis::Cuckoo;
    /// let (mut a, mut b) = (Cuckoo::new(1_000, 0.01)?, Cuckoo::new(1_000, 0.01)?);
    /// a.insert("left")?;
    /// b.insert("right")?;
    /// a.union_with(&b)?;
    /// assert!(a.contains("left") && a.contains("right"));
    /// assert_eq!(a.keys().get(), 2);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn union_with<C: Body>(&mut self, other: &Filter<CuckooShape, C>) -> Result<(), Error> {
        self.check_like(other)?;
        let shape = *self.shape();
        let mut merged = Bytes::zeroed(shape.body_len())?;
        let words = merged.exclusive().unwrap_or_default();
        words.copy_from_slice(self.exclusive().1);
        let mut theirs = shape.entries(other.words());
        loop {
            let batch: Vec<Entry> = theirs.by_ref().take(BATCH).collect();
            if batch.is_empty() {
                break;
            }
            let (_, result) = shape.insert_many(words, &batch);
            result.map_err(|full| self.refusal(full))?;
        }
        let entries = shape.entries(words).count() as u64;
        self.replace_body(merged);
        self.set_count(entries);
        Ok(())
    }

    /// Keeps what both hold: of every entry, as many copies as the filter with fewer has. Every key
    /// that was added to both is still found and can still be removed. The rate is at most the
    /// smaller of the two. Fails and changes nothing if the two differ in shape or hash.
    ///
    /// ```
    /// use tamis::Cuckoo;
    /// let (mut a, mut b) = (Cuckoo::new(1_000, 0.01)?, Cuckoo::new(1_000, 0.01)?);
    /// for key in ["apple", "pear"] { a.insert(key)?; }
    /// for key in ["pear", "plum"] { b.insert(key)?; }
    /// a.intersect_with(&b)?;
    /// assert!(a.contains("pear") && !a.contains("apple"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn intersect_with<C: Body>(&mut self, other: &Filter<CuckooShape, C>) -> Result<(), Error> {
        self.check_like(other)?;
        let (shape, words) = self.exclusive();
        let gone = shape.keep_common(words, other.words());
        self.count_fewer(gone);
        Ok(())
    }
}
