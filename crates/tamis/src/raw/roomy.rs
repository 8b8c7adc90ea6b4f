//! Allocation of large tables, on huge pages.

use crate::error::Error;

/// From this size on, the heap asks for transparent huge pages: without them, random access to a
/// large filter is mostly TLB misses.
pub(crate) const HUGE_FROM: u64 = 4 << 20;

/// Allocates room for this many values, on huge pages if it is large: building a filter is random
/// access to short-lived tables.
pub(crate) fn roomy<T>(capacity: usize) -> Result<Vec<T>, Error> {
    let mut values = Vec::new();
    reserve_roomy(&mut values, capacity)?;
    Ok(values)
}

/// Allocates room for this many more values, on huge pages if it is large.
pub(crate) fn reserve_roomy<T>(values: &mut Vec<T>, more: usize) -> Result<(), Error> {
    if values.capacity() - values.len() >= more {
        return Ok(());
    }
    values
        .try_reserve_exact(more)
        .map_err(|_| Error::no_memory(more as u64 * size_of::<T>() as u64))?;
    #[cfg(all(target_os = "linux", feature = "files", not(miri)))]
    if values.capacity() as u64 * size_of::<T>() as u64 >= HUGE_FROM {
        const PAGE: usize = 4096;
        let start = (values.as_ptr() as usize).next_multiple_of(PAGE);
        let end = values.as_ptr() as usize + values.capacity() * size_of::<T>();
        // SAFETY: the pages lie within the allocation, and the advice changes
        // no content. Without huge pages building is only slower.
        unsafe {
            libc::madvise(
                start as *mut _,
                (end - start) / PAGE * PAGE,
                libc::MADV_HUGEPAGE,
            );
        }
    }
    Ok(())
}
