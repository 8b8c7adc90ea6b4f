//! Existing files: how messages describe them, and whether `--force` may replace them.
//!
//! `--force` is for results that can be made again: a filter, an index, an earlier output of the same command. Every
//! command that takes it asks here, so that none destroys a list of keys or other people's data.

use crate::human;
use anyhow::{Result, anyhow, bail};
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::Path;
use tamis::index::FileIndex;
use tamis::internals::file::open_regular;
use tamis::internals::file::{Existing, Replacement};
use tamis_formats::{Bytes, Error, Format, Hint};
use tamis_records::formats::{self, FileClass, FileKind};
use tamis_redis::Location;

/// What a command writes, which decides what it may replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// A Tamis filter.
    Filter,
    /// Another system's filter, with its format if known.
    Foreign(Option<Format>),
    /// Bits without a header: they can't be recognised, so only files that are clearly something else are refused.
    Bits,
    /// Records, maybe compressed. An earlier output looks like any other records.
    Records,
    /// A Parquet file with filters.
    #[cfg(feature = "parquet")]
    Parquet,
    /// The report of a run.
    Report,
}

/// What a file contains, as far as recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Empty,
    Filter,
    Index,
    Foreign(Format),
    Known(FileKind),
    /// A container of filters and much else.
    Data(&'static str),
    /// The report of a run.
    Report,
    Text,
    Unknown,
}

/// How every filter of ours begins.
pub(crate) const FILTER: &[u8] = b"TAMIS\r\n\x1a";
/// A Redis database file, which may hold filters among much else.
const RDB: &[u8] = b"REDIS";
/// Enough to include the first field of a report.
const HEAD: u64 = 4096;

/// Checks that a result may have this path, both before the work and before placing it.
pub(crate) fn check(path: &Path, force: bool, written: Written) -> Result<Existing> {
    // The address isn't repeated: it may contain a password.
    if path.to_str().is_some_and(Location::looks_like) {
        bail!(
            "this command makes a file, not a filter in Redis\n\
             hint: `tamis create` makes an empty filter there, `tamis copy FILE LOCATION` copies a file"
        );
    }
    let existing = if force {
        Existing::Replace
    } else {
        Existing::Keep
    };
    if refuse_others(path, written)? && !force {
        bail!(
            "{} already exists\nhint: --force replaces it",
            path.display()
        );
    }
    Replacement::check(path, existing).map_err(|error| creating(path, error))?;
    Ok(existing)
}

/// Refuses to replace a file of another kind. Returns whether there is a file.
pub(crate) fn refuse_others(path: &Path, written: Written) -> Result<bool> {
    let Some(metadata) = fs::metadata(path).ok().filter(Metadata::is_file) else {
        return Ok(false);
    };
    let found = Found::at(path, written.format());
    if !found.may_be_replaced_by(written, path) {
        bail!(
            "{} is {}, not {}: it stays as it is\nhint: name another file",
            path.display(),
            found.described(&metadata),
            written.expected(found),
        );
    }
    Ok(true)
}

/// Why a file could not be created or replaced. The temporary name means nothing to users, so it is left out.
pub(crate) fn creating(path: &Path, error: tamis::Error) -> anyhow::Error {
    let name = path.display();
    match &error {
        tamis::Error::Io { source, .. } => match source.kind() {
            // Another program has just created it.
            io::ErrorKind::AlreadyExists => anyhow!("{name} already exists"),
            // Refusals by the system; ours are passed on unchanged.
            kind if kind != io::ErrorKind::InvalidInput && source.get_ref().is_some() => {
                anyhow!("{name}: no file can be made in its folder: {kind}")
            }
            _ => error.into(),
        },
        _ => error.into(),
    }
}

/// Describes a file that should be a filter, with its size: `text (315 kB)`.
pub(crate) fn describe(path: &Path) -> Option<(Found, String)> {
    let metadata = fs::metadata(path).ok().filter(Metadata::is_file)?;
    let found = Found::at(path, None);
    Some((found, found.described(&metadata)))
}

impl Written {
    const fn format(self) -> Option<Format> {
        match self {
            Self::Foreign(format) => format,
            _ => None,
        }
    }

    /// What was expected instead.
    const fn expected(self, found: Found) -> &'static str {
        match self {
            Self::Filter if matches!(found, Found::Foreign(_)) => "a Tamis filter",
            Self::Filter | Self::Foreign(_) => "a filter",
            Self::Bits => "a string of bits",
            Self::Records => "an output of records",
            #[cfg(feature = "parquet")]
            Self::Parquet => "a Parquet file",
            Self::Report => "an earlier report",
        }
    }
}

impl Found {
    /// Examines a regular file. Unreadable files are unknown.
    fn at(path: &Path, format: Option<Format>) -> Self {
        Self::look(path, format).unwrap_or(Self::Unknown)
    }

    fn look(path: &Path, format: Option<Format>) -> Option<Self> {
        let file = open_regular(path, false).ok()?;
        let mut head = Vec::new();
        (&file).take(HEAD).read_to_end(&mut head).ok()?;
        if head.is_empty() {
            return Some(Self::Empty);
        }
        if head.starts_with(FILTER) {
            return Some(Self::Filter);
        }
        if FileIndex::is_index(&head) {
            return Some(Self::Index);
        }
        if head.starts_with(b"{") && has(&head, b"\"expected_wrongly_dropped\"") {
            return Some(Self::Report);
        }
        let kind = formats::kind_of(&head);
        if let Some(format) = recognise(&file, format) {
            return Some(match (format, kind) {
                // Tables and databases hold more than filters.
                (Format::LevelDb | Format::RocksDb, _) => Self::Data("a table of a database"),
                (Format::Parquet | Format::Orc, Some(kind)) => Self::Known(kind),
                _ if head.starts_with(RDB) => Self::Data("a database of Redis"),
                (format, _) => Self::Foreign(format),
            });
        }
        Some(match kind {
            Some(kind) => Self::Known(kind),
            None if head.starts_with(RDB) => Self::Data("a database of Redis"),
            None if formats::is_text(&head) => Self::Text,
            None => Self::Unknown,
        })
    }

    fn may_be_replaced_by(self, written: Written, path: &Path) -> bool {
        match (written, self) {
            (_, Self::Empty) => true,
            (Written::Filter, Self::Filter | Self::Index) => true,
            (Written::Foreign(_), Self::Filter | Self::Index | Self::Foreign(_)) => true,
            (Written::Bits, Self::Foreign(_) | Self::Unknown) => true,
            (Written::Records, Self::Text | Self::Unknown | Self::Report) => true,
            (Written::Records, Self::Known(kind)) => match kind.class {
                // Short records that end with NUL may look like this.
                FileClass::Utf16 | FileClass::Utf32 => true,
                FileClass::Packed => is_packed_by_name(path),
                _ => false,
            },
            #[cfg(feature = "parquet")]
            (Written::Parquet, Self::Known(kind)) => kind.class == FileClass::Parquet,
            (Written::Report, Self::Report) => true,
            _ => false,
        }
    }

    fn described(self, metadata: &Metadata) -> String {
        let size = human::size(metadata.len());
        match self {
            Self::Empty => "empty".into(),
            Self::Filter => format!("a Tamis filter ({size})"),
            Self::Index => format!("an index of files ({size})"),
            Self::Foreign(format) => format!("a {format} filter ({size})"),
            Self::Known(kind) => format!("{} ({size})", kind.name.trim_end_matches(" inside")),
            Self::Data(name) => format!("{name} ({size})"),
            Self::Report | Self::Text => format!("text ({size})"),
            Self::Unknown => format!("data of no known format ({size})"),
        }
    }
}

fn has(head: &[u8], part: &[u8]) -> bool {
    head.windows(part.len()).any(|window| window == part)
}

fn is_packed_by_name(path: &Path) -> bool {
    let end = path.extension().and_then(|end| end.to_str());
    matches!(end, Some("gz" | "zst" | "bz2" | "xz"))
}

/// The format of a file, if it is another system's filter.
pub(crate) fn recognise(file: &File, format: Option<Format>) -> Option<Format> {
    let bytes = Bytes::map(file).ok()?;
    let open = |name| {
        let hint = Hint {
            format,
            name,
            ..Hint::default()
        };
        tamis_formats::open(bytes.clone(), hint).map(|filter| filter.format())
    };
    match open(None) {
        Err(Error::Several { names }) => open(Some(names.first()?.as_bytes())).ok(),
        Err(Error::Ambiguous { fits }) => fits.first().copied(),
        // With the wrong format given, it is still a filter.
        Err(_) if format.is_some() => recognise(file, None),
        found => found.ok(),
    }
}
