//! Finds input files that aren't all named on the command line.

use crate::apart::Apart;
use anyhow::{Context, Result};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use tamis::internals::file::Replacement;
use tamis_records::input::stdin;
use walkdir::WalkDir;

/// The names in a list, terminated by NUL if it contains any, otherwise by line feeds; `-` is standard input.
pub(crate) fn names(list: &Path) -> Result<Vec<PathBuf>> {
    let mut text = Vec::new();
    let file = if list == Path::new("-") {
        stdin()
    } else {
        fs::File::open(list)
    };
    file.and_then(|mut file| file.read_to_end(&mut text))
        .with_context(|| format!("the list of files, {}", list.display()))?;
    // A byte order mark isn't part of the first name.
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&text);
    let end = if text.contains(&0) { 0 } else { b'\n' };
    let names = text.split(|byte| *byte == end);
    Ok(names.filter(|name| !name.is_empty()).map(path).collect())
}

#[cfg(unix)]
fn path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    std::ffi::OsStr::from_bytes(bytes).into()
}

#[cfg(not(unix))]
fn path(bytes: &[u8]) -> PathBuf {
    String::from_utf8_lossy(bytes).into_owned().into()
}

/// The named files and those in the named folders, in the order of the names and sorted within each folder; also
/// returns what could not be listed. Leaves out pipes and devices in folders, unfinished files, and files noted in
/// `apart`. Links to folders are only followed if named, so it always ends.
pub(crate) fn files(named: Vec<PathBuf>, apart: &Apart) -> (Vec<PathBuf>, Vec<(PathBuf, String)>) {
    let (mut files, mut unlisted) = (Vec::new(), Vec::new());
    for root in named {
        if !root.is_dir() {
            files.push(root);
            continue;
        }
        for entry in WalkDir::new(&root).sort_by_file_name() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    let folder = error.path().unwrap_or(&root).to_owned();
                    let why = error
                        .io_error()
                        .map_or_else(|| error.to_string(), ToString::to_string);
                    unlisted.push((folder, why));
                    continue;
                }
            };
            let kind = entry.file_type();
            let is_file = kind.is_file() || kind.is_symlink() && entry.path().is_file();
            if is_file && !Replacement::is_temporary(entry.path()) && !apart.is_noted(entry.path())
            {
                files.push(entry.into_path());
            }
        }
    }
    (files, unlisted)
}
