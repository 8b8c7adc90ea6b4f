//! The table of files that an index keeps with its filters, stored in the id of an entry without keys.
//!
//! Numbers are varints (seven bits per byte, lowest first); times are zigzag varints; texts and paths follow their
//! length:
//!
//! ```text
//! NUL "3" | home | folder | roots | included | excluded | flags | parts | files
//! file:    root | path inside it | size, modified, changed, inode, links, generation | flags | kind | whole | ends | reason | entrances | segments
//! segment: bytes | lines | sum (8 bytes) | part | entry | times | last time
//! ```
//!
//! In the first edition the id holds the roots, each an absolute path after a NUL. The second edition has the same
//! fields up to its files.

use super::{bytes_path, path_bytes};
use std::path::PathBuf;
use tamis::index::Stamp;
use tamis_records::input::{Entrance, TextKind};

/// How the id of the table's entry begins. In the first edition it began with a NUL and a slash.
const BEGINNING: &[u8] = b"\x003";
const SECOND_EDITION: &[u8] = b"\x002";

/// Everything in an index except the filters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Table {
    /// The folder of the index, used to find its files again after both have moved.
    pub(crate) home: PathBuf,
    pub(crate) roots: Roots,
    pub(crate) choice: Choice,
    /// The numbers of the part files, besides the index itself.
    pub(crate) parts: Vec<u64>,
    /// Sorted by root and path.
    pub(crate) files: Vec<Known>,
}

/// The paths from the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Roots {
    /// The working directory, which relative paths start from.
    pub(crate) folder: PathBuf,
    pub(crate) paths: Vec<PathBuf>,
}

/// Which files below the folders are indexed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Choice {
    /// Globs; none means all files.
    pub(crate) include: Vec<String>,
    pub(crate) exclude: Vec<String>,
    /// Whether to leave out hidden files and those in `.gitignore`.
    pub(crate) gitignore: bool,
}

/// The state of a file when it was indexed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// The number of its root.
    pub(crate) root: usize,
    /// Its path inside the root; empty if it is the root.
    pub(crate) inside: PathBuf,
    /// Whether the path was a symbolic link to it.
    pub(crate) is_link: bool,
    pub(crate) stamp: Stamp,
    /// The number of names it had.
    pub(crate) links: u64,
    /// Distinguishes it from earlier files with the same inode, if the file system can.
    pub(crate) generation: Option<u64>,
    /// Whether it was seen to change only by growing at its end.
    pub(crate) grows: bool,
    /// How its bytes become text.
    pub(crate) kind: TextKind,
    /// The offset after its last whole line; for a compressed file, its size.
    pub(crate) whole: u64,
    /// A checksum of its first bytes, and of the last ones before the stamp's size.
    pub(crate) ends: u64,
    /// Why it could not be read completely.
    pub(crate) unread: Option<String>,
    /// Where reading its compressed text can start.
    pub(crate) entrances: Vec<Entrance>,
    /// In text order, without gaps.
    pub(crate) segments: Vec<Segment>,
}

/// A stretch of a file's text with separate filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Length of the uncompressed text.
    pub(crate) bytes: u64,
    /// Line ends in it.
    pub(crate) lines: u64,
    /// XXH3 of the text.
    pub(crate) sum: u64,
    /// The first and last time in its lines, in microseconds since 1970.
    pub(crate) times: Option<(i64, i64)>,
    /// The time of a following line that has no time.
    pub(crate) last_time: Option<i64>,
    pub(crate) filters: At,
}

/// A reference to filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct At {
    /// The part's position in the table, from 1; 0 is the index itself.
    pub(crate) part: usize,
    /// The entry in the part.
    pub(crate) entry: usize,
}

impl Known {
    /// Text bytes in all segments.
    pub(crate) fn text_bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }

    /// Line ends in all segments.
    pub(crate) fn lines(&self) -> u64 {
        self.segments.iter().map(|segment| segment.lines).sum()
    }
}

const GITIGNORE: u64 = 1;
const RACY: u64 = 1;
const GROWS: u64 = 2;
const LINK: u64 = 4;

impl Table {
    /// The id of the entry that holds the table.
    pub(crate) fn to_id(&self) -> Vec<u8> {
        let mut out = Writer(BEGINNING.to_vec());
        out.path(&self.home);
        out.path(&self.roots.folder);
        out.list(&self.roots.paths, |out, path| out.path(path));
        out.list(&self.choice.include, |out, glob| out.bytes(glob.as_bytes()));
        out.list(&self.choice.exclude, |out, glob| out.bytes(glob.as_bytes()));
        out.number(if self.choice.gitignore { GITIGNORE } else { 0 });
        out.list(&self.parts, |out, part| out.number(*part));
        out.list(&self.files, Writer::file);
        out.0
    }

    /// The table in an entry's id; `None` if there is none or it is damaged.
    pub(crate) fn from_id(id: &[u8]) -> Option<Self> {
        let mut bytes = Reader(id.strip_prefix(BEGINNING)?);
        let mut table = bytes.origin()?;
        table.parts = bytes.list(Reader::number)?;
        table.files = bytes.list(Reader::file)?;
        let is_sound = |file: &Known| {
            let parts = file.segments.iter().map(|segment| segment.filters.part);
            file.root < table.roots.paths.len()
                && parts.max().is_none_or(|p| p <= table.parts.len())
        };
        (bytes.0.is_empty() && table.files.iter().all(is_sound)).then_some(table)
    }
}

/// The table of an earlier edition's index, without files: its facts about them may be wrong.
pub(crate) fn earlier(id: &[u8]) -> Option<Table> {
    if let Some(second) = id.strip_prefix(SECOND_EDITION) {
        return Reader(second).origin();
    }
    let mut paths = id
        .strip_prefix(&[0])?
        .split(|byte| *byte == 0)
        .map(bytes_path);
    let folder = paths.next().filter(|folder| folder.is_absolute())?;
    let paths = paths.collect();
    Some(Table {
        roots: Roots { folder, paths },
        ..Table::default()
    })
}

struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn time(&mut self, time: i64) {
        self.number((time << 1 ^ time >> 63).cast_unsigned());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn path(&mut self, path: &std::path::Path) {
        self.bytes(&path_bytes(path));
    }

    fn list<T>(&mut self, items: &[T], mut each: impl FnMut(&mut Self, &T)) {
        self.number(items.len() as u64);
        items.iter().for_each(|item| each(self, item));
    }

    fn file(&mut self, file: &Known) {
        self.number(file.root as u64);
        self.path(&file.inside);
        self.number(file.stamp.size());
        self.time(file.stamp.modified());
        self.time(file.stamp.changed());
        self.number(file.stamp.inode());
        self.number(file.links);
        // 0 means unknown: no file was created then.
        self.number(file.generation.unwrap_or(0));
        let flag = |on, flag| if on { flag } else { 0 };
        self.number(
            flag(file.stamp.is_racy(), RACY) | flag(file.grows, GROWS) | flag(file.is_link, LINK),
        );
        self.number(file.kind.to_byte().into());
        self.number(file.whole);
        self.number(file.ends);
        self.bytes(file.unread.as_deref().unwrap_or_default().as_bytes());
        self.list(&file.entrances, |out, entrance| {
            out.bytes(&entrance.to_bytes())
        });
        self.list(&file.segments, |out, segment| {
            out.number(segment.bytes);
            out.number(segment.lines);
            out.0.extend_from_slice(&segment.sum.to_le_bytes());
            out.number(segment.filters.part as u64);
            out.number(segment.filters.entry as u64);
            // The last time is stored relative to the first.
            match segment.times {
                None => out.number(0),
                Some((first, last)) => {
                    out.number(1 + first.abs_diff(last));
                    out.time(first);
                }
            }
            match segment.last_time {
                None => out.number(0),
                Some(time) => {
                    out.number(1);
                    out.time(time);
                }
            }
        });
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn time(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1).cast_signed() ^ -((number & 1).cast_signed()))
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = self.number()?;
        self.take(usize::try_from(count).ok()?)
    }

    fn path(&mut self) -> Option<PathBuf> {
        self.bytes().map(bytes_path)
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }

    fn list<T>(&mut self, each: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.number()?;
        // Every item takes at least one byte, so a wrong count fails soon and reserves nothing.
        (0..count).map(|_| each(self)).collect()
    }

    /// The part of a table before its parts and files.
    fn origin(&mut self) -> Option<Table> {
        Some(Table {
            home: self.path()?,
            roots: Roots {
                folder: self.path()?,
                paths: self.list(Reader::path)?,
            },
            choice: Choice {
                include: self.list(Reader::text)?,
                exclude: self.list(Reader::text)?,
                gitignore: self.number()? == GITIGNORE,
            },
            ..Table::default()
        })
    }

    fn file(&mut self) -> Option<Known> {
        let root = usize::try_from(self.number()?).ok()?;
        let inside = self.path()?;
        let size = self.number()?;
        let (modified, changed) = (self.time()?, self.time()?);
        let stamp = Stamp::new(size, modified, changed, self.number()?);
        let links = self.number()?;
        let generation = Some(self.number()?).filter(|generation| *generation > 0);
        let flags = self.number()?;
        let kind = u8::try_from(self.number()?)
            .ok()
            .and_then(TextKind::from_byte)?;
        let (whole, ends) = (self.number()?, self.number()?);
        let unread = self.text()?;
        let entrances = self.list(|bytes| Entrance::from_bytes(bytes.bytes()?))?;
        let segments = self.list(Reader::segment)?;
        Some(Known {
            root,
            inside,
            is_link: flags & LINK != 0,
            stamp: if flags & RACY == 0 {
                stamp
            } else {
                stamp.racy()
            },
            links,
            generation,
            grows: flags & GROWS != 0,
            kind,
            whole,
            ends,
            unread: Some(unread).filter(|why| !why.is_empty()),
            entrances,
            segments,
        })
    }

    fn segment(&mut self) -> Option<Segment> {
        let (bytes, lines) = (self.number()?, self.number()?);
        let sum = u64::from_le_bytes(*self.take(8)?.first_chunk()?);
        let part = usize::try_from(self.number()?).ok()?;
        let entry = usize::try_from(self.number()?).ok()?;
        let times = match self.number()? {
            0 => None,
            passed => {
                let first = self.time()?;
                Some((first, first.checked_add_unsigned(passed - 1)?))
            }
        };
        let last_time = match self.number()? {
            0 => None,
            _ => Some(self.time()?),
        };
        Some(Segment {
            bytes,
            lines,
            sum,
            times,
            last_time,
            filters: At { part, entry },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let segment = |bytes, times| Segment {
            bytes,
            lines: 7,
            sum: u64::MAX - bytes,
            times,
            last_time: times.map(|(first, _)| first),
            filters: At { part: 1, entry: 3 },
        };
        let file = |inside: &str, unread: Option<&str>| Known {
            root: 1,
            inside: inside.into(),
            is_link: true,
            stamp: Stamp::new(1 << 40, -5, i64::MAX, 77).racy(),
            links: 2,
            generation: Some(u64::MAX),
            grows: true,
            kind: TextKind::PLAIN,
            whole: 1000,
            ends: u64::MAX,
            unread: unread.map(str::to_owned),
            entrances: vec![Entrance::from_bytes(&[7; 16]).unwrap()],
            segments: vec![
                segment(16 << 20, None),
                segment(5, Some((-3, 1 << 60))),
                segment(0, Some((i64::MIN, i64::MAX - 1))),
            ],
        };
        Table {
            home: "/indexes".into(),
            roots: Roots {
                folder: "/home".into(),
                paths: vec!["a.log".into(), "logs".into()],
            },
            choice: Choice {
                include: vec!["*.log".into()],
                exclude: vec!["*.tmp".into(), "é".into()],
                gitignore: true,
            },
            parts: vec![u64::MAX],
            files: vec![file("x/y.log", None), file("", Some("why"))],
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for table in [table(), Table::default()] {
            assert_eq!(Table::from_id(&table.to_id()), Some(table));
        }
    }

    /// Any bytes get an answer, and quickly.
    #[test]
    fn what_is_cut_or_changed_is_refused_or_read() {
        let id = table().to_id();
        for length in 0..id.len() {
            assert_eq!(Table::from_id(&id[..length]), None, "{length}");
        }
        for at in 0..id.len() {
            for bit in 0..8 {
                let mut changed = id.clone();
                changed[at] ^= 1 << bit;
                // A checksum covers the index; here we only check for panics.
                let _ = Table::from_id(&changed);
            }
        }
        let mut longer = id;
        longer.push(0);
        assert_eq!(Table::from_id(&longer), None);
    }

    #[test]
    fn earlier_editions_are_known() {
        let first = earlier(b"\0/home\0a.log\0logs").unwrap();
        assert_eq!(first.roots, table().roots);
        let mut second = table().to_id();
        second[1] = b'2';
        assert_eq!(Table::from_id(&second), None);
        let expected = Table {
            parts: Vec::new(),
            files: Vec::new(),
            ..table()
        };
        assert_eq!(earlier(&second), Some(expected));
        assert_eq!(earlier(&table().to_id()), None);
    }
}
