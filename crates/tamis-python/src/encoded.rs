//! Python objects as keys.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tamis::{Hash, Hasher};

/// The bytes of a key.
pub(crate) enum Encoded<'py> {
    /// The bytes of text, to which the filter's key rule applies.
    Text(Bound<'py, PyBytes>),
    /// The bytes of a number or of several values.
    Exact(Vec<u8>),
}

impl Encoded<'_> {
    pub(crate) fn hash(&self, hasher: &Hasher) -> Hash {
        match self {
            Self::Text(bytes) => hasher.hash(bytes.as_bytes()),
            Self::Exact(bytes) => hasher.hash_exact(bytes),
        }
    }
}

/// An object in a column.
pub(crate) enum Value<'py> {
    Key(Encoded<'py>),
    /// A missing value: None, NaN, NaT and the like.
    Missing,
}
