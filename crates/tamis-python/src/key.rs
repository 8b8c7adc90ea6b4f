//! Python objects as keys: which bytes a key is, and their hash.

use crate::error::Failure;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyInt, PyMemoryView, PyString};
use std::borrow::Cow;
use tamis::{Hash, Hasher};

/// The hash of the key that an object is.
#[inline(always)] // the answer would go through memory
pub(crate) fn hash(hasher: &Hasher, object: &Bound<'_, PyAny>) -> Result<Hash, Failure> {
    if let Some(bytes) = utf8(object) {
        return Ok(hasher.hash(bytes));
    }
    if let Some(bytes) = exact_integer(object) {
        return Ok(hasher.hash_exact(&bytes));
    }
    hash_other(hasher, object)
}

/// [`hash`] for what is no `str`, or is one without UTF-8. May run Python code.
#[cold]
#[inline(never)]
fn hash_other(hasher: &Hasher, object: &Bound<'_, PyAny>) -> Result<Hash, Failure> {
    Ok(match other(object)? {
        Other::Bytes(bytes) => hasher.hash(bytes.as_bytes()),
        Other::Integer(bytes) => hasher.hash_exact(&bytes),
    })
}

/// The bytes of the key that an object is, for servers that hash.
pub(crate) fn bytes<'a>(object: &'a Bound<'_, PyAny>) -> Result<Cow<'a, [u8]>, Failure> {
    if let Some(bytes) = utf8(object) {
        return Ok(bytes.into());
    }
    Ok(match other(object)? {
        Other::Bytes(bytes) => bytes.as_bytes().to_vec().into(),
        Other::Integer(bytes) => bytes.to_vec().into(),
    })
}

/// A key that is no `str` with UTF-8.
enum Other<'py> {
    Bytes(Bound<'py, PyBytes>),
    Integer([u8; 8]),
}

fn other<'py>(object: &Bound<'py, PyAny>) -> Result<Other<'py>, Failure> {
    let py = object.py();
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Other::Bytes(bytes.clone()));
    }
    if let Ok(text) = object.cast::<PyString>() {
        return match text.encode_utf8() {
            Ok(bytes) => Ok(Other::Bytes(bytes)),
            Err(error) => Err(Failure::Own(
                "KeyEncodingError",
                format!(
                    "key: expected text that has UTF-8: {}; encode it yourself, \
                     e.g. key.encode(\"utf-8\", \"surrogateescape\")",
                    error.value(py)
                ),
            )),
        };
    }
    let is_bool = object.is_instance_of::<PyBool>();
    if object.is_instance_of::<PyInt>() && !is_bool {
        return integer(object).map(Other::Integer);
    }
    if object.is_instance_of::<PyByteArray>() || object.is_instance_of::<PyMemoryView>() {
        return Ok(Other::Bytes(bytes_of(object)?));
    }
    // Integers of other libraries, such as numpy's scalars.
    if !is_bool && object.hasattr("__index__")? {
        // SAFETY: a new reference or an exception.
        let number =
            unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyNumber_Index(object.as_ptr())) }?;
        return integer(&number).map(Other::Integer);
    }
    Err(Failure::no_key(format!(
        "key: expected str, bytes or int, got {}; encode it yourself, in a way that stays the same \
         between runs, e.g. str(key), repr(key) or struct.pack(\"<d\", key) \
         (not hash(key): Python randomises it)",
        type_name(object)
    )))
}

/// The bytes of bytes, or a copy of the bytes of anything like them.
pub(crate) fn bytes_of<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(bytes.clone());
    }
    // SAFETY: a new reference or an exception.
    let bytes = unsafe {
        Bound::from_owned_ptr_or_err(object.py(), ffi::PyBytes_FromObject(object.as_ptr()))
    }?;
    Ok(bytes.cast_into()?)
}

/// The key of an `int` itself, not of a class made from it, if it is below
/// 2**63. Runs no Python code.
#[inline]
pub(crate) fn exact_integer(object: &Bound<'_, PyAny>) -> Option<[u8; 8]> {
    // SAFETY: the object is an int, for which the call can't fail.
    unsafe {
        if ffi::Py_TYPE(object.as_ptr()) != &raw mut ffi::PyLong_Type {
            return None;
        }
        let mut overflow = 0;
        let value = ffi::PyLong_AsLongLongAndOverflow(object.as_ptr(), &mut overflow);
        (overflow == 0).then_some(value.to_le_bytes())
    }
}

/// The 8 little-endian bytes of an integer, in two's complement: every integer
/// that fits a signed or an unsigned 64-bit column is the key that it is there.
fn integer(object: &Bound<'_, PyAny>) -> Result<[u8; 8], Failure> {
    if let Ok(value) = object.extract::<i64>() {
        return Ok(value.to_le_bytes());
    }
    match object.extract::<u64>() {
        Ok(value) => Ok(value.to_le_bytes()),
        Err(_) => Err(Failure::Own(
            "KeyRangeError",
            "key: expected an int from -2**63 to 2**64-1, which is hashed as its 8 little-endian \
             bytes; encode a larger one yourself, e.g. str(key) or key.to_bytes(16, \"little\")"
                .into(),
        )),
    }
}

pub(crate) fn type_name(object: &Bound<'_, PyAny>) -> String {
    let name = object.get_type().fully_qualified_name();
    name.map_or_else(|_| "another type".into(), |name| name.to_string())
}

/// One key where many are meant is a mistake, though Python would iterate it.
pub(crate) fn refuse_one_key(keys: &Bound<'_, PyAny>) -> Result<(), Failure> {
    let one = keys.is_instance_of::<PyString>()
        || keys.is_instance_of::<PyBytes>()
        || keys.is_instance_of::<PyByteArray>()
        || keys.is_instance_of::<PyMemoryView>();
    match one {
        true => Err(Failure::no_key(format!(
            "keys: expected many keys, got one {}; pass a list of keys, e.g. [key]",
            type_name(keys)
        ))),
        false => Ok(()),
    }
}

/// The library that an object's class is of: "numpy", "polars", …
pub(crate) fn library(object: &Bound<'_, PyAny>) -> PyResult<String> {
    let module: String = object.get_type().module()?.extract()?;
    let library = module.split('.').next();
    Ok(library.unwrap_or_default().into())
}

// In every CPython since 3.3, but in the limited API since 3.10 only, which is
// why PyO3 does not have it for 3.9.
#[cfg(not(windows))]
unsafe extern "C" {
    fn PyUnicode_AsUTF8AndSize(
        text: *mut ffi::PyObject,
        len: *mut ffi::Py_ssize_t,
    ) -> *const std::ffi::c_char;
}

/// The UTF-8 of a `str` without copying it. It lies in the object: that of
/// ASCII text anyway, that of other text from the first time it is asked for.
#[cfg(not(windows))]
#[inline]
pub(crate) fn utf8<'a>(object: &'a Bound<'_, PyAny>) -> Option<&'a [u8]> {
    let object = object.as_ptr();
    // SAFETY: the object is borrowed for 'a and a str is immutable, so its
    // UTF-8 stays where it is. The error of a str without UTF-8 is taken back:
    // `hash_other` says it better.
    unsafe {
        // The exact type first: the flags of a type are behind a call.
        let exact = ffi::Py_TYPE(object) == &raw mut ffi::PyUnicode_Type;
        if !exact && ffi::PyUnicode_Check(object) == 0 {
            return None;
        }
        let mut len = 0;
        let data = PyUnicode_AsUTF8AndSize(object, &mut len);
        if data.is_null() {
            ffi::PyErr_Clear();
            return None;
        }
        Some(std::slice::from_raw_parts(data.cast(), len as usize))
    }
}

/// The hash of a `str`, `bytes` or `int` itself, found without running Python
/// code.
#[inline]
pub(crate) fn plain(hasher: &Hasher, object: &Bound<'_, PyAny>) -> Option<Hash> {
    if let Some(bytes) = utf8(object) {
        return Some(hasher.hash(bytes));
    }
    if let Some(bytes) = exact_integer(object) {
        return Some(hasher.hash_exact(&bytes));
    }
    let bytes = object.cast_exact::<PyBytes>();
    bytes.ok().map(|bytes| hasher.hash(bytes.as_bytes()))
}

/// The python3.dll of Windows has the limited API and no more, so texts are
/// encoded anew there.
#[cfg(windows)]
pub(crate) fn utf8<'a>(_: &'a Bound<'_, PyAny>) -> Option<&'a [u8]> {
    None
}
