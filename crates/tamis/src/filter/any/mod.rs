//! A filter whose kind is known at run time.

mod change;

use crate::error::Error;
use crate::filter::counting::Counting;
use crate::filter::cuckoo::Cuckoo;
use crate::filter::growing::Growing;
use crate::filter::keys::KeyCount;
use crate::filter::kinds::{Blocked, Bloom, Cascade, Fuse, Ribbon};
use crate::filter::shell::Filter;
use crate::filter::window::Window;
use crate::hasher::Hasher;
use crate::key::Key;
use crate::kind::Kind;
use crate::moment::Moment;
use crate::plan::Plan;
use crate::raw::explain::Explanation;
use crate::raw::header::{Header, KEYS_UNKNOWN};
use crate::raw::shape::Shape;
use crate::raw::window::When;
use crate::raw::word::Word;
use crate::store::body::{Body, Bytes};

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
    /// See [`Window`].
    Window(Window<B>),
}

/// Runs an expression for the kinds that have an ability, and another for the rest, so that each
/// list of kinds is in one place.
macro_rules! on {
    ($any:expr, $([$($kind:ident),+] $filter:ident => $run:expr,)+ $(else $other:ident => $refuse:expr)?) => {
        match $any {
            $($(AnyFilter::$kind($filter) => $run,)+)+
            $($other => $refuse,)?
        }
    };
}

/// Runs the same expression for the filter of every kind.
macro_rules! each {
    ($any:expr, $filter:ident => $run:expr) => {
        on!($any, [Bloom, Blocked, Counting, Cuckoo, Growing, Fuse, Ribbon, Cascade, Window] $filter => $run,)
    };
}

/// Runs an expression for two filters of the same kind, if it has an ability. Otherwise `$refuse`
/// makes the error.
macro_rules! both {
    ($ours:expr, $theirs:expr, [$($kind:ident),+] ($a:ident, $b:ident) => $run:expr, else $refuse:expr) => {
        match ($ours, $theirs) {
            $((AnyFilter::$kind($a), AnyFilter::$kind($b)) => $run,)+
            (ours, theirs) if ours.kind() == theirs.kind() => Err($refuse(ours.kind())),
            (ours, theirs) => Err(Error::Unlike {
                what: "the kind",
                ours: ours.kind().to_string(),
                theirs: theirs.kind().to_string(),
            }),
        }
    };
}

use {both, each, on};

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
            Shape::Window(_) => Self::Window(Filter::assemble(parts)?),
        })
    }

    /// The header of this filter's file, except for the body's checksum. Costs
    /// nothing; see [`sealed_header`](Self::sealed_header).
    #[must_use]
    #[doc(hidden)]
    pub fn header(&self) -> Header {
        each!(self, f => f.header())
    }

    /// The words of the body, one slice for each of its parts.
    pub(crate) fn all_words(&self) -> Vec<&[B::Word]> {
        each!(self, f => f.all_words())
    }

    /// A copy on the heap.
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

    /// Whether both have the same shape, hash and content, so they give the same answer for every
    /// key. Counts may differ.
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
    #[doc(hidden)]
    pub fn is_same<C: Body>(&self, other: &AnyFilter<C>) -> bool {
        let (ours, theirs) = (self.all_words(), other.all_words());
        let theirs = theirs.into_iter().flatten().map(Word::get);
        self.shape() == other.shape()
            && self.hasher().agrees_with(other.hasher())
            && ours.into_iter().flatten().map(Word::get).eq(theirs)
    }

    /// Whether every key of this filter may be in `other`. `false` is always right: this one holds
    /// a key that `other` doesn't. `true` is wrong about as often as `other` is on all keys that it
    /// doesn't hold. Fails if the two are unlike, and for kinds in which a key doesn't set the same
    /// bits in both.
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
    #[doc(hidden)]
    pub fn is_subset_of<C: Body>(&self, other: &AnyFilter<C>) -> Result<bool, Error> {
        if let (Self::Counting(a), AnyFilter::Counting(b)) = (self, other) {
            a.check_like(b)?;
            return a.to_blocked()?.is_subset_of(&b.to_blocked()?);
        }
        both!(self, other, [Bloom, Blocked] (a, b) => a.is_subset_of(b), else |kind| Error::Unable {
            kind,
            what: "compared as sets",
            instead: "only blocked, Bloom and counting filters of the same shape can be",
        })
    }

    /// Its kind.
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
            Self::Window(_) => Kind::Window,
        }
    }

    /// The geometry.
    #[must_use]
    #[doc(hidden)]
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
    pub fn contains(&self, key: impl Key) -> bool {
        on!(self,
            [Bloom, Blocked, Counting, Cuckoo, Fuse, Ribbon, Cascade, Window] f => f.holds(&key),
            [Growing] f => f.contains(key),
        )
    }

    /// Why the filter answers as it does for a key: what it reads, and what it finds there. The
    /// verdict is that of [`contains`](Self::contains).
    ///
    /// ```
    /// use tamis::{AnyFilter, Blocked};
    /// let mut seen = AnyFilter::from(Blocked::new(1_000, 0.01)?);
    /// seen.insert("apple")?;
    /// assert!(seen.explain("apple").is_maybe());
    /// assert!(!seen.explain("pear").is_maybe());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[doc(hidden)]
    #[must_use]
    pub fn explain(&self, key: impl Key) -> Explanation {
        each!(self, f => f.explain(key))
    }

    /// [`explain`](Self::explain) at a moment. Only a [`Window`] uses it.
    #[doc(hidden)]
    #[must_use]
    pub fn explain_at(&self, key: impl Key, at: Moment) -> Explanation {
        match self {
            Self::Window(window) => window.explain_at(key, at),
            other => other.explain(key),
        }
    }

    /// Looks up many keys; see [`Filter::contains_many`].
    ///
    /// # Panics
    /// If `found` is not as long as `keys`.
    pub fn contains_many<K: Key>(&self, keys: &[K], found: &mut [bool]) {
        on!(self,
            [Bloom, Blocked, Counting, Cuckoo, Fuse, Ribbon, Cascade, Window] f => f.holds_many(keys, found),
            [Growing] f => f.contains_many(keys, found),
        )
    }

    /// [`contains`](Self::contains) at a moment. Only a [`Window`] uses it.
    #[must_use]
    pub fn contains_at(&self, key: impl Key, at: Moment) -> bool {
        match self {
            Self::Window(window) => window.contains(key, at),
            other => other.contains(key),
        }
    }

    /// [`contains_many`](Self::contains_many) at a moment, one for all or one for each ([`When`]).
    /// Only a [`Window`] uses it.
    ///
    /// # Panics
    /// If `found`, or the moments of a window, don't match the number of keys.
    pub fn contains_many_at<'t, K: Key>(
        &self,
        keys: &[K],
        at: impl Into<When<'t>>,
        found: &mut [bool],
    ) {
        match self {
            Self::Window(window) => window.contains_many(keys, at, found),
            other => other.contains_many(keys, found),
        }
    }

    /// An upper bound on how often a key was added; see [`Counting::count`](crate::Counting::count)
    /// and [`Cuckoo::count`](crate::Cuckoo::count). Fails for kinds that don't count.
    ///
    /// ```
    /// use tamis::{AnyFilter, Counting};
    /// let mut seen = AnyFilter::from(Counting::new(1_000, 0.01)?);
    /// seen.insert("apple")?;
    /// seen.insert("apple")?;
    /// assert_eq!(seen.count("apple")?, 2);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn count(&self, key: impl Key) -> Result<u64, Error> {
        on!(self,
            [Counting, Cuckoo] f => Ok(f.count(key)),
            else other => Err(only_with_counts(other.kind(), "asked how often a key was added"))
        )
    }

    /// [`count`](Self::count) for many keys; `counts[i]` is the answer for `keys[i]`.
    ///
    /// # Panics
    /// If `counts` is not as long as `keys`.
    pub fn count_many<K: Key>(&self, keys: &[K], counts: &mut [u64]) -> Result<(), Error> {
        assert_eq!(keys.len(), counts.len(), "one answer for each key");
        let hasher = self.hasher();
        let each = keys.iter().map(|key| key.key_hash(hasher)).zip(counts);
        on!(self,
            [Counting, Cuckoo] f => each.for_each(|(hash, count)| *count = f.count(hash)),
            else other => return Err(only_with_counts(other.kind(), "asked how often a key was added"))
        );
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

    /// The expected number of keys that wrongly got "not new"; see [`Filter::expected_wrong`].
    #[must_use]
    #[doc(hidden)]
    pub fn expected_wrong(&self) -> f64 {
        each!(self, f => f.expected_wrong())
    }

    /// The number of distinct keys; see [`Filter::keys`].
    #[must_use]
    pub fn keys(&self) -> KeyCount {
        each!(self, f => f.keys())
    }

    /// The number of distinct keys if it was counted. Doesn't estimate, which takes time.
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
    #[doc(hidden)]
    pub fn estimated_keys(&self) -> u64 {
        each!(self, f => f.estimated_keys())
    }

    /// A better number than [`keys`](Self::keys) if that is known to be too low. New keys that
    /// seemed present weren't counted, and beyond the capacity or at a high rate there are many.
    /// Estimated from the bits that are set. `None` if the count is good enough, or there is none.
    ///
    /// ```
    /// use tamis::{AnyFilter, Blocked};
    /// let mut seen = AnyFilter::from(Blocked::new(1_000, 0.01)?);
    /// for i in 0..1_000u64 { seen.insert(i.to_le_bytes())?; }
    /// assert_eq!(seen.undercounted(), None);
    /// for i in 1_000..5_000u64 { seen.insert(i.to_le_bytes())?; }
    /// assert!(seen.keys().get() < 4_500);
    /// assert!((4_800..5_200).contains(&seen.undercounted().unwrap()));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    #[doc(hidden)]
    pub fn undercounted(&self) -> Option<u64> {
        let keys = self.counted().filter(|keys| *keys > 0)?;
        // Other kinds count what they store.
        let counts_new = matches!(
            self.kind(),
            Kind::Bloom | Kind::Blocked | Kind::Counting | Kind::Growing
        );
        let many = || self.expected_wrong() > keys as f64 / 100.0;
        (counts_new && (keys > self.capacity() || many())).then(|| self.estimated_keys().max(keys))
    }

    /// The body's size in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        each!(self, f => f.bytes())
    }
}

/// Converts filters of one kind to `AnyFilter`, and back if the kind matches.
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
    Bloom, Blocked, Counting, Cuckoo, Growing, Fuse, Ribbon, Cascade, Window
);

/// Checks that this kind can start empty and take keys later.
pub(super) fn check_creatable(kind: Kind) -> Result<(), Error> {
    if !kind.is_static() {
        return Ok(());
    }
    Err(Error::Unable {
        kind,
        what: "created empty",
        instead: "build it from all its keys at once, or create a blocked filter",
    })
}

fn only_with_counts(kind: Kind, what: &'static str) -> Error {
    Error::Unable {
        kind,
        what,
        instead: "their bits are shared by many keys; use a cuckoo or a counting filter",
    }
}
