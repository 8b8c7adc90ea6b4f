//! `tamis.build`: filters of fixed lists.

use crate::argument;
use crate::batch::Batch;
use crate::error::{Failure, Result};
use crate::filter::{Filter, making};
use crate::interrupt;
use crate::lock::lock;
use crate::options::{self, Count, parse_kind};
use crate::progress::Progress;
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use tamis::{Error, Hash, Hasher, Kind, ListBuilder, internals::Both};

/// Builds a filter from a finished list of keys: smaller than one that keys are
/// added to, and nothing can be added to it. Keys may come in any order and more
/// than once, from whatever `Filter.add_many` takes.
///
/// >>> import tamis
/// >>> fruit = tamis.build(["apple", "pear", "apple"], 0.001)
/// >>> "pear" in fruit, len(fruit), fruit.kind
/// (True, 2, 'fuse')
///
/// With ``allow``, a list of keys that must not be found, the filter is wrong on
/// no key of either list; ``both`` says which list wins a key that is on both,
/// "block" or "allow", and without it that is a `ContradictionError`. Different
/// keys with the same hash, one on each list, are a `CollisionError`: somebody
/// chose them, and ``keyed`` is the way out. The lists are read twice to notice.
///
/// >>> blocked = tamis.build(["evil.example"], allow=["good.example"])
/// >>> "evil.example" in blocked, "good.example" in blocked
/// (True, False)
///
/// ``kind="ribbon"`` is the smallest and takes longer to ask. ``memory`` bounds
/// the bytes that building takes, about; the rest goes to files in
/// ``temp_dir``. ``threads`` is 0 for one a core; ``progress`` is that of
/// `Filter.add_many`. The hash, ``ignore_case``, ``url`` and ``values`` are those
/// of `Filter`.
#[pyfunction]
#[pyo3(signature = (keys, p=0.01, *, allow=None, both=None, kind=None, seed=None, keyed=false, key=None, key_file=None, ignore_case=false, url=false, values=1, memory=None, temp_dir=None, threads=0, progress=None))]
#[expect(
    clippy::too_many_arguments,
    reason = "they are Python's keyword arguments"
)]
pub(crate) fn build<'py>(
    keys: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = argument::p)] p: f64,
    allow: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = argument::both)] both: Option<String>,
    #[pyo3(from_py_with = argument::kind)] kind: Option<String>,
    #[pyo3(from_py_with = argument::seed)] seed: Option<Count>,
    #[pyo3(from_py_with = argument::keyed)] keyed: bool,
    key: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = argument::key_file)] key_file: Option<PathBuf>,
    #[pyo3(from_py_with = argument::ignore_case)] ignore_case: bool,
    #[pyo3(from_py_with = argument::url)] url: bool,
    #[pyo3(from_py_with = argument::values)] values: usize,
    #[pyo3(from_py_with = argument::memory)] memory: Option<Count>,
    #[pyo3(from_py_with = argument::temp_dir)] temp_dir: Option<PathBuf>,
    #[pyo3(from_py_with = argument::threads)] threads: usize,
    progress: Option<&Bound<'_, PyAny>>,
) -> Result<Bound<'py, Filter>> {
    let progress = Progress::asked(progress)?;
    let kind = match (kind.as_deref().map(parse_kind).transpose()?, allow) {
        (None | Some(Kind::Cascade), Some(_)) | (Some(Kind::Cascade), None) => Kind::Cascade,
        (Some(kind), Some(_)) => {
            return Err(Failure::parameter(format!(
                "kind: expected \"cascade\" with an allow list, got {:?}",
                kind.name()
            )));
        }
        (kind, None) => kind.unwrap_or(Kind::Fuse),
    };
    let both = match both.as_deref() {
        None => Both::Refuse,
        Some("block") => Both::Block,
        Some("allow") => Both::Allow,
        Some(other) => {
            return Err(Failure::parameter(format!(
                "both: expected \"block\" or \"allow\", got {other:?}"
            )));
        }
    };
    let rule = options::rule_of(ignore_case, url, values)?;
    let hasher = options::hasher(seed, keyed, key, key_file, rule)?;
    let mut list = ListBuilder::with_hasher(kind, p, hasher)?
        .threads(options::threads(threads))
        .both(both);
    if let Some(memory) = memory {
        list = list.memory(memory.0);
    }
    if let Some(dir) = temp_dir {
        list = list.temp_dir(dir);
    }
    let told = progress.as_ref();
    if let Some(checker) = list.checker() {
        let (hashes, checks) = checked(keys, hasher, checker, told)?;
        list.add_checked(&hashes, &checks)?;
        if let Some(allow) = allow {
            let (hashes, checks) = checked(allow, hasher, checker, told)?;
            list.allow_checked(&hashes, &checks)?;
        }
    } else {
        let lists = Mutex::new(&mut list);
        collect(keys, hasher, &lists, told, |list, some| {
            list.add_hashes(some)
        })?;
        if let Some(allow) = allow {
            collect(allow, hasher, &lists, told, |list, some| {
                list.allow_hashes(some)
            })?;
        }
    }
    let filter = interrupt::apart(keys.py(), || list.build())??;
    Progress::finish(progress, keys.py())?;
    making::object(keys.py(), filter)
}

/// The hashes of all keys by both hashers, for a cascade.
fn checked(
    keys: &Bound<'_, PyAny>,
    hasher: Hasher,
    checker: Hasher,
    progress: Option<&Progress>,
) -> Result<(Vec<Hash>, Vec<Hash>)> {
    // Keys are read twice, so an iterator is turned into a list.
    let keys = if keys.hasattr("__next__")? {
        PyList::new(keys.py(), keys.try_iter()?.collect::<PyResult<Vec<_>>>()?)?.into_any()
    } else {
        keys.clone()
    };
    let hashed = |hasher, progress| {
        let hashes = Mutex::new(Vec::new());
        collect(&keys, hasher, &hashes, progress, |hashes, some| {
            hashes.extend_from_slice(some);
            Ok(())
        })?;
        Ok::<_, Failure>(hashes.into_inner().unwrap_or_else(PoisonError::into_inner))
    };
    let (hashes, checks) = (hashed(hasher, progress)?, hashed(checker, None)?);
    if hashes.len() == checks.len() {
        Ok((hashes, checks))
    } else {
        Err(Failure::parameter(
            "keys: expected what can be read twice, since with an allow list keys are compared by \
             two hashes; make it a list, or say keyed=True"
                .to_owned(),
        ))
    }
}

/// Passes the hashes of all keys, in order, to the builder.
fn collect<T: Send>(
    keys: &Bound<'_, PyAny>,
    hasher: Hasher,
    taker: &Mutex<T>,
    progress: Option<&Progress>,
    add: impl Fn(&mut T, &[Hash]) -> Result<(), Error> + Sync,
) -> Result<()> {
    let batch = Batch {
        hasher,
        threads: 1,
        answers: false,
        ordered: true,
        progress,
    };
    batch.run(keys, &|hashes: &[Hash], _: &mut [bool]| {
        Ok(add(&mut lock(taker), hashes)?)
    })?;
    Ok(())
}
