//! numpy's variable-length strings (`StringDType`), read in place with numpy's functions for them.

use crate::error::{Failure, Result};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBool;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::mem::transmute;
use tamis_python_core::column::{Bits, Values};

type Version = unsafe extern "C" fn() -> c_uint;
type Load = unsafe extern "C" fn(*mut c_void, *const u8, *mut StaticString) -> c_int;
type Acquire = unsafe extern "C" fn(*mut ffi::PyObject) -> *mut c_void;
type Release = unsafe extern "C" fn(*mut c_void);

/// numpy's functions, at their positions in this ABI's table.
struct Functions {
    load: Load,
    acquire: Acquire,
    release: Release,
}

const VERSION: usize = 0;
const LOAD: usize = 313;
const ACQUIRE: usize = 316;
const RELEASE: usize = 318;
/// The ABI version with these positions.
const ABI: c_uint = 0x0200_0000;

#[repr(C)]
struct StaticString {
    size: usize,
    first: *const c_char,
}

impl Functions {
    /// `None` for a numpy with another ABI.
    fn of(py: Python<'_>) -> PyResult<Option<Self>> {
        let module = py.import("numpy._core._multiarray_umath")?;
        let capsule = module.getattr("_ARRAY_API")?;
        // SAFETY: numpy's table, which begins with the version of the ABI; in this version, these functions are at
        // these positions.
        unsafe {
            let table = ffi::PyCapsule_GetPointer(capsule.as_ptr(), std::ptr::null());
            if table.is_null() {
                return Err(PyErr::fetch(py));
            }
            let table = table.cast::<*const c_void>();
            if transmute::<*const c_void, Version>(*table.add(VERSION))() != ABI {
                return Ok(None);
            }
            Ok(Some(Self {
                load: transmute::<*const c_void, Load>(*table.add(LOAD)),
                acquire: transmute::<*const c_void, Acquire>(*table.add(ACQUIRE)),
                release: transmute::<*const c_void, Release>(*table.add(RELEASE)),
            }))
        }
    }
}

/// The texts of an array, and which of them are missing; `None` if this numpy isn't known, so that it has to be read as
/// objects.
///
/// # Safety
/// The array has one dimension and the type `StringDType`. It is alive, and nobody changes it, during `'a`.
pub(crate) unsafe fn values<'a>(
    array: &Bound<'_, PyAny>,
) -> Result<Option<(Values<'a>, Option<Bits<'a>>)>> {
    let py = array.py();
    let Some(functions) = Functions::of(py)? else {
        return Ok(None);
    };
    let len = array.len()?;
    let (first, stride) = memory(array)?;
    let dtype = array.getattr("dtype")?;
    let mut texts: Vec<&[u8]> = Vec::with_capacity(len);
    let mut missing = Vec::new();
    let mut damaged = None;
    // SAFETY: the type is numpy's for such strings, and the acquired allocator is released; the rows belong to the
    // array. By the caller's promise nobody changes the array, so the texts stay in place.
    unsafe {
        let allocator = (functions.acquire)(dtype.as_ptr());
        for row in 0..len {
            let mut text = StaticString {
                size: 0,
                first: std::ptr::null(),
            };
            let packed = first.offset(row as isize * stride);
            match (functions.load)(allocator, packed, &mut text) {
                0 => {}
                1 => {
                    missing.resize(len, false);
                    missing[row] = true;
                }
                _ => {
                    damaged = Some(row);
                    break;
                }
            }
            texts.push(match text.size {
                0 => &[],
                size => std::slice::from_raw_parts(text.first.cast(), size),
            });
        }
        (functions.release)(allocator);
    }
    if let Some(row) = damaged {
        let text = format!("keys: numpy can't read the string of row {row}");
        return Err(Failure::Own("CorruptError", text));
    }
    let valid = (!missing.is_empty()).then(|| Bits::unmasked(&missing));
    Ok(Some((Values::Texts(texts), valid)))
}

/// The address of the first row of a one-dimensional array, and the distance between rows.
pub(crate) fn memory(array: &Bound<'_, PyAny>) -> PyResult<(*const u8, isize)> {
    let data = array.getattr("__array_interface__")?.get_item("data")?;
    let (address, _): (usize, Bound<'_, PyBool>) = data.extract()?;
    let (stride,): (isize,) = array.getattr("strides")?.extract()?;
    Ok((std::ptr::with_exposed_provenance(address), stride))
}
