//! `pybloomfilter.BloomFilter`: the class of pybloomfiltermmap3 0.6.3.
//!
//! Its behaviour, and differences from the original, are described in `docs/pybloomfilter.md`.

mod access;
mod arguments;
mod files;

use std::ffi::OsString;
use std::io;
use std::os::fd::AsRawFd;

use pyo3::exceptions::{PyMemoryError, PyOverflowError, PyPendingDeprecationWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyInt, PyList, PyType};
use pyo3::{import_exception, intern};

use access::{closed, mapped, writable};
use arguments::{data_of, path, shape, with_key};
use files::{create, io_error, make_way, os_error, same_file, warn};
use tamis_formats::pybloomfilter::{Hash, Shape};
use tamis_python_core::pybloom::file::{self, OpenError};
use tamis_python_core::pybloom::filter::Filter;

use crate::interrupt::{self, Lookout};
use crate::lock::{Mark, Shared};
use crate::method::{self, Add};

import_exception!(pybloomfilter, IndeterminateCountError);

const PERM: u32 = 0o755;

/// A new Bloom filter for ``capacity`` keys at a false-positive rate of
/// ``error_rate``: in the file ``filename``, or in memory without one.
///
/// The capacity is not enforced: a filter with more keys has a higher rate.
///
/// ``hash_seeds`` are numbers of at most 32 bits, one for each hash; random ones
/// are drawn without. ``data_array`` is that of another filter in memory, whose
/// ``hash_seeds`` must be given as well. ``hash`` is for those of older versions:
/// see ``open``.
///
/// A filter that exists under that name is replaced, with a RuntimeWarning if it
/// holds keys; any other file is a FileExistsError. Use ``open`` to go on with
/// an existing filter.
///
/// >>> fruit = BloomFilter(100000, 0.1)
/// >>> fruit.update(('apple', 'pear', 'orange', 'apple'))
/// >>> len(fruit)
/// 3
/// >>> 'apple' in fruit, 'mike' in fruit
/// (True, False)
#[pyclass(module = "pybloomfilter", subclass, frozen)]
pub(crate) struct BloomFilter {
    /// None once closed.
    filter: Shared<Option<Filter>>,
}

impl Add for BloomFilter {
    const DOC: &'static std::ffi::CStr = c"add($self, item, /)
--

Adds a key; True if it was there already.

A str is its UTF-8 bytes, bytes are themselves, and of any other object it is
``hash(item)``: use those whose hash is the same in every process.";

    #[inline]
    fn add(this: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        this.get().add_key(key)
    }
}

#[pymethods]
impl BloomFilter {
    #[new]
    #[pyo3(signature = (capacity, error_rate, filename=None, perm=Some(PERM), hash_seeds=None, data_array=None, hash=None))]
    #[pyo3(
        text_signature = "(capacity, error_rate, filename=None, perm=0o755, hash_seeds=None, data_array=None, hash=None)"
    )]
    fn new(
        capacity: &Bound<'_, PyAny>,
        error_rate: &Bound<'_, PyAny>,
        filename: Option<&Bound<'_, PyAny>>,
        perm: Option<u32>,
        hash_seeds: Option<&Bound<'_, PyAny>>,
        data_array: Option<&Bound<'_, PyAny>>,
        hash: Option<&str>,
    ) -> PyResult<Self> {
        let py = capacity.py();
        if capacity.is(to_be_opened(py)?) {
            return Ok(Self {
                filter: Shared::new(None),
            });
        }
        let filename = match filename {
            Some(name) if name.is_truthy()? => Some(path(name)?),
            _ => None,
        };
        let data = data_array.map(data_of).transpose()?;
        if data.is_some() && filename.is_some() {
            return Err(PyValueError::new_err(
                "data_array cannot be used for an mmapped filter.",
            ));
        }
        if data.is_some() && hash_seeds.is_none() {
            return Err(PyValueError::new_err(
                "hash_seeds must be specified if a data_array is provided.",
            ));
        }
        let mut shape = shape(capacity, error_rate, hash_seeds)?;
        if let Some(hash) = arguments::hash(hash)? {
            shape.hash = hash;
        }
        if let Some(data) = &data {
            shape.bits = 8 * data.len() as u64;
            if shape.bits == 0 {
                return Err(PyValueError::new_err("data_array must not be empty"));
            }
        }
        let filter = match filename {
            Some(path) => create(py, path, perm, shape)?,
            None => Filter::in_memory(shape, data.as_deref())
                .map_err(|_| PyMemoryError::new_err("not enough memory for the filter"))?,
        };
        Ok(Self {
            filter: Shared::new(Some(filter)),
        })
    }

    /// Opens the filter in a file. It can't be changed if there is no ``w`` in
    /// the mode.
    ///
    /// Files of the older pybloomfiltermmap may be of another hash, which they
    /// don't say: "murmur32" (0.3.12 to 0.3.14), "sha512" (0.3.6 to 0.3.11),
    /// "superfast" (0.3.1 and 0.3.2) or "djb" (up to 0.2.0). Where its numbers leave
    /// it open, there is a RuntimeWarning unless ``hash`` names it.
    #[classmethod]
    #[pyo3(signature = (filename, mode="rw", *, hash=None))]
    fn open<'py>(
        cls: &Bound<'py, PyType>,
        filename: &Bound<'py, PyAny>,
        mode: &str,
        hash: Option<&str>,
    ) -> PyResult<Bound<'py, Self>> {
        let path = path(filename)?;
        let hash = arguments::hash(hash)?;
        let filter =
            Filter::open(path.clone(), mode.contains('w'), hash).map_err(|error| match error {
                OpenError::Io(error) => os_error(&error, &path),
                OpenError::Flaw(flaw) => PyValueError::new_err(format!(
                    "Invalid BloomFilter file: {}: {flaw}",
                    path.display()
                )),
            })?;
        if !filter.other_hashes.is_empty() {
            let others: Vec<&str> = filter.other_hashes.iter().map(|hash| hash.name()).collect();
            let text = format!(
                "{}: the file does not say how its keys were hashed: taken for {}, it may be {}; \
                 open(..., hash=...) names it",
                path.display(),
                filter.hash(),
                others.join(" or "),
            );
            warn(cls.py(), text)?;
        }
        instance(cls, filter)
    }

    /// Writes what ``to_base64`` made to the file ``filename`` and opens it;
    /// ``hash`` as ``open`` has it.
    #[classmethod]
    #[pyo3(signature = (filename, string, perm=PERM, *, hash=None))]
    #[pyo3(text_signature = "($cls, filename, string, perm=0o755, *, hash=None)")]
    fn from_base64<'py>(
        cls: &Bound<'py, PyType>,
        filename: &Bound<'py, PyAny>,
        string: &Bound<'py, PyAny>,
        perm: u32,
        hash: Option<&str>,
    ) -> PyResult<Bound<'py, Self>> {
        let py = cls.py();
        let path = path(filename)?;
        let decode = py.import("base64")?.getattr("b64decode")?;
        let decompress = py.import("zlib")?.getattr("decompress")?;
        let mut bytes = string.clone();
        for _ in 0..2 {
            bytes = decompress.call1((decode.call1((bytes,))?,))?;
        }
        let bytes = bytes.cast_into::<PyBytes>()?;
        let bytes = bytes.as_bytes();
        Shape::decode(bytes, bytes.len() as u64, arguments::hash(hash)?)
            .map_err(|flaw| PyValueError::new_err(format!("Invalid BloomFilter text: {flaw}")))?;
        make_way(py, &path)?;
        file::create_with(&path, perm, bytes).map_err(|e| os_error(&e, &path))?;
        Self::open(cls, filename, "rw", hash)
    }

    #[classattr]
    fn add(py: Python<'_>) -> PyResult<Py<PyAny>> {
        method::add::<Self>(py)
    }

    /// Adds every key of an iterable.
    #[pyo3(signature = (iterable, /))]
    fn update(slf: &Bound<'_, Self>, iterable: &Bound<'_, PyAny>) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        // A subclass may override `add`.
        let own = slf.get_type().is(py.get_type::<Self>());
        let mut lookout = Lookout::new();
        for (count, item) in iterable.try_iter()?.enumerate() {
            if count % 1024 == 0 {
                lookout.look()?;
            }
            if own {
                this.add_key(&item?)?;
            } else {
                slf.call_method1(intern!(py, "add"), (item?,))?;
            }
        }
        Ok(())
    }

    /// Adds every key of an iterable: the older name of ``update``.
    #[pyo3(signature = (iterable, /))]
    fn extend(slf: &Bound<'_, Self>, iterable: &Bound<'_, PyAny>) -> PyResult<()> {
        Self::update(slf, iterable)
    }

    fn __contains__(&self, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        with_key(item, |key| {
            self.with(item.py(), |filter| Ok(filter.contains(key)))
        })
    }

    /// How many different keys were added, but for false positives: exact for
    /// as long as that is known, else ``approx_len``.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let len = match self._exact_len(py)? {
            Some(len) => len,
            None => self.approx_len(py)?,
        };
        usize::try_from(len).map_err(|_| PyOverflowError::new_err("the length is too large"))
    }

    /// The number of keys, if that is known and not only estimated.
    fn _exact_len(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.get(py, Filter::exact_len)
    }

    /// An estimate of the number of keys, from the number of bits that are set.
    #[getter]
    fn approx_len(&self, py: Python<'_>) -> PyResult<u64> {
        self.get(py, |filter| filter.estimated_len())?
            .ok_or_else(|| {
                IndeterminateCountError::new_err("every bit is set: that is any number of keys")
            })
    }

    /// Removes all keys.
    fn clear_all(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |filter| {
            writable(filter)?.clear();
            Ok(())
        })
    }

    /// Waits until the file is on disk.
    fn sync(slf: &Bound<'_, Self>) -> PyResult<()> {
        let mark = Mark::on(slf.clone().unbind(), slf.py());
        interrupt::apart(slf.py(), move || {
            mark.write(|filter| {
                let filter = writable(filter.as_mut().ok_or_else(closed)?)?;
                filter.sync().map_err(|e| io_error(filter, &e))
            })
        })?
    }

    /// Closes the file, or discards a filter in memory. Whatever is done with
    /// the filter afterwards is a ValueError.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let Some(mut filter) = self.filter.with(py, Option::take) else {
            return Ok(());
        };
        interrupt::apart(py, move || filter.sync().map_err(|e| io_error(&filter, &e)))?
    }

    /// The file descriptor.
    fn fileno(&self, py: Python<'_>) -> PyResult<i32> {
        self.with(py, |filter| {
            Ok(mapped(filter, "access .fileno on")?.file.as_raw_fd())
        })
    }

    /// Copies the file to ``filename`` and opens the copy.
    fn copy<'py>(
        slf: &Bound<'py, Self>,
        filename: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, Self>> {
        let (py, this) = (slf.py(), slf.get());
        let from = this.path(py, "call .copy on")?;
        let to = path(filename)?;
        if same_file(&from, &to) {
            let error = py.import("shutil")?.getattr("SameFileError")?;
            let text = format!("{} and {} are the same file", from.display(), to.display());
            return Err(PyErr::from_value(error.call1((text,))?));
        }
        make_way(py, &to)?;
        let hash = this.get(py, |filter| filter.hash().name())?;
        this.with(py, |filter| Ok(filter.copy_to(&to)))?
            .map_err(|e| os_error(&e, &to))?;
        Self::open(&slf.get_type(), filename, "rw", Some(hash))
    }

    /// A new empty filter in the file ``filename`` that can be united and
    /// intersected with this one.
    #[pyo3(signature = (filename, perm=PERM))]
    #[pyo3(text_signature = "($self, filename, perm=0o755)")]
    fn copy_template<'py>(
        slf: &Bound<'py, Self>,
        filename: &Bound<'py, PyAny>,
        perm: u32,
    ) -> PyResult<Bound<'py, Self>> {
        let (py, this) = (slf.py(), slf.get());
        let to = path(filename)?;
        let (shape, from) = this.get(py, |filter| {
            let from = filter.bits.file().map(|file| file.path.clone());
            (filter.shape(), from)
        })?;
        if from.is_some_and(|from| same_file(&from, &to)) {
            let error = io::Error::from_raw_os_error(libc::EINVAL);
            return Err(os_error(&error, &to));
        }
        let filter = create(py, to, Some(perm), shape)?;
        instance(&slf.get_type(), filter)
    }

    /// Adds all keys of a filter made by ``copy_template``, or with the same
    /// capacity, error_rate and hash_seeds. Any other is a ValueError.
    fn union<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        Self::combine(slf, other, Filter::unite)?;
        Ok(slf.clone())
    }

    /// Keeps what is in the other filter too; see ``union``.
    fn intersection<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, Self>,
    ) -> PyResult<Bound<'py, Self>> {
        Self::combine(slf, other, Filter::intersect)?;
        Ok(slf.clone())
    }

    fn __ior__(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<()> {
        Self::combine(slf, other, Filter::unite)
    }

    fn __iand__(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<()> {
        Self::combine(slf, other, Filter::intersect)
    }

    /// The file as text, compressed.
    fn to_base64<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let path = self.path(py, "access .name on")?;
        let contents = self
            .with(py, |filter| Ok(mapped(filter, "read")?.contents()))?
            .map_err(|e| os_error(&e, &path))?;
        // Uses Python's zlib, so that the text is identical to the original's.
        let compress = py.import("zlib")?.getattr("compress")?;
        let encode = py.import("base64")?.getattr("b64encode")?;
        let inner = encode.call1((compress.call1((PyBytes::new(py, &contents), 9))?,))?;
        encode.call1((compress.call1((inner,))?,))
    }

    /// Pickled with its bits; what comes back is a filter in memory.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let bits = this.num_bits(py)?;
        if !bits.is_multiple_of(8) {
            // A data_array has whole bytes, so the restored filter would deny keys.
            return Err(PyValueError::new_err(format!(
                "a filter of {bits} bits, no multiple of 8, can't be pickled: use to_base64"
            )));
        }
        let arguments = (
            this.capacity(py)?,
            this.error_rate(py)?,
            py.None(),
            py.None(),
            this.hash_seeds(py)?,
            this.data_array(py)?,
        );
        let mut arguments = arguments.into_pyobject(py)?.into_any();
        // The original only knows this hash, and reads the pickle.
        let hash = this.hash(py)?;
        if hash != Hash::Murmur.name() {
            arguments = arguments.add((hash,))?;
        }
        Ok((slf.get_type(), arguments).into_pyobject(py)?.into_any())
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let (py, this) = (slf.py(), slf.get());
        Ok(format!(
            "<{} capacity: {}, error: {:.3}, num_hashes: {}>",
            slf.get_type().name()?,
            this.capacity(py)?,
            this.error_rate(py)?,
            this.num_hashes(py)?
        ))
    }

    /// How many keys the filter is made for.
    #[getter]
    fn capacity(&self, py: Python<'_>) -> PyResult<u64> {
        self.get(py, |filter| filter.capacity)
    }

    /// The false-positive rate at that many keys.
    #[getter]
    fn error_rate(&self, py: Python<'_>) -> PyResult<f64> {
        self.get(py, |filter| filter.error_rate)
    }

    /// How many bits a key sets.
    #[getter]
    fn num_hashes(&self, py: Python<'_>) -> PyResult<usize> {
        self.get(py, |filter| filter.seeds().len())
    }

    /// How many bits the filter has.
    #[getter]
    fn num_bits(&self, py: Python<'_>) -> PyResult<u64> {
        self.get(py, |filter| filter.num_bits())
    }

    /// How many bits are set.
    #[getter]
    fn bit_count(&self, py: Python<'_>) -> PyResult<u64> {
        self.get(py, |filter| filter.bits.count_ones())
    }

    /// The seeds of the hashes, as array('I').
    #[getter]
    fn hash_seeds<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let seeds = self.get(py, |filter| filter.seeds().to_vec())?;
        let seeds = PyList::new(py, seeds)?;
        py.import("array")?.getattr("array")?.call1(("I", seeds))
    }

    /// How keys are hashed: "murmur", or as an older version did.
    #[getter]
    fn hash(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.get(py, |filter| filter.hash().name())
    }

    /// The bits, as bytes.
    #[getter]
    fn data_array<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let len = self.get(py, |filter| filter.bits.byte_len())?;
        PyBytes::new_with(py, len, |bytes| {
            self.get(py, |filter| filter.bits.store(bytes))
        })
    }

    /// The bits, as one big-endian number.
    #[getter]
    fn bit_array<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.get_type::<PyInt>()
            .call_method1("from_bytes", (self.data_array(py)?, "big"))
    }

    /// The name of the file.
    #[getter]
    fn filename(&self, py: Python<'_>) -> PyResult<OsString> {
        Ok(self.path(py, "access .name on")?.into_os_string())
    }

    /// The name of the file as bytes: deprecated, use ``filename``.
    #[getter]
    fn name<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        PyErr::warn(
            py,
            &py.get_type::<PyPendingDeprecationWarning>(),
            c"name will be deprecated in future versions, use filename instead",
            1,
        )?;
        let path = self.path(py, "access .name on")?;
        Ok(PyBytes::new(py, path.as_os_str().as_encoded_bytes()))
    }

    /// Whether the filter was opened for reading only.
    #[getter]
    fn read_only(&self, py: Python<'_>) -> PyResult<bool> {
        self.get(py, |filter| filter.bits.read_only())
    }
}

/// Replaces the capacity of a filter that is about to be opened: a subclass of `BloomFilter` is called with it, as in
/// the original.
fn to_be_opened(py: Python<'_>) -> PyResult<&Py<PyAny>> {
    static MARK: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    MARK.get_or_try_init(py, || {
        let object = py.import("builtins")?.getattr("object")?;
        Ok(object.call0()?.unbind())
    })
}

fn instance<'py>(cls: &Bound<'py, PyType>, filter: Filter) -> PyResult<Bound<'py, BloomFilter>> {
    let instance = cls.call1((to_be_opened(cls.py())?, 0))?;
    let instance = instance.cast_into::<BloomFilter>()?;
    let replaced = (instance.get().filter).with(cls.py(), |slot| slot.replace(filter));
    drop(replaced);
    Ok(instance)
}
