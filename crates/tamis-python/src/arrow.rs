//! Columns of other libraries, through the Arrow C data interface: read in
//! place, whoever made them.

use crate::column::{Bits, Column, Encoding, Fixed, Values};
use crate::error::Failure;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::ptr;
use tamis::Hasher;

/// The structures of the specification, field by field.
#[repr(C)]
pub(crate) struct ArrowSchema {
    pub(crate) format: *const c_char,
    pub(crate) name: *const c_char,
    pub(crate) metadata: *const c_char,
    pub(crate) flags: i64,
    pub(crate) n_children: i64,
    pub(crate) children: *mut *mut ArrowSchema,
    pub(crate) dictionary: *mut ArrowSchema,
    pub(crate) release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    pub(crate) private_data: *mut c_void,
}

#[repr(C)]
pub(crate) struct ArrowArray {
    pub(crate) length: i64,
    pub(crate) null_count: i64,
    pub(crate) offset: i64,
    pub(crate) n_buffers: i64,
    pub(crate) n_children: i64,
    pub(crate) buffers: *const *const c_void,
    pub(crate) children: *mut *mut ArrowArray,
    pub(crate) dictionary: *mut ArrowArray,
    pub(crate) release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    pub(crate) private_data: *mut c_void,
}

#[repr(C)]
pub(crate) struct ArrowArrayStream {
    get_schema: Option<unsafe extern "C" fn(*mut Self, *mut ArrowSchema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut Self, *mut ArrowArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut Self) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut Self)>,
    private_data: *mut c_void,
}

/// One of the structures, which is ours to release.
#[repr(transparent)] // a capsule may carry it as the structure
pub(crate) struct Owned<T: Release>(pub(crate) T);

/// What is common to the three structures.
pub(crate) trait Release {
    /// As the specification marks one that somebody else owns now.
    fn released() -> Self;
    fn release(&mut self);
}

macro_rules! release {
    ($name:ident) => {
        impl Release for $name {
            fn released() -> Self {
                // SAFETY: null pointers, zeros and absent functions.
                unsafe { std::mem::zeroed() }
            }

            fn release(&mut self) {
                if let Some(release) = self.release {
                    // SAFETY: the structure is ours and was not released.
                    unsafe { release(self) }
                }
            }
        }
    };
}
release!(ArrowSchema);
release!(ArrowArray);
release!(ArrowArrayStream);

impl<T: Release> Drop for Owned<T> {
    fn drop(&mut self) {
        self.0.release();
    }
}

// SAFETY: the specification lets any thread read and release them.
unsafe impl<T: Release> Send for Owned<T> {}
// SAFETY: likewise; shared ones are only read.
unsafe impl<T: Release> Sync for Owned<T> {}

impl<T: Release> Owned<T> {
    /// Moves the structure out of the capsule that carries it.
    fn from_capsule(capsule: &Bound<'_, PyAny>, name: &CStr) -> PyResult<Self> {
        // SAFETY: a capsule of this name carries this structure; moving it
        // out is what the interface asks of a consumer.
        unsafe {
            let place = ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr());
            if place.is_null() {
                return Err(PyErr::fetch(capsule.py()));
            }
            Ok(Self(ptr::replace(place.cast(), T::released())))
        }
    }
}

/// Arrays of keys, one after the other.
pub(crate) enum Arrays {
    One(Owned<ArrowSchema>, Option<Owned<ArrowArray>>),
    Stream(Owned<ArrowSchema>, Owned<ArrowArrayStream>),
}

impl Arrays {
    /// The arrays of an object that has the interface.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> Result<Option<Self>, Failure> {
        if object.hasattr("__arrow_c_array__")? {
            let pair = object.call_method0("__arrow_c_array__")?;
            let pair = pair.cast::<PyTuple>().map_err(PyErr::from)?;
            let schema = Owned::from_capsule(&pair.get_item(0)?, c"arrow_schema")?;
            let array = Owned::from_capsule(&pair.get_item(1)?, c"arrow_array")?;
            return Ok(Some(Self::One(schema, Some(array))));
        }
        if object.hasattr("__arrow_c_stream__")? {
            let capsule = object.call_method0("__arrow_c_stream__")?;
            let mut stream: Owned<ArrowArrayStream> =
                Owned::from_capsule(&capsule, c"arrow_array_stream")?;
            let mut schema = Owned(ArrowSchema::released());
            let get = stream.0.get_schema;
            // SAFETY: a live stream and a structure to be filled.
            let code = get.map_or(0, |get| unsafe { get(&mut stream.0, &mut schema.0) });
            stream.check(code)?;
            return Ok(Some(Self::Stream(schema, stream)));
        }
        Ok(None)
    }

    /// The next array; `None` after the last. May wait for the producer, so
    /// it is called without the GIL.
    pub(crate) fn next(&mut self) -> Result<Option<Owned<ArrowArray>>, Failure> {
        match self {
            Self::One(_, array) => Ok(array.take()),
            Self::Stream(_, stream) => {
                let mut array = Owned(ArrowArray::released());
                let get = stream.0.get_next;
                // SAFETY: a live stream and a structure to be filled.
                let code = get.map_or(0, |get| unsafe { get(&mut stream.0, &mut array.0) });
                stream.check(code)?;
                Ok(array.0.release.is_some().then_some(array))
            }
        }
    }

    /// The array as a column of keys.
    pub(crate) fn column<'a>(
        &self,
        array: &'a Owned<ArrowArray>,
        hasher: &Hasher,
    ) -> Result<Column<'a>, Failure> {
        let (Self::One(schema, _) | Self::Stream(schema, _)) = self;
        // SAFETY: the schema describes this array, which lives for 'a.
        unsafe { column(&schema.0, &array.0, hasher) }
    }
}

impl Owned<ArrowArrayStream> {
    fn check(&mut self, code: c_int) -> Result<(), Failure> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: a live stream; the text is valid until its next call.
        let text = unsafe {
            match self.0.get_last_error.map(|get| get(&mut self.0)) {
                Some(text) if !text.is_null() => {
                    CStr::from_ptr(text).to_string_lossy().into_owned()
                }
                _ => format!("error {code}"),
            }
        };
        let text = format!("reading the Arrow stream of keys: {text}");
        Err(Failure::Own("IoError", text))
    }
}

/// # Safety
/// The schema describes the array; both follow the specification, and the
/// array lives for `'a`.
unsafe fn column<'a>(
    schema: &ArrowSchema,
    array: &ArrowArray,
    hasher: &Hasher,
) -> Result<Column<'a>, Failure> {
    // SAFETY: the format is a text that lives as long as the schema.
    let format = unsafe { CStr::from_ptr(schema.format) }
        .to_str()
        .unwrap_or("?");
    let len = array.length as usize;
    let offset = array.offset as usize;
    let fixed = |width: usize, encoding| {
        // SAFETY: of such an array, the second buffer holds the values.
        let first = unsafe { buffer(array, 1) }.wrapping_add(offset * width);
        Fixed {
            first,
            stride: width as isize,
            width,
            encoding,
            owner: PhantomData,
        }
    };
    let integer = |width, signed| {
        // Arrow's numbers are the machine's.
        let swapped = cfg!(target_endian = "big");
        fixed(width, Encoding::Integer { signed, swapped })
    };
    let integers = || {
        Some(match format {
            "c" => integer(1, true),
            "C" => integer(1, false),
            "s" => integer(2, true),
            "S" => integer(2, false),
            "i" => integer(4, true),
            "I" => integer(4, false),
            "l" => integer(8, true),
            "L" => integer(8, false),
            _ => return None,
        })
    };
    // SAFETY: the buffers are those that the format prescribes, of the lengths
    // that it prescribes; a dictionary follows the same rules.
    let values = unsafe {
        if !array.dictionary.is_null() && !schema.dictionary.is_null() {
            let values = column(&*schema.dictionary, &*array.dictionary, hasher)?;
            let indices = integers().ok_or_else(|| unknown(format))?;
            Values::Dictionary(indices, values.hash_all(hasher)?)
        } else {
            match format {
                "u" | "z" => {
                    let offsets = slice::<i32>(buffer(array, 1), offset, len + 1);
                    let end = offsets.last().copied().unwrap_or(0) as usize;
                    Values::Offsets32(offsets, slice(buffer(array, 2), 0, end))
                }
                "U" | "Z" => {
                    let offsets = slice::<i64>(buffer(array, 1), offset, len + 1);
                    let end = offsets.last().copied().unwrap_or(0) as usize;
                    Values::Offsets64(offsets, slice(buffer(array, 2), 0, end))
                }
                "vu" | "vz" => {
                    let views = slice(buffer(array, 1), offset, len);
                    // Behind the views come the data, and the lengths of these.
                    let count = (array.n_buffers - 3).max(0) as usize;
                    let lengths = slice::<i64>(buffer(array, count + 2), 0, count);
                    let data = lengths.iter().enumerate();
                    let data = data.map(|(i, len)| slice(buffer(array, i + 2), 0, *len as usize));
                    Values::Views(views, data.collect())
                }
                _ => match (integers(), format.strip_prefix("w:")) {
                    (Some(integers), _) => Values::Fixed(integers),
                    (_, Some(width)) => {
                        let width = width.parse().map_err(|_| unknown(format))?;
                        Values::Fixed(fixed(width, Encoding::Bytes))
                    }
                    _ => return Err(unknown(format)),
                },
            }
        }
    };
    // SAFETY: the first buffer, if there is one, has a bit for every row.
    let valid = unsafe { buffer(array, 0) };
    let valid = (array.null_count != 0 && !valid.is_null()).then(|| Bits {
        // SAFETY: as above.
        bytes: unsafe { slice(valid, 0, (offset + len).div_ceil(8)) },
        offset,
    });
    Ok(Column { len, values, valid })
}

/// A buffer of an array; null if the array does without it.
///
/// # Safety
/// The array follows the specification.
unsafe fn buffer(array: &ArrowArray, index: usize) -> *const u8 {
    match index < array.n_buffers as usize {
        // SAFETY: there are so many pointers.
        true => unsafe { *array.buffers.add(index) }.cast(),
        false => ptr::null(),
    }
}

/// Values of a buffer, which may be absent where there are none.
///
/// # Safety
/// The buffer has so many values behind the offset and lives for `'a`.
unsafe fn slice<'a, T>(buffer: *const u8, offset: usize, len: usize) -> &'a [T] {
    if len == 0 || buffer.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise; buffers are aligned for their values.
    unsafe { std::slice::from_raw_parts(buffer.cast::<T>().add(offset), len) }
}

fn unknown(format: &str) -> Failure {
    let (what, hint) = match format.as_bytes() {
        [b'+', b's', ..] => (
            "a table".into(),
            "pass one of its columns, e.g. table[\"url\"]",
        ),
        [b't', ..] => (
            "dates or times".into(),
            "cast them to int64 or to string first",
        ),
        [b'e' | b'f' | b'g'] => (
            "floating-point numbers".into(),
            "cast them to integers or to string first",
        ),
        _ => (
            format!("the Arrow type {format:?}"),
            "cast it to string, binary or an integer type first",
        ),
    };
    Failure::no_key(format!(
        "keys: expected a column of strings, bytes or integers, got {what}; {hint}"
    ))
}
