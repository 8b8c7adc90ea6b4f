//! `fork()`: the child has a copy of every filter, but only the thread that forked. A lock held by another thread would
//! stay locked there forever, and its changes would stay half done. So a fork waits until no thread works on a filter.

use pyo3::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::Duration;

/// Threads that hold the lock of a filter.
static WORKING: AtomicUsize = AtomicUsize::new(0);
/// Threads that are about to fork.
static FORKING: AtomicUsize = AtomicUsize::new(0);

/// Forks between the first process and this one.
static FORKS: AtomicUsize = AtomicUsize::new(0);

const MOMENT: Duration = Duration::from_micros(100);

/// Work on a filter that a fork must not interrupt. It never waits for the GIL, and only waits for another thread's
/// section through a filter's lock.
pub(crate) struct Section(());

impl Section {
    pub(crate) fn enter() -> Self {
        loop {
            WORKING.fetch_add(1, SeqCst);
            if FORKING.load(SeqCst) == 0 {
                return Self(());
            }
            WORKING.fetch_sub(1, SeqCst);
            while FORKING.load(SeqCst) != 0 {
                std::thread::sleep(MOMENT);
            }
        }
    }
}

impl Drop for Section {
    fn drop(&mut self) {
        WORKING.fetch_sub(1, SeqCst);
    }
}

#[pyfunction]
fn before(py: Python<'_>) {
    FORKING.fetch_add(1, SeqCst);
    py.detach(|| {
        while WORKING.load(SeqCst) != 0 {
            std::thread::sleep(MOMENT);
        }
    });
}

#[pyfunction]
fn after_in_parent() {
    FORKING.fetch_sub(1, SeqCst);
}

/// Other threads that were about to work, or to fork, are not here.
#[pyfunction]
fn after_in_child() {
    WORKING.store(0, SeqCst);
    FORKING.store(0, SeqCst);
    FORKS.fetch_add(1, SeqCst);
}

/// The process in which something was created, or for which it was made usable since.
pub(crate) struct Process(AtomicUsize);

impl Process {
    pub(crate) fn this() -> Self {
        Self(AtomicUsize::new(FORKS.load(SeqCst)))
    }

    /// Whether this is still the same process: nobody has forked since.
    pub(crate) fn is_this(&self) -> bool {
        self.0.load(SeqCst) == FORKS.load(SeqCst)
    }

    /// Marks it as usable in this process.
    pub(crate) fn adopt(&self) {
        self.0.store(FORKS.load(SeqCst), SeqCst);
    }

    /// Whether a lock that forks don't wait for can be taken here. In a child it may be held forever, by a thread that
    /// doesn't exist here.
    pub(crate) fn can_lock<T>(&self, _py: Python<'_>, lock: &Mutex<T>) -> bool {
        // Otherwise one thread of the child could take another one, which is only checking, for a holder. At a fork
        // this lock is free: only attached threads hold it.
        static LOOKING: Mutex<()> = Mutex::new(());
        if self.is_this() {
            return true;
        }
        let _alone = LOOKING.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_this() {
            return true;
        }
        let free = !matches!(lock.try_lock(), Err(TryLockError::WouldBlock));
        if free {
            self.adopt();
        }
        free
    }
}

/// Makes Python call these around its own forks. Windows has no forks.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let os = py.import("os")?;
    let Some(register) = os.getattr_opt("register_at_fork")? else {
        return Ok(());
    };
    let hooks = pyo3::types::PyDict::new(py);
    hooks.set_item("before", wrap_pyfunction!(before, module)?)?;
    hooks.set_item(
        "after_in_parent",
        wrap_pyfunction!(after_in_parent, module)?,
    )?;
    hooks.set_item("after_in_child", wrap_pyfunction!(after_in_child, module)?)?;
    register.call((), Some(&hooks)).map(drop)
}
