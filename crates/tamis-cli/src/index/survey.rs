//! What has become of the files of an index since they were indexed.
//!
//! | a file with | is |
//! | --- | --- |
//! | the size, times and inode that it had | fresh |
//! | another name or more names, but the same inode, size, time of modification and ends | fresh |
//! | the same inode, more bytes, and unchanged ends of those it had | grown: what it had is known, the rest is searched |
//! | anything else | stale: all of it is searched |

use super::Index;
use super::quiet::FileSystems;
use super::table::Known;
use super::walk::{Folder, Listed};
use anyhow::Result;
use std::collections::{HashMap, HashSet};
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tamis::index::Stamp;
use xxhash_rust::xxh3::xxh3_64;

/// Bytes of each end of a file that are compared.
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
    /// Whether it is known, but not under this name, or not with this stamp.
    pub(crate) is_renamed: bool,
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

/// The device and the inode of a file, and when it was made, where the file system knows: the inode of a file that is
/// deleted goes to the next one that is made.
pub(crate) type Identity = (u64, u64, Option<SystemTime>);

#[cfg(unix)]
pub(crate) fn identity(metadata: &Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino(), metadata.created().ok())
}

#[cfg(not(unix))]
pub(crate) fn identity(metadata: &Metadata) -> Identity {
    (0, 0, metadata.created().ok())
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
            let mut best = None;
            for number in same_path.into_iter().chain(others) {
                let is_renamed = Some(number) != same_path;
                let state = judge(&files[number], &listed, is_renamed, &mut systems);
                if !matches!(state, Freshness::Stale(_)) {
                    best = Some((number, state));
                    break;
                }
                // What lay under this name explains best why it has to be read.
                if !is_renamed {
                    best = Some((number, state));
                }
            }
            there.extend(best.iter().map(|(number, _)| *number));
            let (known, state) = best.map_or((None, Freshness::New), |(number, state)| {
                (Some(number), state)
            });
            let is_renamed = known.is_some_and(|number| {
                Some(number) != same_path || !files[number].stamp.is_like(&stamp)
            });
            surveyed.push(Surveyed {
                known,
                is_renamed,
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
fn judge(known: &Known, listed: &Listed, is_renamed: bool, systems: &mut FileSystems) -> Freshness {
    let now = Stamp::of(&listed.metadata);
    let place = &listed.place;
    let unchanged = known.stamp.is_like(&now);
    // Both set the time of change, which otherwise tells of a write.
    let moved = (is_renamed || known.links != links(&listed.metadata))
        && known.stamp.inode() == now.inode()
        && known.stamp.size() == now.size()
        && known.stamp.modified() == now.modified();
    // Without a whole line, what it is can't be told yet: many a packed file was empty at first.
    let grown = known.kind.is_plain()
        && known.whole > 0
        && known.unread.is_none()
        && known.stamp.inode() == now.inode()
        && known.stamp.size() < now.size();
    if let Some(why) = &known.unread {
        // One that failed is tried again, whatever it looks like.
        let holds = unchanged || moved || !is_renamed && known.stamp.is_racy();
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
    if (moved || grown) && has_ends(known, place) {
        return if moved {
            Freshness::Fresh
        } else {
            Freshness::Grown
        };
    }
    Freshness::Stale("changed since it was indexed")
}

/// Whether the bytes that a file had begin and end as they did.
fn has_ends(known: &Known, place: &Path) -> bool {
    File::open(place)
        .and_then(|file| ends(&file, known.whole))
        .is_ok_and(|ends| ends == known.ends)
}

/// A checksum of the first bytes of a file and of those before `whole`.
#[cfg(unix)]
pub(crate) fn ends(file: &File, whole: u64) -> io::Result<u64> {
    use std::os::unix::fs::FileExt;
    let length = whole.min(END) as usize;
    let mut bytes = vec![0; 2 * length];
    let (head, tail) = bytes.split_at_mut(length);
    file.read_exact_at(head, 0)?;
    file.read_exact_at(tail, whole - length as u64)?;
    Ok(xxh3_64(&bytes) ^ whole)
}

#[cfg(not(unix))]
pub(crate) fn ends(_: &File, _: u64) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}
