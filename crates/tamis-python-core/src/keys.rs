//! Keys of columns as bytes, and errors for objects that aren't keys.

use tamis::{Hash, Hasher};

/// Why something isn't a key: the class in `tamis.errors`, and the text.
#[derive(Debug)]
pub struct NoKeys(pub &'static str, pub String);

impl NoKeys {
    /// For objects or columns of a type that can't be keys.
    pub fn of_type(text: String) -> Self {
        Self("KeyTypeError", text)
    }

    /// For a column that contradicts itself.
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
    /// The bytes of text, to which the filter's key rule applies.
    Text(&'a [u8]),
    /// The bytes of a number or of several values.
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
