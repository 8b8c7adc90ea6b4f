//! A filter in front of a slow store, to skip look-ups of absent keys.

use crate::error::Error;
use crate::filter::any::AnyFilter;
use crate::hash::Hash;
use crate::hasher::Hasher;
use crate::key::Key;
use crate::store::body::{Body, Bytes};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

/// False alarms that a guard remembers by default; about 4 MB when full.
const REMEMBERED: usize = 1 << 16;
/// Makes it rare for threads with different keys to wait for each other.
const SHARDS: usize = 16;

/// Stands in front of a slow store (a database, a disk, a network) and answers for keys that the
/// store doesn't have.
///
/// The filter holds the store's keys, and keys that it doesn't contain are not looked up. When it
/// says "maybe" but the store has no such key, the guard remembers this false alarm, exactly and
/// for a bounded number of keys, so the same key costs nothing the next time. Repeating one unlucky
/// key doesn't reach the store either.
///
/// Works with filters of every kind, from many threads at once.
///
/// ```
/// use std::collections::HashMap;
/// use tamis::{Blocked, guard::Guard};
///
/// let store = HashMap::from([("ada", 36), ("alan", 41)]); // imagine it slow
/// let filter = Blocked::new(1_000, 0.01)?;
/// for name in store.keys() { filter.insert(name); }
///
/// let guard = Guard::new(filter);
/// let age = |name: &str| guard.get(name, || Ok::<_, String>(store.get(name).copied()));
/// assert_eq!(age("ada"), Ok(Some(36)));
/// assert_eq!(age("bob"), Ok(None)); // and the store was not asked
/// assert_eq!(guard.counts().skipped, 1);
/// # Ok::<(), tamis::Error>(())
/// ```
///
/// # Keys that come later
/// When you add a key to the store, call [`insert`](Self::insert) once the store has it. If others
/// write to the store and to a filter file that this guard shares, a remembered alarm could become
/// a false "no" for one of their new keys. Then create the guard with
/// [`remembering`](Self::remembering) 0 keys, or call [`forget`](Self::forget).
pub struct Guard<B = Bytes> {
    filter: RwLock<AnyFilter<B>>,
    hasher: Hasher,
    alarms: FalseAlarms,
}

/// The memory of a [`Guard`], for a filter that lives elsewhere: keys that the filter may hold but
/// the store doesn't, and counters.
///
/// ```
/// use tamis::{Blocked, internals::FalseAlarms};
/// let filter = Blocked::new(1_000, 0.01)?;
/// let alarms = FalseAlarms::remembering(100);
/// let hash = filter.hasher().hash(b"bob");
/// let absent = || Ok::<Option<u32>, ()>(None);
/// assert_eq!(alarms.get(hash, || filter.contains(hash), absent), Ok(None));
/// assert_eq!(alarms.counts().skipped, 1);
/// # Ok::<(), tamis::Error>(())
/// ```
#[doc(hidden)]
pub struct FalseAlarms {
    shards: [Mutex<Absent>; SHARDS],
    asked: AtomicU64,
    skipped: AtomicU64,
    remembered: AtomicU64,
    false_alarms: AtomicU64,
}

/// A [`Guard`]'s counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GuardCounts {
    /// Keys asked for.
    pub asked: u64,
    /// Keys that were not looked up because the filter said no.
    pub skipped: u64,
    /// Keys that were not looked up because they were known false alarms.
    pub remembered: u64,
    /// Keys that were looked up, because the filter said maybe, and not found.
    pub false_alarms: u64,
}

impl GuardCounts {
    /// Keys that reached the store.
    pub const fn loaded(&self) -> u64 {
        self.asked - self.skipped - self.remembered
    }
}

impl<B: Body> Guard<B> {
    /// A guard with this filter, of any kind, which must hold all keys of the store. It remembers
    /// 65,536 false alarms.
    ///
    /// ```
    /// use tamis::{Growing, guard::Guard};
    /// let guard = Guard::new(Growing::new(1_000, 0.01)?);
    /// guard.insert("ada")?; // once the store has it
    /// assert_eq!(guard.get("ada", || Ok::<_, ()>(Some(36))), Ok(Some(36)));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn new(filter: impl Into<AnyFilter<B>>) -> Self {
        Self::remembering(filter, REMEMBERED)
    }

    /// A guard that remembers about this many false alarms, the latest ones, at up to 64 bytes
    /// each.
    pub fn remembering(filter: impl Into<AnyFilter<B>>, keys: usize) -> Self {
        let filter = filter.into();
        Self {
            hasher: *filter.hasher(),
            filter: RwLock::new(filter),
            alarms: FalseAlarms::remembering(keys),
        }
    }

    /// The value of the key, from `load`, or `None` if the store has no such key, mostly without
    /// calling `load`. Errors of `load` are passed on and nothing is remembered.
    ///
    /// ```
    /// use tamis::{Blocked, guard::Guard};
    /// let people = Blocked::new(1_000, 0.01)?;
    /// people.insert("ada");
    /// let guard = Guard::new(people);
    /// let age = guard.get("ada", || Ok::<_, ()>(Some(36))); // SELECT age FROM people ...
    /// assert_eq!(age, Ok(Some(36)));
    /// let age = guard.get("bob", || -> Result<Option<u32>, ()> { unreachable!() });
    /// assert_eq!(age, Ok(None)); // without a look-up
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn get<V, E>(
        &self,
        key: impl Key,
        load: impl FnOnce() -> Result<Option<V>, E>,
    ) -> Result<Option<V>, E> {
        let hash = key.key_hash(&self.hasher);
        let maybe = || self.filter().contains(hash);
        self.alarms.get(hash, maybe, load)
    }

    /// Forgets that the key was absent: others may have added it to the store
    /// and to the filter.
    pub fn forget(&self, key: impl Key) {
        self.alarms.forget(key.key_hash(&self.hasher));
    }

    /// Forgets all false alarms.
    pub fn forget_all(&self) {
        self.alarms.forget_all();
    }

    /// The counters so far.
    ///
    /// ```
    /// use tamis::{Blocked, guard::Guard};
    /// let guard = Guard::new(Blocked::new(1_000, 0.01)?);
    /// let _: Result<Option<u32>, ()> = guard.get("bob", || Ok(None));
    /// assert_eq!((guard.counts().asked, guard.counts().skipped), (1, 1));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn counts(&self) -> GuardCounts {
        self.alarms.counts()
    }

    /// The filter, to query or save it. Blocks insertions in the meantime.
    pub fn filter(&self) -> impl std::ops::Deref<Target = AnyFilter<B>> + '_ {
        let filter: RwLockReadGuard<'_, _> =
            self.filter.read().unwrap_or_else(PoisonError::into_inner);
        filter
    }
}

impl Guard {
    /// Adds a new key, once the store has it, and returns whether it was new to the filter. From
    /// then on the filter never says "no" for the key. Fails for filters that accept no more keys;
    /// a static filter must be rebuilt.
    ///
    /// ```
    /// use tamis::{Blocked, guard::Guard};
    /// let guard = Guard::new(Blocked::new(1_000, 0.01)?);
    /// let absent = || Ok::<Option<u32>, ()>(None);
    /// assert_eq!(guard.get("ada", absent), Ok(None));
    /// // INSERT INTO people VALUES ('ada', 36), then:
    /// guard.insert("ada")?;
    /// assert_eq!(guard.get("ada", || Ok::<_, ()>(Some(36))), Ok(Some(36)));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn insert(&self, key: impl Key) -> Result<bool, Error> {
        let hash = key.key_hash(&self.hasher);
        let mut filter = self.filter.write().unwrap_or_else(PoisonError::into_inner);
        let new = filter.insert(hash)?;
        drop(filter);
        self.alarms.forget(hash);
        Ok(new)
    }
}

impl FalseAlarms {
    /// Remembers about this many false alarms, the latest ones, at up to 64 bytes each.
    pub fn remembering(keys: usize) -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::new(Absent::new(keys.div_ceil(SHARDS)))),
            asked: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
            remembered: AtomicU64::new(0),
            false_alarms: AtomicU64::new(0),
        }
    }

    /// The value of a key from `load`, which is called if the filter may hold the key (`maybe`) and
    /// it isn't a known false alarm; see [`Guard::get`].
    pub fn get<V, E>(
        &self,
        hash: Hash,
        maybe: impl FnOnce() -> bool,
        load: impl FnOnce() -> Result<Option<V>, E>,
    ) -> Result<Option<V>, E> {
        self.asked.fetch_add(1, Relaxed);
        if !maybe() {
            self.skipped.fetch_add(1, Relaxed);
            return Ok(None);
        }
        let before = {
            let absent = self.shard(hash);
            if absent.contains(hash) {
                self.remembered.fetch_add(1, Relaxed);
                return Ok(None);
            }
            absent.inserted
        };
        let value = load()?;
        if value.is_none() {
            self.false_alarms.fetch_add(1, Relaxed);
            let mut absent = self.shard(hash);
            // A key inserted during the look-up may be this one.
            if absent.inserted == before {
                absent.remember(hash);
            }
        }
        Ok(value)
    }

    /// Forgets that the key was absent. Call it after adding a key to the store and to the filter.
    pub fn forget(&self, hash: Hash) {
        self.shard(hash).forget(hash);
    }

    /// Forgets all false alarms.
    pub fn forget_all(&self) {
        for shard in &self.shards {
            lock(shard).forget_all();
        }
    }

    /// The counters so far.
    pub fn counts(&self) -> GuardCounts {
        // Read in the reverse order of counting, so that no difference is negative.
        let false_alarms = self.false_alarms.load(Relaxed);
        let remembered = self.remembered.load(Relaxed);
        let skipped = self.skipped.load(Relaxed);
        let asked = self.asked.load(Relaxed).max(skipped + remembered);
        GuardCounts {
            asked,
            skipped,
            remembered,
            false_alarms,
        }
    }

    fn shard(&self, hash: Hash) -> MutexGuard<'_, Absent> {
        lock(&self.shards[hash.shard(SHARDS)])
    }
}

impl<B> fmt::Debug for Guard<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("alarms", &self.alarms)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for FalseAlarms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FalseAlarms")
            .field("asked", &self.asked)
            .field("skipped", &self.skipped)
            .field("remembered", &self.remembered)
            .field("false_alarms", &self.false_alarms)
            .finish_non_exhaustive()
    }
}

/// A panicking caller leaves nothing half done in a guard.
fn lock(shard: &Mutex<Absent>) -> MutexGuard<'_, Absent> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keys that were looked up and are not in the store: the latest ones, by their 128-bit hashes.
struct Absent {
    /// The index in `ring` of each key.
    known: HashMap<Hash, usize>,
    /// In order of arrival; forgotten keys stay here.
    ring: Vec<Hash>,
    next: usize,
    most: usize,
    /// How many keys were inserted or forgotten.
    inserted: u64,
}

impl Absent {
    fn new(most: usize) -> Self {
        Self {
            known: HashMap::new(),
            ring: Vec::new(),
            next: 0,
            most,
            inserted: 0,
        }
    }

    fn contains(&self, hash: Hash) -> bool {
        self.known.contains_key(&hash)
    }

    fn remember(&mut self, hash: Hash) {
        if self.most == 0 || self.contains(hash) {
            return;
        }
        if self.ring.len() < self.most {
            self.ring.push(hash);
        } else {
            let oldest = std::mem::replace(&mut self.ring[self.next], hash);
            if self.known.get(&oldest) == Some(&self.next) {
                self.known.remove(&oldest);
            }
        }
        self.known.insert(hash, self.next);
        self.next = (self.next + 1) % self.most;
    }

    fn forget(&mut self, hash: Hash) {
        self.inserted += 1;
        self.known.remove(&hash);
    }

    fn forget_all(&mut self) {
        self.inserted += 1;
        self.known.clear();
        self.ring.clear();
        self.next = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hasher::{Hasher, SecretKey};
    use crate::{Blocked, Bloom, Cascade, Fuse, Ribbon};
    use std::collections::HashSet;
    use std::sync::atomic::AtomicUsize;

    fn keys(range: std::ops::Range<u32>) -> Vec<[u8; 4]> {
        range.map(u32::to_le_bytes).collect()
    }

    fn filters() -> Vec<AnyFilter> {
        let present = keys(0..1000);
        let mut blocked = Blocked::new(1000, 0.1).unwrap();
        let mut bloom = Bloom::new(1000, 0.1).unwrap();
        blocked.insert_many_mut(&present, &mut [false; 1000]);
        bloom.insert_many_mut(&present, &mut [false; 1000]);
        let hasher = Hasher::default();
        let keyed = Hasher::keyed(SecretKey::new([7; 16]));
        vec![
            blocked.into(),
            bloom.into(),
            Fuse::build(&present, 0.1, hasher).unwrap().into(),
            Ribbon::build(&present, 0.1, hasher).unwrap().into(),
            Cascade::build(&present, keys(1000..2000), 0.1, keyed)
                .unwrap()
                .into(),
        ]
    }

    #[test]
    fn every_kind_guards() {
        for filter in filters() {
            let kind = filter.kind();
            let guard = Guard::new(filter);
            let loads = AtomicUsize::new(0);
            let get = |key: [u8; 4]| {
                guard.get(key, || {
                    loads.fetch_add(1, Relaxed);
                    let n = u32::from_le_bytes(key);
                    Ok::<_, ()>((n < 1000).then_some(n))
                })
            };
            for key in keys(0..1000) {
                assert_eq!(get(key), Ok(Some(u32::from_le_bytes(key))), "{kind}");
            }
            assert_eq!(loads.swap(0, Relaxed), 1000);
            for key in keys(2000..12_000) {
                assert_eq!(get(key), Ok(None));
            }
            let alarms = loads.swap(0, Relaxed);
            assert!(alarms > 0 && alarms < 1200, "{kind}: {alarms}");
            for key in keys(2000..12_000) {
                assert_eq!(get(key), Ok(None));
            }
            assert_eq!(loads.load(Relaxed), 0, "{kind}: the same alarms again");
            let counts = guard.counts();
            assert_eq!(
                (counts.asked, counts.loaded()),
                (21_000, 1000 + alarms as u64)
            );
            assert_eq!(counts.false_alarms, alarms as u64);
            assert_eq!(counts.remembered, counts.false_alarms);
        }
    }

    #[test]
    fn a_key_that_comes_later_is_found() {
        let guard = Guard::remembering(Blocked::new(10, 0.9).unwrap(), 100);
        for i in 0..2000u32 {
            let key = i.to_le_bytes();
            assert_eq!(guard.get(key, || Ok::<Option<u32>, ()>(None)), Ok(None));
            guard.insert(key).unwrap();
            assert_eq!(guard.get(key, || Ok::<_, ()>(Some(i))), Ok(Some(i)));
        }
        let filter = Fuse::build(["a"], 0.5, Hasher::default()).unwrap();
        let error = Guard::new(filter).insert("b").unwrap_err().to_string();
        assert!(error.contains("build it again"), "{error}");
    }

    /// The key is inserted during another thread's failing look-up.
    #[test]
    fn an_insert_during_a_look_up_is_not_forgotten() {
        let filter = Blocked::new(10, 0.5).unwrap();
        filter.insert("key"); // as if by a false alarm
        let guard = Guard::new(filter);
        let in_vain = guard.get("key", || {
            guard.insert("key").unwrap();
            Ok::<Option<u8>, ()>(None)
        });
        assert_eq!(in_vain, Ok(None));
        assert_eq!(guard.get("key", || Ok::<_, ()>(Some(1))), Ok(Some(1)));
    }

    #[test]
    fn errors_are_handed_on_and_not_remembered() {
        let filter = Blocked::new(10, 0.5).unwrap();
        filter.insert("key");
        let guard = Guard::new(filter);
        assert_eq!(
            guard.get("key", || Err::<Option<u8>, _>("down")),
            Err("down")
        );
        assert_eq!(guard.get("key", || Ok::<_, ()>(Some(1))), Ok(Some(1)));
    }

    #[test]
    fn what_is_remembered_is_bounded_and_exact() {
        let mut absent = Absent::new(50);
        let hash = |i: u64| Hash::from_u64(i);
        let mut oracle: Vec<u64> = Vec::new();
        for step in 0..5000u64 {
            let i = crate::hash::mix(step) % 120;
            match step % 3 {
                0 => {
                    absent.forget(hash(i));
                    oracle.retain(|o| *o != i);
                }
                _ => absent.remember(hash(i)),
            }
            if step % 3 != 0 && !oracle.contains(&i) {
                oracle.push(i);
            }
            assert!(absent.known.len() <= 50 && absent.ring.len() <= 50);
            // All it knows is true, but it may not know all.
            let all: HashSet<Hash> = oracle.iter().map(|i| hash(*i)).collect();
            assert!(absent.known.keys().all(|known| all.contains(known)));
            if step % 3 != 0 {
                assert!(absent.contains(hash(i)), "the latest is known");
            }
        }
        let mut none = Absent::new(0);
        none.remember(hash(1));
        assert!(!none.contains(hash(1)));
    }

    #[test]
    fn threads_ask_and_insert_at_once() {
        let guard = Guard::remembering(Blocked::new(4000, 0.3).unwrap(), 64);
        let store: Vec<AtomicU64> = (0..4000).map(|_| AtomicU64::new(0)).collect();
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                let (guard, store) = (&guard, &store);
                scope.spawn(move || {
                    for step in 0..20_000u64 {
                        let i = crate::hash::mix(step * 4 + thread) % 4000;
                        let slot = &store[i as usize];
                        let key = i.to_le_bytes();
                        let load = || Ok::<_, ()>(Some(slot.load(Relaxed)).filter(|v| *v > 0));
                        if step % 8 == 0 {
                            slot.store(i + 1, Relaxed);
                            guard.insert(key).unwrap();
                            assert_eq!(guard.get(key, load), Ok(Some(i + 1)));
                        } else {
                            let _ = guard.get(key, load);
                        }
                    }
                });
            }
        });
        for (i, slot) in store
            .iter()
            .enumerate()
            .filter(|(_, slot)| slot.load(Relaxed) > 0)
        {
            let key = (i as u64).to_le_bytes();
            let load = || Ok::<_, ()>(Some(slot.load(Relaxed)));
            assert_eq!(guard.get(key, load), Ok(Some(i as u64 + 1)));
        }
    }
}
