//! Inputs: files or stdin, plain or compressed.
//!
//! Compression is recognised by the first bytes, never by the name, so it works on stdin too.
//! Concatenated members of one format (`cat a.gz b.gz`) read as one stream; see `members.rs`.
//!
//! [`Input`] is read from its beginning to its end. [`TextReader`] also notes where reading can start again, for
//! [`text_from`].

mod compression;
mod entrance;
mod inflate;
mod members;
mod notes;
mod text;
mod xz;

pub use self::compression::Compression;
pub use self::entrance::Entrance;
pub use self::text::{Encoding, TextKind, TextReader, text_from};

#[cfg(test)]
pub(crate) use self::notes::Spacing;

use self::compression::SIGNATURE;
use self::members::{Members, Trailing};
use crate::progress::Progress;
use std::fmt;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tamis::Moment;

/// Why an input could not be read, or not to its end, with its name.
#[derive(Debug)]
pub struct InputError {
    /// The name of the input.
    pub name: String,
    /// What went wrong.
    pub cause: io::Error,
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.cause)
    }
}

impl InputError {
    /// Whether the input is fine, and the run was asked to stop while waiting for it.
    pub fn is_stop(&self) -> bool {
        matches!(left(&self.cause), Some(Left::Stopped))
    }

    /// Whether all data of the input was read, and something else follows it.
    pub fn is_trailing(&self) -> bool {
        is_trailing(&self.cause)
    }

    /// Whether the input is fine, but of a format that we don't read.
    pub fn is_not_read(&self) -> bool {
        matches!(left(&self.cause), Some(Left::NotRead(_)))
    }

    /// Whether the input is fine, but lacks the key columns.
    pub fn is_no_column(&self) -> bool {
        matches!(left(&self.cause), Some(Left::NoColumn(_)))
    }

    /// Whether the input is a folder.
    pub fn is_folder(&self) -> bool {
        matches!(left(&self.cause), Some(Left::Folder))
    }

    pub(crate) fn not_read(name: &str, why: impl Into<String>) -> Self {
        Self::left(name, Left::NotRead(why.into()))
    }

    pub(crate) fn no_column(name: &str, what: impl Into<String>) -> Self {
        Self::left(name, Left::NoColumn(what.into()))
    }

    pub(crate) fn stopped(name: &str) -> Self {
        Self::left(name, Left::Stopped)
    }

    fn left(name: &str, why: Left) -> Self {
        Self {
            name: name.to_owned(),
            cause: why.into(),
        }
    }
}

/// Why we stop reading an input that isn't damaged.
#[derive(Debug)]
enum Left {
    /// The run was asked to stop while waiting for the input.
    Stopped,
    Folder,
    /// Its format isn't supported, or it is larger than anyone could have intended.
    NotRead(String),
    /// A key column is missing.
    NoColumn(String),
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Stopped => "stopped",
            Self::Folder => "a folder",
            Self::NotRead(why) | Self::NoColumn(why) => why,
        })
    }
}

impl std::error::Error for Left {}

impl From<Left> for io::Error {
    fn from(why: Left) -> Self {
        match why {
            Left::NotRead(_) | Left::NoColumn(_) => Self::new(io::ErrorKind::InvalidData, why),
            Left::Stopped | Left::Folder => Self::other(why),
        }
    }
}

fn left(error: &io::Error) -> Option<&Left> {
    error.get_ref()?.downcast_ref()
}

fn is_trailing(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|cause| cause.is::<Trailing>())
}

impl std::error::Error for InputError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

/// How to treat compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Recognises and unpacks compressed data. Skips a byte order mark of UTF-8 at the start.
    Recognised,
    /// Reads bytes as they are.
    Ignored,
}

/// An open input.
pub struct Input {
    name: String,
    /// The name as it was given, which may not be UTF-8.
    given_name: Arc<[u8]>,
    compression: Compression,
    bytes: Box<dyn Read + Send>,
    /// Bytes that were peeked at, and how many of them have been read since.
    peeked: Cursor<Vec<u8>>,
    /// The error that ended peeking.
    failed: Option<InputError>,
    /// The time of its last change, if it is a file.
    written: Option<Moment>,
    /// The file, if it can be read by position.
    file: Option<Arc<File>>,
    /// How many bytes were taken from it for peeking, and haven't been read yet.
    taken: usize,
}

impl Input {
    /// Opens a file, or stdin for `-`. Counts bytes read in `progress`.
    pub fn open(
        path: &Path,
        packing: Packing,
        progress: &Arc<Progress>,
    ) -> Result<Self, InputError> {
        let (name, file) = match path.to_str() {
            Some("-") => ("stdin".to_owned(), stdin()),
            _ => (path.display().to_string(), File::open(path)),
        };
        let mut input = match file {
            Ok(file) => Self::from_file(&name, file, packing, progress)?,
            Err(cause) => return Err(InputError { name, cause }),
        };
        if path != Path::new("-") {
            input.given_name = path.as_os_str().as_encoded_bytes().into();
        }
        Ok(input)
    }

    /// Reads an open file, with this name.
    pub fn from_file(
        name: &str,
        file: File,
        packing: Packing,
        progress: &Arc<Progress>,
    ) -> Result<Self, InputError> {
        match file.metadata() {
            Ok(metadata) if metadata.is_file() => {
                let file = Arc::new(file);
                let mut input = Self::from_read(name, Arc::clone(&file), packing, progress)?;
                input.written = metadata.modified().ok().map(Moment::from);
                input.file = Some(file).filter(|_| !input.is_compressed());
                Ok(input)
            }
            Ok(metadata) if metadata.is_dir() => Err(InputError::left(name, Left::Folder)),
            _ => {
                widen(&file);
                let waiting = Waiting {
                    file,
                    progress: Arc::clone(progress),
                    ended: false,
                };
                Self::from_read(name, waiting, packing, progress)
            }
        }
    }

    /// Reads from any reader, with this name.
    pub fn from_read(
        name: &str,
        source: impl Read + Send + 'static,
        packing: Packing,
        progress: &Arc<Progress>,
    ) -> Result<Self, InputError> {
        let failed = |cause| InputError {
            name: name.to_owned(),
            cause,
        };
        let mut source = Counted {
            source,
            progress: Arc::clone(progress),
        };
        let undecided = |bytes: &[u8]| Compression::undecided(bytes) || may_become_mark(bytes);
        let first = match packing {
            Packing::Recognised => first_bytes(&mut source, undecided),
            Packing::Ignored => Ok(Vec::new()),
        };
        let mut first = first.map_err(failed)?;
        let compression = Compression::of(&first);
        let mut taken = 0;
        let bytes: Box<dyn Read + Send> = match compression {
            Compression::None => {
                skip_mark(&mut first);
                taken = first.len();
                Box::new(Cursor::new(first).chain(source))
            }
            _ => Box::new(Unmarked {
                start: None,
                source: Members::new(compression, first, source).map_err(failed)?,
            }),
        };
        Ok(Self {
            name: name.to_owned(),
            given_name: name.as_bytes().into(),
            compression,
            bytes,
            peeked: Cursor::default(),
            failed: None,
            written: None,
            file: None,
            taken,
        })
    }

    /// Peeks at the first bytes; fewer than `most` only at the end or before an error.
    pub fn peek(&mut self, most: usize) -> &[u8] {
        let mut head = vec![0; most];
        let mut filled = 0;
        while filled < most {
            match self.read(&mut head[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) => {
                    self.failed = Some(error);
                    break;
                }
            }
        }
        head.truncate(filled);
        self.peeked = Cursor::new(head);
        self.peeked.get_ref()
    }

    /// The name as text.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name as it was given.
    pub fn given_name(&self) -> Arc<[u8]> {
        Arc::clone(&self.given_name)
    }

    /// The time of its last change, if it is a file.
    pub const fn written(&self) -> Option<Moment> {
        self.written
    }

    /// The file and the position of the next bytes, if it can be read by position.
    pub(crate) fn position(&self) -> Option<(Arc<File>, u64)> {
        let peeked = self.peeked.get_ref().len() as u64 - self.peeked.position();
        let file = self
            .file
            .as_ref()
            .filter(|_| peeked == 0 && self.taken == 0)?;
        let at = (&mut &**file).stream_position().ok()?;
        Some((Arc::clone(file), at))
    }

    /// Whether it is compressed, and being unpacked.
    pub fn is_compressed(&self) -> bool {
        self.compression != Compression::None
    }

    /// Whether a short read means that more may come later, as on a pipe. Decoders have other reasons for short reads.
    pub(crate) fn short_reads_mean_waiting(&self) -> bool {
        self.compression == Compression::None
    }

    /// Reads some bytes; 0 at the end. An error comes after everything that could be decoded.
    pub fn read(&mut self, into: &mut [u8]) -> Result<usize, InputError> {
        // Reading from memory doesn't fail.
        if let Ok(count @ 1..) = self.peeked.read(into) {
            return Ok(count);
        }
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let limit = into.len().min(self.compression.read_limit());
        loop {
            match self.bytes.read(&mut into[..limit]) {
                Ok(count) => {
                    self.taken = self.taken.saturating_sub(count);
                    return Ok(count);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.explain(e)),
            }
        }
    }

    /// Adds the file's name to an error, and translates a decoder's error.
    fn explain(&self, cause: io::Error) -> InputError {
        InputError {
            name: self.name.clone(),
            cause: self.compression.explain(cause),
        }
    }
}

/// Enlarges a pipe beyond its 64 KiB, so that both ends work in larger steps. Only a matter of speed.
fn widen(pipe: &File) {
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd;
        const ROOM: libc::c_int = 1 << 20; // allowed for every user
        // SAFETY: the call fails if this isn't a pipe, and only changes a pipe's size.
        unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETPIPE_SZ, ROOM) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = pipe;
}

/// Stdin without the standard library's small buffer. It is a duplicate, so closing it leaves stdin open.
#[cfg(unix)]
pub fn stdin() -> io::Result<File> {
    use std::os::fd::AsFd;
    io::stdin().as_fd().try_clone_to_owned().map(File::from)
}

/// Stdin as a file. It is a duplicate, so closing it leaves stdin open.
#[cfg(windows)]
pub fn stdin() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    io::stdin().as_handle().try_clone_to_owned().map(File::from)
}

/// A pipe or terminal, whose next bytes may be hours away: a request to stop must not wait for them.
struct Waiting {
    file: File,
    progress: Arc<Progress>,
    /// Set at the end: a terminal could still be read after Ctrl-D.
    ended: bool,
}

impl Read for Waiting {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.ended {
            return Ok(0);
        }
        while !readable_soon(&self.file) {
            if self.progress.stop.load(Ordering::Relaxed) {
                return Err(Left::Stopped.into());
            }
        }
        let count = self.file.read(into)?;
        self.ended = count == 0 && !into.is_empty();
        Ok(count)
    }
}

/// Whether a read returns at once or within a moment.
#[cfg(unix)]
fn readable_soon(file: &File) -> bool {
    use std::os::fd::AsRawFd;
    const MOMENT: libc::c_int = 100; // milliseconds
    let mut question = libc::pollfd {
        fd: file.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one entry, as the count says; the file is open.
    let answers = unsafe { libc::poll(&raw mut question, 1, MOMENT) };
    // The read will report errors of poll, except an interruption by a signal.
    answers > 0 || (answers < 0 && io::Error::last_os_error().kind() != io::ErrorKind::Interrupted)
}

#[cfg(not(unix))]
fn readable_soon(_: &File) -> bool {
    true
}

/// The next bytes, as many as needed to recognise a signature.
fn first_bytes(source: &mut impl Read, undecided: impl Fn(&[u8]) -> bool) -> io::Result<Vec<u8>> {
    let mut bytes = [0; SIGNATURE];
    let mut filled = 0;
    while filled < SIGNATURE && undecided(&bytes[..filled]) {
        match source.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(bytes[..filled].to_vec())
}

/// U+FEFF, which some programs put before text in UTF-8.
const MARK: &[u8] = b"\xEF\xBB\xBF";

fn may_become_mark(bytes: &[u8]) -> bool {
    bytes.len() < MARK.len() && MARK.starts_with(bytes)
}

fn skip_mark(first: &mut Vec<u8>) {
    if first.starts_with(MARK) {
        first.drain(..MARK.len());
    }
}

/// Unpacked data without a byte order mark.
struct Unmarked<R> {
    /// The first bytes, once read.
    start: Option<Cursor<Vec<u8>>>,
    source: R,
}

impl<R: Read> Read for Unmarked<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let start = match &mut self.start {
            Some(start) => start,
            None => {
                let mut first = first_bytes(&mut self.source, may_become_mark)?;
                skip_mark(&mut first);
                self.start.insert(Cursor::new(first))
            }
        };
        match start.read(into)? {
            0 => self.source.read(into),
            count => Ok(count),
        }
    }
}

/// Counts bytes read from the system, for progress relative to the size of the file.
struct Counted<R> {
    source: R,
    progress: Arc<Progress>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(into)?;
        self.progress
            .consumed
            .fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}
