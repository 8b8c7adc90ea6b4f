//! Error replies of commands. Clients know many of these texts from RedisBloom, so they are the same.

use std::borrow::Cow;
use std::fmt;

/// The text of an error reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(pub Cow<'static, str>);

impl Error {
    pub const FULL: Self = Self(Cow::Borrowed("ERR non scaling filter is full"));
    pub const NOT_FOUND: Self = Self(Cow::Borrowed("ERR not found"));
    pub const EXISTS: Self = Self(Cow::Borrowed("ERR item exists"));
    pub const MEMORY: Self = Self(Cow::Borrowed("ERR Insufficient memory to create filter"));
    pub const LIMIT: Self = Self(Cow::Borrowed(
        "ERR the filter would be larger than tamis.max-key-bytes allows",
    ));

    pub const MAXMEMORY: Self = Self(Cow::Borrowed(
        "ERR Insufficient memory to create filter: it alone would be larger than maxmemory",
    ));
    pub const LAYERS: Self = Self(Cow::Borrowed(
        "ERR the filter has 1,000 layers, the most there can be: reserve a larger one, or one that grows in larger \
         steps (EXPANSION 2 or more)",
    ));
    pub const NO_WINDOW: Self = Self(Cow::Borrowed(
        "ERR the filter forgets nothing: reserve it with a WINDOW",
    ));
    pub const NO_LINK: Self = Self(Cow::Borrowed("ERR invalid offset - no link found"));
    pub const TOO_BIG: Self = Self(Cow::Borrowed(
        "ERR invalid chunk - Too big for current filter",
    ));
    pub const BAD_DATA: Self = Self(Cow::Borrowed("ERR received bad data"));

    pub fn new(text: &'static str) -> Self {
        Self(Cow::Borrowed(text))
    }

    pub fn bad_data(why: impl fmt::Display) -> Self {
        Self(format!("ERR received bad data: {why}").into())
    }
}

impl From<tamis::Error> for Error {
    fn from(error: tamis::Error) -> Self {
        match error {
            tamis::Error::Full { .. } => Self::FULL,
            tamis::Error::Io { .. } => Self::MEMORY,
            tamis::Error::TooManyCopies { copies } => Self(
                format!("ERR the item is in the filter {copies} times: no more copies fit").into(),
            ),
            error => Self(format!("ERR {error}").into()),
        }
    }
}

impl From<tamis_formats::Error> for Error {
    fn from(error: tamis_formats::Error) -> Self {
        match error {
            tamis_formats::Error::Full { .. } => Self::FULL,
            error => Self(format!("ERR {error}").into()),
        }
    }
}
