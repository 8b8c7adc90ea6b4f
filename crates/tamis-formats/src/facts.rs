//! What files say of themselves.

use crate::names::Hash;

/// What a file says of itself, next to its bits.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Facts {
    /// For how many keys it was made.
    pub capacity: Option<u64>,
    /// For which rate.
    pub rate: Option<f64>,
    /// How many keys it says it has.
    pub keys: Option<u64>,
    /// How it hashes, where a format has several ways.
    pub hash: Option<Hash>,
    /// The other ways that it may hash: the file does not say which it is.
    pub other_hashes: &'static [Hash],
    /// Where that number stands, as 64 bits little-endian.
    pub(crate) count_at: Option<usize>,
    /// Bytes of the user's behind the filter.
    pub data: usize,
}

impl Facts {
    /// What to say where the file leaves open how its keys were hashed: then every
    /// answer may be wrong, a "no" as well.
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

    /// Notes a key in the file, if that has a count and the key was new.
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
