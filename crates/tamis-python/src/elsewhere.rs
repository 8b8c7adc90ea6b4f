//! Saves filters to, and loads them from, file objects and fsspec addresses.

use crate::error::Result;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

/// Whether it is a file object or an address.
pub(crate) fn is(place: &Bound<'_, PyAny>) -> Result<bool> {
    if place.is_instance_of::<PyString>() {
        return Ok(place.contains("://")?);
    }
    Ok(place.hasattr("write")? || place.hasattr("read")?)
}

/// The whole content; `None` for a path.
pub(crate) fn read<'py>(place: &Bound<'py, PyAny>) -> Result<Option<Bound<'py, PyAny>>> {
    if !is(place)? {
        return Ok(None);
    }
    let files = place.py().import("tamis._files")?;
    Ok(Some(files.call_method1("read", (place,))?))
}

pub(crate) fn write(place: &Bound<'_, PyAny>, data: &Bound<'_, PyBytes>) -> Result<()> {
    let files = place.py().import("tamis._files")?;
    files.call_method1("write", (place, data))?;
    Ok(())
}
