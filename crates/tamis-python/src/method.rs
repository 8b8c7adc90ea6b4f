//! `add` as a method of exactly one argument.
//!
//! Under the limited API of 3.9 a method made by PyO3 receives a tuple that
//! Python has to make for every call, and to make and unpack it takes longer
//! than all the rest of adding a key. This one is called with the object itself.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::{PyClass, ffi};
use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A class that keys are added to.
pub(crate) trait Add: PyClass {
    /// The signature and documentation.
    const DOC: &'static CStr;

    fn add(this: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<bool>;
}

/// The method, for the class to have.
pub(crate) fn add<T: Add>(py: Python<'_>) -> PyResult<Py<PyAny>> {
    // Python refers to the definition for as long as the class lives: forever.
    let definition = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: c"add".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunction: call::<T>,
        },
        ml_flags: ffi::METH_O,
        ml_doc: <T as Add>::DOC.as_ptr(),
    }));
    let class = py.get_type::<T>();
    // SAFETY: a new reference or an exception; both arguments are alive.
    unsafe {
        let method = ffi::PyDescr_NewMethod(class.as_type_ptr(), definition);
        Ok(Bound::from_owned_ptr_or_err(py, method)?.unbind())
    }
}

unsafe extern "C" fn call<T: Add>(
    this: *mut ffi::PyObject,
    key: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls with the GIL, and with two objects that it keeps
    // alive meanwhile, of which it has checked the first.
    let (this, key) = unsafe {
        let py = Python::assume_attached();
        let this = Bound::ref_from_ptr(py, &this).cast_unchecked::<T>();
        (this, Bound::ref_from_ptr(py, &key))
    };
    let error = match catch_unwind(AssertUnwindSafe(|| T::add(this, key))) {
        // SAFETY: a new reference to one of the two constants.
        Ok(Ok(answer)) => return unsafe { ffi::PyBool_FromLong(answer.into()) },
        Ok(Err(error)) => error,
        Err(_) => PyRuntimeError::new_err("add: a bug, please report it"),
    };
    error.restore(key.py());
    std::ptr::null_mut()
}
