//! Python objects as keys: their bytes and hashes.

use crate::encoded::{Encoded, Value};
use crate::error::{Failure, Result};
use crate::json::{self, Json};
use crate::key_hash::KeyHash;
use crate::moment;
use crate::numpy;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyFloat, PyInt, PyMemoryView, PyString, PyTuple, PyTypeMethods,
};
use std::borrow::Cow;
use tamis::{Hash, Hasher, KeyRule};
use tamis_python_core::column::{Buffer, NONE};
use tamis_python_core::float::{self, Float};
use tamis_python_core::keys::Key;
use tamis_python_core::text;

/// The hash of an object as a key.
#[inline(always)] // otherwise the result would go through memory
pub(crate) fn hash(hasher: &Hasher, object: &Bound<'_, PyAny>) -> Result<Hash> {
    if hasher.rule().values() == 1
        && let Some(hash) = plain(hasher, object)
    {
        return Ok(hash);
    }
    hash_other(hasher, object)
}

/// [`hash`] for objects that aren't [`plain`]. May run Python code.
#[cold]
#[inline(never)]
fn hash_other(hasher: &Hasher, object: &Bound<'_, PyAny>) -> Result<Hash> {
    match object.cast::<KeyHash>() {
        Ok(hash) => hash.get().for_hasher(hasher),
        Err(_) => Ok(encode(hasher.rule(), object)?.hash(hasher)),
    }
}

/// [`hash`] for an object in a column; `None` for a missing value.
pub(crate) fn hash_value(hasher: &Hasher, object: &Bound<'_, PyAny>) -> Result<Option<Hash>> {
    Ok(match value(hasher.rule(), object)? {
        Value::Key(key) => Some(key.hash(hasher)),
        Value::Missing => None,
    })
}

/// The bytes of an object as a key, for servers that hash.
pub(crate) fn bytes<'a>(object: &'a Bound<'_, PyAny>) -> Result<Cow<'a, [u8]>> {
    if let Some(bytes) = utf8(object) {
        return Ok(bytes.into());
    }
    Ok(match encode(&KeyRule::EXACT, object)? {
        Encoded::Text(bytes) => bytes.as_bytes().to_vec().into(),
        Encoded::Exact(bytes) => bytes.into(),
    })
}

/// The bytes of an object as a key. May run Python code.
pub(crate) fn encode<'py>(rule: &KeyRule, object: &Bound<'py, PyAny>) -> Result<Encoded<'py>> {
    match value(rule, object)? {
        Value::Key(key) => Ok(key),
        Value::Missing if object.is_none() => Err(no_key(object)),
        Value::Missing => Err(missing(object)?),
    }
}

fn missing(object: &Bound<'_, PyAny>) -> PyResult<Failure> {
    Ok(Failure::no_key(format!(
        "key: expected a value, got {}, which stands for none and equals nothing, not even \
         itself; leave it out, or pass None inside a tuple",
        object.str()?
    )))
}

/// [`encode`] for an object in a column, where values may be missing.
pub(crate) fn value<'py>(rule: &KeyRule, object: &Bound<'py, PyAny>) -> Result<Value<'py>> {
    let value = part(rule, object)?;
    let values = match object.cast::<PyTuple>() {
        Ok(tuple) => tuple.len(),
        Err(_) => 1,
    };
    match (rule.values(), &value) {
        (wanted @ 2.., Value::Key(_)) if values != wanted => Err(Failure::no_key(format!(
            "key: expected a tuple of {wanted} values, as all keys of this filter are, got {}",
            match values {
                1 => type_name(object),
                values => format!("a tuple of {values}"),
            }
        ))),
        _ => Ok(value),
    }
}

/// [`value`] for a single object, or for one in a tuple.
fn part<'py>(rule: &KeyRule, object: &Bound<'py, PyAny>) -> Result<Value<'py>> {
    let exact = |bytes: Vec<u8>| Ok(Value::Key(Encoded::Exact(bytes)));
    let py = object.py();
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Value::Key(Encoded::Text(bytes.clone())));
    }
    if let Ok(text) = object.cast::<PyString>() {
        return match text.encode_utf8() {
            Ok(bytes) => Ok(Value::Key(Encoded::Text(bytes))),
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
    if let Ok(number) = object.cast::<PyFloat>() {
        return match Float::of(number.value()) {
            Some(float) => exact(float.bytes().into()),
            None => Ok(Value::Missing),
        };
    }
    if let Ok(values) = object.cast::<PyTuple>() {
        return exact(of_tuple(rule, values)?);
    }
    if let Ok(truth) = object.cast::<PyBool>() {
        let text = PyBytes::new(py, text::of_bool(truth.is_true()));
        return Ok(Value::Key(Encoded::Text(text)));
    }
    if object.is_instance_of::<PyInt>() {
        return exact(integer(object)?.into());
    }
    if object.is_none() {
        return Ok(Value::Missing);
    }
    if object.is_instance_of::<PyByteArray>() || object.is_instance_of::<PyMemoryView>() {
        return Ok(Value::Key(Encoded::Text(bytes_of(object)?)));
    }
    if let Ok(json) = object.cast::<Json>() {
        return json.get().key(py).map(Value::Key);
    }
    if let Some(value) = moment::value(object)? {
        return Ok(value);
    }
    // Scalars are the same keys as in an array.
    if let Some(scalar) = numpy::scalar(object)? {
        let (column, mut buffer) = (scalar.column()?, Buffer::default());
        let key = column.key(rule, 0, &mut buffer)?;
        return Ok(key.map_or(Value::Missing, |key| {
            Value::Key(match key {
                Key::Text(text) => Encoded::Text(PyBytes::new(py, text)),
                Key::Exact(bytes) => Encoded::Exact(bytes.into()),
            })
        }));
    }
    // Integers of other libraries.
    if object.hasattr("__index__")? {
        // SAFETY: a new reference or an exception.
        let number =
            unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyNumber_Index(object.as_ptr())) }?;
        return exact(integer(&number)?.into());
    }
    Err(no_key(object))
}

fn no_key(object: &Bound<'_, PyAny>) -> Failure {
    Failure::no_key(format!(
        "key: expected str, bytes, int, float, bool, Decimal, UUID, a date or time, or a tuple of \
         these, got {}; encode it yourself, in a way that stays the same between runs, e.g. str(key) or \
         repr(key), or give the filter a hash_func that does (not hash(): Python randomises it)",
        type_name(object)
    ))
}

/// The deepest nesting of tuples: far from overflowing the stack.
const DEPTH: usize = 64;

/// Each value after its length, like the command joins columns.
fn of_tuple(rule: &KeyRule, values: &Bound<'_, PyTuple>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    append_tuple(rule, values, DEPTH, &mut bytes)?;
    Ok(bytes)
}

fn append_tuple(
    rule: &KeyRule,
    values: &Bound<'_, PyTuple>,
    depth: usize,
    bytes: &mut Vec<u8>,
) -> Result<()> {
    if values.len() < 2 {
        return Err(Failure::no_key(format!(
            "key: expected a tuple of 2 values or more, got {}; pass a single value as it is",
            values.len()
        )));
    }
    if depth == 0 {
        return Err(Failure::no_key(format!(
            "key: expected tuples in tuples no deeper than {DEPTH}, got more"
        )));
    }
    for value in values {
        if let Some(text) = utf8(&value) {
            rule.append_part(text, bytes);
        } else if value.is_none() {
            KeyRule::EXACT.append_part(&NONE, bytes);
        } else if let Ok(values) = value.cast::<PyTuple>() {
            let mut inner = Vec::new();
            append_tuple(rule, values, depth - 1, &mut inner)?;
            KeyRule::EXACT.append_part(&inner, bytes);
        } else if value
            .cast::<Json>()
            .is_ok_and(|json| json.get().is_absent())
        {
            bytes.extend_from_slice(&json::ABSENT);
        } else {
            match part(rule, &value)? {
                Value::Key(Encoded::Text(text)) => rule.append_part(text.as_bytes(), bytes),
                Value::Key(Encoded::Exact(number)) => KeyRule::EXACT.append_part(&number, bytes),
                Value::Missing => return Err(missing(&value)?),
            };
        }
    }
    Ok(())
}

/// The object itself if it is `bytes`, or a copy of a similar object's bytes.
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

/// The key of an exact `int`, not of a subclass, if it is below 2**63. Runs no Python code.
#[inline]
pub(crate) fn exact_integer(object: &Bound<'_, PyAny>) -> Option<[u8; 8]> {
    // SAFETY: the object is an int, for which this call can't fail.
    unsafe {
        if ffi::Py_TYPE(object.as_ptr()) != &raw mut ffi::PyLong_Type {
            return None;
        }
        let mut overflow = 0;
        let value = ffi::PyLong_AsLongLongAndOverflow(object.as_ptr(), &mut overflow);
        (overflow == 0).then_some(value.to_le_bytes())
    }
}

/// The 8 little-endian bytes of an integer, in two's complement: an integer that fits a signed or unsigned 64-bit
/// column is the same key as there.
fn integer(object: &Bound<'_, PyAny>) -> Result<[u8; 8]> {
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

/// A single key in place of many is a mistake, though Python could iterate it.
pub(crate) fn refuse_one_key(keys: &Bound<'_, PyAny>) -> Result<()> {
    let one = keys.is_instance_of::<PyString>()
        || keys.is_instance_of::<PyBytes>()
        || keys.is_instance_of::<PyByteArray>()
        || keys.is_instance_of::<PyMemoryView>();
    if one {
        Err(Failure::no_key(format!(
            "keys: expected many keys, got one {}; pass a list of keys, e.g. [key]",
            type_name(keys)
        )))
    } else {
        Ok(())
    }
}

/// The library that an object's class belongs to, or derives from: "numpy", "pandas", "polars" or "pyarrow"; otherwise
/// that of the class itself.
pub(crate) fn library(object: &Bound<'_, PyAny>) -> PyResult<String> {
    let root = |class: &Bound<'_, PyAny>| -> PyResult<String> {
        let module: String = class.getattr("__module__")?.extract()?;
        Ok(module.split('.').next().unwrap_or_default().into())
    };
    let class = object.get_type();
    for base in class.mro() {
        let library = root(&base)?;
        if matches!(library.as_str(), "numpy" | "pandas" | "polars" | "pyarrow") {
            return Ok(library);
        }
    }
    root(class.as_any())
}

// In every CPython since 3.3, but only in the limited API since 3.10, so PyO3 lacks it for 3.9.
#[cfg(not(windows))]
unsafe extern "C" {
    fn PyUnicode_AsUTF8AndSize(
        text: *mut ffi::PyObject,
        len: *mut ffi::Py_ssize_t,
    ) -> *const std::ffi::c_char;
}

/// The UTF-8 of a `str` without copying it. The object contains it: for ASCII text always, for other text once it was
/// first requested.
#[cfg(not(windows))]
#[inline]
pub(crate) fn utf8<'a>(object: &'a Bound<'_, PyAny>) -> Option<&'a [u8]> {
    let object = object.as_ptr();
    // SAFETY: the object is borrowed for `'a` and a str is immutable, so its UTF-8 stays in place. The error for a str
    // that can't be UTF-8 is cleared: `hash_other` reports it better.
    unsafe {
        // The exact type first: reading the flags of a type takes a call.
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

/// The hash of an exact `str`, `bytes`, `int` or `float` as the single value of a key, found without running Python
/// code.
#[inline(always)] // otherwise the result would go through memory
pub(crate) fn plain(hasher: &Hasher, object: &Bound<'_, PyAny>) -> Option<Hash> {
    // SAFETY: the object is alive, and the type is only compared.
    let class = unsafe { ffi::Py_TYPE(object.as_ptr()) };
    let bytes = if class == &raw mut ffi::PyUnicode_Type {
        utf8(object)?
    } else if class == &raw mut ffi::PyBytes_Type {
        // SAFETY: the object is a `bytes`.
        unsafe { bytes_in_place(object) }
    } else if let Some(bytes) = exact_integer(object) {
        return Some(hasher.hash_exact(&bytes));
    } else {
        return plain_other(hasher, object);
    };
    Some(hasher.hash(bytes))
}

#[inline(never)]
fn plain_other(hasher: &Hasher, object: &Bound<'_, PyAny>) -> Option<Hash> {
    match object.cast_exact::<PyFloat>() {
        Ok(number) => float::hash(hasher, number.value()),
        // A subclass of `str`.
        Err(_) => utf8(object).map(|bytes| hasher.hash(bytes)),
    }
}

/// The bytes of a `bytes`.
///
/// # Safety
/// The object is a `bytes`.
#[inline(always)]
unsafe fn bytes_in_place<'a>(object: &'a Bound<'_, PyAny>) -> &'a [u8] {
    let object = object.as_ptr();
    // SAFETY: the caller's promise; its bytes never change, and it is borrowed for `'a`.
    unsafe {
        let start = ffi::PyBytes_AsString(object).cast();
        std::slice::from_raw_parts(start, ffi::PyBytes_Size(object) as usize)
    }
}

/// Windows's python3.dll only has the limited API, so texts are encoded again there.
#[cfg(windows)]
pub(crate) fn utf8<'a>(_: &'a Bound<'_, PyAny>) -> Option<&'a [u8]> {
    None
}

/// Prefetches the start of an object; only a hint.
#[inline(always)]
pub(crate) fn prefetch(object: *const u8) {
    tamis::internals::raw::prefetch(object);
    tamis::internals::raw::prefetch(object.wrapping_add(64));
}
