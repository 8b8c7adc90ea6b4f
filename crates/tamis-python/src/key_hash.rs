//! `tamis.Hash`: a key's hash, computed once for many filters.

use crate::error::{Failure, Result};
use pyo3::prelude::*;
use tamis::{Hash, Hasher};

/// The hash of a key: what `Filter.hash` gives, and what filters that hash alike
/// take in the place of the key.
#[pyclass(frozen, module = "tamis", name = "Hash")]
pub(crate) struct KeyHash {
    hash: Hash,
    hasher: Hasher,
}

impl KeyHash {
    pub(crate) const fn new(hash: Hash, hasher: Hasher) -> Self {
        Self { hash, hasher }
    }

    /// The hash for a filter that hashes with `hasher`.
    pub(crate) fn for_hasher(&self, hasher: &Hasher) -> Result<Hash> {
        if self.hasher.agrees_with(hasher) {
            Ok(self.hash)
        } else {
            Err(Failure::Own(
                "UnlikeError",
                "key: expected the hash of a filter that hashes as this one does (seed, secret, \
                 ignore_case, url), got another's; make it with this filter's hash()"
                    .into(),
            ))
        }
    }
}

#[pymethods]
impl KeyHash {
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| {
            let other = other.get();
            self.hash == other.hash && self.hasher.agrees_with(&other.hasher)
        })
    }

    fn __hash__(&self) -> u64 {
        self.hash.as_u128() as u64
    }

    fn __repr__(&self) -> String {
        format!("<tamis.Hash {:032x}>", self.hash.as_u128())
    }
}
