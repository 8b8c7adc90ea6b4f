//! All memory of the module comes from the server, so that `used_memory`, `maxmemory` and defragmentation include it.

use super::api::function;
use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};
use valkey_module::raw;

/// The alignment that every server's allocator guarantees.
const NATURAL: usize = 16;

/// Bytes allocated and not yet freed.
static BYTES: AtomicUsize = AtomicUsize::new(0);

pub(super) fn bytes_in_use() -> usize {
    BYTES.load(Relaxed)
}

/// If more alignment is needed than the server gives (64 bytes for a cache line), a block is larger by the alignment,
/// and the word before the caller's address holds the start of the block.
struct ServerAlloc;

#[cfg(not(test))]
#[global_allocator]
static ALLOCATOR: ServerAlloc = ServerAlloc;

fn block_len(layout: Layout) -> usize {
    match layout.align() {
        ..=NATURAL => layout.size(),
        align => layout.size() + align,
    }
}

/// The first aligned address in a block that leaves room for a word.
fn place(block: *mut u8, align: usize) -> *mut u8 {
    let after_word = block as usize + size_of::<usize>();
    block.wrapping_add(after_word.next_multiple_of(align) - block as usize)
}

/// # Safety
/// `ptr` is an allocation of this allocator with that alignment.
unsafe fn block_of(ptr: *mut u8, align: usize) -> *mut u8 {
    match align {
        ..=NATURAL => ptr,
        // SAFETY: `alloc` wrote it there.
        _ => unsafe { ptr.cast::<*mut u8>().sub(1).read() },
    }
}

type Zeroed = unsafe extern "C" fn(usize, usize) -> *mut c_void;

/// `RedisModule_TryCalloc`, in Redis 7.4 and newer.
static TRY_CALLOC: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Smaller blocks are zeroed here, which is faster than probing for room and then asking for zeros.
const LARGE: usize = 64 << 10;

/// Looks up functions that not every server has.
pub(super) fn prepare() {
    TRY_CALLOC.store(function(c"RedisModule_TryCalloc"), Relaxed);
}

/// A block of the server's memory; NULL if there is none.
fn block(len: usize) -> *mut u8 {
    // SAFETY: pointers to the server's functions, set once when it loads the module. The first returns NULL where the
    // second would end the server.
    unsafe {
        match (raw::RedisModule_TryAlloc, raw::RedisModule_Alloc) {
            (Some(alloc), _) | (None, Some(alloc)) => alloc(len).cast(),
            (None, None) => std::process::abort(),
        }
    }
}

/// A block of zeros; NULL if there is no memory. Fresh pages from the system are already zero, so they aren't touched.
fn zeroed_block(len: usize) -> *mut u8 {
    // SAFETY: as above; the function has this type if it exists.
    unsafe {
        let found = TRY_CALLOC.load(Relaxed);
        if !found.is_null() {
            return std::mem::transmute::<*mut c_void, Zeroed>(found)(1, len).cast();
        }
        let Some(calloc) = raw::RedisModule_Calloc else {
            std::process::abort()
        };
        // If this fails, the server ends, so we first check that there is room.
        let room = block(len);
        match (room.is_null(), raw::RedisModule_Free) {
            (false, Some(free)) => free(room.cast()),
            _ => return room,
        }
        calloc(1, len).cast()
    }
}

/// The caller's part of a block: an aligned address, and before it the start of the block.
///
/// # Safety
/// The block is NULL, or has `block_len(layout)` bytes.
unsafe fn placed(block: *mut u8, layout: Layout) -> *mut u8 {
    if block.is_null() {
        return block;
    }
    BYTES.fetch_add(layout.size(), Relaxed);
    if layout.align() <= NATURAL {
        return block;
    }
    let ptr = place(block, layout.align());
    // SAFETY: `place` left room for this word, aligned like the address.
    unsafe { ptr.cast::<*mut u8>().sub(1).write(block) };
    ptr
}

// SAFETY: blocks come from the server, large enough and aligned; NULL is passed on.
unsafe impl GlobalAlloc for ServerAlloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: a block of that length.
        unsafe { placed(block(block_len(layout)), layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.size() < LARGE {
            // SAFETY: fresh memory of that size, which may be written to.
            unsafe {
                let ptr = self.alloc(layout);
                if !ptr.is_null() {
                    ptr.write_bytes(0, layout.size());
                }
                return ptr;
            }
        }
        // SAFETY: a block of that length.
        unsafe { placed(zeroed_block(block_len(layout)), layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size(), Relaxed);
        // SAFETY: `ptr` comes from `alloc`, with this layout.
        unsafe {
            let block = block_of(ptr, layout.align());
            if let Some(free) = raw::RedisModule_Free {
                free(block.cast());
            }
        }
    }
}

/// The real size of an allocation.
///
/// # Safety
/// `ptr` is an allocation of this allocator with that alignment.
pub(super) unsafe fn size_of_allocation(ptr: *const u8, align: usize) -> usize {
    // SAFETY: as the caller promises.
    unsafe {
        let block = block_of(ptr.cast_mut(), align);
        raw::RedisModule_MallocSize.map_or(0, |size| size(block.cast()))
    }
}

/// Moves an allocation where the server prefers it; returns its new address.
///
/// # Safety
/// `ptr` is an allocation of this allocator with that layout, and nobody else
/// has it.
pub(super) unsafe fn defragment(
    context: *mut raw::RedisModuleDefragCtx,
    ptr: *mut u8,
    layout: Layout,
) -> *mut u8 {
    // SAFETY: as the caller promises.
    let (block, moved) = unsafe {
        let block = block_of(ptr, layout.align());
        let moved = raw::RedisModule_DefragAlloc.map(|alloc| alloc(context, block.cast()));
        (block, moved.unwrap_or(std::ptr::null_mut()).cast::<u8>())
    };
    if moved.is_null() {
        return ptr;
    }
    let was_at = ptr as usize - block as usize;
    if layout.align() <= NATURAL {
        return moved;
    }
    let new = place(moved, layout.align());
    // SAFETY: both lie within the block, which has room for the alignment.
    unsafe {
        std::ptr::copy(moved.add(was_at), new, layout.size());
        new.cast::<*mut u8>().sub(1).write(moved);
    }
    new
}
