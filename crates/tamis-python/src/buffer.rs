//! The buffer protocol: reads bytes of other objects in place.
//!
//! It is only part of the limited API since 3.11, but every CPython since 3.9 has the same functions.

use crate::interrupt;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::ffi::{c_char, c_int, c_void};

#[repr(C)]
pub(crate) struct View {
    buf: *mut c_void,
    obj: *mut ffi::PyObject,
    len: ffi::Py_ssize_t,
    itemsize: ffi::Py_ssize_t,
    readonly: c_int,
    ndim: c_int,
    format: *mut c_char,
    shape: *mut ffi::Py_ssize_t,
    strides: *mut ffi::Py_ssize_t,
    suboffsets: *mut ffi::Py_ssize_t,
    internal: *mut c_void,
}

unsafe extern "C" {
    fn PyObject_GetBuffer(object: *mut ffi::PyObject, view: *mut View, flags: c_int) -> c_int;
    fn PyBuffer_Release(view: *mut View);
}

/// The number of the slot through which a class shares its bytes.
pub(crate) const GET: c_int = 1;

/// Shares the bytes of `object` as if they were another object's.
///
/// # Safety
/// `view` can be written to, and whoever called the slot releases it after success.
pub(crate) unsafe fn share(
    object: PyResult<Bound<'_, PyAny>>,
    view: *mut View,
    flags: c_int,
) -> PyResult<c_int> {
    // SAFETY: the caller's promise; the object is alive, and the view keeps it.
    unsafe {
        (*view).obj = std::ptr::null_mut();
        Ok(PyObject_GetBuffer(object?.as_ptr(), view, flags))
    }
}

/// A Python `bytes` object. The bytes are copied without the GIL: for a large filter that takes seconds, during which
/// Ctrl-C works.
pub(crate) fn bytes(py: Python<'_>, bytes: Vec<u8>) -> PyResult<Bound<'_, PyBytes>> {
    // SAFETY: a new reference or an exception.
    let object = unsafe {
        let len = bytes.len() as ffi::Py_ssize_t;
        let object = ffi::PyBytes_FromStringAndSize(std::ptr::null(), len);
        Bound::from_owned_ptr_or_err(py, object)?
    };
    let object: Py<PyBytes> = object.cast_into()?.unbind();
    // SAFETY: the object is a `bytes`.
    let start = Start(unsafe { ffi::PyBytes_AsString(object.as_ptr()) });
    let object = interrupt::if_large(py, bytes.len() as u64, move || {
        // SAFETY: there is room for all the bytes, nobody else has the object yet, and it stays alive.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), start.get().cast(), bytes.len()) };
        object
    })?;
    Ok(object.into_bound(py))
}

/// The address of an object's bytes.
struct Start(*mut c_char);

// SAFETY: only an address; its users justify accessing it.
unsafe impl Send for Start {}

impl Start {
    /// A method, so that closures capture the whole struct.
    fn get(&self) -> *mut c_char {
        self.0
    }
}

/// The bytes of an object, which stay in place while this lives.
pub(crate) struct Lent(Box<View>);

// SAFETY: bytes can be read from any thread, and `drop` attaches to release them.
unsafe impl Send for Lent {}
// SAFETY: a shared one is only read.
unsafe impl Sync for Lent {}

impl Lent {
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        // SAFETY: null pointers and zeros are a valid `View`.
        let mut view: Box<View> = Box::new(unsafe { std::mem::zeroed() });
        // SAFETY: the object is alive; the view's address doesn't change.
        match unsafe { PyObject_GetBuffer(object.as_ptr(), &mut *view, 0) } {
            0 => Ok(Self(view)),
            _ => Err(PyErr::fetch(object.py())),
        }
    }

    /// The bytes.
    ///
    /// # Safety
    /// - They are not used after this is dropped.
    /// - Nobody changes them during `'a`: the object may share bytes that others can write.
    pub(crate) unsafe fn bytes<'a>(&self) -> &'a [u8] {
        match usize::try_from(self.0.len) {
            // SAFETY: the object has this many bytes there until it is released, which is after `'a`; the caller's
            // promise.
            Ok(len @ 1..) => unsafe { std::slice::from_raw_parts(self.0.buf.cast(), len) },
            _ => &[],
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // SAFETY: the thread is attached; the view was filled, and is released once.
        Python::attach(|_| unsafe { PyBuffer_Release(&mut *self.0) });
    }
}
