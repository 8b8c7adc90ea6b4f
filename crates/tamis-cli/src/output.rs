//! Standard output is for data only; everything else goes to stderr.

use crate::present::{self, Written};
use crate::{human, stdout};
use anyhow::{Context, Result};
use std::fs::{self, File};
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use tamis::internals::file::{Replacement, Unplaced};

/// Prints a line to stderr, for people. Names and keys in it are made safe for terminals.
macro_rules! say {
    ($($text:tt)*) => { $crate::output::say(format_args!($($text)*)) };
}

/// The function behind `say!`. Hides passwords.
pub(crate) fn say(text: std::fmt::Arguments) {
    let text = text.to_string();
    // If stderr is closed, nothing can be done.
    let text = tamis_redis::hide_passwords(&text);
    let _ = writeln!(io::stderr(), "{}", human::printable(&text));
}

/// Writes a command's answer, for people or as JSON. Records are written elsewhere, unchanged.
pub(crate) fn print(text: &str) -> Result<()> {
    if stdout::was_closed() {
        return Err(closed().into());
    }
    let mut out = io::stdout().lock();
    out.write_all(human::printable(text).as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Standard output without the standard library's line buffer: the engine writes large pieces.
pub(crate) fn stdout() -> Result<File> {
    #[cfg(unix)]
    let owned = std::os::fd::AsFd::as_fd(&io::stdout()).try_clone_to_owned();
    #[cfg(windows)]
    let owned = std::os::windows::io::AsHandle::as_handle(&io::stdout()).try_clone_to_owned();
    Ok(File::from(owned.context("opening the output")?))
}

fn closed() -> io::Error {
    io::Error::other("standard output is closed")
}

/// Whether the reader of our output closed it.
pub(crate) fn is_closed(error: &anyhow::Error) -> bool {
    let kind = |cause: &(dyn std::error::Error + 'static)| match cause.downcast_ref() {
        Some(tamis::Error::Io { source, .. }) => Some(source.kind()),
        _ => cause.downcast_ref().map(io::Error::kind),
    };
    let mut kinds = error.chain().filter_map(kind);
    kinds.any(|kind| kind == io::ErrorKind::BrokenPipe)
}

/// The file of an output; `None` means standard output, under any of its names.
pub(crate) fn file(path: Option<&Path>) -> Option<&Path> {
    path.filter(|path| ![Path::new("-"), Path::new("/dev/stdout")].contains(path))
}

/// Where records go: a stream, or a file that appears complete at the end.
///
/// A file that isn't [finished](Self::finish) well is kept next to its destination under another name, which is
/// reported: the output of a failed run is useful, but isn't what was asked for.
/// what was asked for.
pub(crate) struct Sink {
    encoder: Option<Encoder>,
    /// The file; `None` for a stream.
    file: Option<Replacement>,
    empty: bool,
    /// Standard output is closed.
    is_closed: bool,
}

/// Compresses according to the file's extension.
enum Encoder {
    Plain(File),
    Gzip(flate2::write::GzEncoder<File>),
    Zstd(zstd::Encoder<'static, File>),
    Bzip2(bzip2::write::BzEncoder<File>),
    Xz(liblzma::write::XzEncoder<File>),
}

impl Sink {
    /// Standard output, or a file that must not exist yet unless `force`d. Pipes and devices are written to directly.
    pub(crate) fn open(path: Option<&Path>, force: bool, written: Written) -> Result<Self> {
        let Some(path) = file(path) else {
            return Self::stdout();
        };
        let opening = || format!("opening {}", path.display());
        let (file, to) = match fs::metadata(path) {
            Ok(there) if !there.is_file() && !there.is_dir() => {
                let stream = File::options().write(true).open(path);
                (None, stream.with_context(opening)?)
            }
            _ => {
                let existing = present::check(path, force, written)?;
                let file = Replacement::begin(path, existing);
                let mut file = file.map_err(|error| present::creating(path, error))?;
                let to = file.file().try_clone().with_context(opening)?;
                (Some(file), to)
            }
        };
        Ok(Self {
            encoder: Some(Encoder::new(path, to)?),
            file,
            empty: true,
            is_closed: false,
        })
    }

    pub(crate) fn stdout() -> Result<Self> {
        Ok(Self {
            encoder: Some(Encoder::Plain(stdout()?)),
            file: None,
            empty: true,
            is_closed: stdout::was_closed(),
        })
    }

    /// Whether the output appears on a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        matches!(&self.encoder, Some(Encoder::Plain(file)) if file.is_terminal())
    }

    /// The file itself, if it is a new, empty one that nobody else can see.
    pub(crate) fn own_file(&self) -> Option<File> {
        match &self.encoder {
            Some(Encoder::Plain(file)) if self.file.is_some() && self.is_empty() => {
                file.try_clone().ok()
            }
            _ => None,
        }
    }

    fn is_empty(&self) -> bool {
        let is_empty = |file: &File| file.metadata().is_ok_and(|file| file.len() == 0);
        self.empty
            && !matches!(&self.encoder, Some(Encoder::Plain(file)) if self.file.is_some() && !is_empty(file))
    }

    /// If output is appended to a file with an unfinished last line, ends that line: it would swallow our first record.
    pub(crate) fn end_last_line(&mut self, delimiter: u8) -> io::Result<()> {
        match &mut self.encoder {
            Some(Encoder::Plain(stream))
                if self.file.is_none() && stdout::goes_on_with_a_line(stream, delimiter)? =>
            {
                stream.write_all(&[delimiter])
            }
            _ => Ok(()),
        }
    }

    /// Whether the output only becomes visible in [`finish`](Self::finish).
    pub(crate) const fn appears_at_end(&self) -> bool {
        // The encoder may hold back compressed data until then, even for a stream.
        self.file.is_some() || !matches!(self.encoder, Some(Encoder::Plain(_)))
    }

    /// Ends a run. If all went `well`, the output appears at its destination, synced to disk; if not, it is kept under
    /// another name. Either way the user can find it.
    pub(crate) fn finish(&mut self, well: bool) -> Result<()> {
        let is_empty = self.is_empty();
        let encoded = self.encoder.take().map_or(Ok(()), Encoder::finish);
        match self.file.take() {
            None => {}
            Some(file) if well && encoded.is_ok() => {
                let meant = file.path().to_owned();
                if let Err(unplaced) = file.try_place() {
                    let Unplaced { error, file } = *unplaced;
                    if let Some(file) = file.filter(|_| !is_empty) {
                        keep(file, "output")?;
                    }
                    return Err(present::creating(&meant, error));
                }
            }
            Some(_) if is_empty => {}
            Some(file) => keep(file, "partial output")?,
        }
        Ok(encoded?)
    }
}

/// Keeps a file that can't have its intended name, and reports its path.
fn keep(file: Replacement, what: &str) -> Result<()> {
    let meant = file.path().display().to_string();
    let kept = file.keep_partial()?;
    say!(
        "tamis: {meant} was not written; the {what} is in {}",
        kept.display()
    );
    Ok(())
}

impl Drop for Sink {
    fn drop(&mut self) {
        // The cause has already been reported.
        if let Err(error) = self.finish(false)
            && !is_closed(&error)
        {
            say!("tamis: {error:#}");
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.empty &= bytes.is_empty();
        if self.is_closed && !bytes.is_empty() {
            return Err(closed());
        }
        match &mut self.encoder {
            Some(Encoder::Plain(w)) => w.write(bytes),
            Some(Encoder::Gzip(w)) => w.write(bytes),
            Some(Encoder::Zstd(w)) => w.write(bytes),
            Some(Encoder::Bzip2(w)) => w.write(bytes),
            Some(Encoder::Xz(w)) => w.write(bytes),
            None => Err(io::ErrorKind::WriteZero.into()),
        }
    }

    /// Makes sure that written data survives this process and, if the output is a file, a crash of the machine: next, a
    /// filter is saved that records it.
    fn flush(&mut self) -> io::Result<()> {
        match &self.encoder {
            Some(Encoder::Plain(file))
                if self.file.is_none() && file.metadata().is_ok_and(|m| m.is_file()) =>
            {
                file.sync_data()
            }
            _ => Ok(()),
        }
    }
}

impl Encoder {
    fn new(path: &Path, to: File) -> Result<Self> {
        let extension = path.extension().and_then(|e| e.to_str());
        Ok(match extension {
            Some("gz") => Self::Gzip(flate2::write::GzEncoder::new(
                to,
                flate2::Compression::default(),
            )),
            Some("zst") => Self::Zstd(zstd::Encoder::new(to, 0)?),
            Some("bz2") => Self::Bzip2(bzip2::write::BzEncoder::new(
                to,
                bzip2::Compression::default(),
            )),
            Some("xz") => Self::Xz(liblzma::write::XzEncoder::new(to, 6)),
            _ => Self::Plain(to),
        })
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Gzip(w) => w.finish().map(drop),
            Self::Zstd(w) => w.finish().map(drop),
            Self::Bzip2(w) => w.finish().map(drop),
            Self::Xz(w) => w.finish().map(drop),
        }
    }
}

/// Standard output for a command that continues when the reader closes it, as in `| head`. Drops the remaining output.
pub(crate) struct UntilClosed<W>(pub(crate) Option<W>);

impl<W: Write> Write for UntilClosed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self
            .0
            .as_mut()
            .map_or(Ok(bytes.len()), |to| to.write(bytes))
        {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {
                self.0 = None;
                Ok(bytes.len())
            }
            written => written,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.as_mut().map_or(Ok(()), Write::flush)
    }
}

/// Prints an error, for people.
pub(crate) fn complain(text: impl std::fmt::Display) {
    say!("tamis: {text}");
}

/// Prints a warning.
pub(crate) fn warn(text: impl std::fmt::Display) {
    say!("tamis: warning: {text}");
}
