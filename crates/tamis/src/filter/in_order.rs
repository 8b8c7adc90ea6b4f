//! Several threads add keys and get the answers that one thread would get.

use crate::error::Error;
use crate::filter::any::AnyFilter;
use crate::filter::growing::Growing;
use crate::hash::Hash;
use crate::raw::blocked::{BlockedShape, Sorted};
use crate::raw::layout::BLOCK;
use crate::raw::order::Order;
use crate::store::body::Body as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Not worth sorting below this.
const FEW: usize = 256;
/// Sorting keys by ranges takes about half as long as adding them, so it pays only with more threads than this.
const TOO_FEW: usize = 2;

/// Adds numbered batches of keys to a filter from several threads. Bits and answers are those of one thread that
/// adds the batches in order; see [`AnyFilter::in_order`].
pub struct InOrder<'a> {
    /// Locked for writing by a batch that runs alone. Concurrent batches only read the older layers, and take turns
    /// at the ranges of the newest.
    filter: RwLock<&'a mut AnyFilter>,
    order: Order,
    /// How many ranges keep an order of batches.
    ranges: usize,
    /// The first unused batch number. Two batches with one number would be in a range at once.
    unused: AtomicU64,
    /// Room in the newest layer if every key of the running batches is new.
    room: AtomicU64,
    /// New keys that the filter hasn't counted yet.
    added: AtomicU64,
    before_growing: fn(&mut Growing),
    /// Batches run alone with few threads, and for kinds other than blocked and growing.
    always_alone: bool,
    failed: AtomicBool,
    /// Buffers of threads that aren't adding.
    spare: Mutex<Vec<Sorted>>,
}

impl AnyFilter {
    /// Lets this many threads add numbered batches. Calls `before_growing` whenever a growing filter may be about to
    /// grow.
    ///
    /// ```
    /// use tamis::{AnyFilter, Growing};
    /// let mut seen = AnyFilter::from(Growing::new(1_000, 0.001)?);
    /// let hasher = *seen.hasher();
    /// let adding = seen.in_order(4, |_| ());
    /// std::thread::scope(|scope| {
    ///     for number in 0..4u64 {
    ///         let adding = &adding;
    ///         scope.spawn(move || {
    ///             let keys = [hasher.hash(b"same"), hasher.hash(&[number as u8])];
    ///             let mut new = [false; 2];
    ///             adding.insert_hashes(number, &keys, &mut new, || true).unwrap();
    ///             assert_eq!(new, [number == 0, true]);
    ///         });
    ///     }
    /// });
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[doc(hidden)]
    pub fn in_order(&mut self, threads: usize, before_growing: fn(&mut Growing)) -> InOrder<'_> {
        let ranges = ranges(self);
        InOrder {
            order: Order::new(ranges),
            ranges,
            unused: AtomicU64::new(0),
            room: AtomicU64::new(room(self)),
            added: AtomicU64::new(0),
            before_growing,
            always_alone: threads <= TOO_FEW || ranges == 0,
            failed: AtomicBool::new(false),
            spare: Mutex::default(),
            filter: RwLock::new(self),
        }
    }
}

/// The lines that new keys go to, unless other processes share them.
fn newest(filter: &AnyFilter) -> Option<(&BlockedShape, &[AtomicU64])> {
    match filter {
        AnyFilter::Growing(filter) if !filter.is_shared() => Some(filter.newest_lines()),
        AnyFilter::Blocked(filter) if !filter.is_shared() => {
            Some((&filter.shape, filter.body.words()))
        }
        _ => None,
    }
}

/// How many ranges batches can be in at once; 0 if they must run alone.
fn ranges(filter: &AnyFilter) -> usize {
    newest(filter).map_or(0, |(shape, _)| shape.ranges())
}

/// How many new keys it takes before it grows or refuses them.
fn room(filter: &AnyFilter) -> u64 {
    match filter {
        AnyFilter::Growing(filter) => filter.room(),
        _ => u64::MAX,
    }
}

impl<'a> InOrder<'a> {
    /// Adds the keys of the batch with this number; `new[i]` is the answer for `hashes[i]`. Waits for batches with
    /// lower numbers, so some thread must pass each number from 0 on; if a thread panics in between, the others wait
    /// for ever. Calls `wanted` once all earlier batches have begun. If it returns `false`, or an earlier batch has
    /// failed, nothing is added. Returns whether the keys were added.
    ///
    /// # Panics
    /// If `new` is not as long as `hashes`, or the number was given before.
    pub fn insert_hashes(
        &self,
        number: u64,
        hashes: &[Hash],
        new: &mut [bool],
        wanted: impl FnOnce() -> bool,
    ) -> Result<bool, Error> {
        assert_eq!(hashes.len(), new.len(), "one answer for each key");
        self.order.wait_to_begin(number);
        let claimed = (self.unused).compare_exchange(number, number + 1, Relaxed, Relaxed);
        assert!(claimed.is_ok(), "batch {number} was given before");
        new.fill(false);
        if self.failed.load(Relaxed) || !wanted() {
            self.order.begin(number);
            self.order.pass_units(number, |_| ());
            self.order.end();
            return Ok(false);
        }
        if !self.always_alone
            && hashes.len() >= FEW
            && let Some(filter) = self.enter(number, hashes.len() as u64)
        {
            self.order.begin(number);
            self.insert_beside(number, &filter, hashes, new);
            drop(filter);
            self.order.end();
            return Ok(true);
        }
        self.order.wait_for_others(number);
        let added = self.insert_alone(hashes, new);
        self.failed.store(added.is_err(), Relaxed);
        self.order.pass_alone(number);
        added.map(|()| true)
    }

    /// Locks the filter for reading and reserves room for this many keys in its newest layer, if it has that room. Must
    /// come before the batch begins: if a later batch had the lock first, [`with`](Self::with) could wait for that
    /// batch, this one for `with`, and the later one for this one.
    fn enter(&self, number: u64, count: u64) -> Option<RwLockReadGuard<'_, &'a mut AnyFilter>> {
        if self.room.load(Relaxed) < count {
            // Other batches may have added fewer new keys than they reserved.
            self.order.wait_for_others(number);
        }
        let filter = self.filter.read().unwrap_or_else(PoisonError::into_inner);
        // `with` may have changed the filter.
        if self.room.load(Relaxed) < count || ranges(&filter) != self.ranges {
            return None;
        }
        self.room.fetch_sub(count, Relaxed);
        Some(filter)
    }

    /// Adds keys to the newest layer, where room is reserved for them, concurrently with other
    /// batches.
    fn insert_beside(&self, number: u64, filter: &AnyFilter, hashes: &[Hash], new: &mut [bool]) {
        let Some((shape, words)) = newest(filter) else {
            unreachable!("it has ranges");
        };
        let mut sorted = self.spare().pop().unwrap_or_default();
        match filter {
            AnyFilter::Growing(filter) if filter.ask_older(hashes, new) => {
                sorted.sort(shape, hashes, new);
                new.fill(false);
            }
            _ => sorted.sort(shape, hashes, &[]),
        }
        self.order.pass_units(number, |range| {
            // SAFETY: a range is used by one batch at a time, when it is that batch's turn. Batches that are alone use
            // the layer when no other is on its way.
            unsafe { sorted.add(shape, words, range, new) }
        });
        let added: u64 = new.iter().map(|new| u64::from(*new)).sum();
        self.added.fetch_add(added, Relaxed);
        self.room.fetch_add(hashes.len() as u64 - added, Relaxed);
        self.spare().push(sorted);
    }

    fn insert_alone(&self, hashes: &[Hash], new: &mut [bool]) -> Result<(), Error> {
        let mut filter = self.settled();
        let added = match &mut **filter {
            AnyFilter::Growing(filter) => self.grow(filter, hashes, new),
            filter => filter.insert_many(hashes, new),
        };
        self.room.store(room(&filter), Relaxed);
        added
    }

    fn grow(&self, filter: &mut Growing, hashes: &[Hash], new: &mut [bool]) -> Result<(), Error> {
        let mut at = 0;
        while at < hashes.len() {
            let mut to = hashes.len();
            if filter.room() < (to - at) as u64 {
                // How it grows must not depend on batch sizes.
                (self.before_growing)(filter);
                to = to.min(at + BLOCK);
            }
            filter.insert_many(&hashes[at..to], &mut new[at..to])?;
            at = to;
        }
        Ok(())
    }

    /// Runs `use_it` on the filter between two batches.
    pub fn with<R>(&self, use_it: impl FnOnce(&mut AnyFilter) -> R) -> R {
        let mut filter = self.settled();
        let result = use_it(&mut filter);
        self.room.store(room(&filter), Relaxed);
        result
    }

    fn settled(&self) -> RwLockWriteGuard<'_, &'a mut AnyFilter> {
        let mut filter = self.filter.write().unwrap_or_else(PoisonError::into_inner);
        let added = self.added.swap(0, Relaxed);
        match &mut **filter {
            AnyFilter::Growing(filter) => filter.count_more(added),
            AnyFilter::Blocked(filter) => filter.count_more(added),
            _ => {}
        }
        filter
    }

    fn spare(&self) -> MutexGuard<'_, Vec<Sorted>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for InOrder<'_> {
    fn drop(&mut self) {
        drop(self.settled());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::usual_or;
    use crate::{Blocked, Hasher, internals::Expansion};

    fn hashes(seed: u64, count: usize, different: u64) -> Vec<Hash> {
        let hasher = Hasher::default();
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
            hasher.hash(&((state >> 33) % different).to_le_bytes())
        };
        (0..count).map(|_| next()).collect()
    }

    fn step(filter: &mut Growing) {
        filter.set_expansion(match filter.capacity() {
            ..50_000 => Expansion::Times(7),
            _ => Expansion::Auto,
        });
    }

    /// Adds batches of this many keys with this many threads.
    fn add(filter: &mut AnyFilter, keys: &[Hash], threads: usize, batch: usize) -> Vec<bool> {
        let mut new = vec![false; keys.len()];
        let adding = filter.in_order(threads, step);
        let batches = keys.chunks(batch).zip(new.chunks_mut(batch));
        let batches = Mutex::new((0..).zip(batches));
        let carry = || {
            let next = || batches.lock().unwrap().next();
            while let Some((number, (hashes, new))) = next() {
                let added = adding.insert_hashes(number, hashes, new, || true);
                assert!(added.unwrap());
            }
        };
        std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(carry))));
        let counted = adding.with(|filter| filter.keys().get());
        drop(adding);
        assert_eq!(filter.keys().get(), counted);
        new
    }

    const WAYS: [(usize, usize); 5] = [(1, 5_000), (2, 900), (5, 300), (9, 4_000), (3, 100)];

    /// Batches of all sizes, by several threads and by one thread without `InOrder`.
    #[test]
    fn bits_and_answers_are_those_of_one_thread() {
        let count = usual_or(300_000, 3_000);
        for (first, rate, different) in [
            (1_000, 0.01, 200_000),     // grows, mostly new at first
            (200_000, 1e-6, 100_000),   // never grows
            (100_000, 1e-3, 1_000_000), // grows twice
            (1, 0.2, 20_000),
        ] {
            let keys = hashes(first, count, different);
            let mut alone = Growing::new(first, rate).unwrap();
            let mut expected = vec![false; count];
            for (hashes, new) in keys.chunks(BLOCK).zip(expected.chunks_mut(BLOCK)) {
                step(&mut alone);
                alone.insert_many(hashes, new).unwrap();
            }
            for (threads, batch) in WAYS {
                let mut filter = AnyFilter::from(Growing::new(first, rate).unwrap());
                let new = add(&mut filter, &keys, threads, batch);
                assert!(new == expected, "{threads} threads, batches of {batch}");
                assert!(filter.to_bytes() == alone.to_bytes());
            }
        }
    }

    #[test]
    fn the_same_of_filters_that_do_not_grow() {
        let keys = hashes(3, usual_or(50_000, 2_000), 40_000);
        for rate in [0.2, 0.01, 1e-9] {
            let new = || Blocked::new(20_000, rate).unwrap(); // overfull at the end
            let mut alone = new();
            let mut expected = vec![false; keys.len()];
            alone.insert_many_mut(&keys, &mut expected);
            for (threads, batch) in WAYS {
                let mut filter = AnyFilter::from(new());
                let new = add(&mut filter, &keys, threads, batch);
                assert!(new == expected, "{threads} threads, batches of {batch}");
                assert!(filter.to_bytes() == alone.to_bytes());
            }
        }
        let mut filter = AnyFilter::from(crate::Bloom::new(50_000, 0.01).unwrap());
        let new = add(&mut filter, &keys, 4, 1_000);
        assert_eq!(
            new.iter().filter(|new| **new).count() as u64,
            filter.keys().get()
        );
    }

    #[test]
    fn what_is_not_wanted_or_comes_after_a_failure_is_not_added() {
        let keys = hashes(1, 600, u64::MAX);
        let filter = Growing::reserve(1_000, 0.01, Expansion::None, Hasher::default());
        let mut filter = AnyFilter::from(filter.unwrap());
        let adding = filter.in_order(3, |_| ());
        let add = |number, keys: &[Hash], wanted| {
            let mut new = vec![true; keys.len()];
            let added = adding.insert_hashes(number, keys, &mut new, || wanted);
            (added, new.iter().filter(|new| **new).count())
        };
        assert!(matches!(add(0, &keys, false), (Ok(false), 0)));
        assert!(matches!(add(1, &keys, true), (Ok(true), 590..)));
        assert!(matches!(
            add(2, &hashes(2, 600, u64::MAX), true),
            (Err(Error::Full { .. }), _)
        ));
        assert!(matches!(add(3, &keys, true), (Ok(false), 0)));
    }

    /// Concurrent adders don't wait for ever, and see the change.
    #[test]
    fn the_filter_is_used_between_batches() {
        let keys = hashes(5, usual_or(200_000, 4_000), u64::MAX);
        let mut filter = AnyFilter::from(Blocked::new(200_000, 1e-6).unwrap());
        let adding = filter.in_order(4, |_| ());
        let (numbers, added) = (AtomicU64::new(0), AtomicU64::new(0));
        let batches: Vec<&[Hash]> = keys.chunks(400).collect();
        let carry = || {
            loop {
                let number = numbers.fetch_add(1, Relaxed);
                let Some(hashes) = batches.get(number as usize) else {
                    return;
                };
                let mut new = vec![false; hashes.len()];
                assert!(
                    adding
                        .insert_hashes(number, hashes, &mut new, || true)
                        .unwrap()
                );
                added.fetch_add(hashes.len() as u64, Relaxed);
            }
        };
        std::thread::scope(|scope| {
            (0..4).for_each(|_| drop(scope.spawn(carry)));
            while added.load(Relaxed) < keys.len() as u64 {
                adding.with(|filter| assert!(filter.keys().get() <= keys.len() as u64));
                std::thread::yield_now();
            }
        });
        // Another filter, whose keys have more lines.
        let was = adding.with(|filter| {
            let other = Growing::new(1_000, 1e-15).unwrap();
            std::mem::replace(filter, other.into())
        });
        let (hashes, next) = (batches[0], batches.len() as u64);
        let mut new = vec![false; hashes.len()];
        let added = adding.insert_hashes(next, hashes, &mut new, || true);
        assert!(added.unwrap() && new.iter().all(|new| *new));
        drop(adding);
        let has = |filter: &AnyFilter, key: &Hash| filter.contains(*key);
        assert!(keys.iter().all(|key| has(&was, key)));
        assert!(hashes.iter().all(|key| has(&filter, key)));
    }

    #[test]
    fn two_batches_of_one_number_are_never_added_at_once() {
        let keys = hashes(1, 600, u64::MAX);
        let mut filter = AnyFilter::from(Blocked::new(1_000, 0.01).unwrap());
        let adding = filter.in_order(3, |_| ());
        let add = || {
            let mut new = vec![false; keys.len()];
            adding.insert_hashes(0, &keys, &mut new, || true)
        };
        let outcomes = std::thread::scope(|scope| {
            let threads = [(); 3].map(|()| scope.spawn(add));
            threads.map(|thread| thread.join().is_ok())
        });
        assert_eq!(outcomes.iter().filter(|added| **added).count(), 1);
    }
}
