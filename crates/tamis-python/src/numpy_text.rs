//! numpy's strings of variable length (`StringDType`), read in place by the
//! functions that numpy has for it.

use crate::column::{Bits, Place, Values};
use crate::error::Failure;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBool;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::marker::PhantomData;

/// Numpy's functions of this ABI, in their places of its table.
struct Functions {
    load: unsafe extern "C" fn(*mut c_void, *const u8, *mut StaticString) -> c_int,
    acquire: unsafe extern "C" fn(*mut ffi::PyObject) -> *mut c_void,
    release: unsafe extern "C" fn(*mut c_void),
}

const VERSION: usize = 0;
const LOAD: usize = 313;
const ACQUIRE: usize = 316;
const RELEASE: usize = 318;
/// The version of the ABI that has them there.
const ABI: c_uint = 0x0200_0000;

#[repr(C)]
struct StaticString {
    size: usize,
    first: *const c_char,
}

impl Functions {
    /// None in a numpy of another ABI.
    fn of(py: Python<'_>) -> PyResult<Option<Self>> {
        let module = py.import("numpy._core._multiarray_umath")?;
        let capsule = module.getattr("_ARRAY_API")?;
        // SAFETY: numpy's table, which begins with the version of the ABI; in
        // this one, these are the functions at their places.
        unsafe {
            let table = ffi::PyCapsule_GetPointer(capsule.as_ptr(), std::ptr::null());
            if table.is_null() {
                return Err(PyErr::fetch(py));
            }
            let table = table.cast::<*const c_void>();
            let version: unsafe extern "C" fn() -> c_uint =
                std::mem::transmute(*table.add(VERSION));
            if version() != ABI {
                return Ok(None);
            }
            Ok(Some(Self {
                load: std::mem::transmute::<
                    *const c_void,
                    unsafe extern "C" fn(*mut c_void, *const u8, *mut StaticString) -> c_int,
                >(*table.add(LOAD)),
                acquire: std::mem::transmute::<
                    *const c_void,
                    unsafe extern "C" fn(*mut ffi::PyObject) -> *mut c_void,
                >(*table.add(ACQUIRE)),
                release: std::mem::transmute::<*const c_void, unsafe extern "C" fn(*mut c_void)>(
                    *table.add(RELEASE),
                ),
            }))
        }
    }
}

/// Where the texts of an array are, and which of them are missing; `None` if
/// this numpy is not known, so that it has to be asked for objects.
///
/// # Safety
/// The memory of the array is there for as long as `'a`.
pub(crate) unsafe fn values<'a>(
    array: &Bound<'_, PyAny>,
) -> Result<Option<(Values<'a>, Option<Bits<'a>>)>, Failure> {
    let py = array.py();
    let Some(functions) = Functions::of(py)? else {
        return Ok(None);
    };
    let len = array.len()?;
    let (address, _): (usize, Bound<'_, PyBool>) = array
        .getattr("__array_interface__")?
        .get_item("data")?
        .extract()?;
    let (stride,): (isize,) = array.getattr("strides")?.extract()?;
    let first: *const u8 = std::ptr::with_exposed_provenance(address);
    let dtype = array.getattr("dtype")?;
    let mut places = Vec::with_capacity(len);
    let mut missing = vec![false; 0];
    let mut damaged = None;
    // SAFETY: the type is numpy's for such strings, and what is acquired is
    // released; the rows are the array's. Nobody changes it meanwhile, so the
    // texts stay where they are.
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
            places.push(Place {
                first: text.first.cast(),
                len: text.size,
                owner: PhantomData,
            });
        }
        (functions.release)(allocator);
    }
    if let Some(row) = damaged {
        let text = format!("keys: numpy can't read the string of row {row}");
        return Err(Failure::Own("CorruptError", text));
    }
    let valid = (!missing.is_empty()).then(|| Bits::unmasked(&missing));
    Ok(Some((Values::Places(places), valid)))
}
