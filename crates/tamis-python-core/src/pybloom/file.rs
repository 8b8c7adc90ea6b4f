//! Opens filter files, and creates new ones without damaging existing files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use super::bits::BitsFile;
use tamis::internals::file::{open_regular, reserve};
use tamis_formats::pybloomfilter::{BITS_AT, Hash, MAGIC, Shape};

/// Why a file could not be opened as a filter.
pub enum OpenError {
    /// The system's error.
    Io(io::Error),
    /// What is wrong with the file.
    Flaw(String),
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Opens a filter's file; also returns the other hashes that it may use.
pub fn open(
    path: &Path,
    writable: bool,
    hash: Option<Hash>,
) -> Result<(File, Shape, &'static [Hash]), OpenError> {
    let file = open_regular(path, writable).map_err(|error| match error {
        tamis::Error::Io { source, .. } if source.raw_os_error().is_some() => source.into(),
        _ => OpenError::Flaw("it is not a regular file".into()),
    })?;
    let len = file.metadata()?.len();
    let start = read_start(&file, BITS_AT)?;
    let decoded = Shape::decode(&start, len, hash);
    let (mut shape, mut others) = decoded.map_err(|error| OpenError::Flaw(error.to_string()))?;
    // If we changed the file, its record names the hash.
    if !others.is_empty()
        && let Some(record) = record::read(&file)
    {
        (shape.hash, others) = (record.hash, &[]);
    }
    if writable {
        fill_holes(&file, shape.file_len())?;
    }
    Ok((file, shape, others))
}

fn read_start(file: &File, len: usize) -> io::Result<Vec<u8>> {
    let mut start = Vec::with_capacity(len);
    file.take(len as u64).read_to_end(&mut start)?;
    Ok(start)
}

/// What exists at the path of a new filter.
#[derive(Clone, Copy, PartialEq)]
pub enum Existing {
    /// Nothing, or a file without content.
    Nothing,
    /// A filter.
    Filter,
    /// A file that isn't a filter.
    Foreign,
    /// A folder.
    Folder,
}

/// Checks what exists at a path.
pub fn existing(path: &Path) -> io::Result<Existing> {
    let meta = match fs::metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Existing::Nothing),
        meta => meta?,
    };
    if meta.is_dir() {
        return Ok(Existing::Folder);
    }
    if !meta.is_file() {
        return Ok(Existing::Foreign);
    }
    if meta.len() == 0 {
        return Ok(Existing::Nothing);
    }
    let is_filter = read_start(&File::open(path)?, MAGIC.len())? == MAGIC;
    Ok(if is_filter {
        Existing::Filter
    } else {
        Existing::Foreign
    })
}

/// Creates a file, complete before it gets its name: after any failure, the existing file is still there.
pub fn create(
    path: &Path,
    perm: u32,
    len: u64,
    fill: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<File> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let folder = folder.unwrap_or(Path::new("."));
    let mut name = tempfile::Builder::new();
    let file = name
        .prefix(".tamis-")
        .suffix(".tmp")
        .make_in(folder, |path| {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create_new(true);
            options.mode(perm).open(path)
        })?;
    reserve(file.as_file(), len)?;
    fill(file.as_file())?;
    Ok(file.persist(path)?)
}

/// Creates a file with this content.
pub fn create_with(path: &Path, perm: u32, content: &[u8]) -> io::Result<()> {
    let len = content.len() as u64;
    create(path, perm, len, |file| file.write_all_at(content, 0))?;
    Ok(())
}

/// Copies the file `from`, with its permissions; `record` adds the count.
pub fn copy(from: &BitsFile, to: &Path, record: impl FnOnce(&File)) -> io::Result<()> {
    let meta = from.file.metadata()?;
    let mode = meta.permissions().mode();
    create(to, mode, meta.len(), |file| {
        let mut at = 0;
        let mut piece = vec![0; 1 << 20];
        loop {
            let got = from.file.read_at(&mut piece, at)?;
            if got == 0 {
                break;
            }
            file.write_all_at(&piece[..got], at)?;
            at += got as u64;
        }
        record(file);
        // The source's permissions, regardless of the umask.
        file.set_permissions(meta.permissions())
    })?;
    Ok(())
}

/// Allocates all disk blocks of a file that the original made: such files have holes. If the system can't, the holes
/// stay; the fallback in [`reserve`] would write zeros over bits that another process may be setting.
/// write zeros over what another process may just be adding.
#[cfg(target_os = "linux")]
fn fill_holes(file: &File, len: u64) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;
    if file.metadata()?.blocks() * 512 >= len {
        return Ok(());
    }
    let len = libc::off_t::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
    // SAFETY: a system call without pointers, on a descriptor that `file` keeps open.
    if unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, len) } == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        e if e.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(()),
        e => Err(e),
    }
}

#[cfg(not(target_os = "linux"))]
fn fill_holes(_: &File, _: u64) -> io::Result<()> {
    Ok(())
}

/// What we know of a filter that was made or changed here.
pub struct Record {
    /// The number of keys, and the number of bits that were set at that count.
    pub count: Option<(u64, u64)>,
    /// How keys are hashed.
    pub hash: Hash,
}

impl Record {
    /// A record with all fields.
    pub const fn new(count: Option<(u64, u64)>, hash: Hash) -> Self {
        Self { count, hash }
    }
}

/// The record of a filter's keys, kept as an extended attribute rather than in the file. The bytes are in the
/// original's format, which has no room for a count that it wouldn't mistake for another kind of filter in a union.
#[cfg(target_os = "linux")]
pub mod record {
    use super::{Hash, Record};
    use std::ffi::CStr;
    use std::fs::File;
    use std::os::fd::AsRawFd;

    const NAME: &CStr = c"user.pybloomfilter.count";
    const UNKNOWN: &str = "?";

    /// Keys and bits, or that they are unknown, and the hash unless it is the newest.
    pub fn read(file: &File) -> Option<Record> {
        let mut text = [0u8; 64];
        // SAFETY: the descriptor is open, the name ends with a zero byte, and the
        // system writes at most `text.len()` bytes to `text`.
        let got = unsafe {
            libc::fgetxattr(
                file.as_raw_fd(),
                NAME.as_ptr(),
                text.as_mut_ptr().cast(),
                text.len(),
            )
        };
        let text = std::str::from_utf8(text.get(..usize::try_from(got).ok()?)?).ok()?;
        let mut words = text.split(' ');
        let count = match (words.next()?, words.next()?) {
            (UNKNOWN, UNKNOWN) => None,
            (keys, bits) => Some((keys.parse().ok()?, bits.parse().ok()?)),
        };
        let hash = words.next().map_or(Ok(Hash::Murmur), str::parse).ok()?;
        Some(Record::new(count, hash))
    }

    /// Best effort: without a record the count is an estimate.
    pub fn write(file: &File, record: Option<Record>) {
        let fd = file.as_raw_fd();
        if let Some(Record { count, hash }) = record {
            let mut text = match count {
                Some((keys, bits)) => format!("{keys} {bits}"),
                None => format!("{UNKNOWN} {UNKNOWN}"),
            };
            if hash != Hash::Murmur {
                text += &format!(" {hash}");
            }
            // SAFETY: as above; the system reads `text.len()` bytes from `text`.
            unsafe {
                libc::fsetxattr(fd, NAME.as_ptr(), text.as_ptr().cast(), text.len(), 0);
            }
        } else {
            // SAFETY: the descriptor is open, and the name ends with a zero byte.
            unsafe {
                libc::fremovexattr(fd, NAME.as_ptr());
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub mod record {
    use std::fs::File;

    /// Keys and bits: unknown on this system.
    pub fn read(_: &File) -> Option<super::Record> {
        None
    }

    /// Does nothing on this system.
    pub fn write(_: &File, _: Option<super::Record>) {}
}
