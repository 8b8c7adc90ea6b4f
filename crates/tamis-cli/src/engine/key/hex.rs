//! Keys given in hexadecimal.

use super::NoKey;

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

/// What to say of a record whose key is not in hexadecimal.
pub(crate) fn not_hex(input: &[u8], number: u64, content: &[u8]) -> String {
    let input = String::from_utf8_lossy(input);
    let shown = content[..content.len().min(SHOWN)].escape_ascii();
    let more = if content.len() > SHOWN { "…" } else { "" };
    format!("{input}:{number}: --hex expects hexadecimal digits, two per byte, got '{shown}{more}'")
}
