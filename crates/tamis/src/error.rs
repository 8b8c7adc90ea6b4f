//! The errors of this crate: what, expected, got, and the way out.

use crate::hash::Hash;
use crate::kind::Kind;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Every error of this crate.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A parameter is out of its range.
    Parameter {
        /// Which parameter.
        what: &'static str,
        /// What it may be.
        expected: &'static str,
        /// What was given.
        got: String,
    },
    /// The operating system refused.
    Io {
        /// What was being done.
        action: &'static str,
        /// Which file, if any.
        path: Option<PathBuf>,
        /// The system's reason.
        source: io::Error,
    },
    /// The bytes are not a valid Tamis filter.
    Corrupt {
        /// Which part.
        what: &'static str,
        /// What it must be.
        expected: String,
        /// What it is.
        got: String,
    },
    /// The bytes are not a valid index.
    CorruptIndex {
        /// Which part.
        what: &'static str,
        /// What it must be.
        expected: String,
        /// What it is.
        got: String,
    },
    /// The index has no keys for this spec.
    NoSpec {
        /// The spec asked for.
        spec: String,
        /// The specs it has.
        specs: Vec<String>,
    },
    /// The file is a valid filter, but not of the kind asked for.
    WrongKind {
        /// The kind asked for.
        expected: Kind,
        /// The kind the file holds.
        got: Kind,
    },
    /// Two filters can't be combined because they differ.
    Unlike {
        /// How they differ.
        what: &'static str,
        /// The left one's.
        ours: String,
        /// The right one's.
        theirs: String,
    },
    /// This kind of filter can't do that.
    Unable {
        /// The kind.
        kind: Kind,
        /// What can't be done, as in "can't be ...".
        what: &'static str,
        /// Why, and what to do instead.
        instead: &'static str,
    },
    /// A cuckoo filter has no room for the key, and is unchanged.
    Full {
        /// How many entries it holds.
        entries: u64,
        /// The share of its slots that they take.
        load: f64,
    },
    /// A cuckoo filter already holds as many copies as it can of the key, or of keys that look the
    /// same, and is unchanged.
    TooManyCopies {
        /// How many.
        copies: u64,
    },
    /// No seed solved the equations of a static filter: the hashes aren't those of different keys
    /// under a good hash function.
    Unsolvable {
        /// The kind.
        kind: Kind,
    },
    /// Keys are on both lists of a cascade.
    Contradiction {
        /// How many.
        count: u64,
        /// The hash of one of them.
        example: Hash,
    },
    /// Two different keys, one on each list of a cascade, have the same hash.
    Collision {
        /// Their hash.
        example: Hash,
    },
    /// Another process is using the file in a conflicting way.
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The file was open for writing when the machine crashed, so keys may be missing from it.
    Unclean {
        /// The file.
        path: Option<PathBuf>,
    },
    /// The filter is keyed and its secret is not stored in the file.
    KeyNeeded,
    /// The secret isn't the one the filter was made with.
    WrongKey,
    /// The filter needs a feature that this build of the crate lacks.
    Feature {
        /// The cargo feature.
        feature: &'static str,
        /// What the filter does.
        what: &'static str,
    },
    /// The system's random source failed.
    Random(String),
}

impl Error {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = Some(path.to_owned());
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }

    /// A refused allocation of this many bytes.
    pub(crate) fn no_memory(bytes: u64) -> Self {
        Self::Io {
            action: "allocating the filter",
            path: None,
            source: io::Error::new(
                io::ErrorKind::OutOfMemory,
                format!(
                    "out of memory: it needs {bytes} bytes; fewer keys or a higher rate need less"
                ),
            ),
        }
    }

    /// A finished list can't be changed.
    pub(crate) const fn finished(kind: Kind, what: &'static str) -> Self {
        Self::Unable {
            kind,
            what,
            instead: "build it again from all keys, or create a blocked filter",
        }
    }

    pub(crate) fn parameter(
        what: &'static str,
        expected: &'static str,
        got: impl fmt::Display,
    ) -> Self {
        Self::Parameter {
            what,
            expected,
            got: got.to_string(),
        }
    }

    pub(crate) fn corrupt(
        what: &'static str,
        expected: impl fmt::Display,
        got: impl fmt::Display,
    ) -> Self {
        Self::Corrupt {
            what,
            expected: expected.to_string(),
            got: got.to_string(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parameter {
                what,
                expected,
                got,
            } => write!(f, "{what}: expected {expected}, got {got}"),
            Self::Io {
                action,
                path: Some(path),
                source,
            } => write!(f, "{action} {}: {source}", path.display()),
            Self::Io { action, source, .. } => write!(f, "{action}: {source}"),
            Self::Corrupt {
                what,
                expected,
                got,
            } => not_valid(f, "filter", what, expected, got),
            Self::CorruptIndex {
                what,
                expected,
                got,
            } => not_valid(f, "index", what, expected, got),
            Self::NoSpec { spec, specs } => write!(
                f,
                "the index has no keys for {spec:?}: expected one of {specs:?}"
            ),
            Self::WrongKind { expected, got } => write!(
                f,
                "wrong kind of filter: expected {expected}, got {got} (AnyFilter opens every kind)"
            ),
            Self::Unlike { what, ours, theirs } => write!(
                f,
                "the filters differ and can't be combined: {what} is {ours} in one and {theirs} \
                 in the other; create both with the same parameters, or one from the other's template"
            ),
            Self::Unable {
                kind,
                what,
                instead,
            } => write!(f, "{kind} filters can't be {what}: {instead}"),
            Self::Full { entries, load } => full(f, *entries, *load),
            Self::TooManyCopies { copies } => write!(
                f,
                "the filter already holds {copies} copies of the key, and has room for no more; \
                 nothing was changed; add each key once, or use a counting filter"
            ),
            Self::Unsolvable { kind } => write!(
                f,
                "the {kind} filter can't be built: the keys' hashes are not evenly distributed; \
                 hash the keys themselves, or use another seed"
            ),
            Self::Contradiction { count, .. } => contradiction(f, *count),
            Self::Collision { .. } => f.write_str(COLLISION),
            Self::Busy { path } => write!(
                f,
                "{}: another process is writing this filter; wait for it to finish",
                path.display()
            ),
            Self::Unclean { path } => unclean(f, path.as_deref()),
            Self::KeyNeeded => f.write_str(KEY_NEEDED),
            Self::WrongKey => f.write_str(WRONG_KEY),
            Self::Feature { feature, what } => write!(
                f,
                "the filter {what}, which this build does not support; enable the feature \
                 {feature:?} of the crate tamis"
            ),
            Self::Random(reason) => write!(f, "the system's random source failed: {reason}"),
        }
    }
}

const COLLISION: &str = "collision: a key of the block list and a different key of the allow list have \
                         the same hash, so no filter could tell them apart; somebody chose them so; \
                         hash with a secret";
const KEY_NEEDED: &str = "the filter is keyed and its secret key is not in the file; \
                          pass the key it was created with";
const WRONG_KEY: &str = "this is not the secret key the filter was created with; \
                         every answer would be wrong";

fn not_valid(
    f: &mut fmt::Formatter<'_>,
    file: &str,
    what: &str,
    expected: &str,
    got: &str,
) -> fmt::Result {
    write!(
        f,
        "not a valid Tamis {file}: {what}: expected {expected}, got {got}"
    )
}

fn full(f: &mut fmt::Formatter<'_>, entries: u64, load: f64) -> fmt::Result {
    write!(
        f,
        "the filter is full: {entries} entries take {:.1} % of its slots, and there is no \
         room for the key; nothing was changed; remove keys, or create a larger filter and \
         add all keys again",
        load * 100.0
    )
}

fn contradiction(f: &mut fmt::Formatter<'_>, count: u64) -> fmt::Result {
    write!(
        f,
        "{count} {} on both the block list and the allow list; \
         say which list wins",
        if count == 1 { "key is" } else { "keys are" }
    )
}

fn unclean(f: &mut fmt::Formatter<'_>, path: Option<&Path>) -> fmt::Result {
    match path {
        Some(path) => write!(f, "{}: ", path.display())?,
        None => write!(f, "filter: ")?,
    }
    write!(
        f,
        "was open for writing when the machine went down, so the last keys added may be \
         missing and it could give a false \"no\"; build it again from its keys, or \
         accept the loss and save it"
    )
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // `Display` includes it, so a printed chain would repeat it.
            Self::Io { source, .. } => source.source(),
            _ => None,
        }
    }
}
