//! numpy arrays, read in place.

use crate::error::{Failure, Result};
use crate::numpy_text::{self, memory};
use pyo3::prelude::*;
use pyo3::types::PyByteArray;
use tamis_python_core::column::{Bits, KeyColumn, Values};
use tamis_python_core::fixed::{Encoding, Fixed};
use tamis_python_core::text::{Temporal, Ticks};

/// The object as a numpy array, if it is one or can be viewed as one. Only checks if the program uses numpy at all.
pub(crate) fn as_array<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(numpy) = imported(object.py(), "numpy")? else {
        return Ok(None);
    };
    if object.is_instance(&numpy.getattr("ndarray")?)? {
        return Ok(Some(object.clone()));
    }
    if object.hasattr("__array__")? {
        numpy.call_method1("asarray", (object,)).map(Some)
    } else {
        Ok(None)
    }
}

/// A module, if the program has imported it.
pub(crate) fn imported<'py>(py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let modules = py.import("sys")?.getattr("modules")?;
    let module = modules.call_method1("get", (name,))?;
    Ok((!module.is_none()).then_some(module))
}

/// Which rows of a masked array (`numpy.ma`) have no value, if any.
pub(crate) fn masked(array: &Bound<'_, PyAny>) -> PyResult<Option<Vec<bool>>> {
    let Some(masks) = imported(array.py(), "numpy.ma")? else {
        return Ok(None);
    };
    let dtype = array.getattr("dtype")?;
    // In an array with several fields, each field has a mask.
    if !array.is_instance(&masks.getattr("MaskedArray")?)? || !dtype.getattr("names")?.is_none() {
        return Ok(None);
    }
    let mask = masks.call_method1("getmaskarray", (array,))?;
    some_true(&mask)
}

/// The array of bool, if any value is true.
pub(crate) fn some_true(array: &Bound<'_, PyAny>) -> PyResult<Option<Vec<bool>>> {
    if array.call_method0("any")?.is_truthy()? {
        array.call_method0("tolist")?.extract().map(Some)
    } else {
        Ok(None)
    }
}

/// A numpy scalar, as an array of length 1.
pub(crate) struct Scalar<'py>(Bound<'py, PyAny>);

/// The object as a numpy scalar, unless it is an integer or an instance of a Python class.
pub(crate) fn scalar<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Scalar<'py>>> {
    let Some(numpy) = imported(object.py(), "numpy")? else {
        return Ok(None);
    };
    let Some(generic) = numpy.getattr_opt("generic")? else {
        return Ok(None);
    };
    if !object.is_instance(&generic)? {
        return Ok(None);
    }
    let array = numpy.call_method1("asarray", (object,))?;
    let kind: char = array.getattr("dtype")?.getattr("kind")?.extract()?;
    if matches!(kind, 'i' | 'u' | 'O') {
        Ok(None)
    } else {
        array.call_method1("reshape", (1,)).map(Scalar).map(Some)
    }
}

impl Scalar<'_> {
    pub(crate) fn column(&self) -> Result<KeyColumn<'_>> {
        match column(&self.0, None, false)? {
            Some(column) => Ok(column),
            None => Err(Failure::no_key(
                "key: expected a value of one type, got a record that holds Python's objects; \
                 pass it as a tuple: key.item()",
            )),
        }
    }
}

/// The array as a column; `None` if it holds Python objects. With `utc`, its timestamps are in UTC.
pub(crate) fn column<'a>(
    array: &'a Bound<'_, PyAny>,
    masked: Option<&[bool]>,
    utc: bool,
) -> Result<Option<KeyColumn<'a>>> {
    let len = require_one_dimension(array)?;
    // SAFETY: the array keeps its memory as long as it lives, which is `'a`.
    let values = unsafe { values(array, utc)? };
    Ok(values.map(|(values, nulls)| KeyColumn {
        len,
        values,
        valid: masked.map(Bits::unmasked).or(nulls),
    }))
}

/// The values of an array, and which of them are missing, if only the values show it.
///
/// # Safety
/// The memory of the array stays valid during `'a`.
unsafe fn values<'a>(
    array: &Bound<'_, PyAny>,
    utc: bool,
) -> Result<Option<(Values<'a>, Option<Bits<'a>>)>> {
    let dtype = array.getattr("dtype")?;
    let kind: char = dtype.getattr("kind")?.extract()?;
    let width = dtype.getattr("itemsize")?.extract()?;
    let encoding = match kind {
        'O' => return Ok(None),
        // SAFETY: the caller's promise.
        'T' => return unsafe { numpy_text::values(array) },
        // SAFETY: the caller's promise; a field is a view of the same memory.
        'V' if !dtype.getattr("names")?.is_none() => return unsafe { fields(array, &dtype) },
        'f' if matches!(width, 2 | 4 | 8) => Encoding::Float,
        'b' => Encoding::Bool,
        'S' => Encoding::Padded,
        'V' => Encoding::Bytes,
        'U' => Encoding::Ucs4,
        'i' | 'u' => Encoding::Integer {
            signed: kind == 'i',
        },
        'M' | 'm' => Encoding::Temporal(temporal(&dtype, kind == 'M', utc)?),
        _ => return Err(unknown(&dtype)),
    };
    let (first, stride) = memory(array)?;
    let rows = require_one_dimension(array)?;
    let order: char = dtype.getattr("byteorder")?.extract()?;
    let swapped = order == '>' || (order != '<' && cfg!(target_endian = "big"));
    // SAFETY: the array has `width` bytes at every multiple of the stride, for this many rows; the caller's promise.
    let fixed = unsafe { Fixed::new(first, stride, rows, width, swapped, encoding) };
    Ok(Some((Values::Fixed(fixed), None)))
}

fn unknown(dtype: &Bound<'_, PyAny>) -> Failure {
    Failure::no_key(format!(
        "keys: expected an array of strings, bytes, numbers, dates or times, got dtype {dtype}; \
         convert it first, e.g. keys.astype(str) or keys.astype(\"int64\")"
    ))
}

/// The fields of a structured array, whose rows are tuples.
///
/// # Safety
/// As for [`values`].
unsafe fn fields<'a>(
    array: &Bound<'_, PyAny>,
    dtype: &Bound<'_, PyAny>,
) -> Result<Option<(Values<'a>, Option<Bits<'a>>)>> {
    let names: Vec<Bound<'_, PyAny>> = dtype.getattr("names")?.extract()?;
    if names.len() < 2 {
        return Err(Failure::no_key(format!(
            "keys: expected a structured array of 2 fields or more, got {}; pass a single field as \
             it is: keys[\"name\"]",
            names.len()
        )));
    }
    let mut columns = Vec::with_capacity(names.len());
    for name in names {
        // A view of the same memory.
        let field = array.get_item(&name)?;
        let len = match require_one_dimension(&field) {
            Ok(len) => len,
            Err(_) => return Err(unknown(dtype)),
        };
        let masked = masked(&field)?;
        // SAFETY: the caller's promise.
        let Some((values, nulls)) = (unsafe { values(&field, false)? }) else {
            return Ok(None);
        };
        columns.push(KeyColumn {
            len,
            values,
            valid: masked.as_deref().map(Bits::unmasked).or(nulls),
        });
    }
    Ok(Some((Values::Tuple(columns), None)))
}

/// The meaning of the numbers of dates (`M`) and durations (`m`).
fn temporal(dtype: &Bound<'_, PyAny>, date: bool, utc: bool) -> Result<Temporal> {
    let numpy = dtype.py().import("numpy")?;
    let (unit, count): (String, i64) = numpy.call_method1("datetime_data", (dtype,))?.extract()?;
    let whole = |seconds: i64| Ticks {
        seconds: seconds.saturating_mul(count),
        digits: 0,
    };
    let part = |digits| Ticks {
        seconds: count,
        digits,
    };
    let ticks = match (unit.as_str(), date) {
        // Without a unit there is only NaT.
        ("generic", true) => return Ok(Temporal::Days(1)),
        ("Y", true) => return Ok(Temporal::Months(count.saturating_mul(12))),
        ("M", true) => return Ok(Temporal::Months(count)),
        ("W", true) => return Ok(Temporal::Days(count.saturating_mul(7))),
        ("D", true) => return Ok(Temporal::Days(count)),
        ("W", false) => whole(7 * 86_400),
        ("D", false) => whole(86_400),
        ("h", _) => whole(3600),
        ("m", _) => whole(60),
        ("s", _) => part(0),
        ("ms", _) => part(3),
        ("us", _) => part(6),
        ("ns", _) => part(9),
        ("ps", _) => part(12),
        ("fs", _) => part(15),
        ("as", _) => part(18),
        // Months and years as durations have no fixed length.
        _ => return Err(unknown(dtype)),
    };
    Ok(if date {
        Temporal::Timestamp { ticks, utc }
    } else {
        Temporal::Duration(ticks)
    })
}

/// The number of keys in an array, which must have one dimension.
pub(crate) fn require_one_dimension(array: &Bound<'_, PyAny>) -> Result<usize> {
    let shape: Vec<usize> = array.getattr("shape")?.extract()?;
    match shape.as_slice() {
        &[len] => Ok(len),
        _ => Err(Failure::no_key(format!(
            "keys: expected an array of one dimension, got {}; flatten it first: keys.ravel()",
            shape.len()
        ))),
    }
}

/// Answers as an array of bool.
pub(crate) fn mask<'py>(py: Python<'py>, answers: &[bool]) -> PyResult<Bound<'py, PyAny>> {
    let bytes = PyByteArray::new_with(py, answers.len(), |bytes| {
        for (byte, answer) in bytes.iter_mut().zip(answers) {
            *byte = u8::from(*answer);
        }
        Ok(())
    })?;
    py.import("numpy")?
        .call_method1("frombuffer", (bytes, "bool"))
}
