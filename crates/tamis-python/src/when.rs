//! `at=`: the time at which keys are seen or queried; and the length of windows.

use crate::error::{Failure, Result};
use crate::key;
use crate::moment;
use crate::numpy;
use crate::source::Source;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyFloat, PyInt, PyString};
use std::time::Duration;
use tamis::{
    AnyFilter, Moment, Window,
    body::Body,
    window::{Renewal, Span, WindowOptions},
};
use tamis_python_core::times::{self, NoMoment};

/// The time at which keys are seen or queried.
#[derive(Clone, Copy)]
pub(crate) enum When<'a> {
    Now,
    At(Moment),
    /// One per key.
    Each(&'a [Moment]),
}

/// The system's time, but not before the latest time added: if the clock was set back, keys would be too old.
pub(crate) fn now<B: Body>(window: &Window<B>) -> Moment {
    match window.options().span() {
        Span::Time(_) => Moment::now().max(window.latest().unwrap_or(Moment::MIN)),
        Span::Keys(_) => Moment::default(),
    }
}

/// The same for any filter; only windows use it.
pub(crate) fn now_of<B: Body>(filter: &AnyFilter<B>) -> Moment {
    match filter {
        AnyFilter::Window(window) => now(window),
        _ => Moment::default(),
    }
}

/// The argument `at` for many keys.
pub(crate) enum Times {
    Now,
    At(Moment),
    Each(Vec<Moment>),
}

impl Times {
    /// Parses the argument, and refuses anything that isn't a time.
    pub(crate) fn of(at: &Bound<'_, PyAny>) -> Result<Self> {
        if at.is_none() {
            return Ok(Self::Now);
        }
        match one(at)? {
            One::Micros(micros) => return Ok(Self::At(in_range(micros, None)?)),
            One::Missing => return Err(missing(None)),
            One::Other => {}
        }
        if at.is_instance_of::<PyString>()
            || at.is_instance_of::<PyBytes>()
            || at.is_instance_of::<PyByteArray>()
        {
            return Err(no_time(at, None));
        }
        each(at).map(Self::Each)
    }
}

/// The argument `at` for one key.
pub(crate) fn when(at: &Bound<'_, PyAny>) -> Result<When<'static>> {
    if at.is_none() {
        return Ok(When::Now);
    }
    match one(at)? {
        One::Micros(micros) => in_range(micros, None).map(When::At),
        One::Missing => Err(missing(None)),
        One::Other => Err(no_time(at, None)),
    }
}

fn each(at: &Bound<'_, PyAny>) -> Result<Vec<Moment>> {
    let py = at.py();
    let mut moments = Vec::new();
    let wrong = |no: NoMoment| match no {
        NoMoment::Missing(row) => missing(Some(row)),
        NoMoment::Range(row, micros) => out_of_range(micros, Some(row)),
        NoMoment::Type => no_times(at),
    };
    // The error mentions keys, so it is replaced.
    let source = Source::of(at).map_err(|failure| match failure {
        Failure::Own("KeyTypeError", _) => no_times(at),
        other => other,
    });
    match source? {
        Source::Arrow(mut arrays) => {
            while let Some(array) = py.detach(|| arrays.next())? {
                let column = arrays.column(&array).map_err(|_| no_times(at))?;
                py.detach(|| column.moments(&mut moments)).map_err(wrong)?;
            }
        }
        Source::Array { array, masked, utc } => {
            match numpy::column(&array, masked.as_deref(), utc).map_err(|_| no_times(at))? {
                Some(column) => py.detach(|| column.moments(&mut moments)).map_err(wrong)?,
                None => of_objects(&array.call_method0("tolist")?, &mut moments)?,
            }
        }
        Source::Objects(list) => of_objects(&list, &mut moments)?,
        Source::Iterable => of_objects(at, &mut moments)?,
    }
    Ok(moments)
}

fn of_objects(objects: &Bound<'_, PyAny>, moments: &mut Vec<Moment>) -> Result<()> {
    let all = objects.try_iter().map_err(|_| no_time(objects, None))?;
    for (row, object) in all.enumerate() {
        let object = object?;
        match one(&object)? {
            One::Micros(micros) => moments.push(in_range(micros, Some(row))?),
            One::Missing => return Err(missing(Some(row))),
            One::Other => return Err(no_time(&object, Some(row))),
        }
        if row.is_multiple_of(1 << 15) {
            objects.py().check_signals()?;
        }
    }
    Ok(())
}

/// An object as a time.
enum One {
    Micros(i128),
    /// A missing value: None, NaN, NaT.
    Missing,
    Other,
}

fn one(object: &Bound<'_, PyAny>) -> Result<One> {
    let number = |seconds: f64| times::of_seconds(seconds).map_or(One::Missing, One::Micros);
    if let Ok(seconds) = object.cast::<PyFloat>() {
        return Ok(number(seconds.value()));
    }
    if object.is_instance_of::<PyBool>() {
        return Ok(One::Other);
    }
    if object.is_instance_of::<PyInt>() {
        // Beyond 64 bits it is outside the calendar, too.
        let seconds = object.extract::<i64>().unwrap_or(i64::MAX);
        return Ok(One::Micros(i128::from(seconds) * 1_000_000));
    }
    if object.is_none() {
        return Ok(One::Missing);
    }
    if let Some(micros) = moment::micros(object)? {
        return Ok(micros.map_or(One::Missing, One::Micros));
    }
    if let Some(scalar) = numpy::scalar(object)? {
        let mut moments = Vec::new();
        return Ok(match scalar.column()?.moments(&mut moments) {
            Ok(()) => One::Micros(moments[0].micros().into()),
            Err(NoMoment::Missing(_)) => One::Missing,
            Err(NoMoment::Range(_, micros)) => One::Micros(micros),
            Err(NoMoment::Type) => One::Other,
        });
    }
    // Integers of other libraries. Arrays of length 1 have `__index__`, too.
    if object.hasattr("__index__")? && !object.hasattr("__len__")? {
        let seconds: i64 = object.call_method0("__index__")?.extract()?;
        return Ok(One::Micros(i128::from(seconds) * 1_000_000));
    }
    Ok(One::Other)
}

/// The position among many, for errors.
fn place(row: Option<usize>) -> String {
    row.map_or(String::new(), |row| format!(" at position {row}"))
}

fn in_range(micros: i128, row: Option<usize>) -> Result<Moment> {
    times::moment(micros).ok_or_else(|| out_of_range(micros, row))
}

fn out_of_range(micros: i128, row: Option<usize>) -> Failure {
    Failure::parameter(format!(
        "at: expected a time from the year 1 to 9999, numbers being seconds since 1970, got {} \
         seconds{}; of milliseconds make timestamps first, e.g. numpy's datetime64[ms]",
        micros.div_euclid(1_000_000),
        place(row)
    ))
}

fn missing(row: Option<usize>) -> Failure {
    Failure::parameter(format!(
        "at: expected a time for each key, got none{}; fill it in, or leave its key out",
        place(row)
    ))
}

fn no_time(object: &Bound<'_, PyAny>, row: Option<usize>) -> Failure {
    Failure::argument(format!(
        "at: expected a datetime, a number of seconds since 1970, or one of these for each key, \
         got {}{}; of a text, datetime.fromisoformat makes one",
        key::type_name(object),
        place(row)
    ))
}

fn no_times(column: &Bound<'_, PyAny>) -> Failure {
    let of = match column.getattr_opt("dtype") {
        Ok(Some(dtype)) => Ok(dtype),
        _ => column.getattr("type"),
    };
    let of = of.map_or(String::new(), |of| format!(" of {of}"));
    Failure::argument(format!(
        "at: expected a column of timestamps, dates, or seconds since 1970, got {}{of}; cast it first",
        key::type_name(column)
    ))
}

/// A window's length, and how its keys behave, from Python's arguments.
pub(crate) fn window(
    within: Option<&Bound<'_, PyAny>>,
    quiet: Option<&Bound<'_, PyAny>>,
    last: Option<u64>,
    generations: u32,
) -> Result<Option<WindowOptions>> {
    let options = match (within, quiet, last) {
        (None, None, None) => return Ok(None),
        (Some(within), None, None) => WindowOptions::new(span("within", within)?),
        (None, Some(quiet), None) => {
            WindowOptions::new(span("quiet", quiet)?).renewal(Renewal::Quiet)
        }
        (None, None, Some(last)) => WindowOptions::new(Span::Keys(last)),
        _ => {
            return Err(Failure::parameter(
                "within, quiet, last: expected one of them, got several; each is a window of its own",
            ));
        }
    };
    Ok(Some(options.generations(generations)))
}

/// A duration: a timedelta, a number of seconds, or a text such as "24h".
fn span(name: &str, object: &Bound<'_, PyAny>) -> Result<Span> {
    const UNITS: [(&str, f64); 6] = [
        ("ms", 1e3),
        ("s", 1e6),
        ("m", 60e6),
        ("h", 3600e6),
        ("d", 86_400e6),
        ("w", 604_800e6),
    ];
    let expected =
        "a timedelta, a number of seconds, or a text such as \"24h\" (ms, s, m, h, d, w)";
    let wrong = || Failure::parameter(format!("{name}: expected {expected}, got {object:?}"));
    let micros = if object.is_instance_of::<PyBool>() {
        None
    } else if let Some(micros) = moment::length(object)? {
        Some(micros)
    } else if let Ok(text) = object.extract::<String>() {
        let text = text.trim();
        let (number, unit) = text.split_at(text.trim_end_matches(char::is_alphabetic).len());
        let unit = UNITS.iter().find(|(name, _)| *name == unit);
        let (_, micros) = unit.ok_or_else(wrong)?;
        let number: f64 = number.trim_end().parse().map_err(|_| wrong())?;
        Some((number * micros).round() as i128)
    } else if let Ok(seconds) = object.extract::<f64>() {
        times::of_seconds(seconds)
    } else {
        None
    };
    let Some(micros) = micros else {
        let got = key::type_name(object);
        return Err(Failure::argument(format!(
            "{name}: expected {expected}, got {got}"
        )));
    };
    match u64::try_from(micros) {
        Ok(micros @ 1..) => Ok(Span::Time(Duration::from_micros(micros))),
        _ => Err(Failure::parameter(format!(
            "{name}: expected a length of time above 0, got {object}"
        ))),
    }
}
