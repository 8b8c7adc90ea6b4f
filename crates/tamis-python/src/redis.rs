//! `tamis.connect`: a filter in Redis.

use crate::argument;
use crate::batch::Batch;
use crate::error::{Failure, Result};
use crate::filter::{Filter, making};
use crate::foreign_keys::Blocks;
use crate::fork::Process;
use crate::key;
use crate::lock::lock;
use crate::mask::Answers;
use crate::options::{self, Count, Need};
use crate::when;
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tamis::internals::raw::Shape;
use tamis::{Hash, Hasher, KeyCount, KeyRule, Kind, Plan, window::WindowOptions};
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

/// Opens a filter in Redis, on one server (``redis://HOST:PORT/DB/NAME``,
/// ``rediss://`` for TLS) or a cluster (``redis+cluster://HOST:PORT,…/NAME``).
///
/// With ``n`` the filter is made if it is not there, so that every worker can
/// begin with the same call; ``p``, ``kind``, ``delete``, ``grow``, the hash,
/// ``ignore_case`` and ``url`` are as for `Filter`, and count only then. ``module`` makes it in the
/// module of the server, which hashes the keys itself, so that clients of BF.* and CF.* share it;
/// a filter that is there is found wherever it is. ``within`` or ``quiet``, and ``generations``, make a
/// window as those of `Window` do: it takes this machine's clock, and the server forgets by itself. A server may be silent for
/// ``timeout`` seconds; while servers are down or change roles, calls go on
/// trying for ``retry_for`` seconds. ``wait_replicas`` takes an addition as done
/// only when so many replicas have it. ``tls_ca`` is a file (PEM) of the
/// authority to trust; ``tls_cert`` and ``tls_key`` are those of the client, for
/// servers that ask for them. A replica that has lost its master, or has not heard
/// from it for ``max_lag`` seconds, is not asked unless ``allow_stale``. A
/// replica is not written to, even if it is writable, unless ``allow_replica_writes``: its next copy of its
/// master would lose the keys.
#[pyfunction]
#[pyo3(signature = (location, n=None, p=None, *, kind=None, delete=false, grow=false, seed=None, keyed=false, key=None, key_file=None, ignore_case=false, url=false, module=false, within=None, quiet=None, generations=8, timeout=10.0, retry_for=30.0, wait_replicas=0, tls_ca=None, tls_cert=None, tls_key=None, max_lag=15.0, allow_stale=false, allow_replica_writes=false))]
#[expect(
    clippy::too_many_arguments,
    reason = "they are Python's keyword arguments"
)]
pub(crate) fn connect(
    py: Python<'_>,
    #[pyo3(from_py_with = argument::location)] location: String,
    #[pyo3(from_py_with = argument::n)] n: Option<Count>,
    #[pyo3(from_py_with = argument::p)] p: Option<f64>,
    #[pyo3(from_py_with = argument::kind)] kind: Option<String>,
    #[pyo3(from_py_with = argument::delete)] delete: bool,
    #[pyo3(from_py_with = argument::grow)] grow: bool,
    #[pyo3(from_py_with = argument::seed)] seed: Option<Count>,
    #[pyo3(from_py_with = argument::keyed)] keyed: bool,
    key: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = argument::key_file)] key_file: Option<PathBuf>,
    #[pyo3(from_py_with = argument::ignore_case)] ignore_case: bool,
    #[pyo3(from_py_with = argument::url)] url: bool,
    #[pyo3(from_py_with = argument::module)] module: bool,
    within: Option<&Bound<'_, PyAny>>,
    quiet: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = argument::generations)] generations: u32,
    #[pyo3(from_py_with = argument::timeout)] timeout: f64,
    #[pyo3(from_py_with = argument::retry_for)] retry_for: f64,
    #[pyo3(from_py_with = argument::wait_replicas)] wait_replicas: u32,
    #[pyo3(from_py_with = argument::tls_ca)] tls_ca: Option<PathBuf>,
    #[pyo3(from_py_with = argument::tls_cert)] tls_cert: Option<PathBuf>,
    #[pyo3(from_py_with = argument::tls_key)] tls_key: Option<PathBuf>,
    #[pyo3(from_py_with = argument::max_lag)] max_lag: f64,
    #[pyo3(from_py_with = argument::allow_stale)] allow_stale: bool,
    #[pyo3(from_py_with = argument::allow_replica_writes)] allow_replica_writes: bool,
) -> Result<RedisFilter> {
    let arguments = PyDict::new(py);
    arguments.set_item("location", &location)?;
    for (name, value) in [
        ("timeout", timeout),
        ("retry_for", retry_for),
        ("max_lag", max_lag),
    ] {
        arguments.set_item(name, value)?;
    }
    arguments.set_item("wait_replicas", wait_replicas)?;
    arguments.set_item("allow_stale", allow_stale)?;
    arguments.set_item("allow_replica_writes", allow_replica_writes)?;
    for (name, path) in [
        ("tls_ca", &tls_ca),
        ("tls_cert", &tls_cert),
        ("tls_key", &tls_key),
        ("key_file", &key_file),
    ] {
        arguments.set_item(name, path.as_ref().map(|path| path.as_os_str()))?;
    }
    if key.is_some() {
        arguments.set_item("key", py.None())?;
    }
    let location: Location = location.parse()?;
    let timeout = seconds("timeout", timeout)?;
    let mut options = Options::new()
        .connect_timeout(timeout)
        .response_timeout(timeout)
        .retry_for(seconds("retry_for", retry_for)?)
        .wait_replicas(wait_replicas, timeout)
        .max_lag(seconds("max_lag", max_lag)?);
    options = with_certificates(options, tls_ca, tls_cert, tls_key)?;
    if location.is_insecure() {
        let text = c"tls=insecure accepts any certificate: anyone can pose as the server";
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), text, 1)?;
    }
    if allow_stale {
        options = options.allow_stale();
    }
    if allow_replica_writes {
        options = options.allow_replica_writes();
    }
    if module {
        options = options.in_module();
    }
    let need = Need {
        window: when::window(within, quiet, None, generations)?,
        ..Need::of(delete, grow).in_file()
    };
    let asked = Asked {
        window: need.window,
        kind: kind.as_deref().map(options::parse_kind).transpose()?,
        delete,
        grow,
    };
    let makes_one = need.window.is_some() || p.is_some() || kind.is_some() || delete || grow;
    if n.is_none() && (makes_one || seed.is_some() || keyed || module) {
        return Err(Failure::parameter(
            "n: expected how many keys to make the filter for, got only how to make it",
        ));
    }
    let rule = options::rule(ignore_case, url);
    let hasher = options::hasher(seed, keyed, key, key_file, rule)?;
    if let Hasher::Keyed {
        key,
        in_file: false,
        ..
    } = hasher
    {
        options = options.key(key);
    }
    let plan = n.map(|n| planned(need, kind.as_deref(), module, n.0, p.unwrap_or(0.01)));
    let plan = plan.transpose()?;
    let filter = py.detach(|| open_or_create(&location, plan.as_ref(), hasher, &options))?;
    asked.check(&filter)?;
    RedisFilter::of(location, options, arguments.unbind(), filter, &rule)
}

/// The caller's requirements on a filter, whoever created it.
struct Asked {
    window: Option<WindowOptions>,
    kind: Option<Kind>,
    delete: bool,
    grow: bool,
}

impl Asked {
    fn check(&self, filter: &tamis_redis::RedisFilter) -> Result<()> {
        let is = filter.kind();
        let window = match filter.shape() {
            Some(Shape::Window(shape)) => Some(shape.options()),
            _ => None,
        };
        let alike = |asked: &WindowOptions, is: &WindowOptions| {
            asked.span() == is.span() && asked.renewed() == is.renewed()
        };
        let expected = match self {
            Self {
                window: Some(asked),
                ..
            } if !window.as_ref().is_some_and(|is| alike(asked, is)) => {
                "within, quiet: expected a window of that time"
            }
            Self {
                kind: Some(kind), ..
            } if *kind != is => "kind: expected a filter of this kind",
            Self { delete: true, .. } if !matches!(is, Kind::Counting | Kind::Cuckoo) => {
                "delete: expected a filter whose keys can be removed"
            }
            Self { grow: true, .. } if is != Kind::Growing => "grow: expected a filter that grows",
            _ => return Ok(()),
        };
        let got = match window {
            Some(_) if self.window.is_some() => "another window".to_owned(),
            _ => format!("a {is} filter"),
        };
        Err(Failure::parameter(format!(
            "{expected}, got {got}, which someone made before; delete it, or choose another name"
        )))
    }
}

/// The plan of a filter in Redis.
fn planned(need: Need, kind: Option<&str>, module: bool, n: u64, rate: f64) -> Result<Plan> {
    if let Some(window) = &need.window {
        if kind.is_some() || need.delete || need.grow || module {
            return Err(Failure::parameter(
                "within, quiet: expected n and p beside them, got something else; a window is a kind \
                 of its own, and not in the module",
            ));
        }
        return options::plan_window(window, Some(n), rate);
    }
    if module {
        return plan_in_module(kind, need.delete, n, rate);
    }
    need.plan(kind, |kind| Ok(Plan::one_line(kind, n, rate)?))
}

fn with_certificates(
    mut options: Options,
    tls_ca: Option<PathBuf>,
    tls_cert: Option<PathBuf>,
    tls_key: Option<PathBuf>,
) -> Result<Options> {
    let read = |path: PathBuf| tamis::internals::file::read_small(path, 16 << 20);
    if let Some(path) = tls_ca {
        options = options.tls_root(read(path)?);
    }
    match (tls_cert, tls_key) {
        (None, None) => {}
        (Some(certificate), Some(key)) => {
            options = options.tls_identity(read(certificate)?, read(key)?);
        }
        _ => {
            return Err(Failure::parameter(
                "tls_cert, tls_key: expected both or neither, got one",
            ));
        }
    }
    options.check_certificates()?;
    Ok(options)
}

/// The plan of a filter in a module: of the named kind, or else of the module's default.
fn plan_in_module(kind: Option<&str>, delete: bool, n: u64, rate: f64) -> Result<Plan> {
    let kind = match kind {
        Some(name) => options::parse_kind(name)?,
        None if delete => Kind::Cuckoo,
        None => Kind::Growing,
    };
    Ok(Plan::for_rate(kind, n, rate)?)
}

fn open_or_create(
    location: &Location,
    plan: Option<&Plan>,
    hasher: Hasher,
    options: &Options,
) -> Result<tamis_redis::RedisFilter, Error> {
    let opened = tamis_redis::RedisFilter::open(location, options);
    let (Err(Error::NotFound { .. }), Some(plan)) = (&opened, plan) else {
        return opened;
    };
    match tamis_redis::RedisFilter::create(location, plan, hasher, options) {
        // Another worker has just created it, which is fine.
        Err(Error::Exists { .. }) => tamis_redis::RedisFilter::open(location, options),
        created => created,
    }
}

fn seconds(what: &str, value: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(value).map_err(|_| {
        Failure::parameter(format!("{what}: expected a number of seconds, got {value}"))
    })
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
