//! `add` and `in` without the overhead that PyO3 adds to every call.
//!
//! Under the limited API of 3.9, PyO3's methods receive a tuple that Python has to create for every call, and every
//! call updates a counter in the thread's memory. That takes longer than everything else in adding or querying a key.
//! Also, the more instructions between keys, the fewer cache misses overlap. So these functions take the object itself,
//! and handle the usual case inline; everything else is a call.

use crate::buffer;
use crate::key::prefetch;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::intern;
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

    /// [`add`](Self::add) for the usual case, which runs no Python code and can't fail.
    #[inline(always)]
    fn add_at_once(_: &Bound<'_, Self>, _: &Bound<'_, PyAny>) -> Option<bool> {
        None
    }
}

/// A class that keys are added to, optionally with a time.
pub(crate) trait AddAt: Add {
    /// The signature and documentation.
    const DOC: &'static CStr;

    fn add_at(
        this: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        at: &Bound<'_, PyAny>,
    ) -> PyResult<bool>;
}

/// A class whose keys are queried.
pub(crate) trait Contains: PyClass {
    fn contains(this: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<bool>;

    /// Like [`Add::add_at_once`].
    fn contains_at_once(this: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> Option<bool>;

    /// The bytes that `memoryview` shows.
    fn shown<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>>;
}

/// The method, to be set on the class.
pub(crate) fn add<T: Add>(py: Python<'_>) -> PyResult<Py<PyAny>> {
    let call = ffi::PyMethodDefPointer {
        PyCFunction: call_add::<T>,
    };
    // SAFETY: these flags match the function.
    unsafe { named_add::<T>(py, call, ffi::METH_O, <T as Add>::DOC) }
}

/// The method of a class whose keys may have a time.
pub(crate) fn add_at<T: AddAt>(py: Python<'_>) -> PyResult<Py<PyAny>> {
    // In every CPython since 3.7, but only in the limited API since 3.10, so PyO3 lacks it for 3.9.
    const METH_FASTCALL: c_int = 0x80;
    type Fast = unsafe extern "C" fn(
        *mut ffi::PyObject,
        *const *mut ffi::PyObject,
        ffi::Py_ssize_t,
        *mut ffi::PyObject,
    ) -> *mut ffi::PyObject;
    let call = ffi::PyMethodDefPointer {
        // SAFETY: Python calls it according to the flags, not to this type.
        PyCFunction: unsafe {
            std::mem::transmute::<Fast, ffi::PyCFunction>(call_add_at::<T> as Fast)
        },
    };
    // SAFETY: these flags match the function.
    unsafe {
        named_add::<T>(
            py,
            call,
            METH_FASTCALL | ffi::METH_KEYWORDS,
            <T as AddAt>::DOC,
        )
    }
}

/// A method `add` of the class `T`.
///
/// # Safety
/// The function matches these flags, and takes a `T` first.
unsafe fn named_add<T: PyClass>(
    py: Python<'_>,
    call: ffi::PyMethodDefPointer,
    flags: c_int,
    doc: &'static CStr,
) -> PyResult<Py<PyAny>> {
    // Python uses the definition for as long as the class lives: forever.
    let definition = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: c"add".as_ptr(),
        ml_meth: call,
        ml_flags: flags,
        ml_doc: doc.as_ptr(),
    }));
    let class = py.get_type::<T>();
    // SAFETY: a new reference or an exception; both arguments are alive.
    unsafe {
        let method = ffi::PyDescr_NewMethod(class.as_type_ptr(), definition);
        Ok(Bound::from_owned_ptr_or_err(py, method)?.unbind())
    }
}

/// The class with `in`. A slot can only be set when a class is created, so this is a class of that name derived from
/// PyO3's, which adds nothing else.
pub(crate) fn class_with_in<'py, T: Contains>(
    py: Python<'py>,
    name: &'static CStr,
) -> PyResult<Bound<'py, PyType>> {
    let base = py.get_type::<T>();
    let doc: Option<String> = base.getattr("__doc__")?.extract()?;
    let doc = doc.unwrap_or_default();
    // Python 3.9 doesn't have it.
    let signature: Option<String> = base.getattr("__text_signature__")?.extract()?;
    let full = name.to_string_lossy();
    let short = full.rsplit('.').next().unwrap_or_default();
    // C code has both in one string.
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
        // The same size as its base.
        basicsize: 0,
        itemsize: 0,
        flags: (ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_BASETYPE) as _,
        slots: slots.as_mut_ptr(),
    };
    // Python 3.9 requires a tuple.
    let bases = PyTuple::new(py, [base])?;
    // SAFETY: the specification is complete, and is copied except for the name, which is static; a new reference or an
    // exception.
    unsafe {
        let class = ffi::PyType_FromSpecWithBases(&mut spec, bases.as_ptr());
        Ok(Bound::from_owned_ptr_or_err(py, class)?.cast_into()?)
    }
}

/// Consecutive keys are at most this far apart.
const ROW: usize = 1024;
/// How far after a key to prefetch: a few keys ahead.
const AHEAD: usize = 512;

/// Prefetches the next keys. Texts created in a row are adjacent in memory, and a loop over them would otherwise wait
/// for each. If this key doesn't follow the last one, the next one's place is unknown, and a useless prefetch would
/// slow down others.
#[inline(always)]
fn fetch_next(key: *mut ffi::PyObject) {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    // Concurrent threads would contend for it.
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
/// - Both are objects that live during `'a`; Python keeps those of a call alive.
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
/// As for [`arguments`].
unsafe extern "C" fn call_add<T: Add>(
    this: *mut ffi::PyObject,
    key: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    fetch_next(key);
    // SAFETY: the caller's promise.
    let (this, key) = unsafe { arguments(&this, &key) };
    let new = match T::add_at_once(this, key) {
        Some(new) => new,
        None => match whole_call("add", key.py(), || T::add(this, key)) {
            Some(new) => new,
            None => return std::ptr::null_mut(),
        },
    };
    // SAFETY: a new reference to one of the two constants.
    unsafe { ffi::PyBool_FromLong(new.into()) }
}

/// `add` of the class `T` with a key, and perhaps a time, by position or as `at`.
///
/// # Safety
/// - As for [`arguments`], for `this` and each of `given`.
/// - `given` has as many objects as `places` and `names`, a tuple or null, say together.
unsafe extern "C" fn call_add_at<T: AddAt>(
    this: *mut ffi::PyObject,
    given: *const *mut ffi::PyObject,
    places: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the caller's promise.
    let (py, given, names) = unsafe {
        let named = match names.is_null() {
            true => 0,
            false => ffi::PyTuple_Size(names) as usize,
        };
        // For zero objects, Python may pass a null pointer.
        let given = match places as usize + named {
            0 => &[][..],
            count => std::slice::from_raw_parts(given, count),
        };
        let py = Python::assume_attached();
        (py, given, Bound::from_borrowed_ptr_or_opt(py, names))
    };
    let is_time = || -> PyResult<bool> {
        let at = intern!(py, "at");
        match &names {
            None => Ok(places == 2),
            Some(names) => {
                let name = names.get_item(0)?;
                Ok(places == 1 && (name.is(at) || name.eq(at)?))
            }
        }
    };
    let new = whole_call("add", py, || match given {
        [key] if names.is_none() => {
            // SAFETY: the caller's promise.
            let (this, key) = unsafe { arguments::<T>(&this, key) };
            T::add_at_once(this, key).map_or_else(|| T::add(this, key), Ok)
        }
        [key, at] if is_time()? => {
            // SAFETY: the caller's promise.
            let ((this, key), (_, at)) =
                unsafe { (arguments::<T>(&this, key), arguments::<T>(&this, at)) };
            if at.is_none() {
                T::add_at_once(this, key).map_or_else(|| T::add(this, key), Ok)
            } else {
                T::add_at(this, key, at)
            }
        }
        _ => Err(PyTypeError::new_err(
            "add: expected a key, and perhaps a time as at, got other arguments",
        )),
    });
    match new {
        // SAFETY: a new reference to one of the two constants.
        Some(new) => unsafe { ffi::PyBool_FromLong(new.into()) },
        None => std::ptr::null_mut(),
    }
}

/// `in` of the class `T`.
///
/// # Safety
/// As for [`arguments`].
unsafe extern "C" fn call_contains<T: Contains>(
    this: *mut ffi::PyObject,
    key: *mut ffi::PyObject,
) -> c_int {
    fetch_next(key);
    // SAFETY: the caller's promise.
    let (this, key) = unsafe { arguments(&this, &key) };
    match T::contains_at_once(this, key) {
        Some(found) => found.into(),
        None => {
            let found = whole_call("in", key.py(), || T::contains(this, key));
            found.map_or(-1, c_int::from)
        }
    }
}

/// `memoryview` of the class `T`.
///
/// # Safety
/// As for [`arguments`] with `this`, and for [`buffer::share`] with `view`.
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

/// The call in the general case; `None` if it raised an exception.
#[inline(never)]
fn whole_call(what: &str, py: Python<'_>, call: impl FnOnce() -> PyResult<bool>) -> Option<bool> {
    let error = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(answer)) => return Some(answer),
        Ok(Err(error)) => error,
        Err(_) => PyRuntimeError::new_err(format!("{what}: a bug, please report it")),
    };
    error.restore(py);
    None
}
