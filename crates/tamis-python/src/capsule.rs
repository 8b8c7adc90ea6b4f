//! The capsules in which Python objects export Arrow columns.

use crate::error::{Failure, Result};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::PyTuple;
use std::ffi::{CStr, c_int};
use std::ptr;
use tamis_python_core::arrow::{self, ArrowArray, ArrowArrayStream, ArrowSchema, Owned, Release};
use tamis_python_core::column::KeyColumn;
use tamis_python_core::keys::NoKeys;

/// Moves the structure out of its capsule.
fn owned<T: Release>(capsule: &Bound<'_, PyAny>, name: &CStr) -> Result<Owned<T>> {
    // SAFETY: a capsule with this name holds this structure, which the interface lets a consumer move out. Another
    // thread that tries the same finds a released one.
    let owned = with_critical_section(capsule, || unsafe {
        let place = ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr());
        if place.is_null() {
            return Err(PyErr::fetch(capsule.py()));
        }
        Ok(Owned::new(ptr::replace(place.cast(), T::released())))
    })?;
    if owned.is_released() {
        return Err(NoKeys::damaged("whose capsule was used already").into());
    }
    Ok(owned)
}

/// A sequence of arrays of keys.
pub(crate) enum Arrays {
    One(Owned<ArrowSchema>, Option<Owned<ArrowArray>>),
    Stream(Owned<ArrowSchema>, Owned<ArrowArrayStream>),
}

impl Arrays {
    /// The arrays of an object with this interface.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> Result<Option<Self>> {
        if object.hasattr("__arrow_c_array__")? {
            let pair = object.call_method0("__arrow_c_array__")?;
            let pair = pair.cast::<PyTuple>().map_err(PyErr::from)?;
            let schema = owned(&pair.get_item(0)?, c"arrow_schema")?;
            let array = owned(&pair.get_item(1)?, c"arrow_array")?;
            return Ok(Some(Self::One(schema, Some(array))));
        }
        if object.hasattr("__arrow_c_stream__")? {
            let capsule = object.call_method0("__arrow_c_stream__")?;
            let stream = owned(&capsule, c"arrow_array_stream")?;
            // The producer may wait for other Python threads.
            return object.py().detach(|| Self::of_stream(stream).map(Some));
        }
        Ok(None)
    }

    fn of_stream(mut stream: Owned<ArrowArrayStream>) -> Result<Self> {
        let mut schema = Owned::<ArrowSchema>::released();
        let get = stream.get_schema;
        let get = get.ok_or_else(|| NoKeys::damaged("in a stream without get_schema"))?;
        // SAFETY: a live stream, and a structure for its producer to fill.
        let code = unsafe { get(stream.as_mut_ptr(), schema.as_mut_ptr()) };
        check(&mut stream, code)?;
        Ok(Self::Stream(schema, stream))
    }

    /// The next array; `None` after the last. May wait for the producer, so it is called without the GIL.
    pub(crate) fn next(&mut self) -> Result<Option<Owned<ArrowArray>>> {
        let stream = match self {
            Self::One(_, array) => return Ok(array.take()),
            Self::Stream(_, stream) => stream,
        };
        let mut array = Owned::<ArrowArray>::released();
        let get = stream.get_next;
        let get = get.ok_or_else(|| NoKeys::damaged("in a stream without get_next"))?;
        // SAFETY: a live stream, and a structure for its producer to fill.
        let code = unsafe { get(stream.as_mut_ptr(), array.as_mut_ptr()) };
        check(stream, code)?;
        Ok((!array.is_released()).then_some(array))
    }

    /// The array as a column of keys.
    pub(crate) fn column<'a>(&self, array: &'a Owned<ArrowArray>) -> Result<KeyColumn<'a>, NoKeys> {
        let (Self::One(schema, _) | Self::Stream(schema, _)) = self;
        // SAFETY: both come from a producer, and the array lives for `'a`.
        unsafe { arrow::column(schema, array) }
    }
}

fn check(stream: &mut Owned<ArrowArrayStream>, code: c_int) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    // SAFETY: a live stream; the text is valid until its next call.
    let text = unsafe {
        match stream.get_last_error.map(|get| get(stream.as_mut_ptr())) {
            Some(text) if !text.is_null() => CStr::from_ptr(text).to_string_lossy().into_owned(),
            _ => format!("error {code}"),
        }
    };
    let text = format!("reading the Arrow stream of keys: {text}");
    Err(Failure::Own("IoError", text))
}
