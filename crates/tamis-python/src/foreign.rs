//! `tamis.open_foreign`: other systems' filters.

use crate::argument;
use crate::error::{Failure, Result};
use crate::foreign_keys::{Blocks, Encoder};
use crate::interrupt;
use crate::lock::{Holds, Mark, Shared};
use crate::mask::Answers;
use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyDict};
use std::ffi::CString;
use std::io::Write;
use std::path::{Path, PathBuf};
use tamis::internals::file::{Existing, Replacement, open_regular};
use tamis_formats::pybloomfilter::Hash;
use tamis_formats::{Bytes, Error, Foreign, Format, Hint, Keys};

/// Opens a filter file of another system: Guava, Spark, Parquet, ORC, DCSO's
/// bloom and poppy, RedisBloom, pybloomfiltermmap3, bits-and-blooms, npm's
/// bloom-filters, BIP 37, Cassandra, LevelDB, RocksDB, valkey-bloom, rbloom,
/// abloom, pyprobables, and Rust's, Go's and C's fastbloom, xorf and FastFilter.
///
/// >>> import tamis
/// >>> _ = open("seen.guava", "wb").write(bytes([1, 7, 0, 0, 0, 1]) + bytes(8))
/// >>> seen = tamis.open_foreign("seen.guava", keys="utf8")
/// >>> "key" in seen, seen.add("key"), "key" in seen
/// (False, True, True)
/// >>> seen.save("seen.guava")                    # what Java reads
///
/// The file is told apart from other formats by what it says and by its length;
/// where that is not enough, ``format`` names it. Few files say how their keys
/// became bytes: then ``keys`` must, as "utf8", "utf16", "int32", "int64",
/// "uint64", "rust-str", "python-pickle", "float32", "float64", "python-number" (what ``hash()`` makes of int, float and
/// bool), "upper" or "lower"; the error names the choices. Where a file has several filters, ``name`` is the column (Parquet, ORC) or the key
/// (RDB). ``hash`` names how a pybloomfilter file hashes, "murmur", "murmur32", "sha512", "superfast" or "djb":
/// not every file says it, and there is a warning where it may be another.
///
/// The file is mapped and asked where it is. Keys that are added stay in memory
/// until they are saved. It must not be cut by others meanwhile.
#[pyfunction]
#[pyo3(signature = (path, format=None, keys=None, *, name=None, hash=None))]
pub(crate) fn open_foreign(
    py: Python<'_>,
    #[pyo3(from_py_with = argument::path)] path: PathBuf,
    #[pyo3(from_py_with = argument::format)] format: Option<String>,
    #[pyo3(from_py_with = argument::keys)] keys: Option<String>,
    #[pyo3(from_py_with = argument::name)] name: Option<PyBackedStr>,
    #[pyo3(from_py_with = argument::hash)] hash: Option<String>,
) -> Result<ForeignFilter> {
    let named = |what: &str, error: String| Failure::parameter(format!("{what}: {error}"));
    let format: Option<Format> = format
        .map(|format| format.parse().map_err(|error| named("format", error)))
        .transpose()?;
    let keys: Option<Keys> = keys
        .map(|keys| keys.parse().map_err(|error| named("keys", error)))
        .transpose()?;
    let hash: Option<Hash> = hash
        .map(|hash| hash.parse().map_err(|error| named("hash", error)))
        .transpose()?;
    let place = path.clone();
    let filter = interrupt::apart(py, move || map(&place, format, name, hash))??;
    if let Some(doubt) = filter.facts().doubt() {
        let text = format!(
            "{}: {doubt}; open_foreign(path, hash=\"…\") names it",
            path.display()
        );
        let text = CString::new(text).unwrap_or_default(); // a path that was opened contains no NUL
        PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, 1)?;
    }
    let encoding = filter.format().encoding(filter.keys(), keys)?;
    Ok(ForeignFilter {
        filter: Shared::new(filter),
        encoder: Encoder(encoding),
        path,
    })
}

fn map(
    path: &Path,
    format: Option<Format>,
    name: Option<PyBackedStr>,
    hash: Option<Hash>,
) -> Result<Foreign<'static>> {
    let file = open_regular(path, false)?;
    let bytes = Bytes::map(&file).map_err(|source| tamis::Error::Io {
        action: "mapping",
        path: Some(path.to_owned()),
        source,
    })?;
    let hint = Hint {
        format,
        name: name.as_ref().map(|name| name.as_bytes()),
        hash,
        ..Hint::default()
    };
    Ok(tamis_formats::open(bytes, hint)?)
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let class = match error {
            Error::Corrupt { .. }
            | Error::Unknown
            | Error::Gzip { .. }
            | Error::Unpacked { .. } => "CorruptError",
            Error::Ambiguous { .. }
            | Error::KeysNeeded { .. }
            | Error::KeysUnfit { .. }
            | Error::Several { .. }
            | Error::Parameter { .. } => "ParameterError",
            Error::Key { .. } => "KeyTypeError",
            Error::ReadOnly { .. } | Error::Unable { .. } => "UnableError",
            Error::Full { .. } => "FullError",
            Error::Unlike { .. } => "UnlikeError",
            _ => "TamisError",
        };
        let way_out = match error {
            Error::Ambiguous { .. } => "; open_foreign(path, format=\"…\")",
            Error::KeysNeeded { .. } | Error::KeysUnfit { .. } => {
                "; open_foreign(path, keys=\"…\")"
            }
            Error::Several { .. } => "; open_foreign(path, name=\"…\")",
            _ => "",
        };
        Self::Own(class, format!("{error}{way_out}"))
    }
}

/// A filter of another system, opened by `open_foreign`.
///
/// Keys are what its system takes them for: str for text, int for "int32" and
/// "int64", float for "float32" and "float64". Bytes are the bytes that were
/// hashed; under "upper" and "lower" their case is changed as that of text.
#[pyclass(frozen, module = "tamis", name = "ForeignFilter")]
pub(crate) struct ForeignFilter {
    filter: Shared<Foreign<'static>>,
    encoder: Encoder,
    path: PathBuf,
}

// SAFETY: the value is part of the object, which the reference keeps in place.
unsafe impl Holds for Py<ForeignFilter> {
    type Value = Foreign<'static>;

    fn shared(&self) -> &Shared<Foreign<'static>> {
        &self.get().filter
    }
}

impl ForeignFilter {
    /// For slow reads, such as of the whole filter.
    fn read<R: Send + 'static>(
        slf: &Bound<'_, Self>,
        work: impl FnOnce(&Foreign<'_>) -> R + Send + 'static,
    ) -> Result<R> {
        let mark = Mark::on(slf.clone().unbind(), slf.py());
        Ok(interrupt::apart(slf.py(), move || mark.read(work))?)
    }

    /// Does `work` with the bytes of many keys, one block at a time, without the GIL.
    fn batch<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        answers: Answers,
        work: impl Fn(&Mark<&Shared<Foreign<'static>>>, &[&[u8]], &mut [bool]) -> Result<(), Error>
        + Sync,
    ) -> Result<Bound<'py, PyAny>> {
        let mark = Mark::on(&self.filter, keys.py());
        let work = |keys: &[&[u8]], out: &mut [bool]| Ok(work(&mark, keys, out)?);
        Blocks::new(keys.py(), answers, work).of_objects(keys, |key| self.encoder.encode(key))
    }

    fn insert_all<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        answers: Answers,
    ) -> Result<Bound<'py, PyAny>> {
        self.batch(keys, answers, |mark, keys, new| {
            mark.write(|filter| {
                for (key, new) in keys.iter().zip(new) {
                    *new = filter.insert(key)?;
                }
                Ok(())
            })
        })
    }
}

#[pymethods]
impl ForeignFilter {
    fn __contains__(&self, key: &Bound<'_, PyAny>) -> Result<bool> {
        let key_bytes = self.encoder.encode(key)?;
        let answer = self
            .filter
            .with(key.py(), |filter| filter.contains(&key_bytes));
        Ok(answer)
    }

    /// Asks many keys; returns for each whether it may have been added. ``keys`` is any
    /// iterable of keys, or a column of numpy, pandas, pyarrow or polars; the
    /// answers come in the same kind of object. A null is no key: its answer is
    /// False.
    #[pyo3(signature = (keys, /))]
    fn contains_many<'py>(&self, keys: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        self.batch(keys, Answers::wanted(keys)?, |mark, keys, found| {
            mark.read(|filter| filter.contains_many(keys, found));
            Ok(())
        })
    }

    /// Adds a key as the filter's own system would; returns whether it was new. It
    /// stays in memory until it is saved.
    #[pyo3(signature = (key, /))]
    fn add(&self, key: &Bound<'_, PyAny>) -> Result<bool> {
        let key_bytes = self.encoder.encode(key)?;
        let new = self
            .filter
            .with(key.py(), |filter| filter.insert(&key_bytes))?;
        Ok(new)
    }

    /// Adds many keys, and answers nothing; see `add_many`.
    #[pyo3(signature = (keys, /))]
    fn update(&self, keys: &Bound<'_, PyAny>) -> Result<()> {
        self.insert_all(keys, Answers::Dropped).map(drop)
    }

    /// Adds many keys; returns whether each was new. Keys and answers are as
    /// those of `contains_many`. If something is no key, or the filter refuses
    /// one, keys before it may be in.
    #[pyo3(signature = (keys, /))]
    fn add_many<'py>(&self, keys: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        self.insert_all(keys, Answers::wanted(keys)?)
    }

    /// Removes one copy of a key from a cuckoo filter; returns whether it was there. Remove
    /// only what was added: another key may go instead.
    #[pyo3(signature = (key, /))]
    fn remove(&self, key: &Bound<'_, PyAny>) -> Result<bool> {
        let key_bytes = self.encoder.encode(key)?;
        let removed = self
            .filter
            .with(key.py(), |filter| filter.remove(&key_bytes))?;
        Ok(removed)
    }

    /// Writes the file for its own system; what is there is replaced as a whole
    /// or not at all. A filter is never converted: it stays what it was.
    #[pyo3(signature = (path, /))]
    fn save(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = argument::path)] path: PathBuf,
    ) -> Result<()> {
        Self::read(slf, move |filter| {
            let mut file = Replacement::begin(&path, Existing::Replace)?;
            let written = file.file().write_all(&filter.to_bytes());
            written.map_err(|source| tamis::Error::Io {
                action: "writing",
                path: Some(path),
                source,
            })?;
            file.place()?;
            Ok::<_, tamis::Error>(())
        })??;
        Ok(())
    }

    fn __bytes__<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyBytes>> {
        let bytes = Self::read(slf, |filter| filter.to_bytes())?;
        Ok(PyBytes::new(slf.py(), &bytes))
    }

    /// The format: "guava", "dcso", "parquet" and so on.
    #[getter]
    fn format(&self, py: Python<'_>) -> &'static str {
        self.filter.with(py, |filter| filter.format().name())
    }

    /// How keys become bytes: "utf8", "int64" and so on.
    #[getter]
    fn key_encoding(&self) -> &'static str {
        self.encoder.0.name()
    }

    /// The file.
    #[getter]
    fn path(&self) -> &Path {
        &self.path
    }

    /// What the file says of itself and what can be computed from it, as a
    /// dict; reads all of it. ``capacity`` and ``p`` are what it was made for,
    /// None where it does not say; ``keys`` is its own count if
    /// ``keys_counted``, else estimated from how full it is (None if every bit
    /// is set); ``hashes`` is the number of bits a key has.
    ///
    /// >>> import tamis
    /// >>> _ = open("seen.guava", "wb").write(bytes([1, 7, 0, 0, 0, 1]) + bytes(8))
    /// >>> info = tamis.open_foreign("seen.guava", keys="utf8").info()
    /// >>> info["format"], info["capacity"], info["hashes"], info["fill"], info["p_now"]
    /// ('guava', None, 7, 0.0, 0.0)
    fn info<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyDict>> {
        let (py, this) = (slf.py(), slf.get());
        let (facts, keys_now, fill, rate_now, hashes) = Self::read(slf, |filter| {
            (
                filter.facts(),
                filter.keys_now(),
                filter.fill(),
                filter.rate_now(),
                filter.hashes(),
            )
        })?;
        let keys = facts.keys.or(keys_now.map(|keys| keys.round() as u64));
        let info = PyDict::new(py);
        info.set_item("format", this.format(py))?;
        info.set_item("key_encoding", this.key_encoding())?;
        info.set_item("capacity", facts.capacity)?;
        info.set_item("p", facts.rate)?;
        info.set_item("keys", keys)?;
        info.set_item("keys_counted", facts.keys.is_some())?;
        info.set_item("fill", fill)?;
        info.set_item("p_now", rate_now)?;
        info.set_item("hashes", hashes)?;
        info.set_item("path", this.path())?;
        Ok(info)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!(
            "<tamis.ForeignFilter {}, keys as {}, in {}>",
            self.format(py),
            self.key_encoding(),
            self.path.display()
        )
    }
}
