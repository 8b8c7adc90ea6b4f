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
            // A column of numbers without a sign has the same bytes.
            Self::Int32 => parse::<i32>(words()?)
                .or_else(|| parse::<u32>(words().ok()?).map(u32::cast_signed))
                .ok_or_else(refuse)?
                .to_le_bytes()
                .to_vec()
                .into(),
            Self::Int64 => parse::<i64>(words()?)
                .or_else(|| parse::<u64>(words().ok()?).map(u64::cast_signed))
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
