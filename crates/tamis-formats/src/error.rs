//! Errors: what went wrong, what was expected, what we got, and the way out.

use crate::{Format, Keys};
use std::fmt;

/// Every error of this crate.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are not a valid file of this format.
    Corrupt {
        /// The format they were read as.
        format: Format,
        /// The part.
        what: &'static str,
        /// What was expected.
        expected: String,
        /// What was found.
        got: String,
    },
    /// The bytes aren't in any known format.
    Unknown,
    /// The bytes fit several formats, and don't say which one it is.
    Ambiguous {
        /// The formats they fit.
        fits: Vec<Format>,
    },
    /// The file doesn't say how its keys became bytes.
    KeysNeeded {
        /// Its format.
        format: Format,
        /// What the format's users use.
        choices: &'static [Keys],
    },
    /// Keys of such a filter never became bytes this way.
    KeysUnfit {
        /// The filter's format.
        format: Format,
        /// The encoding that was requested.
        asked: Keys,
        /// The encodings that exist.
        choices: &'static [Keys],
    },
    /// There is no filter with that name, or there are several filters and no name was given.
    Several {
        /// The filters in the file.
        names: Vec<String>,
    },
    /// This text can't be a key of the filter.
    Key {
        /// How the filter's keys become bytes.
        keys: Keys,
        /// The key.
        got: String,
    },
    /// A parameter is out of its range.
    Parameter {
        /// Which parameter.
        what: &'static str,
        /// The allowed values.
        expected: &'static str,
        /// What was given.
        got: String,
    },
    /// Files of this format can be queried, but not changed or written here.
    ReadOnly {
        /// The format.
        format: Format,
        /// Why, and what to do instead.
        instead: &'static str,
    },
    /// Filters of this format can't do that.
    Unable {
        /// The format.
        format: Format,
        /// What was requested, as in "can't ...".
        what: &'static str,
        /// Why, and what to do instead.
        instead: &'static str,
    },
    /// The file seems to be gzipped, but can't be unpacked.
    Gzip {
        /// Why.
        reason: String,
    },
    /// A gzipped file unpacks to more than allowed.
    Unpacked {
        /// The limit in bytes.
        most: u64,
    },
    /// The filter accepts no more keys, by the rules of its format.
    Full {
        /// Its format.
        format: Format,
        /// The number of keys it was made for.
        capacity: u64,
    },
    /// Two filters can't be united because they differ.
    Unlike {
        /// How they differ.
        what: &'static str,
        /// The left filter's value.
        ours: String,
        /// The right filter's value.
        theirs: String,
    },
}

impl Error {
    pub(crate) fn corrupt(
        format: Format,
        what: &'static str,
        expected: impl fmt::Display,
        got: impl fmt::Display,
    ) -> Self {
        Self::Corrupt {
            format,
            what,
            expected: expected.to_string(),
            got: got.to_string(),
        }
    }
}

fn names<T: fmt::Display>(items: &[T]) -> String {
    let names: Vec<String> = items.iter().map(T::to_string).collect();
    names.join(", ")
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Corrupt {
                format,
                what,
                expected,
                got,
            } => write!(
                f,
                "not a valid {format} filter: {what}: expected {expected}, got {got}"
            ),
            Self::Unknown => write!(
                f,
                "not a known filter format; name it if it is one of: {}",
                names(Format::ALL)
            ),
            Self::Ambiguous { fits } => write!(
                f,
                "the bytes fit several formats and do not say which; name one of: {}",
                names(fits)
            ),
            Self::KeysNeeded { format, choices } => write!(
                f,
                "a {format} file does not say how keys become bytes; name one of: {}",
                names(choices)
            ),
            Self::KeysUnfit {
                format,
                asked,
                choices,
            } => write!(
                f,
                "the keys of this {format} filter can't be {asked}: name one of: {}",
                names(choices)
            ),
            Self::Several { names } if names.is_empty() => {
                write!(f, "no such filter in the file")
            }
            Self::Several { names: all } => {
                write!(
                    f,
                    "there are several filters in the file; name one of: {}",
                    names(all)
                )
            }
            Self::Key { keys, got } => write!(
                f,
                "{got:?} can't be a key here: expected {}",
                keys.expected()
            ),
            Self::Parameter {
                what,
                expected,
                got,
            } => write!(f, "{what}: expected {expected}, got {got}"),
            Self::ReadOnly { format, instead } => {
                write!(f, "a {format} filter is read-only here; {instead}")
            }
            Self::Unable {
                format,
                what,
                instead,
            } => write!(f, "{format} filters can't {what}: {instead}"),
            Self::Gzip { reason } => write!(f, "can't unpack the gzip data: {reason}"),
            Self::Unpacked { most } => write!(
                f,
                "the gzip data unpacks to more than {most} bytes; allow more, or unpack it first"
            ),
            Self::Full { format, capacity } => write!(
                f,
                "the {format} filter is full: it was made for {capacity} keys, and its format allows no more"
            ),
            Self::Unlike { what, ours, theirs } => {
                write!(f, "the filters differ in {what}: {ours} and {theirs}")
            }
        }
    }
}

impl std::error::Error for Error {}
