//! Creates filters: plans, new files, opened and loaded files, decoded bytes; and makes objects of the requested class.

use super::Filter;
use super::backing::{Backing, ask};
use crate::argument;
use crate::buffer::Lent;
use crate::error::{Failure, Result};
use crate::fork::Process;
use crate::interrupt;
use crate::key;
use crate::lock::lock;
use crate::options::{self, Count, Need, Textbook};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::PyType;
use std::path::PathBuf;
use std::sync::Mutex;
use tamis::{AnyFilter, Hasher, Kind, Open, Plan};

/// Hands a finished filter to `Filter.__new__`, which alone can make objects of
/// a class that is derived from it.
#[pyclass(frozen, module = "tamis._tamis", name = "_Made")]
pub(crate) struct Made(Mutex<Option<Filter>>);

/// The input of `Filter.__new__`: a number of keys from users, or an existing filter.
pub(crate) enum Start {
    Keys(u64),
    Made(Box<Filter>),
}

impl<'py> FromPyObject<'_, 'py> for Start {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let Ok(made) = object.cast::<Made>() else {
            return Ok(Self::Keys(argument::n::<Count>(&object)?.0));
        };
        let made = lock(&made.get().0).take();
        made.map(|filter| Self::Made(Box::new(filter)))
            .ok_or_else(|| PyTypeError::new_err("the filter was taken already"))
    }
}

/// The filter as an object of the class. Like pickle, doesn't call `__init__`, which may take other arguments.
pub(crate) fn object_of<'py>(
    class: &Bound<'py, PyType>,
    filter: Filter,
) -> Result<Bound<'py, Filter>> {
    let py = class.py();
    let class = class_for(class, filter.kind(py)?)?;
    let made = Made(Mutex::new(Some(filter)));
    let object = py.get_type::<Filter>();
    let object = object.call_method1("__new__", (class, made))?;
    Ok(object.cast_into::<Filter>().map_err(PyErr::from)?)
}

/// The class for a filter of this kind: if a `tamis.Filter` is asked for, a window becomes a `tamis.Window`; no other
/// kind can be one.
fn class_for<'py>(class: &Bound<'py, PyType>, kind: &str) -> Result<Bound<'py, PyType>> {
    let py = class.py();
    let (is_window, is_plain) = (kind == Kind::Window.name(), class.is(super::class(py)?));
    // A window of a derived class, or the usual case.
    if is_window != is_plain {
        return Ok(class.clone());
    }
    let window = py.import("tamis._window")?.getattr("Window")?;
    if is_window {
        return Ok(window.cast_into::<PyType>().map_err(PyErr::from)?);
    }
    if class.is_subclass(&window)? {
        return Err(Failure::Own(
            "UnableError",
            format!("expected a window, got a {kind} filter; tamis.Filter takes it"),
        ));
    }
    Ok(class.clone())
}

/// The filter as a `tamis.Filter`.
pub(crate) fn object(py: Python<'_>, filter: AnyFilter) -> Result<Bound<'_, Filter>> {
    object_of(super::class(py)?, Filter::in_memory(filter))
}

/// The parameters of a filter, from Python's arguments.
pub(crate) struct Wanted<'a> {
    pub(crate) n: Option<u64>,
    pub(crate) p: Option<f64>,
    pub(crate) size: Option<Count>,
    pub(crate) textbook: Textbook,
    pub(crate) kind: Option<&'a str>,
    pub(crate) need: Need,
    pub(crate) hasher: Hasher,
}

impl Wanted<'_> {
    fn plan(&self) -> Result<Plan> {
        if let Some(window) = &self.need.window {
            return options::plan_window(window, self.n, self.p.unwrap_or(0.01));
        }
        if self.kind == Some(Kind::Window.name()) {
            return Err(Failure::parameter(
                "kind: expected one that remembers for ever, got \"window\"; tamis.Window makes one",
            ));
        }
        self.need.plan(self.kind, |kind| {
            if let Some(plan) = self.textbook.plan(kind, self.n, self.p, self.size)? {
                return Ok(plan);
            }
            let n = self.n.ok_or_else(|| {
                Failure::argument("n: expected how many keys, got nothing".to_owned())
            })?;
            match (self.p, self.size) {
                (Some(_), Some(_)) => Err(Failure::parameter(
                    "p, size: expected one of them, got both; each follows from the other",
                )),
                (_, Some(size)) => options::plan(kind, n, Err(size.0)),
                (p, None) => options::plan(kind, n, Ok(p.unwrap_or(0.01))),
            }
        })
    }

    pub(crate) fn in_memory(self, py: Python<'_>) -> Result<Filter> {
        let (plan, hasher) = (self.plan()?, self.hasher);
        // Filters with secrets aren't cached.
        let open = matches!(hasher, Hasher::Fast { .. });
        if plan.kind() == Kind::Growing && plan.bytes() < SMALL && open {
            return small_growing(&plan, hasher).map(Filter::in_memory);
        }
        let make = move || AnyFilter::from_plan(&plan, hasher);
        let filter = interrupt::if_large(py, plan.bytes(), make)??;
        Ok(Filter::in_memory(filter))
    }

    pub(crate) fn in_file(self, py: Python<'_>, path: PathBuf, overwrite: bool) -> Result<Filter> {
        let (plan, hasher) = (self.plan()?, self.hasher);
        if plan.kind() == Kind::Cuckoo {
            return Err(Failure::Own(
                "UnableError",
                "cuckoo filters can't be changed in their file; make one in memory and save it, \
                 or create a counting filter"
                    .into(),
            ));
        }
        // Just created, so it needs no check.
        let open = Open::new().verify(false);
        let open = match hasher {
            Hasher::Keyed { key, .. } => open.key(key),
            _ => open,
        };
        let place = path.clone();
        let filter = interrupt::apart(py, move || {
            if overwrite {
                AnyFilter::create_over(&place, &plan, hasher)
            } else {
                AnyFilter::create(&place, &plan, hasher)
            }?;
            open.share(&place)
        })??;
        Ok(Filter {
            path: Some(path),
            sole_writer: sole_writer(&filter),
            ..Filter::in_memory(filter)
        })
    }
}

/// Small enough that copying takes less time than planning.
const SMALL: u64 = 1 << 16;

/// An empty growing filter. Creating one takes planning its future layers, so it is copied from the latest one with the
/// same parameters.
fn small_growing(plan: &Plan, hasher: Hasher) -> Result<AnyFilter> {
    type Asked = (u64, u64, u64);
    static LATEST: Mutex<Option<(Asked, AnyFilter)>> = Mutex::new(None);
    let asked = (plan.keys(), plan.rate().to_bits(), plan.bytes());
    let mut latest = lock(&LATEST);
    if let Some((other, empty)) = &*latest
        && *other == asked
        && *empty.hasher() == hasher
    {
        return Ok(empty.duplicate()?);
    }
    let filter = AnyFilter::from_plan(plan, hasher)?;
    *latest = Some((asked, filter.duplicate()?));
    Ok(filter)
}

/// Only one process may add to a growing filter's file.
fn sole_writer(filter: &AnyFilter) -> Option<Process> {
    (filter.kind() == Kind::Growing).then(Process::this)
}

pub(crate) fn open(py: Python<'_>, path: PathBuf, mode: &str, open: Open) -> Result<Filter> {
    let place = path.clone();
    let backing = match mode {
        "r" => Backing::ReadOnly(interrupt::apart(py, move || open.open(place))??),
        "r+" => Backing::Writable(interrupt::apart(py, move || open.share(place))??),
        _ => {
            return Err(Failure::parameter(format!(
                "mode: expected \"r\" or \"r+\", got {mode:?}; Filter.create makes a new file"
            )));
        }
    };
    let sole_writer = match &backing {
        Backing::Writable(filter) => sole_writer(filter),
        _ => None,
    };
    Ok(Filter {
        sole_writer,
        path: Some(path),
        ..made(backing)?
    })
}

fn made(backing: Backing) -> Result<Filter> {
    let hasher = ask!(&backing, filter => *filter.hasher())?;
    Ok(Filter::of(hasher, backing))
}

pub(crate) fn load(py: Python<'_>, path: PathBuf, open: Open) -> Result<Filter> {
    made(Backing::Writable(interrupt::apart(py, move || {
        open.load(&path)
    })??))
}

/// A filter in the bytes of another object, queried in place.
pub(crate) fn borrow(data: &Bound<'_, PyAny>, open: Open) -> Result<Filter> {
    let borrowed = Lent::of(data).map_err(|_| {
        let got = key::type_name(data);
        Failure::argument(format!(
            "data: expected bytes or what shares its bytes, got {got}"
        ))
    })?;
    // SAFETY: `Backing` drops the filter before the bytes, and doesn't expose it. The documentation forbids changing
    // the bytes meanwhile.
    let filter = open.view(unsafe { borrowed.bytes() })?;
    made(Backing::Borrowed {
        filter,
        _bytes: borrowed,
    })
}

pub(crate) fn decode(data: &Bound<'_, PyAny>, open: Open) -> Result<Filter> {
    // For a number or a list, Python would create unrelated bytes.
    let bytes = Lent::of(data).and_then(|_| key::bytes_of(data));
    let bytes = PyBackedBytes::from(bytes.map_err(|_| {
        let got = key::type_name(data);
        Failure::argument(format!("data: expected bytes, got {got}"))
    })?);
    let len = bytes.len() as u64;
    let decode = move || open.from_bytes(&bytes);
    made(Backing::Writable(interrupt::if_large(
        data.py(),
        len,
        decode,
    )??))
}

pub(crate) fn decode_base64(py: Python<'_>, text: PyBackedStr, open: Open) -> Result<Filter> {
    let len = text.len() as u64;
    let decode = move || open.from_base64(&text);
    made(Backing::Writable(interrupt::if_large(py, len, decode)??))
}
