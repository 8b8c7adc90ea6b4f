//! Several plain filters in one file, of which a key may be in any. Nothing is added to them here: when the last is full,
//! only their makers know what the next one is.

use crate::Facts;
use crate::bytes::View;
use crate::filter::Filter;
use crate::plain::Plain;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) struct Layers {
    pub(crate) plains: Vec<Plain>,
    pub(crate) facts: Facts,
    /// Why no key can be added.
    pub(crate) read_only: &'static str,
    /// The file, if its bits are not in place there, such as JSON.
    pub(crate) original: Option<Arc<[u8]>>,
}

impl Filter for Layers {
    fn facts(&self) -> Facts {
        self.facts
    }

    fn contains(&self, file: View<'_>, key: &[u8]) -> bool {
        self.plains.iter().any(|plain| plain.contains(file, key))
    }

    fn contains_many(&self, file: View<'_>, keys: &[&[u8]], out: &mut [bool]) {
        for plain in &self.plains {
            if plain.probe.is_single() {
                plain.contains_many(file, keys, out);
                continue;
            }
            for (key, out) in keys.iter().zip(&mut *out) {
                *out = *out || plain.contains(file, key);
            }
        }
    }

    fn read_only(&self, _: View<'_>) -> Option<&'static str> {
        Some(self.read_only)
    }

    fn write(&self, file: View<'_>) -> Vec<u8> {
        match &self.original {
            Some(original) => original.to_vec(),
            None => file.to_vec(),
        }
    }

    fn plains<'v>(&'v self, file: View<'v>) -> Vec<(&'v Plain, View<'v>)> {
        self.plains.iter().map(|plain| (plain, file)).collect()
    }
}
