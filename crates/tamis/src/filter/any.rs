//! Whatever kind a file holds, opened by its header.

use super::counting::Counting;
use super::cuckoo::Cuckoo;
use super::growing::Growing;
use super::kinds::{Blocked, Bloom, Cascade, Fuse, Ribbon};
use super::open::Open;
use super::{Filter, KeyCount, check_creatable};
use crate::error::Error;
use crate::hash::Hash;
use crate::hasher::Hasher;
use crate::key_rule::KeyRule;
use crate::kind::Kind;
use crate::plan::Plan;
use crate::raw::header::{Header, KEYS_UNKNOWN};
use crate::raw::shape::Shape;
use crate::raw::word::Word;
use crate::store::body::{Body, Bytes, Map};
use crate::store::replace::Existing;
use crate::store::{self};
use std::path::Path;

/// A filter of any kind.
///
/// ```
/// use tamis::{AnyFilter, Hasher, Kind, Plan};
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("seen.tamis");
/// let plan = Plan::for_rate(Kind::Blocked, 1_000, 0.01)?;
/// let mut seen = AnyFilter::from_plan(&plan, Hasher::default())?;
/// seen.insert("key")?;
/// seen.save(&path)?;
///
/// let opened = AnyFilter::open(&path)?; // needs not know the kind
/// assert_eq!(opened.kind(), Kind::Blocked);
/// assert!(opened.contains("key"));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum AnyFilter<B = Bytes> {
    /// See [`Bloom`].
    Bloom(Bloom<B>),
    /// See [`Blocked`].
    Blocked(Blocked<B>),
    /// See [`Counting`].
    Counting(Counting<B>),
    /// See [`Cuckoo`].
    Cuckoo(Cuckoo<B>),
    /// See [`Growing`].
    Growing(Growing<B>),
    /// See [`Fuse`].
    Fuse(Fuse<B>),
    /// See [`Ribbon`].
    Ribbon(Ribbon<B>),
    /// See [`Cascade`].
    Cascade(Cascade<B>),
}

/// Runs the same expression for the filter of every kind.
macro_rules! each {
    ($any:expr, $filter:ident => $run:expr) => {
        match $any {
            AnyFilter::Bloom($filter) => $run,
            AnyFilter::Blocked($filter) => $run,
            AnyFilter::Counting($filter) => $run,
            AnyFilter::Cuckoo($filter) => $run,
            AnyFilter::Growing($filter) => $run,
            AnyFilter::Fuse($filter) => $run,
            AnyFilter::Ribbon($filter) => $run,
            AnyFilter::Cascade($filter) => $run,
        }
    };
}

/// The same for two filters of one kind.
macro_rules! both {
    ($ours:expr, $theirs:expr, ($a:ident, $b:ident) => $run:expr) => {
        match ($ours, $theirs) {
            (AnyFilter::Bloom($a), AnyFilter::Bloom($b)) => $run,
            (AnyFilter::Blocked($a), AnyFilter::Blocked($b)) => $run,
            (AnyFilter::Counting($a), AnyFilter::Counting($b)) => $run,
            (AnyFilter::Cuckoo($a), AnyFilter::Cuckoo($b)) => $run,
            (AnyFilter::Growing(_), AnyFilter::Growing(_)) => Err(Error::Unable {
                kind: Kind::Growing,
                what: "intersected",
                instead: "the two have a key in different layers; use blocked filters of the same size",
            }),
            (ours, theirs) if ours.kind() == theirs.kind() => {
                Err(Error::finished(ours.kind(), "combined"))
            }
            (ours, theirs) => Err(Error::Unlike {
                what: "the kind",
                ours: ours.kind().to_string(),
                theirs: theirs.kind().to_string(),
            }),
        }
    };
}

impl AnyFilter {
    /// An empty filter as planned.
    ///
    /// ```
    /// use tamis::{AnyFilter, Hasher, Kind, Plan};
    /// let plan = Plan::for_rate(Kind::Cuckoo, 1_000, 0.01)?;
    /// let mut seen = AnyFilter::from_plan(&plan, Hasher::default())?;
    /// assert!(seen.insert("key")?);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn from_plan(plan: &Plan, hasher: Hasher) -> Result<Self, Error> {
        check_creatable(plan.kind())?;
        if plan.kind() == Kind::Growing {
            return Growing::from_plan(plan, hasher).map(Self::Growing);
        }
        let header = Header::of_plan(plan, hasher);
        Self::assemble((header, Bytes::zeroed(header.body_len())?))
    }

    /// Creates the file of an empty filter, which must not exist, without
    /// holding the filter in memory: for one larger than that. The space on
    /// disk is taken at once, so that a full disk shows now.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("seen.tamis");
    /// use tamis::{AnyFilter, Hasher, Kind, Open, Plan};
    /// let plan = Plan::for_rate(Kind::Blocked, 1_000, 0.01)?;
    /// AnyFilter::create(&path, &plan, Hasher::default())?;
    /// let mut seen = Open::new().share(&path)?; // mapped, not read
    /// assert!(seen.insert("key")?);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn create(path: impl AsRef<Path>, plan: &Plan, hasher: Hasher) -> Result<(), Error> {
        check_creatable(plan.kind())?;
        if plan.kind() == Kind::Growing {
            return Growing::from_plan(plan, hasher)?.save_new(path);
        }
        store::save_empty(
            path.as_ref(),
            &Header::of_plan(plan, hasher),
            Existing::Keep,
        )
    }

    /// [`create`](Self::create), replacing what is there.
    pub fn create_over(path: impl AsRef<Path>, plan: &Plan, hasher: Hasher) -> Result<(), Error> {
        check_creatable(plan.kind())?;
        if plan.kind() == Kind::Growing {
            return Growing::from_plan(plan, hasher)?.save(path);
        }
        store::save_empty(
            path.as_ref(),
            &Header::of_plan(plan, hasher),
            Existing::Replace,
        )
    }

    /// Says how keys are made, of a filter in memory that has none yet: it would deny those it has.
    ///
    /// ```
    /// use tamis::{AnyFilter, Blocked, KeyRule};
    /// let mut seen = AnyFilter::from(Blocked::new(1_000, 0.01)?);
    /// seen.set_rule(KeyRule::EXACT.ignore_case())?;
    /// seen.insert("Key")?;
    /// assert!(seen.contains("KEY"));
    /// assert!(seen.set_rule(KeyRule::EXACT).is_err());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn set_rule(&mut self, rule: KeyRule) -> Result<(), Error> {
        let is_shared = each!(self, f => f.is_shared());
        if rule != *self.hasher().rule() && (is_shared || self.counted() != Some(0)) {
            return Err(Error::Parameter {
                what: "rule for keys",
                expected: "the filter's own rule, because it is shared or holds keys",
                got: rule.to_string(),
            });
        }
        each!(self, f => f.set_rule(rule));
        Ok(())
    }

    /// Adds a key; whether it was new. Fails for kinds that can't take it; the
    /// filter is then as before.
    ///
    /// ```
    /// use tamis::{AnyFilter, Hasher, Kind, Plan};
    /// let plan = Plan::for_rate(Kind::Cuckoo, 1_000, 0.01)?;
    /// let mut seen = AnyFilter::from_plan(&plan, Hasher::default())?;
    /// assert!(seen.insert("key")?);
    /// assert!(!seen.insert("key")?); // not new any more
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[inline]
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        self.insert_hash(self.hasher().hash(key.as_ref()))
    }

    /// [`insert`](Self::insert) for a key that is already hashed.
    #[inline]
    pub fn insert_hash(&mut self, hash: Hash) -> Result<bool, Error> {
        match self {
            Self::Blocked(f) => Ok(f.insert_hash_mut(hash)),
            Self::Bloom(f) => Ok(f.insert_hash_mut(hash)),
            Self::Counting(f) => Ok(f.insert_hash_mut(hash)),
            Self::Cuckoo(f) => f.insert_hash(hash),
            Self::Growing(f) => f.insert_hash(hash),
            Self::Fuse(_) | Self::Ribbon(_) | Self::Cascade(_) => {
                Err(Error::finished(self.kind(), "added to"))
            }
        }
    }

    /// Adds many keys; `new[i]` answers for `keys[i]`. When a kind refuses a
    /// key, those before it are in.
    ///
    /// # Panics
    /// If `new` is not as long as `keys`.
    ///
    /// ```
    /// use tamis::{AnyFilter, Hasher, Kind, Plan};
    /// let plan = Plan::for_rate(Kind::Cuckoo, 1_000, 0.01)?;
    /// let mut seen = AnyFilter::from_plan(&plan, Hasher::default())?;
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
        match self {
            Self::Bloom(f) => f.insert_many(keys, new),
            Self::Blocked(f) => f.insert_many(keys, new),
            Self::Counting(f) => f.insert_many(keys, new),
            Self::Cuckoo(f) => f.insert_many(keys, new)?,
            Self::Growing(f) => f.insert_many(keys, new)?,
            Self::Fuse(_) | Self::Ribbon(_) | Self::Cascade(_) => {
                return Err(Error::finished(self.kind(), "added to"));
            }
        }
        Ok(())
    }

    /// [`insert_many`](Self::insert_many) for keys that are already hashed.
    ///
    /// # Panics
    /// If `new` is not as long as `hashes`.
    pub fn insert_hashes(&mut self, hashes: &[Hash], new: &mut [bool]) -> Result<(), Error> {
        match self {
            Self::Bloom(f) => f.insert_hashes(hashes, new),
            Self::Blocked(f) => f.insert_hashes(hashes, new),
            Self::Counting(f) => f.insert_hashes(hashes, new),
            Self::Cuckoo(f) => f.insert_hashes(hashes, new)?,
            Self::Growing(f) => f.insert_hashes(hashes, new)?,
            Self::Fuse(_) | Self::Ribbon(_) | Self::Cascade(_) => {
                return Err(Error::finished(self.kind(), "added to"));
            }
        }
        Ok(())
    }

    /// Takes back one adding of a key; whether it seemed present. Only for
    /// keys that were added: see [`Counting::remove`](crate::Counting::remove)
    /// and [`Cuckoo::remove`](crate::Cuckoo::remove). Fails for kinds that
    /// can't remove.
    ///
    /// ```
    /// use tamis::{AnyFilter, Hasher, Kind, Plan};
    /// let plan = Plan::for_rate(Kind::Cuckoo, 1_000, 0.01)?;
    /// let mut online = AnyFilter::from_plan(&plan, Hasher::default())?;
    /// online.insert("ada")?;
    /// assert_eq!(online.count("ada")?, 1);
    /// assert!(online.remove("ada")?);
    /// assert!(!online.contains("ada"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn remove(&mut self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        let mut removed = [false];
        let hash = self.hasher().hash(key.as_ref());
        self.remove_hashes(&[hash], &mut removed)?;
        Ok(removed[0])
    }

    /// [`remove`](Self::remove) for many keys that are already hashed;
    /// `removed[i]` answers for `hashes[i]`.
    ///
    /// # Panics
    /// If `removed` is not as long as `hashes`.
    pub fn remove_hashes(&mut self, hashes: &[Hash], removed: &mut [bool]) -> Result<(), Error> {
        match self {
            Self::Counting(f) => f.remove_hashes(hashes, removed),
            Self::Cuckoo(f) => f.remove_hashes(hashes, removed),
            other => return Err(only_with_counts(other.kind(), "removed from")),
        }
        Ok(())
    }

    /// Removes all keys. Fails for static kinds.
    pub fn clear(&mut self) -> Result<(), Error> {
        match self {
            Self::Bloom(f) => f.clear(),
            Self::Blocked(f) => f.clear(),
            Self::Counting(f) => f.clear(),
            Self::Cuckoo(f) => f.clear(),
            Self::Growing(f) => f.clear(),
            Self::Fuse(_) | Self::Ribbon(_) | Self::Cascade(_) => {
                return Err(Error::finished(self.kind(), "cleared"));
            }
        }
        Ok(())
    }

    /// Adds all keys of `other`; see [`Filter::union_with`], and
    /// [`Growing::union_with`], which needs room for the keys of both.
    ///
    /// ```
    /// use tamis::{AnyFilter, Blocked};
    /// let mut a = AnyFilter::from(Blocked::new(1_000, 0.01)?);
    /// let mut b = a.duplicate()?;
    /// b.insert("key")?;
    /// a.union_with(&b)?;
    /// assert!(a.contains("key"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn union_with<C: Body>(&mut self, other: &AnyFilter<C>) -> Result<(), Error> {
        match (self, other) {
            (Self::Growing(ours), AnyFilter::Growing(theirs)) => ours.union_with(theirs),
            (ours, theirs) => both!(ours, theirs, (a, b) => a.union_with(b)),
        }
    }

    /// Keeps the keys of both; see [`Filter::intersect_with`].
    pub fn intersect_with<C: Body>(&mut self, other: &AnyFilter<C>) -> Result<(), Error> {
        both!(self, other, (a, b) => a.intersect_with(b))
    }

    /// Waits until a shared file is on disk; see [`Filter::sync`].
    pub fn sync(&self) -> Result<(), Error> {
        match self {
            Self::Bloom(f) => f.sync(),
            Self::Blocked(f) => f.sync(),
            Self::Counting(f) => f.sync(),
            Self::Growing(f) => f.sync(),
            // These are never shared.
            Self::Cuckoo(_) | Self::Fuse(_) | Self::Ribbon(_) | Self::Cascade(_) => Ok(()),
        }
    }

    /// Lets go of a shared file; see [`Filter::close`].
    pub fn close(self) -> Result<(), Error> {
        match self {
            Self::Bloom(f) => f.close(),
            Self::Blocked(f) => f.close(),
            Self::Counting(f) => f.close(),
            Self::Growing(f) => f.close(),
            Self::Cuckoo(_) | Self::Fuse(_) | Self::Ribbon(_) | Self::Cascade(_) => Ok(()),
        }
    }
}

impl AnyFilter<Map> {
    /// Reads the whole body of a mapped file and compares it with the
    /// checksum in its header. `false` if there is none, because the file was
    /// last written in place.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("seen.tamis");
    /// use tamis::{AnyFilter, Blocked, Open};
    /// Blocked::new(1_000, 0.01)?.save(&path)?;
    /// assert!(AnyFilter::verify(&path, &Open::new())?);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn verify(path: impl AsRef<Path>, open: &Open) -> Result<bool, Error> {
        let open = open.clone().verify(true);
        let (header, map) = store::map(path.as_ref(), open.terms())?;
        // What the body says of itself must be sound, too.
        Self::assemble((header, map))?;
        Ok(header.is_sealed())
    }
}

impl<B: Body> AnyFilter<B> {
    pub(crate) fn assemble(parts: (Header, B)) -> Result<Self, Error> {
        Ok(match parts.0.shape {
            Shape::Bloom(_) => Self::Bloom(Filter::assemble(parts)?),
            Shape::Blocked(_) => Self::Blocked(Filter::assemble(parts)?),
            Shape::Counting(_) => Self::Counting(Filter::assemble(parts)?),
            Shape::Cuckoo(_) => Self::Cuckoo(Filter::assemble(parts)?),
            Shape::Growing(_) => Self::Growing(Growing::assemble(parts)?),
            Shape::Fuse(_) => Self::Fuse(Filter::assemble(parts)?),
            Shape::Ribbon(_) => Self::Ribbon(Filter::assemble(parts)?),
            Shape::Cascade(_) => Self::Cascade(Filter::assemble(parts)?),
        })
    }

    /// What a file of this filter would say of it, but for the body's checksum.
    /// Costs nothing; see [`sealed_header`](Self::sealed_header).
    #[must_use]
    pub fn header(&self) -> Header {
        each!(self, f => f.header())
    }

    /// The words of the body, in the parts that they lie in.
    pub(crate) fn all_words(&self) -> Vec<&[B::Word]> {
        each!(self, f => f.all_words())
    }

    /// A copy on the heap, whoever owns this one.
    ///
    /// ```
    /// use tamis::{AnyFilter, Blocked};
    /// let mut seen = AnyFilter::from(Blocked::new(1_000, 0.01)?);
    /// let before = seen.duplicate()?;
    /// seen.insert("key")?;
    /// assert!(seen.contains("key") && !before.contains("key"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn duplicate(&self) -> Result<AnyFilter, Error> {
        let header = self.header();
        let mut body = Bytes::zeroed(header.body_len())?;
        let theirs = self.all_words().into_iter().flatten();
        for (word, theirs) in body.exclusive().unwrap_or_default().iter_mut().zip(theirs) {
            *word = theirs.get().to_le();
        }
        AnyFilter::assemble((header, body))
    }

    /// Whether both are of one shape, hash alike and hold the same: then they
    /// answer alike on every key. How keys were counted makes no difference.
    ///
    /// ```
    /// use tamis::{AnyFilter, Blocked};
    /// let mut a = AnyFilter::from(Blocked::new(1_000, 0.01)?);
    /// let b = a.duplicate()?;
    /// assert!(a.is_same(&b));
    /// a.insert("key")?;
    /// assert!(!a.is_same(&b));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn is_same<C: Body>(&self, other: &AnyFilter<C>) -> bool {
        let (ours, theirs) = (self.all_words(), other.all_words());
        let theirs = theirs.into_iter().flatten().map(Word::get);
        self.shape() == other.shape()
            && self.hasher().agrees_with(other.hasher())
            && ours.into_iter().flatten().map(Word::get).eq(theirs)
    }

    /// Whether every key of this one may be in `other`. `false` is always right:
    /// this one holds a key that `other` does not. `true` is wrong about as
    /// often as `other` is on all keys that it does not hold. Fails when the two
    /// are unlike, and for kinds that have no bit a key would set in both.
    ///
    /// ```
    /// use tamis::{AnyFilter, Blocked};
    /// let mut a = AnyFilter::from(Blocked::new(1_000, 0.01)?);
    /// let b = a.duplicate()?;
    /// assert!(a.is_subset_of(&b)?);
    /// a.insert("key")?;
    /// assert!(!a.is_subset_of(&b)? && b.is_subset_of(&a)?);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn is_subset_of<C: Body>(&self, other: &AnyFilter<C>) -> Result<bool, Error> {
        match (self, other) {
            (Self::Bloom(a), AnyFilter::Bloom(b)) => a.is_subset_of(b),
            (Self::Blocked(a), AnyFilter::Blocked(b)) => a.is_subset_of(b),
            (Self::Counting(a), AnyFilter::Counting(b)) => {
                a.check_like(b)?;
                a.to_blocked()?.is_subset_of(&b.to_blocked()?)
            }
            (ours, theirs) if ours.kind() == theirs.kind() => Err(Error::Unable {
                kind: ours.kind(),
                what: "compared as sets",
                instead: "only blocked, Bloom and counting filters of the same shape can be",
            }),
            (ours, theirs) => Err(Error::Unlike {
                what: "the kind",
                ours: ours.kind().to_string(),
                theirs: theirs.kind().to_string(),
            }),
        }
    }

    /// Which kind it is.
    #[inline]
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Bloom(_) => Kind::Bloom,
            Self::Blocked(_) => Kind::Blocked,
            Self::Counting(_) => Kind::Counting,
            Self::Cuckoo(_) => Kind::Cuckoo,
            Self::Growing(_) => Kind::Growing,
            Self::Fuse(_) => Kind::Fuse,
            Self::Ribbon(_) => Kind::Ribbon,
            Self::Cascade(_) => Kind::Cascade,
        }
    }

    /// The geometry.
    #[must_use]
    pub fn shape(&self) -> Shape {
        each!(self, f => (*f.shape()).into())
    }

    /// Whether the key may have been added; see [`Filter::contains`].
    ///
    /// ```
    /// use tamis::{AnyFilter, Blocked};
    /// let mut seen = AnyFilter::from(Blocked::new(1_000, 0.01)?);
    /// seen.insert("apple")?;
    /// assert!(seen.contains("apple"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        each!(self, f => f.contains(key))
    }

    /// Asks a key that is already hashed; see [`Filter::contains_hash`].
    #[inline]
    #[must_use]
    pub fn contains_hash(&self, hash: Hash) -> bool {
        each!(self, f => f.contains_hash(hash))
    }

    /// Asks many keys; see [`Filter::contains_many`].
    ///
    /// # Panics
    /// If `out` is not as long as `keys`.
    pub fn contains_many<K: AsRef<[u8]>>(&self, keys: &[K], out: &mut [bool]) {
        each!(self, f => f.contains_many(keys, out))
    }

    /// Asks many hashed keys; see [`Filter::contains_hashes`].
    ///
    /// # Panics
    /// If `out` is not as long as `hashes`.
    pub fn contains_hashes(&self, hashes: &[Hash], out: &mut [bool]) {
        each!(self, f => f.contains_hashes(hashes, out))
    }

    /// How often a key was added, at most; see
    /// [`Counting::count`](crate::Counting::count) and
    /// [`Cuckoo::count`](crate::Cuckoo::count). Fails for kinds that don't
    /// count.
    ///
    /// ```
    /// use tamis::{AnyFilter, Counting};
    /// let mut seen = AnyFilter::from(Counting::new(1_000, 0.01)?);
    /// seen.insert("apple")?;
    /// seen.insert("apple")?;
    /// assert_eq!(seen.count("apple")?, 2);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn count(&self, key: impl AsRef<[u8]>) -> Result<u64, Error> {
        let mut count = [0];
        self.count_hashes(&[self.hasher().hash(key.as_ref())], &mut count)?;
        Ok(count[0])
    }

    /// [`count`](Self::count) for many keys that are already hashed.
    ///
    /// # Panics
    /// If `counts` is not as long as `hashes`.
    pub fn count_hashes(&self, hashes: &[Hash], counts: &mut [u64]) -> Result<(), Error> {
        assert_eq!(hashes.len(), counts.len(), "one answer for each key");
        let each = hashes.iter().zip(counts);
        match self {
            Self::Counting(f) => each.for_each(|(hash, count)| *count = f.count_hash(*hash)),
            Self::Cuckoo(f) => each.for_each(|(hash, count)| *count = f.count_hash(*hash)),
            other => {
                return Err(only_with_counts(
                    other.kind(),
                    "asked how often a key was added",
                ));
            }
        }
        Ok(())
    }

    /// The blocked filter that the keys of a counting filter would have built;
    /// see [`Counting::to_blocked`]. Fails for the other kinds.
    ///
    /// ```
    /// use tamis::{AnyFilter, Blocked, Counting};
    /// let counting = AnyFilter::from(Counting::new(1_000, 0.01)?);
    /// assert_eq!(counting.to_blocked()?.bytes() * 4, counting.bytes());
    /// assert!(AnyFilter::from(Blocked::new(1_000, 0.01)?).to_blocked().is_err());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn to_blocked(&self) -> Result<Blocked, Error> {
        match self {
            Self::Counting(counting) => counting.to_blocked(),
            other => Err(Error::Unable {
                kind: other.kind(),
                what: "made a blocked filter",
                instead: "only a counting filter has a counter for each of its bits; add the keys \
                          to a new filter",
            }),
        }
    }

    /// How keys are hashed.
    #[inline]
    #[must_use]
    pub const fn hasher(&self) -> &Hasher {
        each!(self, f => f.hasher())
    }

    /// The number of keys it is made for.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        each!(self, f => f.capacity())
    }

    /// The promised rate.
    #[must_use]
    pub const fn rate(&self) -> f64 {
        each!(self, f => f.rate())
    }

    /// The expected rate now; see [`Filter::rate_now`].
    #[must_use]
    pub fn rate_now(&self) -> f64 {
        each!(self, f => f.rate_now())
    }

    /// How many keys were wrongly told "not new"; see [`Filter::expected_wrong`].
    #[must_use]
    pub fn expected_wrong(&self) -> f64 {
        each!(self, f => f.expected_wrong())
    }

    /// The number of distinct keys; see [`Filter::keys`].
    #[must_use]
    pub fn keys(&self) -> KeyCount {
        each!(self, f => f.keys())
    }

    /// The number of distinct keys if it was counted, and nothing that takes
    /// time if not.
    ///
    /// ```
    /// use tamis::{AnyFilter, Blocked};
    /// let mut a = AnyFilter::from(Blocked::new(1_000, 0.01)?);
    /// assert_eq!(a.counted(), Some(0));
    /// a.union_with(&a.duplicate()?)?;
    /// assert_eq!(a.counted(), None);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn counted(&self) -> Option<u64> {
        let keys = each!(self, f => f.header().state.keys);
        (keys != KEYS_UNKNOWN).then_some(keys)
    }

    /// The estimated number of distinct keys; see [`Filter::estimated_keys`].
    #[must_use]
    pub fn estimated_keys(&self) -> u64 {
        each!(self, f => f.estimated_keys())
    }

    /// The body's size in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        each!(self, f => f.bytes())
    }
}

/// A filter of a kind is a filter of any, and one of any may be of the kind.
macro_rules! conversions {
    ($($kind:ident),*) => {$(
        impl<B> From<$kind<B>> for AnyFilter<B> {
            fn from(filter: $kind<B>) -> Self {
                Self::$kind(filter)
            }
        }

        impl<B: Body> TryFrom<AnyFilter<B>> for $kind<B> {
            type Error = Error;

            fn try_from(any: AnyFilter<B>) -> Result<Self, Error> {
                match any {
                    AnyFilter::$kind(filter) => Ok(filter),
                    other => Err(Error::WrongKind {
                        expected: Kind::$kind,
                        got: other.kind(),
                    }),
                }
            }
        }
    )*};
}

conversions!(
    Bloom, Blocked, Counting, Cuckoo, Growing, Fuse, Ribbon, Cascade
);

fn only_with_counts(kind: Kind, what: &'static str) -> Error {
    Error::Unable {
        kind,
        what,
        instead: "their bits are shared by many keys; use a cuckoo or a counting filter",
    }
}
