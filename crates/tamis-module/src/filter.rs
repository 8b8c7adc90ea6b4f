//! What Bloom and cuckoo filters have in common: they exist in two layouts, leave
//! and arrive in chunks, and can be united.

use crate::error::Error;
use crate::loading::Loading;
use crate::words::FilterLayout;

/// What says how large a filter may become; it is asked before one grows.
pub trait Room {
    /// Whether a filter may take so many bytes in all.
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

    /// What has come of a filter that is none yet.
    fn as_loading(&self) -> Option<&Loading>;

    fn as_loading_mut(&mut self) -> Option<&mut Loading>;

    fn layout(&self) -> FilterLayout;

    /// What its tables take.
    fn bytes(&self) -> Result<u64, Error>;

    /// Whether the key may have been added.
    fn contains(&self, key: &[u8]) -> Result<bool, Error>;

    /// Asks for many: `out[i]` answers for `keys[i]`.
    fn contains_many(&self, keys: &[&[u8]], out: &mut [bool]) -> Result<(), Error> {
        for (key, out) in keys.iter().zip(out) {
            *out = self.contains(key)?;
        }
        Ok(())
    }

    /// How often a key was added, at most.
    fn count(&mut self, key: &[u8]) -> Result<u64, Error>;

    /// Takes back one addition of a key; whether it seemed to be there.
    fn remove(&mut self, key: &[u8]) -> Result<bool, Error>;

    fn duplicate(&self) -> Result<Self, Error>;

    /// Adds all keys of another, with all copies, or changes nothing.
    fn union_with(&mut self, other: &Self) -> Result<(), Error>;

    /// The first chunk of SCANDUMP.
    fn dump_header(&self) -> Vec<u8>;

    /// What follows, from a byte on: at most `most` bytes, none at the end.
    fn dump(&self, at: u64, most: usize) -> Vec<u8>;

    /// How many bytes follow a first chunk.
    fn expected(header: &[u8]) -> Result<u64, Error>;

    /// The filter of a first chunk that counts no keys: nothing need follow. None
    /// if it counts some.
    fn empty(header: &[u8]) -> Result<Option<Self>, Error>;

    /// A filter's first chunk and all that follows. Never panics, whatever the
    /// bytes.
    fn decode(header: &[u8], bytes: &[u8]) -> Result<Self, Error>;

    /// The answer of a filter that is none yet.
    fn check(&self) -> Result<(), Error> {
        self.as_loading()
            .map_or(Ok(()), |loading| Err(loading.refusal()))
    }

    /// The filter that has arrived.
    fn arrived(loading: &Loading) -> Result<Self, Error> {
        Self::decode(loading.header(), loading.received())
    }
}

/// Larger files are dumped without a checksum: all of it would be read for the
/// first chunk.
pub(crate) const SEALED_TO: u64 = 16 << 20;

/// Bytes from `at` on, of one part: as RedisBloom's chunks, they never cross
/// from one part to the next.
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

/// The parts that a header tells the lengths of.
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
