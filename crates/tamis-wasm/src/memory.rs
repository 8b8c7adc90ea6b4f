//! Memory that both sides of the border use.

use std::alloc::{Layout, alloc, dealloc};
use std::cell::RefCell;
use std::fmt::Display;

/// What a line of a filter is aligned to, and so everything that JavaScript allocates.
const ALIGNMENT: usize = 64;

/// `len` bytes, or 0 if there is no memory.
#[unsafe(no_mangle)]
pub extern "C" fn allocate(len: usize) -> *mut u8 {
    let Ok(layout) = Layout::from_size_align(len.max(1), ALIGNMENT) else {
        return std::ptr::null_mut();
    };
    // SAFETY: the layout has a size.
    unsafe { alloc(layout) }
}

/// Frees what [`allocate`] gave.
///
/// # Safety
/// - `at` is what `allocate(len)` returned, not 0.
/// - It has not been freed.
// Not for other targets, where a C library has a function of this name.
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
pub unsafe extern "C" fn free(at: *mut u8, len: usize) {
    // SAFETY: `allocate` made the same layout, so it is a valid one.
    unsafe {
        dealloc(at, Layout::from_size_align_unchecked(len.max(1), ALIGNMENT));
    }
}

/// The bytes that JavaScript has put somewhere.
///
/// # Safety
/// - `at` and `len` are within memory that JavaScript has allocated, or `len` is 0.
/// - Nothing writes there before the slice is gone.
pub unsafe fn given<'a>(at: *const u8, len: usize) -> &'a [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(at, len) }
}

thread_local! {
    static REPLY: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Leaves bytes for JavaScript, in place of those that were left before.
pub fn reply(bytes: impl Into<Vec<u8>>) {
    REPLY.with(|reply| *reply.borrow_mut() = bytes.into());
}

/// The result, or none, whose error is left for JavaScript, as text.
pub fn reply_error<T>(result: Result<T, impl Display>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            reply(error.to_string());
            None
        }
    }
}

/// A value that JavaScript holds from now on; 0 if there is none.
pub fn boxed<T>(value: Option<T>) -> *mut T {
    value.map_or(std::ptr::null_mut(), |value| Box::into_raw(Box::new(value)))
}

/// Where the bytes are that the last call left. Any other call may move them.
#[unsafe(no_mangle)]
pub extern "C" fn reply_at() -> *const u8 {
    REPLY.with(|reply| reply.borrow().as_ptr())
}

/// How many they are.
#[unsafe(no_mangle)]
pub extern "C" fn reply_length() -> usize {
    REPLY.with(|reply| reply.borrow().len())
}
