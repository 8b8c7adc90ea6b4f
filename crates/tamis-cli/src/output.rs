//! Standard output is for data alone; everything else goes to stderr.

use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Writes a command's answer.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
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

/// Whether the reader of our output went away.
pub(crate) fn is_closed(error: &anyhow::Error) -> bool {
    let closed = |e: &io::Error| e.kind() == io::ErrorKind::BrokenPipe;
    let causes = error.chain().filter_map(|cause| cause.downcast_ref());
    causes.into_iter().any(closed)
}

/// Where records go: standard output, or a file that appears whole at the end.
pub(crate) enum Sink {
    Stdout(File),
    File {
        writer: Box<Encoder>,
        path: PathBuf,
        force: bool,
    },
    Finished,
}

/// Compresses on the way, as the file's extension says.
pub(crate) enum Encoder {
    Plain(NamedTempFile),
    Gzip(flate2::write::GzEncoder<NamedTempFile>),
    Zstd(zstd::Encoder<'static, NamedTempFile>),
    Bzip2(bzip2::write::BzEncoder<NamedTempFile>),
    Xz(liblzma::write::XzEncoder<NamedTempFile>),
}

impl Sink {
    /// Standard output, or a file that must not exist yet unless `force`d.
    pub(crate) fn open(path: Option<&Path>, force: bool) -> Result<Self> {
        let Some(path) = path.filter(|path| *path != Path::new("-")) else {
            return Ok(Self::Stdout(stdout()?));
        };
        if path.exists() && !force {
            bail!(
                "{} exists already\nhint: --force replaces it",
                path.display()
            );
        }
        let dir = match path.parent() {
            Some(dir) if !dir.as_os_str().is_empty() => dir,
            _ => Path::new("."),
        };
        let mut builder = tempfile::Builder::new();
        // As any new file: the user's umask decides.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let file = builder
            .prefix(".tamis-")
            .tempfile_in(dir)
            .with_context(|| format!("creating {}", path.display()))?;
        Ok(Self::File {
            writer: Box::new(Encoder::new(path, file)?),
            path: path.to_owned(),
            force,
        })
    }

    /// Whether nothing is to be seen of the output before [`finish`](Self::finish).
    pub(crate) const fn appears_at_end(&self) -> bool {
        matches!(self, Self::File { .. })
    }

    /// Makes the output appear, on disk.
    pub(crate) fn finish(&mut self) -> Result<()> {
        match std::mem::replace(self, Self::Finished) {
            Self::Stdout(mut file) => Ok(file.flush()?),
            Self::File {
                writer,
                path,
                force,
            } => {
                let file = writer.finish()?;
                file.as_file().sync_all()?;
                match force {
                    true => file.persist(&path),
                    false => file.persist_noclobber(&path),
                }
                .map(drop)
                .with_context(|| path.display().to_string())
            }
            Self::Finished => Ok(()),
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(file) => file.write(bytes),
            Self::File { writer, .. } => match &mut **writer {
                Encoder::Plain(w) => w.write(bytes),
                Encoder::Gzip(w) => w.write(bytes),
                Encoder::Zstd(w) => w.write(bytes),
                Encoder::Bzip2(w) => w.write(bytes),
                Encoder::Xz(w) => w.write(bytes),
            },
            Self::Finished => Err(io::ErrorKind::WriteZero.into()),
        }
    }

    /// What was written survives this process, and where the output is a file
    /// also the machine: a filter that claims it is saved next.
    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(file) if file.metadata().is_ok_and(|m| m.is_file()) => file.sync_data(),
            _ => Ok(()),
        }
    }
}

impl Encoder {
    fn new(path: &Path, file: NamedTempFile) -> Result<Self> {
        let extension = path
            .extension()
            .and_then(|e| e.to_str())
            .unwrap_or_default();
        Ok(match extension {
            "gz" => Self::Gzip(flate2::write::GzEncoder::new(
                file,
                flate2::Compression::default(),
            )),
            "zst" => Self::Zstd(zstd::Encoder::new(file, 0)?),
            "bz2" => Self::Bzip2(bzip2::write::BzEncoder::new(
                file,
                bzip2::Compression::default(),
            )),
            "xz" => Self::Xz(liblzma::write::XzEncoder::new(file, 6)),
            _ => Self::Plain(file),
        })
    }

    fn finish(self) -> io::Result<NamedTempFile> {
        match self {
            Self::Plain(w) => Ok(w),
            Self::Gzip(w) => w.finish(),
            Self::Zstd(w) => w.finish(),
            Self::Bzip2(w) => w.finish(),
            Self::Xz(w) => w.finish(),
        }
    }
}

/// A remark that is no error.
pub(crate) fn warn(text: impl std::fmt::Display) {
    eprintln!("tamis: warning: {text}");
}
