//! On which pages the peers' memory lies. Tamis asks the system for huge pages
//! where a filter is large; a peer can be given them, too, so that a comparison
//! is one of filters and not of pages.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// What is larger is asked for on huge pages, if at all.
const LARGE: usize = 4 << 20;
const HUGE_PAGE: usize = 2 << 20;

static HUGE: AtomicBool = AtomicBool::new(false);

#[global_allocator]
static ALLOCATOR: Pages = Pages;

/// Makes something whose large parts lie on huge pages.
pub fn on_huge_pages<T>(make: impl FnOnce() -> T) -> T {
    HUGE.store(true, Relaxed);
    let made = make();
    HUGE.store(false, Relaxed);
    made
}

struct Pages;

impl Pages {
    /// Advises on memory that nothing has been written to yet.
    fn advise(memory: *mut u8, len: usize) {
        if HUGE.load(Relaxed) && len >= LARGE && !memory.is_null() {
            let start = (memory as usize).next_multiple_of(HUGE_PAGE);
            let end = (memory as usize + len) / HUGE_PAGE * HUGE_PAGE;
            // SAFETY: whole pages of the allocation, and the advice changes no
            // content.
            unsafe { libc::madvise(start as *mut _, end - start, libc::MADV_HUGEPAGE) };
        }
    }
}

// SAFETY: the system's allocator, with advice.
unsafe impl GlobalAlloc for Pages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let memory = unsafe { System.alloc(layout) };
        Self::advise(memory, layout.size());
        memory
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // Large memory of the system's is zeroed pages, untouched; but for a
        // large alignment it would be written to before the advice.
        if layout.size() < LARGE || layout.align() <= 16 {
            // SAFETY: the caller's promise.
            let memory = unsafe { System.alloc_zeroed(layout) };
            Self::advise(memory, layout.size());
            return memory;
        }
        // SAFETY: the caller's promise; the memory has that size.
        unsafe {
            let memory = self.alloc(layout);
            if !memory.is_null() {
                memory.write_bytes(0, layout.size());
            }
            memory
        }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) };
    }
}
