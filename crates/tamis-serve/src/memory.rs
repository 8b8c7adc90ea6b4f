//! Returning memory to the system.

/// From this size on, freed memory returns to the system at once.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE: i32 = 256 << 10;

/// Makes the allocator return large memory. By default, once a body of some megabytes was freed, it keeps others of
/// that size for good.
pub(crate) fn give_back_what_is_large() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: a plain call that sets two numbers, before other threads are started.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
        // Otherwise each thread would have its own free memory, which others can't use.
        libc::mallopt(libc::M_ARENA_MAX, 4);
    }
}
