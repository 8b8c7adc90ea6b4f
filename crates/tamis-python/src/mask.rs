//! The answers of a batch, in a type that fits the caller's library.

use crate::error::{Failure, Result};
use crate::key;
use crate::numpy;
use pyo3::exceptions::PyIndexError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyIterator, PyList};
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use tamis_python_core::arrow::{ArrowArray, ArrowSchema, Owned};

/// A collector of answers.
pub(crate) enum Answers {
    /// Answers aren't wanted.
    Dropped,
    Bools(Vec<bool>),
    Bits(Bits),
}

/// Answers, eight per byte, in Arrow's order.
#[derive(Default)]
pub(crate) struct Bits {
    bytes: Vec<u8>,
    len: usize,
}

impl Answers {
    /// A collector for the type that becomes an object like the keys.
    pub(crate) fn wanted(keys: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(match key::library(keys)?.as_str() {
            "pyarrow" | "polars" => Self::Bits(Bits::default()),
            _ => Self::Bools(Vec::new()),
        })
    }

    pub(crate) fn extend(&mut self, answers: &[bool]) {
        match self {
            Self::Dropped => {}
            Self::Bools(bools) => bools.extend_from_slice(answers),
            Self::Bits(bits) => bits.extend(answers),
        }
    }

    /// Makes room for this many more answers, or reports that memory is short.
    pub(crate) fn reserve(&mut self, more: usize) -> Result<()> {
        let reserved = match self {
            Self::Dropped => Ok(()),
            Self::Bools(bools) => bools.try_reserve(more),
            Self::Bits(bits) => bits.bytes.try_reserve(more.div_ceil(8)),
        };
        reserved.map_err(|_| {
            let text = format!("there is no memory for the answers to {more} keys");
            Failure::Own("OutOfMemoryError", text)
        })
    }

    /// Converts to an object like the keys: a list, a numpy array, or a pyarrow or polars column; otherwise a [`Mask`].
    pub(crate) fn like<'py>(self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = keys.py();
        let library = key::library(keys)?;
        match self {
            Self::Dropped => Ok(py.None().into_bound(py)),
            Self::Bools(bools) => match library.as_str() {
                "numpy" | "pandas" => numpy::mask(py, &bools),
                "polars" => {
                    let polars = py.import("polars")?;
                    let bool = polars.getattr("Boolean")?;
                    polars.call_method1("Series", ("", list(py, &bools)?, bool))
                }
                _ => list(py, &bools),
            },
            Self::Bits(bits) => {
                let bits = Arc::new(bits);
                let mask = Bound::new(py, Mask { bits })?.into_any();
                match library.as_str() {
                    "pyarrow" => py.import("pyarrow")?.call_method1("array", (mask,)),
                    "polars" => py.import("polars")?.call_method1("Series", (mask,)),
                    _ => Ok(mask),
                }
            }
        }
    }
}

/// A list of the answers. It is first filled with the more frequent one, then the others are set.
fn list<'py>(py: Python<'py>, answers: &[bool]) -> PyResult<Bound<'py, PyAny>> {
    let trues = answers.iter().filter(|answer| **answer).count();
    let usual = trues * 2 >= answers.len();
    let one = PyList::new(py, [usual])?;
    let len = answers.len() as ffi::Py_ssize_t;
    // SAFETY: a new reference or an exception.
    let list =
        unsafe { Bound::from_owned_ptr_or_err(py, ffi::PySequence_Repeat(one.as_ptr(), len)) }?;
    let others = answers
        .iter()
        .enumerate()
        .filter(|(_, answer)| **answer != usual);
    for (index, _) in others {
        // SAFETY: the list is ours and has this index; it takes ownership of a new reference to the constant.
        unsafe {
            let other = ffi::PyBool_FromLong((!usual).into());
            ffi::PyList_SetItem(list.as_ptr(), index as ffi::Py_ssize_t, other);
        }
    }
    Ok(list)
}

impl Bits {
    fn extend(&mut self, answers: &[bool]) {
        let mut rest = answers;
        while !self.len.is_multiple_of(8) && !rest.is_empty() {
            let last = self.bytes.len() - 1;
            self.bytes[last] |= u8::from(rest[0]) << (self.len % 8);
            self.len += 1;
            rest = &rest[1..];
        }
        self.bytes.extend(rest.chunks(8).map(|eight| {
            let bits = eight.iter().enumerate();
            bits.fold(0, |byte, (i, answer)| byte | u8::from(*answer) << i)
        }));
        self.len += rest.len();
    }

    fn get(&self, index: usize) -> bool {
        self.bytes[index / 8] >> (index % 8) & 1 != 0
    }
}

/// Answers for a column of keys, one bit each: a sequence of bool that other
/// libraries read through the Arrow C data interface, without copying it.
#[pyclass(frozen, sequence, module = "tamis")]
pub(crate) struct Mask {
    bits: Arc<Bits>,
}

#[pymethods]
impl Mask {
    fn __len__(&self) -> usize {
        self.bits.len
    }

    fn __getitem__(&self, index: isize) -> PyResult<bool> {
        let len = self.bits.len as isize;
        match if index < 0 { index + len } else { index } {
            index if (0..len).contains(&index) => Ok(self.bits.get(index as usize)),
            _ => Err(PyIndexError::new_err(format!(
                "mask: expected an index below {len}, got {index}"
            ))),
        }
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyList::new(py, self.tolist())?.try_iter()
    }

    fn __repr__(&self) -> String {
        let ones: u32 = self.bits.bytes.iter().map(|byte| byte.count_ones()).sum();
        format!("<tamis.Mask of {}, {ones} of them True>", self.bits.len)
    }

    /// All answers as a list of bool.
    fn tolist(&self) -> Vec<bool> {
        (0..self.bits.len).map(|i| self.bits.get(i)).collect()
    }

    /// The Arrow C data interface: a column of bool.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // A mask is always bool; consumers cast.
        let _ = requested_schema;
        let schema = ArrowSchema {
            format: c"b".as_ptr(),
            name: c"".as_ptr(),
            metadata: ptr::null(),
            flags: 0,
            n_children: 0,
            children: ptr::null_mut(),
            dictionary: ptr::null_mut(),
            release: Some(release_schema),
            private_data: ptr::null_mut(),
        };
        let owner = Box::new(Exported {
            buffers: [ptr::null(), self.bits.bytes.as_ptr().cast()],
            _bits: Arc::clone(&self.bits),
        });
        let owner = Box::into_raw(owner);
        let array = ArrowArray {
            length: self.bits.len as i64,
            null_count: 0,
            offset: 0,
            n_buffers: 2,
            n_children: 0,
            // SAFETY: just created; the array owns it until its release.
            buffers: unsafe { &raw const (*owner).buffers }.cast(),
            children: ptr::null_mut(),
            dictionary: ptr::null_mut(),
            release: Some(release_array),
            private_data: owner.cast(),
        };
        // SAFETY: both were just created as the specification demands, and moved here.
        let (schema, array) = unsafe { (Owned::new(schema), Owned::new(array)) };
        Ok((
            PyCapsule::new_with_value(py, schema, c"arrow_schema")?,
            PyCapsule::new_with_value(py, array, c"arrow_array")?,
        ))
    }
}

/// The data that an exported array keeps alive.
struct Exported {
    buffers: [*const c_void; 2],
    _bits: Arc<Bits>,
}

/// # Safety
/// The schema is ours and wasn't released.
unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: the caller's promise; its strings are static.
    unsafe { (*schema).release = None }
}

/// # Safety
/// The array is ours and wasn't released, and nobody uses its buffers any more.
unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: the caller's promise; `Box::into_raw` made its private data.
    unsafe {
        drop(Box::from_raw((*array).private_data.cast::<Exported>()));
        (*array).release = None;
    }
}
