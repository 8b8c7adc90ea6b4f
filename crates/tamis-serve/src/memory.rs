//! How memory goes back to the system.

/// From this size on, memory that is given back goes to the system at once.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE: i32 = 256 << 10;

/// Has the allocator give large memory back. By default it takes a body of some megabytes, once it
/// was given back, as a reason to keep others of that size for good.
pub(crate) fn give_back_what_is_large() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: a plain call that sets two numbers, before other threads are started.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
        // Each thread would else have memory of its own that is free and of no use to others.
        libc::mallopt(libc::M_ARENA_MAX, 4);
    }
}
