//! The union of two growing filters, layer by layer, if there is room for the keys of both.

use super::Growing;
use crate::error::Error;
use crate::kind::Kind;
use crate::raw::blocked::LINE_WORDS;
use crate::raw::layers::{GrowingLayer, KEYS, Layer, put};
use crate::raw::word::Word as _;
use crate::store::body::{Body, Bytes};
use std::fmt;
use std::sync::atomic::Ordering::Relaxed;

impl Growing {
    /// Adds all keys of `other`, which must have started like this one and hash alike. To keep the
    /// rate, no layer takes more keys than it was made for; if the keys of both don't fit, this is
    /// [`Error::Full`]. An error changes nothing.
    ///
    /// ```
    /// use tamis::{Growing, Hasher, internals::Expansion};
    /// let new = || Growing::reserve(10_000, 0.01, Expansion::Auto, Hasher::default());
    /// let (mut a, mut b) = (new()?, new()?);
    /// a.insert("left")?;
    /// b.insert("right")?;
    /// a.union_with(&b)?;
    /// assert!(a.contains("left") && a.contains("right"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn union_with<C: Body>(&mut self, other: &Growing<C>) -> Result<(), Error> {
        let unlike = |what, ours: &dyn fmt::Display, theirs: &dyn fmt::Display| Error::Unlike {
            what,
            ours: ours.to_string(),
            theirs: theirs.to_string(),
        };
        let unable = |what, instead| Error::Unable {
            kind: Kind::Growing,
            what,
            instead,
        };
        if self.is_shared() {
            return Err(unable(
                "united in a shared file",
                "load this one into memory, unite the two, and save it",
            ));
        }
        self.hasher.check_like(&other.hasher)?;
        if self.rate != other.rate {
            return Err(unlike("the rate", &self.rate, &other.rate));
        }
        if !self.counted || !other.counted {
            return Err(unable(
                "united after keys were lost",
                "one of the two no longer knows how many keys it holds; build it again from its keys",
            ));
        }
        for (ours, theirs) in self.layers.iter().zip(&other.layers) {
            if ours.shape != theirs.shape || ours.capacity != theirs.capacity {
                let (ours, theirs) = (ours.shape.lines(), theirs.shape.lines());
                return Err(unlike("the size of a layer in lines", &ours, &theirs));
            }
            if ours.keys.saturating_add(theirs.keys) > ours.capacity {
                return Err(self.refusal());
            }
        }
        let mut shape = self.shape;
        let mut more = Vec::new();
        for layer in other.layers.iter().skip(self.layers.len()) {
            shape = shape.and(layer.shape)?;
            more.push(Bytes::zeroed((layer.shape.lines() + 1) * 64)?);
        }
        for (tail, layer) in more.into_iter().zip(&other.layers[self.layers.len()..]) {
            let geometry = GrowingLayer {
                shape: layer.shape,
                capacity: layer.capacity,
                rate: layer.rate,
            };
            put(&geometry, tail.words());
            self.tails.push(tail);
            self.layers.push(Layer {
                keys: 0,
                part: self.tails.len(),
                at: LINE_WORDS,
                ..*layer
            });
        }
        self.shape = shape;
        for (i, theirs) in other.layers.iter().enumerate() {
            let ours = self.layers[i];
            for (to, from) in self.words(&ours).iter().zip(other.words(theirs)) {
                to.fetch_or(from.get().to_le(), Relaxed);
            }
            let keys = ours.keys + theirs.keys;
            self.layers[i].keys = keys;
            let about = ours.at - LINE_WORDS + KEYS;
            self.part(ours.part).words()[about].store(keys.to_le(), Relaxed);
        }
        let (newest, older) = (
            self.newest().capacity,
            &self.layers[..self.layers.len() - 1],
        );
        let older: u64 = older.iter().map(|layer| layer.keys).sum();
        self.capacity = older.saturating_add(newest);
        Ok(())
    }
}
