//! Look-ups in the layers of a growing filter.

use super::Growing;
use crate::filter::keys::in_blocks;
use crate::hash::Hash;
use crate::key::Key;
use crate::raw::explain::{Explanation, Joined};
use crate::raw::layers::Layer;
use crate::raw::layout::{BLOCK, Layout};
use crate::store::body::Body;
use std::convert::Infallible;

impl<B: Body> Growing<B> {
    #[inline]
    pub(super) fn has(&self, layer: &Layer, hash: Hash) -> bool {
        layer.shape.contains(self.words(layer), hash)
    }

    /// Whether the key may have been added. "No" is always right; "yes" is
    /// wrong for about one in `1/rate` keys that were not added.
    ///
    /// ```
    /// use tamis::Growing;
    /// let mut seen = Growing::new(1_000, 0.001)?;
    /// seen.insert("apple")?;
    /// assert!(seen.contains("apple")); // always
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn contains(&self, key: impl Key) -> bool {
        let hash = key.key_hash(&self.hasher);
        self.layers.iter().rev().any(|layer| self.has(layer, hash))
    }

    /// The steps of a look-up in each layer; see [`AnyFilter::explain`](crate::AnyFilter::explain).
    #[doc(hidden)]
    #[must_use]
    pub fn explain(&self, key: impl Key) -> Explanation {
        let hash = key.key_hash(&self.hasher);
        let looks = |layer: &Layer| layer.shape.explain(self.words(layer), hash).looks;
        Explanation {
            joined: Joined::Layers,
            looks: self.layers.iter().flat_map(looks).collect(),
        }
    }

    /// Looks up many keys; `found[i]` is the answer for `keys[i]`.
    ///
    /// # Panics
    /// If `found` is not as long as `keys`.
    ///
    /// ```
    /// use tamis::Growing;
    /// let mut seen = Growing::new(1_000, 0.001)?;
    /// seen.insert("b")?;
    /// let mut found = [false; 3];
    /// seen.contains_many(&["a", "b", "c"], &mut found);
    /// assert_eq!(found, [false, true, false]);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn contains_many<K: Key>(&self, keys: &[K], found: &mut [bool]) {
        let mut block = [Hash::default(); BLOCK];
        let Ok(()) = in_blocks(self.hasher, keys, found, &mut block, |hashes, found| {
            self.ask(&self.layers, hashes, found);
            Ok::<(), Infallible>(())
        });
    }

    /// Looks up keys in the layers that take no more, and returns whether there are any.
    pub(crate) fn ask_older(&self, hashes: &[Hash], out: &mut [bool]) -> bool {
        let older = &self.layers[..self.layers.len() - 1];
        if !older.is_empty() {
            for (hashes, out) in hashes.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
                self.ask(older, hashes, out);
            }
        }
        !older.is_empty()
    }

    /// Looks up at most [`BLOCK`] keys, in the newest layer first: it has about half of all keys.
    pub(super) fn ask(&self, layers: &[Layer], hashes: &[Hash], out: &mut [bool]) {
        out.fill(false);
        if layers.is_empty() {
            return;
        }
        // Keys not yet found in any layer, and their indexes.
        let mut waiting = [Hash::default(); BLOCK];
        let mut who: [usize; BLOCK] = std::array::from_fn(|i| i);
        let mut len = hashes.len();
        waiting[..len].copy_from_slice(hashes);
        let mut found = [false; BLOCK];
        for layer in layers.iter().rev() {
            let words = self.words(layer);
            (layer.shape).contains_hashes(words, &waiting[..len], &mut found[..len]);
            let mut left = 0;
            for i in 0..len {
                out[who[i]] = found[i];
                (waiting[left], who[left]) = (waiting[i], who[i]);
                left += usize::from(!found[i]);
            }
            len = left;
            if len == 0 {
                return;
            }
        }
    }
}
