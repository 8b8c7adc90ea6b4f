//! The output of a run: in one piece, or by position.

use std::fs::File;
use std::io::{self, Write};

/// The output and its first error; after that, nothing more is written.
pub(super) struct Output<'a> {
    pub(super) writer: &'a mut (dyn Write + Send),
    pub(super) result: io::Result<()>,
    /// With chunks written by position: the output is complete up to here.
    pub(super) whole: u64,
}

impl Output<'_> {
    /// Returns whether this and all earlier writes succeeded.
    pub(super) fn write(&mut self, bytes: &[u8]) -> bool {
        if self.result.is_ok() {
            self.result = self.writer.write_all(bytes);
        }
        self.result.is_ok()
    }

    /// Records that a chunk could not be written to its position, or only up to here. Returns `false`.
    pub(super) fn fail(&mut self, error: io::Error, end: u64) -> bool {
        self.whole = self.whole.min(end);
        if self.result.is_ok() {
            self.result = Err(error);
        }
        false
    }

    /// Cuts off everything after a missing chunk.
    pub(super) fn cut(&mut self, file: &File) {
        if self.whole < u64::MAX
            && let Err(error) = file.set_len(self.whole)
        {
            self.result = Err(error);
        }
    }

    pub(super) fn flush(&mut self) {
        if self.result.is_ok() {
            self.result = self.writer.flush();
        }
    }
}

/// Writes all bytes to a position of the file. Sets `written` also on failure.
pub(super) fn write_at(file: &File, bytes: &[u8], at: u64, written: &mut usize) -> io::Result<()> {
    #[cfg(unix)]
    let write = std::os::unix::fs::FileExt::write_at;
    #[cfg(windows)]
    let write = std::os::windows::fs::FileExt::seek_write;
    while *written < bytes.len() {
        match write(file, &bytes[*written..], at + *written as u64) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => *written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
