//! Why outputs can't be written.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why an output could not be written.
#[derive(Debug)]
pub struct OutputError {
    /// The file.
    pub path: PathBuf,
    /// What went wrong.
    pub cause: io::Error,
}

impl OutputError {
    pub(crate) fn of(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self { path, cause }
    }
}

impl fmt::Display for OutputError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "writing {}: {}", self.path.display(), self.cause)
    }
}

// The message already includes the cause; as a `source`, it would be printed twice.
impl std::error::Error for OutputError {}

/// Why a folder can't receive the outputs of a run.
#[derive(Debug)]
pub enum Refused {
    /// A system error.
    Failed(OutputError),
    /// An output already exists.
    Exists(PathBuf),
    /// Two inputs would share an output, or the output of one would be the folder of another's.
    OneName(PathBuf),
    /// There is an unfinished run with different parameters; this is the difference.
    AnotherRun(String),
}
