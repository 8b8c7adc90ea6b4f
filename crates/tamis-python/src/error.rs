//! Library errors as the exceptions of `tamis.errors`.

use pyo3::call::PyCallArgs;
use pyo3::prelude::*;
use tamis_python_core::keys::NoKeys;

use std::io;
use tamis::Error;

/// An error of a call: the library's, this module's, or Python's.
pub(crate) enum Failure {
    Library(Error),
    /// A class of `tamis.errors` and the message.
    Own(&'static str, String),
    Python(PyErr),
}

/// The result of a call.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    pub(crate) fn parameter(text: impl Into<String>) -> Self {
        Self::Own("ParameterError", text.into())
    }

    pub(crate) fn no_key(text: impl Into<String>) -> Self {
        Self::Own("KeyTypeError", text.into())
    }

    /// An argument of the wrong type.
    pub(crate) fn argument(text: impl Into<String>) -> Self {
        Self::Own("ArgumentTypeError", text.into())
    }

    pub(crate) fn closed() -> Self {
        Self::Own(
            "ClosedError",
            "the filter is closed; open it again, or use it inside its `with` block".into(),
        )
    }

    pub(crate) fn read_only() -> Self {
        Self::Own(
            "ReadOnlyError",
            "the filter was opened for reading only; open it with mode \"r+\" to change it".into(),
        )
    }
}

impl From<NoKeys> for Failure {
    fn from(NoKeys(class, text): NoKeys) -> Self {
        Self::Own(class, text)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Library(error)
    }
}

impl From<tamis_redis::Error> for Failure {
    fn from(error: tamis_redis::Error) -> Self {
        use tamis_redis::Error::{
            Corrupt, Exists, Filter, Gone, Location, MissingChunk, NoRoom, NotFound, Remains,
            RolledBack, Server, Taken, Unconfirmed, Unfinished,
        };
        let class = match error {
            Filter(error) => return Self::Library(error),
            Location { .. } => "ParameterError",
            NotFound { .. } | Gone { .. } | Unfinished { .. } => "NotFoundError",
            Exists { .. } | Taken { .. } => "ExistsError",
            MissingChunk { .. } | Corrupt { .. } | Remains { .. } | RolledBack { .. } => {
                "CorruptError"
            }
            Unconfirmed { .. } => "UnconfirmedError",
            Server { .. } | NoRoom { .. } => "ServerError",
            _ => "TamisError",
        };
        Self::Own(class, error.to_string())
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl From<Failure> for PyErr {
    #[cold]
    fn from(failure: Failure) -> Self {
        Python::attach(|py| match failure {
            Failure::Library(error) => of_library(py, &error),
            Failure::Own(class, text) => exception(py, class, (text,)),
            Failure::Python(error) => error,
        })
    }
}

fn exception<'py>(py: Python<'py>, class: &str, args: impl PyCallArgs<'py>) -> PyErr {
    let class = py
        .import("tamis.errors")
        .and_then(|errors| errors.getattr(class));
    match class.and_then(|class| class.call1(args)) {
        Ok(value) => PyErr::from_value(value),
        Err(error) => error,
    }
}

fn of_library(py: Python<'_>, error: &Error) -> PyErr {
    let class = match error {
        Error::Io {
            action,
            path,
            source,
        } => {
            let path = path.as_deref();
            return of_system(py, action, path, source).unwrap_or_else(|error| error);
        }
        Error::Parameter { .. } => "ParameterError",
        Error::Corrupt { .. } => "CorruptError",
        Error::Unlike { .. } => "UnlikeError",
        Error::Unable { .. } => "UnableError",
        Error::Full { .. } => "FullError",
        Error::TooManyCopies { .. } => "TooManyCopiesError",
        Error::Unsolvable { .. } => "UnsolvableError",
        Error::Contradiction { count, .. } => {
            let text = format!(
                "{count} keys are on the list and on the allow list; say which list wins: \
                 both=\"block\" or both=\"allow\""
            );
            return exception(py, "ContradictionError", (text,));
        }
        Error::Collision { .. } => {
            let text = "collision: a key of the list and a different key of the allow list have \
                        the same hash; somebody chose them so; use keyed=True";
            return exception(py, "CollisionError", (text,));
        }
        Error::Busy { .. } => "BusyError",
        Error::Unclean { .. } => "UncleanError",
        Error::KeyNeeded => "KeyNeededError",
        Error::WrongKey => "WrongKeyError",
        Error::Random(_) => "RandomError",
        _ => "TamisError",
    };
    exception(py, class, (error.to_string(),))
}

/// System errors carry their number and the file, like Python's.
fn of_system(
    py: Python<'_>,
    action: &str,
    path: Option<&std::path::Path>,
    source: &io::Error,
) -> PyResult<PyErr> {
    use io::ErrorKind::{
        AlreadyExists, FileTooLarge, IsADirectory, NotFound, OutOfMemory, PermissionDenied,
    };
    let class = match source.kind() {
        NotFound => "NotFoundError",
        AlreadyExists => "ExistsError",
        PermissionDenied => "ForbiddenError",
        OutOfMemory => {
            return Ok(exception(
                py,
                "OutOfMemoryError",
                (format!("{action}: {source}"),),
            ));
        }
        _ => "IoError",
    };
    // The library creates some errors itself, without a number.
    let name = match source.kind() {
        AlreadyExists => Some("EEXIST"),
        IsADirectory => Some("EISDIR"),
        FileTooLarge => Some("EFBIG"),
        _ => None,
    };
    let number = match (source.raw_os_error(), name) {
        (Some(number), _) => number,
        (None, Some(name)) => py.import("errno")?.getattr(name)?.extract()?,
        (None, None) => {
            let place = path.map_or(String::new(), |path| format!(" {}", path.display()));
            return Ok(exception(
                py,
                class,
                (format!("{action}{place}: {source}"),),
            ));
        }
    };
    let reason: String = py
        .import("os")?
        .call_method1("strerror", (number,))?
        .extract()?;
    let reason = format!("{reason} (while {action})");
    Ok(match path {
        Some(path) => exception(py, class, (number, reason, path.as_os_str())),
        None => exception(py, class, (number, reason)),
    })
}
