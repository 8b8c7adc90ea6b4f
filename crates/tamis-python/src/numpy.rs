//! Arrays of numpy, read in place.

use crate::column::{Bits, Column, Encoding, Fixed, Values};
use crate::error::Failure;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray};
use std::marker::PhantomData;

/// The object as a numpy array, if it is one or can be seen as one. Only asks
/// if the program uses numpy at all.
pub(crate) fn as_array<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(numpy) = imported(object.py(), "numpy")? else {
        return Ok(None);
    };
    if object.is_instance(&numpy.getattr("ndarray")?)? {
        return Ok(Some(object.clone()));
    }
    match object.hasattr("__array__")? {
        true => numpy.call_method1("asarray", (object,)).map(Some),
        false => Ok(None),
    }
}

/// A module that the program has imported.
fn imported<'py>(py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let modules = py.import("sys")?.getattr("modules")?;
    let module = modules.call_method1("get", (name,))?;
    Ok((!module.is_none()).then_some(module))
}

/// Which rows of a masked array (`numpy.ma`) have no value, if some have none.
pub(crate) fn masked(array: &Bound<'_, PyAny>) -> PyResult<Option<Vec<bool>>> {
    let Some(masks) = imported(array.py(), "numpy.ma")? else {
        return Ok(None);
    };
    if !array.is_instance(&masks.getattr("MaskedArray")?)? {
        return Ok(None);
    }
    let mask = masks.call_method1("getmaskarray", (array,))?;
    some_true(&mask)
}

/// The array of bool, if something in it is true.
pub(crate) fn some_true(array: &Bound<'_, PyAny>) -> PyResult<Option<Vec<bool>>> {
    match array.call_method0("any")?.is_truthy()? {
        true => array.call_method0("tolist")?.extract().map(Some),
        false => Ok(None),
    }
}

/// The array as a column; `None` if it holds Python objects, or keys in a way
/// that only numpy knows.
pub(crate) fn column<'a>(
    array: &'a Bound<'_, PyAny>,
    masked: Option<&[bool]>,
) -> Result<Option<Column<'a>>, Failure> {
    let len = require_one_dimension(array)?;
    let dtype = array.getattr("dtype")?;
    let kind: char = dtype.getattr("kind")?.extract()?;
    // Objects, and numpy's strings of variable length.
    if matches!(kind, 'O' | 'T') {
        return Ok(None);
    }
    let order: char = dtype.getattr("byteorder")?.extract()?;
    let swapped = order == '>' || (order != '<' && cfg!(target_endian = "big"));
    let width = dtype.getattr("itemsize")?.extract()?;
    let encoding = match kind {
        'f' if matches!(width, 4 | 8) => Encoding::Float { swapped },
        'S' => Encoding::Padded,
        'V' => Encoding::Bytes,
        'U' => Encoding::Ucs4 { swapped },
        'i' | 'u' => Encoding::Integer {
            signed: kind == 'i',
            swapped,
        },
        _ => {
            return Err(Failure::no_key(format!(
                "keys: expected an array of strings, bytes, integers or floats, got dtype {dtype}; \
                 convert it first, e.g. keys.astype(str) or keys.astype(\"int64\")"
            )));
        }
    };
    let (address, _): (usize, Bound<'_, PyBool>) = array
        .getattr("__array_interface__")?
        .get_item("data")?
        .extract()?;
    let (stride,): (isize,) = array.getattr("strides")?.extract()?;
    // The array holds its memory as long as it lives, which is 'a.
    let fixed = Fixed {
        first: std::ptr::with_exposed_provenance(address),
        stride,
        width,
        encoding,
        owner: PhantomData,
    };
    Ok(Some(Column {
        len,
        values: Values::Fixed(fixed),
        valid: masked.map(Bits::unmasked),
    }))
}

/// How many keys an array has, which must be in a row.
pub(crate) fn require_one_dimension(array: &Bound<'_, PyAny>) -> Result<usize, Failure> {
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
