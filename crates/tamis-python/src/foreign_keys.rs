//! Python objects as keys of other systems: the bytes that those systems hash.

use crate::error::{Failure, Result};
use crate::interrupt::Lookout;
use crate::key::{self, prefetch};
use crate::mask::Answers;
use crate::source::Held;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyFloat, PyInt, PyIterator, PyList, PyMemoryView, PyString,
};
use std::borrow::Cow;
use std::ops::Range;
use tamis::KeyRule;
use tamis_formats::Keys;
use tamis_python_core::column::Buffer;
use tamis_python_core::keys::Key;

/// Keys that are encoded at once under the GIL.
const BLOCK: usize = 1 << 12;

/// How a filter's keys become bytes.
#[derive(Clone, Copy)]
pub(crate) struct Encoder(pub(crate) Keys);

impl Encoder {
    /// The bytes of one key.
    #[inline]
    pub(crate) fn encode<'a>(self, object: &'a Bound<'_, PyAny>) -> Result<Cow<'a, [u8]>> {
        if let Some(utf8) = key::utf8(object) {
            return match self.0 {
                Keys::Utf8 => Ok(utf8.into()),
                _ => self.text(object, utf8.into()),
            };
        }
        self.encode_other(object)
    }

    /// [`encode`](Self::encode) for objects other than `str`, and for a `str` that can't be UTF-8.
    #[inline(never)]
    fn encode_other<'a>(self, object: &Bound<'_, PyAny>) -> Result<Cow<'a, [u8]>> {
        if object.is_instance_of::<PyBytes>()
            || object.is_instance_of::<PyByteArray>()
            || object.is_instance_of::<PyMemoryView>()
        {
            let bytes = key::bytes_of(object)?.as_bytes().to_vec();
            return Ok(match self.0 {
                Keys::Upper => bytes.to_ascii_uppercase().into(),
                Keys::Lower => bytes.to_ascii_lowercase().into(),
                _ => bytes.into(),
            });
        }
        if let Ok(text) = object.cast::<PyString>() {
            return match self.0 {
                // Java's strings may also contain unpaired surrogates.
                Keys::Utf16 => {
                    let encoded = text.call_method1("encode", ("utf-16-le", "surrogatepass"))?;
                    Ok(key::bytes_of(&encoded)?.as_bytes().to_vec().into())
                }
                _ => match text.encode_utf8() {
                    Ok(bytes) => self.text(object, bytes.as_bytes().to_vec().into()),
                    Err(error) => Err(Failure::Own(
                        "KeyEncodingError",
                        format!(
                            "key: expected text that has UTF-8: {}",
                            error.value(object.py())
                        ),
                    )),
                },
            };
        }
        match self.0 {
            Keys::Int32 | Keys::Int64 | Keys::Uint64 if is_integer(object)? => self.integer(object),
            Keys::Float32 | Keys::Float64
                if object.is_instance_of::<PyFloat>() || is_integer(object)? =>
            {
                let number: f64 = object.extract()?;
                Ok(match self.0 {
                    Keys::Float32 => (number as f32).to_le_bytes().to_vec().into(),
                    _ => number.to_le_bytes().to_vec().into(),
                })
            }
            // Like pybloomfiltermmap3. NaN is refused: its hash differs for each object.
            Keys::PythonNumber
                if object.is_instance_of::<PyInt>()
                    || object.extract::<f64>().is_ok_and(|number| !number.is_nan())
                    || is_integer(object)? =>
            {
                Ok((object.hash()? as i64).to_le_bytes().to_vec().into())
            }
            _ => Err(self.refused(object)),
        }
    }

    fn text<'a>(self, object: &Bound<'_, PyAny>, utf8: Cow<'a, [u8]>) -> Result<Cow<'a, [u8]>> {
        match self.0 {
            Keys::Utf8 => Ok(utf8),
            Keys::Upper | Keys::Lower | Keys::Utf16 | Keys::PythonPickle | Keys::RustStr => {
                let encoded = self.0.encode(&utf8)?;
                Ok(encoded.into_owned().into())
            }
            _ => Err(self.refused(object)),
        }
    }

    fn integer(self, object: &Bound<'_, PyAny>) -> Result<Cow<'static, [u8]>> {
        let bytes = match self.0 {
            Keys::Int32 => object.extract::<i32>().map(|n| n.to_le_bytes().to_vec()),
            // The same bytes as in an unsigned 64-bit column.
            _ => (object.extract::<i64>().map(i64::to_le_bytes))
                .or_else(|_| object.extract::<u64>().map(u64::to_le_bytes))
                .map(|bytes| bytes.to_vec()),
        };
        bytes.map(Cow::Owned).map_err(|_| {
            let expected = match self.0 {
                Keys::Int32 => "from -2**31 to 2**31-1",
                _ => "from -2**63 to 2**64-1",
            };
            Failure::Own(
                "KeyRangeError",
                format!("key: expected an int {expected}, since keys are {}", self.0),
            )
        })
    }

    fn refused(self, object: &Bound<'_, PyAny>) -> Failure {
        let expected = match self.0 {
            Keys::Int32 | Keys::Int64 | Keys::Uint64 => "int or bytes",
            Keys::Float32 | Keys::Float64 => "float or bytes",
            Keys::PythonNumber => "int, bool, a float that is not NaN, or bytes",
            _ => "str or bytes",
        };
        Failure::no_key(format!(
            "key: expected {expected}, since the filter was opened with keys as {}, got {}",
            self.0,
            key::type_name(object)
        ))
    }
}

/// Many keys, encoded block by block, and their answers. A failure acts as in a loop: the work is done for the keys
/// before.
pub(crate) struct Blocks<'py, W> {
    py: Python<'py>,
    bytes: Vec<u8>,
    /// The range of each key; `None` for a null.
    keys: Vec<Option<Range<usize>>>,
    lookout: Lookout,
    answers: Answers,
    /// The work for the keys of a block, without the GIL.
    work: W,
}

impl<'py, W: FnMut(&[&[u8]], &mut [bool]) -> Result<()> + Send> Blocks<'py, W> {
    pub(crate) fn new(py: Python<'py>, answers: Answers, work: W) -> Self {
        Self {
            py,
            bytes: Vec::new(),
            keys: Vec::new(),
            lookout: Lookout::new(),
            answers,
            work,
        }
    }

    /// The answers for objects, which `encode` turns into bytes.
    pub(crate) fn of_objects(
        mut self,
        keys: &Bound<'py, PyAny>,
        encode: impl for<'a> Fn(&'a Bound<'py, PyAny>) -> Result<Cow<'a, [u8]>>,
    ) -> Result<Bound<'py, PyAny>> {
        key::refuse_one_key(keys)?;
        let mut all = || {
            let (objects, nulls) = objects_of(keys)?;
            for object in Objects::of(&objects)? {
                let object = object?;
                if nulls && object.is_none() {
                    self.push(None)?;
                } else {
                    self.push(Some(&encode(&object)?))?;
                }
            }
            Ok(())
        };
        let done = all();
        self.finish(keys, done)
    }

    /// The answers for another library's column, where keys have the same bytes as in Tamis filters.
    pub(crate) fn of_column(mut self, keys: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        let mut held = Held::of(&KeyRule::EXACT, keys)?;
        let mut all = || {
            let mut buffer = Buffer::default();
            for column in held.columns()? {
                for row in 0..column.len {
                    let key = column.key(&KeyRule::EXACT, row, &mut buffer)?;
                    self.push(key.map(|(Key::Text(key) | Key::Exact(key))| key))?;
                }
            }
            Ok(())
        };
        let done = all();
        self.finish(keys, done)
    }

    fn push(&mut self, key: Option<&[u8]>) -> Result<()> {
        let start = self.bytes.len();
        self.keys.push(key.map(|key| {
            self.bytes.extend_from_slice(key);
            start..self.bytes.len()
        }));
        if self.keys.len() == BLOCK {
            return self.flush();
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let (keys, bytes) = (&self.keys, &self.bytes);
        let (lookout, answers, work) = (&mut self.lookout, &mut self.answers, &mut self.work);
        let done = self.py.detach(|| {
            lookout.look()?;
            let places = keys.iter().flatten();
            let slices: Vec<&[u8]> = places.map(|place| &bytes[place.clone()]).collect();
            let mut found = vec![false; slices.len()];
            work(&slices, &mut found)?;
            if found.len() < keys.len() {
                let mut some = found.into_iter();
                let answer = |key: &Option<_>| key.is_some() && some.next().unwrap_or(false);
                found = keys.iter().map(answer).collect();
            }
            answers.extend(&found);
            Ok(())
        });
        self.keys.clear();
        self.bytes.clear();
        done
    }

    fn finish(mut self, keys: &Bound<'py, PyAny>, done: Result<()>) -> Result<Bound<'py, PyAny>> {
        self.flush()?;
        done?;
        Ok(self.answers.like(keys)?)
    }
}

/// The objects of a list, which are prefetched, or of any other iterable.
enum Objects<'a, 'py> {
    List(&'a Bound<'py, PyList>, usize),
    Other(Bound<'py, PyIterator>),
}

impl<'a, 'py> Objects<'a, 'py> {
    fn of(objects: &'a Bound<'py, PyAny>) -> PyResult<Self> {
        Ok(match objects.cast_exact::<PyList>() {
            Ok(list) => Self::List(list, 0),
            Err(_) => Self::Other(objects.try_iter()?),
        })
    }
}

impl<'py> Iterator for Objects<'_, 'py> {
    type Item = PyResult<Bound<'py, PyAny>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        /// How many objects to prefetch ahead.
        const AHEAD: usize = 16;
        match self {
            Self::List(list, next) => {
                let (at, len) = (*next, list.len());
                if at >= len {
                    return None;
                }
                *next += 1;
                if at + AHEAD < len {
                    // SAFETY: a borrowed reference that isn't dereferenced.
                    let later = unsafe {
                        ffi::PyList_GetItem(list.as_ptr(), (at + AHEAD) as ffi::Py_ssize_t)
                    };
                    if later.is_null() {
                        // Another thread has just shortened the list.
                        // SAFETY: the thread is attached.
                        unsafe { ffi::PyErr_Clear() }
                    } else {
                        prefetch(later.cast())
                    }
                }
                Some(list.get_item(at))
            }
            Self::Other(objects) => objects.next(),
        }
    }
}

/// What to iterate keys from, and whether None stands for a row without a key: columns of other libraries are turned
/// into lists of Python's own objects.
fn objects_of<'py>(keys: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, bool)> {
    let objects = match key::library(keys)?.as_str() {
        "numpy" => keys.call_method0("tolist")?,
        // pandas has several kinds of missing values.
        "pandas" => {
            let there = keys.call_method0("notna")?;
            let objects = keys.call_method1("astype", ("object",))?;
            let objects = objects.call_method1("where", (there, keys.py().None()))?;
            objects.call_method0("tolist")?
        }
        "polars" => keys.call_method0("to_list")?,
        "pyarrow" => keys.call_method0("to_pylist")?,
        _ => return Ok((keys.clone(), false)),
    };
    Ok((objects, true))
}

/// An int, or another library's integer; bool doesn't count.
fn is_integer(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    if object.is_instance_of::<PyBool>() {
        return Ok(false);
    }
    Ok(object.is_instance_of::<PyInt>() || object.hasattr("__index__")?)
}
