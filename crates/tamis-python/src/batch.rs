//! Many keys at once: from whatever holds them to their hashes, to answers.

use crate::arrow::Arrays;
use crate::column::{Column, prefetch};
use crate::error::Failure;
use crate::key;
use crate::mask::{Answers, Bits};
use crate::numpy;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyInt, PyList, PyMemoryView, PyString, PyTuple};
use std::num::NonZero;
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use tamis::{Hash, Hasher};

/// Rows of a column that are hashed and then worked on: they stay in the cache.
const ROWS: usize = 4096;
/// Python objects that are hashed under the GIL in one go: about as long as the
/// interpreter lets other threads wait anyway.
const OBJECTS: usize = 1 << 15;
/// Rows between two looks for Ctrl-C.
const SPAN: usize = 1 << 20;

/// What is done with the hashes of keys, without the GIL and maybe by several
/// threads at once; `answers[i]` is for `hashes[i]`.
pub(crate) trait Work: Fn(&[Hash], &mut [bool]) -> Result<(), Failure> + Sync {}
impl<F: Fn(&[Hash], &mut [bool]) -> Result<(), Failure> + Sync> Work for F {}

/// How a batch is run.
#[derive(Clone, Copy)]
pub(crate) struct Batch {
    pub(crate) hasher: Hasher,
    /// 0 for one a core.
    pub(crate) threads: usize,
    /// Whether answers are wanted.
    pub(crate) answers: bool,
    /// Whether the work depends on the order of the keys.
    pub(crate) ordered: bool,
}

impl Batch {
    /// Does `work` with all keys; the answers come in an object like `keys`.
    pub(crate) fn run<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        work: &impl Work,
    ) -> Result<Bound<'py, PyAny>, Failure> {
        let mut bools = match self.answers {
            true => Answers::Bools(Vec::new()),
            false => Answers::Dropped,
        };
        if keys.is_exact_instance_of::<PyList>() || keys.is_exact_instance_of::<PyTuple>() {
            self.run_sequence(keys, work, &mut bools)?;
            return Ok(bools.like(keys)?);
        }
        refuse_one_key(keys)?;
        if let Some(arrays) = Arrays::of(keys)? {
            let pandas = key::library(keys)? == "pandas";
            let mut answers = match self.answers {
                true if !pandas => Answers::Bits(Bits::default()),
                _ => bools,
            };
            self.run_arrays(keys.py(), arrays, work, &mut answers)?;
            return Ok(answers.like(keys)?);
        }
        if let Some(array) = numpy::as_array(keys)? {
            match numpy::column(&array)? {
                Some(column) => self.run_column(keys.py(), &column, work, &mut bools)?,
                None => {
                    let objects = array.call_method0("tolist")?;
                    self.run_sequence(&objects, work, &mut bools)?;
                }
            }
            return Ok(bools.like(&array)?);
        }
        self.run_iterator(keys, work, &mut bools)?;
        Ok(bools.like(keys)?)
    }

    /// Objects of a list or a tuple. They are hashed where they are, under the
    /// GIL, which keeps them alive; the work is done without it.
    fn run_sequence(
        &self,
        keys: &Bound<'_, PyAny>,
        work: &impl Work,
        answers: &mut Answers,
    ) -> Result<(), Failure> {
        let len = keys.len()?;
        let get = match keys.is_exact_instance_of::<PyList>() {
            true => ffi::PyList_GetItem,
            false => ffi::PyTuple_GetItem,
        };
        let mut hashes = Vec::with_capacity(len.min(OBJECTS));
        for start in (0..len).step_by(OBJECTS) {
            hashes.clear();
            let range = start..len.min(start + OBJECTS);
            self.hash_items(keys, get, range, &mut hashes)?;
            self.flush(keys.py(), &hashes, work, answers)?;
        }
        Ok(())
    }

    /// Hashes some objects of a list or tuple: a few at a time, so that their
    /// memory is on its way before it is needed.
    fn hash_items(
        &self,
        keys: &Bound<'_, PyAny>,
        get: unsafe extern "C" fn(*mut ffi::PyObject, ffi::Py_ssize_t) -> *mut ffi::PyObject,
        range: Range<usize>,
        hashes: &mut Vec<Hash>,
    ) -> Result<(), Failure> {
        let py = keys.py();
        let mut next = range.start;
        while next < range.end {
            let mut items = [std::ptr::null_mut(); 16];
            let items = &mut items[..(range.end - next).min(16)];
            for (item, index) in items.iter_mut().zip(next..) {
                // SAFETY: a borrowed reference or an exception.
                *item = unsafe { get(keys.as_ptr(), index as ffi::Py_ssize_t) };
                if item.is_null() {
                    return Err(PyErr::fetch(py).into());
                }
                prefetch((*item).cast());
            }
            for item in items {
                next += 1;
                // SAFETY: the list holds it as long as no Python code runs.
                let object = unsafe { Bound::ref_from_ptr(py, item) };
                if let Some(bytes) = key::plain(object) {
                    hashes.push(self.hasher.hash(bytes));
                    continue;
                }
                hashes.push(key::hash(&self.hasher, &object.clone())?);
                // Its `__index__` may have changed the list: the others are
                // looked up anew.
                if !object.is_exact_instance_of::<PyInt>() {
                    break;
                }
            }
        }
        Ok(())
    }

    fn run_iterator(
        &self,
        keys: &Bound<'_, PyAny>,
        work: &impl Work,
        answers: &mut Answers,
    ) -> Result<(), Failure> {
        let mut hashes = Vec::new();
        for key in keys.try_iter()? {
            hashes.push(key::hash(&self.hasher, &key?)?);
            if hashes.len() == OBJECTS {
                self.flush(keys.py(), &hashes, work, answers)?;
                hashes.clear();
            }
        }
        self.flush(keys.py(), &hashes, work, answers)
    }

    fn flush(
        &self,
        py: Python<'_>,
        hashes: &[Hash],
        work: &impl Work,
        answers: &mut Answers,
    ) -> Result<(), Failure> {
        py.detach(|| {
            let mut found = [false; ROWS];
            for hashes in hashes.chunks(ROWS) {
                let found = &mut found[..hashes.len()];
                work(hashes, found)?;
                answers.extend(found);
            }
            Ok::<_, Failure>(())
        })?;
        Ok(py.check_signals()?)
    }

    fn run_arrays(
        &self,
        py: Python<'_>,
        mut arrays: Arrays,
        work: &impl Work,
        answers: &mut Answers,
    ) -> Result<(), Failure> {
        while let Some(array) = py.detach(|| arrays.next())? {
            let column = arrays.column(&array, &self.hasher)?;
            self.run_column(py, &column, work, answers)?;
        }
        Ok(())
    }

    fn run_column(
        &self,
        py: Python<'_>,
        column: &Column<'_>,
        work: &impl Work,
        answers: &mut Answers,
    ) -> Result<(), Failure> {
        let mut found = vec![false; column.len.min(SPAN)];
        for start in (0..column.len).step_by(SPAN) {
            let rows = start..column.len.min(start + SPAN);
            py.detach(|| {
                let found = &mut found[..rows.len()];
                self.run_rows(column, rows, work, found)?;
                answers.extend(found);
                Ok::<_, Failure>(())
            })?;
            py.check_signals()?;
        }
        Ok(())
    }

    /// Shares the rows out to the threads: they hash side by side, and work in
    /// the order of the rows, so that answers don't depend on their number.
    fn run_rows(
        &self,
        column: &Column<'_>,
        rows: Range<usize>,
        work: &impl Work,
        found: &mut [bool],
    ) -> Result<(), Failure> {
        let threads = match self.threads {
            0 => std::thread::available_parallelism().map_or(1, NonZero::get),
            threads => threads,
        };
        let parts = found.chunks_mut(ROWS).zip(rows.step_by(ROWS));
        if threads == 1 || parts.len() == 1 {
            let (mut scratch, mut parts) = (Scratch::default(), parts);
            return parts.try_for_each(|(found, start)| {
                scratch.hash(column, &self.hasher, start, found.len())?;
                scratch.work(work, found)
            });
        }
        let parts = Mutex::new(parts.enumerate());
        let turns = Turns::default();
        let run = || {
            let mut scratch = Scratch::default();
            loop {
                let part = lock(&parts).next();
                let Some((turn, (found, start))) = part else {
                    return Ok(());
                };
                let hashed = scratch.hash(column, &self.hasher, start, found.len());
                match self.ordered {
                    true => turns.wait(turn, || scratch.work(work, found), hashed)?,
                    false => hashed.and_then(|()| scratch.work(work, found))?,
                }
            }
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
            threads.into_iter().try_for_each(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
        })
    }
}

/// What a thread keeps from chunk to chunk.
#[derive(Default)]
struct Scratch {
    hashes: Vec<Hash>,
    /// Which rows have a key, if not all.
    rows: Vec<usize>,
    answers: Vec<bool>,
}

impl Scratch {
    fn hash(
        &mut self,
        column: &Column<'_>,
        hasher: &Hasher,
        start: usize,
        len: usize,
    ) -> Result<(), Failure> {
        column.hash(hasher, start..start + len, &mut self.hashes, &mut self.rows)
    }

    fn work(&mut self, work: &impl Work, found: &mut [bool]) -> Result<(), Failure> {
        if self.hashes.len() == found.len() {
            return work(&self.hashes, found);
        }
        // A row without a key is never in, and not added.
        found.fill(false);
        self.answers.resize(self.hashes.len(), false);
        work(&self.hashes, &mut self.answers)?;
        for (row, answer) in self.rows.iter().zip(&self.answers) {
            found[*row] = *answer;
        }
        Ok(())
    }
}

/// Threads take turns, by number.
#[derive(Default)]
struct Turns {
    next: Mutex<usize>,
    passed: Condvar,
}

impl Turns {
    /// Works when it is the turn, if all is well so far. The turn is passed on
    /// also after an error or a panic, so that nobody waits for ever.
    fn wait(
        &self,
        turn: usize,
        work: impl FnOnce() -> Result<(), Failure>,
        before: Result<(), Failure>,
    ) -> Result<(), Failure> {
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
        before.and_then(|()| work())
    }
}

/// Nothing behind these locks is left half done by a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One key where many are meant is a mistake, though Python would iterate it.
fn refuse_one_key(keys: &Bound<'_, PyAny>) -> Result<(), Failure> {
    let one = keys.is_instance_of::<PyString>()
        || keys.is_instance_of::<PyBytes>()
        || keys.is_instance_of::<PyByteArray>()
        || keys.is_instance_of::<PyMemoryView>();
    match one {
        true => Err(Failure::no_key(format!(
            "keys: expected many keys, got one {}; pass a list of keys, e.g. [key]",
            key::type_name(keys)
        ))),
        false => Ok(()),
    }
}
