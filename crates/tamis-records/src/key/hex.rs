//! Keys given in hexadecimal.

use super::NoKey;

/// Replaces hexadecimal digits by the bytes they represent.
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
