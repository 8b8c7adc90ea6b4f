//! The lock of a filter: the GIL for single calls, a real one for batches; and
//! where there is no GIL, the real one for both.

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

/// What a value is wanted for.
#[derive(Clone, Copy)]
pub(crate) enum Access {
    Ask,
    Change,
}

/// A value that threads reach one after the other.
///
/// A single call takes some ten nanoseconds and holds the GIL anyway, so that
/// is its lock: atomic instructions would double its time. Work without the GIL
/// announces itself by a [`Mark`] first, and then takes the real lock; single
/// calls that meet a mark let the GIL go and take it, too.
///
/// In a free-threaded Python a single call takes the real lock as well, while
/// its thread is attached, and calls nothing that would detach it. Python stops
/// attached threads between such calls, and so never forks within one.
pub(crate) struct Shared<T> {
    value: UnsafeCell<T>,
    /// Calls that work without the GIL, or are about to.
    marks: AtomicUsize,
    /// Whether a call is at the value under the GIL. Such work should not call
    /// Python; if it does, and Python calls back or lets the GIL go, whoever
    /// comes to the value then finds it taken.
    #[cfg(not(Py_GIL_DISABLED))]
    taken: AtomicBool,
    lock: RwLock<()>,
}

// SAFETY: the value is reached under the GIL while there is no mark and it is
// not taken, and both are set under the GIL; else, and where there is no GIL,
// under the lock. Both order all accesses.
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

    /// For work that takes no time. It is `Send`, so it takes no Python object
    /// along.
    ///
    /// # Panics
    /// If `work` calls Python, and that comes back to this value.
    #[inline]
    pub(crate) fn with<R: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut T) -> R + Send) -> R {
        match self.alone(py) {
            // The lock is held meanwhile, where there is one.
            Some((value, _lock)) => work(value),
            None => self.detached(py, |mark| mark.write(work)),
        }
    }

    /// [`with`](Self::with) for work that only asks: next to others that do.
    #[inline]
    pub(crate) fn ask<R: Send>(&self, py: Python<'_>, work: impl FnOnce(&T) -> R + Send) -> R {
        match self.beside(py) {
            Some((value, _lock)) => work(value),
            None => self.detached(py, |mark| mark.read(work)),
        }
    }

    /// [`with`](Self::with), unless somebody works without the GIL.
    #[inline(always)]
    pub(crate) fn with_at_once<R>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut T) -> R + Send,
    ) -> Option<R> {
        self.alone(py).map(|(value, _lock)| work(value))
    }

    /// [`ask`](Self::ask), unless somebody works without the GIL.
    #[inline(always)]
    pub(crate) fn ask_at_once<R>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&T) -> R + Send,
    ) -> Option<R> {
        self.beside(py).map(|(value, _lock)| work(value))
    }

    /// Waits until nobody works without the GIL who would keep the caller from
    /// asking, or from changing; Ctrl-C ends that. What was interrupted before may
    /// still be at it in the background.
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
        // SAFETY: we hold the GIL. Without it nobody is at the value, since
        // there is no mark, and none comes while it is taken; under it nobody
        // is, since it was not taken.
        Some((unsafe { &mut *self.value.get() }, Taken(&self.taken)))
    }

    #[cfg(not(Py_GIL_DISABLED))]
    #[inline(always)]
    fn beside<'a>(&'a self, py: Python<'a>) -> Option<(&'a T, Taken<'a>)> {
        self.alone(py).map(|(value, taken)| (&*value, taken))
    }

    /// The lock is waited for detached only, or whoever stops all threads would
    /// wait as well.
    #[cfg(Py_GIL_DISABLED)]
    fn alone<'a>(&'a self, _py: Python<'a>) -> Option<(&'a mut T, RwLockWriteGuard<'a, ()>)> {
        // SAFETY: the lock excludes everybody.
        free(self.lock.try_write()).map(|lock| (unsafe { &mut *self.value.get() }, lock))
    }

    #[cfg(Py_GIL_DISABLED)]
    fn beside<'a>(&'a self, _py: Python<'a>) -> Option<(&'a T, RwLockReadGuard<'a, ()>)> {
        // SAFETY: the lock excludes writers.
        free(self.lock.try_read()).map(|lock| (unsafe { &*self.value.get() }, lock))
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

/// A value that a call is at under the GIL, until this is dropped.
#[cfg(not(Py_GIL_DISABLED))]
struct Taken<'a>(&'a AtomicBool);

#[cfg(not(Py_GIL_DISABLED))]
impl Drop for Taken<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// The lock, unless somebody has it.
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
/// `shared` returns the same value at every call, wherever the holder was moved
/// in between.
pub(crate) unsafe trait Holds {
    type Value;

    fn shared(&self) -> &Shared<Self::Value>;
}

// SAFETY: a reference does not change.
unsafe impl<T> Holds for &Shared<T> {
    type Value = T;

    fn shared(&self) -> &Shared<T> {
        self
    }
}

/// The right to take the lock of a [`Shared`] value.
pub(crate) struct Mark<H: Holds>(H);

impl<H: Holds> Mark<H> {
    /// Announces that the value will be reached without the GIL, as long as the
    /// mark lives. Its locks are waited for without the GIL only, or two
    /// threads could wait for each other.
    ///
    /// # Panics
    /// If a call is at the value under the GIL; see [`Shared::with`].
    pub(crate) fn on(holder: H, _py: Python<'_>) -> Self {
        #[cfg(not(Py_GIL_DISABLED))]
        assert!(
            !holder.shared().taken.load(Ordering::Relaxed),
            "work on a filter under the GIL called Python"
        );
        holder.shared().marks.fetch_add(1, Ordering::Relaxed);
        Self(holder)
    }

    /// Next to other readers.
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
        // SAFETY: the lock excludes writers, and the mark calls under the GIL.
        work(unsafe { &*shared.value.get() })
    }

    fn write_within<R>(&self, work: impl FnOnce(&mut H::Value) -> R) -> R {
        let shared = self.0.shared();
        let _lock = shared.lock.write().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the lock excludes everybody, and the mark calls under the GIL.
        work(unsafe { &mut *shared.value.get() })
    }
}

impl<H: Holds> Drop for Mark<H> {
    fn drop(&mut self) {
        self.0.shared().marks.fetch_sub(1, Ordering::Release);
    }
}

/// For locks behind which a panic leaves nothing half done.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
