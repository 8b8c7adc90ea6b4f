//! The lock of a filter: the GIL for single calls, a real one for batches.

use crate::fork::Section;
use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};

/// A value that threads reach one after the other.
///
/// A single call takes some ten nanoseconds and holds the GIL anyway, so that
/// is its lock: atomic instructions would double its time. Work that lets the
/// GIL go says so before it does, by a [`Mark`], and then takes the
/// real lock; single calls that meet a mark let the GIL go and take it, too.
pub(crate) struct Shared<T> {
    value: UnsafeCell<T>,
    /// Calls that work without the GIL, or are about to.
    marks: AtomicUsize,
    lock: RwLock<()>,
}

// SAFETY: the value is reached under the GIL while there is no mark, and marks
// are set under the GIL; else under the lock. Both order all accesses.
unsafe impl<T: Send + Sync> Sync for Shared<T> {}

impl<T: Send + Sync> Shared<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self {
            value: UnsafeCell::new(value),
            marks: AtomicUsize::new(0),
            lock: RwLock::new(()),
        }
    }

    /// For what takes no time. `work` is `Send`, so it can't take a Python
    /// object along and call Python, which could call back or let the GIL go.
    #[inline]
    pub(crate) fn with<R: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut T) -> R + Send) -> R {
        if self.marks.load(Ordering::Acquire) != 0 {
            return self.detached(py, |mark| mark.write(work));
        }
        // SAFETY: we hold the GIL and keep it, and nobody works without it.
        work(unsafe { &mut *self.value.get() })
    }

    /// For what takes its time: without the GIL.
    #[cold]
    pub(crate) fn detached<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Mark<&Self>) -> R + Send,
    ) -> R {
        let mark = Mark::on(self, py);
        py.detach(|| work(&mark))
    }
}

/// What has a [`Shared`] value, or keeps it alive.
pub(crate) trait Holds {
    type Value;

    fn shared(&self) -> &Shared<Self::Value>;
}

impl<T> Holds for &Shared<T> {
    type Value = T;

    fn shared(&self) -> &Shared<T> {
        self
    }
}

/// The right to take the lock of a [`Shared`] value.
pub(crate) struct Mark<H: Holds>(H);

impl<H: Holds> Mark<H> {
    /// Says that the value will be reached without the GIL, as long as the
    /// mark lives. Its locks are waited for without the GIL only, or two
    /// threads could wait for each other.
    pub(crate) fn on(holder: H, _py: Python<'_>) -> Self {
        holder.shared().marks.fetch_add(1, Ordering::Relaxed);
        Self(holder)
    }

    /// Beside other readers.
    pub(crate) fn read<R>(&self, work: impl FnOnce(&H::Value) -> R) -> R {
        let _section = Section::enter();
        self.read_within(work)
    }

    /// Alone.
    pub(crate) fn write<R>(&self, work: impl FnOnce(&mut H::Value) -> R) -> R {
        let _section = Section::enter();
        self.write_within(work)
    }

    /// The own value alone and another's for reading; `None` if they are one.
    pub(crate) fn write_beside<R>(
        &self,
        other: &Self,
        work: impl FnOnce(&mut H::Value, &H::Value) -> R,
    ) -> Option<R> {
        let _section = Section::enter();
        // In the order of their addresses, so that no two wait for each other.
        match std::ptr::from_ref(self.0.shared()).cmp(&std::ptr::from_ref(other.0.shared())) {
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Less => {
                Some(self.write_within(|ours| other.read_within(|theirs| work(ours, theirs))))
            }
            std::cmp::Ordering::Greater => {
                Some(other.read_within(|theirs| self.write_within(|ours| work(ours, theirs))))
            }
        }
    }

    fn read_within<R>(&self, work: impl FnOnce(&H::Value) -> R) -> R {
        let shared = self.0.shared();
        let _lock = shared.lock.read().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the lock excludes writers, the mark those under the GIL.
        work(unsafe { &*shared.value.get() })
    }

    fn write_within<R>(&self, work: impl FnOnce(&mut H::Value) -> R) -> R {
        let shared = self.0.shared();
        let _lock = shared.lock.write().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the lock excludes everybody, the mark those under the GIL.
        work(unsafe { &mut *shared.value.get() })
    }
}

impl<H: Holds> Drop for Mark<H> {
    fn drop(&mut self) {
        self.0.shared().marks.fetch_sub(1, Ordering::Release);
    }
}

/// Refuses a subinterpreter: a thread that takes the GIL back would take it for
/// the main one, and wait for itself.
pub(crate) fn require_main_interpreter(_py: Python<'_>) -> PyResult<()> {
    // SAFETY: the thread is attached to an interpreter.
    match unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) } {
        0 => Ok(()),
        _ => Err(PyImportError::new_err(
            "tamis can't be imported into a subinterpreter; use threads or processes",
        )),
    }
}

/// Refuses an interpreter that was told to run without the GIL even though
/// this module says that it needs it.
pub(crate) fn require_gil(py: Python<'_>) -> PyResult<()> {
    let sys = py.import("sys")?;
    let enabled = match sys.getattr_opt("_is_gil_enabled")? {
        Some(ask) => ask.call0()?.extract()?,
        None => true,
    };
    match enabled {
        true => Ok(()),
        false => Err(PyImportError::new_err(
            "tamis needs the GIL; start Python without PYTHON_GIL=0 and -X gil=0",
        )),
    }
}
