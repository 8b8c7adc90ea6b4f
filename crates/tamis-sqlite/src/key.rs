//! SQL values as keys.

use rusqlite::functions::{Context, SubType};
use rusqlite::types::{Type, ValueRef};
use rusqlite::{Error, Result};
use std::io::Write as _;
use tamis::{Hash, Hasher};

/// Marks the result of [`int`] until it is stored: no key rule applies to integers.
const INTEGER: u32 = b'I' as u32;

/// An error with this text.
pub(crate) fn error(text: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::UserFunctionError(text.into())
}

/// An error about an argument of the wrong type.
pub(crate) fn wrong(what: &str, expected: &str, got: Type) -> Error {
    error(format!("{what}: expected {expected}, got {got}"))
}

/// Calls the function with the bytes of a key; `None` for NULL.
pub(crate) fn with_bytes<T>(
    value: ValueRef<'_>,
    run: impl FnOnce(&[u8]) -> T,
) -> Result<Option<T>> {
    match value {
        ValueRef::Null => Ok(None),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Ok(Some(run(bytes))),
        // As text, like in a list of keys.
        ValueRef::Integer(number) => {
            let mut text = [0; 20];
            let mut rest = &mut text[..];
            write!(rest, "{number}").map_err(error)?;
            let left = rest.len();
            Ok(Some(run(&text[..20 - left])))
        }
        ValueRef::Real(number) => Err(error(format!(
            "key: expected a text, a blob or an integer, got the real number {number}; it has many texts: \
             cast it to the one that was added"
        ))),
    }
}

/// The hash of an argument; `None` for NULL.
pub(crate) fn hash(ctx: &Context<'_>, argument: usize, hasher: &Hasher) -> Result<Option<Hash>> {
    match ctx.get_raw(argument) {
        ValueRef::Blob(bytes) if ctx.get_subtype(argument) == INTEGER => {
            Ok(Some(hasher.hash_exact(bytes)))
        }
        value => with_bytes(value, |bytes| hasher.hash(bytes)),
    }
}

/// `tamis_int(number)`: the key for an integer in programs that add integers.
pub(crate) fn int(ctx: &Context<'_>) -> Result<(Option<[u8; 8]>, SubType)> {
    match ctx.get_raw(0) {
        ValueRef::Null => Ok((None, None)),
        ValueRef::Integer(number) => Ok((Some(number.to_le_bytes()), Some(INTEGER))),
        other => Err(wrong("tamis_int", "an integer", other.data_type())),
    }
}
