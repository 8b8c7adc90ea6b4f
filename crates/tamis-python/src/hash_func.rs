//! `hash_func=`: the caller's function that turns other objects into keys.

use crate::error::{Failure, Result};
use crate::key;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyIterator};

/// The key that a filter's `hash_func` makes of an object. An integer may have up to 128 bits, signed or not, like a
/// digest: beyond the range of integer keys, the key is its 16 little-endian bytes in two's complement.
pub(crate) fn made_by<'py>(
    function: &Py<PyAny>,
    object: &Bound<'py, PyAny>,
) -> Result<Bound<'py, PyAny>> {
    let py = object.py();
    let key = function.bind(py).call1((object,))?;
    let plain = key.extract::<i64>().is_ok() || key.extract::<u64>().is_ok();
    if plain || !key.is_instance_of::<PyInt>() {
        return Ok(key);
    }
    let wide = key.extract::<i128>().map(i128::to_le_bytes);
    match wide.or_else(|_| key.extract::<u128>().map(u128::to_le_bytes)) {
        Ok(bytes) => Ok(PyBytes::new(py, &bytes).into_any()),
        Err(_) => Err(Failure::Own(
            "KeyRangeError",
            "hash_func: expected an int from -2**127 to 2**128-1, got a larger one; return \
             bytes instead"
                .into(),
        )),
    }
}

/// What `hash_func` makes of many objects, one by one.
#[pyclass(frozen, module = "tamis._tamis", name = "_MadeKeys")]
pub(crate) struct MadeKeys {
    function: Py<PyAny>,
    objects: Py<PyIterator>,
}

#[pymethods]
impl MadeKeys {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> Result<Option<Bound<'py, PyAny>>> {
        match self.objects.bind(py).clone().next() {
            Some(object) => made_by(&self.function, &object?).map(Some),
            None => Ok(None),
        }
    }
}

pub(crate) fn all_made_by<'py>(
    function: &Py<PyAny>,
    objects: &Bound<'py, PyAny>,
) -> Result<Bound<'py, PyAny>> {
    key::refuse_one_key(objects)?;
    let py = objects.py();
    // Iterating would give pyarrow's own objects.
    let objects = if objects.hasattr("to_pylist")? {
        objects.call_method0("to_pylist")?
    } else {
        objects.clone()
    };
    let made = MadeKeys {
        function: function.clone_ref(py),
        objects: objects.try_iter()?.unbind(),
    };
    Ok(Bound::new(py, made)?.into_any())
}
