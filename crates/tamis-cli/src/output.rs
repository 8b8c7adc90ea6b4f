//! Standard output is for data alone; everything else goes to stderr.

use anyhow::Result;
use std::io::{self, Write};

/// Writes a command's answer.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Whether the reader of our output went away.
pub(crate) fn is_closed(error: &anyhow::Error) -> bool {
    let closed = |e: &io::Error| e.kind() == io::ErrorKind::BrokenPipe;
    error.downcast_ref::<io::Error>().is_some_and(closed)
}

/// A remark that is no error.
pub(crate) fn warn(text: impl std::fmt::Display) {
    eprintln!("tamis: warning: {text}");
}
