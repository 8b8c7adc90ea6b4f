//! Indexes as the commands see them: files under some roots, and what has become of them since.

pub(crate) mod ask;
pub(crate) mod filters;
mod key_spec;
pub(crate) mod quiet;
pub(crate) mod tell;
pub(crate) mod walk;

pub(crate) use crate::location::is_index;
pub(crate) use key_spec::parse_key_spec;
use tamis_records::key::{KeySpec, Query};

use crate::location::named;
use anyhow::{Context, Result, anyhow, bail};
use quiet::FileSystems;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use tamis::index::{Entry, EntryKeys, FileIndex, IndexBuilder, IndexOptions, Stamp};

/// An index file that is open for questions.
pub(crate) struct Index {
    pub(crate) file: FileIndex,
    pub(crate) path: PathBuf,
    pub(crate) specs: Vec<KeySpec>,
    pub(crate) roots: Roots,
}

/// What was named on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Roots {
    /// Where the command ran, which relative paths start from.
    pub(crate) folder: PathBuf,
    pub(crate) paths: Vec<PathBuf>,
}

impl Roots {
    pub(crate) fn here(paths: Vec<PathBuf>) -> Result<Self> {
        let folder = std::env::current_dir().context("finding the current folder")?;
        Ok(Self { folder, paths })
    }

    /// The id of the entry that an index keeps them in: each path behind a NUL, which no path contains. The entry
    /// has no keys, so it is a candidate for none.
    fn to_id(&self) -> Vec<u8> {
        let paths = std::iter::once(&self.folder).chain(&self.paths);
        paths
            .flat_map(|path| [vec![0], path_bytes(path)].concat())
            .collect()
    }

    fn from_id(id: &[u8]) -> Option<Self> {
        let mut paths = id
            .strip_prefix(&[0])?
            .split(|byte| *byte == 0)
            .map(bytes_path);
        Some(Self {
            folder: paths.next()?,
            paths: paths.collect(),
        })
    }
}

/// Keeps the roots in an index.
pub(crate) fn add_roots(
    builder: &mut IndexBuilder,
    roots: &Roots,
    options: &IndexOptions,
) -> Result<(), tamis::Error> {
    builder.add(roots.to_id(), None, &EntryKeys::new(options).build()?)
}

/// The entries that are files.
pub(crate) fn files(index: &FileIndex) -> impl Iterator<Item = Entry<'_>> {
    index
        .entries()
        .filter(|entry| !entry.id().starts_with(&[0]))
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

impl Index {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        if !path.exists() {
            bail!(
                "{}: no such index\nhint: `tamis index -o {} FILE|DIR...` makes one",
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
            .collect::<Result<_, _>>()
            .map_err(|error| anyhow!("{}: {error}", path.display()))?;
        let roots = file.entries().find_map(|entry| Roots::from_id(entry.id()));
        let roots = roots.with_context(|| {
            let path = path.display();
            format!("{path}: not an index of files\nhint: query it with the program that made it")
        })?;
        Ok(Self {
            file,
            path: path.to_owned(),
            specs,
            roots,
        })
    }

    /// Where the file of an entry is.
    fn place(&self, entry: &Entry) -> PathBuf {
        self.roots.folder.join(bytes_path(entry.id()))
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = Entry<'_>> {
        files(&self.file)
    }

    /// The spec that a query asks, and its number.
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

    /// Looks at every file, and for new ones, as a question for keys of this spec needs it, or of any.
    pub(crate) fn survey(&self, spec: Option<usize>) -> Survey {
        let mut systems = FileSystems::default();
        let here = std::env::current_dir().is_ok_and(|folder| folder == self.roots.folder);
        let mut surveyed = |entry: Option<Entry>, path: PathBuf| {
            let place = self.roots.folder.join(&path);
            let state = |entry| Freshness::of(&entry, spec, &place, &mut systems);
            Surveyed {
                entry: entry.map(|entry| entry.number()),
                state: entry.map_or(Freshness::New, state),
                shown: if here { path } else { place.clone() },
                place,
            }
        };
        let known = self.file.by_id();
        let found = walk::files(&self.roots, &self.path);
        let mut unlisted = found.errors;
        unlisted.extend(self.emptied(&self.roots.folder, found.empty));
        let is_new = |path: &PathBuf| !known.contains_key(path_bytes(path).as_slice());
        let new = found.files.into_iter().filter(is_new);
        let known = self
            .files()
            .map(|entry| (Some(entry), bytes_path(entry.id())));
        let mut files: Vec<_> = known
            .chain(new.map(|path| (None, path)))
            .map(|(entry, path)| surveyed(entry, path))
            .collect();
        files.sort_by(|a, b| a.shown.cmp(&b.shown));
        Survey { files, unlisted }
    }

    /// Those of the empty roots that had files when they were indexed: more likely a disk is not mounted than that all
    /// of it was removed, and then every answer would be wrong.
    pub(crate) fn emptied(&self, folder: &Path, empty: Vec<PathBuf>) -> Vec<(PathBuf, io::Error)> {
        let was = |root: &PathBuf| {
            let place = folder.join(root);
            let places = self.files().map(|entry| self.place(&entry));
            places.filter(|file| file.starts_with(&place)).count()
        };
        let told = |root: PathBuf| match was(&root) {
            0 => None,
            files => {
                let cause = format!("empty, but {files} files of it are in the index");
                Some((root, io::Error::new(io::ErrorKind::NotFound, cause)))
            }
        };
        empty.into_iter().filter_map(told).collect()
    }

    /// What is to be said of a candidate: also whether its filters are damaged, for which they have to be read.
    pub(crate) fn state(&self, file: &Surveyed) -> Freshness {
        match (&file.state, file.entry) {
            (Freshness::Fresh, Some(entry)) if self.file.entry(entry).verify().is_err() => {
                Freshness::Damaged
            }
            (state, _) => state.clone(),
        }
    }

    /// For each query, which of the surveyed files may have it.
    pub(crate) fn candidates(&self, spec: usize, survey: &Survey, query: &Query) -> Vec<usize> {
        let hasher = self.file.hasher();
        let spec = self.file.specs().nth(spec).expect("a spec of this index");
        let hashes = query.hashes(hasher);
        let mut has = vec![0; self.file.len()];
        for candidates in spec.candidates_hashes(&hashes) {
            for entry in candidates {
                has[entry.number()] += 1;
            }
        }
        let may = |file: &Surveyed| match file.entry {
            Some(entry) if has[entry] == hashes.len() => true,
            _ => matches!(
                file.state,
                Freshness::Stale(_) | Freshness::Unread(_) | Freshness::New
            ),
        };
        let all = survey.files.iter().enumerate();
        all.filter(|(_, file)| may(file))
            .map(|(at, _)| at)
            .collect()
    }
}

/// Whether an error means that there is no such file (any more).
fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Every file that an index knows of or should.
pub(crate) struct Survey {
    /// Sorted by path.
    pub(crate) files: Vec<Surveyed>,
    /// Roots that are missing or have become empty, and folders that could not be listed.
    pub(crate) unlisted: Vec<(PathBuf, io::Error)>,
}

pub(crate) struct Surveyed {
    pub(crate) entry: Option<usize>,
    /// As it is printed: as it was named if the command runs where the index was made.
    pub(crate) shown: PathBuf,
    /// Where it is.
    pub(crate) place: PathBuf,
    pub(crate) state: Freshness,
}

/// What has become of a file since it was indexed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Freshness {
    Fresh,
    /// It may have changed, and why.
    Stale(&'static str),
    New,
    Gone,
    /// Could not be read, and why.
    Unread(String),
    /// Its filters in the index are damaged.
    Damaged,
}

impl Freshness {
    /// Of a file that a question for keys of this spec, or of any, is about.
    pub(crate) fn of(
        entry: &Entry,
        spec: Option<usize>,
        place: &Path,
        systems: &mut FileSystems,
    ) -> Self {
        let now = match fs::metadata(place) {
            Ok(now) if now.is_file() => now,
            Ok(_) => return Self::Gone,
            Err(error) if is_gone(&error) => return Self::Gone,
            Err(error) => return Self::Unread(error.to_string()),
        };
        let is_known = |spec| entry.is_indexed(spec);
        match entry.unindexed() {
            Some(reason) if !spec.is_some_and(is_known) => Self::Unread(reason.to_owned()),
            _ => match changed(entry, place, &now, systems) {
                None => Self::Fresh,
                Some(why) => Self::Stale(why),
            },
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Stale(_) => "stale",
            Self::New => "new",
            Self::Gone => "gone",
            Self::Unread(_) => "unread",
            Self::Damaged => "damaged",
        }
    }

    /// What is to be said of a candidate in this state.
    pub(crate) fn remark(&self) -> Option<String> {
        match self {
            Self::Fresh => None,
            Self::Stale(why) => Some(format!("{why}, so it may hold any key")),
            Self::New => Some("not in the index yet, so it may hold any key".into()),
            Self::Gone => Some("gone since it was indexed".into()),
            Self::Unread(why) => Some(format!(
                "could not be indexed, so it may hold any key: {why}"
            )),
            Self::Damaged => Some("damaged in the index, so it may hold any key".into()),
        }
    }
}

/// Why a file may not be any more what the entry has of it.
pub(crate) fn changed(
    entry: &Entry,
    place: &Path,
    now: &fs::Metadata,
    systems: &mut FileSystems,
) -> Option<&'static str> {
    let stamp = Stamp::of(now);
    let indexed = entry.stamp();
    if indexed.is_some_and(|indexed| indexed.is_racy() && indexed.is_like(&stamp)) {
        Some("being written when it was indexed")
    } else if !entry.is_fresh(&stamp) {
        Some("changed since it was indexed")
    } else if systems.hide_writes(place, now) {
        Some("being written")
    } else {
        None
    }
}
