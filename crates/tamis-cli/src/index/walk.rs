//! The files under the roots of an index.

use super::Roots;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Regular files, also through links; sorted, each once, named as their root was.
    pub(crate) files: Vec<PathBuf>,
    /// What could not be looked at.
    pub(crate) errors: Vec<(PathBuf, io::Error)>,
}

/// All files but the index itself. Links to folders are not followed unless they are roots, so there is an end.
pub(crate) fn files(roots: &Roots, index: &Path) -> Found {
    let mut found = Found::default();
    let mut folders = Vec::new();
    for path in &roots.paths {
        match fs::metadata(roots.folder.join(path)) {
            Ok(metadata) if metadata.is_dir() => folders.push(path.clone()),
            Ok(metadata) if metadata.is_file() => found.files.push(path.clone()),
            Ok(_) => {
                let cause = io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
                found.errors.push((path.clone(), cause));
            }
            Err(cause) => found.errors.push((path.clone(), cause)),
        }
    }
    while let Some(folder) = folders.pop() {
        if let Err(cause) = list(roots, &folder, &mut found.files, &mut folders) {
            found.errors.push((folder, cause));
        }
    }
    let own_name = index.file_name();
    if let Ok(own) = fs::canonicalize(index) {
        found.files.retain(|path| {
            path.file_name() != own_name
                || fs::canonicalize(roots.folder.join(path)).map_or(true, |path| path != own)
        });
    }
    found.files.sort_unstable();
    found.files.dedup();
    found
}

fn list(
    roots: &Roots,
    folder: &Path,
    files: &mut Vec<PathBuf>,
    folders: &mut Vec<PathBuf>,
) -> io::Result<()> {
    for entry in fs::read_dir(roots.folder.join(folder))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            folders.push(path);
        } else if kind.is_file() {
            files.push(path);
        } else if kind.is_symlink() {
            // A link to nothing holds nothing.
            match fs::metadata(entry.path()) {
                Ok(target) if target.is_file() => files.push(path),
                Err(e) if !super::is_gone(&e) => files.push(path),
                _ => {}
            }
        }
    }
    Ok(())
}
