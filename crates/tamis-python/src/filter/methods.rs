//! The methods of `tamis.Filter` that Python sees.

use super::backing::{Backing, ask, get, read};
use super::making::{self, Start, Wanted};
use super::sets::{self, Combination};
use super::{Filter, check_callable, information, pickle};
use crate::argument;
use crate::buffer;
use crate::elsewhere;
use crate::error::{Failure, Result};
use crate::interrupt;
use crate::key_hash::KeyHash;
use crate::lock::{Access, Mark};
use crate::method;
use crate::options::{self, Count, Need, Textbook};
use crate::progress::Progress;
use crate::when::Times;
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyDict, PyTuple, PyType};
use std::path::PathBuf;

#[pymethods]
impl Filter {
    #[new]
    #[pyo3(signature = (n=None, p=None, *, size=None, bits=None, hashes=None, kind=None, delete=false, grow=false, seed=None, keyed=false, key=None, key_file=None, ignore_case=false, url=false, values=1, hash_func=None))]
    fn new(
        py: Python<'_>,
        n: Option<Start>,
        #[pyo3(from_py_with = argument::p)] p: Option<f64>,
        #[pyo3(from_py_with = argument::size)] size: Option<Count>,
        #[pyo3(from_py_with = argument::bits)] bits: Option<Count>,
        #[pyo3(from_py_with = argument::hashes)] hashes: Option<u32>,
        #[pyo3(from_py_with = argument::kind)] kind: Option<String>,
        #[pyo3(from_py_with = argument::delete)] delete: bool,
        #[pyo3(from_py_with = argument::grow)] grow: bool,
        #[pyo3(from_py_with = argument::seed)] seed: Option<Count>,
        #[pyo3(from_py_with = argument::keyed)] keyed: bool,
        key: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = argument::key_file)] key_file: Option<PathBuf>,
        #[pyo3(from_py_with = argument::ignore_case)] ignore_case: bool,
        #[pyo3(from_py_with = argument::url)] url: bool,
        #[pyo3(from_py_with = argument::values)] values: usize,
        hash_func: Option<&Bound<'_, PyAny>>,
    ) -> Result<Self> {
        let n = match n {
            Some(Start::Made(filter)) => return Ok(*filter),
            Some(Start::Keys(n)) => Some(n),
            None => None,
        };
        let rule = options::rule_of(ignore_case, url, values)?;
        let wanted = Wanted {
            n,
            p,
            size,
            textbook: Textbook { bits, hashes },
            kind: kind.as_deref(),
            need: Need::of(delete, grow),
            hasher: options::hasher(seed, keyed, key, key_file, rule)?,
        };
        wanted.in_memory(py)?.hashed_by(hash_func)
    }

    /// Creates the file of an empty filter and opens it for adding, memory-mapped;
    /// an existing file is an error unless ``overwrite=True``. The other
    /// arguments are those of `Filter`.
    ///
    /// >>> import tamis
    /// >>> with tamis.Filter.create("seen.tamis", 1_000_000, 0.01) as seen:
    /// ...     seen.add("key")
    /// True
    /// >>> with tamis.Filter.open("seen.tamis") as seen:
    /// ...     "key" in seen
    /// True
    #[classmethod]
    #[pyo3(signature = (path, n=None, p=None, *, size=None, bits=None, hashes=None, kind=None, delete=false, grow=false, seed=None, keyed=false, key=None, key_file=None, ignore_case=false, url=false, values=1, hash_func=None, overwrite=false))]
    fn create<'py>(
        cls: &Bound<'py, PyType>,
        #[pyo3(from_py_with = argument::path)] path: PathBuf,
        #[pyo3(from_py_with = argument::n)] n: Option<Count>,
        #[pyo3(from_py_with = argument::p)] p: Option<f64>,
        #[pyo3(from_py_with = argument::size)] size: Option<Count>,
        #[pyo3(from_py_with = argument::bits)] bits: Option<Count>,
        #[pyo3(from_py_with = argument::hashes)] hashes: Option<u32>,
        #[pyo3(from_py_with = argument::kind)] kind: Option<String>,
        #[pyo3(from_py_with = argument::delete)] delete: bool,
        #[pyo3(from_py_with = argument::grow)] grow: bool,
        #[pyo3(from_py_with = argument::seed)] seed: Option<Count>,
        #[pyo3(from_py_with = argument::keyed)] keyed: bool,
        key: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = argument::key_file)] key_file: Option<PathBuf>,
        #[pyo3(from_py_with = argument::ignore_case)] ignore_case: bool,
        #[pyo3(from_py_with = argument::url)] url: bool,
        #[pyo3(from_py_with = argument::values)] values: usize,
        hash_func: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = argument::overwrite)] overwrite: bool,
    ) -> Result<Bound<'py, Self>> {
        let rule = options::rule_of(ignore_case, url, values)?;
        let wanted = Wanted {
            n: n.map(|n| n.0),
            p,
            size,
            textbook: Textbook { bits, hashes },
            kind: kind.as_deref(),
            need: Need::of(delete, grow).in_file(),
            hasher: options::hasher(seed, keyed, key, key_file, rule)?,
        };
        check_callable(hash_func)?;
        let filter = wanted.in_file(cls.py(), path, overwrite)?;
        filter.hashed_by(hash_func)?.into_object(cls)
    }

    /// Opens a filter file, memory-mapped: it costs the same for any size, and
    /// only the pages that are asked are read.
    ///
    /// ``mode`` is "r" for asking, or "r+" for adding too, together with other
    /// processes that do the same. Bring the secret of a filter whose secret is
    /// kept apart: ``key`` or ``key_file``.
    ///
    /// Adding in place ends the checksum of a file, so "r+" compares all of it
    /// with that first, where there is one: ``verify=False`` leaves that out for
    /// files above 16 MiB, and ``verify=True`` does it for "r", too.
    #[classmethod]
    #[pyo3(signature = (path, mode="r", *, key=None, key_file=None, hash_func=None, verify=None))]
    fn open<'py>(
        cls: &Bound<'py, PyType>,
        #[pyo3(from_py_with = argument::path)] path: PathBuf,
        mode: &str,
        key: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = argument::key_file)] key_file: Option<PathBuf>,
        hash_func: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = argument::verify)] verify: Option<bool>,
    ) -> Result<Bound<'py, Self>> {
        let mut open = options::open(key, key_file)?;
        if let Some(verify) = verify {
            open = open.verify(verify);
        }
        let filter = making::open(cls.py(), path, mode, open)?;
        filter.hashed_by(hash_func)?.into_object(cls)
    }

    /// Reads a whole filter file into memory, from a path, a file object that is
    /// open for reading, or an address that fsspec knows ("s3://…"), and compares it with its checksum; one
    /// above 16 MiB that was last written in place has none. Changes stay in memory until they are saved.
    #[classmethod]
    #[pyo3(signature = (path, *, key=None, key_file=None, hash_func=None))]
    fn load<'py>(
        cls: &Bound<'py, PyType>,
        path: &Bound<'_, PyAny>,
        key: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = argument::key_file)] key_file: Option<PathBuf>,
        hash_func: Option<&Bound<'_, PyAny>>,
    ) -> Result<Bound<'py, Self>> {
        let open = options::open(key, key_file)?;
        let filter = match elsewhere::read(path)? {
            Some(data) => making::decode(&data, open)?,
            None => making::load(cls.py(), argument::path(path)?, open)?,
        };
        filter.hashed_by(hash_func)?.into_object(cls)
    }

    /// The filter in the bytes that ``bytes(filter)`` made, or in those of a
    /// file.
    #[classmethod]
    #[pyo3(signature = (data, *, key=None, key_file=None, hash_func=None))]
    fn from_bytes<'py>(
        cls: &Bound<'py, PyType>,
        data: &Bound<'_, PyAny>,
        key: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = argument::key_file)] key_file: Option<PathBuf>,
        hash_func: Option<&Bound<'_, PyAny>>,
    ) -> Result<Bound<'py, Self>> {
        let open = options::open(key, key_file)?;
        making::decode(data, open)?
            .hashed_by(hash_func)?
            .into_object(cls)
    }

    /// `from_bytes`, under the name that fits `save_bytes`.
    ///
    /// >>> import tamis
    /// >>> seen = tamis.Filter(1000)
    /// >>> seen.add("key")
    /// True
    /// >>> "key" in tamis.Filter.load_bytes(seen.save_bytes())
    /// True
    #[classmethod]
    #[pyo3(signature = (data, *, key=None, key_file=None, hash_func=None))]
    fn load_bytes<'py>(
        cls: &Bound<'py, PyType>,
        data: &Bound<'_, PyAny>,
        key: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = argument::key_file)] key_file: Option<PathBuf>,
        hash_func: Option<&Bound<'_, PyAny>>,
    ) -> Result<Bound<'py, Self>> {
        Self::from_bytes(cls, data, key, key_file, hash_func)
    }

    /// The filter in bytes that another object shares, such as shared memory, for
    /// asking: nothing is copied, and the object keeps its bytes until the filter
    /// is closed. Nobody may change them meanwhile.
    ///
    /// >>> import tamis
    /// >>> seen = tamis.Filter(1000)
    /// >>> seen.add("key")
    /// True
    /// >>> shared = bytearray(memoryview(seen))
    /// >>> with tamis.Filter.from_buffer(shared) as view:
    /// ...     "key" in view, "other" in view
    /// (True, False)
    #[classmethod]
    #[pyo3(signature = (data, *, key=None, key_file=None, hash_func=None))]
    fn from_buffer<'py>(
        cls: &Bound<'py, PyType>,
        data: &Bound<'_, PyAny>,
        key: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = argument::key_file)] key_file: Option<PathBuf>,
        hash_func: Option<&Bound<'_, PyAny>>,
    ) -> Result<Bound<'py, Self>> {
        let open = options::open(key, key_file)?;
        making::borrow(data, open)?
            .hashed_by(hash_func)?
            .into_object(cls)
    }

    /// What a pickle calls.
    #[classmethod]
    fn _unpickled<'py>(
        cls: &Bound<'py, PyType>,
        data: &Bound<'_, PyAny>,
        hash_func: Option<&Bound<'_, PyAny>>,
    ) -> Result<Bound<'py, Self>> {
        Self::from_bytes(cls, data, None, None, hash_func)
    }

    /// The filter in the text that `to_base64` made; white space in it is
    /// ignored.
    #[classmethod]
    #[pyo3(signature = (text, *, key=None, key_file=None, hash_func=None))]
    fn from_base64<'py>(
        cls: &Bound<'py, PyType>,
        #[pyo3(from_py_with = argument::text)] text: PyBackedStr,
        key: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = argument::key_file)] key_file: Option<PathBuf>,
        hash_func: Option<&Bound<'_, PyAny>>,
    ) -> Result<Bound<'py, Self>> {
        let filter = making::decode_base64(cls.py(), text, options::open(key, key_file)?)?;
        filter.hashed_by(hash_func)?.into_object(cls)
    }

    #[classattr]
    fn add(py: Python<'_>) -> PyResult<Py<PyAny>> {
        method::add::<Self>(py)
    }

    /// The hash of a key, made once for many filters that hash alike: they take it
    /// in the place of the key, and refuse one that was made otherwise.
    ///
    /// >>> import tamis
    /// >>> today, yesterday = tamis.Filter(1000), tamis.Filter(1000)
    /// >>> yesterday.add("key")
    /// True
    /// >>> hash = today.hash("key")
    /// >>> [hash in day for day in (today, yesterday)]
    /// [False, True]
    #[pyo3(name = "hash", signature = (key, /))]
    fn hash_of(&self, key: &Bound<'_, PyAny>) -> Result<KeyHash> {
        Ok(KeyHash::new(self.hash(key)?, self.hasher))
    }

    /// How many distinct keys were added. `IndeterminateCountError` after a
    /// union or an intersection; ``info()["keys"]`` then has an estimate.
    fn __len__(&self, py: Python<'_>) -> Result<usize> {
        self.counted(py)?.map(|keys| keys as usize).ok_or_else(|| {
            Failure::Own(
                "IndeterminateCountError",
                "the number of keys is indeterminate after a union, an intersection, or a writer \
                 that died; info()[\"keys\"] has an estimate"
                    .into(),
            )
        })
    }

    fn __bool__(slf: &Bound<'_, Self>) -> Result<bool> {
        read!(slf, filter => filter.counted().unwrap_or_else(|| filter.estimated_keys()) > 0)
    }

    /// Adds the keys of all iterables, and answers nothing; see `add_many`. Among
    /// them may be filters made with equal arguments, as for ``|=``.
    ///
    /// >>> import tamis
    /// >>> seen = tamis.Filter(1000)
    /// >>> seen.update(["apple", "pear", "apple"], ["plum"])
    /// >>> len(seen)
    /// 3
    #[pyo3(signature = (*keys, threads=1, progress=None))]
    fn update(
        slf: &Bound<'_, Self>,
        keys: &Bound<'_, PyTuple>,
        #[pyo3(from_py_with = argument::threads)] threads: usize,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> Result<()> {
        let progress = Progress::asked(progress)?;
        for keys in keys {
            if let Ok(other) = keys.cast::<Self>() {
                sets::combine(slf, other, Combination::Union)?;
                continue;
            }
            let this = slf.get();
            this.insert_all(&keys, &Times::Now, threads, false, progress.as_ref())?;
        }
        Progress::finish(progress, keys.py())
    }

    /// Adds many keys; returns whether each was new.
    ///
    /// >>> import tamis
    /// >>> tamis.Filter(1000).add_many(["apple", "pear", "apple"])
    /// [True, True, False]
    ///
    /// ``keys`` is any iterable of keys, a numpy array of strings, bytes or
    /// numbers, or a column of anything that has the Arrow C data interface
    /// (pyarrow, polars, …). Arrays and columns are read in place. The answers
    /// come in the same kind of object: a list, a numpy array, a pyarrow array,
    /// a polars series. A null of a column is no key: it is not added, and its
    /// answer is False.
    ///
    /// The GIL is released; ``threads`` work on arrays and columns, 0 for one a
    /// core, with the same answers as one. If something is no key, or a filter
    /// refuses one, keys before it may be in. ``progress`` is called with the
    /// number of keys that are done, about ten times a second and at the end;
    /// True writes it to stderr.
    #[pyo3(signature = (keys, /, *, threads=1, progress=None))]
    fn add_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = argument::threads)] threads: usize,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> Result<Bound<'py, PyAny>> {
        let progress = Progress::asked(progress)?;
        let new = self.insert_all(keys, &Times::Now, threads, true, progress.as_ref())?;
        Progress::finish(progress, keys.py())?;
        Ok(new)
    }

    /// Asks many keys; returns for each whether it may have been added. Keys, answers
    /// and ``progress`` are as those of `add_many`.
    ///
    /// >>> import tamis
    /// >>> seen = tamis.Filter(1000)
    /// >>> seen.update(["apple", "pear"])
    /// >>> seen.contains_many(["apple", "cherry"])
    /// [True, False]
    #[pyo3(signature = (keys, /, *, threads=1, progress=None))]
    fn contains_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = argument::threads)] threads: usize,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> Result<Bound<'py, PyAny>> {
        let progress = Progress::asked(progress)?;
        let found = self.ask_all(keys, &Times::Now, threads, progress.as_ref())?;
        Progress::finish(progress, keys.py())?;
        Ok(found)
    }

    /// Asks the keys of a series or column; the answers are of its own type: a
    /// pandas or polars series with its name and index, a pyarrow or numpy
    /// array of bool, a list. A null is no key, so it is not in.
    ///
    /// >>> import tamis
    /// >>> seen = tamis.Filter(1000)
    /// >>> seen.update(["apple", "pear"])
    /// >>> seen.isin(["apple", "cherry"])
    /// [True, False]
    #[pyo3(signature = (keys, /, *, threads=1))]
    fn isin<'py>(
        slf: &Bound<'py, Self>,
        keys: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = argument::threads)] threads: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let frames = slf.py().import("tamis._frames")?;
        frames.call_method1("isin", (slf, keys, threads))
    }

    /// Undoes one addition of a key; returns whether it seemed present. Only for
    /// kinds that can (``delete=True``), and only for keys that were added: to
    /// remove another may take away a key that was.
    ///
    /// >>> import tamis
    /// >>> online = tamis.Filter(1000, delete=True)
    /// >>> online.add("ada"), online.remove("ada"), "ada" in online
    /// (True, True, False)
    #[pyo3(signature = (key, /))]
    fn remove(&self, key: &Bound<'_, PyAny>) -> Result<bool> {
        let hash = self.hash(key)?;
        self.state.wait(key.py(), Access::Change)?;
        self.state.with(key.py(), |state| {
            let mut removed = [false];
            state.writable()?.remove_many(&[hash], &mut removed)?;
            Ok(removed[0])
        })
    }

    /// How often a key was added, at most. Only for kinds that can remove keys.
    #[pyo3(signature = (key, /))]
    fn count(&self, key: &Bound<'_, PyAny>) -> Result<u64> {
        let hash = self.hash(key)?;
        self.state.wait(key.py(), Access::Ask)?;
        self.state.ask(key.py(), |state| state.count(hash))
    }

    /// Why the filter says so of a key, as a dict: its hash, what it looks at, and what it finds.
    #[pyo3(signature = (key, /))]
    fn explain<'py>(slf: &Bound<'py, Self>, key: &Bound<'py, PyAny>) -> Result<Bound<'py, PyDict>> {
        information::explain(slf, key)
    }

    /// Removes all keys.
    fn clear(slf: &Bound<'_, Self>) -> Result<()> {
        slf.get().check_writer()?;
        Self::write(slf, |state| Ok(state.writable()?.clear()?))
    }

    /// A copy in memory, wherever this one lives.
    pub(crate) fn copy<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, Self>> {
        Self::copy_with(slf, Ok)
    }

    /// The blocked filter that the keys of a counting filter would have built,
    /// bit for bit, in memory: a quarter of the size, without removal.
    ///
    /// >>> import tamis
    /// >>> online = tamis.Filter(1000, kind="counting")
    /// >>> online.update(["ada", "bob"])
    /// >>> handed_out = online.to_blocked()
    /// >>> handed_out.kind, "ada" in handed_out
    /// ('blocked', True)
    fn to_blocked<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, Self>> {
        let blocked = read!(slf, filter => filter.to_blocked())??;
        Self::alike(slf, blocked.into())
    }

    fn __copy__<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, Self>> {
        Self::copy(slf)
    }

    #[pyo3(signature = (memo, /))]
    fn __deepcopy__<'py>(
        slf: &Bound<'py, Self>,
        memo: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, Self>> {
        Self::copy_with(slf, |attributes| {
            let module = memo.py().import("copy")?;
            module.call_method1("deepcopy", (attributes, memo))
        })
    }

    /// A filter with the keys of this one and of all others, which are filters
    /// made with equal arguments, or iterables of keys.
    ///
    /// >>> import tamis
    /// >>> a, b = tamis.Filter(1000), tamis.Filter(1000)
    /// >>> a.update(["left"]); b.update(["right"])
    /// >>> a.union(b, ["third"]).contains_many(["left", "right", "third"])
    /// [True, True, True]
    #[pyo3(signature = (*others))]
    fn union<'py>(
        slf: &Bound<'py, Self>,
        others: &Bound<'py, PyTuple>,
    ) -> Result<Bound<'py, Self>> {
        sets::united(slf, others, Combination::Union)
    }

    /// A filter with the keys that this one and all others have; the others are
    /// as for `union`. It has no fewer false "yes" than a filter of the common
    /// keys alone.
    ///
    /// >>> import tamis
    /// >>> a, b = tamis.Filter(1000), tamis.Filter(1000)
    /// >>> a.update(["left", "both"]); b.update(["right", "both"])
    /// >>> a.intersection(b).contains_many(["left", "both"])
    /// [False, True]
    #[pyo3(signature = (*others))]
    fn intersection<'py>(
        slf: &Bound<'py, Self>,
        others: &Bound<'py, PyTuple>,
    ) -> Result<Bound<'py, Self>> {
        sets::united(slf, others, Combination::Intersection)
    }

    /// Leaves the keys that all others have, too; they are as for `intersection`.
    ///
    /// >>> import tamis
    /// >>> seen = tamis.Filter(1000)
    /// >>> seen.update(["left", "both"])
    /// >>> seen.intersection_update(["right", "both"])
    /// >>> seen.contains_many(["left", "both"])
    /// [False, True]
    #[pyo3(signature = (*others))]
    fn intersection_update(slf: &Bound<'_, Self>, others: &Bound<'_, PyTuple>) -> Result<()> {
        sets::combine_all(slf, others, Combination::Intersection)
    }

    /// Whether every key of this one may be in the other. False is always
    /// right. Both are blocked, bloom or counting, and made with equal arguments.
    ///
    /// >>> import tamis
    /// >>> a, b = tamis.Filter(1000), tamis.Filter(1000)
    /// >>> a.update(["x"]); b.update(["x", "y"])
    /// >>> a.issubset(b), a <= b, b <= a
    /// (True, True, False)
    #[pyo3(signature = (other, /))]
    fn issubset(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> Result<bool> {
        sets::is_subset(slf, sets::other(other)?)
    }

    /// Whether every key of the other may be in this one; see `issubset`.
    #[pyo3(signature = (other, /))]
    fn issuperset(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> Result<bool> {
        sets::is_subset(sets::other(other)?, slf)
    }

    // Python derives `>=` and `>` by swapping the operands.
    fn __le__(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> Result<bool> {
        sets::is_subset(slf, other)
    }

    fn __lt__(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> Result<bool> {
        Ok(sets::is_subset(slf, other)? && !Self::__eq__(slf, other)?)
    }

    fn __or__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, Self>) -> Result<Bound<'py, Self>> {
        sets::combined(slf, other, Combination::Union)
    }

    fn __and__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, Self>) -> Result<Bound<'py, Self>> {
        sets::combined(slf, other, Combination::Intersection)
    }

    fn __ior__(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> Result<()> {
        sets::combine(slf, other, Combination::Union)
    }

    fn __iand__(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> Result<()> {
        sets::combine(slf, other, Combination::Intersection)
    }

    fn __eq__(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> Result<bool> {
        sets::is_same(slf, other)
    }

    /// How full it is: the share of its capacity that is taken, above 1 when
    /// it holds more keys than it was made for. Estimated where the number of
    /// keys is indeterminate.
    #[getter]
    fn fill(slf: &Bound<'_, Self>) -> Result<f64> {
        read!(slf, filter => filter.keys().get() as f64 / filter.capacity().max(1) as f64)
    }

    /// About how many distinct keys were added, from what the filter holds; reads
    /// all of it. Also where ``len`` is indeterminate.
    ///
    /// >>> import tamis
    /// >>> seen = tamis.Filter(1000)
    /// >>> seen.update(["apple", "pear"])
    /// >>> round((seen | seen).approx_items)
    /// 2
    #[getter]
    fn approx_items(slf: &Bound<'_, Self>) -> Result<f64> {
        read!(slf, filter => filter.estimated_keys() as f64)
    }

    /// How many keys it is made for; of a growing filter, before it grows next.
    #[getter]
    fn capacity(&self, py: Python<'_>) -> Result<u64> {
        get!(self, py, filter => filter.capacity())
    }

    /// The promised rate of false "yes", kept up to ``capacity`` keys.
    #[getter]
    fn p(&self, py: Python<'_>) -> Result<f64> {
        get!(self, py, filter => filter.rate())
    }

    /// The rate to expect now, from what the filter really holds; reads all of
    /// it.
    #[getter]
    fn p_now(slf: &Bound<'_, Self>) -> Result<f64> {
        read!(slf, filter => filter.rate_now())
    }

    /// The kind: "blocked", "bloom", "cuckoo", "counting", "growing", "fuse",
    /// "ribbon", "cascade" or "window".
    #[getter]
    pub(super) fn kind(&self, py: Python<'_>) -> Result<&'static str> {
        get!(self, py, filter => filter.kind().name())
    }

    /// The size in bytes, without the header of 128.
    #[getter]
    pub(crate) fn nbytes(&self, py: Python<'_>) -> Result<u64> {
        get!(self, py, filter => filter.bytes())
    }

    /// The file that it is mapped from, or None for one in memory.
    #[getter]
    pub(crate) fn path(&self) -> Option<&std::path::Path> {
        self.path.as_deref()
    }

    /// Whether it was closed.
    #[getter]
    fn closed(&self, py: Python<'_>) -> bool {
        self.state.ask(py, |state| matches!(state, Backing::Closed))
    }

    /// Whether case is ignored in keys that are text.
    ///
    /// >>> import tamis
    /// >>> seen = tamis.Filter(1000, ignore_case=True)
    /// >>> seen.add("Key")
    /// True
    /// >>> "KEY" in seen, seen.ignore_case
    /// (True, True)
    #[getter]
    pub(crate) fn ignore_case(&self) -> bool {
        self.hasher.rule().ignores_case()
    }

    /// Whether keys that are URLs are normalised.
    #[getter]
    pub(crate) fn url(&self) -> bool {
        self.hasher.rule().normalises_urls()
    }

    /// The function that makes its keys, or None.
    #[getter]
    fn hash_func(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let function = self.hash_func.as_ref();
        function.map(|function| function.clone_ref(py))
    }

    /// What the filter is and how full, as a dict; reads all of it.
    ///
    /// >>> import tamis
    /// >>> seen = tamis.Filter(1000, 0.01)
    /// >>> seen.update(["apple", "pear"])
    /// >>> info = seen.info()
    /// >>> info["kind"], info["keys"], info["capacity"], info["fill"]
    /// ('blocked', 2, 1000, 0.002)
    fn info<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyDict>> {
        information::as_dict(slf)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        information::as_text(slf)
    }

    fn _repr_html_(slf: &Bound<'_, Self>) -> Result<String> {
        information::as_html(slf)
    }

    /// The bytes that it takes in memory; those of a mapped file are the
    /// system's.
    fn __sizeof__(slf: &Bound<'_, Self>) -> PyResult<u64> {
        let object: u64 = slf.get_type().getattr("__basicsize__")?.extract()?;
        Ok(match slf.get().path {
            Some(_) => object,
            None => object + slf.get().body_bytes(slf.py())?,
        })
    }

    /// Writes the filter to a file, which is replaced as a whole or not at all. Also
    /// to a file object that is open for writing, or to an address that fsspec
    /// knows ("s3://…"), which replace as they do.
    #[pyo3(signature = (path, /))]
    fn save(slf: &Bound<'_, Self>, path: &Bound<'_, PyAny>) -> Result<()> {
        if elsewhere::is(path)? {
            return elsewhere::write(path, &Self::__bytes__(slf)?);
        }
        let path: PathBuf = argument::path(path)?;
        let mark = Mark::on(slf.clone().unbind(), slf.py());
        interrupt::apart(slf.py(), move || {
            mark.read(|state| Ok(ask!(state, filter => filter.save(&path))??))
        })?
    }

    pub(crate) fn __bytes__<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyBytes>> {
        let bytes = read!(slf, filter => filter.to_bytes())?;
        Ok(buffer::bytes(slf.py(), bytes)?)
    }

    /// What ``bytes(filter)`` gives; `load_bytes` reads it.
    fn save_bytes<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyBytes>> {
        Self::__bytes__(slf)
    }

    /// The same bytes as a file's, in base64.
    ///
    /// >>> import tamis
    /// >>> seen = tamis.Filter(1000)
    /// >>> seen.add("key")
    /// True
    /// >>> tamis.Filter.from_base64(seen.to_base64()) == seen
    /// True
    fn to_base64(slf: &Bound<'_, Self>) -> Result<String> {
        read!(slf, filter => filter.to_base64())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyTuple>> {
        pickle::reduce(slf, 2)
    }

    #[pyo3(signature = (protocol, /))]
    fn __reduce_ex__<'py>(slf: &Bound<'py, Self>, protocol: u32) -> Result<Bound<'py, PyTuple>> {
        pickle::reduce(slf, protocol)
    }

    /// Of a file opened for adding: waits until all that was added is on disk.
    fn sync(slf: &Bound<'_, Self>) -> Result<()> {
        Self::read(slf, Backing::sync)
    }

    /// Lets go of the file, or of the memory. Nothing can be asked any more; to
    /// close it again does nothing.
    fn close(slf: &Bound<'_, Self>) -> Result<()> {
        // The bytes of another object must be dropped with the GIL.
        Self::write(slf, Backing::close).map(drop)
    }

    fn __enter__<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, Self>> {
        get!(slf.get(), slf.py(), _filter => ())?;
        Ok(slf.clone())
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(slf: &Bound<'_, Self>, _exception: &Bound<'_, PyTuple>) -> Result<()> {
        Self::close(slf)
    }

    // The function may refer back to the filter.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.hash_func)
    }
}
