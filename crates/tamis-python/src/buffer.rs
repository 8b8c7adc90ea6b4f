//! The buffer protocol: bytes that other objects share, read where they are.
//!
//! It is part of the limited API from 3.11 on only, but in every CPython since
//! 3.9 as it is there.

use pyo3::ffi;
use pyo3::prelude::*;
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

/// The number of the slot by which a class shares its bytes.
pub(crate) const GET: c_int = 1;

/// Shares the bytes of `object` in the place of another's.
///
/// # Safety
/// That of the slot: the view is to be filled.
pub(crate) unsafe fn share(
    object: PyResult<Bound<'_, PyAny>>,
    view: *mut View,
    flags: c_int,
) -> PyResult<c_int> {
    // SAFETY: the caller's promise; the view keeps the object.
    unsafe {
        (*view).obj = std::ptr::null_mut();
        Ok(PyObject_GetBuffer(object?.as_ptr(), view, flags))
    }
}

/// The bytes of an object that keeps them where they are as long as this lives.
pub(crate) struct Lent(Box<View>);

// SAFETY: the bytes are read from any thread; it is released with the GIL.
unsafe impl Send for Lent {}
// SAFETY: likewise.
unsafe impl Sync for Lent {}

impl Lent {
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        // SAFETY: null pointers and zeros.
        let mut view: Box<View> = Box::new(unsafe { std::mem::zeroed() });
        // SAFETY: a view to be filled, at an address that stays; plain bytes.
        match unsafe { PyObject_GetBuffer(object.as_ptr(), &mut *view, 0) } {
            0 => Ok(Self(view)),
            _ => Err(PyErr::fetch(object.py())),
        }
    }

    /// # Safety
    /// They are gone with this.
    pub(crate) unsafe fn bytes<'a>(&self) -> &'a [u8] {
        match usize::try_from(self.0.len) {
            // SAFETY: the object's bytes; the caller's promise.
            Ok(len @ 1..) => unsafe { std::slice::from_raw_parts(self.0.buf.cast(), len) },
            _ => &[],
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // SAFETY: it was filled, and is released once.
        Python::attach(|_| unsafe { PyBuffer_Release(&mut *self.0) });
    }
}
