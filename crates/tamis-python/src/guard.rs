//! `tamis.Guard`: a filter in front of a slow store.

use crate::argument;
use crate::error::{Failure, Result};
use crate::filter::Filter;
use crate::key;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tamis::internals::FalseAlarms;

/// Stands before a slow store, such as a database, and answers for keys that it
/// does not have.
///
/// >>> import tamis
/// >>> people = {"ada": 36, "alan": 41}           # imagine it slow
/// >>> filter = tamis.Filter(1000)
/// >>> filter.update(people)
/// >>> guard = tamis.Guard(filter)
/// >>> guard.get("ada", people.get), guard.get("bob", people.get)
/// (36, None)
/// >>> guard.counts()["skipped"]                  # bob was not looked up
/// 1
///
/// The filter holds the keys of the store. When it says "maybe" and the store
/// has no such key, that false alarm is remembered, for the latest ``remember``
/// keys, so that the same key costs nothing the next time.
///
/// A key that is added to the store must be told to the guard with `add`, once
/// the store has it. Where others write to the store and to a filter file that
/// they share with this guard, use ``remember=0``, or call `forget`.
#[pyclass(frozen, module = "tamis", name = "Guard")]
pub(crate) struct Guard {
    filter: Py<Filter>,
    alarms: FalseAlarms,
}

#[pymethods]
impl Guard {
    #[new]
    #[pyo3(signature = (filter, *, remember=65536))]
    fn new(
        filter: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = argument::remember)] remember: usize,
    ) -> Result<Self> {
        let filter = filter.cast::<Filter>().map_err(|_| {
            let got = key::type_name(filter);
            Failure::argument(format!("filter: expected a Filter, got {got}"))
        })?;
        Ok(Self {
            filter: filter.clone().unbind(),
            alarms: FalseAlarms::remembering(remember),
        })
    }

    /// The value of the key, from ``load(key)``, or None if the store has no
    /// such key: then mostly without a call of ``load``, which returns None for
    /// a key that it does not have. What ``load`` raises is handed on.
    #[pyo3(signature = (key, load, /))]
    fn get<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        load: &Bound<'py, PyAny>,
    ) -> Result<Option<Bound<'py, PyAny>>> {
        let (py, filter) = (key.py(), self.filter.get());
        let hash = filter.hash(key)?;
        let maybe = filter.contains_hash(py, hash)?;
        self.alarms.get(
            hash,
            || maybe,
            || {
                let value = load.call1((key,))?;
                Ok((!value.is_none()).then_some(value))
            },
        )
    }

    /// Tells the guard of a new key, once the store has it; whether it was new
    /// to the filter.
    #[pyo3(signature = (key, /))]
    fn add(&self, key: &Bound<'_, PyAny>) -> Result<bool> {
        let filter = self.filter.get();
        let hash = filter.hash(key)?;
        let new = filter.add_hash(key.py(), hash)?;
        self.alarms.forget(hash);
        Ok(new)
    }

    /// Forgets that the key was absent, because the store may have it now and
    /// the filter was told by others.
    #[pyo3(signature = (key, /))]
    fn forget(&self, key: &Bound<'_, PyAny>) -> Result<()> {
        self.alarms.forget(self.filter.get().hash(key)?);
        Ok(())
    }

    /// Forgets all false alarms.
    fn forget_all(&self) {
        self.alarms.forget_all();
    }

    /// The filter.
    #[getter]
    fn filter(&self, py: Python<'_>) -> Py<Filter> {
        self.filter.clone_ref(py)
    }

    /// What happened so far, as a dict: keys asked for, ``skipped`` because the
    /// filter said no, ``remembered`` as false alarms, looked up for nothing
    /// (``false_alarms``), and ``loaded`` in all.
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = self.alarms.counts();
        let dict = PyDict::new(py);
        dict.set_item("asked", counts.asked)?;
        dict.set_item("skipped", counts.skipped)?;
        dict.set_item("remembered", counts.remembered)?;
        dict.set_item("false_alarms", counts.false_alarms)?;
        dict.set_item("loaded", counts.loaded())?;
        Ok(dict)
    }

    fn __repr__(&self) -> String {
        let counts = self.alarms.counts();
        format!(
            "<tamis.Guard, {} keys asked for, {} looked up>",
            counts.asked,
            counts.loaded()
        )
    }
}
