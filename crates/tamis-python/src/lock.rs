//! The lock of a filter: the GIL for single calls, a real lock for batches; without a GIL, the real lock for both.

use crate::fork::Section;
use crate::interrupt::Lookout;
use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;
use std::cell::UnsafeCell;
#[cfg(not(Py_GIL_DISABLED))]
use std::sync::atomic::AtomicBool;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, TryLockError};
#[cfg(Py_GIL_DISABLED)]
use std::sync::{RwLockReadGuard, RwLockWriteGuard, TryLockResult};
use std::time::Duration;

/// The purpose of an access.
#[derive(Clone, Copy)]
pub(crate) enum Access {
    Ask,
    Change,
}

/// A value that threads access one at a time.
///
/// A single call takes some ten nanoseconds and holds the GIL anyway, so the GIL is its lock: atomic instructions would
/// double its time. Work without the GIL first announces itself with a [`Mark`], and then takes the real lock. Single
/// calls that find a mark release the GIL and take the real lock, too.
///
/// In free-threaded Python a single call takes the real lock as well, while its thread is attached, and calls nothing
/// that would detach it. Python only stops attached threads between such calls, so it never forks within one.
pub(crate) struct Shared<T> {
    value: UnsafeCell<T>,
    /// Calls that work without the GIL, or are about to.
    marks: AtomicUsize,
    /// Whether a call is using the value under the GIL. Such a call should not call Python. If it does, and Python
    /// calls back or releases the GIL, the next access finds the value taken.
    #[cfg(not(Py_GIL_DISABLED))]
    taken: AtomicBool,
    lock: RwLock<()>,
}

// SAFETY: while there is no mark and the value isn't taken, it is accessed under the GIL, and both are set under the
// GIL. Otherwise, and without a GIL, it is accessed under the lock. Both order all accesses.
unsafe impl<T: Send + Sync> Sync for Shared<T> {}

impl<T: Send + Sync> Shared<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self {
            value: UnsafeCell::new(value),
            marks: AtomicUsize::new(0),
            #[cfg(not(Py_GIL_DISABLED))]
            taken: AtomicBool::new(false),
            lock: RwLock::new(()),
        }
    }

    /// For work that takes almost no time. `work` is `Send`, so that it can't capture Python objects.
    ///
    /// # Panics
    /// If `work` calls Python, and Python accesses this value again.
    #[inline]
    pub(crate) fn with<R: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut T) -> R + Send) -> R {
        match self.alone(py) {
            // If there is a lock, it is held meanwhile.
            Some((value, _lock)) => work(value),
            None => self.detached(py, |mark| mark.write(work)),
        }
    }

    /// [`with`](Self::with) for reading, concurrently with other readers.
    #[inline]
    pub(crate) fn ask<R: Send>(&self, py: Python<'_>, work: impl FnOnce(&T) -> R + Send) -> R {
        match self.beside(py) {
            Some((value, _lock)) => work(value),
            None => self.detached(py, |mark| mark.read(work)),
        }
    }

    /// [`with`](Self::with), unless another thread works without the GIL.
    #[inline(always)]
    pub(crate) fn with_at_once<R>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut T) -> R + Send,
    ) -> Option<R> {
        self.alone(py).map(|(value, _lock)| work(value))
    }

    /// [`ask`](Self::ask), unless another thread works without the GIL.
    #[inline(always)]
    pub(crate) fn ask_at_once<R>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&T) -> R + Send,
    ) -> Option<R> {
        self.beside(py).map(|(value, _lock)| work(value))
    }

    /// Waits until no work without the GIL keeps the caller from reading or changing the value; Ctrl-C ends the wait.
    /// Interrupted work may still be running in the background.
    #[inline]
    pub(crate) fn wait(&self, py: Python<'_>, to: Access) -> PyResult<()> {
        match self.marks.load(Ordering::Acquire) {
            0 => Ok(()),
            _ => self.wait_long(py, to),
        }
    }

    #[cold]
    fn wait_long(&self, py: Python<'_>, to: Access) -> PyResult<()> {
        py.detach(|| {
            let mut lookout = Lookout::new();
            let mut pause = Duration::from_micros(20);
            loop {
                let free = match to {
                    Access::Ask => !matches!(self.lock.try_read(), Err(TryLockError::WouldBlock)),
                    Access::Change => {
                        !matches!(self.lock.try_write(), Err(TryLockError::WouldBlock))
                    }
                };
                if free {
                    return Ok(());
                }
                lookout.look()?;
                std::thread::sleep(pause);
                pause = (2 * pause).min(Duration::from_millis(1));
            }
        })
    }

    #[cfg(not(Py_GIL_DISABLED))]
    #[inline(always)]
    fn alone<'a>(&'a self, _py: Python<'a>) -> Option<(&'a mut T, Taken<'a>)> {
        if self.marks.load(Ordering::Acquire) != 0 || self.taken.load(Ordering::Relaxed) {
            return None;
        }
        self.taken.store(true, Ordering::Relaxed);
        // SAFETY: we hold the GIL. Nobody accesses the value without it, since there is no mark, and none is set while
        // the value is taken. Nobody accesses it under the GIL, since it wasn't taken.
        Some((unsafe { &mut *self.value.get() }, Taken(&self.taken)))
    }

    #[cfg(not(Py_GIL_DISABLED))]
    #[inline(always)]
    fn beside<'a>(&'a self, py: Python<'a>) -> Option<(&'a T, Taken<'a>)> {
        self.alone(py).map(|(value, taken)| (&*value, taken))
    }

    /// Only tries the lock: waiting for it while attached could deadlock with a thread that stops all others.
    #[cfg(Py_GIL_DISABLED)]
    fn alone<'a>(&'a self, _py: Python<'a>) -> Option<(&'a mut T, RwLockWriteGuard<'a, ()>)> {
        // SAFETY: the lock excludes all others.
        free(self.lock.try_write()).map(|lock| (unsafe { &mut *self.value.get() }, lock))
    }

    #[cfg(Py_GIL_DISABLED)]
    fn beside<'a>(&'a self, _py: Python<'a>) -> Option<(&'a T, RwLockReadGuard<'a, ()>)> {
        // SAFETY: the lock excludes writers.
        free(self.lock.try_read()).map(|lock| (unsafe { &*self.value.get() }, lock))
    }

    /// For slow work: without the GIL.
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

/// Marks a value as used by a call under the GIL, until dropped.
#[cfg(not(Py_GIL_DISABLED))]
struct Taken<'a>(&'a AtomicBool);

#[cfg(not(Py_GIL_DISABLED))]
impl Drop for Taken<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// The lock, if it is free.
#[cfg(Py_GIL_DISABLED)]
fn free<L>(lock: TryLockResult<L>) -> Option<L> {
    match lock {
        Ok(lock) => Some(lock),
        Err(TryLockError::Poisoned(lock)) => Some(lock.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// A holder of a [`Shared`] value: a reference, or an object that keeps it alive.
///
/// # Safety
/// `shared` returns the same value at every call, even if the holder was moved in between.
pub(crate) unsafe trait Holds {
    type Value;

    fn shared(&self) -> &Shared<Self::Value>;
}

// SAFETY: a reference doesn't change.
unsafe impl<T> Holds for &Shared<T> {
    type Value = T;

    fn shared(&self) -> &Shared<T> {
        self
    }
}

/// The right to take the lock of a [`Shared`] value.
pub(crate) struct Mark<H: Holds>(H);

impl<H: Holds> Mark<H> {
    /// Announces that the value will be accessed without the GIL while the mark lives. Its lock must only be waited for
    /// without the GIL, or two threads could deadlock.
    ///
    /// # Panics
    /// If a call is using the value under the GIL; see [`Shared::with`].
    pub(crate) fn on(holder: H, _py: Python<'_>) -> Self {
        #[cfg(not(Py_GIL_DISABLED))]
        assert!(
            !holder.shared().taken.load(Ordering::Relaxed),
            "work on a filter under the GIL called Python"
        );
        holder.shared().marks.fetch_add(1, Ordering::Relaxed);
        Self(holder)
    }

    /// Concurrently with other readers.
    pub(crate) fn read<R>(&self, work: impl FnOnce(&H::Value) -> R) -> R {
        let _section = Section::enter();
        self.read_within(work)
    }

    /// Exclusively.
    pub(crate) fn write<R>(&self, work: impl FnOnce(&mut H::Value) -> R) -> R {
        let _section = Section::enter();
        self.write_within(work)
    }

    /// Accesses this value exclusively, and the other one for reading; `None` if they are the same.
    pub(crate) fn write_beside<R>(
        &self,
        other: &Self,
        work: impl FnOnce(&mut H::Value, &H::Value) -> R,
    ) -> Option<R> {
        let _section = Section::enter();
        // Locks in the order of addresses, to avoid deadlocks.
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
        // SAFETY: the lock excludes writers, and the mark excludes calls under the GIL.
        work(unsafe { &*shared.value.get() })
    }

    fn write_within<R>(&self, work: impl FnOnce(&mut H::Value) -> R) -> R {
        let shared = self.0.shared();
        let _lock = shared.lock.write().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the lock excludes all others, and the mark excludes calls under the GIL.
        work(unsafe { &mut *shared.value.get() })
    }
}

impl<H: Holds> Drop for Mark<H> {
    fn drop(&mut self) {
        self.0.shared().marks.fetch_sub(1, Ordering::Release);
    }
}

/// For locks whose data stays valid after a panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Refuses subinterpreters: a thread that takes the GIL again would take the main interpreter's, and deadlock.
pub(crate) fn require_main_interpreter(_py: Python<'_>) -> PyResult<()> {
    // SAFETY: the thread is attached to an interpreter.
    match unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) } {
        0 => Ok(()),
        _ => Err(PyImportError::new_err(
            "tamis can't be imported into a subinterpreter; use threads or processes",
        )),
    }
}
