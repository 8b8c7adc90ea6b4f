//! What files say of themselves.

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
    /// Where that number stands, as 64 bits little-endian.
    pub(crate) count_at: Option<usize>,
    /// Bytes of the user's behind the filter.
    pub data: usize,
}

impl Facts {
    pub(crate) const NONE: Self = Self {
        capacity: None,
        rate: None,
        keys: None,
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
