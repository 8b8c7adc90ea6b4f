//! The same filter in another of its format's files.

use super::{Body, Envelope, Foreign};
use crate::format::redis::Wrapping;
use crate::{Error, Format};

/// The files that a format has for one and the same filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrap {
    /// RedisBloom's, as DUMP gives it and RESTORE takes it.
    Dump,
    /// RedisBloom's, as SCANDUMP gives it and LOADCHUNK takes it.
    Chunks,
    /// bits-and-blooms's JSON.
    Json,
    /// bits-and-blooms's `WriteTo`.
    Binary,
}

impl Wrap {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Dump, Self::Chunks, Self::Json, Self::Binary];

    /// The name on the command line.
    ///
    /// ```
    /// assert_eq!(tamis_formats::Wrap::Dump.name(), "dump");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dump => "dump",
            Self::Chunks => "chunks",
            Self::Json => "json",
            Self::Binary => "binary",
        }
    }
}

impl Foreign<'_> {
    /// Makes [`to_bytes`](Self::to_bytes) give another of its format's files.
    /// Its keys and bits stay as they are.
    ///
    /// ```
    /// use tamis_formats::{Create, Format, Wrap, create, open};
    /// let mut filter = create(Create::BitsAndBlooms { json: false }, 100, 0.01)?;
    /// filter.insert(b"key")?;
    /// filter.rewrap(Wrap::Json)?;
    /// assert!(filter.to_bytes().starts_with(b"{"));
    /// assert!(filter.rewrap(Wrap::Dump).is_err());
    /// # Ok::<(), tamis_formats::Error>(())
    /// ```
    pub fn rewrap(&mut self, wrap: Wrap) -> Result<(), Error> {
        match (&mut self.body, wrap) {
            (Body::Redis { wrapping, .. }, Wrap::Dump) => *wrapping = Wrapping::new(false),
            (Body::Redis { wrapping, .. }, Wrap::Chunks) => *wrapping = Wrapping::new(true),
            (Body::Plain { envelope, .. }, Wrap::Json | Wrap::Binary)
                if self.format == Format::BitsAndBlooms =>
            {
                *envelope = match wrap {
                    Wrap::Json => Envelope::GoJson,
                    _ => Envelope::None,
                };
            }
            _ => {
                return Err(Error::Unable {
                    format: self.format,
                    what: "be written so",
                    instead: "only redisbloom's have dump and chunks, bits-and-blooms's json and binary",
                });
            }
        }
        Ok(())
    }

    /// Whether it was gzipped; written again, it is once more.
    pub const fn is_gzipped(&self) -> bool {
        self.gzipped
    }

    /// Makes [`to_bytes`](Self::to_bytes) give the file without gzip around it.
    pub const fn unpack(&mut self) {
        self.gzipped = false;
    }
}
