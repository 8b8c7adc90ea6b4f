//! The cuckoo filter: fingerprints in overlapping windows, so that keys can be
//! removed, at little more than the size of a Bloom filter.
//!
//! The table is a row of slots of `width` bits. Any `window` neighbouring slots
//! are a *place*, named by its first slot, and a key may lie in any slot of its
//! two places. A slot holds the fingerprint and the position of the slot in the
//! entry's place, so an entry names its place, and the other place follows: the
//! two always add up, modulo the number of places, to a number that depends on
//! the fingerprint alone. That mirror is its own inverse for any table size,
//! where the usual exclusive-or needs a power of two.
//!
//! Overlapping windows of 2 fill to 96 % where aligned buckets of 2 stop at
//! 89 %, at no cost in errors: the position must match too, so it excludes as
//! many false positives as its bits would have done in the fingerprint.

mod table;
#[cfg(test)]
mod tests;

use crate::filter::{Difference, Layout, Sealed, hash_all};
use crate::hash::Hash;
use crate::store::body::{Body, Word};
use crate::store::header::{Kind, Shape};
use crate::{Bytes, Error, Filter};
use table::{BATCH, Entry, Full};

/// A cuckoo filter: small, and its keys can be removed; see [`Filter`] for its
/// other methods.
///
/// Every adding is stored: a key added twice is there until it is removed
/// twice. Of one key, 4 to 8 copies fit ([`CuckooShape::max_copies`]), and of
/// all keys about as many as it was made for: then adding is an error, and
/// nothing is lost. Its [`keys`](Filter::keys) are exact and count copies.
///
/// Adding moves other keys' entries, so it needs exclusive access, and a file
/// can't be [`share`](Filter::share)d by writers: [`load`](Filter::load), add
/// and save it, under a [`FileLock`](crate::FileLock) if others do so, too.
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

/// Slots, window and slot width of a [`Cuckoo`] filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CuckooShape {
    slots: u64,
    window: u64,
    width: u64,
    // The rest follows from these three.
    /// Every slot with `window - 1` slots after it starts a place.
    places: u64,
    /// Fingerprints are 1..=fingerprints; slot value 0 is an empty slot.
    fingerprints: u64,
    /// A place seen as lanes of `width` bits in one word: all bits, each
    /// lane's lowest bit, each lane's highest …
    lanes: u64,
    ones: u64,
    tops: u64,
    /// … and what the position adds to the slot value in each lane.
    positions: u64,
    /// Lanes per bit in 16-bit fixed point, because a division would take
    /// longer than the rest of an insert.
    lanes_per_bit: u64,
}

/// The chance that a planned table refuses one of its n keys is about this.
const REFUSAL: f64 = 1e-6;

impl CuckooShape {
    /// A shape of exactly these numbers.
    pub fn new(slots: u64, window: u32, width: u32) -> Result<Self, Error> {
        let refuse = |what, expected, got: u64| {
            Err(Error::Parameter {
                what,
                expected,
                got: got.to_string(),
            })
        };
        let (window, width) = (u64::from(window), u64::from(width));
        if !(2..=4).contains(&window) {
            return refuse("window", "2 to 4 slots", window);
        }
        if !(4..=32).contains(&width) || window * width > 64 {
            return refuse("slot width", "4 to 32 bits, a window's at most 64", width);
        }
        if !(window..(1 << 56) / width).contains(&slots) {
            return refuse("slots", "a window's at least and below 2^56 bits", slots);
        }
        let fingerprints = ((1 << width) - 1) / window;
        let lanes = |value: &dyn Fn(u64) -> u64| (0..window).map(|i| value(i) << (i * width)).sum();
        Ok(Self {
            slots,
            window,
            width,
            places: slots - window + 1,
            fingerprints,
            lanes: lanes(&|_| (1 << width) - 1),
            ones: lanes(&|_| 1),
            tops: lanes(&|_| 1 << (width - 1)),
            positions: lanes(&|i| i * fingerprints),
            lanes_per_bit: (1 << 16) / width + 1,
        })
    }

    /// The number of slots, each for one entry.
    pub const fn slots(&self) -> u64 {
        self.slots
    }

    /// The slots of a place.
    pub const fn window(&self) -> u32 {
        self.window as u32
    }

    /// The bits of a slot.
    pub const fn width(&self) -> u32 {
        self.width as u32
    }

    /// How many copies of one key fit: the slots of its two places. Fewer if
    /// they overlap, and other keys with the same fingerprint and places count
    /// as copies.
    pub const fn max_copies(&self) -> u64 {
        2 * self.window
    }

    /// The slots, a word more so that a place can always be read as two words,
    /// in whole lines.
    pub(crate) const fn body_len(&self) -> u64 {
        (self.slots * self.width + 64).div_ceil(512) * 64
    }

    /// Every window and width that slots can have.
    fn all_sorts() -> impl Iterator<Item = (u32, u32)> {
        (2..=4).flat_map(|window| (4..=32.min(64 / window)).map(move |width| (window, width)))
    }

    /// The largest table of every sort in so many bytes.
    pub(crate) fn within(bytes: u64) -> impl Iterator<Item = Self> {
        let bits = (bytes / 64 * 512).saturating_sub(64);
        Self::all_sorts().filter_map(move |(window, width)| {
            Self::new(bits / u64::from(width), window, width).ok()
        })
    }

    /// The smallest table that takes `keys`, all but surely, at no more than
    /// `rate`; none if it would be beyond all bounds.
    pub(crate) fn for_rate(keys: u64, rate: f64) -> Option<Self> {
        let tables = Self::all_sorts().filter_map(|(window, width)| {
            let sort = Self::new(window.into(), window, width).ok()?;
            // Too large a number becomes a number of slots that is refused.
            let slots = sort.slots_for(keys as f64, rate).max(f64::from(window)) as u64;
            let bytes = Self::new(slots, window, width).ok()?.body_len();
            // The last line is there anyway: fill it with slots.
            Self::new((bytes * 8 - 64) / u64::from(width), window, width).ok()
        });
        tables.min_by_key(Self::body_len)
    }

    /// The table within `bytes` that takes `keys`, all but surely, at the best
    /// rate; none if there is no room for them.
    pub(crate) fn for_size(keys: u64, bytes: u64) -> Option<Self> {
        Self::within(bytes)
            .filter(|shape| shape.slots_to_fit(keys as f64) <= shape.slots as f64)
            .min_by(|a, b| {
                a.rate_with(keys as f64)
                    .total_cmp(&b.rate_with(keys as f64))
            })
    }

    /// How many slots of this sort `n` keys need at `rate`.
    pub(crate) fn slots_for(&self, n: f64, rate: f64) -> f64 {
        // The rate, solved for the places.
        let exact = 2.0 / (self.fingerprints as f64 * -((-rate).ln_1p() / n).exp_m1());
        self.slots_to_fit(n).max(exact + self.window as f64).ceil()
    }

    /// How many slots of this sort it takes to find room for `n` keys, all but
    /// surely.
    fn slots_to_fit(&self, n: f64) -> f64 {
        let window = self.window as f64;
        let factorial = |k: u64| (1..=k).product::<u64>() as f64;
        // Below 96.5, 99.4 and 99.9 % of the slots there is room for every key
        // (Walzer 2018), up to chance in small tables; keeping this far below
        // makes the search short.
        let loaded = n / [0.92, 0.97, 0.98][self.window as usize - 2] + (5.0 * n.sqrt()).min(64.0);
        // window + 1 keys that have one and the same place twice do not fit, be
        // their fingerprints different or one …
        let (keys, fingerprints) = (window + 1.0, self.fingerprints as f64);
        let refused = factorial(self.window + 1) * REFUSAL;
        let confined = (n.powf(keys) / refused).powf(1.0 / (2.0 * window + 1.0));
        let confined = confined.max(n / (refused * fingerprints.powf(window)).powf(1.0 / keys));
        // … nor do 2 window + 1 keys with the same fingerprint and places:
        // n λ^(2 window) / (2 window + 1)! of them are expected, with λ keys for
        // each fingerprint in each pair of places.
        let keys_per_pair = (factorial(2 * self.window + 1) * REFUSAL / n).powf(0.5 / window);
        let repeated = 2.0 * n / (keys_per_pair * fingerprints);
        loaded.max(confined).max(repeated).ceil()
    }

    /// The expected rate with `keys` different keys in the table.
    ///
    /// A key is taken for another if it has the same fingerprint and its place
    /// is one of the other's two, wherever the entries lie. One key in `places`
    /// has only one place.
    pub(crate) fn rate_with(&self, keys: f64) -> f64 {
        let cells = self.places as f64 * self.fingerprints as f64;
        let hit = |places: f64| -(keys * (-(places / cells).min(1.0)).ln_1p()).exp_m1();
        let single = 1.0 / self.places as f64;
        match self.places {
            1 => hit(1.0),
            _ => (1.0 - single) * hit(2.0) + single * hit(1.0),
        }
    }
}

impl From<CuckooShape> for Shape {
    fn from(shape: CuckooShape) -> Self {
        Self::Cuckoo(shape)
    }
}

impl Sealed for CuckooShape {}

impl Layout for CuckooShape {
    const KIND: Kind = Kind::Cuckoo;

    fn from_shape(shape: Shape) -> Option<Self> {
        match shape {
            Shape::Cuckoo(shape) => Some(shape),
            _ => None,
        }
    }

    fn body_len(&self) -> u64 {
        self.body_len()
    }

    fn difference(&self, other: &Self) -> Option<Difference> {
        Difference::between("slots", self.slots, other.slots)
            .or_else(|| Difference::between("window", self.window, other.window))
            .or_else(|| Difference::between("slot width", self.width, other.width))
    }

    #[inline]
    fn contains<W: Word>(&self, words: &[W], hash: Hash) -> bool {
        self.holds(words, self.entry(hash))
    }

    fn contains_many<W: Word>(&self, words: &[W], hashes: &[Hash], out: &mut [bool]) {
        self.holds_many(words, hashes, out);
    }

    fn rate_at(&self, keys: f64) -> f64 {
        self.rate_with(keys)
    }

    fn rate_now<W: Word>(&self, words: &[W]) -> f64 {
        self.rate_with(self.keys_now(words))
    }

    /// Exact: the number of entries.
    fn keys_now<W: Word>(&self, words: &[W]) -> f64 {
        self.entries(words).count() as f64
    }
}

impl<B: Body> Filter<CuckooShape, B> {
    /// How often the key was added, at most: keys with the same fingerprint and
    /// places count as the same. Never too low.
    pub fn count(&self, key: impl AsRef<[u8]>) -> u64 {
        self.count_hash(self.hasher().hash(key.as_ref()))
    }

    /// [`count`](Self::count) for a key that is already hashed.
    pub fn count_hash(&self, hash: Hash) -> u64 {
        self.shape().copies(self.words(), self.shape().entry(hash))
    }

    /// The share of slots in use. It is made for a load of 92 to 98 %, and
    /// fills to 95 % at least before it refuses a key.
    pub fn load_factor(&self) -> f64 {
        self.keys().get() as f64 / self.shape().slots as f64
    }
}

impl Filter<CuckooShape> {
    /// Adds a copy of the key; whether it was new. "New" is always right; "not
    /// new" is wrong for about one in `1/rate` new keys, which look as if
    /// present.
    ///
    /// Fails when there is no room ([`Error::Full`]) or too many copies of
    /// this key ([`Error::TooManyCopies`]); the filter is then as before.
    #[inline]
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        self.insert_hash(self.hasher().hash(key.as_ref()))
    }

    /// [`insert`](Self::insert) for a key that is already hashed.
    #[inline]
    pub fn insert_hash(&mut self, hash: Hash) -> Result<bool, Error> {
        let (shape, words) = self.exclusive();
        let entry = shape.entry(hash);
        let new = !shape.holds(words, entry);
        shape
            .insert(words, entry)
            .map_err(|full| self.refusal(full))?;
        self.count_more(1);
        Ok(new)
    }

    /// Adds many keys; `new[i]` answers for `keys[i]`. When one is refused,
    /// those before it are in and the others are not; [`keys`](Filter::keys)
    /// tells how many. Answers are those of one [`insert`](Self::insert) each,
    /// but the entries may lie elsewhere.
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
    pub fn insert_many<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        new: &mut [bool],
    ) -> Result<(), Error> {
        assert_eq!(keys.len(), new.len(), "one answer for each key");
        let mut hashes = [Hash::default(); BATCH];
        for (keys, new) in keys.chunks(BATCH).zip(new.chunks_mut(BATCH)) {
            let hashes = hash_all(self.hasher(), keys, &mut hashes);
            self.insert_hashes(hashes, new)?;
        }
        Ok(())
    }

    /// [`insert_many`](Self::insert_many) for keys that are already hashed.
    ///
    /// # Panics
    /// If `new` is not as long as `hashes`.
    pub fn insert_hashes(&mut self, hashes: &[Hash], new: &mut [bool]) -> Result<(), Error> {
        assert_eq!(hashes.len(), new.len(), "one answer for each key");
        let mut entries = [Entry::default(); BATCH];
        for (hashes, new) in hashes.chunks(BATCH).zip(new.chunks_mut(BATCH)) {
            let (shape, words) = self.exclusive();
            for (entry, hash) in entries.iter_mut().zip(hashes) {
                *entry = shape.entry(*hash);
            }
            let entries = &entries[..hashes.len()];
            shape.are_new(words, entries, new);
            let (added, result) = shape.insert_many(words, entries);
            self.count_more(added as u64);
            result.map_err(|full| self.refusal(full))?;
        }
        Ok(())
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

    /// Takes out a copy of the key; whether it found one. `false` proves that
    /// the key was not there; `true` proves nothing.
    ///
    /// Remove only what was added. A key that never was is found at the rate,
    /// and removing it then takes out the entry of another key, which is
    /// missing from then on: the false "no" that a filter otherwise never
    /// gives.
    pub fn remove(&mut self, key: impl AsRef<[u8]>) -> bool {
        self.remove_hash(self.hasher().hash(key.as_ref()))
    }

    /// [`remove`](Self::remove) for a key that is already hashed.
    pub fn remove_hash(&mut self, hash: Hash) -> bool {
        let (shape, words) = self.exclusive();
        let removed = shape.remove(words, shape.entry(hash));
        if removed {
            self.count_fewer(1);
        }
        removed
    }

    /// Removes many keys; `removed[i]` answers for `keys[i]`.
    ///
    /// # Panics
    /// If `removed` is not as long as `keys`.
    pub fn remove_many<K: AsRef<[u8]>>(&mut self, keys: &[K], removed: &mut [bool]) {
        assert_eq!(keys.len(), removed.len(), "one answer for each key");
        let mut hashes = [Hash::default(); BATCH];
        for (keys, removed) in keys.chunks(BATCH).zip(removed.chunks_mut(BATCH)) {
            let hashes = hash_all(self.hasher(), keys, &mut hashes);
            self.remove_hashes(hashes, removed);
        }
    }

    /// [`remove_many`](Self::remove_many) for keys that are already hashed.
    ///
    /// # Panics
    /// If `removed` is not as long as `hashes`.
    pub fn remove_hashes(&mut self, hashes: &[Hash], removed: &mut [bool]) {
        assert_eq!(hashes.len(), removed.len(), "one answer for each key");
        let (shape, words) = self.exclusive();
        shape.remove_many(words, hashes, removed);
        self.count_fewer(removed.iter().filter(|removed| **removed).count() as u64);
    }

    /// Adds all keys of `other`, with all copies, by moving its entries: a
    /// fingerprint and a place are all that is needed. Fails when the two are
    /// unlike, when they don't fit into one table ([`Error::Full`]) or have too
    /// many copies of a key together, and then changes nothing.
    ///
    /// The result holds as many entries as both had, which is more than it was
    /// made for if both were full: two filters fit if each is half full.
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

    /// Keeps what both hold: of every entry as many copies as the one that has
    /// fewer. Every key that was added to both is still found, and can go on
    /// being removed; the rate is at most the smaller of the two. Fails when
    /// the two are unlike, and then changes nothing.
    pub fn intersect_with<C: Body>(&mut self, other: &Filter<CuckooShape, C>) -> Result<(), Error> {
        self.check_like(other)?;
        let (shape, words) = self.exclusive();
        let gone = shape.keep_common(words, other.words());
        self.count_fewer(gone);
        Ok(())
    }
}
