//! `BloomFilter.add` as a method of exactly one argument.
//!
//! Under the limited API of 3.9 a method made by PyO3 receives a tuple that
//! Python has to make for every call. Making and unpacking it would be a fifth
//! of the time that an `add` takes.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::{Borrowed, ffi};

use super::BloomFilter;

const DOC: &std::ffi::CStr = c"add($self, item, /)
--

Adds a key; True if it was there already.

A str is its UTF-8 bytes, bytes are themselves, and of any other object it is
``hash(item)``: use those whose hash is the same in every process.";

/// The method, for the class to have.
pub(super) fn add(py: Python<'_>) -> PyResult<Py<PyAny>> {
    // Python refers to the definition for as long as the class lives: forever.
    let definition = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: c"add".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunction: call_add,
        },
        ml_flags: ffi::METH_O,
        ml_doc: DOC.as_ptr(),
    }));
    let class = py.get_type::<BloomFilter>();
    // SAFETY: a new reference or an exception; both arguments are alive.
    unsafe {
        let method = ffi::PyDescr_NewMethod(class.as_type_ptr(), definition);
        Ok(Bound::from_owned_ptr_or_err(py, method)?.unbind())
    }
}

unsafe extern "C" fn call_add(
    this: *mut ffi::PyObject,
    item: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let call = |py: Python<'_>| {
        // SAFETY: Python calls with two objects that it keeps alive meanwhile,
        // the first of which it has checked to be a `BloomFilter`.
        let (this, item) = unsafe {
            (
                Borrowed::from_ptr(py, this).cast_unchecked::<BloomFilter>(),
                Borrowed::from_ptr(py, item),
            )
        };
        this.get().add_key(&item)
    };
    Python::attach(|py| {
        let was_there = catch_unwind(AssertUnwindSafe(|| call(py)))
            .unwrap_or_else(|_| Err(PyRuntimeError::new_err("add: a bug, please report it")));
        match was_there {
            Ok(was_there) => was_there
                .into_pyobject(py)
                .map_or(std::ptr::null_mut(), |answer| answer.to_owned().into_ptr()),
            Err(error) => {
                error.restore(py);
                std::ptr::null_mut()
            }
        }
    })
}
