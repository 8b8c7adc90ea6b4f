//! Refuses commands that name one file twice: writing to it would destroy what is read from it.

use crate::output;
use anyhow::{Result, bail};
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use tamis_records::input::stdin;

/// What a command does with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Input,
    /// The file lists the names of inputs.
    FileList,
    AllowList,
    Filter,
    KeyFile,
    Certificate,
    Output,
    /// Where the partial output goes if the run fails.
    PartialOutput,
    Report,
}

impl Role {
    const fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::FileList => "list of files",
            Self::AllowList => "allow list",
            Self::Filter => "filter",
            Self::KeyFile => "key file",
            Self::Certificate => "certificate",
            Self::Output => "output",
            Self::PartialOutput => "partial output",
            Self::Report => "report",
        }
    }

    /// Whether the file may be created or replaced.
    const fn is_written(self) -> bool {
        matches!(
            self,
            Self::Filter | Self::KeyFile | Self::Output | Self::Report
        )
    }

    fn clashes_with(self, other: Self) -> bool {
        match (self, other) {
            // A partial output never takes an existing name, so it can only overwrite files that the command creates.
            (Self::PartialOutput, other) | (other, Self::PartialOutput) => other.is_written(),
            // `find` also lists the file that its list is written to, so a list may be an input.
            (Self::FileList, other) | (other, Self::FileList) => other.is_written(),
            _ => self != other,
        }
    }
}

/// The files of a command, identified as files rather than by name.
#[derive(Debug, Default)]
pub(crate) struct Apart(HashMap<Identity, Noted>);

/// The uses of a file, with the names used for it.
type Noted = Vec<(Role, PathBuf)>;

/// A regular file. Devices and pipes may be both input and output: a terminal is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Identity {
    There(Id),
    /// A file that doesn't exist yet: its folder and its name.
    ToBeMade(Id, OsString),
}

#[cfg(unix)]
type Id = (u64, u64);
#[cfg(not(unix))]
type Id = PathBuf;

#[cfg(unix)]
fn id(_: &Path, metadata: &Metadata) -> Option<Id> {
    use std::os::unix::fs::MetadataExt;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn id(path: &Path, _: &Metadata) -> Option<Id> {
    fs::canonicalize(path).ok()
}

impl Apart {
    /// Notes a file; an error if it already has another use. `-` is standard input.
    pub(crate) fn note(&mut self, role: Role, path: &Path) -> Result<()> {
        self.add(role, path, identity(path))
    }

    /// Notes where records go: a file, or standard output.
    pub(crate) fn note_output(&mut self, path: Option<&Path>) -> Result<()> {
        let Some(path) = output::file(path) else {
            let stdout = output::stdout()?;
            let identity = stdout.metadata().ok();
            let identity =
                identity.and_then(|metadata| Identity::there(Path::new("/dev/stdout"), &metadata));
            return self.add(Role::Output, Path::new("standard output"), identity);
        };
        self.note(Role::Output, path)?;
        if let Some(target) = resolve(path) {
            let mut partial = target.into_os_string();
            partial.push(".partial");
            self.note(Role::PartialOutput, Path::new(&partial))?;
        }
        Ok(())
    }

    /// Refuses an input that has another use. Inputs, which may be many, come last and aren't noted.
    pub(crate) fn check_input(&self, path: &Path) -> Result<()> {
        match self.noted(path) {
            Some(noted) => refuse_clash(noted, Role::Input, path),
            None => Ok(()),
        }
    }

    /// Whether the command uses this file for something other than input.
    pub(crate) fn is_noted(&self, path: &Path) -> bool {
        self.noted(path).is_some()
    }

    fn noted(&self, path: &Path) -> Option<&Noted> {
        // If only pipes are noted, there is nothing to compare.
        let identity = (!self.0.is_empty()).then(|| identity(path));
        self.0.get(&identity??)
    }

    fn add(&mut self, role: Role, path: &Path, identity: Option<Identity>) -> Result<()> {
        let Some(identity) = identity else {
            return Ok(());
        };
        let noted = self.0.entry(identity).or_default();
        refuse_clash(noted, role, path)?;
        noted.push((role, path.to_owned()));
        Ok(())
    }
}

fn refuse_clash(noted: &Noted, role: Role, path: &Path) -> Result<()> {
    let clash = noted.iter().find(|(other, _)| role.clashes_with(*other));
    let Some((other, name)) = clash else {
        return Ok(());
    };
    let also = if name == path {
        String::new()
    } else {
        format!(" (also called {})", name.display())
    };
    // In order of declaration, not of noting.
    let (first, second) = if (*other as u8) < (role as u8) {
        (*other, role)
    } else {
        (role, *other)
    };
    bail!(
        "{}{also} is both {} and {}\nhint: write to another file, then rename it",
        path.display(),
        first.name(),
        second.name(),
    );
}

/// The identity of a regular file, existing or not; `-` is standard input.
fn identity(path: &Path) -> Option<Identity> {
    if path == Path::new("-") {
        Identity::there(path, &stdin().and_then(|file| file.metadata()).ok()?)
    } else {
        Identity::of(path)
    }
}

impl Identity {
    fn there(path: &Path, metadata: &Metadata) -> Option<Self> {
        let id = id(path, metadata).filter(|_| metadata.is_file());
        id.map(Self::There)
    }

    fn of(path: &Path) -> Option<Self> {
        match fs::metadata(path) {
            Ok(metadata) => Self::there(path, &metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let target = resolve(path)?;
                let folder = folder(&target);
                let id = id(folder, &fs::metadata(folder).ok()?)?;
                Some(Self::ToBeMade(id, target.file_name()?.into()))
            }
            Err(_) => None,
        }
    }
}

/// The path a file has or will have after following symbolic links.
fn resolve(path: &Path) -> Option<PathBuf> {
    // The same limit as Linux.
    const MOST_LINKS: usize = 40;
    let mut target = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&target) {
            Ok(next) => target = folder(&target).join(next),
            Err(_) => return Some(target),
        }
    }
    None
}

fn folder(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
