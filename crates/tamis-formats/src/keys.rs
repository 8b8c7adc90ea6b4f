//! How a key that somebody writes as text becomes the bytes that a filter of
//! another system hashed.

use crate::error::Error;
use crate::names::Keys;
use std::borrow::Cow;

impl Keys {
    /// The bytes to ask for.
    ///
    /// ```
    /// use tamis_formats::Keys;
    /// assert_eq!(&*Keys::Utf8.encode(b"key")?, b"key");
    /// assert_eq!(&*Keys::Int32.encode(b"-1")?, [255; 4]);
    /// assert!(Keys::Int32.encode(b"key").is_err());
    /// # Ok::<(), tamis_formats::Error>(())
    /// ```
    pub fn encode(self, text: &[u8]) -> Result<Cow<'_, [u8]>, Error> {
        let refuse = || Error::Key {
            keys: self,
            got: String::from_utf8_lossy(&text[..text.len().min(80)]).into_owned(),
        };
        let words = || std::str::from_utf8(text).map_err(|_| refuse());
        Ok(match self {
            Self::Utf8 => text.into(),
            Self::Upper => text.to_ascii_uppercase().into(),
            Self::Lower => text.to_ascii_lowercase().into(),
            Self::Utf16 => (words()?.encode_utf16())
                .flat_map(u16::to_le_bytes)
                .collect(),
            Self::Int32 => parse::<i32>(words()?)
                .ok_or_else(refuse)?
                .to_le_bytes()
                .to_vec()
                .into(),
            Self::Int64 => parse::<i64>(words()?)
                .ok_or_else(refuse)?
                .to_le_bytes()
                .to_vec()
                .into(),
            Self::Float32 => parse::<f32>(words()?)
                .ok_or_else(refuse)?
                .to_le_bytes()
                .to_vec()
                .into(),
            Self::Float64 => parse::<f64>(words()?)
                .ok_or_else(refuse)?
                .to_le_bytes()
                .to_vec()
                .into(),
        })
    }
}

fn parse<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Python's `encode` and `struct.pack` make of them.
    #[test]
    fn bytes_are_those_that_other_languages_make() {
        for (keys, text, expected) in [
            (Keys::Utf8, "", &b""[..]),
            (Keys::Utf8, "\0\u{80}", b"\0\xc2\x80"),
            (Keys::Utf16, "", b""),
            (Keys::Utf16, "a\0é", b"a\0\0\0\xe9\0"),
            (Keys::Utf16, "🌾", b"\x3c\xd8\x3e\xdf"),
            (Keys::Int32, "-2147483648", b"\0\0\0\x80"),
            (Keys::Int32, "+7", b"\x07\0\0\0"),
            (Keys::Int64, "-1", &[0xFF; 8]),
            (
                Keys::Int64,
                "9223372036854775807",
                b"\xff\xff\xff\xff\xff\xff\xff\x7f",
            ),
            (Keys::Float32, "1.25", b"\0\0\xa0\x3f"),
            (Keys::Float64, "-0.5", b"\0\0\0\0\0\0\xe0\xbf"),
            (Keys::Upper, "a9fé", "A9Fé".as_bytes()),
            (Keys::Lower, "A9FÉ", "a9fÉ".as_bytes()),
        ] {
            assert_eq!(&*keys.encode(text.as_bytes()).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_a_key_is_refused() {
        for (keys, text) in [
            (Keys::Int32, &b"2147483648"[..]),
            (Keys::Int64, b"9223372036854775808"),
            (Keys::Int64, b""),
            (Keys::Int64, b"1.0"),
            (Keys::Float64, b"one"),
            (Keys::Utf16, b"\xff"),
        ] {
            assert!(
                matches!(keys.encode(text), Err(Error::Key { .. })),
                "{text:?}"
            );
        }
    }
}
