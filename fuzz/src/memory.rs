//! An allocator that records the largest allocation, and can refuse large ones.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The system's allocator, watched.
pub(crate) struct Watched;

static LARGEST: AtomicUsize = AtomicUsize::new(0);
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Refuses allocations of more than 64 MiB from now on.
pub(crate) fn limit() {
    LIMIT.store(64 << 20, Relaxed);
}

/// A function's result, and the size of its largest allocation.
pub(crate) fn largest<T>(run: impl FnOnce() -> T) -> (T, usize) {
    LARGEST.store(0, Relaxed);
    let result = run();
    (result, LARGEST.load(Relaxed))
}

fn is_allowed(size: usize) -> bool {
    LARGEST.fetch_max(size, Relaxed);
    size <= LIMIT.load(Relaxed)
}

// SAFETY: every pointer is the system allocator's, or null, which callers must expect.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !is_allowed(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promises are the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !is_allowed(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promises are the same.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !is_allowed(size) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promises are the same.
        unsafe { System.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are the same.
        unsafe { System.dealloc(old, layout) }
    }
}
