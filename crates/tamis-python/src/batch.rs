//! Many keys at once: from whatever holds them to their hashes, to answers.

use crate::arrow::Arrays;
use crate::column::Column;
use crate::error::Failure;
use crate::key;
use crate::mask::{Answers, Bits};
use crate::numpy;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyList, PyMemoryView, PyString, PyTuple};
use std::num::NonZero;
use std::ops::Range;
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
}

impl Batch {
    /// Does `work` with all keys, in their order unless there are several
    /// threads; the answers come in an object like `keys`.
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
        let mut hashes = Vec::with_capacity(len.min(OBJECTS));
        for start in (0..len).step_by(OBJECTS) {
            hashes.clear();
            match keys.cast::<PyList>() {
                Ok(list) => {
                    for index in start..len.min(start + OBJECTS) {
                        // SAFETY: a borrowed reference or an exception. No
                        // Python code runs before it is used, unless it is no
                        // str, and then `hash_kept` holds it.
                        let key = unsafe { ffi::PyList_GetItem(list.as_ptr(), index as _) };
                        hashes.push(self.hash_borrowed(keys.py(), key)?);
                    }
                }
                Err(_) => {
                    for index in start..len.min(start + OBJECTS) {
                        // SAFETY: as above.
                        let key = unsafe { ffi::PyTuple_GetItem(keys.as_ptr(), index as _) };
                        hashes.push(self.hash_borrowed(keys.py(), key)?);
                    }
                }
            }
            self.flush(keys.py(), &hashes, work, answers)?;
        }
        Ok(())
    }

    /// The hash of an object that a list holds; an exception if there is none.
    #[inline]
    fn hash_borrowed(&self, py: Python<'_>, key: *mut ffi::PyObject) -> Result<Hash, Failure> {
        if key.is_null() {
            return Err(PyErr::fetch(py).into());
        }
        // SAFETY: not null, and alive as long as no Python code runs: a str is
        // hashed without.
        let object = unsafe { Bound::ref_from_ptr(py, &key) };
        match key::utf8(object) {
            Some(bytes) => Ok(self.hasher.hash(bytes)),
            // Kept alive: its `__index__` may change the list.
            None => key::hash(&self.hasher, &object.clone()),
        }
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

    /// Shares the rows out to the threads.
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
        let each = rows.len().div_ceil(threads).next_multiple_of(ROWS);
        if each >= rows.len() {
            return hash_and_work(column, &self.hasher, rows.start, work, found);
        }
        std::thread::scope(|scope| {
            let parts = found.chunks_mut(each).zip(rows.step_by(each));
            let threads: Vec<_> = parts
                .map(|(found, start)| {
                    scope.spawn(move || hash_and_work(column, &self.hasher, start, work, found))
                })
                .collect();
            threads.into_iter().try_for_each(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
        })
    }
}

/// The rows from `start` on, as many as there are answers.
fn hash_and_work(
    column: &Column<'_>,
    hasher: &Hasher,
    mut start: usize,
    work: &impl Work,
    found: &mut [bool],
) -> Result<(), Failure> {
    let (mut hashes, mut rows) = (Vec::with_capacity(ROWS), Vec::new());
    let mut some = [false; ROWS];
    for found in found.chunks_mut(ROWS) {
        column.hash(hasher, start..start + found.len(), &mut hashes, &mut rows)?;
        if hashes.len() == found.len() {
            work(&hashes, found)?;
        } else {
            // A row without a key is never in, and not added.
            found.fill(false);
            let some = &mut some[..hashes.len()];
            work(&hashes, some)?;
            for (row, answer) in rows.iter().zip(some) {
                found[*row] = *answer;
            }
        }
        start += found.len();
    }
    Ok(())
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
