//! Adding keys to the newest layer of a growing filter, and a layer when it is full.

use super::Growing;
use crate::error::Error;
use crate::filter::keys::in_blocks;
use crate::hash::Hash;
use crate::key::Key;
use crate::plan::growing::{Expansion, LARGE_STEPS, Schedule};
use crate::raw::blocked::LINE_WORDS;
use crate::raw::layers::{GrowingLayer, KEYS, Layer, put};
use crate::raw::layout::{BLOCK, BitLayout as _};
use crate::raw::word::SharedWord as _;
use crate::store::body::Growable;

impl Growing {
    /// Adds a key and returns whether it was new. "New" is always right; "not
    /// new" is wrong for about one in `1/rate` new keys, which seem present. Fails
    /// if there is no memory for a new layer; the key is then not added.
    ///
    /// ```
    /// use tamis::Growing;
    /// let mut seen = Growing::new(1_000, 0.001)?;
    /// assert!(seen.insert("key")?);
    /// assert!(!seen.insert("key")?); // not new any more
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[inline]
    pub fn insert(&mut self, key: impl Key) -> Result<bool, Error> {
        self.add(key.key_hash(&self.hasher))
    }

    /// Adds many keys; `new[i]` is the answer for `keys[i]`. Much faster than a loop. On failure
    /// only some keys were added, so add all of them again.
    ///
    /// # Panics
    /// If `new` is not as long as `keys`.
    ///
    /// ```
    /// use tamis::Growing;
    /// let mut seen = Growing::new(1_000, 0.001)?;
    /// let mut new = [false; 3];
    /// seen.insert_many(&["a", "b", "a"], &mut new)?;
    /// assert_eq!(new, [true, true, false]);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn insert_many<K: Key>(&mut self, keys: &[K], new: &mut [bool]) -> Result<(), Error> {
        new.fill(false);
        if let Some(hashes) = K::batch(keys).hashes()
            && self.layers.len() == 1
            && hashes.len() as u64 <= self.room()
        {
            // There is only one layer, and it has room for all keys.
            assert_eq!(keys.len(), new.len(), "one answer for each key");
            self.fill(hashes, new);
            return Ok(());
        }
        let mut block = [Hash::default(); BLOCK];
        in_blocks(self.hasher, keys, new, &mut block, |hashes, new| {
            self.insert_block(hashes, new)
        })
    }

    /// The bytes it grows by when it is full; 0 if it can't grow.
    #[must_use]
    #[doc(hidden)]
    pub fn growth_bytes(&self) -> u64 {
        let bytes = |next: GrowingLayer| (next.shape.lines() + 1) * 64;
        self.next_layer().map_or(0, bytes)
    }
}

/// Adding, while other processes read the file.
impl<B: Growable> Growing<B> {
    pub(super) fn add(&mut self, hash: Hash) -> Result<bool, Error> {
        if self.contains(hash) {
            return Ok(false);
        }
        self.make_room()?;
        let mut new = [false];
        self.fill(&[hash], &mut new);
        Ok(new[0])
    }

    fn insert_block(&mut self, hashes: &[Hash], new: &mut [bool]) -> Result<(), Error> {
        let old = self.layers.len() - 1;
        let mut known = [false; BLOCK];
        self.ask(&self.layers[..old], hashes, &mut known[..hashes.len()]);
        let mut places = [0; BLOCK];
        let mut unknown = [Hash::default(); BLOCK];
        let mut len = 0;
        for (i, hash) in hashes.iter().enumerate() {
            (places[len], unknown[len]) = (i, *hash);
            len += usize::from(!known[i]);
        }
        let (places, unknown) = (&places[..len], &unknown[..len]);
        let mut was_new = [false; BLOCK];
        if len as u64 <= self.room() {
            self.fill(unknown, &mut was_new[..len]);
            for (place, was_new) in places.iter().zip(was_new) {
                new[*place] = was_new;
            }
            return Ok(());
        }
        // The newest layer may become full in between.
        for (place, hash) in places.iter().zip(unknown) {
            if !self.layers[old..]
                .iter()
                .any(|layer| self.has(layer, *hash))
            {
                self.make_room()?;
                self.fill(&[*hash], &mut new[*place..=*place]);
            }
        }
        Ok(())
    }

    /// Adds keys to the newest layer, which has room for them.
    fn fill(&mut self, hashes: &[Hash], new: &mut [bool]) {
        let Layer {
            shape,
            part,
            at,
            keys,
            ..
        } = *self.newest();
        // Counted before they are added: if the process dies in between, the count is too high,
        // which keeps the promise.
        self.count(keys + hashes.len() as u64);
        let body = match part {
            0 => &mut self.body,
            _ => &mut self.tails[part - 1],
        };
        let range = at..at + shape.lines() as usize * LINE_WORDS;
        match body.exclusive() {
            Some(words) => shape.insert_many(&mut words[range], hashes, new),
            // Other processes may be reading the file.
            None => shape.insert_many_shared(&body.words()[range], hashes, new),
        }
        self.count(keys + new.iter().filter(|new| **new).count() as u64);
    }

    /// Sets the newest layer's count.
    pub(super) fn count(&mut self, keys: u64) {
        let newest = self.layers.len() - 1;
        self.layers[newest].keys = keys;
        let Layer { part, at, .. } = self.layers[newest];
        self.part(part).words()[at - LINE_WORDS + KEYS].put(keys);
        if let Some(total) = self.body.shared_keys() {
            total.put(self.counted_keys());
        }
    }

    /// Adds a layer if the newest is full.
    fn make_room(&mut self) -> Result<(), Error> {
        if self.room() > 0 {
            return Ok(());
        }
        let next = self.next_layer()?;
        let mut header = self.header();
        let shape = self.shape.and(next.shape)?;
        let capacity = self.capacity.saturating_add(next.capacity);
        (header.shape, header.capacity) = (shape.into(), capacity);
        let more = (next.shape.lines() + 1) * 64;
        // The layer first, the header last: until then a shared file is only longer.
        let tail = self.body.append(self.shape.body_len(), more)?;
        put(&next, tail.words());
        self.body.commit(&header)?;
        self.tails.push(tail);
        self.layers.push(Layer {
            shape: next.shape,
            capacity: next.capacity,
            keys: 0,
            rate: next.rate,
            part: self.tails.len(),
            at: LINE_WORDS,
        });
        (self.shape, self.capacity) = (shape, capacity);
        Ok(())
    }

    /// The layer to add next.
    fn next_layer(&self) -> Result<GrowingLayer, Error> {
        let (hashes, per_key) = (self.shape.hashes_per_line(), self.shape.lines_per_key());
        let spent = self.layers.iter().map(|layer| layer.rate).sum();
        let first = self.layers[0];
        let schedule =
            Schedule::resume(first.capacity, self.rate, hashes, per_key).after(first.rate);
        match self.expansion {
            Expansion::None => Err(self.refusal()),
            Expansion::Auto => schedule.next(self.layers.len(), self.capacity, spent),
            Expansion::Times(times) => {
                let capacity = self.newest().capacity.saturating_mul(times.max(1).into());
                match times {
                    LARGE_STEPS.. => schedule.half_of_rest(capacity, spent),
                    _ => schedule.next_of(self.layers.len(), capacity, spent),
                }
            }
        }
    }

    #[cold]
    pub(super) fn refusal(&self) -> Error {
        let keys = self.layers.iter().map(|layer| layer.keys).sum();
        Error::Full {
            entries: keys,
            load: keys as f64 / self.capacity as f64,
        }
    }
}
