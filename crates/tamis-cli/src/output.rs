//! Standard output is for data alone; everything else goes to stderr.

use crate::present::{self, Written};
use crate::{human, stdout};
use anyhow::{Context, Result};
use std::fs::{self, File};
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use tamis::internals::file::{Replacement, Unplaced};

/// A line on stderr, for people. Names and keys in it can't do anything to their terminal.
macro_rules! say {
    ($($text:tt)*) => { $crate::output::say(format_args!($($text)*)) };
}

/// See the macro of that name. No message repeats a password.
pub(crate) fn say(text: std::fmt::Arguments) {
    let text = text.to_string();
    // Without a reader there is nothing to be done.
    let text = tamis_redis::hide_passwords(&text);
    let _ = writeln!(io::stderr(), "{}", human::printable(&text));
}

/// Writes a command's answer, for people or as JSON; records are written as they are, by others.
pub(crate) fn print(text: &str) -> Result<()> {
    if stdout::was_closed() {
        return Err(closed().into());
    }
    let mut out = io::stdout().lock();
    out.write_all(human::printable(text).as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Standard output without the standard library's line buffer: the engine
/// writes large pieces.
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

/// Whether the reader of our output went away.
pub(crate) fn is_closed(error: &anyhow::Error) -> bool {
    let kind = |cause: &(dyn std::error::Error + 'static)| match cause.downcast_ref() {
        Some(tamis::Error::Io { source, .. }) => Some(source.kind()),
        _ => cause.downcast_ref().map(io::Error::kind),
    };
    let mut kinds = error.chain().filter_map(kind);
    kinds.any(|kind| kind == io::ErrorKind::BrokenPipe)
}

/// The file that an output goes to; none is standard output, which has other names as well.
pub(crate) fn file(path: Option<&Path>) -> Option<&Path> {
    path.filter(|path| ![Path::new("-"), Path::new("/dev/stdout")].contains(path))
}

/// Where records go: a stream, or a file that appears whole at the end.
///
/// A file that is not [finished](Self::finish) well stays beside its place under
/// another name, which is told: what a failed run wrote is of use, but it is not
/// what was asked for.
pub(crate) struct Sink {
    encoder: Option<Encoder>,
    /// The file, unless it is a stream.
    file: Option<Replacement>,
    empty: bool,
    /// There is no standard output to write to.
    is_closed: bool,
}

/// Compresses on the way, as the file's extension says.
enum Encoder {
    Plain(File),
    Gzip(flate2::write::GzEncoder<File>),
    Zstd(zstd::Encoder<'static, File>),
    Bzip2(bzip2::write::BzEncoder<File>),
    Xz(liblzma::write::XzEncoder<File>),
}

impl Sink {
    /// Standard output, or a file that must not exist yet unless `force`d. A pipe or a device is
    /// written to as it is.
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

    /// Whether what is written appears on a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        matches!(&self.encoder, Some(Encoder::Plain(file)) if file.is_terminal())
    }

    /// The file itself, if it is one that nobody else knows of, and still empty.
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

    /// Where output is appended to a file whose last line was never finished,
    /// ends that line: it would swallow our first record.
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

    /// Whether nothing is to be seen of the output before [`finish`](Self::finish).
    pub(crate) const fn appears_at_end(&self) -> bool {
        // What is compressed may be with the encoder until then, also where it goes to a stream.
        self.file.is_some() || !matches!(self.encoder, Some(Encoder::Plain(_)))
    }

    /// The end of a run. If all went `well`, the output appears, on disk; if
    /// not, it stays under another name. Either way it is in a place that the
    /// user keeps.
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

/// Keeps what can't have its name, and says where.
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
        // Whatever led here is told by others.
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

    /// What was written survives this process, and where the output is a file
    /// also the machine: a filter that claims it is saved next.
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

/// Standard output for a command whose work goes on when the reader goes away,
/// as in `| head`: what is left to print is dropped.
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

/// An error, for people.
pub(crate) fn complain(text: impl std::fmt::Display) {
    say!("tamis: {text}");
}

/// A remark that is no error.
pub(crate) fn warn(text: impl std::fmt::Display) {
    say!("tamis: warning: {text}");
}
