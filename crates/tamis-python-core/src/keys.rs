//! Keys of columns as bytes, and why something is no key.

use tamis::{Hash, Hasher};

/// Why something is no key: the class of `tamis.errors`, and the text.
#[derive(Debug)]
pub struct NoKeys(pub &'static str, pub String);

impl NoKeys {
    /// Objects or columns of a type that keys don't have.
    pub fn of_type(text: String) -> Self {
        Self("KeyTypeError", text)
    }

    /// A column that contradicts itself.
    #[cold]
    pub fn damaged(text: impl std::fmt::Display) -> Self {
        Self(
            "CorruptError",
            format!(
                "keys: expected a valid Arrow column, got one {text}; its producer is at fault"
            ),
        )
    }
}

/// A key, as bytes.
pub enum Key<'a> {
    /// Those of text, to which the filter's rule for keys applies.
    Text(&'a [u8]),
    /// Those of a number or of several values.
    Exact(&'a [u8]),
}

impl Key<'_> {
    /// The hash of the key.
    #[inline]
    pub fn hash(&self, hasher: &Hasher) -> Hash {
        match self {
            Self::Text(bytes) => hasher.hash(bytes),
            Self::Exact(bytes) => hasher.hash_exact(bytes),
        }
    }
}
