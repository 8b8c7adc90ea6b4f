//! The table of a cuckoo filter, on plain slices of words.

use super::CuckooShape;
use crate::hash::{Hash, mix, reduce};
use crate::kind::Kind;
use crate::raw::explain::{Explanation, Look, Slot};
use crate::raw::isa;
use crate::raw::layout::{Creatable, Difference, Layout, Sealed, Timeless};
use crate::raw::word::Word;

/// Entries displaced before an insert is refused: enough to fill beyond 95 %, and done in about a
/// millisecond.
const MAX_KICKS: usize = 4096;
/// Keys that wait for memory together in the batch kernels.
const CROWD: usize = 32;
/// Keys that are added together, or rolled back; the fewer, the more often the crowd runs empty.
pub(crate) const BATCH: usize = 512;

/// Why a key wasn't inserted. The table is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// No room was found.
    Table,
    /// All slots that this key may use hold its own fingerprint: it was added as often as possible.
    Key { copies: u64 },
}

/// What a cuckoo filter stores for a key, or finds in a taken slot: a fingerprint in one of two
/// places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    pub(crate) fingerprint: u64,
    pub(crate) place: u64,
    pub(crate) other: u64,
}

impl Entry {
    /// The stored part of the key: 1 or more.
    #[inline]
    pub const fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// The first slot of each of its two places; for a taken slot, the place it is in comes first.
    #[inline]
    pub const fn places(&self) -> [u64; 2] {
        [self.place, self.other]
    }
}

/// An entry looking for a slot.
#[derive(Clone, Copy)]
struct Homeless {
    entry: Entry,
    /// Which of its places to take a slot from if all are taken, except the slot that was just
    /// taken.
    place: u64,
    except: u64,
    random: u64,
}

/// Slots written, with their previous values.
type Log = Vec<(u64, u64)>;

impl Homeless {
    /// A search's randomness depends only on the entry, so that tables are reproducible.
    #[inline]
    fn new(entry: Entry) -> Self {
        Self {
            entry,
            place: entry.other,
            except: u64::MAX,
            random: entry.place ^ entry.fingerprint.rotate_right(32),
        }
    }
}

impl CuckooShape {
    /// The filter's entry for a key, and its possible slots: the [`window`](Self::window) slots
    /// starting at the first of each place.
    ///
    /// ```
    /// use tamis::internals::raw::CuckooShape;
    /// use tamis::Hasher;
    /// let shape = CuckooShape::new(32, 2, 8)?;
    /// let entry = shape.entry(Hasher::default().hash(b"key"));
    /// assert!(entry.fingerprint() > 0 && entry.places().iter().all(|first| *first <= 30));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[inline]
    pub fn entry(&self, hash: Hash) -> Entry {
        // The low half is mixed once more: with hashes of consecutive numbers, the top bits of both
        // halves together aren't random enough.
        let place = reduce(hash.hi, self.places);
        let fingerprint = 1 + reduce(mix(hash.lo), self.fingerprints);
        Entry {
            fingerprint,
            place,
            other: self.other(place, fingerprint),
        }
    }

    /// Mixed twice: fingerprints are small numbers, and one round leaves their mirrors evenly
    /// spaced, so that a search would go in circles.
    #[inline]
    pub(crate) fn other(&self, place: u64, fingerprint: u64) -> u64 {
        let sum = reduce(mix(mix(fingerprint)), self.places);
        if sum >= place {
            sum - place
        } else {
            sum + self.places - place
        }
    }

    /// The entry in a taken slot. In a damaged table it may be wrong, but its places are within the
    /// table.
    #[inline]
    pub(crate) fn resident(&self, slot: u64, value: u64) -> Entry {
        let position = (1..self.window)
            .map(|i| u64::from(value > i * self.fingerprints))
            .sum();
        let fingerprint = value - position * self.fingerprints;
        let place = slot.saturating_sub(position).min(self.places - 1);
        Entry {
            fingerprint,
            place,
            other: self.other(place, fingerprint),
        }
    }

    #[inline]
    fn word_of(&self, slot: u64) -> usize {
        (slot * self.width / 64) as usize
    }

    /// The two words that hold the slot and the rest of its place, and the slot's offset in them.
    #[inline]
    fn pair<W: Word>(&self, words: &[W], slot: u64) -> (u128, u64) {
        let i = self.word_of(slot);
        let pair = u128::from(words[i].get()) | u128::from(words[i + 1].get()) << 64;
        (pair, slot * self.width % 64)
    }

    #[inline]
    fn lanes_at<W: Word>(&self, words: &[W], place: u64) -> u64 {
        let (pair, start) = self.pair(words, place);
        (pair >> start) as u64 & self.lanes
    }

    #[inline]
    pub(crate) fn get<W: Word>(&self, words: &[W], slot: u64) -> u64 {
        let (pair, start) = self.pair(words, slot);
        (pair >> start) as u64 & ((1 << self.width) - 1)
    }

    #[inline]
    pub(crate) fn set(&self, words: &mut [u64], slot: u64, value: u64) {
        let (pair, start) = self.pair(words, slot);
        let lane = (1 << self.width) - 1;
        let pair = pair & !(lane << start) | (u128::from(value) & lane) << start;
        let i = self.word_of(slot);
        words[i] = (pair as u64).to_le();
        words[i + 1] = ((pair >> 64) as u64).to_le();
    }

    /// Writes the fingerprint to a slot of `place`.
    #[inline]
    pub(crate) fn write(&self, words: &mut [u64], slot: u64, place: u64, fingerprint: u64) {
        self.set(
            words,
            slot,
            (slot - place) * self.fingerprints + fingerprint,
        );
    }

    /// Marks the lanes that are zero, by their top bit. No lane carries into the next.
    #[inline]
    fn zero_lanes(&self, x: u64) -> u64 {
        let low = self.lanes & !self.tops;
        !(((x & low) + low) | x) & self.tops
    }

    /// The slot of the first mark.
    #[inline]
    pub(crate) fn first(&self, place: u64, marks: u64) -> Option<u64> {
        let lane = || (u64::from(marks.trailing_zeros()) * self.lanes_per_bit) >> 16;
        (marks != 0).then(|| place + lane())
    }

    /// Marks the slots of `place` that hold the fingerprint for this place.
    #[inline]
    pub(crate) fn matches<W: Word>(&self, words: &[W], place: u64, fingerprint: u64) -> u64 {
        let wanted = fingerprint * self.ones + self.positions;
        self.zero_lanes(self.lanes_at(words, place) ^ wanted)
    }

    #[inline]
    pub(crate) fn holds<W: Word>(&self, words: &[W], entry: Entry) -> bool {
        let Entry {
            fingerprint,
            place,
            other,
        } = entry;
        self.matches(words, place, fingerprint) | self.matches(words, other, fingerprint) != 0
    }

    /// The number of copies of the entry.
    #[inline]
    pub(crate) fn copies<W: Word>(&self, words: &[W], entry: Entry) -> u64 {
        let here = self.matches(words, entry.place, entry.fingerprint);
        let there = if entry.other == entry.place {
            0
        } else {
            self.matches(words, entry.other, entry.fingerprint)
        };
        u64::from(here.count_ones() + there.count_ones())
    }

    /// The entry in a slot of the body `words`, if it is taken.
    ///
    /// ```
    /// use tamis::{AnyFilter, Hasher, Plan};
    /// use tamis::internals::raw::CuckooShape;
    /// let shape = CuckooShape::new(32, 2, 8)?;
    /// let mut filter = AnyFilter::from_plan(&Plan::of(shape, 10), Hasher::default())?;
    /// filter.insert("key")?;
    /// let taken = (0..32).find_map(|slot| shape.entry_in(filter.body()[0], slot)).unwrap();
    /// let key = shape.entry(Hasher::default().hash(b"key"));
    /// assert_eq!(taken.fingerprint(), key.fingerprint());
    /// assert!(key.places().contains(&taken.places()[0]));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    ///
    /// # Panics
    /// If the slot doesn't exist, or there are fewer words than the shape needs.
    #[inline]
    pub fn entry_in<W: Word>(&self, words: &[W], slot: u64) -> Option<Entry> {
        assert!(slot < self.slots, "slot {slot} of {}", self.slots);
        match self.get(words, slot) {
            0 => None,
            value => Some(self.resident(slot, value)),
        }
    }

    /// Every entry, in the order of the slots.
    pub(crate) fn entries<W: Word>(&self, words: &[W]) -> impl Iterator<Item = Entry> {
        (0..self.slots).filter_map(move |slot| self.entry_in(words, slot))
    }

    #[inline]
    fn prefetch<W>(&self, words: &[W], entry: Entry) {
        isa::prefetch(&words[self.word_of(entry.place)]);
        isa::prefetch(&words[self.word_of(entry.other)]);
    }

    /// Puts the entry into a free slot, if its places have one, and returns the slot. Prefers the
    /// place with more free slots, so that places fill up late; comparing the marks as numbers
    /// approximates that.
    #[inline]
    fn settle(&self, words: &mut [u64], entry: Entry) -> Option<u64> {
        let here = self.zero_lanes(self.lanes_at(words, entry.place));
        let there = self.zero_lanes(self.lanes_at(words, entry.other));
        let (place, marks) = if there > here {
            (entry.other, there)
        } else {
            (entry.place, here)
        };
        let slot = self.first(place, marks)?;
        self.write(words, slot, place, entry.fingerprint);
        Some(slot)
    }

    /// Puts the entry into a taken slot whose resident can move to a free one, if there is such a
    /// slot. Prefetches for all residents first, so this waits for memory only once.
    #[inline]
    fn squeeze(&self, words: &mut [u64], entry: Entry) -> bool {
        let mut residents = [(0, 0, Entry::default()); 8];
        let residents = &mut residents[..2 * self.window as usize];
        for (i, found) in (0..).zip(residents.iter_mut()) {
            let place = if i % 2 == 0 { entry.place } else { entry.other };
            let slot = place + i / 2;
            *found = (place, slot, self.resident(slot, self.get(words, slot)));
            self.prefetch(words, found.2);
        }
        for &mut (place, slot, resident) in residents {
            if self.settle(words, resident).is_some() {
                self.write(words, slot, place, entry.fingerprint);
                return true;
            }
        }
        false
    }

    /// Puts a homeless entry into a taken slot, and makes the resident homeless.
    #[inline]
    fn displace(&self, words: &mut [u64], homeless: &mut Homeless, log: &mut Log) {
        let Homeless {
            entry,
            place,
            except,
            random,
        } = *homeless;
        let random = mix(random);
        let slot = match place + reduce(random, self.window) {
            slot if slot != except => slot,
            slot if slot == place => place + 1,
            _ => place,
        };
        let value = self.get(words, slot);
        log.push((slot, value));
        self.write(words, slot, place, entry.fingerprint);
        let entry = self.resident(slot, value);
        // This place is in the cache, the other one isn't. So mostly stay, unless it was just
        // searched.
        let stay = entry.place != place && random & 3 != 0;
        *homeless = Homeless {
            entry,
            place: if stay { entry.place } else { entry.other },
            except: slot,
            random,
        };
    }

    fn take_back(&self, words: &mut [u64], log: &mut Log) {
        for (slot, value) in log.drain(..).rev() {
            self.set(words, slot, value);
        }
    }

    /// Adds an entry, or changes nothing.
    #[inline]
    pub(crate) fn insert(&self, words: &mut [u64], entry: Entry) -> Result<(), Full> {
        match self.settle(words, entry) {
            Some(_) => Ok(()),
            None => self.search(words, entry),
        }
    }

    /// Inserts an entry whose places are full: a random walk from one displaced entry to the next.
    #[cold]
    fn search(&self, words: &mut [u64], entry: Entry) -> Result<(), Full> {
        let copies = self.copies(words, entry);
        if copies == self.window + self.window.min(entry.place.abs_diff(entry.other)) {
            return Err(Full::Key { copies });
        }
        let mut homeless = Homeless::new(entry);
        let mut log = Log::with_capacity(64);
        while !self.squeeze(words, homeless.entry) {
            if log.len() == MAX_KICKS {
                self.take_back(words, &mut log);
                return Err(Full::Table);
            }
            self.displace(words, &mut homeless, &mut log);
        }
        Ok(())
    }

    /// Adds at most [`BATCH`] entries up to the first that is refused. Returns how many, and why no
    /// more. Entries may end up in other slots than with repeated `insert`s, but every answer is
    /// the same.
    pub(crate) fn insert_many(
        &self,
        words: &mut [u64],
        entries: &[Entry],
    ) -> (usize, Result<(), Full>) {
        if entries.len() >= CROWD && self.insert_together(words, entries) {
            return (entries.len(), Ok(()));
        }
        for (added, entry) in entries.iter().enumerate() {
            if let Err(full) = self.insert(words, *entry) {
                return (added, Err(full));
            }
        }
        (entries.len(), Ok(()))
    }

    /// Inserts a batch with many entries homeless at a time, so that they wait for memory together.
    /// If that doesn't finish, restores the table and returns false.
    fn insert_together(&self, words: &mut [u64], entries: &[Entry]) -> bool {
        let mut arrivals = entries.iter().map(|entry| Homeless::new(*entry));
        let mut crowd: [Option<Homeless>; CROWD] = std::array::from_fn(|_| arrivals.next());
        for homeless in crowd.iter().flatten() {
            self.prefetch(words, homeless.entry);
        }
        let mut log = Log::with_capacity(2 * BATCH);
        while log.len() < 16 * MAX_KICKS {
            let mut done = true;
            for spot in &mut crowd {
                let Some(homeless) = spot else { continue };
                if let Some(slot) = self.settle(words, homeless.entry) {
                    log.push((slot, 0));
                    *spot = arrivals.next();
                } else {
                    self.displace(words, homeless, &mut log);
                }
                if let Some(homeless) = spot {
                    self.prefetch(words, homeless.entry);
                    done = false;
                }
            }
            if done {
                return true;
            }
        }
        self.take_back(words, &mut log);
        false
    }

    /// Which of at most [`BATCH`] entries are neither in the table nor earlier in the batch.
    pub(crate) fn are_new(&self, words: &[u64], entries: &[Entry], new: &mut [bool]) {
        for (entries, new) in entries.chunks(CROWD).zip(new.chunks_mut(CROWD)) {
            for entry in entries {
                self.prefetch(words, *entry);
            }
            for (entry, new) in entries.iter().zip(new) {
                *new = !self.holds(words, *entry);
            }
        }
        // A hash table of the batch: indices from 1, with linear probing.
        let mut earlier = [0u16; 2 * BATCH];
        let named = |entry: &Entry| (entry.fingerprint, entry.place.min(entry.other));
        for (i, new) in new.iter_mut().enumerate().filter(|(_, new)| **new) {
            let name = named(&entries[i]);
            let mut at =
                reduce(mix(name.0 ^ name.1.rotate_left(32)), earlier.len() as u64) as usize;
            while earlier[at] != 0 && named(&entries[earlier[at] as usize - 1]) != name {
                at = (at + 1) % earlier.len();
            }
            *new = earlier[at] == 0;
            earlier[at] = i as u16 + 1;
        }
    }

    /// Removes a copy of the entry; false if there is none.
    pub(crate) fn remove(&self, words: &mut [u64], entry: Entry) -> bool {
        let slot_in = |place| self.first(place, self.matches(words, place, entry.fingerprint));
        let Some(slot) = slot_in(entry.place).or_else(|| slot_in(entry.other)) else {
            return false;
        };
        self.set(words, slot, 0);
        true
    }

    pub(crate) fn remove_many(&self, words: &mut [u64], hashes: &[Hash], removed: &mut [bool]) {
        let mut entries = [Entry::default(); CROWD];
        for (hashes, removed) in hashes.chunks(CROWD).zip(removed.chunks_mut(CROWD)) {
            for (entry, hash) in entries.iter_mut().zip(hashes) {
                *entry = self.entry(*hash);
                self.prefetch(words, *entry);
            }
            for (removed, entry) in removed.iter_mut().zip(&entries) {
                *removed = self.remove(words, *entry);
            }
        }
    }

    /// Removes the copies that `theirs` doesn't have, and returns how many.
    pub(crate) fn keep_common<W: Word>(&self, words: &mut [u64], theirs: &[W]) -> u64 {
        let mut gone = 0;
        for slot in 0..self.slots {
            let value = self.get(words, slot);
            let entry = self.resident(slot, value);
            if value != 0 && self.copies(words, entry) > self.copies(theirs, entry) {
                self.set(words, slot, 0);
                gone += 1;
            }
        }
        gone
    }
}

impl Sealed for CuckooShape {}

impl Timeless for CuckooShape {}

impl Creatable for CuckooShape {}

impl Layout for CuckooShape {
    const KIND: Kind = Kind::Cuckoo;

    #[inline]
    fn body_len(&self) -> u64 {
        CuckooShape::body_len(self)
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

    fn explain<W: Word>(&self, words: &[W], hash: Hash) -> Explanation {
        let entry = self.entry(hash);
        let slots = |place: u64| {
            let slot = |at| {
                let its = (at - place) * self.fingerprints + entry.fingerprint;
                Slot {
                    at,
                    holds: self.entry_in(words, at).map(|there| there.fingerprint),
                    is_it: self.get(words, at) == its,
                }
            };
            (place..place + self.window).map(slot).collect()
        };
        Explanation::of(Look::Slots {
            fingerprint: entry.fingerprint,
            places: entry.places().map(slots).into(),
        })
    }

    fn contains_many<W: Word>(&self, words: &[W], hashes: &[Hash], out: &mut [bool]) {
        let mut entries = [Entry::default(); CROWD];
        for (hashes, out) in hashes.chunks(CROWD).zip(out.chunks_mut(CROWD)) {
            for (entry, hash) in entries.iter_mut().zip(hashes) {
                *entry = self.entry(*hash);
                self.prefetch(words, *entry);
            }
            for (answer, entry) in out.iter_mut().zip(&entries) {
                *answer = self.holds(words, *entry);
            }
        }
    }

    /// Exact, not estimated.
    fn keys_now<W: Word>(&self, words: &[W]) -> f64 {
        self.entries(words).count() as f64
    }
}
