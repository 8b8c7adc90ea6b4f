//! Python's dates, times, durations, decimals and UUIDs as keys, and other libraries' subclasses of them.

use crate::encoded::{Encoded, Value};
use crate::error::{Failure, Result};
use crate::numpy::imported;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyBytes;
use tamis_python_core::text::{Ticks, write_span};

/// The classes of the module `datetime`.
struct Classes {
    datetime: Py<PyAny>,
    date: Py<PyAny>,
    time: Py<PyAny>,
    timedelta: Py<PyAny>,
    utc: Py<PyAny>,
    /// The start of 1970 in UTC.
    epoch: Py<PyAny>,
}

fn classes(py: Python<'_>) -> PyResult<&Classes> {
    static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();
    CLASSES.get_or_try_init(py, || {
        let module = py.import("datetime")?;
        let class = |name: &str| module.getattr(name).map(Bound::unbind);
        let utc = module.getattr("timezone")?.getattr("utc")?;
        let epoch = module.getattr("datetime")?;
        let epoch = epoch.call1((1970, 1, 1, 0, 0, 0, 0, &utc))?.unbind();
        Ok(Classes {
            epoch,
            datetime: class("datetime")?,
            date: class("date")?,
            time: class("time")?,
            timedelta: class("timedelta")?,
            utc: utc.unbind(),
        })
    })
}

/// The key of such an object, with the same text as a column's value; `None` for other objects.
pub(crate) fn value<'py>(object: &Bound<'py, PyAny>) -> Result<Option<Value<'py>>> {
    let py = object.py();
    let classes = classes(py)?;
    let text = |text: &[u8]| Ok(Some(Value::Key(Encoded::Text(PyBytes::new(py, text)))));
    let is = |class: &Py<PyAny>| object.is_instance(class.bind(py));
    if is(&classes.datetime)? {
        // pandas' NaT is an instance, too.
        if object.ne(object)? {
            return Ok(Some(Value::Missing));
        }
        if object.call_method0("utcoffset")?.is_none() {
            return text(shortened(&iso(object)?).as_bytes());
        }
        let moved = object.call_method1("astimezone", (&classes.utc,));
        let moved = moved.map_err(|error| {
            let text = format!("key: expected a date that is one in UTC, too: {error}");
            Failure::Own("KeyRangeError", text)
        })?;
        let moved = iso(&moved)?;
        let moved = moved.strip_suffix("+00:00").unwrap_or(&moved);
        return text(format!("{}+00", shortened(moved)).as_bytes());
    }
    if is(&classes.date)? {
        return text(
            object
                .call_method0("isoformat")?
                .extract::<String>()?
                .as_bytes(),
        );
    }
    if is(&classes.time)? {
        if !object.call_method0("utcoffset")?.is_none() {
            return Err(Failure::no_key(
                "key: expected a time without a time zone, got one with it, whose moment depends \
                 on the date; pass a datetime, or key.replace(tzinfo=None)",
            ));
        }
        let time: String = object.call_method0("isoformat")?.extract()?;
        return text(shortened(&time).as_bytes());
    }
    if is(&classes.timedelta)? {
        let micros = micros_of(object)?;
        // pandas' types have more digits.
        let nanos = match object.getattr_opt("nanoseconds")? {
            Some(nanos) => nanos.extract::<i128>()?,
            None => 0,
        };
        let mut written = Vec::new();
        write_span(Ticks::decimal(9), micros * 1000 + nanos, &mut written);
        return text(&written);
    }
    if is_of(object, "uuid", "UUID")? || is_of(object, "pandas", "Period")? {
        return text(object.str()?.encode_utf8()?.as_bytes());
    }
    if is_of(object, "decimal", "Decimal")? {
        return of_decimal(object).map(Some);
    }
    if is_of(object, "pandas._libs.missing", "NAType")? {
        return Ok(Some(Value::Missing));
    }
    Ok(None)
}

/// The whole microseconds of a timedelta.
fn micros_of(timedelta: &Bound<'_, PyAny>) -> PyResult<i128> {
    let py = timedelta.py();
    let part = |name| timedelta.getattr(name)?.extract::<i64>().map(i128::from);
    let days = part(intern!(py, "days"))?;
    let seconds = days * 86_400 + part(intern!(py, "seconds"))?;
    Ok(seconds * 1_000_000 + part(intern!(py, "microseconds"))?)
}

/// The length of a timedelta in microseconds; `None` for an object of another class.
pub(crate) fn length(object: &Bound<'_, PyAny>) -> Result<Option<i128>> {
    if object.is_instance(classes(object.py())?.timedelta.bind(object.py()))? {
        return Ok(Some(micros_of(object)?));
    }
    Ok(None)
}

/// The microseconds since 1970 of a datetime, or of a date's midnight in UTC. `None` for other classes, and an inner
/// `None` for a missing value. Without a time zone, the object's own `timestamp()` decides: local time for Python's,
/// UTC for pandas'.
pub(crate) fn micros(object: &Bound<'_, PyAny>) -> Result<Option<Option<i128>>> {
    let py = object.py();
    let classes = classes(py)?;
    let is = |class: &Py<PyAny>| object.is_instance(class.bind(py));
    let exact = object.get_type().is(&classes.datetime);
    if exact || is(&classes.datetime)? {
        // pandas' NaT is an instance, too.
        if !exact && object.ne(object)? {
            return Ok(Some(None));
        }
        // Most are in UTC, so the offset need not be looked up.
        let is_utc = exact && object.getattr(intern!(py, "tzinfo"))?.is(&classes.utc);
        if is_utc || !object.call_method0(intern!(py, "utcoffset"))?.is_none() {
            let since = object.sub(&classes.epoch)?;
            return Ok(Some(Some(micros_of(&since)?)));
        }
        let told = object.call_method0("timestamp").map_err(|error| {
            Failure::parameter(format!(
                "at: expected a time that this system's calendar has, got {object}: {error}"
            ))
        })?;
        // The whole seconds are exact; a fraction would be rounded far from 1970.
        let fraction: i128 = object.getattr("microsecond")?.extract()?;
        let seconds = (told.extract::<f64>()? - fraction as f64 / 1e6).round();
        return Ok(Some(Some(seconds as i128 * 1_000_000 + fraction)));
    }
    if is(&classes.date)? {
        const TO_1970: i128 = 719_163;
        let day: i128 = object.call_method0("toordinal")?.extract()?;
        return Ok(Some(Some((day - TO_1970) * 86_400_000_000)));
    }
    Ok(None)
}

/// Whether it is an instance of a class in a module that the program uses.
fn is_of(object: &Bound<'_, PyAny>, module: &str, class: &str) -> PyResult<bool> {
    match imported(object.py(), module)? {
        // A module that is still being imported may lack it.
        Some(module) => match module.getattr_opt(class)? {
            Some(class) => object.is_instance(&class),
            None => Ok(false),
        },
        None => Ok(false),
    }
}

fn iso(datetime: &Bound<'_, PyAny>) -> PyResult<String> {
    datetime.call_method1("isoformat", (" ",))?.extract()
}

/// Removes trailing zeros of a fraction.
fn shortened(text: &str) -> &str {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text
    }
}

/// With all its digits, including those after the point: `1.0` and `1.00` are different texts.
fn of_decimal<'py>(number: &Bound<'py, PyAny>) -> Result<Value<'py>> {
    const MOST: i64 = 1000;
    let yes = |question: &str| number.call_method0(question)?.is_truthy();
    if yes("is_nan")? {
        return Ok(Value::Missing);
    }
    let exponent = number.call_method0("as_tuple")?.getattr("exponent")?;
    if exponent.extract::<i64>().is_ok_and(|e| e.abs() > MOST) {
        return Err(Failure::Own(
            "KeyRangeError",
            format!(
                "key: expected a Decimal with an exponent from -{MOST} to {MOST}, got {exponent}; \
                 encode it yourself, e.g. str(key)"
            ),
        ));
    }
    let text: String = number.call_method1("__format__", ("f",))?.extract()?;
    let text = if yes("is_zero")? {
        text.trim_start_matches('-')
    } else {
        &text
    };
    let text = PyBytes::new(number.py(), text.as_bytes());
    Ok(Value::Key(Encoded::Text(text)))
}
