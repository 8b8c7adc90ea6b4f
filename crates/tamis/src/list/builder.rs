//! The builder for finished lists.

mod building;

use crate::error::Error;
use crate::filter::kinds::{Cascade, Fuse, Ribbon};
use crate::hash::Hash;
use crate::hasher::{Hasher, SecretKey};
use crate::key::Key;
use crate::kind::Kind;
use crate::list::keyset::Collector;
use crate::list::lists::{Both, checked};
use crate::plan;
#[cfg(feature = "files")]
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Builds a finished list: a filter of a static [`Kind`], from all its keys at once.
///
/// The filter depends only on the set of keys, not on their order, duplicates, threads or the
/// available memory.
///
/// ```
/// use tamis::{Kind, KeyCount, ListBuilder};
/// let mut list = ListBuilder::new(Kind::Fuse, 0.001)?;
/// for key in ["apple", "pear", "apple"] { list.add(key)?; }
/// let fruit = list.build()?;
/// assert!(fruit.contains("apple") && fruit.contains("pear"));
/// assert_eq!(fruit.keys(), KeyCount::Counted(2));
/// # Ok::<(), tamis::Error>(())
/// ```
///
/// Lists that don't fit in memory are sorted on disk, 16 bytes per key:
///
/// ```no_run
/// # use tamis::{Kind, ListBuilder};
/// # let keys = ["key"];
/// let mut list = ListBuilder::new(Kind::Ribbon, 0.01)?.memory(1 << 30).temp_dir("/var/tmp");
/// list.add_all(keys)?;
/// list.build()?.save("list.tamis")?;
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "builds nothing until `build`"]
pub struct ListBuilder {
    kind: Kind,
    rate: f64,
    width: u32,
    hasher: Hasher,
    memory: u64,
    #[cfg(feature = "files")]
    temp_dir: PathBuf,
    threads: usize,
    both: Both,
    done: Arc<AtomicU64>,
    /// For a cascade: distinguishes different keys with the same hash.
    check: Option<SecretKey>,
    block: Option<Keys>,
    allow: Option<Keys>,
}

/// The keys of one list: their hashes, and second hashes to check them.
#[derive(Debug)]
struct Keys {
    hashes: Collector,
    checks: Collector,
}

impl ListBuilder {
    /// A list of a static kind: [`Kind::Fuse`], [`Kind::Ribbon`] or
    /// [`Kind::Cascade`].
    ///
    /// ```
    /// use tamis::{Kind, ListBuilder};
    /// assert!(ListBuilder::new(Kind::Ribbon, 0.01).is_ok());
    /// assert!(ListBuilder::new(Kind::Blocked, 0.01).is_err()); // not a static kind
    /// ```
    pub fn new(kind: Kind, rate: f64) -> Result<Self, Error> {
        Self::with_hasher(kind, rate, Hasher::default())
    }

    /// A list whose keys are hashed by `hasher`. A builder's hasher never changes, so all keys are
    /// hashed alike.
    ///
    /// ```
    /// use tamis::{Hasher, Kind, ListBuilder, SecretKey};
    /// let hasher = Hasher::keyed(SecretKey::random()?);
    /// let mut list = ListBuilder::with_hasher(Kind::Fuse, 0.001, hasher)?;
    /// list.add("apple")?;
    /// assert!(list.build()?.contains("apple"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    ///
    /// A cascade under a hash without a secret needs the feature `random`; see
    /// [`checker`](Self::checker).
    pub fn with_hasher(kind: Kind, rate: f64, hasher: Hasher) -> Result<Self, Error> {
        if !kind.is_static() {
            return Err(Error::Unable {
                kind,
                what: "built from a finished list",
                instead: "create one and add the keys",
            });
        }
        Ok(Self {
            kind,
            rate,
            width: plan::width_for_rate(rate)?,
            check: Self::check_secret(kind, &hasher)?,
            hasher,
            memory: u64::MAX,
            #[cfg(feature = "files")]
            temp_dir: std::env::temp_dir(),
            threads: std::thread::available_parallelism().map_or(1, |n| n.get()),
            both: Both::default(),
            done: Arc::default(),
            block: None,
            allow: None,
        })
    }

    fn check_secret(kind: Kind, hasher: &Hasher) -> Result<Option<SecretKey>, Error> {
        if kind != Kind::Cascade || matches!(hasher, Hasher::Keyed { .. }) {
            return Ok(None);
        }
        #[cfg(feature = "random")]
        return SecretKey::random().map(Some);
        #[cfg(not(feature = "random"))]
        Err(Error::Feature {
            feature: "random",
            what: "is a cascade under a hash without a secret",
        })
    }

    /// Sets an approximate memory limit in bytes; further hashes go to a temporary file, if the feature
    /// `files` is on. The filter itself, and about 400 MB to build a part of a large one, come on top. By
    /// default there is no limit.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// The folder for temporary files; the system's by default.
    #[cfg(feature = "files")]
    pub fn temp_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.temp_dir = dir.into();
        self
    }

    /// The number of threads; one per core by default.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// For a cascade: blocks a key on both lists and drops it from the allow list. By default such
    /// a key is an error.
    pub fn block_wins(self) -> Self {
        self.both(Both::Block)
    }

    /// For a cascade: allows a key on both lists and drops it from the block list. By default such
    /// a key is an error.
    ///
    /// ```
    /// use tamis::{Kind, ListBuilder};
    /// let mut list = ListBuilder::new(Kind::Cascade, 0.01)?.allow_wins();
    /// list.add("mail.example")?;
    /// list.allow("mail.example")?;
    /// assert!(!list.build()?.contains("mail.example"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn allow_wins(self) -> Self {
        self.both(Both::Allow)
    }

    /// For a cascade: which list wins if a key is on both.
    #[doc(hidden)]
    pub fn both(mut self, both: Both) -> Self {
        self.both = both;
        self
    }

    /// Counts the keys that [`build`](Self::build) has put into the filter, for a progress bar. The
    /// keys of a cascade count twice.
    pub fn progress(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.done)
    }

    /// Adds a key to the list.
    pub fn add(&mut self, key: impl Key) -> Result<(), Error> {
        self.add_all([key])
    }

    /// Adds keys to the list.
    ///
    /// ```
    /// use tamis::{Kind, ListBuilder};
    /// let mut list = ListBuilder::new(Kind::Ribbon, 0.01)?;
    /// list.add_all(["apple", "pear"])?;
    /// assert!(list.build()?.contains("pear"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn add_all<K: Key>(&mut self, keys: impl IntoIterator<Item = K>) -> Result<(), Error> {
        let hashers = (self.hasher, self.checker());
        in_blocks(keys, hashers, |hashes, checks| {
            self.put(List::Block, hashes, checks)
        })
    }

    /// Adds keys that are already hashed. A cascade doesn't notice different keys with the same
    /// hash: see [`add_checked`](Self::add_checked).
    #[doc(hidden)]
    pub fn add_hashes(&mut self, hashes: &[Hash]) -> Result<(), Error> {
        self.put(List::Block, hashes, &[])
    }

    /// Adds keys that are already hashed, by the list's hasher and by its
    /// [`checker`](Self::checker).
    ///
    /// # Panics
    /// If there are more or fewer checks than hashes.
    #[doc(hidden)]
    pub fn add_checked(&mut self, hashes: &[Hash], checks: &[Hash]) -> Result<(), Error> {
        assert_eq!(hashes.len(), checks.len(), "one check for each hash");
        self.put(List::Block, hashes, checks)
    }

    /// For a cascade: adds a key to the allow list.
    pub fn allow(&mut self, key: impl Key) -> Result<(), Error> {
        self.allow_all([key])
    }

    /// For a cascade: adds keys to the allow list.
    ///
    /// ```
    /// use tamis::{Kind, ListBuilder};
    /// let mut list = ListBuilder::new(Kind::Cascade, 0.01)?;
    /// list.add_all(["spam.example"])?;
    /// list.allow_all(["mail.example", "news.example"])?;
    /// let list = list.build()?;
    /// assert!(list.contains("spam.example") && !list.contains("mail.example"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn allow_all<K: Key>(&mut self, keys: impl IntoIterator<Item = K>) -> Result<(), Error> {
        let hashers = (self.hasher, self.checker());
        in_blocks(keys, hashers, |hashes, checks| {
            self.put(List::Allow, hashes, checks)
        })
    }

    /// For a cascade: adds keys that are already hashed to the allow list; see
    /// [`add_hashes`](Self::add_hashes).
    #[doc(hidden)]
    pub fn allow_hashes(&mut self, hashes: &[Hash]) -> Result<(), Error> {
        self.put(List::Allow, hashes, &[])
    }

    /// For a cascade: adds keys that are already hashed, by the list's hasher
    /// and by its [`checker`](Self::checker), to the allow list.
    ///
    /// # Panics
    /// If there are more or fewer checks than hashes.
    #[doc(hidden)]
    pub fn allow_checked(&mut self, hashes: &[Hash], checks: &[Hash]) -> Result<(), Error> {
        assert_eq!(hashes.len(), checks.len(), "one check for each hash");
        self.put(List::Allow, hashes, checks)
    }

    /// A second hash of a cascade's keys, under a secret of this builder. With it, two different
    /// keys with the same hash, one on each list, are an [`Error::Collision`], because the filter
    /// would have to be wrong about one of them. `None` with a keyed hasher, for which nobody can
    /// choose such keys, and for a single list, where "yes" is right for both.
    ///
    /// ```
    /// use tamis::{Kind, ListBuilder};
    /// let mut list = ListBuilder::new(Kind::Cascade, 0.01)?;
    /// let checker = list.checker().unwrap();
    /// let hasher = tamis::Hasher::default();
    /// list.add_checked(&[hasher.hash(b"key")], &[checker.hash(b"key")])?;
    /// assert!(list.build()?.contains("key"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[doc(hidden)]
    pub const fn checker(&self) -> Option<Hasher> {
        match (&self.hasher, self.check) {
            (Hasher::Fast { rule, .. }, Some(secret)) => {
                Some(Hasher::keyed_apart(secret).with_rule(*rule))
            }
            _ => None,
        }
    }

    fn put(&mut self, list: List, hashes: &[Hash], checks: &[Hash]) -> Result<(), Error> {
        if matches!(list, List::Allow) && self.kind != Kind::Cascade {
            return Err(Error::Unable {
                kind: self.kind,
                what: "built with an allow list",
                instead: "build a cascade",
            });
        }
        let taken = match list {
            List::Block => self.block.take(),
            List::Allow => self.allow.take(),
        };
        let keys = taken.unwrap_or_else(|| self.no_keys());
        let keys = match list {
            List::Block => self.block.insert(keys),
            List::Allow => self.allow.insert(keys),
        };
        keys.hashes.add(hashes)?;
        let checks = hashes.iter().zip(checks);
        let checks: Vec<Hash> = checks.map(|(hash, check)| checked(*hash, *check)).collect();
        keys.checks.add(&checks)
    }

    fn no_keys(&self) -> Keys {
        #[cfg(feature = "files")]
        let sets = match (self.kind, self.checker()) {
            (Kind::Cascade, Some(_)) => 4,
            (Kind::Cascade, None) => 2,
            _ => 1,
        };
        #[cfg(feature = "files")]
        let set = || Collector::spilling(self.memory / sets, &self.temp_dir, self.threads);
        #[cfg(not(feature = "files"))]
        let set = || Collector::new(self.threads);
        Keys {
            hashes: set(),
            checks: set(),
        }
    }
}

impl Fuse {
    /// The filter of these keys. Duplicates are fine: it depends only on the set of keys. Uses all
    /// cores. For lists larger than memory, see [`ListBuilder`].
    ///
    /// ```
    /// use tamis::{Fuse, Hasher};
    /// let lines = std::fs::read_to_string("Cargo.toml").unwrap();
    /// let known = Fuse::build(lines.lines(), 0.001, Hasher::default())?;
    /// assert!(known.contains("[package]"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn build<K: Key>(
        keys: impl IntoIterator<Item = K>,
        rate: f64,
        hasher: Hasher,
    ) -> Result<Self, Error> {
        let mut list = ListBuilder::with_hasher(Kind::Fuse, rate, hasher)?;
        list.add_all(keys)?;
        list.build()?.try_into()
    }
}

impl Ribbon {
    /// The filter of these keys. Duplicates are fine: it depends only on the set
    /// of keys. Uses all cores. For lists larger than memory, see
    /// [`ListBuilder`].
    ///
    /// ```
    /// use tamis::{Ribbon, Hasher};
    /// let lines = std::fs::read_to_string("Cargo.toml").unwrap();
    /// let known = Ribbon::build(lines.lines(), 0.001, Hasher::default())?;
    /// assert!(known.contains("[package]"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn build<K: Key>(
        keys: impl IntoIterator<Item = K>,
        rate: f64,
        hasher: Hasher,
    ) -> Result<Self, Error> {
        let mut list = ListBuilder::with_hasher(Kind::Ribbon, rate, hasher)?;
        list.add_all(keys)?;
        list.build()?.try_into()
    }
}

impl Cascade {
    /// The filter that contains all keys of `block` and none of `allow`, and any other key with
    /// probability `rate` at most. A key on both lists is an error; [`ListBuilder::allow_wins`]
    /// lets one list win instead.
    ///
    /// ```
    /// use tamis::{Cascade, Hasher};
    /// let list = Cascade::build(["spam.example"], ["mail.example"], 0.01, Hasher::default())?;
    /// assert!(list.contains("spam.example") && !list.contains("mail.example"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn build<K: Key, A: Key>(
        block: impl IntoIterator<Item = K>,
        allow: impl IntoIterator<Item = A>,
        rate: f64,
        hasher: Hasher,
    ) -> Result<Self, Error> {
        let mut list = ListBuilder::with_hasher(Kind::Cascade, rate, hasher)?;
        list.add_all(block)?;
        list.allow_all(allow)?;
        list.build()?.try_into()
    }
}

fn in_blocks<K: Key>(
    keys: impl IntoIterator<Item = K>,
    (hasher, checker): (Hasher, Option<Hasher>),
    mut add: impl FnMut(&[Hash], &[Hash]) -> Result<(), Error>,
) -> Result<(), Error> {
    const BLOCK: usize = 1024;
    let (mut hashes, mut checks) = (Vec::new(), Vec::new());
    // A hash doesn't identify the key behind it.
    let checker = checker.filter(|_| !K::is_hashed());
    for key in keys {
        hashes.push(key.key_hash(&hasher));
        checks.extend(checker.map(|checker| key.key_hash(&checker)));
        if hashes.len() == BLOCK {
            add(&hashes, &checks)?;
            hashes.clear();
            checks.clear();
        }
    }
    add(&hashes, &checks)
}

/// One of the two lists of a cascade; other kinds have only the first.
#[derive(Clone, Copy)]
enum List {
    Block,
    Allow,
}
