//! `tamis.Filter`: a filter in memory or in a mapped file.

use crate::batch::Batch;
use crate::error::Failure;
use crate::fork::Process;
use crate::interrupt;
use crate::key;
use crate::lock::{Holds, Mark, Shared};
use crate::method::{self, Add};
use crate::options::{self, Count, Need};
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyDict, PyTuple, PyType};
use std::path::PathBuf;
use tamis::{AnyFilter, Hash, Hasher, KeyCount, Kind, Map, Open, Plan};

/// Where a filter lives.
pub(crate) enum State {
    /// In memory, or in a file mapped for writing.
    Writable(AnyFilter),
    /// In a file mapped for reading.
    ReadOnly(AnyFilter<Map>),
    Closed,
}

/// Asks a filter wherever it lives.
macro_rules! ask {
    ($state:expr, $filter:ident => $answer:expr) => {
        match $state {
            State::Writable($filter) => Ok($answer),
            State::ReadOnly($filter) => Ok($answer),
            State::Closed => Err(Failure::closed()),
        }
    };
}

impl State {
    #[inline]
    fn writable(&mut self) -> Result<&mut AnyFilter, Failure> {
        match self {
            Self::Writable(filter) => Ok(filter),
            Self::ReadOnly(_) => Err(Failure::read_only()),
            Self::Closed => Err(Failure::closed()),
        }
    }

    #[inline]
    fn contains(&self, hash: Hash) -> Result<bool, Failure> {
        match self {
            // The usual one is asked here, not behind a call.
            Self::Writable(AnyFilter::Blocked(filter)) => Ok(filter.contains_hash(hash)),
            other => other.contains_other(hash),
        }
    }

    #[inline(never)]
    fn contains_other(&self, hash: Hash) -> Result<bool, Failure> {
        ask!(self, filter => filter.contains_hash(hash))
    }

    fn duplicate(&self) -> Result<AnyFilter, Failure> {
        Ok(ask!(self, filter => filter.duplicate())??)
    }

    fn combine(ours: &mut AnyFilter, theirs: &Self, how: Combination) -> Result<(), Failure> {
        match how {
            Combination::Union => ask!(theirs, theirs => ours.union_with(theirs))??,
            Combination::Intersection => ask!(theirs, theirs => ours.intersect_with(theirs))??,
        }
        Ok(())
    }

    fn same(&self, other: &Self) -> Result<bool, Failure> {
        ask!(self, ours => ask!(other, theirs => ours.is_same(theirs)))?
    }
}

#[derive(Clone, Copy)]
enum Combination {
    Union,
    Intersection,
}

/// Have I seen this key before? Never a false "no"; a false "yes" for about one
/// in ``1/p`` keys that were not added.
///
/// >>> import tamis
/// >>> seen = tamis.Filter(n=1_000_000, p=0.01)
/// >>> seen.add("https://example.org/")      # True: it was new
/// True
/// >>> "https://example.org/" in seen
/// True
///
/// ``n`` is how many keys to expect and ``p`` how often a false "yes" is all
/// right (0.01 if nothing is said); instead of ``p``, ``size`` says how many
/// bytes it may take. Say what you need and the kind follows: ``delete=True``
/// if keys are removed, ``grow=True`` if ``n`` is only a guess; or name it:
/// ``kind="cuckoo"``.
///
/// Keys are str (their UTF-8), bytes, and int (8 little-endian bytes, from
/// -2**63 to 2**64-1). Against keys that an attacker chooses: ``keyed=True``
/// hashes under a random secret in the filter, ``key`` (16 bytes) or
/// ``key_file`` under one that is kept apart from it. ``seed`` tells filters
/// apart and is no protection.
///
/// ``ignore_case=True`` makes no difference between "Key" and "KEY", and
/// ``url=True`` none between two spellings of one URL; its fragment is dropped.
/// The filter remembers both, in its file, too.
#[pyclass(frozen, module = "tamis", name = "Filter")]
pub(crate) struct Filter {
    hasher: Hasher,
    state: Shared<State>,
    path: Option<PathBuf>,
    /// The process that alone may add to the file of a growing filter.
    sole_writer: Option<Process>,
}

impl Filter {
    pub(crate) fn in_memory(filter: AnyFilter) -> Self {
        Self {
            hasher: *filter.hasher(),
            state: Shared::new(State::Writable(filter)),
            path: None,
            sole_writer: None,
        }
    }

    /// A copy on the heap, wherever this one lives.
    pub(crate) fn to_memory(slf: &Bound<'_, Self>) -> Result<AnyFilter, Failure> {
        Self::read(slf, State::duplicate)
    }

    pub(crate) fn hash(&self, key: &Bound<'_, PyAny>) -> Result<Hash, Failure> {
        key::hash(&self.hasher, key)
    }

    #[inline]
    pub(crate) fn contains_hash(&self, py: Python<'_>, hash: Hash) -> Result<bool, Failure> {
        self.state.with(py, |state| state.contains(hash))
    }

    #[inline]
    pub(crate) fn add_hash(&self, py: Python<'_>, hash: Hash) -> Result<bool, Failure> {
        self.check_writer()?;
        self.state
            .with(py, |state| Ok(state.writable()?.insert_hash(hash)?))
    }

    /// Reads what takes time, such as the whole filter.
    fn read<R: Send + 'static>(
        slf: &Bound<'_, Self>,
        work: impl FnOnce(&State) -> Result<R, Failure> + Send + 'static,
    ) -> Result<R, Failure> {
        let bytes = slf.get().bytes_to_read(slf.py());
        let mark = Mark::on(slf.clone().unbind(), slf.py());
        interrupt::if_large(slf.py(), bytes, move || mark.read(work))?
    }

    fn write<R: Send + 'static>(
        slf: &Bound<'_, Self>,
        work: impl FnOnce(&mut State) -> Result<R, Failure> + Send + 'static,
    ) -> Result<R, Failure> {
        let bytes = slf.get().bytes_to_read(slf.py());
        let mark = Mark::on(slf.clone().unbind(), slf.py());
        interrupt::if_large(slf.py(), bytes, move || mark.write(work))?
    }

    /// Writes here what is read there; `None` if both are one.
    fn write_beside<R: Send + 'static>(
        slf: &Bound<'_, Self>,
        other: &Bound<'_, Self>,
        work: impl FnOnce(&mut State, &State) -> Result<R, Failure> + Send + 'static,
    ) -> Result<Option<R>, Failure> {
        let py = slf.py();
        let bytes = slf.get().bytes_to_read(py);
        let ours = Mark::on(slf.clone().unbind(), py);
        let theirs = Mark::on(other.clone().unbind(), py);
        let work = move || ours.write_beside(&theirs, work).transpose();
        interrupt::if_large(py, bytes, work)?
    }

    /// How much work the whole filter is; a file's pages may have to come from
    /// the disk first.
    fn bytes_to_read(&self, py: Python<'_>) -> u64 {
        match self.path {
            Some(_) => u64::MAX,
            None => self.nbytes(py).unwrap_or(0),
        }
    }

    fn combined(
        slf: &Bound<'_, Self>,
        other: &Bound<'_, Self>,
        how: Combination,
    ) -> Result<Self, Failure> {
        let made = Self::write_beside(slf, other, move |ours, theirs| {
            let mut filter = ours.duplicate()?;
            State::combine(&mut filter, theirs, how)?;
            Ok(filter)
        });
        match made? {
            Some(filter) => Ok(Self::in_memory(filter)),
            None => Self::copy(slf),
        }
    }

    fn combine(
        slf: &Bound<'_, Self>,
        other: &Bound<'_, Self>,
        how: Combination,
    ) -> Result<(), Failure> {
        slf.get().check_writer()?;
        let done = Self::write_beside(slf, other, move |ours, theirs| {
            State::combine(ours.writable()?, theirs, how)
        });
        match done? {
            Some(()) => Ok(()),
            // With itself: as it is, if it may be changed at all.
            None => Self::write(slf, |state| state.writable().map(drop)),
        }
    }

    fn batch(&self, threads: usize, answers: bool, ordered: bool) -> Batch {
        Batch {
            ordered,
            hasher: self.hasher,
            threads,
            answers,
        }
    }

    fn insert_all<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        threads: usize,
        answers: bool,
    ) -> Result<Bound<'py, PyAny>, Failure> {
        let py = keys.py();
        // Said before the keys are looked at.
        self.state.with(py, |state| state.writable().map(drop))?;
        self.check_writer()?;
        let mark = Mark::on(&self.state, py);
        self.batch(threads, answers, true)
            .run(keys, &|hashes: &[Hash], new: &mut [bool]| {
                mark.write(|state| Ok(state.writable()?.insert_hashes(hashes, new)?))
            })
    }

    /// The layers that one process adds to the file of a growing filter are not
    /// seen by another, also not by one that was forked from it.
    #[inline]
    fn check_writer(&self) -> Result<(), Failure> {
        match &self.sole_writer {
            Some(process) if !process.is_this() => Err(Failure::Own(
                "BusyError",
                "the process that this one was forked from writes the filter; of a growing filter \
                 only one may, so close it there and open it here"
                    .into(),
            )),
            _ => Ok(()),
        }
    }

    fn is_apart(&self) -> bool {
        matches!(self.hasher, Hasher::Keyed { in_file: false, .. })
    }
}

impl Holds for Py<Filter> {
    type Value = State;

    fn shared(&self) -> &Shared<State> {
        &self.get().state
    }
}

fn sole_writer(filter: &AnyFilter) -> Option<Process> {
    (filter.kind() == Kind::Growing).then(Process::this)
}

fn make_plan(
    n: u64,
    p: Option<f64>,
    size: Option<Count>,
) -> impl Fn(Kind) -> Result<Plan, Failure> {
    move |kind| match (p, size) {
        (Some(_), Some(_)) => Err(Failure::parameter(
            "p, size: expected one of them, got both; each follows from the other",
        )),
        (_, Some(size)) => Ok(Plan::for_size(kind, n, size.0)?),
        (p, None) => Ok(Plan::for_rate(kind, n, p.unwrap_or(0.01))?),
    }
}

impl Add for Filter {
    const DOC: &'static std::ffi::CStr = c"add($self, key, /)
--

Adds a key; tells if it was new. True is always right; False is wrong for
about one in ``1/p`` new keys, which look as if present.

>>> import tamis
>>> seen = tamis.Filter(1000)
>>> seen.add(\"key\"), seen.add(\"key\")
(True, False)
>>> seen.add(b\"key\")       # the same key: a str is its UTF-8
False";

    #[inline]
    fn add(this: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let this = this.get();
        let hash = key::hash(&this.hasher, key)?;
        Ok(this.add_hash(key.py(), hash)?)
    }
}

#[pymethods]
impl Filter {
    #[new]
    #[pyo3(signature = (n, p=None, *, size=None, kind=None, delete=false, grow=false, seed=None, keyed=false, key=None, key_file=None, ignore_case=false, url=false))]
    #[expect(
        clippy::too_many_arguments,
        reason = "they are Python's keyword arguments"
    )]
    fn new(
        py: Python<'_>,
        n: Count,
        p: Option<f64>,
        size: Option<Count>,
        kind: Option<&str>,
        delete: bool,
        grow: bool,
        seed: Option<Count>,
        keyed: bool,
        key: Option<&Bound<'_, PyAny>>,
        key_file: Option<PathBuf>,
        ignore_case: bool,
        url: bool,
    ) -> Result<Self, Failure> {
        let need = Need {
            delete,
            grow,
            ..Need::default()
        };
        let plan = need.plan(kind, make_plan(n.0, p, size))?;
        let hasher =
            options::hasher(seed, keyed, key, key_file)?.with_rule(options::rule(ignore_case, url));
        let filter = interrupt::if_large(py, plan.bytes(), move || {
            AnyFilter::from_plan(&plan, hasher)
        })??;
        Ok(Self::in_memory(filter))
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
    #[pyo3(signature = (path, n, p=None, *, size=None, kind=None, delete=false, grow=false, seed=None, keyed=false, key=None, key_file=None, ignore_case=false, url=false, overwrite=false))]
    #[expect(
        clippy::too_many_arguments,
        reason = "they are Python's keyword arguments"
    )]
    fn create(
        cls: &Bound<'_, PyType>,
        path: PathBuf,
        n: Count,
        p: Option<f64>,
        size: Option<Count>,
        kind: Option<&str>,
        delete: bool,
        grow: bool,
        seed: Option<Count>,
        keyed: bool,
        key: Option<&Bound<'_, PyAny>>,
        key_file: Option<PathBuf>,
        ignore_case: bool,
        url: bool,
        overwrite: bool,
    ) -> Result<Self, Failure> {
        let need = Need {
            delete,
            grow,
            shared: true,
            ..Need::default()
        };
        let plan = need.plan(kind, make_plan(n.0, p, size))?;
        if plan.kind() == Kind::Cuckoo {
            return Err(Failure::Own(
                "UnableError",
                "cuckoo filters can't be changed in their file; make one in memory and save it, \
                 or create a counting filter"
                    .into(),
            ));
        }
        let hasher =
            options::hasher(seed, keyed, key, key_file)?.with_rule(options::rule(ignore_case, url));
        // It is as it was just made.
        let open = Open::new().verify(false);
        let open = match hasher {
            Hasher::Keyed { key, .. } => open.key(key),
            _ => open,
        };
        let place = path.clone();
        let filter = interrupt::apart(cls.py(), move || {
            match overwrite {
                true => AnyFilter::create_over(&place, &plan, hasher),
                false => AnyFilter::create(&place, &plan, hasher),
            }?;
            open.share(&place)
        })??;
        Ok(Self {
            path: Some(path),
            sole_writer: sole_writer(&filter),
            ..Self::in_memory(filter)
        })
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
    #[pyo3(signature = (path, mode="r", *, key=None, key_file=None, verify=None))]
    fn open(
        cls: &Bound<'_, PyType>,
        path: PathBuf,
        mode: &str,
        key: Option<&Bound<'_, PyAny>>,
        key_file: Option<PathBuf>,
        verify: Option<bool>,
    ) -> Result<Self, Failure> {
        let mut open = options::open(key, key_file)?;
        if let Some(verify) = verify {
            open = open.verify(verify);
        }
        let py = cls.py();
        let place = path.clone();
        let state = match mode {
            "r" => State::ReadOnly(interrupt::apart(py, move || open.map(place))??),
            "r+" => State::Writable(interrupt::apart(py, move || open.share(place))??),
            _ => {
                return Err(Failure::parameter(format!(
                    "mode: expected \"r\" or \"r+\", got {mode:?}; Filter.create makes a new file"
                )));
            }
        };
        options::one_value(ask!(&state, filter => filter.hasher())?)?;
        Ok(Self {
            hasher: ask!(&state, filter => *filter.hasher())?,
            sole_writer: match &state {
                State::Writable(filter) => sole_writer(filter),
                _ => None,
            },
            state: Shared::new(state),
            path: Some(path),
        })
    }

    /// Reads a whole filter file into memory and compares it with its checksum; one
    /// above 16 MiB that was last written in place has none. Changes stay in
    /// memory until they are saved.
    #[classmethod]
    #[pyo3(signature = (path, *, key=None, key_file=None))]
    fn load(
        cls: &Bound<'_, PyType>,
        path: PathBuf,
        key: Option<&Bound<'_, PyAny>>,
        key_file: Option<PathBuf>,
    ) -> Result<Self, Failure> {
        let open = options::open(key, key_file)?;
        let filter = interrupt::apart(cls.py(), move || open.load(&path))??;
        options::one_value(filter.hasher())?;
        Ok(Self::in_memory(filter))
    }

    /// The filter in the bytes that ``bytes(filter)`` made, or in those of a
    /// file.
    #[classmethod]
    #[pyo3(signature = (data, *, key=None, key_file=None))]
    fn from_bytes(
        cls: &Bound<'_, PyType>,
        data: &Bound<'_, PyAny>,
        key: Option<&Bound<'_, PyAny>>,
        key_file: Option<PathBuf>,
    ) -> Result<Self, Failure> {
        let open = options::open(key, key_file)?;
        let data = PyBackedBytes::from(key::bytes_of(data)?);
        let len = data.len() as u64;
        let filter = interrupt::if_large(cls.py(), len, move || open.decode(&data))??;
        options::one_value(filter.hasher())?;
        Ok(Self::in_memory(filter))
    }

    /// The filter in the text that `to_base64` made; white space in it is
    /// ignored.
    #[classmethod]
    #[pyo3(signature = (text, *, key=None, key_file=None))]
    fn from_base64(
        cls: &Bound<'_, PyType>,
        text: PyBackedStr,
        key: Option<&Bound<'_, PyAny>>,
        key_file: Option<PathBuf>,
    ) -> Result<Self, Failure> {
        let open = options::open(key, key_file)?;
        let len = text.len() as u64;
        let filter = interrupt::if_large(cls.py(), len, move || open.decode_base64(&text))??;
        options::one_value(filter.hasher())?;
        Ok(Self::in_memory(filter))
    }

    #[classattr]
    fn add(py: Python<'_>) -> PyResult<Py<PyAny>> {
        method::add::<Self>(py)
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> Result<bool, Failure> {
        self.contains_hash(key.py(), key::hash(&self.hasher, key)?)
    }

    /// How many distinct keys were added. `IndeterminateCountError` after a
    /// union or an intersection; ``info()["keys"]`` then has an estimate.
    fn __len__(&self, py: Python<'_>) -> Result<usize, Failure> {
        let counted = self
            .state
            .with(py, |state| ask!(state, filter => filter.counted()))?;
        counted.map(|keys| keys as usize).ok_or_else(|| {
            Failure::Own(
                "IndeterminateCountError",
                "the number of keys is indeterminate after a union, an intersection, or a writer \
                 that died; info()[\"keys\"] has an estimate"
                    .into(),
            )
        })
    }

    fn __bool__(slf: &Bound<'_, Self>) -> Result<bool, Failure> {
        Self::read(
            slf,
            |state| ask!(state, filter => filter.counted().unwrap_or_else(|| filter.estimated_keys()) > 0),
        )
    }

    /// Adds many keys, and answers nothing; see `add_many`.
    ///
    /// >>> import tamis
    /// >>> seen = tamis.Filter(1000)
    /// >>> seen.update(["apple", "pear", "apple"])
    /// >>> len(seen)
    /// 2
    #[pyo3(signature = (keys, /, *, threads=1))]
    fn update(&self, keys: &Bound<'_, PyAny>, threads: usize) -> Result<(), Failure> {
        self.insert_all(keys, threads, false).map(drop)
    }

    /// Adds many keys; tells of each if it was new.
    ///
    /// >>> import tamis
    /// >>> tamis.Filter(1000).add_many(["apple", "pear", "apple"])
    /// [True, True, False]
    ///
    /// ``keys`` is any iterable of keys, a numpy array of strings, bytes or
    /// integers, or a column of anything that has the Arrow C data interface
    /// (pyarrow, polars, …). Arrays and columns are read in place. The answers
    /// come in the same kind of object: a list, a numpy array, a pyarrow array,
    /// a polars series. A null of a column is no key: it is not added, and its
    /// answer is False.
    ///
    /// The GIL is released; ``threads`` work on arrays and columns, 0 for one a
    /// core, with the same answers as one. If something is no key, or a filter
    /// refuses one, keys before it may be in.
    #[pyo3(signature = (keys, /, *, threads=1))]
    fn add_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        threads: usize,
    ) -> Result<Bound<'py, PyAny>, Failure> {
        self.insert_all(keys, threads, true)
    }

    /// Asks many keys; tells of each if it may have been added. Keys and
    /// answers are as those of `add_many`.
    ///
    /// >>> import tamis
    /// >>> seen = tamis.Filter(1000)
    /// >>> seen.update(["apple", "pear"])
    /// >>> seen.contains_many(["apple", "cherry"])
    /// [True, False]
    #[pyo3(signature = (keys, /, *, threads=1))]
    fn contains_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        threads: usize,
    ) -> Result<Bound<'py, PyAny>, Failure> {
        let py = keys.py();
        self.state.with(py, |state| ask!(state, _filter => ()))?;
        let mark = Mark::on(&self.state, py);
        self.batch(threads, true, false)
            .run(keys, &|hashes: &[Hash], found: &mut [bool]| {
                mark.read(|state| ask!(state, filter => filter.contains_hashes(hashes, found)))
            })
    }

    /// Takes back one adding of a key; tells if it seemed present. Only for
    /// kinds that can (``delete=True``), and only for keys that were added: to
    /// remove another may take away a key that was.
    ///
    /// >>> import tamis
    /// >>> online = tamis.Filter(1000, delete=True)
    /// >>> online.add("ada"), online.remove("ada"), "ada" in online
    /// (True, True, False)
    #[pyo3(signature = (key, /))]
    fn remove(&self, key: &Bound<'_, PyAny>) -> Result<bool, Failure> {
        let hash = self.hash(key)?;
        self.state.with(key.py(), |state| {
            let mut removed = [false];
            state.writable()?.remove_hashes(&[hash], &mut removed)?;
            Ok(removed[0])
        })
    }

    /// How often a key was added, at most. Only for kinds that can remove keys.
    #[pyo3(signature = (key, /))]
    fn count(&self, key: &Bound<'_, PyAny>) -> Result<u64, Failure> {
        let hash = self.hash(key)?;
        self.state.with(key.py(), |state| {
            let mut counts = [0];
            ask!(state, filter => filter.count_hashes(&[hash], &mut counts))??;
            Ok(counts[0])
        })
    }

    /// Removes all keys.
    fn clear(slf: &Bound<'_, Self>) -> Result<(), Failure> {
        slf.get().check_writer()?;
        Self::write(slf, |state| Ok(state.writable()?.clear()?))
    }

    /// A copy in memory, wherever this one lives.
    fn copy(slf: &Bound<'_, Self>) -> Result<Self, Failure> {
        Self::to_memory(slf).map(Self::in_memory)
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
    fn to_blocked(slf: &Bound<'_, Self>) -> Result<Self, Failure> {
        let blocked = Self::read(slf, |state| {
            Ok(ask!(state, filter => filter.to_blocked())??)
        })?;
        Ok(Self::in_memory(blocked.into()))
    }

    fn __copy__(slf: &Bound<'_, Self>) -> Result<Self, Failure> {
        Self::copy(slf)
    }

    #[pyo3(signature = (memo, /))]
    fn __deepcopy__(slf: &Bound<'_, Self>, memo: &Bound<'_, PyAny>) -> Result<Self, Failure> {
        let _ = memo;
        Self::copy(slf)
    }

    fn __or__(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> Result<Self, Failure> {
        Self::combined(slf, other, Combination::Union)
    }

    fn __and__(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> Result<Self, Failure> {
        Self::combined(slf, other, Combination::Intersection)
    }

    fn __ior__(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> Result<(), Failure> {
        Self::combine(slf, other, Combination::Union)
    }

    fn __iand__(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> Result<(), Failure> {
        Self::combine(slf, other, Combination::Intersection)
    }

    fn __eq__(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> Result<bool, Failure> {
        let same = Self::write_beside(slf, other, |ours, theirs| ours.same(theirs));
        Ok(same?.unwrap_or(true))
    }

    /// How full it is: the share of its capacity that is taken, above 1 when
    /// it holds more keys than it was made for. Estimated where the number of
    /// keys is indeterminate.
    #[getter]
    fn fill(slf: &Bound<'_, Self>) -> Result<f64, Failure> {
        Self::read(
            slf,
            |state| ask!(state, filter => filter.keys().get() as f64 / filter.capacity().max(1) as f64),
        )
    }

    /// How many keys it is made for; of a growing filter, before it grows next.
    #[getter]
    fn capacity(&self, py: Python<'_>) -> Result<u64, Failure> {
        self.state
            .with(py, |state| ask!(state, filter => filter.capacity()))
    }

    /// The promised rate of false "yes", kept up to ``capacity`` keys.
    #[getter]
    fn p(&self, py: Python<'_>) -> Result<f64, Failure> {
        self.state
            .with(py, |state| ask!(state, filter => filter.rate()))
    }

    /// The rate to expect now, from what the filter really holds; reads all of
    /// it.
    #[getter]
    fn p_now(slf: &Bound<'_, Self>) -> Result<f64, Failure> {
        Self::read(slf, |state| ask!(state, filter => filter.rate_now()))
    }

    /// The kind: "blocked", "bloom", "cuckoo", "counting", "growing", "fuse",
    /// "ribbon" or "cascade".
    #[getter]
    fn kind(&self, py: Python<'_>) -> Result<&'static str, Failure> {
        self.state
            .with(py, |state| ask!(state, filter => filter.kind().name()))
    }

    /// The size in bytes, without the header of 128.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> Result<u64, Failure> {
        self.state
            .with(py, |state| ask!(state, filter => filter.bytes()))
    }

    /// The file that it is mapped from, or None for one in memory.
    #[getter]
    fn path(&self) -> Option<&std::path::Path> {
        self.path.as_deref()
    }

    /// Whether it was closed.
    #[getter]
    fn closed(&self, py: Python<'_>) -> bool {
        self.state.with(py, |state| matches!(state, State::Closed))
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
    fn ignore_case(&self) -> bool {
        self.hasher.rule().ignores_case()
    }

    /// Whether keys that are URLs are normalised.
    #[getter]
    fn url(&self) -> bool {
        self.hasher.rule().normalises_urls()
    }

    /// What the filter is and how full, as a dict; reads all of it.
    ///
    /// >>> import tamis
    /// >>> seen = tamis.Filter(1000, 0.01)
    /// >>> seen.update(["apple", "pear"])
    /// >>> info = seen.info()
    /// >>> info["kind"], info["keys"], info["capacity"], info["fill"]
    /// ('blocked', 2, 1000, 0.002)
    fn info<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyDict>, Failure> {
        let (py, this) = (slf.py(), slf.get());
        let (kind, capacity, rate, keys, rate_now, bytes) = Self::read(
            slf,
            |state| ask!(state, f => (f.kind(), f.capacity(), f.rate(), f.keys(), f.rate_now(), f.bytes())),
        )?;
        let info = PyDict::new(py);
        info.set_item("kind", kind.name())?;
        info.set_item("capacity", capacity)?;
        info.set_item("p", rate)?;
        info.set_item("keys", keys.get())?;
        info.set_item("keys_counted", matches!(keys, KeyCount::Counted(_)))?;
        info.set_item("fill", keys.get() as f64 / capacity.max(1) as f64)?;
        info.set_item("p_now", rate_now)?;
        info.set_item("bytes", bytes)?;
        info.set_item("hash", this.hasher.name())?;
        info.set_item(
            "seed",
            match this.hasher {
                Hasher::Fast { seed, .. } => Some(seed),
                _ => None,
            },
        )?;
        info.set_item("ignore_case", this.ignore_case())?;
        info.set_item("url", this.url())?;
        info.set_item("path", this.path())?;
        Ok(info)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let facts = self.state.with(
            py,
            |state| ask!(state, f => (f.kind(), f.counted(), f.capacity(), f.rate())),
        );
        let Ok((kind, counted, capacity, rate)) = facts else {
            return "<tamis.Filter, closed>".into();
        };
        let keys = counted.map_or("an unknown number".into(), |keys| keys.to_string());
        let place = match &self.path {
            Some(path) => format!(" in {}", path.display()),
            None => String::new(),
        };
        format!("<tamis.Filter {kind}, {keys} of {capacity} keys, p={rate}{place}>")
    }

    /// Writes the filter to a file, which is replaced as a whole or not at all.
    #[pyo3(signature = (path, /))]
    fn save(slf: &Bound<'_, Self>, path: PathBuf) -> Result<(), Failure> {
        let mark = Mark::on(slf.clone().unbind(), slf.py());
        interrupt::apart(slf.py(), move || {
            mark.read(|state| Ok(ask!(state, filter => filter.save(&path))??))
        })?
    }

    fn __bytes__<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyBytes>, Failure> {
        let bytes = Self::read(slf, |state| ask!(state, filter => filter.to_bytes()))?;
        Ok(PyBytes::new(slf.py(), &bytes))
    }

    /// The same bytes as a file's, in base64.
    ///
    /// >>> import tamis
    /// >>> seen = tamis.Filter(1000)
    /// >>> seen.add("key")
    /// True
    /// >>> tamis.Filter.from_base64(seen.to_base64()) == seen
    /// True
    fn to_base64(slf: &Bound<'_, Self>) -> Result<String, Failure> {
        Self::read(slf, |state| ask!(state, filter => filter.to_base64()))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyTuple>, Failure> {
        let (py, this) = (slf.py(), slf.get());
        if this.is_apart() {
            return Err(Failure::Own(
                "KeyNeededError",
                "the secret key is kept apart from the filter, so a pickle could not be read \
                 again; use bytes(filter) and Filter.from_bytes(data, key=key)"
                    .into(),
            ));
        }
        if matches!(this.hasher, Hasher::Keyed { .. }) {
            let text = c"the pickle holds the filter's secret: whoever reads it can choose keys \
                         that collide; key= or key_file= keeps it apart";
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), text, 1)?;
        }
        let make = slf.get_type().getattr("from_bytes")?;
        let args = (Self::__bytes__(slf)?,);
        Ok((make, args).into_pyobject(py)?)
    }

    /// Of a file opened for adding: waits until all that was added is on disk.
    fn sync(slf: &Bound<'_, Self>) -> Result<(), Failure> {
        Self::read(slf, |state| match state {
            State::Writable(filter) => Ok(filter.sync()?),
            State::ReadOnly(_) => Ok(()),
            State::Closed => Err(Failure::closed()),
        })
    }

    /// Lets go of the file, or of the memory. Nothing can be asked any more; to
    /// close it again does nothing.
    fn close(slf: &Bound<'_, Self>) -> Result<(), Failure> {
        Self::write(slf, |state| {
            match std::mem::replace(state, State::Closed) {
                State::Writable(filter) => filter.close()?,
                State::ReadOnly(_) | State::Closed => {}
            }
            Ok(())
        })
    }

    fn __enter__<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, Self>, Failure> {
        let state = &slf.get().state;
        state.with(slf.py(), |state| ask!(state, _filter => ()))?;
        Ok(slf.clone())
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(slf: &Bound<'_, Self>, _exception: &Bound<'_, PyTuple>) -> Result<(), Failure> {
        Self::close(slf)
    }
}
