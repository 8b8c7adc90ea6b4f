//! `tamis.connect`: a filter in Redis.

mod connecting;

pub(crate) use connecting::connect;

use crate::argument;
use crate::batch::Batch;
use crate::error::{Failure, Result};
use crate::filter::{Filter, making};
use crate::foreign_keys::Blocks;
use crate::fork::Process;
use crate::key;
use crate::lock::lock;
use crate::mask::Answers;
use connecting::seconds;
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tamis::{Hash, Hasher, KeyCount, KeyRule};
use tamis_redis::{Error, Location, Options};

/// A filter that many workers share, in Redis: what `connect` gives. It has
/// the methods of `Filter`; each call is a round trip to the server, a batch
/// one for some thousand keys.
#[pyclass(frozen, module = "tamis", name = "RedisFilter")]
pub(crate) struct RedisFilter {
    /// None where a module of the server hashes the keys.
    pub(crate) hasher: Option<Hasher>,
    location: Location,
    options: Options,
    /// What `connect` was called with, as far as another process needs it.
    arguments: Py<PyDict>,
    /// One connection, so one call at a time. A panic leaves no filter half
    /// changed: its keys are the server's. The outer lock is held by attached
    /// threads alone, so a fork finds it free.
    connection: Mutex<Arc<Mutex<Connection>>>,
    process: Process,
}

enum Connection {
    Open(Box<tamis_redis::RedisFilter>),
    /// Opened by the first call.
    Awaited,
    Closed,
}

impl Connection {
    fn awaited() -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self::Awaited))
    }
}

impl RedisFilter {
    /// The filter, if its keys are made by the requested rule.
    fn of(
        location: Location,
        options: Options,
        arguments: Py<PyDict>,
        filter: tamis_redis::RedisFilter,
        asked: &KeyRule,
    ) -> Result<Self> {
        let hasher = filter.hasher().copied();
        let has = hasher.as_ref().map_or(&KeyRule::EXACT, Hasher::rule);
        let case = asked.ignores_case() && !has.ignores_case();
        if case || (asked.normalises_urls() && !has.normalises_urls()) {
            return Err(Failure::parameter(format!(
                "ignore_case, url: expected what the filter was made with ({has}), got {asked}"
            )));
        }
        Ok(Self {
            hasher,
            location,
            options,
            arguments,
            connection: Mutex::new(Arc::new(Mutex::new(Connection::Open(Box::new(filter))))),
            process: Process::this(),
        })
    }

    /// Talks to the server, without the GIL.
    fn with<R: Send>(
        &self,
        py: Python<'_>,
        talk: impl FnOnce(&mut tamis_redis::RedisFilter) -> Result<R, Error> + Send,
    ) -> Result<R> {
        let connection = self.connection(py);
        py.detach(|| self.talk(&connection, talk))
    }

    /// The connection of this process.
    fn connection(&self, py: Python<'_>) -> Arc<Mutex<Connection>> {
        let mut connection = lock(&self.connection);
        if !self.process.can_lock(py, &connection) {
            // Another thread was talking to the server when this process was forked. That thread doesn't exist here,
            // and what it left half done is never touched again.
            let lost = std::mem::replace(&mut *connection, Connection::awaited());
            std::mem::forget(lost);
            self.process.adopt();
        }
        Arc::clone(&connection)
    }

    fn talk<R>(
        &self,
        connection: &Mutex<Connection>,
        talk: impl FnOnce(&mut tamis_redis::RedisFilter) -> Result<R, Error>,
    ) -> Result<R> {
        let mut connection = lock(connection);
        Ok(talk(self.open(&mut connection)?)?)
    }

    fn open<'a>(
        &self,
        connection: &'a mut Connection,
    ) -> Result<&'a mut Box<tamis_redis::RedisFilter>> {
        if let Connection::Awaited = connection {
            let filter = tamis_redis::RedisFilter::open(&self.location, &self.options)?;
            *connection = Connection::Open(Box::new(filter));
        }
        match connection {
            Connection::Open(filter) => Ok(filter),
            _ => Err(Failure::closed()),
        }
    }

    fn run<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        answers: bool,
        verb: Verb,
    ) -> Result<Bound<'py, PyAny>> {
        // Reports errors before looking at the keys.
        self.with(keys.py(), |_| Ok(()))?;
        let Some(hasher) = self.hasher else {
            return self.run_keys(keys, answers, verb);
        };
        let batch = Batch {
            hasher,
            threads: 1,
            answers,
            ordered: true,
            progress: None,
        };
        let connection = self.connection(keys.py());
        batch.run(keys, &|hashes: &[Hash], out: &mut [bool]| {
            self.talk(&connection, |filter| verb.hashes(filter, hashes, out))
        })
    }

    /// The same with the raw keys.
    fn run_keys<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        answers: bool,
        verb: Verb,
    ) -> Result<Bound<'py, PyAny>> {
        let answers = if answers {
            Answers::wanted(keys)?
        } else {
            Answers::Dropped
        };
        let connection = self.connection(keys.py());
        let work = |keys: &[&[u8]], out: &mut [bool]| {
            self.talk(&connection, |filter| verb.keys(filter, keys, out))
        };
        let blocks = Blocks::new(keys.py(), answers, work);
        match key::library(keys)?.as_str() {
            "numpy" | "pandas" | "polars" | "pyarrow" => blocks.of_column(keys),
            _ => blocks.of_objects(keys, key::bytes),
        }
    }

    /// Queries, adds or removes keys in one call.
    pub(crate) fn call(
        &self,
        py: Python<'_>,
        verb: Verb,
        keys: &Keys<'_>,
        out: &mut [bool],
    ) -> Result<()> {
        self.with(py, |filter| verb.call(filter, keys, out))
    }

    fn one(&self, key: &Bound<'_, PyAny>, verb: Verb) -> Result<bool> {
        let mut answer = [false];
        self.with_key(key, |filter, key| verb.call(filter, key, &mut answer))?;
        Ok(answer[0])
    }

    /// Talks to the server about a single key.
    fn with_key(
        &self,
        key: &Bound<'_, PyAny>,
        talk: impl FnOnce(&mut tamis_redis::RedisFilter, &Keys<'_>) -> Result<(), Error> + Send,
    ) -> Result<()> {
        let bytes;
        let keys = match &self.hasher {
            Some(hasher) => Keys::Hashes(vec![key::hash(hasher, key)?]),
            None => {
                bytes = key::bytes(key)?;
                Keys::Bytes(vec![&bytes])
            }
        };
        self.with(key.py(), |filter| talk(filter, &keys))
    }
}

/// Keys in the form that a server takes.
pub(crate) enum Keys<'a> {
    Hashes(Vec<Hash>),
    Bytes(Vec<&'a [u8]>),
}

/// An operation on keys.
#[derive(Clone, Copy)]
pub(crate) enum Verb {
    Add,
    Ask,
    Remove,
}

impl Verb {
    fn call(
        self,
        filter: &mut tamis_redis::RedisFilter,
        keys: &Keys<'_>,
        out: &mut [bool],
    ) -> Result<(), Error> {
        match keys {
            Keys::Hashes(hashes) => self.hashes(filter, hashes, out),
            Keys::Bytes(keys) => self.keys(filter, keys, out),
        }
    }

    fn keys(
        self,
        filter: &mut tamis_redis::RedisFilter,
        keys: &[&[u8]],
        out: &mut [bool],
    ) -> Result<(), Error> {
        match self {
            Self::Add => filter.insert_many(keys, out),
            Self::Ask => filter.contains_many(keys, out),
            Self::Remove => filter.remove_many(keys, out),
        }
    }

    fn hashes(
        self,
        filter: &mut tamis_redis::RedisFilter,
        hashes: &[Hash],
        out: &mut [bool],
    ) -> Result<(), Error> {
        match self {
            Self::Add => filter.insert_hashes(hashes, out),
            Self::Ask => filter.contains_hashes(hashes, out),
            Self::Remove => filter.remove_hashes(hashes, out),
        }
    }
}

#[pymethods]
impl RedisFilter {
    /// Adds a key; returns whether it was new. Of many workers that add one key at
    /// once, exactly one is told True.
    #[pyo3(signature = (key, /))]
    fn add(&self, key: &Bound<'_, PyAny>) -> Result<bool> {
        self.one(key, Verb::Add)
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> Result<bool> {
        self.one(key, Verb::Ask)
    }

    /// Adds many keys, and answers nothing; see `add_many`.
    #[pyo3(signature = (keys, /))]
    fn update(&self, keys: &Bound<'_, PyAny>) -> Result<()> {
        self.run(keys, false, Verb::Add).map(drop)
    }

    /// Adds many keys; returns whether each was new. Keys and answers are as
    /// those of `Filter.add_many`.
    #[pyo3(signature = (keys, /))]
    fn add_many<'py>(&self, keys: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        self.run(keys, true, Verb::Add)
    }

    /// Asks many keys; returns for each whether it may have been added.
    #[pyo3(signature = (keys, /))]
    fn contains_many<'py>(&self, keys: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        self.run(keys, true, Verb::Ask)
    }

    /// Undoes one addition of a key, of a filter made with ``delete=True``;
    /// returns whether it seemed present. Only for keys that were added.
    #[pyo3(signature = (key, /))]
    fn remove(&self, key: &Bound<'_, PyAny>) -> Result<bool> {
        self.one(key, Verb::Remove)
    }

    /// How often a key was added, at most, to a filter made with
    /// ``delete=True``.
    #[pyo3(signature = (key, /))]
    fn count(&self, key: &Bound<'_, PyAny>) -> Result<u64> {
        let mut counts = [0];
        self.with_key(key, |filter, key| match key {
            Keys::Hashes(hashes) => filter.count_hashes(hashes, &mut counts),
            Keys::Bytes(keys) => filter.count_many(keys, &mut counts),
        })?;
        Ok(counts[0])
    }

    /// Always `IndeterminateCountError`: workers don't count together, so that
    /// no counter slows them down. ``info()["keys"]`` has an estimate.
    fn __len__(&self) -> Result<usize> {
        Err(Failure::Own(
            "IndeterminateCountError",
            "the number of keys of a filter in Redis is indeterminate; info()[\"keys\"] has an \
             estimate"
                .into(),
        ))
    }

    /// A filter is there, however many keys it has.
    fn __bool__(&self) -> bool {
        true
    }

    /// Removes all keys.
    fn clear(&self, py: Python<'_>) -> Result<()> {
        self.with(py, tamis_redis::RedisFilter::clear)
    }

    /// A copy in memory, with the same bits.
    fn copy<'py>(&self, py: Python<'py>) -> Result<Bound<'py, Filter>> {
        making::object(py, self.with(py, tamis_redis::RedisFilter::download)?)
    }

    /// Writes a copy to a file, which is replaced as a whole or not at all.
    #[pyo3(signature = (path, /))]
    fn save(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::path)] path: PathBuf,
    ) -> Result<()> {
        let filter = self.with(py, tamis_redis::RedisFilter::download)?;
        Ok(py.detach(|| filter.save(path))?)
    }

    /// Adds all keys of a filter of the same shape and hash.
    fn __ior__(&self, other: &Bound<'_, Filter>) -> Result<()> {
        let other = Filter::to_memory(other)?;
        Python::attach(|py| self.with(py, |filter| filter.union_with(&other)))
    }

    /// How many keys it is made for; of a growing filter, before it grows next.
    #[getter]
    fn capacity(&self, py: Python<'_>) -> Result<u64> {
        self.with(py, |filter| Ok(filter.capacity()))
    }

    /// The promised rate of false "yes".
    #[getter]
    fn p(&self, py: Python<'_>) -> Result<f64> {
        self.with(py, |filter| Ok(filter.rate()))
    }

    /// The rate to expect now.
    #[getter]
    fn p_now(&self, py: Python<'_>) -> Result<f64> {
        self.with(py, tamis_redis::RedisFilter::rate_now)
    }

    /// The share of its capacity that is taken, estimated.
    #[getter]
    fn fill(&self, py: Python<'_>) -> Result<f64> {
        self.with(py, |filter| {
            Ok(filter.keys()?.get() as f64 / filter.capacity().max(1) as f64)
        })
    }

    /// The kind: "blocked", "counting", "growing" or "window"; in a module "growing"
    /// or "cuckoo".
    #[getter]
    fn kind(&self, py: Python<'_>) -> Result<&'static str> {
        self.with(py, |filter| Ok(filter.kind().name()))
    }

    /// The size in bytes.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> Result<u64> {
        self.with(py, |filter| Ok(filter.bytes()))
    }

    /// Where it lives, without the password.
    #[getter]
    fn location(&self) -> String {
        self.location.to_string()
    }

    /// Whether it was closed.
    #[getter]
    fn closed(&self, py: Python<'_>) -> Result<bool> {
        let connection = self.connection(py);
        Ok(py.detach(|| matches!(*lock(&connection), Connection::Closed)))
    }

    /// What the filter is and how full, as a dict.
    fn info<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        let (kind, capacity, rate, counted, rate_now, bytes, time) = self.with(py, |f| {
            let (keys, rate_now, time) = (f.keys()?, f.rate_now()?, f.time_to_live()?);
            let (kind, capacity, rate) = (f.kind(), f.capacity(), f.rate());
            Ok((kind, capacity, rate, keys, rate_now, f.bytes(), time))
        })?;
        let keys = counted.get();
        let info = PyDict::new(py);
        info.set_item("kind", kind.name())?;
        info.set_item("capacity", capacity)?;
        info.set_item("p", rate)?;
        info.set_item("keys", keys)?;
        info.set_item("keys_counted", matches!(counted, KeyCount::Counted(_)))?;
        info.set_item("fill", keys as f64 / capacity.max(1) as f64)?;
        info.set_item("p_now", rate_now)?;
        info.set_item("bytes", bytes)?;
        info.set_item("hash", self.hasher.map(|hasher| hasher.name()))?;
        info.set_item("module", self.hasher.is_none())?;
        info.set_item("location", self.location())?;
        info.set_item("seconds_to_live", time.map(|time| time.as_secs_f64()))?;
        Ok(info)
    }

    /// Lets the whole filter end after so many seconds, or never (None).
    #[pyo3(signature = (seconds, /))]
    fn expire(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::seconds)] seconds: Option<f64>,
    ) -> Result<()> {
        let time = seconds.map(|s| self::seconds("seconds", s)).transpose()?;
        self.with(py, |filter| match time {
            Some(time) => filter.expire_in(time),
            None => filter.persist(),
        })
    }

    /// Deletes the filter on the server, for everyone.
    fn delete(&self, py: Python<'_>) -> Result<()> {
        let connection = self.connection(py);
        py.detach(|| {
            let mut connection = lock(&connection);
            self.open(&mut connection)?;
            match std::mem::replace(&mut *connection, Connection::Closed) {
                Connection::Open(filter) => Ok(filter.delete()?),
                _ => Err(Failure::closed()),
            }
        })
    }

    /// Lets go of the connection; the filter stays on the server.
    fn close(&self, py: Python<'_>) {
        let connection = self.connection(py);
        py.detach(|| *lock(&connection) = Connection::Closed);
    }

    /// The same filter over a connection of its own, which the first call opens.
    fn _another(&self, py: Python<'_>) -> Self {
        Self {
            hasher: self.hasher,
            location: self.location.clone(),
            options: self.options.clone(),
            arguments: self.arguments.clone_ref(py),
            connection: Mutex::new(Connection::awaited()),
            process: Process::this(),
        }
    }

    /// A pickle holds where the filter is and how to connect; unpickling connects.
    fn __reduce__<'py>(&self, py: Python<'py>) -> Result<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let arguments = self.arguments.bind(py);
        if arguments.contains("key")? {
            return Err(Failure::Own(
                "KeyNeededError",
                "the filter's secret is kept apart, and a pickle would hold it: connect with \
                 key_file, whose path a pickle holds instead"
                    .into(),
            ));
        }
        if self.location.has_password() {
            let text = c"the pickle holds the server's password: whoever reads it can use it";
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), text, 1)?;
        }
        let connect = py.import("tamis")?.getattr("connect")?;
        let partial = py.import("functools")?.getattr("partial")?;
        Ok((
            partial.call((connect,), Some(arguments))?,
            PyTuple::empty(py),
        ))
    }

    fn __repr__(&self) -> String {
        format!("<tamis.RedisFilter {}>", self.location)
    }

    fn __enter__<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, Self>> {
        slf.get().with(slf.py(), |_| Ok(()))?;
        Ok(slf.clone())
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) {
        self.close(_exception.py());
    }
}
