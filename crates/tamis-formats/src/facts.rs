//! Facts stored in files.

use crate::names::Hash;

/// Facts that a file stores next to its bits.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Facts {
    /// The number of keys it was made for.
    pub capacity: Option<u64>,
    /// The rate it was made for.
    pub rate: Option<f64>,
    /// The number of keys, according to the file.
    pub keys: Option<u64>,
    /// How it hashes, if the format has several hashes.
    pub hash: Option<Hash>,
    /// Other possible hashes, if the file doesn't say which one it uses.
    pub other_hashes: &'static [Hash],
    /// The position of the count of keys, a 64-bit little-endian number.
    pub(crate) count_at: Option<usize>,
    /// Bytes of user data after the filter.
    pub data: usize,
}

impl Facts {
    /// A warning if the file leaves open how its keys were hashed: then every
    /// answer may be wrong, even a "no".
    ///
    /// ```
    /// assert_eq!(tamis_formats::Facts::default().doubt(), None);
    /// ```
    pub fn doubt(&self) -> Option<String> {
        let (Some(hash), [_, ..]) = (self.hash, self.other_hashes) else {
            return None;
        };
        let others: Vec<&str> = self.other_hashes.iter().map(|hash| hash.name()).collect();
        Some(format!(
            "the file does not say how its keys were hashed: taken for {hash}, it may be {}, and the answers wrong",
            others.join(" or ")
        ))
    }

    pub(crate) const NONE: Self = Self {
        capacity: None,
        rate: None,
        keys: None,
        hash: None,
        other_hashes: &[],
        count_at: None,
        data: 0,
    };

    /// Counts a key if it was new and the file has a count.
    pub(crate) fn count(&mut self, file: &mut [u8], new: bool) {
        if new {
            self.set_count(file, self.keys.map(|keys| keys.saturating_add(1)));
        }
    }

    /// Sets the count, if the file has one.
    pub(crate) fn set_count(&mut self, file: &mut [u8], count: Option<u64>) {
        if let (Some(at), Some(keys), Some(count)) = (self.count_at, &mut self.keys, count) {
            *keys = count;
            file[at..at + 8].copy_from_slice(&count.to_le_bytes());
        }
    }
}
