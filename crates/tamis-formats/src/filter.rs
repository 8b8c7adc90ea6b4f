//! The operations of all foreign filters, whatever their format.

use crate::bytes::{Bytes, View};
use crate::plain::Plain;
use crate::{Error, Facts, Keys, Wrap};
use std::any::Any;
use std::fmt::Debug;
use tamis::internals::raw::{Explanation, Joined};

/// A filter without the bytes of its file, which every method gets as an argument.
///
/// A filter that consists of [`Plain`] ones only implements `plains`; the other methods follow from
/// that.
pub(crate) trait Filter: Any + Clonable + Debug + Send + Sync {
    /// The facts stored in the file.
    fn facts(&self) -> Facts {
        Facts::default()
    }

    /// How its keys became bytes, if the file says more than its format does.
    fn keys(&self) -> Option<&'static [Keys]> {
        None
    }

    fn contains(&self, file: View<'_>, key: &[u8]) -> bool;

    /// Sets `out[i]` where it may have `keys[i]`; leaves the others unchanged.
    fn contains_many(&self, file: View<'_>, keys: &[&[u8]], out: &mut [bool]) {
        for (key, out) in keys.iter().zip(out) {
            *out |= self.contains(file, key);
        }
    }

    /// The bits or slots that [`contains`](Self::contains) reads, and their values.
    fn explain(&self, file: View<'_>, key: &[u8]) -> Explanation {
        let plains = self.plains(file).into_iter();
        Explanation {
            joined: Joined::Layers,
            looks: plains
                .flat_map(|(plain, file)| plain.looks(file, key))
                .collect(),
        }
    }

    /// The name of its hash.
    fn hash_name(&self, file: View<'_>) -> &'static str {
        let plains = self.plains(file);
        plains
            .last()
            .map_or("unknown", |(plain, _)| plain.probe.hash_name())
    }

    /// Why this file accepts no keys, although its format does.
    fn read_only(&self, _: View<'_>) -> Option<&'static str> {
        None
    }

    /// Adds a key; returns whether it was new. Only called if neither the format nor the file is
    /// read-only.
    fn insert(&mut self, _: &mut Bytes<'_>, _: &[u8]) -> Result<bool, Error> {
        unreachable!("read-only formats have been refused")
    }

    fn can_remove(&self) -> bool {
        false
    }

    /// Removes a key, if the filter supports it; returns whether it was there.
    fn remove(&mut self, _: &[u8]) -> bool {
        false
    }

    /// Adds all keys of another filter of its format. False if such filters can't be united.
    fn union_with(
        &mut self,
        _: &mut Bytes<'_>,
        _: &dyn Filter,
        _: View<'_>,
    ) -> Result<bool, Error> {
        Ok(false)
    }

    /// The file.
    fn write(&self, file: View<'_>) -> Vec<u8> {
        file.to_vec()
    }

    /// Makes [`write`](Self::write) return another of its format's files. False if there is no such
    /// file.
    fn rewrap(&mut self, _: Wrap) -> bool {
        false
    }

    /// The plain filters that it consists of, with their bytes.
    fn plains<'v>(&'v self, _: View<'v>) -> Vec<(&'v Plain, View<'v>)> {
        Vec::new()
    }

    /// The number of bits.
    fn bits(&self, file: View<'_>) -> u64 {
        let plains = self.plains(file);
        plains.iter().map(|(plain, _)| plain.bits.len).sum()
    }

    /// The share of set bits or of used slots.
    fn fill(&self, file: View<'_>) -> f64 {
        let ones = |(plain, file): (&Plain, View<'_>)| plain.bits.ones(file);
        let ones: u64 = self.plains(file).into_iter().map(ones).sum();
        ones as f64 / self.bits(file).max(1) as f64
    }

    /// The false-positive rate now.
    fn rate(&self, file: View<'_>) -> f64 {
        let no = |(plain, file): (&Plain, View<'_>)| 1.0 - plain.rate(file);
        1.0 - self.plains(file).into_iter().map(no).product::<f64>()
    }

    /// The number of keys, counted or estimated; none if every bit is set.
    fn key_count(&self, file: View<'_>) -> Option<f64> {
        let keys = |(plain, file): (&Plain, View<'_>)| plain.keys(file);
        self.plains(file).into_iter().map(keys).sum()
    }

    /// The number of bits per key; `None` if it doesn't have bits.
    fn hashes(&self, file: View<'_>) -> Option<u64> {
        let plains = self.plains(file);
        plains.last().map(|(plain, _)| plain.probe.hashes())
    }
}

/// A copy of a filter in a box.
pub(crate) trait Clonable {
    fn boxed(&self) -> Box<dyn Filter>;
}

impl<F: Filter + Clone> Clonable for F {
    fn boxed(&self) -> Box<dyn Filter> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Filter> {
    fn clone(&self) -> Self {
        (**self).boxed()
    }
}

/// Downcasts the other filter, if it has the same type.
pub(crate) fn same<'f, F: Filter>(_: &F, other: &'f dyn Filter) -> Option<&'f F> {
    (other as &dyn Any).downcast_ref()
}

/// The result of reading a file.
pub(crate) struct Opened {
    pub(crate) filter: Box<dyn Filter>,
    /// The bytes that the filter uses, if they aren't those of the file.
    pub(crate) file: Option<Vec<u8>>,
}

impl Opened {
    /// A filter that uses these bytes.
    pub(crate) fn new(filter: impl Filter, file: Vec<u8>) -> Self {
        Self {
            filter: Box::new(filter),
            file: Some(file),
        }
    }
}

impl<F: Filter> From<F> for Opened {
    fn from(filter: F) -> Self {
        Self {
            filter: Box::new(filter),
            file: None,
        }
    }
}
