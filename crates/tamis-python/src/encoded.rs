//! What Python objects are as keys.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tamis::{Hash, Hasher};

/// The bytes that a key is.
pub(crate) enum Encoded<'py> {
    /// Those of text, to which the filter's rule for keys applies.
    Text(Bound<'py, PyBytes>),
    /// Those of a number or of several values.
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

/// What an object of a column is.
pub(crate) enum Value<'py> {
    Key(Encoded<'py>),
    /// Nothing: None, NaN, NaT and their like.
    Missing,
}
