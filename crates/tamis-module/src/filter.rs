//! Shared by Bloom and cuckoo filters: they have several layouts, are dumped and loaded in chunks, and can be merged.

use crate::error::Error;
use crate::loading::Loading;
use crate::words::FilterLayout;

/// Decides how large a filter may become. Asked before one grows.
pub trait Room {
    /// Whether a filter may take this many bytes in total.
    fn allows(&self, bytes: u64) -> Result<(), Error>;
}

/// A number of bytes.
impl Room for u64 {
    fn allows(&self, bytes: u64) -> Result<(), Error> {
        (bytes <= *self).then_some(()).ok_or(Error::LIMIT)
    }
}

pub trait Filter: Sized {
    fn loading(loading: Loading) -> Self;

    /// The received part of a filter that is still being loaded.
    fn as_loading(&self) -> Option<&Loading>;

    fn as_loading_mut(&mut self) -> Option<&mut Loading>;

    fn layout(&self) -> FilterLayout;

    /// The memory of its tables.
    fn bytes(&self) -> Result<u64, Error>;

    /// Whether the key may have been added.
    fn contains(&self, key: &[u8]) -> Result<bool, Error>;

    /// Queries many keys: `out[i]` answers for `keys[i]`.
    fn contains_many(&self, keys: &[&[u8]], out: &mut [bool]) -> Result<(), Error> {
        for (key, out) in keys.iter().zip(out) {
            *out = self.contains(key)?;
        }
        Ok(())
    }

    /// How often a key was added, at most.
    fn count(&mut self, key: &[u8]) -> Result<u64, Error>;

    /// Takes back one addition of a key; returns whether the key seemed present.
    fn remove(&mut self, key: &[u8]) -> Result<bool, Error>;

    fn duplicate(&self) -> Result<Self, Error>;

    /// Adds all keys of another, with all copies, or changes nothing.
    fn union_with(&mut self, other: &Self) -> Result<(), Error>;

    /// The first chunk of SCANDUMP.
    fn dump_header(&self) -> Vec<u8>;

    /// The bytes that follow, from a position on: at most `most`, none at the end.
    fn dump(&self, at: u64, most: usize) -> Vec<u8>;

    /// How many bytes follow a first chunk.
    fn expected(header: &[u8]) -> Result<u64, Error>;

    /// The filter, if the first chunk counts no keys, so that nothing need follow. `None` if it counts some.
    fn empty(header: &[u8]) -> Result<Option<Self>, Error>;

    /// Decodes a filter's first chunk and everything that follows. Never panics, whatever the bytes.
    fn decode(header: &[u8], bytes: &[u8]) -> Result<Self, Error>;

    /// An error if the filter is still being loaded.
    fn check(&self) -> Result<(), Error> {
        self.as_loading()
            .map_or(Ok(()), |loading| Err(loading.refusal()))
    }

    /// The filter, once fully loaded.
    fn arrived(loading: &Loading) -> Result<Self, Error> {
        Self::decode(loading.header(), loading.received())
    }
}

/// Larger files are dumped without a checksum: computing it for the first chunk would read the whole filter.
pub(crate) const SEALED_TO: u64 = 16 << 20;

/// Bytes from `at` on, of one part: like RedisBloom's chunks, they never cross from one part to the next.
pub(crate) fn piece(parts: &[&[u8]], at: u64, most: usize) -> Vec<u8> {
    let mut at = at;
    for part in parts {
        match part.len() as u64 {
            len if at >= len => at -= len,
            len => {
                let end = at.saturating_add(most as u64).min(len);
                return part[at as usize..end as usize].to_vec();
            }
        }
    }
    Vec::new()
}

/// The parts, from the lengths in a header.
pub(crate) fn parts(
    lengths: impl IntoIterator<Item = u64>,
    mut bytes: &[u8],
) -> Result<Vec<&[u8]>, Error> {
    let part = |len| {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        bytes.split_off(..len).ok_or(Error::bad_data("too short"))
    };
    lengths.into_iter().map(part).collect()
}
