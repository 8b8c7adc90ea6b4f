//! `add` and `in` without what PyO3 puts around every call.
//!
//! Under the limited API of 3.9 a method made by PyO3 receives a tuple that
//! Python has to make for every call, and every call counts itself in the
//! thread's memory. That takes longer than all the rest of adding or asking a
//! key; and the longer the way from key to key, the fewer misses of the cache
//! overlap. So these are called with the object itself, and do the usual thing
//! in place: everything else is a call.

use crate::buffer;
use crate::key::prefetch;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};
use pyo3::{PyClass, ffi};
use std::ffi::{CStr, CString, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A class that keys are added to.
pub(crate) trait Add: PyClass {
    /// The signature and documentation.
    const DOC: &'static CStr;

    fn add(this: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<bool>;

    /// [`add`](Self::add) where it is the usual case, which runs no Python code
    /// and can't fail.
    #[inline(always)]
    fn add_at_once(_: &Bound<'_, Self>, _: &Bound<'_, PyAny>) -> Option<bool> {
        None
    }
}

/// A class whose keys are asked.
pub(crate) trait Contains: PyClass {
    fn contains(this: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<bool>;

    /// As [`Add::add_at_once`].
    fn contains_at_once(this: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> Option<bool>;

    /// The bytes that `memoryview` shows.
    fn shown<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>>;
}

/// The method, for the class to have.
pub(crate) fn add<T: Add>(py: Python<'_>) -> PyResult<Py<PyAny>> {
    // Python refers to the definition for as long as the class lives: forever.
    let definition = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: c"add".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunction: call_add::<T>,
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

/// The class with `in`: a slot can be set only where a class is made, so this is
/// one of that name derived from PyO3's, with nothing else of its own.
pub(crate) fn class_with_in<'py, T: Contains>(
    py: Python<'py>,
    name: &'static CStr,
) -> PyResult<Bound<'py, PyType>> {
    let base = py.get_type::<T>();
    let doc: Option<String> = base.getattr("__doc__")?.extract()?;
    let doc = doc.unwrap_or_default();
    // Python 3.9 does not tell it.
    let signature: Option<String> = base.getattr("__text_signature__")?.extract()?;
    let full = name.to_string_lossy();
    let short = full.rsplit('.').next().unwrap_or_default();
    // As C code has them both in one text.
    let doc = CString::new(match signature {
        Some(signature) => format!("{short}{signature}\n--\n\n{doc}"),
        None => doc,
    })?;
    let mut slots = [
        ffi::PyType_Slot {
            slot: ffi::Py_sq_contains,
            pfunc: call_contains::<T> as *mut c_void,
        },
        ffi::PyType_Slot {
            slot: ffi::Py_tp_doc,
            pfunc: doc.as_ptr() as *mut c_void,
        },
        ffi::PyType_Slot {
            slot: buffer::GET,
            pfunc: call_get_buffer::<T> as *mut c_void,
        },
        ffi::PyType_Slot {
            slot: 0,
            pfunc: std::ptr::null_mut(),
        },
    ];
    let mut spec = ffi::PyType_Spec {
        name: name.as_ptr(),
        // As large as its base.
        basicsize: 0,
        itemsize: 0,
        flags: (ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_BASETYPE) as _,
        slots: slots.as_mut_ptr(),
    };
    // Python 3.9 takes no single class.
    let bases = PyTuple::new(py, [base])?;
    // SAFETY: the specification is whole and is copied but for the name, which
    // is static; a new reference or an exception.
    unsafe {
        let class = ffi::PyType_FromSpecWithBases(&mut spec, bases.as_ptr());
        Ok(Bound::from_owned_ptr_or_err(py, class)?.cast_into()?)
    }
}

/// Keys in a row are no farther from each other.
const ROW: usize = 1024;
/// How far behind a key the ones to come are asked for: a few keys ahead.
const AHEAD: usize = 512;

/// Asks the memory for the keys to come. Texts that were made in a row lie in a
/// row, and a loop over them would wait for each. If this key does not follow
/// the last one, nobody knows where the next one is, and asking in vain would
/// take time from others.
#[inline(always)]
fn fetch_next(key: *mut ffi::PyObject) {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    // Threads that run side by side would contend for it.
    if cfg!(Py_GIL_DISABLED) {
        return;
    }
    let last = LAST.load(Ordering::Relaxed);
    LAST.store(key.addr(), Ordering::Relaxed);
    if key.addr().wrapping_sub(last) < ROW {
        prefetch(key.cast::<u8>().wrapping_add(AHEAD));
    }
}

/// The two objects of a call.
///
/// # Safety
/// - The thread is attached, and stays so during `'a`.
/// - Both are objects that live during `'a`; Python keeps those of a call.
/// - The first one is a `T`, which Python has checked.
#[inline(always)]
unsafe fn arguments<'a, T>(
    this: &'a *mut ffi::PyObject,
    key: &'a *mut ffi::PyObject,
) -> (&'a Bound<'a, T>, &'a Bound<'a, PyAny>) {
    // SAFETY: the caller's promise.
    unsafe {
        let py = Python::assume_attached();
        let this = Bound::ref_from_ptr(py, this).cast_unchecked::<T>();
        (this, Bound::ref_from_ptr(py, key))
    }
}

/// `add` of the class `T`.
///
/// # Safety
/// That of [`arguments`].
unsafe extern "C" fn call_add<T: Add>(
    this: *mut ffi::PyObject,
    key: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    fetch_next(key);
    // SAFETY: the caller's promise.
    let (this, key) = unsafe { arguments(&this, &key) };
    let new = match T::add_at_once(this, key) {
        Some(new) => new,
        None => match whole_call("add", this, key, T::add) {
            Some(new) => new,
            None => return std::ptr::null_mut(),
        },
    };
    // SAFETY: a new reference to one of the two constants.
    unsafe { ffi::PyBool_FromLong(new.into()) }
}

/// `in` of the class `T`.
///
/// # Safety
/// That of [`arguments`].
unsafe extern "C" fn call_contains<T: Contains>(
    this: *mut ffi::PyObject,
    key: *mut ffi::PyObject,
) -> c_int {
    fetch_next(key);
    // SAFETY: the caller's promise.
    let (this, key) = unsafe { arguments(&this, &key) };
    match T::contains_at_once(this, key) {
        Some(found) => found.into(),
        None => whole_call("in", this, key, T::contains).map_or(-1, c_int::from),
    }
}

/// `memoryview` of the class `T`.
///
/// # Safety
/// That of [`arguments`] for `this`, and that of [`buffer::share`] for `view`.
unsafe extern "C" fn call_get_buffer<T: Contains>(
    this: *mut ffi::PyObject,
    view: *mut buffer::View,
    flags: c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let (this, _) = unsafe { arguments::<T>(&this, &this) };
    let shown = catch_unwind(AssertUnwindSafe(|| T::shown(this)));
    let shown = shown.unwrap_or_else(|_| {
        Err(PyRuntimeError::new_err(
            "memoryview: a bug, please report it",
        ))
    });
    // SAFETY: the caller's promise.
    match unsafe { buffer::share(shown, view, flags) } {
        Ok(code) => code,
        Err(error) => {
            error.restore(this.py());
            -1
        }
    }
}

/// The call in the general case; `None` if it has raised.
#[inline(never)]
fn whole_call<'py, T>(
    what: &str,
    this: &Bound<'py, T>,
    key: &Bound<'py, PyAny>,
    call: fn(&Bound<'py, T>, &Bound<'py, PyAny>) -> PyResult<bool>,
) -> Option<bool> {
    let error = match catch_unwind(AssertUnwindSafe(|| call(this, key))) {
        Ok(Ok(answer)) => return Some(answer),
        Ok(Err(error)) => error,
        Err(_) => PyRuntimeError::new_err(format!("{what}: a bug, please report it")),
    };
    error.restore(key.py());
    None
}
