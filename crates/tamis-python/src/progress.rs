//! `progress=`: reports a batch's progress to the caller.

use crate::error::{Failure, Result};
use crate::key;
use crate::lock::lock;
use pyo3::prelude::*;
use pyo3::types::PyBool;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The interval between reports.
const PAUSE: Duration = Duration::from_millis(100);

pub(crate) struct Progress {
    told: Py<PyAny>,
    so_far: Mutex<(u64, Instant)>,
}

impl Progress {
    /// Parses the argument `progress`: None or False for nothing, True for a line on stderr, or a function.
    pub(crate) fn asked(progress: Option<&Bound<'_, PyAny>>) -> Result<Option<Self>> {
        let Some(progress) = progress else {
            return Ok(None);
        };
        let told = match progress.cast::<PyBool>() {
            Ok(yes) if yes.is_true() => {
                let module = progress.py().import("tamis._progress")?;
                module.call_method0("Line")?
            }
            Ok(_) => return Ok(None),
            Err(_) if progress.is_callable() => progress.clone(),
            Err(_) => {
                return Err(Failure::parameter(format!(
                    "progress: expected True, False or a function of a number, got {}",
                    key::type_name(progress)
                )));
            }
        };
        Ok(Some(Self {
            told: told.unbind(),
            so_far: Mutex::new((0, Instant::now())),
        }))
    }

    /// Counts more finished keys.
    pub(crate) fn more(&self, py: Python<'_>, keys: usize) -> PyResult<()> {
        let done = {
            let mut so_far = lock(&self.so_far);
            so_far.0 += keys as u64;
            if so_far.1.elapsed() < PAUSE {
                return Ok(());
            }
            so_far.1 = Instant::now();
            so_far.0
        };
        self.told.call1(py, (done,)).map(drop)
    }

    /// Reports the end.
    pub(crate) fn finish(progress: Option<Self>, py: Python<'_>) -> Result<()> {
        let Some(progress) = progress else {
            return Ok(());
        };
        let (done, _) = *lock(&progress.so_far);
        progress.told.call1(py, (done,))?;
        Ok(())
    }
}
