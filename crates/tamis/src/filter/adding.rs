//! Adding keys to the kinds whose keys are bits or counters, and combining
//! such filters.

use crate::error::Error;
use crate::filter::shell::Filter;
use crate::hash::Hash;
use crate::raw::header::KEYS_UNKNOWN;
use crate::raw::layout::{BLOCK, BitLayout, hash_block};
use crate::raw::word::Word as _;
use crate::store::body::Body;
#[cfg(feature = "files")]
use crate::store::{check::Terms, disk};
#[cfg(feature = "files")]
use std::path::Path;

impl<L: BitLayout> Filter<L> {
    /// Maps a file for adding keys, together with other processes that do the
    /// same. All of them see an added key immediately, and it survives the death
    /// of this process, but not a crash of the machine: call
    /// [`sync`](Filter::sync) for that.
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
    /// Threads may add at the same time: no key is lost, and of several threads
    /// that add the same new key, at least one gets "new".
    ///
    /// ```
    /// use tamis::Blocked;
    /// let seen = Blocked::new(1_000, 0.01)?;
    /// assert!(seen.insert("apple"));
    /// assert!(!seen.insert("apple")); // not new any more
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[inline]
    pub fn insert(&self, key: impl AsRef<[u8]>) -> bool {
        self.insert_hash(self.hasher.hash(key.as_ref()))
    }

    /// [`insert`](Self::insert) for a key that is already hashed.
    ///
    /// ```
    /// use tamis::Blocked;
    /// let seen = Blocked::new(1_000, 0.01)?;
    /// let hash = seen.hasher().hash(b"apple");
    /// assert!(!seen.contains_hash(hash) && seen.insert_hash(hash)); // hashed once
    /// assert!(seen.contains("apple"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    // A call is little next to atomic instructions, and keeps them out of callers.
    #[inline(never)]
    pub fn insert_hash(&self, hash: Hash) -> bool {
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
    #[inline]
    pub fn insert_mut(&mut self, key: impl AsRef<[u8]>) -> bool {
        self.insert_hash_mut(self.hasher.hash(key.as_ref()))
    }

    /// [`insert_hash`](Self::insert_hash) with exclusive access, which needs no
    /// atomic instructions.
    ///
    /// ```
    /// use tamis::Blocked;
    /// let mut seen = Blocked::new(1_000, 0.01)?;
    /// let hash = seen.hasher().hash(b"key");
    /// assert!(seen.insert_hash_mut(hash));
    /// assert!(seen.contains("key"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[inline(always)]
    pub fn insert_hash_mut(&mut self, hash: Hash) -> bool {
        let Some(words) = self.body.exclusive() else {
            return self.insert_hash(hash); // other processes add, too
        };
        let new = self.shape.insert_alone(words, hash);
        // A branch, so that the next key need not wait for this answer.
        if new {
            let keys = self.keys.get_mut();
            *keys = keys.saturating_add(1); // unknown is the largest number, and stays
        }
        new
    }

    /// Adds many keys; `new[i]` is the answer for `keys[i]`. The fastest way to add,
    /// since exclusive access needs no atomic instructions; threads use
    /// [`insert_many_shared`](Self::insert_many_shared).
    ///
    /// # Panics
    /// If `new` is not as long as `keys`.
    ///
    /// ```
    /// use tamis::Blocked;
    /// let mut seen = Blocked::new(1_000, 0.01)?;
    /// let mut new = [false; 3];
    /// seen.insert_many(&["a", "b", "a"], &mut new);
    /// assert_eq!(new, [true, true, false]);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn insert_many<K: AsRef<[u8]>>(&mut self, keys: &[K], new: &mut [bool]) {
        assert_eq!(keys.len(), new.len(), "one answer for each key");
        let hasher = self.hasher;
        self.add(keys, |key| hasher.hash(key.as_ref()), new);
    }

    /// [`insert_many`](Self::insert_many) that returns the answers.
    ///
    /// ```
    /// use tamis::Blocked;
    /// let mut seen = Blocked::new(1_000, 0.01)?;
    /// assert_eq!(seen.insert_all(&["a", "b", "a"]), [true, true, false]);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn insert_all<K: AsRef<[u8]>>(&mut self, keys: &[K]) -> Vec<bool> {
        let mut new = vec![false; keys.len()];
        self.insert_many(keys, &mut new);
        new
    }

    /// [`insert_many`](Self::insert_many) for keys that are already hashed;
    /// 64-bit ones go through [`Hash::from_u64`] on the way.
    ///
    /// # Panics
    /// If `new` is not as long as `hashes`.
    ///
    /// ```
    /// use tamis::Blocked;
    /// let mut seen = Blocked::new(1_000, 0.01)?;
    /// let ids = [7u64, 8, 7]; // 64-bit ids of your own
    /// let mut new = [false; 3];
    /// seen.insert_hashes(&ids, &mut new);
    /// assert_eq!(new, [true, true, false]);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn insert_hashes<H: Copy + Into<Hash>>(&mut self, hashes: &[H], new: &mut [bool]) {
        assert_eq!(hashes.len(), new.len(), "one answer for each key");
        match self.body.exclusive() {
            Some(words) => {
                self.shape.insert_hashes(words, hashes, new);
                self.count_more(new.iter().filter(|new| **new).count() as u64);
            }
            None => self.add(hashes, |hash| (*hash).into(), new),
        }
    }

    fn add<K>(&mut self, keys: &[K], hash: impl Fn(&K) -> Hash, new: &mut [bool]) {
        let mut hashes = [Hash::default(); BLOCK];
        for (keys, new) in keys.chunks(BLOCK).zip(new.chunks_mut(BLOCK)) {
            let words = self.body.words();
            let hashes = hash_block(&self.shape, words, keys, &hash, &mut hashes);
            match self.body.exclusive() {
                Some(words) => self.shape.insert_many(words, hashes, new),
                // Other processes add to a shared mapping.
                None => {
                    let words = self.body.words();
                    self.shape.insert_many_shared(words, hashes, new);
                }
            }
            self.count_more(new.iter().filter(|new| **new).count() as u64);
        }
    }

    /// Adds many keys while other threads may add keys, too.
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
    ///         s.spawn(move || seen.insert_many_shared(&keys, &mut [false; 2]));
    ///     }
    /// });
    /// assert!(seen.contains("a") && seen.contains("d"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn insert_many_shared<K: AsRef<[u8]>>(&self, keys: &[K], new: &mut [bool]) {
        assert_eq!(keys.len(), new.len(), "one answer for each key");
        let words = self.body.words();
        let hash = |key: &K| self.hasher.hash(key.as_ref());
        let mut hashes = [Hash::default(); BLOCK];
        for (keys, new) in keys.chunks(BLOCK).zip(new.chunks_mut(BLOCK)) {
            let hashes = hash_block(&self.shape, words, keys, hash, &mut hashes);
            self.shape.insert_many_shared(words, hashes, new);
            self.count_more(new.iter().filter(|new| **new).count() as u64);
        }
    }

    /// Adds all keys of `other`. The result answers as if every key of both had
    /// been added to one filter; its count is unknown. Fails if the two differ in
    /// shape or hash, and then changes nothing.
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

    /// Keeps the keys that both may hold. Every key that was added to both is
    /// still found; the rate is at most the smaller of the two, and higher than
    /// that of a filter built from the common keys. The count is unknown. Fails
    /// if the two differ in shape or hash, and then changes nothing.
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

    /// For a filter that [`share`](Filter::share)s a file: waits until everything
    /// added so far is on disk. Does nothing for a filter on the heap.
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
