//! Indexes as the commands use them: files below some roots, how they have changed since, and which of their segments
//! may hold the keys.

pub(crate) mod ask;
pub(crate) mod candidates;
pub(crate) mod filters;
pub(crate) mod follow;
pub(crate) mod hunt;
pub(crate) mod identity;
mod key_spec;
pub(crate) mod parts;
mod positions;
pub(crate) mod quiet;
pub(crate) mod records;
pub(crate) mod stretches;
pub(crate) mod survey;
pub(crate) mod table;
pub(crate) mod tell;
pub(crate) mod update;
pub(crate) mod walk;
#[cfg_attr(not(feature = "watch"), path = "no_watch.rs")]
pub(crate) mod watch;

pub(crate) use crate::location::is_index;
pub(crate) use key_spec::parse_key_spec;

use crate::location::named;
use anyhow::{Context, Result, anyhow, bail};
use parts::Parts;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;
use table::{Roots, Table};
use tamis::index::FileIndex;
use tamis_records::key::KeySpec;

/// An open index file.
pub(crate) struct Index {
    pub(crate) path: PathBuf,
    pub(crate) table: Table,
    pub(crate) parts: Parts,
    pub(crate) specs: Vec<KeySpec>,
    /// The current places of its roots.
    pub(crate) places: Vec<PathBuf>,
    /// The current place of the folder that the roots were named in.
    folder: PathBuf,
    /// The roots as printed: as they were named, if those names are valid from here.
    shown: Vec<PathBuf>,
}

impl Roots {
    pub(crate) fn here(paths: Vec<PathBuf>) -> Result<Self> {
        let folder = std::env::current_dir().context("finding the current folder")?;
        Ok(Self { folder, paths })
    }
}

#[cfg(unix)]
pub(crate) fn path_bytes(path: &Path) -> Vec<u8> {
    std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()).to_vec()
}

#[cfg(unix)]
pub(crate) fn bytes_path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(bytes))
}

#[cfg(not(unix))]
pub(crate) fn path_bytes(path: &Path) -> Vec<u8> {
    path.to_string_lossy().into_owned().into_bytes()
}

#[cfg(not(unix))]
pub(crate) fn bytes_path(bytes: &[u8]) -> PathBuf {
    String::from_utf8_lossy(bytes).into_owned().into()
}

/// Whether an error means that the file doesn't exist (any more).
pub(crate) fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// A renamed folder: `--moved OLD=NEW`.
#[derive(Clone, Debug)]
pub(crate) struct Moved {
    old: PathBuf,
    new: PathBuf,
}

impl FromStr for Moved {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (old, new) = text
            .split_once('=')
            .filter(|(old, new)| !old.is_empty() && !new.is_empty())
            .ok_or_else(|| format!("'{text}': expected OLD=NEW, two folders"))?;
        let absolute = |path: &str| std::path::absolute(path).map_err(|e| format!("'{path}': {e}"));
        Ok(Self {
            old: absolute(old)?,
            new: absolute(new)?,
        })
    }
}

/// An opened index file.
pub(crate) enum Opened {
    Index(Box<Index>),
    /// An index of an earlier version: its list of files is dropped, so they have to be indexed again.
    Earlier(Box<Index>),
}

impl Index {
    /// Opens an index for queries.
    pub(crate) fn open(path: &Path, moved: &[Moved]) -> Result<Self> {
        match Self::open_any(path, moved)? {
            Opened::Index(index) => Ok(*index),
            Opened::Earlier(_) => bail!(
                "{}: made by an earlier version of tamis\nhint: `tamis index {}` indexes its files again",
                path.display(),
                path.display()
            ),
        }
    }

    /// Opens an index of any edition.
    pub(crate) fn open_any(path: &Path, moved: &[Moved]) -> Result<Opened> {
        if !path.exists() {
            bail!(
                "{}: no such index\nhint: `tamis index {} FILE|DIR...` makes one",
                path.display(),
                path.display()
            );
        }
        if !is_index(path) {
            bail!(
                "{}: not an index\nhint: `tamis index` makes one; `tamis check` asks a filter",
                path.display()
            );
        }
        // A concurrent update may remove the parts that it replaced.
        let mut opened = Self::open_once(path, moved)?;
        for _ in 0..5 {
            match &opened {
                Opened::Index(index) if index.parts.missing() > 0 => {}
                _ => break,
            }
            opened = Self::open_once(path, moved)?;
        }
        Ok(opened)
    }

    fn open_once(path: &Path, moved: &[Moved]) -> Result<Opened> {
        let file = FileIndex::open(path).map_err(|error| match error {
            tamis::Error::CorruptIndex { .. } => anyhow!(
                "{}: {error}\nhint: remove it and index the files again",
                path.display()
            ),
            error => named(path)(error),
        })?;
        let specs = file
            .specs()
            .map(|spec| KeySpec::from_str(spec.text()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| anyhow!("{}: {error}", path.display()))?;
        let last = file.len().checked_sub(1).map(|last| file.entry(last).id());
        let current = last.and_then(Table::from_id);
        let is_current = current.is_some();
        let earlier = || file.entries().find_map(|entry| table::earlier(entry.id()));
        let table = current.or_else(earlier).with_context(|| {
            let path = path.display();
            format!("{path}: not an index of files\nhint: query it with the program that made it")
        })?;
        let real = fs::canonicalize(path).with_context(|| path.display().to_string())?;
        let parts = Parts::open(&real, file, &table);
        let index = Box::new(Self::new(path, table, parts, specs, moved));
        Ok(if is_current {
            Opened::Index(index)
        } else {
            Opened::Earlier(index)
        })
    }

    pub(crate) fn new(
        path: &Path,
        table: Table,
        parts: Parts,
        specs: Vec<KeySpec>,
        moved: &[Moved],
    ) -> Self {
        let Roots { folder, paths } = &table.roots;
        let now = |place: &Path| now_at(place, &table.home, path, moved);
        let places: Vec<PathBuf> = paths.iter().map(|root| now(&folder.join(root))).collect();
        let here = std::env::current_dir().unwrap_or_default();
        let shown = paths.iter().zip(&places).map(|(named, place)| {
            let is_there = clean(&here.join(named)) == clean(place);
            if is_there { named } else { place }.clone()
        });
        Self {
            path: path.to_owned(),
            folder: now(folder),
            shown: shown.collect(),
            table,
            parts,
            specs,
            places,
        }
    }

    /// Its table, with the roots where they were found.
    pub(crate) fn as_found(&self) -> Table {
        let mut table = self.table.clone();
        let named = table.roots.paths.iter();
        let named = named.map(|root| clean(&self.folder.join(root)));
        if named.eq(self.places.iter().map(|place| clean(place))) {
            table.roots.folder = self.folder.clone();
        } else {
            table.roots.paths = self.places.clone();
        }
        table
    }

    /// A file's name for printing.
    pub(crate) fn shown(&self, root: usize, inside: &Path) -> PathBuf {
        let root = &self.shown[root];
        if inside.as_os_str().is_empty() {
            root.clone()
        } else {
            root.join(inside)
        }
    }

    /// The spec that a query uses, and its number.
    pub(crate) fn spec(&self, asked: Option<&KeySpec>) -> Result<(usize, &KeySpec)> {
        let names = || {
            let names: Vec<_> = self.specs.iter().map(ToString::to_string).collect();
            names.join(", ")
        };
        match (asked, self.specs.as_slice()) {
            (None, [only]) => Ok((0, only)),
            (None, _) => bail!(
                "{} has several kinds of keys\nhint: choose one with --key: {}",
                self.path.display(),
                names()
            ),
            (Some(asked), specs) => {
                let found = specs.iter().position(|spec| spec == asked);
                found.map(|at| (at, &specs[at])).ok_or_else(|| {
                    anyhow!(
                        "{} has no key '{asked}', it has: {}",
                        self.path.display(),
                        names()
                    )
                })
            }
        }
    }

    /// Why an empty folder that had files when indexed is suspicious: more likely a disk isn't mounted than everything
    /// was deleted, and then every answer would be wrong.
    pub(crate) fn emptied(&self, root: usize) -> Option<io::Error> {
        let files = self.table.files.iter();
        match files.filter(|known| known.root == root).count() {
            0 => None,
            files => {
                let cause = format!("empty, but {files} files of it are in the index");
                Some(io::Error::new(io::ErrorKind::NotFound, cause))
            }
        }
    }
}

/// The current place of a root that was at `place` when the index was in the folder `home`. If the index and its files
/// moved together, the new place is tried first; if nothing is there, the old place is used.
fn now_at(place: &Path, home: &Path, index: &Path, moved: &[Moved]) -> PathBuf {
    for Moved { old, new } in moved {
        if let Ok(inside) = place.strip_prefix(old) {
            return if inside.as_os_str().is_empty() {
                new.clone()
            } else {
                new.join(inside)
            };
        }
    }
    let now_home = home_of(index);
    if now_home.as_deref() == Some(home) {
        return place.to_owned();
    }
    let beside = now_home.and_then(|now| relative(place, home).map(|path| clean(&now.join(path))));
    beside
        .filter(|place| place.exists())
        .unwrap_or_else(|| place.to_owned())
}

/// The folder of an index.
pub(crate) fn home_of(index: &Path) -> Option<PathBuf> {
    fs::canonicalize(index).ok()?.parent().map(Path::to_owned)
}

/// The relative path from a folder to a path, both absolute.
fn relative(path: &Path, folder: &Path) -> Option<PathBuf> {
    let (path, folder) = (clean(path), clean(folder));
    let shared = path
        .ancestors()
        .find(|ancestor| folder.starts_with(ancestor))?;
    let up = folder.strip_prefix(shared).ok()?.components().count();
    let mut way: PathBuf = std::iter::repeat_n(Component::ParentDir, up).collect();
    way.push(path.strip_prefix(shared).ok()?);
    Some(way)
}

/// Without `.` and `..`.
fn clean(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(out.pop()),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_from_folder_to_path() {
        for (path, folder, way) in [
            ("/a/logs", "/a", "logs"),
            ("/a/logs", "/a/index", "../logs"),
            ("/a", "/a/b/c", "../.."),
            ("/a/./b/../c", "/a", "c"),
            ("/x", "/y", "../x"),
        ] {
            let found = relative(Path::new(path), Path::new(folder));
            assert_eq!(found, Some(way.into()), "{path} from {folder}");
            let there = clean(&Path::new(folder).join(way));
            assert_eq!(there, clean(Path::new(path)));
        }
    }
}
