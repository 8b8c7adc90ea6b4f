//! Files: opening those that are filters, and making new ones without harm to
//! what was there.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::bits::Mapped;
use tamis_formats::pybloomfilter::{BITS_AT, MAGIC, Shape};

/// Why a file could not be opened as a filter.
pub(super) enum OpenError {
    Io(io::Error),
    /// What is wrong with it.
    Flaw(String),
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Opens a file that is a filter.
pub(super) fn open(path: &Path, writable: bool) -> Result<(File, Shape), OpenError> {
    // Before it is opened: a pipe without a writer would wait for one.
    if !fs::metadata(path)?.is_file() {
        return Err(OpenError::Flaw("it is not a regular file".into()));
    }
    let file = OpenOptions::new().read(true).write(writable).open(path)?;
    let len = file.metadata()?.len();
    let mut start = [0; BITS_AT];
    let got = read_start(&file, &mut start)?;
    let shape =
        Shape::decode(&start[..got], len).map_err(|error| OpenError::Flaw(error.to_string()))?;
    if writable {
        fill_holes(&file, shape.file_len())?;
    }
    Ok((file, shape))
}

fn read_start(file: &File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        match file.read_at(&mut buffer[got..], got as u64) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(got)
}

/// What is at a place where a filter is to be made.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Existing {
    /// Nothing, or a file without content.
    Nothing,
    Filter,
    /// Somebody else's file.
    Foreign,
    Folder,
}

pub(super) fn existing(path: &Path) -> io::Result<Existing> {
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
    let mut start = [0; MAGIC.len()];
    let got = read_start(&File::open(path)?, &mut start)?;
    Ok(if start[..got] == *MAGIC {
        Existing::Filter
    } else {
        Existing::Foreign
    })
}

/// Makes a file, complete before it takes its name: whatever fails, what was
/// there before is still there.
pub(super) fn create(
    path: &Path,
    perm: u32,
    len: u64,
    fill: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<File> {
    let (file, temporary) = create_beside(path, perm)?;
    let made = reserve(&file, len)
        .and_then(|()| fill(&file))
        .and_then(|()| fs::rename(&temporary, path));
    match made {
        Ok(()) => Ok(file),
        Err(e) => {
            let _ = fs::remove_file(&temporary); // of no use
            Err(e)
        }
    }
}

/// Makes a file with this content.
pub(super) fn create_with(path: &Path, perm: u32, content: &[u8]) -> io::Result<()> {
    let len = content.len() as u64;
    create(path, perm, len, |file| file.write_all_at(content, 0))?;
    Ok(())
}

fn create_beside(path: &Path, perm: u32) -> io::Result<(File, PathBuf)> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut name = OsString::from(".");
    name.push(path.file_name().ok_or(io::ErrorKind::InvalidInput)?);
    loop {
        let mut name = name.clone();
        let unique = NEXT.fetch_add(1, Relaxed);
        name.push(format!(".{}-{unique}.tmp", std::process::id()));
        let path = path.with_file_name(name);
        match OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(perm)
            .open(&path)
        {
            Ok(file) => return Ok((file, path)),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
}

/// Copies what is open as `from`, permissions and all; `record` adds the count.
pub(super) fn copy(from: &Mapped, to: &Path, record: impl FnOnce(&File)) -> io::Result<()> {
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
        // Not as the mask of new files would have them.
        file.set_permissions(meta.permissions())
    })?;
    Ok(())
}

/// Gives a new file its blocks on disk now: a mapping would meet a full disk as
/// a signal in the middle of an add.
#[cfg(target_os = "linux")]
fn reserve(file: &File, len: u64) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let len = libc::off_t::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
    // SAFETY: a plain system call on a descriptor that `file` keeps open.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, len) } {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

#[cfg(not(target_os = "linux"))]
fn reserve(file: &File, len: u64) -> io::Result<()> {
    if file.metadata()?.len() < len {
        file.set_len(len)?;
    }
    Ok(())
}

/// The same for a file that the original made: those have holes. Where the
/// system can't, they stay; the C library's substitute would write zeros over
/// what another process may just be adding.
#[cfg(target_os = "linux")]
fn fill_holes(file: &File, len: u64) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;
    if file.metadata()?.blocks() * 512 >= len {
        return Ok(());
    }
    let len = libc::off_t::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
    // SAFETY: a plain system call on a descriptor that `file` keeps open.
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

/// The record of a filter's keys, kept beside the file's bytes as an extended
/// attribute: its bytes are the original's, who has no room for a count that
/// it would not mistake for another kind of filter in a union.
#[cfg(target_os = "linux")]
pub(super) mod record {
    use std::ffi::CStr;
    use std::fs::File;
    use std::os::fd::AsRawFd;

    const NAME: &CStr = c"user.pybloomfilter.count";

    /// Keys, and bits that were set when they were so many.
    pub(in super::super) fn read(file: &File) -> Option<(u64, u64)> {
        let mut text = [0u8; 64];
        // SAFETY: the system writes at most so many bytes to `text`.
        let got = unsafe {
            libc::fgetxattr(
                file.as_raw_fd(),
                NAME.as_ptr(),
                text.as_mut_ptr().cast(),
                text.len(),
            )
        };
        let text = std::str::from_utf8(text.get(..usize::try_from(got).ok()?)?).ok()?;
        let (keys, bits) = text.split_once(' ')?;
        Some((keys.parse().ok()?, bits.parse().ok()?))
    }

    /// Best effort: without a record the count is an estimate.
    pub(in super::super) fn write(file: &File, count: Option<(u64, u64)>) {
        let fd = file.as_raw_fd();
        if let Some((keys, bits)) = count {
            let text = format!("{keys} {bits}");
            // SAFETY: the system reads so many bytes from `text`.
            unsafe {
                libc::fsetxattr(fd, NAME.as_ptr(), text.as_ptr().cast(), text.len(), 0);
            }
        } else {
            // SAFETY: a plain system call on an open descriptor.
            unsafe {
                libc::fremovexattr(fd, NAME.as_ptr());
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) mod record {
    use std::fs::File;

    pub(in super::super) fn read(_: &File) -> Option<(u64, u64)> {
        None
    }

    pub(in super::super) fn write(_: &File, _: Option<(u64, u64)>) {}
}
