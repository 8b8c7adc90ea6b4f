//! The results of a search, and why one ended early.

use std::ops::AddAssign;
use std::time::Duration;
use std::{fmt, io};

/// Counts of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Files searched.
    pub files: u64,
    /// Files with a matched line.
    pub files_with_match: u64,
    /// Matched lines.
    pub matched_lines: u64,
    /// Matches, if printing needed them or they were requested: see
    /// [`Options::count_matches`](super::Options::count_matches).
    pub matches: u64,
    /// Bytes of text searched.
    pub bytes_searched: u64,
    /// Bytes printed.
    pub bytes_printed: u64,
    /// The time spent.
    pub elapsed: Duration,
}

impl AddAssign for Found {
    fn add_assign(&mut self, other: Self) {
        self.files += other.files;
        self.files_with_match += other.files_with_match;
        self.matched_lines += other.matched_lines;
        self.matches += other.matches;
        self.bytes_searched += other.bytes_searched;
        self.bytes_printed += other.bytes_printed;
        self.elapsed += other.elapsed;
    }
}

/// Why the search of a file ended early.
#[derive(Debug)]
pub enum Failure {
    /// The text can't be read any further. Earlier matches have been printed.
    Reading {
        /// The results before the error.
        found: Found,
        /// The error from reading a stretch.
        error: io::Error,
    },
    /// The output can't be written.
    Writing(io::Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Reading { error, .. } => write!(f, "can't be read: {error}"),
            Self::Writing(error) => write!(f, "the output can't be written: {error}"),
        }
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Reading { error, .. } | Self::Writing(error) => Some(error),
        }
    }
}
