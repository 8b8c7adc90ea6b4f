//! `tamis.Filter`: a filter in memory or in a mapped file.

pub(crate) mod backing;
pub(crate) mod clock;
mod information;
pub(crate) mod making;
#[expect(
    clippy::too_many_arguments,
    reason = "they are Python's keyword arguments"
)]
mod methods;
mod pickle;
mod sets;

use crate::batch::Batch;
use crate::error::{Failure, Result};
use crate::fork::Process;
use crate::hash_func;
use crate::interrupt;
use crate::key;
use crate::key_hash::KeyHash;
use crate::lock::{Access, Holds, Mark, Shared};
use crate::method::{self, Add, Contains};
use crate::progress::Progress;
use crate::when::{Times, When};
use backing::{Backing, ask, get};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use std::path::PathBuf;
use tamis::{AnyFilter, Hash, Hasher};

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
/// Keys are str (their UTF-8), bytes, int (8 little-endian bytes, from -2**63
/// to 2**64-1), float, and tuples of these. ``hash_func`` makes such a key of
/// anything else; it is not stored, so whoever opens the filter brings it
/// again. Against keys that an attacker chooses: ``keyed=True``
/// hashes under a random secret in the filter, ``key`` (16 bytes) or
/// ``key_file`` under one that is kept apart from it. ``seed`` tells filters
/// apart and is no protection.
///
/// ``ignore_case=True`` makes no difference between "Key" and "KEY", and
/// ``url=True`` none between two spellings of one URL; its fragment is dropped.
/// ``values=2`` says that every key is a tuple of two, as the command makes them
/// of two columns; others are refused. The filter remembers all three, in its
/// file, too.
///
/// Processes that it is pickled for, as by ``multiprocessing`` or by ``num_proc=``
/// of datasets, get copies: what they add stays there.
#[pyclass(frozen, subclass, weakref, module = "tamis", name = "Filter")]
pub(crate) struct Filter {
    pub(crate) hasher: Hasher,
    /// Whether that is [`USUAL`], which single calls should not have to compare.
    pub(crate) usual: bool,
    pub(crate) state: Shared<Backing>,
    pub(crate) path: Option<PathBuf>,
    /// The process that alone may add to the file of a growing filter.
    pub(crate) sole_writer: Option<Process>,
    /// Makes keys of the caller's objects.
    pub(crate) hash_func: Option<Py<PyAny>>,
}

/// The default hash of keys.
pub(crate) const USUAL: Hasher = Hasher::seeded(0);

/// Refuses objects that can't be called, before a file is created.
pub(crate) fn check_callable(hash_func: Option<&Bound<'_, PyAny>>) -> Result<()> {
    match hash_func {
        Some(object) if !object.is_callable() => Err(Failure::parameter(format!(
            "hash_func: expected a function that makes a str, bytes or int of a key, got {}",
            key::type_name(object)
        ))),
        _ => Ok(()),
    }
}

impl Filter {
    fn of(hasher: Hasher, backing: Backing) -> Self {
        Self {
            hasher,
            usual: hasher == USUAL,
            state: Shared::new(backing),
            path: None,
            sole_writer: None,
            hash_func: None,
        }
    }

    pub(crate) fn in_memory(filter: AnyFilter) -> Self {
        Self::of(*filter.hasher(), Backing::Writable(filter))
    }

    /// The filter with a function that makes its keys.
    pub(crate) fn hashed_by(self, hash_func: Option<&Bound<'_, PyAny>>) -> Result<Self> {
        check_callable(hash_func)?;
        let hash_func = hash_func.map(|function| function.clone().unbind());
        Ok(Self { hash_func, ..self })
    }

    /// The filter as an object of the class.
    fn into_object<'py>(self, class: &Bound<'py, PyType>) -> Result<Bound<'py, Self>> {
        making::object_of(class, self)
    }

    /// A copy in memory, with the object's attributes, `copied`.
    fn copy_with<'py>(
        slf: &Bound<'py, Self>,
        copied: impl FnOnce(Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, Self>> {
        let copy = Self::alike(slf, Self::to_memory(slf)?)?;
        if let Some(attributes) = pickle::attributes(slf)? {
            let all = copy.getattr("__dict__")?;
            all.call_method1("update", (copied(attributes)?,))?;
        }
        Ok(copy)
    }

    /// An object of the same class that makes keys in the same way.
    pub(crate) fn alike<'py>(
        slf: &Bound<'py, Self>,
        filter: AnyFilter,
    ) -> Result<Bound<'py, Self>> {
        let hash_func = slf.get().hash_func.as_ref();
        let filter = Self {
            hash_func: hash_func.map(|function| function.clone_ref(slf.py())),
            ..Self::in_memory(filter)
        };
        making::object_of(&slf.get_type(), filter)
    }

    /// A copy on the heap, wherever this one is stored.
    pub(crate) fn to_memory(slf: &Bound<'_, Self>) -> Result<AnyFilter> {
        Self::read(slf, Backing::duplicate)
    }

    pub(crate) fn hash(&self, key: &Bound<'_, PyAny>) -> Result<Hash> {
        match &self.hash_func {
            Some(function) if !key.is_instance_of::<KeyHash>() => {
                key::hash(&self.hasher, &hash_func::made_by(function, key)?)
            }
            _ => key::hash(&self.hasher, key),
        }
    }

    /// The hash of a plain `str`, `bytes` or `int`, unless a function makes the keys.
    #[inline(always)]
    pub(crate) fn usual_hash(&self, key: &Bound<'_, PyAny>) -> Option<Hash> {
        if self.hash_func.is_some() {
            None
        } else if self.usual {
            key::plain(&USUAL, key)
        } else {
            self.other_hash(key)
        }
    }

    /// [`usual_hash`](Self::usual_hash) with a hasher other than the default.
    #[inline(never)]
    fn other_hash(&self, key: &Bound<'_, PyAny>) -> Option<Hash> {
        let one_value = self.hasher.rule().values() == 1;
        one_value.then(|| key::plain(&self.hasher, key)).flatten()
    }

    pub(crate) fn contains_hash(&self, py: Python<'_>, hash: Hash) -> Result<bool> {
        self.state.wait(py, Access::Ask)?;
        self.state.ask(py, |state| state.contains(hash))
    }

    pub(crate) fn add_hash(&self, py: Python<'_>, hash: Hash) -> Result<bool> {
        self.check_writer()?;
        self.state.wait(py, Access::Change)?;
        self.state.with(py, |state| state.insert(hash))
    }

    /// For slow reads, such as of the whole filter.
    pub(crate) fn read<R: Send + 'static>(
        slf: &Bound<'_, Self>,
        work: impl FnOnce(&Backing) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        let bytes = slf.get().bytes_to_read(slf.py())?;
        slf.get().state.wait(slf.py(), Access::Ask)?;
        let mark = Mark::on(slf.clone().unbind(), slf.py());
        interrupt::if_large(slf.py(), bytes, move || mark.read(work))?
    }

    pub(crate) fn write<R: Send + 'static>(
        slf: &Bound<'_, Self>,
        work: impl FnOnce(&mut Backing) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        let bytes = slf.get().bytes_to_read(slf.py())?;
        slf.get().state.wait(slf.py(), Access::Change)?;
        let mark = Mark::on(slf.clone().unbind(), slf.py());
        interrupt::if_large(slf.py(), bytes, move || mark.write(work))?
    }

    /// Changes this filter while reading the other; `None` if both are the same.
    pub(crate) fn write_beside<R: Send + 'static>(
        slf: &Bound<'_, Self>,
        other: &Bound<'_, Self>,
        work: impl FnOnce(&mut Backing, &Backing) -> Result<R> + Send + 'static,
    ) -> Result<Option<R>> {
        let py = slf.py();
        let bytes = slf.get().bytes_to_read(py)?;
        slf.get().state.wait(py, Access::Change)?;
        other.get().state.wait(py, Access::Ask)?;
        let ours = Mark::on(slf.clone().unbind(), py);
        let theirs = Mark::on(other.clone().unbind(), py);
        let work = move || ours.write_beside(&theirs, work).transpose();
        interrupt::if_large(py, bytes, work)?
    }

    /// The amount of work to read the whole filter; a file's pages may have to come from disk.
    fn bytes_to_read(&self, py: Python<'_>) -> Result<u64> {
        if self.path.is_some() {
            return Ok(u64::MAX);
        }
        Ok(self.body_bytes(py)?)
    }

    /// The size of its body; 0 if closed.
    fn body_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        self.state.wait(py, Access::Ask)?;
        let bytes = self
            .state
            .ask(py, |state| ask!(state, filter => filter.bytes()));
        Ok(bytes.unwrap_or(0))
    }

    /// Runs a batch over the keys, or over the results of `hash_func`.
    fn run<'py>(
        &self,
        batch: Batch<'_>,
        keys: &Bound<'py, PyAny>,
        times: &Times,
        work: &(impl Fn(&[Hash], When<'_>, &mut [bool]) -> Result<()> + Sync),
    ) -> Result<Bound<'py, PyAny>> {
        let made;
        let keys = match &self.hash_func {
            None => keys,
            Some(function) => {
                made = hash_func::all_made_by(function, keys)?;
                &made
            }
        };
        let when = match times {
            Times::Now => When::Now,
            Times::At(moment) => When::At(*moment),
            Times::Each(moments) => {
                return batch.run_each(keys, moments, &|hashes, moments, answers| {
                    work(hashes, When::Each(moments), answers)
                });
            }
        };
        batch.run(keys, &|hashes: &[Hash], answers: &mut [bool]| {
            work(hashes, when, answers)
        })
    }

    pub(crate) fn ask_all<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        times: &Times,
        threads: usize,
        progress: Option<&Progress>,
    ) -> Result<Bound<'py, PyAny>> {
        let py = keys.py();
        // Reports errors before looking at the keys.
        get!(self, py, _filter => ())?;
        let mark = Mark::on(&self.state, py);
        let batch = Batch {
            ordered: false,
            hasher: self.hasher,
            threads,
            answers: true,
            progress,
        };
        self.run(batch, keys, times, &|hashes, when, found| {
            mark.read(|state| state.contains_all(hashes, when, found))
        })
    }

    pub(crate) fn insert_all<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        times: &Times,
        threads: usize,
        answers: bool,
        progress: Option<&Progress>,
    ) -> Result<Bound<'py, PyAny>> {
        let py = keys.py();
        // Reports errors before looking at the keys.
        self.state.wait(py, Access::Change)?;
        self.state.with(py, |state| state.writable().map(drop))?;
        self.check_writer()?;
        let mark = Mark::on(&self.state, py);
        let batch = Batch {
            ordered: true,
            hasher: self.hasher,
            threads,
            answers,
            progress,
        };
        self.run(batch, keys, times, &|hashes, when, new| {
            mark.write(|state| state.insert_all(hashes, when, new))
        })
    }

    /// The number of keys added, if known.
    pub(crate) fn counted(&self, py: Python<'_>) -> Result<Option<u64>> {
        get!(self, py, filter => filter.counted())
    }

    /// Refuses a filter that can't be added to.
    pub(crate) fn check_writable(&self, py: Python<'_>) -> Result<()> {
        self.check_writer()?;
        self.state.wait(py, Access::Change)?;
        self.state.with(py, |state| {
            let kind = state.writable()?.kind();
            if kind.is_static() {
                Err(Failure::Own(
                    "UnableError",
                    format!("filter: expected one that keys can be added to, got a {kind} filter"),
                ))
            } else {
                Ok(())
            }
        })
    }

    /// Adds keys, all of them or none. They were absent, and distinct, when the filter had `counted` keys. If others
    /// were added since, returns which of them were still new.
    pub(crate) fn add_absent(
        slf: &Bound<'_, Self>,
        hashes: Vec<Hash>,
        counted: Option<u64>,
    ) -> Result<Option<Vec<bool>>> {
        slf.get().check_writer()?;
        slf.get().state.wait(slf.py(), Access::Change)?;
        let mark = Mark::on(&slf.get().state, slf.py());
        slf.py().detach(|| {
            mark.write(|state| {
                let filter = state.writable()?;
                let alone = counted.is_some() && filter.counted() == counted;
                let new = backing::insert_absent(filter, &hashes)?;
                Ok((!alone).then_some(new))
            })
        })
    }

    /// Layers that one process adds to a growing filter's file are invisible to other processes, including forked ones.
    #[inline]
    pub(crate) fn check_writer(&self) -> Result<()> {
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

    pub(crate) fn is_apart(&self) -> bool {
        matches!(self.hasher, Hasher::Keyed { in_file: false, .. })
    }
}

// SAFETY: the value is part of the object, which the reference keeps in place.
unsafe impl Holds for Py<Filter> {
    type Value = Backing;

    fn shared(&self) -> &Shared<Backing> {
        &self.get().state
    }
}

impl Add for Filter {
    const DOC: &'static std::ffi::CStr = c"add($self, key, /)
--

Adds a key; returns whether it was new. True is always right; False is wrong for
about one in ``1/p`` new keys, which look as if present.

>>> import tamis
>>> seen = tamis.Filter(1000)
>>> seen.add(\"key\"), seen.add(\"key\")
(True, False)
>>> seen.add(b\"key\")       # the same key: a str is its UTF-8
False";

    fn add(this: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let hash = this.get().hash(key)?;
        clock::warn(key.py(), &this.get().state)?;
        Ok(this.get().add_hash(key.py(), hash)?)
    }

    #[inline(always)]
    fn add_at_once(this: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> Option<bool> {
        let this = this.get();
        let hash = this.usual_hash(key)?;
        this.state
            .with_at_once(key.py(), |state| match state {
                Backing::Writable(AnyFilter::Blocked(filter)) => Some(filter.insert_mut(hash)),
                Backing::Writable(AnyFilter::Window(window)) => clock::add_now(window, hash),
                _ => None,
            })
            .flatten()
    }
}

impl Contains for Filter {
    fn contains(this: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let this = this.get();
        let hash = this.hash(key)?;
        Ok(this.contains_hash(key.py(), hash)?)
    }

    #[inline(always)]
    fn contains_at_once(this: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> Option<bool> {
        let this = this.get();
        let hash = this.usual_hash(key)?;
        this.state
            .ask_at_once(key.py(), |state| match state {
                Backing::Writable(AnyFilter::Blocked(filter)) => Some(filter.contains(hash)),
                _ => None,
            })
            .flatten()
    }

    fn shown<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Ok(Self::__bytes__(this)?.into_any())
    }
}

/// The Python class `tamis.Filter`.
pub(crate) fn class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = CLASS.get_or_try_init(py, || {
        method::class_with_in::<Filter>(py, c"tamis.Filter").map(Bound::unbind)
    })?;
    Ok(class.bind(py))
}
