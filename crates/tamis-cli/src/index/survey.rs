//! How the files of an index have changed since they were indexed.
//!
//! | a file with | is |
//! | --- | --- |
//! | the size, times and inode that it had | fresh |
//! | another name or more names, but the same identity, size, time of modification and ends | fresh |
//! | the same identity, more bytes, and the known ones' ends unchanged | grown: only the appended text is searched |
//! | anything else | stale: all of it is searched |

use super::Index;
use super::identity::{Identity, generation, identity};
use super::quiet::FileSystems;
use super::table::Known;
use super::walk::{Folder, Listed};
use anyhow::Result;
use std::collections::{HashMap, HashSet};
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use tamis::index::Stamp;
#[cfg(unix)]
use xxhash_rust::xxh3::xxh3_64;

/// Bytes compared at each end of a file.
#[cfg(unix)]
const END: u64 = 4096;

/// Every file that an index knows or should know.
pub(crate) struct Survey {
    /// Sorted by path.
    pub(crate) files: Vec<Surveyed>,
    /// Numbers of table entries whose files no longer exist.
    pub(crate) gone: Vec<usize>,
    /// Roots that are missing or have become empty, and folders that could not be listed.
    pub(crate) unlisted: Vec<(PathBuf, io::Error)>,
    /// Whether one of these is a root.
    pub(crate) root_missing: bool,
    /// The folders that were listed.
    pub(crate) folders: Vec<Folder>,
}

/// A file that exists now.
pub(crate) struct Surveyed {
    /// Its number in the table.
    pub(crate) known: Option<usize>,
    pub(crate) listed: Listed,
    /// The path as printed: as named, if the command runs where the index was made.
    pub(crate) shown: PathBuf,
    pub(crate) state: Freshness,
    /// How it got its name.
    pub(crate) name: Name,
    /// Whether the table has it under this name and with this stamp.
    pub(crate) is_in_table: bool,
}

/// How a known file got its current name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    /// It had this name before, or isn't known.
    Old,
    /// Its old name is gone.
    Renamed,
    /// It also still has its old name.
    Linked,
}

/// How a file has changed since it was indexed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Freshness {
    Fresh,
    /// Text was appended.
    Grown,
    /// May have changed, with the reason.
    Stale(&'static str),
    New,
    /// Could not be read, with the reason.
    Unread(String),
    /// Its filters in the index are damaged.
    Damaged,
}

impl Freshness {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Grown => "grown",
            Self::Stale(_) => "stale",
            Self::New => "new",
            Self::Unread(_) => "unread",
            Self::Damaged => "damaged",
        }
    }

    /// The remark about a candidate in this state.
    pub(crate) fn remark(&self) -> Option<String> {
        match self {
            Self::Fresh => None,
            Self::Grown => {
                Some("has grown since it was indexed, so its end may hold any key".into())
            }
            Self::Stale(why) => Some(format!("{why}, so it may hold any key")),
            Self::New => Some("not in the index yet, so it may hold any key".into()),
            Self::Unread(why) => Some(format!(
                "could not be indexed, so it may hold any key: {why}"
            )),
            Self::Damaged => Some("damaged in the index, so it may hold any key".into()),
        }
    }

    /// Whether the index knows nothing usable about the file.
    pub(crate) const fn is_unknown(&self) -> bool {
        matches!(self, Self::Stale(_) | Self::New | Self::Unread(_))
    }
}

impl Surveyed {
    /// The identity of the file found.
    pub(crate) fn identity(&self) -> Identity {
        identity(&self.listed.metadata)
    }
}

/// The number of names of a file.
#[cfg(unix)]
pub(crate) fn links(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::nlink(metadata)
}

#[cfg(not(unix))]
pub(crate) fn links(_: &Metadata) -> u64 {
    1
}

impl Survey {
    pub(crate) fn of(index: &Index) -> Result<Self> {
        let found = super::walk::files(&index.places, &index.table.choice, &index.path)?;
        let mut unlisted: Vec<(PathBuf, io::Error)> = Vec::new();
        let mut root_missing = false;
        for (root, inside, cause) in found.errors {
            root_missing |= inside.as_os_str().is_empty();
            unlisted.push((index.shown(root, &inside), cause));
        }
        for root in found.empty {
            if let Some(cause) = index.emptied(root) {
                root_missing = true;
                unlisted.push((index.shown(root, Path::new("")), cause));
            }
        }
        let entries = Entries::of(&index.table.files, &found.files);
        let mut systems = FileSystems::default();
        let mut there = HashSet::new();
        let mut surveyed: Vec<Surveyed> = Vec::new();
        for listed in found.files {
            let matched = entries.of_file(&listed, &mut systems);
            let known = matched.best;
            // If the file keeps its own name, its own entry isn't gone, even if another name's entry matched.
            there.extend(known.into_iter().chain(matched.own));
            let stamp = Stamp::of(&listed.metadata);
            surveyed.push(Surveyed {
                known,
                name: matched.name,
                is_in_table: known.is_some_and(|number| {
                    Some(number) == matched.same_path && entries.files[number].stamp.is_like(&stamp)
                }),
                shown: index.shown(listed.root, &listed.inside),
                listed,
                state: matched.state,
            });
        }
        surveyed.sort_by(|a, b| a.shown.cmp(&b.shown));
        Ok(Self {
            files: surveyed,
            gone: (0..entries.files.len())
                .filter(|number| !there.contains(number))
                .collect(),
            unlisted,
            root_missing,
            folders: found.folders,
        })
    }
}

/// The entries of a table, and what leads from a file to its entry.
struct Entries<'i> {
    files: &'i [Known],
    by_path: HashMap<(usize, &'i Path), usize>,
    by_inode: HashMap<u64, Vec<usize>>,
    /// Which files still have the name in the table.
    keeps_name: Vec<bool>,
}

/// What a table says of a file.
struct Matched {
    /// The entry that describes it best.
    best: Option<usize>,
    state: Freshness,
    name: Name,
    /// The entry with its path.
    same_path: Option<usize>,
    /// The same, if it is about this file.
    own: Option<usize>,
}

impl<'i> Entries<'i> {
    fn of(files: &'i [Known], listed: &[Listed]) -> Self {
        let mut entries = Self {
            files,
            by_path: HashMap::new(),
            by_inode: HashMap::new(),
            keeps_name: vec![false; files.len()],
        };
        for (number, known) in files.iter().enumerate() {
            let path = (known.root, known.inside.as_path());
            entries.by_path.insert(path, number);
            let inode = known.stamp.inode();
            entries.by_inode.entry(inode).or_default().push(number);
        }
        for listed in listed {
            if let Some(number) = entries.with_path_of(listed) {
                let now = Stamp::of(&listed.metadata);
                entries.keeps_name[number] = files[number].stamp.inode() == now.inode();
            }
        }
        entries
    }

    fn with_path_of(&self, listed: &Listed) -> Option<usize> {
        let path = (listed.root, listed.inside.as_path());
        self.by_path.get(&path).copied()
    }

    fn of_file(&self, listed: &Listed, systems: &mut FileSystems) -> Matched {
        let same_path = self.with_path_of(listed);
        let inode = Stamp::of(&listed.metadata).inode();
        let same_inode = self.by_inode.get(&inode).into_iter().flatten().copied();
        // The entry with its own name first: a file with two names has an entry for each.
        let others = same_inode.filter(|number| Some(*number) != same_path);
        let name_of = |number: usize| {
            if Some(number) == same_path {
                Name::Old
            } else if self.keeps_name[number] {
                Name::Linked
            } else {
                Name::Renamed
            }
        };
        let mut best = None;
        for number in same_path.into_iter().chain(others) {
            let name = name_of(number);
            let state = judge(&self.files[number], listed, name, systems);
            if !matches!(state, Freshness::Stale(_)) {
                best = Some((number, state));
                break;
            }
            // The entry with this name explains best why it has to be read.
            if name == Name::Old {
                best = Some((number, state));
            }
        }
        let own = same_path.filter(|number| self.keeps_name[*number]);
        let (best, state) = best.map_or((None, Freshness::New), |(number, state)| {
            (Some(number), state)
        });
        Matched {
            best,
            state,
            name: own.or(best).map_or(Name::Old, name_of),
            same_path,
            own,
        }
    }
}

/// How a known file, found here now, has changed.
fn judge(known: &Known, listed: &Listed, name: Name, systems: &mut FileSystems) -> Freshness {
    let now = Stamp::of(&listed.metadata);
    let place = &listed.place;
    let unchanged = known.stamp.is_like(&now);
    // Renaming and linking set the change time, which otherwise reveals a write. Renaming a symbolic link doesn't.
    let moved = (name == Name::Renamed && !known.is_link || known.links != links(&listed.metadata))
        && known.stamp.size() == now.size()
        && known.stamp.modified() == now.modified();
    // Without a whole line, its kind isn't certain yet: a compressed file may have been empty at first.
    let grown = known.kind.is_plain() && known.whole > 0 && known.stamp.size() < now.size();
    if let Some(why) = &known.unread {
        // A file that failed is retried, however it looks.
        let holds = unchanged || name == Name::Old && known.stamp.is_racy();
        return if holds {
            Freshness::Unread(why.clone())
        } else {
            Freshness::Stale("changed since it was indexed")
        };
    }
    if (unchanged || moved) && known.stamp.is_racy() && !known.grows {
        return Freshness::Stale("being written when it was indexed");
    }
    if unchanged {
        if systems.hide_writes(place, &listed.metadata) {
            return Freshness::Stale("being written");
        }
        return Freshness::Fresh;
    }
    if (moved || grown)
        // The unread rest of a long file counts as appended, though the file didn't change.
        && (known.stamp.changed() == now.changed() || was_modified_since_made(&listed.metadata))
        && File::open(place).is_ok_and(|file| is_still(known, &file))
    {
        return if moved {
            Freshness::Fresh
        } else {
            Freshness::Grown
        };
    }
    Freshness::Stale("changed since it was indexed")
}

/// Whether a file's modification time may come from a write. A time before the file's creation was set by a program, as
/// when unpacking archives with one fixed time, and could be set again after a write.
fn was_modified_since_made(metadata: &Metadata) -> bool {
    match (metadata.created(), metadata.modified()) {
        (Ok(made), Ok(modified)) => made <= modified,
        _ => true,
    }
}

/// Whether an open file is the known one, and its known bytes begin and end as before. Always false on file systems
/// that can't tell a file from an earlier one with the same inode.
pub(crate) fn is_still(known: &Known, file: &File) -> bool {
    let same = |metadata: Metadata| {
        known.stamp.inode() == Stamp::of(&metadata).inode()
            && known.generation.is_some()
            && known.generation == generation(file)
    };
    file.metadata().is_ok_and(same)
        && ends(file, known.stamp.size()).is_ok_and(|ends| ends == known.ends)
}

/// A checksum of the first bytes of a file and of the last ones before `size`, which may be in the middle of a line.
#[cfg(unix)]
pub(crate) fn ends(file: &File, size: u64) -> io::Result<u64> {
    use std::os::unix::fs::FileExt;
    let length = size.min(END) as usize;
    let mut bytes = vec![0; 2 * length];
    let (head, tail) = bytes.split_at_mut(length);
    file.read_exact_at(head, 0)?;
    file.read_exact_at(tail, size - length as u64)?;
    Ok(xxh3_64(&bytes) ^ size)
}

#[cfg(not(unix))]
pub(crate) fn ends(_: &File, _: u64) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}
