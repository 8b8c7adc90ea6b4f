//! What has become of the files of an index since they were indexed.
//!
//! | a file with | is |
//! | --- | --- |
//! | the size, times and inode that it had | fresh |
//! | another name or more names, but the same identity, size, time of modification and ends | fresh |
//! | the same identity, more bytes, and unchanged ends of those it had | grown: what it had is known, the rest is searched |
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

/// Bytes of each end of a file that are compared.
#[cfg(unix)]
const END: u64 = 4096;

/// Every file that an index knows of or should.
pub(crate) struct Survey {
    /// Sorted by path.
    pub(crate) files: Vec<Surveyed>,
    /// Files of the table that are not there any more, by number.
    pub(crate) gone: Vec<usize>,
    /// Roots that are missing or have become empty, and folders that could not be listed.
    pub(crate) unlisted: Vec<(PathBuf, io::Error)>,
    /// Whether a root itself is among them.
    pub(crate) root_missing: bool,
    /// The folders that were listed.
    pub(crate) folders: Vec<Folder>,
}

/// A file that is there now.
pub(crate) struct Surveyed {
    /// What the table has of it, by number.
    pub(crate) known: Option<usize>,
    pub(crate) listed: Listed,
    /// As it is printed: as it was named if the command runs where the index was made.
    pub(crate) shown: PathBuf,
    pub(crate) state: Freshness,
    /// How it came by its name.
    pub(crate) name: Name,
    /// Whether the table has it under this name and with this stamp.
    pub(crate) is_in_table: bool,
}

/// How a file that is known came by the name that it has now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    /// It had it before, or is not known.
    Old,
    /// The name that it had is gone.
    Renamed,
    /// It still has its old name, too.
    Linked,
}

/// What has become of a file since it was indexed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Freshness {
    Fresh,
    /// More was appended to it.
    Grown,
    /// It may have changed, and why.
    Stale(&'static str),
    New,
    /// Could not be read, and why.
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

    /// What is to be said of a candidate in this state.
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

    /// Whether the index tells nothing of the file.
    pub(crate) const fn is_unknown(&self) -> bool {
        matches!(self, Self::Stale(_) | Self::New | Self::Unread(_))
    }
}

impl Surveyed {
    /// The file that was found.
    pub(crate) fn identity(&self) -> Identity {
        identity(&self.listed.metadata)
    }
}

/// How many names a file has.
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
        let files = &index.table.files;
        let by_path: HashMap<(usize, &Path), usize> = files
            .iter()
            .enumerate()
            .map(|(number, known)| ((known.root, known.inside.as_path()), number))
            .collect();
        let mut by_inode: HashMap<u64, Vec<usize>> = HashMap::new();
        for (number, known) in files.iter().enumerate() {
            by_inode
                .entry(known.stamp.inode())
                .or_default()
                .push(number);
        }
        // Who still goes by the name that the table has.
        let mut keeps_name = vec![false; files.len()];
        for listed in &found.files {
            if let Some(&number) = by_path.get(&(listed.root, listed.inside.as_path())) {
                let now = Stamp::of(&listed.metadata);
                keeps_name[number] = files[number].stamp.inode() == now.inode();
            }
        }
        let mut systems = FileSystems::default();
        let mut there = HashSet::new();
        let mut surveyed: Vec<Surveyed> = Vec::new();
        for listed in found.files {
            let stamp = Stamp::of(&listed.metadata);
            let same_path = by_path
                .get(&(listed.root, listed.inside.as_path()))
                .copied();
            let same_inode = by_inode.get(&stamp.inode()).into_iter().flatten().copied();
            // Under its own name first: of two names of one file, each has its own entry.
            let others = same_inode.filter(|number| Some(*number) != same_path);
            let name_of = |number: usize| {
                if Some(number) == same_path {
                    Name::Old
                } else if keeps_name[number] {
                    Name::Linked
                } else {
                    Name::Renamed
                }
            };
            let mut best = None;
            for number in same_path.into_iter().chain(others) {
                let name = name_of(number);
                let state = judge(&files[number], &listed, name, &mut systems);
                if !matches!(state, Freshness::Stale(_)) {
                    best = Some((number, state));
                    break;
                }
                // What lay under this name explains best why it has to be read.
                if name == Name::Old {
                    best = Some((number, state));
                }
            }
            // Another of its names may explain why it looks otherwise.
            let own = same_path.filter(|number| keeps_name[*number]);
            there.extend(best.iter().map(|(number, _)| *number).chain(own));
            let (known, state) = best.map_or((None, Freshness::New), |(number, state)| {
                (Some(number), state)
            });
            surveyed.push(Surveyed {
                known,
                name: own.or(known).map_or(Name::Old, name_of),
                is_in_table: known.is_some_and(|number| {
                    Some(number) == same_path && files[number].stamp.is_like(&stamp)
                }),
                shown: index.shown(listed.root, &listed.inside),
                listed,
                state,
            });
        }
        surveyed.sort_by(|a, b| a.shown.cmp(&b.shown));
        Ok(Self {
            files: surveyed,
            gone: (0..files.len())
                .filter(|number| !there.contains(number))
                .collect(),
            unlisted,
            root_missing,
            folders: found.folders,
        })
    }
}

/// What has become of a known file that is found here now.
fn judge(known: &Known, listed: &Listed, name: Name, systems: &mut FileSystems) -> Freshness {
    let now = Stamp::of(&listed.metadata);
    let place = &listed.place;
    let unchanged = known.stamp.is_like(&now);
    // Both set the time of change, which otherwise reveals a write. What becomes of a symbolic link does not.
    let moved = (name == Name::Renamed && !known.is_link || known.links != links(&listed.metadata))
        && known.stamp.size() == now.size()
        && known.stamp.modified() == now.modified();
    // Without a whole line, what it is can't be told yet: many a packed file was empty at first.
    let grown = known.kind.is_plain() && known.whole > 0 && known.stamp.size() < now.size();
    if let Some(why) = &known.unread {
        // One that failed is tried again, whatever it looks like.
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
        // What a long file still has is read as if it was appended, though nothing was.
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

/// Whether a file's time of modification may be that of a write. One before the file was made was set by a program, as
/// in trees that have one time, and would be set again after a write.
fn was_modified_since_made(metadata: &Metadata) -> bool {
    match (metadata.created(), metadata.modified()) {
        (Ok(made), Ok(modified)) => made <= modified,
        _ => true,
    }
}

/// Whether an open file is the one that is known, and the bytes that it had begin and end as they did. Of a file system
/// that doesn't tell a file from an earlier one with its inode, no file is.
pub(crate) fn is_still(known: &Known, file: &File) -> bool {
    let same = |metadata: Metadata| {
        known.stamp.inode() == Stamp::of(&metadata).inode()
            && known.generation.is_some()
            && known.generation == generation(file)
    };
    file.metadata().is_ok_and(same)
        && ends(file, known.stamp.size()).is_ok_and(|ends| ends == known.ends)
}

/// A checksum of the first bytes of a file and of the last ones before `size`, whether a line ends there or not.
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
