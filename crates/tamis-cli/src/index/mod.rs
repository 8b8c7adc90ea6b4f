//! Indexes as the commands see them: files under some roots, and what has become of them since.

pub(crate) mod ask;
pub(crate) mod scan;
pub(crate) mod search;
pub(crate) mod tell;
pub(crate) mod walk;

use crate::engine::key::{KeySpec, Query};
use crate::location::named;
use anyhow::{Context, Result, anyhow, bail};
use std::collections::HashMap;
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

/// Whether a file says that it is an index.
pub(crate) fn is_index(path: &Path) -> bool {
    // A pipe would wait for somebody to write.
    if !path.is_file() {
        return false;
    }
    let mut start = Vec::new();
    let read = fs::File::open(path)
        .and_then(|file| io::Read::read_to_end(&mut io::Read::take(file, 16), &mut start));
    read.is_ok() && FileIndex::is_index(&start)
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
        let file = FileIndex::open(path).map_err(named(path))?;
        let specs = file
            .specs()
            .map(|spec| KeySpec::from_str(spec.text()))
            .collect::<Result<_, _>>()
            .map_err(|error| anyhow!("{}: {error}", path.display()))?;
        let roots = file.entries().find_map(|entry| Roots::from_id(entry.id()));
        let roots = roots.with_context(|| {
            let path = path.display();
            format!(
                "{path}: not an index of files\nhint: a program made it, which knows how to ask it"
            )
        })?;
        Ok(Self {
            file,
            path: path.to_owned(),
            specs,
            roots,
        })
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
                "{} has several kinds of keys\nhint: --key says which one is asked: {}",
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

    /// Looks at every file, and for new ones.
    pub(crate) fn survey(&self) -> Survey {
        let here = std::env::current_dir().is_ok_and(|folder| folder == self.roots.folder);
        let surveyed = |entry: Option<Entry>, path: PathBuf| {
            let place = self.roots.folder.join(&path);
            Surveyed {
                entry: entry.map(|entry| entry.number()),
                state: entry.map_or(State::New, |entry| State::of(&entry, &place)),
                shown: if here { path } else { place.clone() },
                place,
            }
        };
        let known = self.file.by_id();
        let found = walk::files(&self.roots, &self.path);
        let is_new = |path: &PathBuf| !known.contains_key(path_bytes(path).as_slice());
        let new = found.files.into_iter().filter(is_new);
        let mut files: Vec<_> = self
            .files()
            .map(|entry| surveyed(Some(entry), bytes_path(entry.id())))
            .chain(new.map(|path| surveyed(None, path)))
            .collect();
        files.sort_by(|a, b| a.shown.cmp(&b.shown));
        Survey {
            files,
            // Of what is gone, the files tell.
            unlisted: found
                .errors
                .into_iter()
                .filter(|(_, e)| !is_gone(e))
                .collect(),
        }
    }

    /// For each query, which of the surveyed files may have it.
    pub(crate) fn candidates(&self, spec: usize, survey: &Survey, query: &Query) -> Vec<usize> {
        let hasher = self.file.hasher();
        let spec = self.file.specs().nth(spec).expect("a spec of this index");
        let hashes: Vec<_> = query.keys.iter().map(|key| hasher.hash(key)).collect();
        let mut has = vec![0; self.file.len()];
        for candidates in spec.candidates_hashes(&hashes) {
            for entry in candidates {
                has[entry.number()] += 1;
            }
        }
        let may = |file: &Surveyed| match file.entry {
            Some(entry) if has[entry] == hashes.len() => true,
            _ => matches!(file.state, State::Stale | State::Unread(_) | State::New),
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
    /// Folders that could not be listed.
    pub(crate) unlisted: Vec<(PathBuf, io::Error)>,
}

impl Survey {
    /// How many are in each state, but for fresh ones.
    pub(crate) fn counts(&self) -> HashMap<&'static str, usize> {
        let mut counts = HashMap::new();
        for file in &self.files {
            *counts.entry(file.state.name()).or_default() += 1;
        }
        counts
    }
}

pub(crate) struct Surveyed {
    pub(crate) entry: Option<usize>,
    /// As it is printed: as it was named if the command runs where the index was made.
    pub(crate) shown: PathBuf,
    /// Where it is.
    pub(crate) place: PathBuf,
    pub(crate) state: State,
}

/// What has become of a file since it was indexed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Fresh,
    Stale,
    New,
    Gone,
    /// Could not be read, and why.
    Unread(String),
}

impl State {
    fn of(entry: &Entry, place: &Path) -> Self {
        match (fs::metadata(place), entry.unindexed()) {
            (Ok(now), _) if !now.is_file() => Self::Gone,
            (Ok(_), Some(reason)) => Self::Unread(reason.to_owned()),
            (Ok(now), None) if entry.is_fresh(&Stamp::of(&now)) => Self::Fresh,
            (Ok(_), None) => Self::Stale,
            (Err(error), _) if is_gone(&error) => Self::Gone,
            (Err(error), _) => Self::Unread(error.to_string()),
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Stale => "stale",
            Self::New => "new",
            Self::Gone => "gone",
            Self::Unread(_) => "unread",
        }
    }

    /// What is to be said of a candidate in this state.
    pub(crate) fn remark(&self) -> Option<String> {
        match self {
            Self::Fresh => None,
            Self::Stale => Some("changed since it was indexed, so it may hold any key".into()),
            Self::New => Some("not in the index yet, so it may hold any key".into()),
            Self::Gone => Some("gone since it was indexed".into()),
            Self::Unread(why) => Some(format!(
                "could not be indexed, so it may hold any key: {why}"
            )),
        }
    }
}
