//! The window filter.

use crate::error::Error;
use crate::filter::keys::hashed;
use crate::filter::shell::Filter;
use crate::hash::Hash;
use crate::hasher::Hasher;
use crate::key::Key;
use crate::kind::Kind;
use crate::moment::Moment;
use crate::plan::Plan;
use crate::raw::explain::Explanation;
use crate::raw::window::cells::Read;
use crate::raw::window::{Renewal, Span, When, WindowOptions, WindowShape};
use crate::raw::word::Word;
use crate::store::body::{Body, Bytes};
#[cfg(feature = "files")]
use crate::store::{check::Terms, disk};
#[cfg(feature = "files")]
use std::path::Path;
use std::time::Duration;

/// A filter that forgets: "seen in the last 24 hours", "among the last ten
/// million". See [`Filter`] for its other methods.
///
/// A key inside the window is never missed. A key older than the window plus one generation (an
/// eighth of it, by default) is forgotten; in between, it may be either. Time is an argument, not a
/// clock, and keys needn't come in order of time: keys up to a generation late get the same
/// answers.
///
/// ```
/// use std::time::Duration;
/// use tamis::{Moment, Window};
/// let hour = Duration::from_secs(3_600);
/// let seen = Window::within(24 * hour, 1_000_000, 0.01)?;
/// let noon = Moment::from_secs(1_700_000_000);
/// assert!(seen.insert("event", noon));
/// assert!(!seen.insert("event", noon + 24 * hour)); // never missed
/// assert!(seen.insert("event", noon + 27 * hour + hour)); // forgotten
/// # Ok::<(), tamis::Error>(())
/// ```
///
/// Threads and processes can add concurrently. `contains` and the other methods of all kinds answer
/// as of the latest moment added.
pub type Window<B = Bytes> = Filter<WindowShape, B>;

/// A generation of a [`Window`], as it is now.
///
/// ```
/// use std::time::Duration;
/// use tamis::{Moment, Window};
/// let seen = Window::within(Duration::from_secs(80), 1_000, 0.01)?;
/// seen.insert("key", Moment::from_secs(25));
/// let generation = seen.generations()[0];
/// assert_eq!((generation.start, generation.end), (20_000_000, 30_000_000));
/// assert_eq!(generation.keys, 1);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generation {
    /// Its number: how many generations precede it since 1970, or since the first key.
    pub number: i64,
    /// When it begins, in microseconds since 1970 or in keys since the first.
    pub start: i64,
    /// When the next begins.
    pub end: i64,
    /// Keys whose last "new" or renewal was in it.
    pub keys: u64,
}

impl Filter<WindowShape> {
    /// An empty window that reports a key as new again `span` after it was last reported new. It is
    /// made for `keys` keys in the span, in 8 generations.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tamis::Window;
    /// assert!(Window::within(Duration::from_secs(60), 1_000, 0.01).is_ok());
    /// assert!(Window::within(Duration::ZERO, 1_000, 0.01).is_err());
    /// ```
    pub fn within(span: Duration, keys: u64, rate: f64) -> Result<Self, Error> {
        Self::with_options(
            &WindowOptions::new(Span::Time(span)),
            keys,
            rate,
            Hasher::default(),
        )
    }

    /// An empty window that reports a key as new again `span` after it was last seen: every
    /// sighting renews it.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tamis::{Moment, Window};
    /// let alerts = Window::quiet(Duration::from_secs(60), 1_000, 0.01)?;
    /// assert!(alerts.insert("disk full", Moment::from_secs(0)));
    /// assert!(!alerts.insert("disk full", Moment::from_secs(50)));
    /// assert!(!alerts.insert("disk full", Moment::from_secs(100))); // 50 s of quiet
    /// assert!(alerts.insert("disk full", Moment::from_secs(170)));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn quiet(span: Duration, keys: u64, rate: f64) -> Result<Self, Error> {
        let options = WindowOptions::new(Span::Time(span)).renewal(Renewal::Quiet);
        Self::with_options(&options, keys, rate, Hasher::default())
    }

    /// An empty window with options.
    ///
    /// ```
    /// use tamis::{Hasher, Moment, Window, window::{Span, WindowOptions}};
    /// let options = WindowOptions::new(Span::Keys(1_000)).generations(10);
    /// let recent = Window::with_options(&options, 1_000, 0.01, Hasher::seeded(7))?;
    /// assert!(recent.insert("key", Moment::default())); // it counts keys, not time
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn with_options(
        options: &WindowOptions,
        keys: u64,
        rate: f64,
        hasher: Hasher,
    ) -> Result<Self, Error> {
        Self::from_plan(&Plan::window(options, keys, rate)?, hasher)
    }

    /// Maps a file for adding keys, together with other processes; see
    /// [`Blocked::share`](crate::Blocked::share).
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("seen.tamis");
    /// use tamis::{Moment, Window};
    /// Window::new(1_000, 0.01)?.save_new(&path)?;
    /// let (one, other) = (Window::share(&path)?, Window::share(&path)?);
    /// assert!(one.insert("key", Moment::default()));
    /// assert!(!other.insert("key", Moment::default()));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[cfg(feature = "files")]
    pub fn share(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::assemble(disk::share(path.as_ref(), Terms::default())?)
    }

    /// Adds a key seen at a moment, and returns whether it is new in the window that ends then.
    /// "New" is always right; "not new" is wrong for at most one in `1/rate` new keys. A key older
    /// than the window of the latest moment is reported as new but not remembered; see
    /// [`remembers`](Self::remembers). A window of a number of keys ignores the moment.
    ///
    /// Threads and processes may add at the same time: no key is lost, and of several that add the
    /// same new key, one gets "new". Two get it only if one was stopped in the middle while others
    /// emptied the key's bin, added the key, and filled the bin so that it had to move.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tamis::{Moment, Window};
    /// let seen = Window::within(Duration::from_secs(60), 1_000, 0.01)?;
    /// assert!(seen.insert("key", Moment::now()));
    /// assert!(!seen.insert("key", Moment::now()));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn insert(&self, key: impl Key, at: Moment) -> bool {
        let mut new = [false];
        self.insert_many(&[key.key_hash(&self.hasher)], at, &mut new);
        new[0]
    }

    /// [`insert`](Self::insert) with exclusive access, which needs no atomic instructions. A window
    /// with more keys than it was made for grows.
    pub fn insert_mut(&mut self, key: impl Key, at: Moment) -> bool {
        let mut new = [false];
        self.insert_many_mut(&[key.key_hash(&self.hasher)], at, &mut new);
        new[0]
    }

    /// Adds many keys while other threads may add too, with one moment for all or one for each (see
    /// [`When`]); `new[i]` is the answer for `keys[i]`.
    ///
    /// # Panics
    /// If `new`, or the moments, don't match the number of keys.
    pub fn insert_many<'t, K: Key>(&self, keys: &[K], at: impl Into<When<'t>>, new: &mut [bool]) {
        assert_eq!(keys.len(), new.len(), "one answer for each key");
        let at = at.into();
        at.check(keys.len());
        let (words, hashes) = (self.body.words(), hashed(&self.hasher, keys));
        self.shape.insert_many_shared(words, &hashes, at.all(), new);
    }

    /// [`insert_many`](Self::insert_many) with exclusive access, which needs no atomic
    /// instructions. Answers as if the keys were added one by one; a window with more keys than it
    /// was made for grows.
    ///
    /// # Panics
    /// If `new`, or the moments, don't match the number of keys.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tamis::{Moment, Window};
    /// let mut seen = Window::within(Duration::from_secs(60), 1_000, 0.01)?;
    /// let mut new = [false; 3];
    /// seen.insert_many_mut(&["a", "b", "a"], Moment::now(), &mut new);
    /// assert_eq!(new, [true, true, false]);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn insert_many_mut<'t, K: Key>(
        &mut self,
        keys: &[K],
        at: impl Into<When<'t>>,
        new: &mut [bool],
    ) {
        assert_eq!(keys.len(), new.len(), "one answer for each key");
        let at = at.into();
        at.check(keys.len());
        let hashes = hashed(&self.hasher, keys);
        self.add_alone(&hashes, at.all(), new);
    }

    fn add_alone(&mut self, mut hashes: &[Hash], mut times: &[Moment], mut new: &mut [bool]) {
        let mut can_grow = true;
        while can_grow {
            let room = self.room_of_newest();
            let Some(words) = self.body.exclusive() else {
                break;
            };
            let added = self.shape.insert_many(words, hashes, times, new, room);
            if added == hashes.len() {
                return;
            }
            (hashes, new) = (&hashes[added..], &mut new[added..]);
            if times.len() > 1 {
                times = &times[added..];
            }
            // Without memory for another table, overflowing bins answer "maybe" for every key.
            can_grow = self.grow().is_ok();
        }
        let words = self.body.words();
        self.shape.insert_many_shared(words, hashes, times, new);
    }

    /// Slots that keys may take in the newest table before another is needed.
    fn room_of_newest(&self) -> u64 {
        let table = self.shape.newest_table();
        match self.shape.table_count() {
            1 => table.most().min(table.slots_at(0.97 * self.rate())),
            _ => table.most(),
        }
    }

    /// The size that the window would have with the next table.
    ///
    /// ```
    /// let recent = tamis::Window::new(1_000, 0.01)?;
    /// assert!(recent.bytes_grown() > 2 * recent.bytes());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    #[doc(hidden)]
    pub fn bytes_grown(&self) -> u64 {
        self.shape
            .grown()
            .map_or(u64::MAX, |grown| grown.body_len())
    }

    /// How many more keys fit before the window grows or, if it can't, before its rate rises.
    ///
    /// ```
    /// let recent = tamis::Window::new(1_000, 0.01)?;
    /// assert!(recent.room() >= 1_000);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    #[doc(hidden)]
    pub fn room(&self) -> u64 {
        let cells = Read(self.body.words());
        let newest = self.shape.newest(&cells).unwrap_or_default();
        let taken = self
            .shape
            .kept_in(&cells, self.shape.newest_table(), newest);
        self.room_of_newest().saturating_sub(taken)
    }

    /// Adds a table, for twice the keys of the last one.
    fn grow(&mut self) -> Result<(), Error> {
        let most = || Error::parameter("tables of a window", "at most 24", "one more");
        let grown = self.shape.grown().ok_or_else(most)?;
        let mut body = Bytes::zeroed(grown.body_len())?;
        if let (Some(new), Some(old)) = (body.exclusive(), self.body.exclusive()) {
            new[..old.len()].copy_from_slice(old);
            grown.keep_live(new, self.shape.table_count() - 1);
        }
        self.body = body;
        self.shape = grown;
        Ok(())
    }

    /// Adds all keys of `other` with their ages. Fails and changes nothing if the two differ in
    /// options, shape or hash, or count keys.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tamis::{Moment, Window};
    /// let mut a = Window::within(Duration::from_secs(60), 1_000, 0.01)?;
    /// let b = a.template()?;
    /// b.insert("key", Moment::from_secs(100));
    /// a.union_with(&b)?;
    /// assert!(a.contains("key", Moment::from_secs(160)));
    /// assert!(!a.contains("key", Moment::from_secs(170)));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn union_with<C: Body>(&mut self, other: &Window<C>) -> Result<(), Error> {
        if self.shape.is_by_keys() {
            return Err(Error::Unable {
                kind: Kind::Window,
                what: "combined where they count keys",
                instead: "which of two keys was first is not known; use windows of time",
            });
        }
        // Concurrent additions would be lost.
        if self.is_shared() {
            return Err(Error::Unable {
                kind: Kind::Window,
                what: "combined while processes share its file",
                instead: "load it, combine it, and save it",
            });
        }
        // With all tables of the other one, and one more if those become too small.
        let mut united = Self::assemble((self.header(), Bytes::zeroed(self.bytes())?))?;
        copy(self.words(), united.body.exclusive().unwrap_or_default());
        while united.shape.table_count() < other.shape().table_count() {
            united.grow()?;
        }
        let mut like = Self::assemble((other.header(), Bytes::zeroed(other.bytes())?))?;
        copy(other.words(), like.body.exclusive().unwrap_or_default());
        while like.shape.table_count() < united.shape.table_count() {
            like.grow()?;
        }
        united.check_like(&like)?;
        let shape = united.shape;
        if !shape.unite(united.body.exclusive().unwrap_or_default(), like.words()) {
            return Err(Error::Unable {
                kind: Kind::Window,
                what: "combined: there is no room for the keys of both",
                instead: "make one for the keys of both, and add the keys to it",
            });
        }
        (self.shape, self.body) = (united.shape, united.body);
        Ok(())
    }

    /// For a window that [`share`](Self::share)s a file: waits until everything added so
    /// far is on disk.
    pub fn sync(&self) -> Result<(), Error> {
        self.body.sync()
    }

    /// For a window that [`share`](Self::share)s a file: writes it back, closes it, and
    /// reports failures. Dropping it does the same, silently.
    pub fn close(self) -> Result<(), Error> {
        self.body.close()
    }
}

impl<B: Body> Filter<WindowShape, B> {
    /// Whether the key may have been added in the window that ends at this moment.
    ///
    /// Gives the same answer as [`insert`](Self::insert), so it also finds a key that was only added later: keys
    /// needn't come in order, and a slot stores one sighting of its key. Nothing was added before
    /// [`first`](Self::first).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tamis::{Moment, Window};
    /// let seen = Window::within(Duration::from_secs(60), 1_000, 0.01)?;
    /// seen.insert("key", Moment::from_secs(100));
    /// assert!(seen.contains("key", Moment::from_secs(160)));
    /// assert!(!seen.contains("key", Moment::from_secs(170)));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn contains(&self, key: impl Key, at: Moment) -> bool {
        let hash = key.key_hash(&self.hasher);
        self.shape.contains_at(self.words(), hash, at)
    }

    /// The steps of a look-up at a moment, and what each finds.
    #[doc(hidden)]
    #[must_use]
    pub fn explain_at(&self, key: impl Key, at: Moment) -> Explanation {
        let hash = key.key_hash(&self.hasher);
        self.shape.explain_at(self.words(), hash, at)
    }

    /// [`contains`](Self::contains) for many keys, with one moment for all or one for each
    /// (see [`When`]); `found[i]` is the answer for `keys[i]`.
    ///
    /// # Panics
    /// If `found`, or the moments, don't match the number of keys.
    pub fn contains_many<'t, K: Key>(
        &self,
        keys: &[K],
        at: impl Into<When<'t>>,
        found: &mut [bool],
    ) {
        assert_eq!(keys.len(), found.len(), "one answer for each key");
        let at = at.into();
        at.check(keys.len());
        let hashes = hashed(&self.hasher, keys);
        self.shape
            .contains_many_at(self.words(), &hashes, at.all(), found);
    }

    /// Its options: what to remember, and how precisely to forget.
    pub const fn options(&self) -> WindowOptions {
        self.shape().options()
    }

    /// The latest moment added. `None` for a window of a number of keys.
    #[must_use]
    pub fn latest(&self) -> Option<Moment> {
        self.shape.latest(&Read(self.words()))
    }

    /// A moment before which no key was added, new or not, as far as the window knows: the start of its first
    /// generation, or of the first that it has a count of. `None` for a window of a number of keys.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tamis::{Moment, Window};
    /// let seen = Window::within(Duration::from_secs(80), 1_000, 0.01)?;
    /// assert_eq!(seen.first(), None);
    /// seen.insert("key", Moment::from_secs(1_700_000_025));
    /// seen.insert("key", Moment::from_secs(1_700_000_004)); // not new, but a sighting
    /// assert_eq!(seen.first(), Some(Moment::from_secs(1_700_000_000)));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    #[doc(hidden)]
    pub fn first(&self) -> Option<Moment> {
        let shape = self.shape();
        let first = shape.first(&Read(self.words()))?;
        (!shape.is_by_keys())
            .then(|| Moment::from_micros(first.saturating_mul(shape.step() as i64)))
    }

    /// Keys added so far, new or renewed, forgotten ones included.
    #[must_use]
    #[doc(hidden)]
    pub fn added(&self) -> u64 {
        self.shape.added(&Read(self.words()))
    }

    /// Whether a key at this moment would be remembered. If not, it is older than the window that
    /// ends at [`latest`](Self::latest): it is reported as new, and not kept.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tamis::{Moment, Window};
    /// let seen = Window::within(Duration::from_secs(60), 1_000, 0.01)?;
    /// seen.insert("key", Moment::from_secs(1_000));
    /// assert!(seen.remembers(Moment::from_secs(940)));
    /// assert!(!seen.remembers(Moment::from_secs(900)));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn remembers(&self, at: Moment) -> bool {
        let shape = self.shape();
        let oldest = shape
            .newest(&Read(self.words()))
            .map(|n| shape.oldest_for(n));
        shape.is_by_keys() || oldest.is_none_or(|oldest| shape.generation_of(at) >= oldest)
    }

    /// Whether a moment is more than a generation older than the latest one. Keys that were in its
    /// window may then be forgotten, so "new" is no longer certain.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tamis::{Moment, Window};
    /// let seen = Window::within(Duration::from_secs(80), 1_000, 0.01)?;
    /// seen.insert("key", Moment::from_secs(1_000));
    /// assert!(!seen.is_late(Moment::from_secs(990)));
    /// assert!(seen.is_late(Moment::from_secs(980)));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    #[doc(hidden)]
    pub fn is_late(&self, at: Moment) -> bool {
        let shape = self.shape();
        let newest = shape.newest(&Read(self.words()));
        !shape.is_by_keys() && newest.is_some_and(|n| shape.generation_of(at) < n - 1)
    }

    /// Keys added, new or renewed, to the generations that a query at this moment covers.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tamis::{Moment, Window};
    /// let seen = Window::within(Duration::from_secs(60), 1_000, 0.01)?;
    /// seen.insert("key", Moment::from_secs(100));
    /// assert_eq!(seen.keys_at(Moment::from_secs(160)), 1);
    /// assert_eq!(seen.keys_at(Moment::from_secs(170)), 0);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    #[doc(hidden)]
    pub fn keys_at(&self, at: Moment) -> u64 {
        let (shape, cells) = (self.shape(), Read(self.words()));
        let newest = shape.newest(&cells).unwrap_or_default();
        let oldest = shape.oldest_for(match shape.is_by_keys() {
            true => newest,
            false => shape.generation_of(at),
        });
        let kept = newest - i64::from(shape.kept()) + 1;
        (oldest.max(kept)..=newest)
            .map(|generation| shape.keys_of(&cells, generation))
            .sum()
    }

    /// The generations that are remembered as of the latest moment and have keys, newest first.
    #[must_use]
    pub fn generations(&self) -> Vec<Generation> {
        let (shape, cells) = (self.shape(), Read(self.words()));
        let step = shape.step() as i64;
        let Some(newest) = shape.newest(&cells) else {
            return Vec::new();
        };
        let each = (shape.oldest_for(newest)..=newest).rev();
        let generation = |number: i64| Generation {
            number,
            start: number.saturating_mul(step),
            end: number.saturating_add(1).saturating_mul(step),
            keys: shape.keys_of(&cells, number),
        };
        each.map(generation).filter(|each| each.keys > 0).collect()
    }
}

fn copy<W: Word>(from: &[W], to: &mut [u64]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = from.get().to_le();
    }
}
