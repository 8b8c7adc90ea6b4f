//! A set of 64-bit keys, most of which are repeated often.

use tamis::Hash;

/// Keys that are remembered, by their low bits: most words of a log also occur in the lines before.
const RECENT: usize = 1 << 12;
/// Keys that are inserted together.
const PENDING: usize = 512;
const FEWEST_BITS: u32 = 12;
/// Slots searched for a key. Enough for random keys; keys crafted to collide are stored elsewhere.
const REACH: usize = 128;

/// Keeps keys almost in the order of their hashes, so that sorting them takes one pass.
pub(crate) struct Distinct {
    recent: Box<[u64; RECENT]>,
    /// Keys not inserted yet.
    pending: Box<[u64; PENDING]>,
    waiting: usize,
    /// Each key is in the slot given by the top bits of its hash, or soon after it. Zero marks a free slot.
    slots: Vec<u64>,
    bits: u32,
    count: usize,
    /// Keys without a free slot in reach, and zero. May contain duplicates.
    others: Vec<u64>,
}

impl Distinct {
    pub(crate) fn new() -> Self {
        let mut this = Self {
            recent: Box::new([0; RECENT]),
            pending: Box::new([0; PENDING]),
            waiting: 0,
            slots: Vec::new(),
            bits: 0,
            count: 0,
            others: Vec::new(),
        };
        this.forget_recent();
        this.clear(FEWEST_BITS);
        this
    }

    /// Adds keys. Avoids a branch per key, because new keys can't be predicted.
    #[inline]
    pub(crate) fn add_all(&mut self, keys: &[u64]) {
        for keys in keys.chunks(PENDING / 2) {
            if self.waiting + keys.len() > PENDING {
                self.insert_pending();
            }
            let mut waiting = self.waiting;
            for &key in keys {
                let recent = &mut self.recent[key as usize % RECENT];
                self.pending[waiting % PENDING] = key;
                waiting += usize::from(*recent != key);
                *recent = key;
            }
            self.waiting = waiting;
        }
    }

    /// Touches all slots before using any, because they are scattered in memory.
    #[inline(never)]
    fn insert_pending(&mut self) {
        let shift = 64 - self.bits;
        let mut new = 0;
        for at in 0..std::mem::take(&mut self.waiting) {
            let key = self.pending[at];
            let slot = self.slots[(order(key) >> shift) as usize];
            self.pending[new] = key;
            new += usize::from(slot != key || key == 0);
        }
        for at in 0..new {
            self.insert(self.pending[at]);
        }
    }

    #[inline]
    fn insert(&mut self, key: u64) {
        let first = (order(key) >> (64 - self.bits)) as usize;
        let near = &mut self.slots[first..first + REACH];
        match near.iter_mut().find(|slot| **slot == key || **slot == 0) {
            Some(slot) if key != 0 => {
                self.count += usize::from(*slot == 0);
                *slot = key;
                if self.count > self.slots.len() / 8 * 5 {
                    self.grow();
                }
            }
            _ => self.insert_elsewhere(key),
        }
    }

    #[cold]
    fn insert_elsewhere(&mut self, key: u64) {
        if self.others.len() == self.others.capacity() {
            self.others.sort_unstable();
            self.others.dedup();
            self.others.reserve(self.others.len().max(64));
        }
        self.others.push(key);
    }

    #[cold]
    fn grow(&mut self) {
        let old = std::mem::take(&mut self.slots);
        let others = std::mem::take(&mut self.others);
        self.clear(self.bits + 1);
        let keys = old.into_iter().filter(|key| *key != 0);
        keys.chain(others).for_each(|key| self.insert(key));
    }

    fn clear(&mut self, bits: u32) {
        self.bits = bits;
        self.count = 0;
        self.slots.clear();
        self.slots.resize((1 << bits) + REACH, 0);
    }

    /// Fills each place with a key that belongs elsewhere.
    fn forget_recent(&mut self) {
        for (at, recent) in self.recent.iter_mut().enumerate() {
            *recent = !at as u64;
        }
    }

    /// The hashes of all keys, sorted and distinct. Empties the set.
    pub(crate) fn take(&mut self) -> Vec<Hash> {
        self.insert_pending();
        // Moves the keys together, in place.
        let mut keys = 0;
        for at in 0..self.slots.len() {
            let key = self.slots[at];
            self.slots[keys] = key;
            keys += usize::from(key != 0);
        }
        let mut hashes = Vec::with_capacity(keys + self.others.len());
        hashes.extend(self.slots[..keys].iter().map(|key| Hash::from_u64(*key)));
        for at in 1..keys {
            let hash = hashes[at];
            let mut to = at;
            while to > 0 && hashes[to - 1] > hash {
                hashes[to] = hashes[to - 1];
                to -= 1;
            }
            hashes[to] = hash;
        }
        if !self.others.is_empty() {
            hashes.extend(self.others.drain(..).map(Hash::from_u64));
            hashes.sort_unstable();
        }
        hashes.dedup();
        // Not larger than the next text of this size needs, because clearing takes time, too.
        let slots = (self.count * 2).next_power_of_two();
        self.clear(slots.ilog2().max(FEWEST_BITS));
        self.forget_recent();
        hashes
    }
}

/// The sort order of keys.
#[inline(always)]
fn order(key: u64) -> u64 {
    (Hash::from_u64(key).as_u128() >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_key_comes_once_in_order() {
        let mut set = Distinct::new();
        for (keys, step) in [
            (0, 1),
            (1, 1),
            (10, 7),
            (5000, 1),
            (300_000, 0x9E37_79B9),
            (20, 3),
        ] {
            let keys: Vec<u64> = (0..keys).map(|i: u64| i.wrapping_mul(step)).collect();
            for _ in 0..3 {
                set.add_all(&keys);
            }
            let expected: BTreeSet<Hash> = keys.iter().map(|key| Hash::from_u64(*key)).collect();
            assert_eq!(set.take(), expected.into_iter().collect::<Vec<_>>());
        }
    }

    /// Keys that collide on purpose.
    #[test]
    fn keys_that_meet_are_kept() {
        let meeting: Vec<u64> = (0..)
            .filter(|key| order(*key) >> 54 == 5)
            .take(2000)
            .collect();
        let mut set = Distinct::new();
        for _ in 0..3 {
            set.add_all(&meeting);
            set.add_all(&[0]);
        }
        let expected: BTreeSet<u64> = meeting.into_iter().chain([0]).collect();
        let expected: BTreeSet<Hash> = expected.into_iter().map(Hash::from_u64).collect();
        assert_eq!(set.take(), expected.into_iter().collect::<Vec<_>>());
    }
}
