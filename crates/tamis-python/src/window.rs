//! The functions behind the class `tamis.Window` in `tamis/_window.py`, which extends `tamis.Filter`.

use crate::argument;
use crate::error::{Failure, Result};
use crate::filter::Filter;
use crate::filter::backing::{Backing, ask};
use crate::filter::clock;
use crate::filter::making::{self, Wanted};
use crate::lock::Access;
use crate::method::AddAt;
use crate::options::{self, Count, Need, Textbook};
use crate::progress::Progress;
use crate::when::{self, Times, When};
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::ffi::CStr;
use std::path::PathBuf;
use tamis::{
    AnyFilter, Moment,
    window::{Generation, Renewal, Span},
};

/// The filter as a window, or an error.
macro_rules! window {
    ($state:expr, $window:ident => $answer:expr) => {
        ask!($state, filter => match filter {
            AnyFilter::Window($window) => Ok($answer),
            other => Err(Failure::Own(
                "UnableError",
                format!("expected a window, got a {} filter", other.kind()),
            )),
        })?
    };
}

/// An object of the class with an empty window, in memory or in a file of its own.
#[pyfunction]
#[pyo3(signature = (class_, path, overwrite, n, p, within, quiet, last, generations, seed, keyed, key, key_file, ignore_case, url, hash_func))]
#[expect(
    clippy::too_many_arguments,
    reason = "they are Python's keyword arguments"
)]
pub(crate) fn _window_new<'py>(
    class_: &Bound<'py, PyType>,
    #[pyo3(from_py_with = argument::path)] path: Option<PathBuf>,
    #[pyo3(from_py_with = argument::overwrite)] overwrite: bool,
    #[pyo3(from_py_with = argument::n)] n: Option<Count>,
    #[pyo3(from_py_with = argument::p)] p: Option<f64>,
    within: Option<&Bound<'_, PyAny>>,
    quiet: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = argument::last)] last: Option<Count>,
    #[pyo3(from_py_with = argument::generations)] generations: u32,
    #[pyo3(from_py_with = argument::seed)] seed: Option<Count>,
    #[pyo3(from_py_with = argument::keyed)] keyed: bool,
    key: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = argument::key_file)] key_file: Option<PathBuf>,
    #[pyo3(from_py_with = argument::ignore_case)] ignore_case: bool,
    #[pyo3(from_py_with = argument::url)] url: bool,
    hash_func: Option<&Bound<'_, PyAny>>,
) -> Result<Bound<'py, Filter>> {
    let window = when::window(within, quiet, last.map(|last| last.0), generations)?;
    let Some(window) = window else {
        return Err(Failure::argument(
            "within, quiet, last: expected one of them, which says how long keys are remembered",
        ));
    };
    let wanted = Wanted {
        n: n.map(|n| n.0),
        p,
        size: None,
        textbook: Textbook {
            bits: None,
            hashes: None,
        },
        kind: None,
        need: Need {
            window: Some(window),
            ..Need::default()
        },
        hasher: options::hasher(seed, keyed, key, key_file, options::rule(ignore_case, url))?,
    };
    crate::filter::check_callable(hash_func)?;
    let py = class_.py();
    let filter = match path {
        Some(path) => wanted.in_file(py, path, overwrite)?,
        None => wanted.in_memory(py)?,
    };
    making::object_of(class_, filter.hashed_by(hash_func)?)
}

impl AddAt for Filter {
    const DOC: &'static CStr = c"add($self, key, /, at=None)
--

Adds a key seen at a time, or now; returns whether it is new in the window that ends then.

``at`` is a datetime, or a number of seconds since 1970. A datetime without a time zone is what its own
``timestamp()`` says: local time. None is the system's clock, or the latest time that was added, if the clock
is behind it.

>>> import tamis
>>> alerts = tamis.Window(1000, quiet=\"60s\")
>>> alerts.add(\"disk full\", at=0), alerts.add(\"disk full\", at=50), alerts.add(\"disk full\", at=100)
(True, False, False)
>>> alerts.add(\"disk full\", at=170)
True";

    fn add_at(
        this: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        at: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let (py, this) = (this.py(), this.get());
        let when = when::when(at)?;
        let hash = match this.usual_hash(key) {
            Some(hash) => hash,
            None => this.hash(key)?,
        };
        this.state.wait(py, Access::Change)?;
        let new = this.state.with(py, |state| {
            let mut new = [false];
            state.insert_all(&[hash], when, &mut new)?;
            Ok::<_, Failure>(new[0])
        })?;
        Ok(new)
    }
}

#[pyfunction]
pub(crate) fn _window_contains(
    window: &Bound<'_, Filter>,
    key: &Bound<'_, PyAny>,
    at: &Bound<'_, PyAny>,
) -> Result<bool> {
    let (py, this) = (window.py(), window.get());
    let (when, hash) = (when::when(at)?, this.hash(key)?);
    this.state.wait(py, Access::Ask)?;
    this.state.ask(py, |state| {
        let mut found = [false];
        state.contains_all(&[hash], when, &mut found)?;
        Ok(found[0])
    })
}

#[pyfunction]
pub(crate) fn _window_add_many<'py>(
    window: &Bound<'py, Filter>,
    keys: &Bound<'py, PyAny>,
    at: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = argument::threads)] threads: usize,
    progress: Option<&Bound<'_, PyAny>>,
    answers: bool,
) -> Result<Bound<'py, PyAny>> {
    let progress = Progress::asked(progress)?;
    let times = Times::of(at)?;
    if matches!(times, Times::Now) {
        clock::warn(keys.py(), &window.get().state)?;
    }
    let this = window.get();
    let new = this.insert_all(keys, &times, threads, answers, progress.as_ref())?;
    Progress::finish(progress, keys.py())?;
    Ok(new)
}

#[pyfunction]
pub(crate) fn _window_contains_many<'py>(
    window: &Bound<'py, Filter>,
    keys: &Bound<'py, PyAny>,
    at: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = argument::threads)] threads: usize,
    progress: Option<&Bound<'_, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    let progress = Progress::asked(progress)?;
    let times = Times::of(at)?;
    let this = window.get();
    let found = this.ask_all(keys, &times, threads, progress.as_ref())?;
    Progress::finish(progress, keys.py())?;
    Ok(found)
}

/// The span in microseconds or in keys, that of a generation, whether it is one of keys, whether
/// sightings renew a key, and the latest moment in microseconds.
#[pyfunction]
pub(crate) fn _window_facts(
    window: &Bound<'_, Filter>,
) -> Result<(u64, u64, bool, bool, Option<i64>)> {
    let (py, this) = (window.py(), window.get());
    this.state.wait(py, Access::Ask)?;
    let (options, latest) = this.state.ask(
        py,
        |state| window!(state, window => (window.options(), window.latest())),
    )?;
    let number = |span| match span {
        Span::Time(span) => (span.as_micros() as u64, false),
        Span::Keys(keys) => (keys, true),
    };
    let ((span, by_keys), (band, _)) = (number(options.span()), number(options.band()));
    let quiet = options.renewed() == Renewal::Quiet;
    Ok((span, band, by_keys, quiet, latest.map(Moment::micros)))
}

/// Start, end and keys.
type Facts = (i64, i64, u64);

/// The generations, the newest first.
#[pyfunction]
pub(crate) fn _window_generations(window: &Bound<'_, Filter>) -> Result<Vec<Facts>> {
    let generations = Filter::read(window, |state| window!(state, w => w.generations()))?;
    let facts = |g: Generation| -> Facts { (g.start, g.end, g.keys) };
    Ok(generations.into_iter().map(facts).collect())
}

#[pyfunction]
pub(crate) fn _window_remembers(window: &Bound<'_, Filter>, at: &Bound<'_, PyAny>) -> Result<bool> {
    let (py, this, when) = (window.py(), window.get(), when::when(at)?);
    this.state.wait(py, Access::Ask)?;
    this.state.ask(py, |state| {
        window!(state, w => w.remembers(match when {
            When::At(moment) => moment,
            _ => when::now(w),
        }))
    })
}
