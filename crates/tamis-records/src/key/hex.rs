//! Keys given in hexadecimal.

use super::NoKey;
use std::fmt;

/// How much of a record an error shows.
const SHOWN: usize = 40;

/// Replaces hexadecimal digits by the bytes that they stand for.
pub(super) fn decode(text: &mut Vec<u8>) -> Result<(), NoKey> {
    if !text.len().is_multiple_of(2) {
        return Err(NoKey::NotHex);
    }
    for i in 0..text.len() / 2 {
        text[i] = digit(text[2 * i])? << 4 | digit(text[2 * i + 1])?;
    }
    text.truncate(text.len() / 2);
    Ok(())
}

fn digit(byte: u8) -> Result<u8, NoKey> {
    let digit = char::from(byte).to_digit(16).ok_or(NoKey::NotHex)?;
    Ok(digit as u8)
}

/// A record whose key is not in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotHex {
    /// The name of its input.
    pub input: String,
    /// Its number there, from 1.
    pub number: u64,
    /// How it begins, with bytes that are not printable ASCII escaped.
    pub start: String,
}

impl NotHex {
    /// A record with this content.
    pub fn new(input: &[u8], number: u64, content: &[u8]) -> Self {
        let shown = content[..content.len().min(SHOWN)].escape_ascii();
        let more = if content.len() > SHOWN { "…" } else { "" };
        Self {
            input: String::from_utf8_lossy(input).into_owned(),
            number,
            start: format!("{shown}{more}"),
        }
    }
}

impl fmt::Display for NotHex {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(
            f,
            "{}:{}: expected hexadecimal digits, two per byte, got '{}'",
            self.input, self.number, self.start
        )
    }
}

impl std::error::Error for NotHex {}
