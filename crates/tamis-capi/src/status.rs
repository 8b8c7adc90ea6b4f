//! What calls return, and the text of what went wrong.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How a call failed. Numbers of later versions may be others, but are always negative.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types, clippy::upper_case_acronyms)]
pub enum Status {
    /// It did not fail.
    TAMIS_OK = 0,
    /// An argument is out of its range, or NULL where it must not be.
    TAMIS_ERROR_ARGUMENT = -1,
    /// The operating system refused.
    TAMIS_ERROR_IO = -2,
    /// The bytes are not a valid filter.
    TAMIS_ERROR_CORRUPT = -3,
    /// This kind of filter, or one opened for reading, can't do that.
    TAMIS_ERROR_UNABLE = -4,
    /// Two filters differ and can't be combined.
    TAMIS_ERROR_UNLIKE = -5,
    /// A cuckoo filter has no room for the key; nothing was changed.
    TAMIS_ERROR_FULL = -6,
    /// The filter is keyed and its secret is not in the file.
    TAMIS_ERROR_KEY_NEEDED = -7,
    /// The secret is not the one the filter was made with.
    TAMIS_ERROR_WRONG_KEY = -8,
    /// The file was open for writing when its machine went down, so keys may be missing.
    TAMIS_ERROR_UNCLEAN = -9,
    /// Another process is writing the file.
    TAMIS_ERROR_BUSY = -10,
    /// Keys are on both lists of a cascade, or two different ones have the same hash.
    TAMIS_ERROR_CONTRADICTION = -11,
    /// Memory ran out.
    TAMIS_ERROR_MEMORY = -12,
    /// Any other error, such as a fault of this library.
    TAMIS_ERROR_OTHER = -13,
}

/// Why a call failed.
pub(crate) struct Failure {
    status: Status,
    text: String,
}

impl Failure {
    pub(crate) fn new(status: Status, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { status, text }
    }

    pub(crate) fn argument(text: impl Into<String>) -> Self {
        Self::new(Status::TAMIS_ERROR_ARGUMENT, text)
    }
}

impl From<tamis::Error> for Failure {
    #[cold]
    fn from(error: tamis::Error) -> Self {
        use tamis::Error as E;
        let status = match &error {
            E::Parameter { .. } => Status::TAMIS_ERROR_ARGUMENT,
            E::Io { source, .. } if source.kind() == std::io::ErrorKind::OutOfMemory => {
                Status::TAMIS_ERROR_MEMORY
            }
            E::Io { .. } => Status::TAMIS_ERROR_IO,
            E::Corrupt { .. } => Status::TAMIS_ERROR_CORRUPT,
            E::WrongKind { .. } | E::Unable { .. } | E::Feature { .. } => {
                Status::TAMIS_ERROR_UNABLE
            }
            E::Unlike { .. } => Status::TAMIS_ERROR_UNLIKE,
            E::Full { .. } | E::TooManyCopies { .. } => Status::TAMIS_ERROR_FULL,
            E::KeyNeeded => Status::TAMIS_ERROR_KEY_NEEDED,
            E::WrongKey => Status::TAMIS_ERROR_WRONG_KEY,
            E::Unclean { .. } => Status::TAMIS_ERROR_UNCLEAN,
            E::Busy { .. } => Status::TAMIS_ERROR_BUSY,
            E::Contradiction { .. } | E::Collision { .. } => Status::TAMIS_ERROR_CONTRADICTION,
            _ => Status::TAMIS_ERROR_OTHER,
        };
        Self::new(status, error.to_string())
    }
}

/// The last failure of this thread.
#[derive(Default)]
struct Last {
    status: c_int,
    /// None before the first.
    text: Option<CString>,
}

thread_local! {
    static LAST: RefCell<Last> = RefCell::default();
}

/// Runs what a function does, and remembers why it failed.
#[inline]
pub(crate) fn guard<T>(
    failed: impl FnOnce(c_int) -> T,
    run: impl FnOnce() -> Result<T, Failure>,
) -> T {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(result)) => result,
        Ok(Err(failure)) => failed(remember(failure)),
        Err(_) => failed(remember(Failure::new(
            Status::TAMIS_ERROR_OTHER,
            "a fault of the library, which has printed where; the filter may be unusable",
        ))),
    }
}

/// [`guard`] for functions that return a status.
#[inline]
pub(crate) fn status(run: impl FnOnce() -> Result<(), Failure>) -> c_int {
    guard(|status| status, || run().map(|()| 0))
}

/// [`guard`] for functions that return an answer.
#[inline]
pub(crate) fn answer(run: impl FnOnce() -> Result<bool, Failure>) -> c_int {
    guard(|status| status, || run().map(c_int::from))
}

/// [`guard`] for functions that return a new handle.
pub(crate) fn handle<T>(run: impl FnOnce() -> Result<T, Failure>) -> *mut T {
    guard(
        |_| std::ptr::null_mut(),
        || run().map(|handle| Box::into_raw(Box::new(handle))),
    )
}

#[cold]
fn remember(failure: Failure) -> c_int {
    let status = failure.status as c_int;
    let text = CString::new(failure.text.replace('\0', "\u{fffd}")).ok();
    // A thread that ends has no such memory any more; then only the status tells.
    let _ = LAST.try_with(|last| *last.borrow_mut() = Last { status, text });
    status
}

/// Why the last call of this thread that failed did so, for people, as UTF-8. The text stays until another call of this
/// thread fails. "" if none has failed.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_last_error() -> *const c_char {
    let text = LAST.try_with(|last| last.borrow().text.as_deref().map(CStr::as_ptr));
    text.ok().flatten().unwrap_or(c"".as_ptr())
}

/// The tamis_status of the last call of this thread that failed; TAMIS_OK if none has.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_last_status() -> c_int {
    LAST.try_with(|last| last.borrow().status).unwrap_or(0)
}

/// The version of this interface. It changes only when programs that were compiled for an older one must be compiled
/// again: compare it with TAMIS_ABI_VERSION.
#[unsafe(no_mangle)]
pub extern "C" fn tamis_abi_version() -> u32 {
    TAMIS_ABI_VERSION
}

/// The version of the interface that this header describes.
pub const TAMIS_ABI_VERSION: u32 = 0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_status() {
        let last = || {
            // SAFETY: it is the text of this thread, and no call fails meanwhile.
            unsafe { CStr::from_ptr(tamis_last_error()) }
                .to_str()
                .unwrap()
        };
        assert_eq!((tamis_last_status(), last()), (0, ""));
        let other = Status::TAMIS_ERROR_OTHER as c_int;
        assert_eq!(status(|| panic!("as a fault would")), other);
        assert!(tamis_last_status() == other && last().contains("fault of the library"));
        assert!(handle::<u8>(|| panic!("as a fault would")).is_null());
        assert_eq!(answer(|| Err(Failure::argument("a\0b"))), -1);
        assert_eq!(last(), "a\u{fffd}b");
    }
}
