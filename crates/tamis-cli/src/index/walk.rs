//! The files under the roots of an index.

use super::Roots;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tamis::Replacement;
use walkdir::WalkDir;

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Regular files, also through links; sorted, each once, named as their root was.
    pub(crate) files: Vec<PathBuf>,
    /// What could not be looked at.
    pub(crate) errors: Vec<(PathBuf, io::Error)>,
    /// Roots that are folders without a file in them.
    pub(crate) empty: Vec<PathBuf>,
}

/// All files but the index itself. Links to folders are not followed unless they are roots, so there is an end.
pub(crate) fn files(roots: &Roots, index: &Path) -> Found {
    let own = Own::new(index);
    let mut found = Found::default();
    for root in &roots.paths {
        let place = roots.folder.join(root);
        match fs::metadata(&place) {
            Ok(metadata) if metadata.is_dir() => {
                let before = found.files.len();
                list(root, &place, &own, &mut found);
                if found.files.len() == before {
                    found.empty.push(root.clone());
                }
            }
            Ok(metadata) if metadata.is_file() => {
                // Named with all others, as by `*`.
                if !own.is(&place, true) {
                    found.files.push(root.clone());
                }
            }
            Ok(_) => {
                let cause = io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
                found.errors.push((root.clone(), cause));
            }
            Err(cause) => found.errors.push((root.clone(), cause)),
        }
    }
    found.files.sort_unstable();
    found.files.dedup();
    found
}

fn list(root: &Path, place: &Path, own: &Own, found: &mut Found) {
    let named = |path: &Path| match path.strip_prefix(place) {
        Ok(inside) if !inside.as_os_str().is_empty() => root.join(inside),
        _ => root.to_owned(),
    };
    for entry in WalkDir::new(place) {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                let path = error.path().map_or_else(|| root.to_owned(), named);
                let cause = error.into_io_error();
                // What went away while the folder was read is no more to be found than if it had gone before.
                if let Some(cause) = cause.filter(|cause| !super::is_gone(cause) || path == root) {
                    found.errors.push((path, cause));
                }
                continue;
            }
        };
        let kind = entry.file_type();
        let is_file = kind.is_file()
            || kind.is_symlink()
                && match fs::metadata(entry.path()) {
                    Ok(target) => target.is_file(),
                    // A link to nothing holds nothing.
                    Err(error) => !super::is_gone(&error),
                };
        if is_file && !own.is(entry.path(), kind.is_symlink()) {
            found.files.push(named(entry.path()));
        }
    }
}

/// The index, and what it is written to.
struct Own {
    name: Option<std::ffi::OsString>,
    place: Option<PathBuf>,
}

impl Own {
    fn new(index: &Path) -> Self {
        let place = fs::canonicalize(index).ok();
        Self {
            name: place
                .as_ref()
                .and_then(|place| Some(place.file_name()?.into())),
            place,
        }
    }

    /// Whether a file is one of them; `may_be_link` if it may go by another name.
    fn is(&self, path: &Path, may_be_link: bool) -> bool {
        // Others need not be looked up.
        let same_name = may_be_link || path.file_name() == self.name.as_deref();
        let is_index = || self.place.is_some() && fs::canonicalize(path).ok() == self.place;
        Replacement::is_temporary(path) || same_name && is_index()
    }
}
