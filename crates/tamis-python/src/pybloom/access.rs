//! The filter behind an object: open, writable, or in a file, if that is needed.

use std::path::PathBuf;

use pyo3::exceptions::{PyNotImplementedError, PyValueError};
use pyo3::prelude::*;

use tamis_python_core::pybloom::bits::BitsFile;
use tamis_python_core::pybloom::filter::Filter;

use super::BloomFilter;
use super::arguments::with_key;
use crate::interrupt;
use crate::lock::{Holds, Mark, Shared};

impl BloomFilter {
    /// Calls `act` with the filter, if open.
    #[inline]
    pub(super) fn with<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut Filter) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        self.filter.with(py, |filter| match filter {
            Some(filter) => act(filter),
            None => Err(closed()),
        })
    }

    pub(super) fn get<T: Send>(
        &self,
        py: Python<'_>,
        what: impl FnOnce(&mut Filter) -> T + Send,
    ) -> PyResult<T> {
        self.with(py, |filter| Ok(what(filter)))
    }

    #[inline]
    pub(super) fn add_key(&self, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        with_key(item, |key| {
            self.with(item.py(), |filter| Ok(writable(filter)?.add(key)))
        })
    }

    /// The path of the filter's file; `verb` names the operation that needs one.
    pub(super) fn path(&self, py: Python<'_>, verb: &str) -> PyResult<PathBuf> {
        self.with(py, |filter| Ok(mapped(filter, verb)?.path.clone()))
    }

    pub(super) fn combine(
        slf: &Bound<'_, Self>,
        other: &Bound<'_, Self>,
        with: impl FnOnce(&mut Filter, &Filter) + Send + 'static,
    ) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        let bytes = this.get(py, |filter| filter.bits.byte_len() as u64)?;
        let ours = Mark::on(slf.clone().unbind(), py);
        let theirs = Mark::on(other.clone().unbind(), py);
        let combined = interrupt::if_large(py, bytes, move || {
            ours.write_beside(&theirs, |this, other| {
                let this = writable(this.as_mut().ok_or_else(closed)?)?;
                let other = other.as_ref().ok_or_else(closed)?;
                if !this.is_like(other) {
                    return Err(PyValueError::new_err(
                        "The two BloomFilter objects are not the same type (hint: use copy_template)",
                    ));
                }
                with(this, other);
                Ok(())
            })
        })?;
        // With itself: nothing to do, but it must be allowed.
        combined.unwrap_or_else(|| this.with(py, |filter| writable(filter).map(drop)))
    }
}

// SAFETY: the value is part of the object, which the reference keeps in place.
unsafe impl Holds for Py<BloomFilter> {
    type Value = Option<Filter>;

    fn shared(&self) -> &Shared<Option<Filter>> {
        &self.get().filter
    }
}

#[cold]
pub(super) fn closed() -> PyErr {
    PyValueError::new_err("I/O operation on closed file")
}

#[inline]
pub(super) fn writable(filter: &mut Filter) -> PyResult<&mut Filter> {
    if filter.bits.read_only() {
        return Err(PyValueError::new_err("Write operation on read-only file"));
    }
    Ok(filter)
}

/// The file of a filter; `verb` names the operation that needs one.
pub(super) fn mapped<'a>(filter: &'a Filter, verb: &str) -> PyResult<&'a BitsFile> {
    filter.bits.file().ok_or_else(|| {
        PyNotImplementedError::new_err(format!("Cannot {verb} an in-memory BloomFilter"))
    })
}
