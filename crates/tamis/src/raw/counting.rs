//! The counting filter: a blocked filter with a 4-bit counter for each bit, so
//! that keys can be removed.
//!
//! The counter of a line's bit `64 w + p` is the nibble of that number in the
//! line's 256 bytes. So a line is four times as long as a blocked one's, its
//! counters are above zero exactly where the blocked filter of the same keys
//! has its bits, and the rates are the same.
//!
//! A counter that has reached 15 stays there: how much it stands for is not
//! known any more, and taking one away could hide another key.

use crate::filter::{BLOCK, BitLayout, Difference, Layout, Sealed, hash_all};
use crate::hash::Hash;
use crate::raw::blocked::{Blocked, BlockedShape, LINE_WORDS};
use crate::raw::isa::prefetch;
use crate::store::body::{Body, Word};
use crate::store::header::{Kind, Shape};
use crate::{Bytes, Error, Filter, plan};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A counting filter: a blocked filter whose keys can be removed; see
/// [`Filter`] for its other methods.
///
/// Adding a key again counts it again, and it is present until it has been
/// removed as often. There is no limit to the copies: from about 15 on, they
/// are not counted any more and can't be removed.
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

/// Bits of a counter.
const COUNTER_BITS: usize = 4;
/// Words of a line: a counter for each bit of a blocked filter's.
const COUNTER_WORDS: usize = LINE_WORDS * COUNTER_BITS;
/// Counters of a word.
const PER_WORD: u64 = 16;

/// The lowest bit of each counter of a word.
const ONES: u64 = 0x1111_1111_1111_1111;

/// Lines, and counters per key, of a [`Counting`] filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountingShape(BlockedShape);

impl CountingShape {
    /// A shape of exactly these numbers; `lines` is a multiple of
    /// `lines_per_key`.
    pub fn new(lines: u64, hashes_per_line: u32, lines_per_key: u32) -> Result<Self, Error> {
        BlockedShape::new(lines, hashes_per_line, lines_per_key).map(Self::of)
    }

    /// The shape with a counter for each bit of `bits`.
    pub(crate) const fn of(bits: BlockedShape) -> Self {
        Self(bits)
    }

    /// The shape of the blocked filter that has a bit for each counter.
    pub const fn bits(&self) -> BlockedShape {
        self.0
    }

    /// The number of 256-byte lines, of 512 counters each.
    pub const fn lines(&self) -> u64 {
        self.0.lines()
    }

    /// How many counters a key has in each of its lines: 1 to 8.
    pub const fn hashes_per_line(&self) -> u32 {
        self.0.hashes_per_line()
    }

    /// How many lines hold a key's counters: 1 to 4, the more the lower the rate.
    pub const fn lines_per_key(&self) -> u32 {
        self.0.lines_per_key()
    }

    pub(crate) const fn body_len(&self) -> u64 {
        self.0.body_len() * COUNTER_BITS as u64
    }

    /// Calls `each` with the places of the key's counters, line by line: the
    /// word, and the shift in it.
    #[inline(always)]
    fn for_each_counter(&self, hash: Hash, mut each: impl FnMut(usize, u64)) {
        for (line, lo) in self.0.lines_of(hash) {
            for_each_in_line(line, lo, self.hashes_per_line(), &mut each);
        }
    }

    /// Asks the memory for the key's counters.
    #[inline(always)]
    fn prefetch_all<T>(&self, words: &[T], hash: Hash) {
        for (line, _) in self.0.lines_of(hash) {
            prefetch_line(words, line);
        }
    }

    /// The least of the key's counters.
    fn count<W: Word>(&self, words: &[W], hash: Hash) -> u64 {
        let mut least = 15;
        self.for_each_counter(hash, |word, shift| {
            least = least.min(words[word].get() >> shift & 15);
        });
        least
    }

    /// Takes one from each of the key's counters, if the key seems present;
    /// whether it did, and whether it still does.
    fn remove(&self, words: &[AtomicU64], hash: Hash) -> (bool, bool) {
        if !self.contains(words, hash) {
            return (false, false);
        }
        self.for_each_counter(hash, |word, shift| {
            update(&words[word], |word| subtract(word, 1 << shift));
        });
        (true, self.contains(words, hash))
    }
}

/// Calls `each` with the places of the key's counters in one line.
#[inline(always)]
fn for_each_in_line(line: usize, lo: u64, k: u32, mut each: impl FnMut(usize, u64)) {
    let start = (lo >> 61) as usize;
    for w in (start..start + k as usize).map(|w| w % LINE_WORDS) {
        let position = lo >> (6 * w) & 63;
        let word = line * COUNTER_WORDS + w * COUNTER_BITS + (position / PER_WORD) as usize;
        each(word, position % PER_WORD * COUNTER_BITS as u64);
    }
}

/// Asks the memory for a line, which is four of its own.
#[inline(always)]
fn prefetch_line<T>(words: &[T], line: usize) {
    let first = words.as_ptr().wrapping_add(line * COUNTER_WORDS);
    for part in 0..COUNTER_BITS {
        prefetch(first.wrapping_add(part * LINE_WORDS));
    }
}

/// Marks the counters that are not 0.
#[inline(always)]
const fn above_zero(word: u64) -> u64 {
    (word | word >> 1 | word >> 2 | word >> 3) & ONES
}

/// A bit for each counter, set if it is not 0.
fn bits(word: u64) -> u64 {
    // Half of the gaps go with every step.
    let bits = above_zero(word);
    let bits = (bits | bits >> 3) & 0x0303_0303_0303_0303;
    let bits = (bits | bits >> 6) & 0x000F_000F_000F_000F;
    let bits = (bits | bits >> 12) & 0x0000_00FF_0000_00FF;
    (bits | bits >> 24) & 0xFFFF
}

/// The words of the blocked filter, one for four of counters.
fn blocked_words<W: Word>(words: &[W]) -> impl Iterator<Item = u64> {
    let word = |(i, word): (u64, &W)| bits(word.get()) << (i * PER_WORD);
    words
        .as_chunks::<COUNTER_BITS>()
        .0
        .iter()
        .map(move |four| (0..).zip(four).map(word).sum())
}

/// Marks the counters that are 15.
#[inline(always)]
const fn full(word: u64) -> u64 {
    word & word >> 1 & word >> 2 & word >> 3 & ONES
}

/// One more in each marked counter; full ones stay.
#[inline(always)]
const fn add(word: u64, marks: u64) -> u64 {
    word + (marks & !full(word))
}

/// One less in each marked counter; full ones stay, and empty ones.
#[inline(always)]
const fn subtract(word: u64, marks: u64) -> u64 {
    word - (marks & !full(word) & above_zero(word))
}

/// Combines the counters of two words, one by one.
fn zip_counters(a: u64, b: u64, combine: impl Fn(u64, u64) -> u64) -> u64 {
    (0..64).step_by(4).fold(0, |word, shift| {
        word | combine(a >> shift & 15, b >> shift & 15) << shift
    })
}

/// Changes a word while others may change it, too; what it was.
#[inline(always)]
fn update(word: &AtomicU64, change: impl Fn(u64) -> u64) -> u64 {
    let change = |word| Some(change(u64::from_le(word)).to_le());
    match word.fetch_update(Relaxed, Relaxed, change) {
        Ok(before) | Err(before) => u64::from_le(before),
    }
}

impl From<CountingShape> for Shape {
    fn from(shape: CountingShape) -> Self {
        Self::Counting(shape)
    }
}

impl Sealed for CountingShape {}

impl Layout for CountingShape {
    const KIND: Kind = Kind::Counting;

    fn from_shape(shape: Shape) -> Option<Self> {
        match shape {
            Shape::Counting(shape) => Some(shape),
            _ => None,
        }
    }

    fn body_len(&self) -> u64 {
        self.body_len()
    }

    fn difference(&self, other: &Self) -> Option<Difference> {
        self.0.difference(&other.0)
    }

    #[inline]
    fn contains<W: Word>(&self, words: &[W], hash: Hash) -> bool {
        self.0.lines_of(hash).all(|(line, lo)| {
            let mut all = true;
            for_each_in_line(line, lo, self.hashes_per_line(), |word, shift| {
                all &= words[word].get() >> shift & 15 != 0;
            });
            all
        })
    }

    /// The first line alone: an absent key seldom needs another.
    #[inline]
    fn prefetch<T>(&self, words: &[T], hash: Hash) {
        for (line, _) in self.0.lines_of(hash).take(1) {
            prefetch_line(words, line);
        }
    }

    fn contains_many<W: Word>(&self, words: &[W], hashes: &[Hash], out: &mut [bool]) {
        for (hash, out) in hashes.iter().zip(out) {
            *out = self.contains(words, *hash);
        }
    }

    fn rate_at(&self, keys: f64) -> f64 {
        plan::lines::rate(&self.0, keys)
    }

    /// That of the blocked filter.
    fn rate_now<W: Word>(&self, words: &[W]) -> f64 {
        let ones = |words: &[W; COUNTER_WORDS]| {
            let mut ones = blocked_words(words).map(u64::count_ones);
            std::array::from_fn(|_| ones.next().unwrap_or_default())
        };
        plan::lines::rate_now(&self.0, words.as_chunks().0.iter().map(ones))
    }

    fn keys_now<W: Word>(&self, words: &[W]) -> f64 {
        let used = words
            .iter()
            .map(|w| u64::from(above_zero(w.get()).count_ones()));
        self.0.keys_from_ones(used.sum())
    }
}

impl BitLayout for CountingShape {
    #[inline]
    fn insert(&self, words: &[AtomicU64], hash: Hash) -> bool {
        let mut new = false;
        self.for_each_counter(hash, |word, shift| {
            new |= update(&words[word], |word| add(word, 1 << shift)) >> shift & 15 == 0;
        });
        new
    }

    fn insert_many_shared(&self, words: &[AtomicU64], hashes: &[Hash], new: &mut [bool]) {
        hashes
            .iter()
            .for_each(|hash| self.prefetch_all(words, *hash));
        for (hash, new) in hashes.iter().zip(new) {
            *new = self.insert(words, *hash);
        }
    }

    fn insert_many(&self, words: &mut [u64], hashes: &[Hash], new: &mut [bool]) {
        hashes
            .iter()
            .for_each(|hash| self.prefetch_all(words, *hash));
        for (hash, new) in hashes.iter().zip(new) {
            *new = false;
            self.for_each_counter(*hash, |word, shift| {
                let word = &mut words[word];
                let before = u64::from_le(*word);
                *new |= before >> shift & 15 == 0;
                *word = add(before, 1 << shift).to_le();
            });
        }
    }

    /// The sums: as if the keys of both had been added to one.
    fn unite(word: &AtomicU64, theirs: u64) {
        update(word, |ours| {
            zip_counters(ours, theirs, |a, b| (a + b).min(15))
        });
    }

    /// The smaller of the two, which is at least what the common keys add up
    /// to, so these can go on being removed.
    fn intersect(word: &AtomicU64, theirs: u64) {
        update(word, |ours| zip_counters(ours, theirs, u64::min));
    }
}

impl<B: Body> Filter<CountingShape, B> {
    /// How often the key was added, at most: other keys may share all of its
    /// counters. Never too low, except that it ends at 15, which means "15 or
    /// more".
    pub fn count(&self, key: impl AsRef<[u8]>) -> u64 {
        self.count_hash(self.hasher().hash(key.as_ref()))
    }

    /// [`count`](Self::count) for a key that is already hashed.
    pub fn count_hash(&self, hash: Hash) -> u64 {
        self.shape().count(self.words(), hash)
    }

    /// The blocked filter that these keys would have built, bit for bit: a
    /// quarter of the size, of the same rate, and without removal. Keys that
    /// have been removed are not in it, unless a counter of theirs had reached
    /// 15, where it stays.
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
        Blocked::assemble(&header, body)
    }
}

impl Filter<CountingShape> {
    /// Takes back one adding of the key; whether it seemed present. If it did
    /// not, nothing changes.
    ///
    /// Remove only what was added. A key that never was seems present at the
    /// rate, and removing it then takes from the counters of others, which may
    /// go missing: the false "no" that a filter otherwise never gives.
    ///
    /// Processes that share the file may remove at once as long as each of
    /// them keeps to that.
    pub fn remove(&mut self, key: impl AsRef<[u8]>) -> bool {
        self.remove_hash(self.hasher().hash(key.as_ref()))
    }

    /// [`remove`](Self::remove) for a key that is already hashed.
    pub fn remove_hash(&mut self, hash: Hash) -> bool {
        let (was, is) = self.shape().remove(self.words(), hash);
        if was && !is {
            self.count_fewer(1);
        }
        was
    }

    /// Removes many keys; `removed[i]` answers for `keys[i]`.
    ///
    /// # Panics
    /// If `removed` is not as long as `keys`.
    pub fn remove_many<K: AsRef<[u8]>>(&mut self, keys: &[K], removed: &mut [bool]) {
        assert_eq!(keys.len(), removed.len(), "one answer for each key");
        let mut hashes = [Hash::default(); BLOCK];
        for (keys, removed) in keys.chunks(BLOCK).zip(removed.chunks_mut(BLOCK)) {
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
        for (hashes, removed) in hashes.chunks(BLOCK).zip(removed.chunks_mut(BLOCK)) {
            for hash in hashes {
                self.shape().prefetch_all(self.words(), *hash);
            }
            for (hash, removed) in hashes.iter().zip(removed) {
                *removed = self.remove_hash(*hash);
            }
        }
    }
}
