//! A value that the GIL guards.

use std::cell::UnsafeCell;

use pyo3::prelude::*;

/// Reached by one thread at a time, the one that has the GIL: a call takes so
/// little time that an atomic instruction is worth saving.
pub(super) struct UnderGil<T>(UnsafeCell<T>);

// SAFETY: `with` and `with_both` need the GIL and keep it: their work is `Send`,
// so it has no `Python` to let go of or to run other code with. An interpreter
// without a GIL doesn't load modules of this ABI (abi3).
unsafe impl<T: Send> Sync for UnderGil<T> {}

impl<T> UnderGil<T> {
    pub(super) const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    #[inline]
    pub(super) fn with<R>(&self, _: Python<'_>, work: impl FnOnce(&mut T) -> R + Send) -> R {
        // SAFETY: this thread has the GIL and nothing in `work` can come back
        // here, so this is the only reference.
        work(unsafe { &mut *self.0.get() })
    }

    /// Two values at once; None if they are one.
    pub(super) fn with_both<R>(
        &self,
        other: &Self,
        _: Python<'_>,
        work: impl FnOnce(&mut T, &mut T) -> R + Send,
    ) -> Option<R> {
        if std::ptr::eq(self, other) {
            return None;
        }
        // SAFETY: as above, and they are two.
        Some(unsafe { work(&mut *self.0.get(), &mut *other.0.get()) })
    }
}
