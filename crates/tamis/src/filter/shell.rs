//! The shell of every kind but growing: hashing, counting, queries. The algorithms are in each
//! kind's own file, over plain slices of words.

use crate::error::Error;
use crate::filter::keys::KeyCount;
use crate::hash::Hash;
use crate::hasher::Hasher;
use crate::key::{Key, KeyBatch};
use crate::key_rule::KeyRule;
use crate::kind::Kind;
use crate::plan::{Plan, Rated};
use crate::raw::explain::Explanation;
use crate::raw::header::{Header, KEYS_UNKNOWN, State};
use crate::raw::layout::{BLOCK, BitLayout, Creatable, Difference, Timeless, hash_block};
use crate::raw::shape::Shaped;
use crate::raw::word::Word;
use crate::store::body::{Body, Bytes};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A filter of one kind: [`Bloom`](crate::Bloom), [`Blocked`](crate::Blocked),
/// [`Counting`](crate::Counting), [`Cuckoo`](crate::Cuckoo).
///
/// `B` owns the body: [`Bytes`] (heap, or a file mapped for writing),
/// [`Map`](crate::body::Map) (a file mapped for reading) or `&[u8]`.
///
/// A [`Key`] is bytes, or a hash.
///
/// ```
/// use tamis::Blocked;
/// let seen = Blocked::new(1_000, 0.01)?;
/// std::thread::scope(|s| {
///     // Adding needs no `&mut`: threads share the filter.
///     s.spawn(|| seen.insert("from one thread"));
///     s.spawn(|| seen.insert("from another"));
/// });
/// assert!(seen.contains("from one thread"));
/// # Ok::<(), tamis::Error>(())
/// ```
pub struct Filter<L, B = Bytes> {
    pub(super) shape: L,
    pub(super) hasher: Hasher,
    capacity: u64,
    rate: f64,
    /// The count, or [`KEYS_UNKNOWN`]. Unused for a shared mapping, whose count is in the file.
    pub(super) keys: AtomicU64,
    pub(super) body: B,
}

impl<L: Creatable + Shaped> Filter<L> {
    /// An empty filter for `keys` keys at no more than `rate`, hashed with
    /// XXH3 under seed 0.
    ///
    /// ```
    /// use tamis::Blocked;
    /// assert!(Blocked::new(1_000_000, 0.001).is_ok());
    /// assert!(Blocked::new(1_000_000, 1.5).is_err());
    /// ```
    pub fn new(keys: u64, rate: f64) -> Result<Self, Error> {
        Self::with_hasher(keys, rate, Hasher::default())
    }

    /// An empty filter whose keys are hashed by `hasher`: under another seed, or keyed against
    /// hostile input.
    ///
    /// ```
    /// use tamis::{Blocked, Hasher, SecretKey};
    /// let hasher = Hasher::keyed(SecretKey::random()?);
    /// let seen = Blocked::with_hasher(1_000, 0.01, hasher)?;
    /// assert!(seen.insert("key"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn with_hasher(keys: u64, rate: f64, hasher: Hasher) -> Result<Self, Error> {
        Self::from_plan(&Plan::for_rate(L::KIND, keys, rate)?, hasher)
    }

    /// An empty filter as planned.
    ///
    /// ```
    /// use tamis::{Blocked, Hasher, Kind, Plan};
    /// let plan = Plan::for_size(Kind::Blocked, 1_000_000, 1 << 20)?;
    /// let seen = Blocked::from_plan(&plan, Hasher::seeded(7))?;
    /// assert_eq!(seen.bytes(), 1 << 20);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn from_plan(plan: &Plan, hasher: Hasher) -> Result<Self, Error> {
        let header = Header::of_plan(plan, hasher);
        let mut body = Bytes::zeroed(header.body_len())?;
        if L::KIND == Kind::Window {
            // Page faults would slow down single keys of a stream.
            body.populate();
        }
        Self::assemble((header, body))
    }

    /// An empty filter of the same shape and hash.
    ///
    /// ```
    /// use tamis::Blocked;
    /// let a = Blocked::new(1_000, 0.01)?;
    /// a.insert("key");
    /// let mut b = a.template()?;
    /// assert!(!b.contains("key"));
    /// b.union_with(&a)?; // always compatible
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn template(&self) -> Result<Self, Error> {
        let mut header = self.header();
        header.shape = self.shape.emptied().into();
        header.state = State::default();
        Self::assemble((header, Bytes::zeroed(header.body_len())?))
    }

    /// Removes all keys.
    ///
    /// ```
    /// use tamis::{Blocked, KeyCount};
    /// let mut seen = Blocked::new(1_000, 0.01)?;
    /// seen.insert("key");
    /// seen.clear();
    /// assert!(!seen.contains("key"));
    /// assert_eq!(seen.keys(), KeyCount::Counted(0));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn clear(&mut self) {
        let emptied = self.shape.emptied();
        if emptied != self.shape
            && !self.is_shared()
            && let Ok(body) = Bytes::zeroed(emptied.body_len())
        {
            (self.shape, self.body) = (emptied, body);
        }
        for word in self.body.words() {
            word.store(0, Relaxed);
        }
        self.set_count(0);
    }
}

impl<L: Shaped> Filter<L> {
    /// The words without atomics, of a kind that is never shared.
    #[inline]
    pub(crate) fn exclusive(&mut self) -> (&L, &mut [u64]) {
        let words = self.body.exclusive();
        (
            &self.shape,
            words.expect("kinds that move entries are not shared"),
        )
    }

    #[inline]
    pub(crate) const fn is_shared(&self) -> bool {
        self.body.is_shared()
    }

    pub(crate) fn set_rule(&mut self, rule: KeyRule) {
        self.hasher = self.hasher.with_rule(rule);
    }

    pub(crate) fn replace_body(&mut self, body: Bytes) {
        self.body = body;
    }

    pub(crate) fn count_more(&self, new: u64) {
        self.change_count(|keys| keys.saturating_add(new));
    }

    pub(crate) fn count_fewer(&self, gone: u64) {
        self.change_count(|keys| keys.saturating_sub(gone));
    }

    fn change_count(&self, change: impl Fn(u64) -> u64) {
        let change = |keys: u64| (keys != KEYS_UNKNOWN).then(|| change(keys));
        let _ = match self.body.shared_keys() {
            Some(keys) => keys.fetch_update(Relaxed, Relaxed, |keys| {
                change(u64::from_le(keys)).map(u64::to_le)
            }),
            None => self.keys.fetch_update(Relaxed, Relaxed, change),
        };
    }

    pub(crate) fn set_count(&self, keys: u64) {
        match self.body.shared_keys() {
            Some(shared) => shared.store(keys.to_le(), Relaxed),
            None => self.keys.store(keys, Relaxed),
        }
    }
}

#[cfg(feature = "plain-heap")]
impl<L: Shaped> Filter<L> {
    /// Memory besides the body.
    pub(super) fn lists(&self) -> impl Iterator<Item = (*const u8, usize)> {
        std::iter::empty()
    }

    pub(super) fn bodies_mut(&mut self) -> impl Iterator<Item = &mut Bytes> {
        std::iter::once(&mut self.body)
    }
}

impl<L: Shaped, B: Body> Filter<L, B> {
    pub(crate) fn assemble((header, body): (Header, B)) -> Result<Self, Error> {
        let shape = L::try_from(header.shape)?;
        // Kernels index by the shape, unchecked.
        assert_eq!(size_of_val(body.words()) as u64, shape.body_len());
        Ok(Self {
            shape: shape.complete(body.words())?,
            hasher: header.hasher,
            capacity: header.capacity,
            rate: header.rate,
            keys: AtomicU64::new(match header.state.open_under {
                None => header.state.keys,
                // A writer that died or is still at work may not have counted its last key yet.
                Some(_) => KEYS_UNKNOWN,
            }),
            body,
        })
    }

    /// The header of this filter's file, except for the body's checksum. Costs
    /// nothing; see [`sealed_header`](Self::sealed_header).
    #[must_use]
    #[doc(hidden)]
    pub fn header(&self) -> Header {
        Header {
            shape: self.shape.into(),
            hasher: self.hasher,
            capacity: self.capacity,
            rate: self.rate,
            state: State {
                keys: self.counted(),
                ..State::default()
            },
        }
    }

    #[inline]
    pub(crate) fn words(&self) -> &[B::Word] {
        self.body.words()
    }

    pub(crate) fn all_words(&self) -> Vec<&[B::Word]> {
        vec![self.body.words()]
    }

    fn counted(&self) -> u64 {
        if let Some(keys) = self.shape.counted(self.body.words()) {
            return keys;
        }
        match self.body.shared_keys() {
            Some(keys) => keys.get(),
            None => self.keys.load(Relaxed),
        }
    }

    /// Whether the key may have been added; of a window, as of its latest moment.
    #[inline(always)]
    pub(crate) fn holds(&self, key: &impl Key) -> bool {
        self.shape
            .contains(self.body.words(), key.key_hash(&self.hasher))
    }

    /// [`holds`](Self::holds) for many keys.
    pub(crate) fn holds_many<K: Key>(&self, keys: &[K], out: &mut [bool]) {
        assert_eq!(keys.len(), out.len(), "one answer for each key");
        let words = self.body.words();
        match K::batch(keys) {
            KeyBatch::Hashes(hashes) => self.shape.contains_hashes(words, hashes, out),
            KeyBatch::Ids(ids) => self.shape.contains_hashes(words, ids, out),
            KeyBatch::Bytes => {
                let hash = |key: &K| key.key_hash(&self.hasher);
                let mut hashes = [Hash::default(); BLOCK];
                for (keys, out) in keys.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
                    let hashes = hash_block(&self.shape, words, keys, hash, &mut hashes);
                    self.shape.contains_many(words, hashes, out);
                }
            }
        }
    }

    /// The steps of a look-up, and what each finds; see
    /// [`AnyFilter::explain`](crate::AnyFilter::explain).
    #[doc(hidden)]
    #[must_use]
    pub fn explain(&self, key: impl Key) -> Explanation {
        let hash = key.key_hash(&self.hasher);
        self.shape.explain(self.body.words(), hash)
    }

    /// How keys are hashed.
    ///
    /// ```
    /// use tamis::{Blocked, Hasher};
    /// let seen = Blocked::new(1_000, 0.01)?;
    /// assert_eq!(*seen.hasher(), Hasher::default());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[inline]
    #[must_use]
    pub const fn hasher(&self) -> &Hasher {
        &self.hasher
    }

    /// The geometry.
    #[inline]
    #[must_use]
    #[doc(hidden)]
    pub const fn shape(&self) -> &L {
        &self.shape
    }

    /// The number of keys the filter was made for.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The promised rate, kept up to [`capacity`](Self::capacity) keys.
    #[must_use]
    pub const fn rate(&self) -> f64 {
        self.rate
    }

    /// The number of distinct keys added.
    ///
    /// ```
    /// use tamis::{Blocked, KeyCount};
    /// let seen = Blocked::new(1_000, 0.01)?;
    /// for key in ["apple", "pear", "apple"] { seen.insert(key); }
    /// assert_eq!(seen.keys(), KeyCount::Counted(2));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn keys(&self) -> KeyCount {
        match self.counted() {
            KEYS_UNKNOWN => KeyCount::Estimated(self.estimated_keys()),
            keys => KeyCount::Counted(keys),
        }
    }

    /// The number of distinct keys, estimated from how full the filter is. Saturates when it is
    /// full.
    #[must_use]
    #[doc(hidden)]
    pub fn estimated_keys(&self) -> u64 {
        self.shape.keys_now(self.body.words()).round() as u64
    }

    /// The body's size in bytes.
    ///
    /// ```
    /// let seen = tamis::Blocked::new(1_000_000, 0.01)?;
    /// assert!(seen.bytes() < 1_300_000);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.shape.body_len()
    }

    /// Whether both have the same geometry and hash, so they can be combined.
    ///
    /// ```
    /// use tamis::{Blocked, Hasher};
    /// let a = Blocked::new(1_000, 0.01)?;
    /// assert!(a.same_shape(&a.template()?));
    /// assert!(!a.same_shape(&Blocked::with_hasher(1_000, 0.01, Hasher::seeded(7))?));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    #[doc(hidden)]
    pub fn same_shape<C: Body>(&self, other: &Filter<L, C>) -> bool {
        self.check_like(other).is_ok()
    }

    pub(crate) fn check_like<C: Body>(&self, other: &Filter<L, C>) -> Result<(), Error> {
        match self.shape.difference(&other.shape) {
            None => self.hasher.check_like(&other.hasher),
            Some(Difference { what, ours, theirs }) => Err(Error::Unlike { what, ours, theirs }),
        }
    }

    /// Whether every bit of this filter is also set in `other`.
    pub(crate) fn is_subset_of<C: Body>(&self, other: &Filter<L, C>) -> Result<bool, Error>
    where
        L: BitLayout,
    {
        self.check_like(other)?;
        let mut words = self.words().iter().zip(other.words());
        Ok(words.all(|(ours, theirs)| ours.get() & !theirs.get() == 0))
    }
}

/// Queries; those of a [`Window`](crate::Window) need a moment.
impl<L: Timeless + Shaped, B: Body> Filter<L, B> {
    /// Whether the key may have been added. "No" is always right; "yes" is
    /// wrong for about one in `1/rate` keys that were not added.
    ///
    /// ```
    /// use tamis::Blocked;
    /// let seen = Blocked::new(1_000, 0.01)?;
    /// seen.insert("apple");
    /// assert!(seen.contains("apple")); // always
    /// assert!(!seen.contains("pear")); // wrong once in a hundred
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn contains(&self, key: impl Key) -> bool {
        self.holds(&key)
    }

    /// Looks up many keys; `found[i]` is the answer for `keys[i]`. Much faster than a
    /// loop on filters larger than the cache, because the misses overlap.
    ///
    /// # Panics
    /// If `found` is not as long as `keys`.
    ///
    /// ```
    /// use tamis::Blocked;
    /// let seen = Blocked::new(1_000, 0.01)?;
    /// seen.insert("b");
    /// let mut found = [false; 3];
    /// seen.contains_many(&["a", "b", "c"], &mut found);
    /// assert_eq!(found, [false, true, false]);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn contains_many<K: Key>(&self, keys: &[K], found: &mut [bool]) {
        self.holds_many(keys, found);
    }
}

impl<L: Rated + Shaped, B: Body> Filter<L, B> {
    /// The rate to expect now, computed from the filter's content.
    ///
    /// ```
    /// use tamis::Blocked;
    /// let seen = Blocked::new(1_000, 0.01)?;
    /// assert_eq!(seen.rate_now(), 0.0);
    /// for i in 0..2_000u64 { seen.insert(i.to_le_bytes()); }
    /// assert!(seen.rate_now() > 0.01); // overfull
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn rate_now(&self) -> f64 {
        self.shape.rate_now(self.body.words())
    }

    /// The expected number of distinct keys that wrongly got "not new" when they were added: a
    /// deduplicator's loss so far.
    ///
    /// ```
    /// use tamis::Blocked;
    /// let seen = Blocked::new(10_000, 0.01)?;
    /// for i in 0..10_000u64 { seen.insert(i.to_le_bytes()); }
    /// // Far fewer than 1 %: the rate was lower while the filter was emptier.
    /// assert!((5.0..30.0).contains(&seen.expected_wrong()));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    #[doc(hidden)]
    pub fn expected_wrong(&self) -> f64 {
        self.shape.wrongly_present(self.keys().get())
    }
}

impl<L: fmt::Debug, B> fmt::Debug for Filter<L, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filter")
            .field("shape", &self.shape)
            .field("hasher", &self.hasher)
            .field("capacity", &self.capacity)
            .field("rate", &self.rate)
            .finish_non_exhaustive()
    }
}
