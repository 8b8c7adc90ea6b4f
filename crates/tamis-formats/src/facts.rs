//! What files say of themselves.

/// What a file says of itself beside its bits.
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
    /// Notes a key in the file, if that has a count and the key was new.
    pub(crate) fn count(&mut self, file: &mut [u8], new: bool) {
        if let (true, Some(at), Some(keys)) = (new, self.count_at, &mut self.keys) {
            *keys = keys.saturating_add(1);
            file[at..at + 8].copy_from_slice(&keys.to_le_bytes());
        }
    }
}
