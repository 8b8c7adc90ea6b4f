//! How a key that somebody writes as text becomes the bytes that a filter of
//! another system hashed.

use crate::Error;
use std::borrow::Cow;
use std::fmt;

/// How keys became bytes. Few files say it; their users must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Keys {
    /// The bytes themselves; text as UTF-8.
    Utf8,
    /// Text as UTF-16, little-endian (Guava's `unencodedCharsFunnel`).
    Utf16,
    /// Whole numbers as four bytes, little-endian.
    Int32,
    /// Whole numbers as eight bytes, little-endian.
    Int64,
    /// Numbers as four bytes of IEEE 754, little-endian.
    Float32,
    /// Numbers as eight bytes of IEEE 754, little-endian.
    Float64,
    /// Text in upper case (hex SHA-1 in CIRCL's hash list).
    Upper,
    /// Text in lower case.
    Lower,
}

impl Keys {
    /// Every way.
    pub const ALL: &[Self] = &[
        Self::Utf8,
        Self::Utf16,
        Self::Int32,
        Self::Int64,
        Self::Float32,
        Self::Float64,
        Self::Upper,
        Self::Lower,
    ];

    /// The name on the command line.
    ///
    /// ```
    /// assert_eq!(tamis_formats::Keys::Int64.name(), "int64");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "utf8",
            Self::Utf16 => "utf16",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Float32 => "float32",
            Self::Float64 => "float64",
            Self::Upper => "upper",
            Self::Lower => "lower",
        }
    }

    pub(crate) const fn expected(self) -> &'static str {
        match self {
            Self::Utf8 | Self::Upper | Self::Lower => "any bytes",
            Self::Utf16 => "UTF-8 text",
            Self::Int32 => "a whole number of 32 bits",
            Self::Int64 => "a whole number of 64 bits",
            Self::Float32 | Self::Float64 => "a number",
        }
    }

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

impl fmt::Display for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Keys {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|keys| keys.name() == text);
        found.copied().ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|keys| keys.name()).collect();
            format!("expected one of {}, got {text:?}", names.join(", "))
        })
    }
}
