//! Adding keys to the kinds that store bits or counters, and combining such filters.

use crate::error::Error;
use crate::filter::shell::Filter;
use crate::hash::Hash;
use crate::key::{Key, KeyBatch};
use crate::raw::header::KEYS_UNKNOWN;
use crate::raw::layout::{BLOCK, BitLayout, hash_block};
use crate::raw::shape::Shaped;
use crate::raw::word::Word as _;
use crate::store::body::Body;
#[cfg(feature = "files")]
use crate::store::{check::Terms, disk};
#[cfg(feature = "files")]
use std::path::Path;

impl<L: BitLayout + Shaped> Filter<L> {
    /// Maps a file for adding keys, together with other processes. All of them see an added key
    /// immediately. The key survives the death of this process but not a crash of the machine; for
    /// that, call [`sync`](Filter::sync).
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("seen.tamis");
    /// use tamis::Blocked;
    /// Blocked::new(1_000, 0.01)?.save_new(&path)?;
    /// let one = Blocked::share(&path)?;
    /// let other = Blocked::share(&path)?;
    /// one.insert("key");
    /// assert!(other.contains("key"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[cfg(feature = "files")]
    pub fn share(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::assemble(disk::share(path.as_ref(), Terms::default())?)
    }

    /// Adds a key and returns whether it was new. "New" is always right; "not
    /// new" is wrong for about one in `1/rate` new keys, which seem present.
    ///
    /// Threads may add at the same time: no key is lost, and of several threads that add the same
    /// new key, at least one gets "new".
    ///
    /// ```
    /// use tamis::Blocked;
    /// let seen = Blocked::new(1_000, 0.01)?;
    /// assert!(seen.insert("apple"));
    /// assert!(!seen.insert("apple")); // not new any more
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[inline]
    pub fn insert(&self, key: impl Key) -> bool {
        self.add_hash(key.key_hash(&self.hasher))
    }

    // A call costs little next to atomic instructions, and keeps them out of callers.
    #[inline(never)]
    fn add_hash(&self, hash: Hash) -> bool {
        let new = self.shape.insert(self.body.words(), hash);
        if new {
            self.count_more(1);
        }
        new
    }

    /// [`insert`](Self::insert) with exclusive access, which needs no atomic
    /// instructions: several times as fast.
    ///
    /// ```
    /// use tamis::Blocked;
    /// let mut seen = Blocked::new(1_000, 0.01)?;
    /// assert!(seen.insert_mut("apple") && !seen.insert_mut("apple"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[inline(always)]
    pub fn insert_mut(&mut self, key: impl Key) -> bool {
        let hash = key.key_hash(&self.hasher);
        let Some(words) = self.body.exclusive() else {
            return self.add_hash(hash); // other processes add too
        };
        let new = self.shape.insert_alone(words, hash);
        // A branch, so that the next key needn't wait for this answer.
        if new {
            let keys = self.keys.get_mut();
            *keys = keys.saturating_add(1); // "unknown" is the largest number, and stays
        }
        new
    }

    /// Adds many keys while other threads may add too; `new[i]` is the answer for `keys[i]`. Much
    /// faster than a loop on filters larger than the cache, because the misses overlap. With
    /// exclusive access, [`insert_many_mut`](Self::insert_many_mut) is faster still.
    ///
    /// # Panics
    /// If `new` is not as long as `keys`.
    ///
    /// ```
    /// use tamis::Blocked;
    /// let seen = Blocked::new(1_000, 0.01)?;
    /// std::thread::scope(|s| {
    ///     for keys in [["a", "b"], ["c", "d"]] {
    ///         let seen = &seen;
    ///         s.spawn(move || seen.insert_many(&keys, &mut [false; 2]));
    ///     }
    /// });
    /// assert!(seen.contains("a") && seen.contains("d"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn insert_many<K: Key>(&self, keys: &[K], new: &mut [bool]) {
        assert_eq!(keys.len(), new.len(), "one answer for each key");
        let words = self.body.words();
        let hash = |key: &K| key.key_hash(&self.hasher);
        let mut hashes = [Hash::default(); BLOCK];
        for (keys, new) in keys.chunks(BLOCK).zip(new.chunks_mut(BLOCK)) {
            let hashes = match K::batch(keys).hashes() {
                Some(hashes) => {
                    (hashes.iter()).for_each(|hash| self.shape.prefetch(words, *hash));
                    hashes
                }
                None => hash_block(&self.shape, words, keys, hash, &mut hashes),
            };
            self.shape.insert_many_shared(words, hashes, new);
            self.count_more(new.iter().filter(|new| **new).count() as u64);
        }
    }

    /// [`insert_many`](Self::insert_many) with exclusive access, which needs no atomic
    /// instructions: the fastest way to add.
    ///
    /// # Panics
    /// If `new` is not as long as `keys`.
    ///
    /// ```
    /// use tamis::Blocked;
    /// let mut seen = Blocked::new(1_000, 0.01)?;
    /// let mut new = [false; 3];
    /// seen.insert_many_mut(&["a", "b", "a"], &mut new);
    /// assert_eq!(new, [true, true, false]);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn insert_many_mut<K: Key>(&mut self, keys: &[K], new: &mut [bool]) {
        assert_eq!(keys.len(), new.len(), "one answer for each key");
        let hasher = self.hasher;
        let Some(words) = self.body.exclusive() else {
            return self.insert_many(keys, new); // other processes add too
        };
        match K::batch(keys) {
            KeyBatch::Hashes(hashes) => self.shape.insert_hashes(words, hashes, new),
            KeyBatch::Ids(ids) => self.shape.insert_hashes(words, ids, new),
            KeyBatch::Bytes => {
                let hash = |key: &K| key.key_hash(&hasher);
                let mut hashes = [Hash::default(); BLOCK];
                for (keys, new) in keys.chunks(BLOCK).zip(new.chunks_mut(BLOCK)) {
                    let hashes = hash_block(&self.shape, words, keys, hash, &mut hashes);
                    self.shape.insert_many(words, hashes, new);
                }
            }
        }
        self.count_more(new.iter().filter(|new| **new).count() as u64);
    }

    /// Adds all keys of `other`. The result answers as if every key of both had been added to one
    /// filter; its count is unknown. Fails and changes nothing if the two differ in shape or hash.
    ///
    /// ```
    /// use tamis::{Blocked, KeyCount};
    /// let (mut a, b) = (Blocked::new(1_000, 0.01)?, Blocked::new(1_000, 0.01)?);
    /// a.insert("left");
    /// b.insert("right");
    /// a.union_with(&b)?;
    /// assert!(a.contains("left") && a.contains("right"));
    /// assert_eq!(a.keys(), KeyCount::Estimated(2));
    ///
    /// let unlike = Blocked::new(2_000, 0.01)?;
    /// assert!(a.union_with(&unlike).is_err());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn union_with<C: Body>(&mut self, other: &Filter<L, C>) -> Result<(), Error> {
        self.check_like(other)?;
        for (ours, theirs) in self.body.words().iter().zip(other.words()) {
            L::unite(ours, theirs.get());
        }
        self.set_count(KEYS_UNKNOWN);
        Ok(())
    }

    /// Keeps the keys that both may hold. Every key that was added to both is still found. The rate
    /// is at most the smaller of the two, and higher than that of a filter built from the common
    /// keys. The count is unknown. Fails and changes nothing if the two differ in shape or hash.
    ///
    /// ```
    /// use tamis::Blocked;
    /// let (mut a, b) = (Blocked::new(1_000, 0.01)?, Blocked::new(1_000, 0.01)?);
    /// for key in ["apple", "pear"] { a.insert(key); }
    /// for key in ["pear", "plum"] { b.insert(key); }
    /// a.intersect_with(&b)?;
    /// assert!(a.contains("pear") && !a.contains("apple"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn intersect_with<C: Body>(&mut self, other: &Filter<L, C>) -> Result<(), Error> {
        self.check_like(other)?;
        for (ours, theirs) in self.body.words().iter().zip(other.words()) {
            L::intersect(ours, theirs.get());
        }
        self.set_count(KEYS_UNKNOWN);
        Ok(())
    }

    /// For a filter that [`share`](Filter::share)s a file: waits until everything added so far is
    /// on disk. Does nothing for a filter on the heap.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("seen.tamis");
    /// use tamis::Blocked;
    /// Blocked::new(1_000, 0.01)?.save_new(&path)?;
    /// let seen = Blocked::share(&path)?;
    /// seen.insert("key");
    /// seen.sync()?; // survives a power loss from here on
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn sync(&self) -> Result<(), Error> {
        self.body.sync()
    }

    /// For a filter that [`share`](Filter::share)s a file: writes it back, closes
    /// it, and reports failures. Dropping it does the same, silently.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("seen.tamis");
    /// use tamis::Blocked;
    /// Blocked::new(1_000, 0.01)?.save_new(&path)?;
    /// let seen = Blocked::share(&path)?;
    /// seen.insert("key");
    /// seen.close()?;
    /// assert!(Blocked::load(&path)?.contains("key"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn close(self) -> Result<(), Error> {
        self.body.close()
    }
}
