//! Ctrl-C. Python only records a signal, so code that runs without the GIL has to check now and then.

use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The longest that a signal waits.
const PATIENCE: Duration = Duration::from_millis(50);

/// For work in steps: checks at intervals, however long a step takes.
pub(crate) struct Lookout(Instant);

impl Lookout {
    pub(crate) fn new() -> Self {
        Self(Instant::now())
    }

    /// The exception raised by a signal handler, mostly `KeyboardInterrupt`. Called without the GIL.
    pub(crate) fn look(&mut self) -> PyResult<()> {
        if self.0.elapsed() < PATIENCE {
            return Ok(());
        }
        self.0 = Instant::now();
        Python::attach(|py| py.check_signals())
    }
}

/// For work in one piece: runs it on a separate thread and checks for signals meanwhile. After a signal the caller
/// continues at once, and the work finishes in the background; its result is dropped.
pub(crate) fn apart<R: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> R + Send + 'static,
) -> PyResult<R> {
    py.detach(|| {
        let (tell, told) = sync_channel(1);
        // Whoever takes the work runs it.
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
            // No thread could be started, so the work is done here, and signals wait.
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

/// [`apart`], unless the work is shorter than starting a thread.
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
