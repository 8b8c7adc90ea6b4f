//! `connect`: opens a filter in Redis, or makes it.

use super::RedisFilter;
use crate::argument;
use crate::error::{Failure, Result};
use crate::options::{self, Count, Need};
use crate::when;
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::time::Duration;
use tamis::internals::raw::Shape;
use tamis::{Hasher, Kind, Plan, window::WindowOptions};
use tamis_redis::{Error, Location, Options};

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

pub(super) fn seconds(what: &str, value: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(value).map_err(|_| {
        Failure::parameter(format!("{what}: expected a number of seconds, got {value}"))
    })
}
