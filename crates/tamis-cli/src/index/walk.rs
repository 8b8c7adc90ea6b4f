//! Finds the files of an index: those named, and those in named folders.

use super::parts::part_number;
use super::table::Choice;
use anyhow::{Context, Result};
use ignore::overrides::{Override, OverrideBuilder};
use ignore::{DirEntry, WalkBuilder};
use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tamis::internals::file::Replacement;

/// Files of this name list what to leave out of an index, in the syntax of `.gitignore`.
const IGNORE_FILE: &str = ".tamisignore";

/// How often to list folders that change meanwhile.
const LISTINGS: usize = 10;

/// A folder that changed this recently may change again without its time changing.
const TICK: Duration = Duration::from_millis(20);

/// The files that were found.
pub(crate) struct Found {
    /// Sorted by root and path inside it.
    pub(crate) files: Vec<Listed>,
    /// Paths that could not be read: the number of the root, and the path inside it.
    pub(crate) errors: Vec<(usize, PathBuf, io::Error)>,
    /// Roots that are folders without any files.
    pub(crate) empty: Vec<usize>,
    /// All folders that were listed.
    pub(crate) folders: Vec<Folder>,
}

/// A folder, and its modification time before it was listed.
pub(crate) struct Folder {
    path: PathBuf,
    modified: Option<SystemTime>,
}

impl Folder {
    fn of(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            modified: fs::metadata(path).and_then(|folder| folder.modified()).ok(),
        }
    }

    /// Whether nothing in it was created, renamed or deleted since.
    pub(crate) fn is_unchanged(&self) -> bool {
        Self::of(&self.path).modified == self.modified
    }
}

/// A file, with its metadata when it was found.
pub(crate) struct Listed {
    pub(crate) root: usize,
    /// Its path inside the root; empty if it is the root.
    pub(crate) inside: PathBuf,
    pub(crate) place: PathBuf,
    /// Whether the place is a symbolic link to it.
    pub(crate) is_link: bool,
    pub(crate) metadata: Metadata,
}

/// Finds the files below these roots, except for `index` itself.
pub(crate) fn files(roots: &[PathBuf], choice: &Choice, index: &Path) -> Result<Found> {
    let own = Own::new(index);
    let mut found = Found {
        files: Vec::new(),
        errors: Vec::new(),
        empty: Vec::new(),
        folders: Vec::new(),
    };
    for (number, root) in roots.iter().enumerate() {
        let mut fail = |cause| found.errors.push((number, PathBuf::new(), cause));
        match fs::metadata(root) {
            Ok(metadata) if metadata.is_dir() => {
                let walk = Walk {
                    number,
                    root,
                    own: &own,
                    globs: globs(root, choice)?,
                    gitignore: choice.gitignore,
                };
                let before = found.files.len();
                walk.list(&mut found);
                if found.files.len() == before {
                    found.empty.push(number);
                }
            }
            Ok(metadata) if metadata.is_file() => {
                // The index may be named along with other files, as by `*`.
                if !own.is(root, true) {
                    found.files.push(Listed {
                        root: number,
                        inside: PathBuf::new(),
                        place: root.clone(),
                        is_link: root.is_symlink(),
                        metadata,
                    });
                }
            }
            Ok(_) => fail(io::Error::new(
                io::ErrorKind::InvalidInput,
                "not a regular file",
            )),
            Err(cause) => fail(cause),
        }
    }
    let key = |file: &Listed| (file.root, file.inside.clone());
    found.files.sort_by_cached_key(key);
    // A file may be named twice.
    let mut places = std::collections::HashSet::new();
    found.files.retain(|file| places.insert(file.place.clone()));
    Ok(found)
}

impl Choice {
    /// Checks the syntax of its globs.
    pub(crate) fn check(&self) -> Result<()> {
        globs(Path::new("/"), self).map(drop)
    }
}

/// The chosen files. In folders, excluded paths are skipped; of the rest, files that aren't included.
fn globs(root: &Path, choice: &Choice) -> Result<Override> {
    let mut globs = OverrideBuilder::new(root);
    for glob in &choice.include {
        globs.add(glob).with_context(|| format!("-g {glob}"))?;
    }
    for glob in &choice.exclude {
        globs
            .add(&format!("!{glob}"))
            .with_context(|| format!("-g !{glob}"))?;
    }
    globs.build().context("-g")
}

/// A root that is a folder.
struct Walk<'a> {
    number: usize,
    root: &'a Path,
    own: &'a Own,
    globs: Override,
    gitignore: bool,
}

impl Walk<'_> {
    /// Lists the folders until nothing changes meanwhile: renaming a file while its folder is read may hide it under
    /// both names. If they keep changing, any listing that found a file counts.
    fn list(&self, found: &mut Found) {
        let mut files = HashMap::new();
        let mut listings = 0;
        loop {
            listings += 1;
            let began = SystemTime::now();
            let mut folders = Vec::new();
            let mut errors = Vec::new();
            self.list_once(&mut files, &mut folders, &mut errors);
            let unchanged = |folder: &Folder| {
                let settled = folder.modified.is_some_and(|before| before + TICK < began);
                folder.is_unchanged() && settled
            };
            if folders.iter().all(unchanged) || listings == LISTINGS {
                found.errors.extend(errors);
                found.folders.extend(folders);
                break;
            }
            // A change in this very clock tick shows in the next one.
            std::thread::sleep(Duration::from_millis(4));
        }
        found
            .files
            .extend(files.into_values().filter_map(|file: Listed| {
                if listings == 1 {
                    return Some(file);
                }
                // A file that has vanished since an earlier listing has another name now.
                let metadata = fs::metadata(&file.place).ok().filter(Metadata::is_file)?;
                Some(Listed { metadata, ..file })
            }));
    }

    fn list_once(
        &self,
        files: &mut HashMap<PathBuf, Listed>,
        folders: &mut Vec<Folder>,
        errors: &mut Vec<(usize, PathBuf, io::Error)>,
    ) {
        let mut walk = WalkBuilder::new(self.root);
        walk.standard_filters(self.gitignore)
            .require_git(false)
            .add_custom_ignore_filename(IGNORE_FILE)
            .overrides(self.globs.clone())
            .follow_links(false);
        for entry in walk.build() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    let path = error_path(&error).unwrap_or_else(|| self.root.to_owned());
                    let cause = error.into_io_error().map(plain);
                    // A path that vanished while its folder was read is treated as if it had vanished before.
                    if let Some(cause) = cause.filter(|e| !super::is_gone(e) || path == self.root) {
                        errors.push((self.number, self.inside(&path), cause));
                    }
                    continue;
                }
            };
            let kind = entry.file_type();
            if kind.is_some_and(|kind| kind.is_dir()) {
                folders.push(Folder::of(entry.path()));
            } else if let Some(metadata) = self.file(&entry) {
                let file = Listed {
                    root: self.number,
                    inside: self.inside(entry.path()),
                    place: entry.path().to_owned(),
                    is_link: entry.path_is_symlink(),
                    metadata,
                };
                files.insert(file.place.clone(), file);
            }
        }
    }

    /// The metadata of a file that belongs to the index.
    fn file(&self, entry: &DirEntry) -> Option<Metadata> {
        let is_link = entry.path_is_symlink();
        if self.own.is(entry.path(), is_link) {
            return None;
        }
        // A dangling link.
        fs::metadata(entry.path()).ok().filter(Metadata::is_file)
    }

    fn inside(&self, path: &Path) -> PathBuf {
        path.strip_prefix(self.root).unwrap_or(path).to_owned()
    }
}

/// Without the path, which the caller reports.
fn plain(error: io::Error) -> io::Error {
    let inner = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<walkdir::Error>());
    let inner = inner.and_then(|inner| inner.io_error()?.raw_os_error());
    inner.map_or(error, io::Error::from_raw_os_error)
}

fn error_path(error: &ignore::Error) -> Option<PathBuf> {
    use ignore::Error::{Partial, WithDepth, WithLineNumber, WithPath};
    match error {
        WithPath { path, .. } => Some(path.clone()),
        WithDepth { err, .. } | WithLineNumber { err, .. } => error_path(err),
        Partial(all) => all.iter().find_map(error_path),
        _ => None,
    }
}

/// The index, its parts, and their temporary files.
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

    /// Whether a file is one of these; `may_be_link` if it may have another name.
    fn is(&self, path: &Path, may_be_link: bool) -> bool {
        if Replacement::is_temporary(path) {
            return true;
        }
        let Some(index) = &self.place else {
            return false;
        };
        // Files with other names need no lookup.
        let same_name = may_be_link || path.file_name() == self.name.as_deref();
        same_name && fs::canonicalize(path).ok().as_ref() == Some(index)
            || part_number(index, path).is_some()
                && fs::canonicalize(path).is_ok_and(|path| path.parent() == index.parent())
                && super::is_index(path)
    }
}
