//! Ctrl-C. Python only takes note of a signal: whoever works without the GIL
//! has to look for it from time to time.

use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a signal may wait.
const PATIENCE: Duration = Duration::from_millis(50);

/// For work in steps: looks once in a while, however long a step takes.
pub(crate) struct Lookout(Instant);

impl Lookout {
    pub(crate) fn new() -> Self {
        Self(Instant::now())
    }

    /// The exception that a signal's handler raises, `KeyboardInterrupt`
    /// mostly. Without the GIL.
    pub(crate) fn look(&mut self) -> PyResult<()> {
        if self.0.elapsed() < PATIENCE {
            return Ok(());
        }
        self.0 = Instant::now();
        Python::attach(|py| py.check_signals())
    }
}

/// For work in one piece: does it on a thread of its own, and looks meanwhile.
/// After a signal the caller goes on at once, and the work comes to its end in
/// the background, unseen.
pub(crate) fn apart<R: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> R + Send + 'static,
) -> PyResult<R> {
    py.detach(|| {
        let (tell, told) = sync_channel(1);
        // Whoever takes it does it.
        let work = Arc::new(Mutex::new(Some(work)));
        let taken = Arc::clone(&work);
        let take = move || taken.lock().unwrap_or_else(PoisonError::into_inner).take();
        let other = thread::Builder::new().name("tamis".into());
        let other = other.spawn(move || {
            if let Some(work) = take() {
                // The caller may be gone.
                let _ = tell.send(catch_unwind(AssertUnwindSafe(work)));
            }
        });
        if other.is_err() {
            // No thread to be had: it is done here, and signals wait.
            let work = work.lock().unwrap_or_else(PoisonError::into_inner).take();
            return Ok(work.expect("nobody else has taken it")());
        }
        loop {
            match told.recv_timeout(PATIENCE) {
                Ok(result) => return Ok(result.unwrap_or_else(|panic| resume_unwind(panic))),
                Err(RecvTimeoutError::Timeout) => Python::attach(|py| py.check_signals())?,
                Err(RecvTimeoutError::Disconnected) => {
                    unreachable!("the thread tells before it ends")
                }
            }
        }
    })
}

/// [`apart`], unless it is over sooner than a thread begins.
pub(crate) fn if_large<R: Send + 'static>(
    py: Python<'_>,
    bytes: u64,
    work: impl FnOnce() -> R + Send + 'static,
) -> PyResult<R> {
    const SMALL: u64 = 4 << 20;
    if bytes < SMALL {
        Ok(py.detach(work))
    } else {
        apart(py, work)
    }
}
