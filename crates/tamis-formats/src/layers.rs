//! Several plain filters in one file; a key may be in any of them. Read-only, because only the original systems know
//! the size of the next filter when the last one is full.

use crate::Facts;
use crate::bytes::View;
use crate::filter::Filter;
use crate::plain::Plain;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) struct Layers {
    pub(crate) plains: Vec<Plain>,
    pub(crate) facts: Facts,
    /// Why keys can't be added.
    pub(crate) read_only: &'static str,
    /// The file, if it doesn't contain the bits in place, as with JSON.
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
