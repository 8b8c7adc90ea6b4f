//! The growing filter, for an unknown number of keys.
//!
//! Layers of blocked filters, each larger or nearly as large as all before it together
//! ([`plan::growing`]). A key goes into the newest layer unless one of the layers has it; when that
//! layer is full, a new one is added. Old layers never change, and nothing is ever moved.
//!
//! A layer that doesn't have a key nearly always rejects it at its first line, so each older layer
//! costs about one line.
//!
//! In memory the body has one part for the layers it started with, and one for every layer added
//! since.

mod adding;
mod asking;
#[cfg(all(test, feature = "files"))]
mod model;
#[cfg(test)]
mod tests;
mod union;

use crate::error::Error;
use crate::filter::keys::KeyCount;
use crate::hasher::Hasher;
use crate::key_rule::KeyRule;
use crate::kind::Kind;
use crate::plan::growing::{Expansion, Schedule, first_capacity, reserved};
use crate::plan::{self, Plan, Rated as _};
use crate::raw::blocked::{BlockedShape, LINE_WORDS};
use crate::raw::header::{Header, KEYS_UNKNOWN, State};
use crate::raw::layers::{GrowingLayer, GrowingShape, KEYS, Layer, parse, put};
use crate::raw::layout::Layout as _;
use crate::raw::shape::Shape;
use crate::raw::word::SharedWord as _;
use crate::store::body::{Body, Bytes};
#[cfg(feature = "files")]
use crate::store::{check::Terms, disk};
use std::fmt;
#[cfg(feature = "files")]
use std::path::Path;
use std::sync::atomic::AtomicU64;

/// A filter that grows with its keys and keeps its rate at any size.
///
/// It costs more than a [`Blocked`](crate::Blocked) filter of the right size: up to 2.5 times the
/// memory just after it has grown (for rates of 1 % and less), and a probe for each layer. The
/// better the first guess, the fewer the layers.
///
/// ```
/// use tamis::{Growing, KeyCount};
/// let mut seen = Growing::new(1_000, 1e-6)?;
/// for i in 0..50_000u64 {
///     seen.insert(i.to_le_bytes())?; // fails only if memory runs out
/// }
/// assert!(seen.contains(49_999u64.to_le_bytes()));
/// assert_eq!(seen.keys(), KeyCount::Counted(50_000));
/// assert!(seen.rate_now() <= 1e-6);
/// # Ok::<(), tamis::Error>(())
/// ```
///
/// Adding needs `&mut`; look-ups don't, so several threads can do them at once. A file
/// [`share`](Growing::share)d for writing belongs to one process, because another wouldn't see the
/// layers that this one adds. Others may [`open`](Growing::open) it for reading; they see the
/// layers that existed then, and must reopen it to see later ones.
///
/// Two growing filters can be combined only if the same layers have room for the keys of both
/// ([`union_with`](Self::union_with)); fuller layers would have a higher rate.
pub struct Growing<B = Bytes> {
    shape: GrowingShape,
    hasher: Hasher,
    rate: f64,
    capacity: u64,
    /// Whether the layers' counts are exact.
    counted: bool,
    /// Of this object; not stored in the file.
    expansion: Expansion,
    /// Oldest first.
    layers: Vec<Layer>,
    // Fields are dropped in this order. In a mapped file, `body` holds the "open for writing" mark,
    // which must be cleared last.
    tails: Vec<B>,
    body: B,
}

impl Growing {
    /// An empty filter that keeps `rate` at any number of keys. Its first layer holds a thousand
    /// keys, or from one to about two times `first_guess` if that is more, so that it grows at the
    /// numbers of keys that [`Plan::for_rate`] assumes, and takes no more memory than that.
    ///
    /// ```
    /// use tamis::Growing;
    /// let mut seen = Growing::new(1_000, 0.001)?;
    /// for i in 0..5_000u64 { seen.insert(i.to_le_bytes())?; } // more than guessed
    /// assert!(seen.shape().layers() > 1 && seen.rate_now() <= 0.001);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn new(first_guess: u64, rate: f64) -> Result<Self, Error> {
        Self::with_hasher(first_guess, rate, Hasher::default())
    }

    /// An empty filter whose keys are hashed by `hasher`.
    ///
    /// ```
    /// use tamis::{Growing, Hasher, SecretKey};
    /// let hasher = Hasher::keyed(SecretKey::random()?);
    /// assert!(Growing::with_hasher(1_000, 0.001, hasher)?.insert("key")?);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn with_hasher(first_guess: u64, rate: f64, hasher: Hasher) -> Result<Self, Error> {
        plan::check_keys(first_guess)?;
        plan::check_rate(rate)?;
        let capacity = first_capacity(first_guess, rate);
        let first = Schedule::new(capacity, rate)?.first(capacity)?;
        Self::of_first(&first, rate, hasher)
    }

    /// An empty filter for exactly `keys` keys that keeps `rate` even if more come, growing by
    /// `expansion`. [`new`](Self::new) treats its number as a guess; this treats it as a fact (from
    /// 4,096 on): the filter is a little larger than one that can't grow, and growing costs more.
    ///
    /// ```
    /// use tamis::{Growing, Hasher, internals::Expansion};
    /// let mut seen = Growing::reserve(1_000_000, 0.01, Expansion::Auto, Hasher::default())?;
    /// assert!(seen.bytes() * 8 < 10_480_000);
    /// let mut fixed = Growing::reserve(1, 0.01, Expansion::None, Hasher::default())?;
    /// assert!(fixed.insert("a")?);
    /// assert!(fixed.insert("b").is_err()); // full
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[doc(hidden)]
    pub fn reserve(
        keys: u64,
        rate: f64,
        expansion: Expansion,
        hasher: Hasher,
    ) -> Result<Self, Error> {
        plan::check_keys(keys)?;
        plan::check_rate(rate)?;
        let first = reserved(keys, rate, expansion)?;
        let mut this = Self::of_first(&first, rate, hasher)?;
        this.expansion = expansion;
        Ok(this)
    }

    fn of_first(first: &GrowingLayer, rate: f64, hasher: Hasher) -> Result<Self, Error> {
        let header = Header::of_first_layer(first, rate, hasher)?;
        let body = Bytes::zeroed(header.body_len())?;
        put(first, body.words());
        Self::assemble((header, body))
    }

    /// How it grows.
    #[must_use]
    #[doc(hidden)]
    pub const fn expansion(&self) -> Expansion {
        self.expansion
    }

    /// Sets how it grows. Files don't record this: an opened filter grows with [`Expansion::Auto`].
    #[doc(hidden)]
    pub const fn set_expansion(&mut self, expansion: Expansion) {
        self.expansion = expansion;
    }

    /// An empty filter that starts at the plan's number of keys and keeps its promise. The plan's
    /// size is that of a filter that started small and grew to this number.
    pub fn from_plan(plan: &Plan, hasher: Hasher) -> Result<Self, Error> {
        Self::with_hasher(plan.keys(), plan.promise(), hasher)
    }

    /// An empty filter with the same first layer, rate and hash.
    pub fn template(&self) -> Result<Self, Error> {
        let first = self.layers[0];
        let first = GrowingLayer {
            shape: first.shape,
            capacity: first.capacity,
            rate: first.rate,
        };
        let mut this = Self::of_first(&first, self.rate, self.hasher)?;
        this.expansion = self.expansion;
        Ok(this)
    }

    /// Maps a file for adding keys, exclusively: [`Error::Busy`] if another process has it. The
    /// file grows with its keys; a full disk is an error.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("seen.tamis");
    /// use tamis::Growing;
    /// Growing::new(1_000, 0.001)?.save_new(&path)?;
    /// let mut seen = Growing::share(&path)?;
    /// for i in 0..5_000u64 { seen.insert(i.to_le_bytes())?; }
    /// seen.close()?;
    /// assert!(Growing::open(&path)?.contains(7u64.to_le_bytes()));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[cfg(feature = "files")]
    pub fn share(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::assemble(disk::share(path.as_ref(), Terms::default())?)
    }

    pub(crate) const fn is_shared(&self) -> bool {
        self.body.is_shared()
    }

    /// The lines of the newest layer.
    pub(crate) fn newest_lines(&self) -> (&BlockedShape, &[AtomicU64]) {
        let newest = self.newest();
        (&newest.shape, self.words(newest))
    }

    /// Counts keys that were added to the newest layer.
    pub(crate) fn count_more(&mut self, keys: u64) {
        self.count(self.newest().keys + keys);
    }

    pub(crate) fn set_rule(&mut self, rule: KeyRule) {
        self.hasher = self.hasher.with_rule(rule);
    }

    /// Removes all keys. The layers and their memory stay; keys go into the newest, which is the
    /// largest.
    ///
    /// ```
    /// use tamis::Growing;
    /// let mut seen = Growing::new(1_000, 0.001)?;
    /// seen.insert("key")?;
    /// seen.clear();
    /// assert!(!seen.contains("key"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn clear(&mut self) {
        for layer in &mut self.layers {
            layer.keys = 0;
        }
        for layer in &self.layers {
            for word in self.words(layer) {
                word.put(0);
            }
            self.part(layer.part).words()[layer.at - LINE_WORDS + KEYS].put(0);
        }
        self.counted = true;
        self.capacity = self.newest().capacity;
        self.count(0);
    }

    /// For a filter that [`share`](Self::share)s a file: waits until everything
    /// added so far is on disk. Does nothing for a filter on the heap.
    pub fn sync(&self) -> Result<(), Error> {
        self.parts().try_for_each(Bytes::sync)
    }

    /// For a filter that [`share`](Self::share)s a file: writes it back, closes
    /// it, and reports failures. Dropping it does the same, silently.
    pub fn close(self) -> Result<(), Error> {
        self.sync()?;
        drop(self.tails);
        self.body.close()
    }
}

#[cfg(feature = "plain-heap")]
impl Growing {
    /// Memory besides the bodies.
    pub(crate) fn lists(&self) -> impl Iterator<Item = (*const u8, usize)> {
        let layers = (self.layers.capacity() > 0).then_some(self.layers.as_ptr().cast());
        let tails = (self.tails.capacity() > 0).then_some(self.tails.as_ptr().cast());
        layers
            .into_iter()
            .chain(tails)
            .map(|list| (list, align_of::<u64>()))
    }

    pub(crate) fn bodies_mut(&mut self) -> impl Iterator<Item = &mut Bytes> {
        std::iter::once(&mut self.body).chain(&mut self.tails)
    }
}

impl<B: Body> Growing<B> {
    pub(crate) fn assemble((header, body): (Header, B)) -> Result<Self, Error> {
        let Shape::Growing(shape) = header.shape else {
            return Err(Error::WrongKind {
                expected: Kind::Growing,
                got: header.shape.kind(),
            });
        };
        let layers = parse(&shape, header.rate, body.words())?;
        let (newest, older) = layers.split_last().ok_or(Error::corrupt("layers", 1, 0))?;
        let older: u64 = older.iter().map(|layer| layer.keys).sum();
        Ok(Self {
            shape,
            hasher: header.hasher,
            rate: header.rate,
            capacity: older.saturating_add(newest.capacity),
            counted: header.state.keys != KEYS_UNKNOWN && header.state.open_under.is_none(),
            expansion: Expansion::default(),
            layers,
            tails: Vec::new(),
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
                keys: self.counted_keys(),
                ..State::default()
            },
        }
    }

    fn newest(&self) -> &Layer {
        // `assemble` ensures that there is one.
        &self.layers[self.layers.len() - 1]
    }

    fn counted_keys(&self) -> u64 {
        if !self.counted {
            return KEYS_UNKNOWN;
        }
        self.layers.iter().map(|layer| layer.keys).sum()
    }

    fn parts(&self) -> impl Iterator<Item = &B> {
        std::iter::once(&self.body).chain(&self.tails)
    }

    #[inline]
    fn part(&self, part: usize) -> &B {
        match part {
            0 => &self.body,
            _ => &self.tails[part - 1],
        }
    }

    #[inline]
    fn words(&self, layer: &Layer) -> &[B::Word] {
        let len = layer.shape.lines() as usize * LINE_WORDS;
        &self.part(layer.part).words()[layer.at..][..len]
    }

    /// How keys are hashed.
    #[must_use]
    pub const fn hasher(&self) -> &Hasher {
        &self.hasher
    }

    /// The geometry, so far.
    #[must_use]
    #[doc(hidden)]
    pub const fn shape(&self) -> &GrowingShape {
        &self.shape
    }

    /// The number of keys it holds before it grows again.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The promised rate, kept at any number of keys.
    #[must_use]
    pub const fn rate(&self) -> f64 {
        self.rate
    }

    /// The rate to expect now, computed from the layers' actual content.
    #[must_use]
    pub fn rate_now(&self) -> f64 {
        let rates = self.layers.iter().map(|l| l.shape.rate_now(self.words(l)));
        -libm::expm1(rates.map(|rate| libm::log1p(-rate)).sum::<f64>())
    }

    /// The expected number of distinct keys that wrongly got "not new" when they were added; see
    /// [`Filter::expected_wrong`](crate::Filter::expected_wrong).
    #[must_use]
    #[doc(hidden)]
    pub fn expected_wrong(&self) -> f64 {
        let (mut wrong, mut older_rates) = (0.0, 0.0);
        for layer in &self.layers {
            let keys = layer.keys as f64;
            wrong += keys * older_rates + layer.shape.wrongly_present(layer.keys);
            older_rates += layer.shape.rate_at(keys);
        }
        wrong
    }

    /// The number of distinct keys added.
    #[must_use]
    pub fn keys(&self) -> KeyCount {
        match self.counted_keys() {
            KEYS_UNKNOWN => KeyCount::Estimated(self.estimated_keys()),
            keys => KeyCount::Counted(keys),
        }
    }

    /// The number of distinct keys, estimated from how full the layers are.
    #[must_use]
    #[doc(hidden)]
    pub fn estimated_keys(&self) -> u64 {
        let keys = self.layers.iter().map(|l| l.shape.keys_now(self.words(l)));
        keys.sum::<f64>().round() as u64
    }

    /// The body's current size in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.shape.body_len()
    }

    /// The number of keys until it grows, or is full.
    #[must_use]
    #[doc(hidden)]
    pub fn room(&self) -> u64 {
        let newest = self.newest();
        newest.capacity.saturating_sub(newest.keys)
    }

    pub(crate) fn all_words(&self) -> Vec<&[B::Word]> {
        self.parts().map(|part| part.words()).collect()
    }
}

impl<B> fmt::Debug for Growing<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Growing")
            .field("shape", &self.shape)
            .field("hasher", &self.hasher)
            .field("capacity", &self.capacity)
            .field("rate", &self.rate)
            .finish_non_exhaustive()
    }
}
