//! Pickling of filters.

use super::Filter;
use crate::error::{Failure, Result};
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tamis::Hasher;

/// The attributes of an object of a derived class, if it has any.
pub(crate) fn attributes<'py>(slf: &Bound<'py, Filter>) -> PyResult<Option<Bound<'py, PyAny>>> {
    match slf.getattr_opt("__dict__")? {
        Some(attributes) if !attributes.is_empty()? => attributes.call_method0("copy").map(Some),
        _ => Ok(None),
    }
}

/// How pickle recreates it. From protocol 5 on, the filter's bytes can go next to the pickle, without being copied into
/// it.
pub(crate) fn reduce<'py>(slf: &Bound<'py, Filter>, protocol: u32) -> Result<Bound<'py, PyTuple>> {
    let (py, this) = (slf.py(), slf.get());
    if this.is_apart() {
        return Err(Failure::Own(
            "KeyNeededError",
            "the secret key is kept apart from the filter, so a pickle could not be read \
             again; use bytes(filter) and Filter.from_bytes(data, key=key)"
                .into(),
        ));
    }
    if matches!(this.hasher, Hasher::Keyed { .. }) {
        let text = c"the pickle holds the filter's secret: whoever reads it can choose keys \
                     that collide; key= or key_file= keeps it apart";
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), text, 1)?;
    }
    let make = slf.get_type().getattr("_unpickled")?;
    let bytes = Filter::__bytes__(slf)?.into_any();
    let bytes = match protocol {
        5.. => py
            .import("pickle")?
            .call_method1("PickleBuffer", (bytes,))?,
        _ => bytes,
    };
    let args = (bytes, &this.hash_func);
    Ok(match attributes(slf)? {
        Some(attributes) => (make, args, attributes).into_pyobject(py)?,
        None => (make, args).into_pyobject(py)?,
    })
}
