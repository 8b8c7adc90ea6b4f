//! Batches of keys: from any container to hashes and answers.

use crate::capsule::Arrays;
use crate::error::{Failure, Result};
use crate::interrupt::Lookout;
use crate::key::{self, prefetch};
use crate::lock::lock;
use crate::mask::{Answers, Bits};
use crate::numpy;
use crate::options;
use crate::progress::Progress;
use crate::source::Source;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use tamis::{Hash, Hasher, Moment};
use tamis_python_core::column::KeyColumn;
use tamis_python_core::keys::NoKeys;

/// Keys that are hashed and then processed together: their hashes stay in the L1 cache.
const ROWS: usize = 1024;
/// Rows that a thread takes at a time.
const PART: usize = 4096;
/// Python objects that are hashed at once under the GIL: about as long as the interpreter makes other threads wait
/// anyway.
const OBJECTS: usize = 1 << 15;
/// Rows whose answers are collected before they are appended.
const SPAN: usize = 1 << 20;

/// What to do with the hashes of keys, without the GIL and maybe on several threads at once; `answers[i]` is for
/// `hashes[i]`.
pub(crate) trait Work: Fn(&[Hash], &mut [bool]) -> Result<()> + Sync {}
impl<F: Fn(&[Hash], &mut [bool]) -> Result<()> + Sync> Work for F {}

/// The options of a batch.
#[derive(Clone, Copy)]
pub(crate) struct Batch<'a> {
    pub(crate) hasher: Hasher,
    /// 0 means one per core.
    pub(crate) threads: usize,
    /// Whether answers are wanted.
    pub(crate) answers: bool,
    /// Whether the work depends on the order of the keys.
    pub(crate) ordered: bool,
    /// Receives progress reports.
    pub(crate) progress: Option<&'a Progress>,
}

impl Batch<'_> {
    /// Does `work` for all keys; the answers come in an object like `keys`. A failure acts as in a loop: the work is
    /// done for the keys before, and for none after.
    pub(crate) fn run<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        work: &impl Work,
    ) -> Result<Bound<'py, PyAny>> {
        let source = source(keys)?;
        let mut answers = self.answers_for(keys, source.as_ref())?;
        let like = self.run_source(keys, source, work, &mut answers)?;
        Ok(answers.like(&like)?)
    }

    /// [`run`](Self::run) for keys with a time each. Work only begins once all keys were read, so that an invalid key,
    /// or a wrong number of keys, is reported first.
    pub(crate) fn run_each<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        moments: &[Moment],
        work: &(impl Fn(&[Hash], &[Moment], &mut [bool]) -> Result<()> + Sync),
    ) -> Result<Bound<'py, PyAny>> {
        let source = source(keys)?;
        let mut answers = self.answers_for(keys, source.as_ref())?;
        let (read, mut keyed) = (Mutex::new(Vec::new()), Answers::Bools(Vec::new()));
        let reading = Batch {
            ordered: true,
            progress: None,
            ..*self
        };
        let read_all = |hashes: &[Hash], keyed: &mut [bool]| {
            lock(&read).extend_from_slice(hashes);
            keyed.fill(true);
            Ok(())
        };
        let like = reading.run_source(keys, source, &read_all, &mut keyed)?;
        let Answers::Bools(keyed) = keyed else {
            return Err(Failure::parameter("keys: expected rows, got none"));
        };
        if keyed.len() != moments.len() {
            let (keys, times) = (keyed.len(), moments.len());
            return Err(Failure::parameter(format!(
                "at: expected a time for each of {keys} keys, got {times}"
            )));
        }
        let hashes = read.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut hashes = hashes.into_iter();
        for (keyed, moments) in keyed.chunks(OBJECTS).zip(moments.chunks(OBJECTS)) {
            let rows = || keyed.iter().enumerate();
            let missing = rows().filter(|(_, keyed)| !**keyed);
            let hashed = Hashed {
                missing: Some(missing.map(|(row, _)| row).collect()),
                hashes: (hashes.by_ref())
                    .take(rows().filter(|(_, keyed)| **keyed).count())
                    .collect(),
            };
            let moments = moments.iter().zip(keyed).filter(|(_, keyed)| **keyed);
            let moments: Vec<Moment> = moments.map(|(moment, _)| *moment).collect();
            let done = AtomicUsize::new(0);
            let work = |hashes: &[Hash], found: &mut [bool]| {
                let start = done.fetch_add(hashes.len(), Ordering::Relaxed);
                work(hashes, &moments[start..start + hashes.len()], found)
            };
            self.flush(keys.py(), &hashed, &work, &mut answers)?;
        }
        Ok(answers.like(&like)?)
    }

    /// Answers in the shape that becomes an object like the keys.
    fn answers_for(&self, keys: &Bound<'_, PyAny>, source: Option<&Source<'_>>) -> Result<Answers> {
        Ok(match source {
            _ if !self.answers => Answers::Dropped,
            Some(Source::Arrow(_)) if key::library(keys)? != "pandas" => {
                Answers::Bits(Bits::default())
            }
            _ => Answers::Bools(Vec::new()),
        })
    }

    /// Does `work` for all keys; returns the type of the answers.
    fn run_source<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        source: Option<Source<'py>>,
        work: &impl Work,
        answers: &mut Answers,
    ) -> Result<Bound<'py, PyAny>> {
        match source {
            None => self.run_sequence(keys, false, work, answers)?,
            Some(Source::Arrow(arrays)) => self.run_arrays(keys.py(), arrays, work, answers)?,
            Some(Source::Array { array, masked, utc }) => {
                match numpy::column(&array, masked.as_deref(), utc)? {
                    Some(column) => self.run_column(keys.py(), &column, work, answers)?,
                    None => {
                        // Masked values are None in this list.
                        let list = array.call_method0("tolist")?;
                        self.run_sequence(&list, masked.is_some(), work, answers)?;
                    }
                }
                return Ok(array);
            }
            Some(Source::Objects(list)) => self.run_sequence(&list, true, work, answers)?,
            Some(Source::Iterable) => self.run_iterator(keys, work, answers)?,
        }
        Ok(keys.clone())
    }

    /// Objects of a list or a tuple. They are hashed in place under the GIL; the work is done without it. In a column,
    /// some may be `missing`.
    fn run_sequence(
        &self,
        keys: &Bound<'_, PyAny>,
        missing: bool,
        work: &impl Work,
        answers: &mut Answers,
    ) -> Result<()> {
        // In free-threaded builds another thread could drop an object meanwhile, so this takes the list's current keys.
        #[cfg(Py_GIL_DISABLED)]
        let keys = &match keys.cast_exact::<PyList>() {
            Ok(list) => list.to_tuple().into_any(),
            Err(_) => keys.clone(),
        };
        let len = keys.len()?;
        let get = if keys.is_exact_instance_of::<PyList>() {
            ffi::PyList_GetItem
        } else {
            ffi::PyTuple_GetItem
        };
        let mut hashed = Hashed {
            hashes: Vec::with_capacity(len.min(OBJECTS)),
            missing: missing.then(Vec::new),
        };
        for start in (0..len).step_by(OBJECTS) {
            hashed.clear();
            let range = start..len.min(start + OBJECTS);
            let done = self.hash_items(keys, get, range, &mut hashed);
            self.flush(keys.py(), &hashed, work, answers)?;
            done?;
        }
        Ok(())
    }

    /// Hashes some objects of a list or tuple: a few at a time, to prefetch their memory.
    fn hash_items(
        &self,
        keys: &Bound<'_, PyAny>,
        get: unsafe extern "C" fn(*mut ffi::PyObject, ffi::Py_ssize_t) -> *mut ffi::PyObject,
        range: Range<usize>,
        hashed: &mut Hashed,
    ) -> Result<()> {
        let py = keys.py();
        let one_value = self.hasher.rule().values() == 1;
        let mut next = range.start;
        while next < range.end {
            let mut items = [std::ptr::null_mut(); 16];
            let items = &mut items[..(range.end - next).min(16)];
            for (item, index) in items.iter_mut().zip(next..) {
                // SAFETY: `keys` has the type that `get` is for, and is alive. The result is a borrowed reference, or
                // null with an exception.
                *item = unsafe { get(keys.as_ptr(), index as ffi::Py_ssize_t) };
                if item.is_null() {
                    return Err(PyErr::fetch(py).into());
                }
                prefetch((*item).cast());
            }
            for item in items {
                next += 1;
                // Python code may empty the list while this object is hashed: the object's own `__index__`, or a
                // finalizer run by the collector when an exception for invalid text is created.
                // SAFETY: no such code has run since the list gave the pointer, so the object is alive; from here on
                // the reference keeps it alive.
                let object = unsafe { Bound::from_borrowed_ptr(py, *item) };
                if one_value && let Some(hash) = key::plain(&self.hasher, &object) {
                    hashed.hashes.push(hash);
                    continue;
                }
                hashed.push(&self.hasher, &object, next - 1 - range.start)?;
                // The other objects may be gone, so they are fetched again.
                break;
            }
        }
        Ok(())
    }

    fn run_iterator(
        &self,
        keys: &Bound<'_, PyAny>,
        work: &impl Work,
        answers: &mut Answers,
    ) -> Result<()> {
        let mut hashed = Hashed::default();
        let mut keys_left = keys.try_iter()?;
        loop {
            let mut ended = Ok(true);
            for key in keys_left.by_ref() {
                let hash = key.map_err(Failure::from);
                match hash.and_then(|key| key::hash(&self.hasher, &key)) {
                    Ok(hash) => hashed.hashes.push(hash),
                    Err(failure) => {
                        ended = Err(failure);
                        break;
                    }
                }
                if hashed.hashes.len() == OBJECTS {
                    ended = Ok(false);
                    break;
                }
            }
            self.flush(keys.py(), &hashed, work, answers)?;
            if ended? {
                return Ok(());
            }
            hashed.clear();
        }
    }

    fn flush(
        &self,
        py: Python<'_>,
        hashed: &Hashed,
        work: &impl Work,
        answers: &mut Answers,
    ) -> Result<()> {
        let mut missing = hashed.missing.iter().flatten().peekable();
        py.detach(|| {
            let mut found = [false; ROWS];
            let mut lookout = Lookout::new();
            let mut row = 0;
            for hashes in hashed.hashes.chunks(ROWS) {
                lookout.look()?;
                let found = &mut found[..hashes.len()];
                work(hashes, found)?;
                if missing.peek().is_none() {
                    answers.extend(found);
                    continue;
                }
                for found in found {
                    while missing.next_if(|missing| **missing == row).is_some() {
                        answers.extend(&[false]);
                        row += 1;
                    }
                    answers.extend(&[*found]);
                    row += 1;
                }
            }
            missing.for_each(|_| answers.extend(&[false]));
            Ok::<_, Failure>(())
        })?;
        let missing = hashed.missing.as_ref().map_or(0, Vec::len);
        self.report(py, hashed.hashes.len() + missing)
    }

    /// Reports progress after some keys, and lets Python handle signals.
    fn report(&self, py: Python<'_>, keys: usize) -> Result<()> {
        if let Some(progress) = self.progress {
            progress.more(py, keys)?;
        }
        Ok(py.check_signals()?)
    }

    fn run_arrays(
        &self,
        py: Python<'_>,
        mut arrays: Arrays,
        work: &impl Work,
        answers: &mut Answers,
    ) -> Result<()> {
        while let Some(array) = py.detach(|| arrays.next())? {
            let column = py.detach(|| {
                let mut column = arrays.column(&array)?;
                column.hash_dictionary(&self.hasher)?;
                Ok::<_, NoKeys>(column)
            })?;
            self.run_column(py, &column, work, answers)?;
        }
        Ok(())
    }

    fn run_column(
        &self,
        py: Python<'_>,
        column: &KeyColumn<'_>,
        work: &impl Work,
        answers: &mut Answers,
    ) -> Result<()> {
        answers.reserve(column.len)?;
        let threads = options::threads(self.threads);
        // With one thread, its answers stay in the cache, too.
        let span = if threads == 1 { ROWS } else { SPAN };
        py.detach(|| {
            let mut lookout = Lookout::new();
            let mut scratch = Scratch::default();
            let mut found = vec![false; column.len.min(span)];
            let mut told = 0;
            for start in (0..column.len).step_by(span) {
                let rows = start..column.len.min(start + span);
                let found = &mut found[..rows.len()];
                if rows.len() <= ROWS {
                    lookout.look()?;
                    let hashed = scratch.hash(column, &self.hasher, start, found.len());
                    scratch.work(work, found).and(hashed)?;
                } else {
                    self.share_out(column, rows.clone(), threads, work, found, &mut lookout)?;
                }
                answers.extend(found);
                let news = rows.end - told;
                if self.progress.is_some() && (news >= SPAN || rows.end == column.len) {
                    Python::attach(|py| self.report(py, news))?;
                    told = rows.end;
                }
            }
            Ok::<_, Failure>(())
        })?;
        Ok(py.check_signals()?)
    }

    /// Distributes the rows to threads. They hash concurrently, but work in the order of rows, so that answers don't
    /// depend on their number.
    fn share_out(
        &self,
        column: &KeyColumn<'_>,
        rows: Range<usize>,
        threads: usize,
        work: &impl Work,
        found: &mut [bool],
        lookout: &mut Lookout,
    ) -> Result<()> {
        let parts = found.chunks_mut(PART).zip(rows.step_by(PART));
        let threads = threads.min(parts.len());
        let parts = Mutex::new(parts.enumerate());
        let (turns, end) = (Turns::default(), End::default());
        let run = |mut lookout: Option<&mut Lookout>| {
            let mut scratch = Scratch::default();
            loop {
                let part = lock(&parts).next();
                let Some((turn, (found, start))) = part else {
                    return;
                };
                let looked = lookout.as_mut().map_or(Ok(()), |lookout| lookout.look());
                let hashed = scratch.hash(column, &self.hasher, start, found.len());
                let work = || {
                    if end.is_before(turn) {
                        return;
                    }
                    let done = looked
                        .map_err(Failure::from)
                        .and_then(|()| scratch.work(work, found).and(hashed));
                    if let Err(failure) = done {
                        end.set(turn, failure);
                    }
                };
                if self.ordered {
                    turns.wait(turn, work)
                } else {
                    work()
                }
            }
        };
        std::thread::scope(|scope| {
            // As many as the system allows, besides this one.
            for _ in 1..threads {
                let other = std::thread::Builder::new().spawn_scoped(scope, || run(None));
                if other.is_err() {
                    break;
                }
            }
            run(Some(lookout));
        });
        end.result()
    }
}

/// The source of keys; `None` for a list or tuple itself.
fn source<'py>(keys: &Bound<'py, PyAny>) -> Result<Option<Source<'py>>> {
    if keys.is_exact_instance_of::<PyList>() || keys.is_exact_instance_of::<PyTuple>() {
        return Ok(None);
    }
    key::refuse_one_key(keys)?;
    Source::of(keys).map(Some)
}

/// The hashes of some objects, and which rows have none.
#[derive(Default)]
struct Hashed {
    hashes: Vec<Hash>,
    /// `None` except in a column: elsewhere a missing value isn't a key.
    missing: Option<Vec<usize>>,
}

impl Hashed {
    fn clear(&mut self) {
        self.hashes.clear();
        if let Some(missing) = &mut self.missing {
            missing.clear();
        }
    }

    /// May run Python code.
    fn push(&mut self, hasher: &Hasher, object: &Bound<'_, PyAny>, row: usize) -> Result<()> {
        match &mut self.missing {
            Some(missing) => match key::hash_value(hasher, object)? {
                Some(hash) => self.hashes.push(hash),
                None => missing.push(row),
            },
            None => self.hashes.push(key::hash(hasher, object)?),
        }
        Ok(())
    }
}

/// Where several threads end early: at the first row that fails, as a single thread would.
#[derive(Default)]
struct End(Mutex<Option<(usize, Failure)>>);

impl End {
    fn is_before(&self, turn: usize) -> bool {
        matches!(&*lock(&self.0), Some((end, _)) if *end < turn)
    }

    fn set(&self, turn: usize, failure: Failure) {
        let mut end = lock(&self.0);
        if !matches!(&*end, Some((end, _)) if *end < turn) {
            *end = Some((turn, failure));
        }
    }

    fn result(self) -> Result<()> {
        let end = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        end.map_or(Ok(()), |(_, failure)| Err(failure))
    }
}

/// Buffers that a thread reuses between chunks.
#[derive(Default)]
struct Scratch {
    hashes: Vec<Hash>,
    /// Which rows have a key, if not all do.
    rows: Vec<usize>,
    answers: Vec<bool>,
}

impl Scratch {
    /// After an error, the hashes are those of the keys before it.
    fn hash(
        &mut self,
        column: &KeyColumn<'_>,
        hasher: &Hasher,
        start: usize,
        len: usize,
    ) -> Result<()> {
        let rows = start..start + len;
        Ok(column.hash(hasher, rows, &mut self.hashes, &mut self.rows)?)
    }

    fn work(&mut self, work: &impl Work, found: &mut [bool]) -> Result<()> {
        if self.hashes.len() == found.len() {
            return work(&self.hashes, found);
        }
        // A row without a key is never present, and isn't added.
        found.fill(false);
        self.answers.resize(self.hashes.len(), false);
        work(&self.hashes, &mut self.answers)?;
        for (row, answer) in self.rows.iter().zip(&self.answers) {
            found[*row] = *answer;
        }
        Ok(())
    }
}

/// Lets threads take turns, by number.
#[derive(Default)]
struct Turns {
    next: Mutex<usize>,
    passed: Condvar,
}

impl Turns {
    /// Works when its turn comes. Passes the turn on even after a panic, so that nobody waits forever.
    fn wait(&self, turn: usize, work: impl FnOnce()) {
        struct Pass<'a>(&'a Turns);
        impl Drop for Pass<'_> {
            fn drop(&mut self) {
                *lock(&self.0.next) += 1;
                self.0.passed.notify_all();
            }
        }
        let waiting = self
            .passed
            .wait_while(lock(&self.next), |next| *next != turn);
        drop(waiting.unwrap_or_else(PoisonError::into_inner));
        let _pass = Pass(self);
        work();
    }
}
