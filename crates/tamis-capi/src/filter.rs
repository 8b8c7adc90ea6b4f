//! The handle of a filter: making, opening and freeing it.

use crate::arguments::{array, known_kind, path};
use crate::options::{Given, Options};
use crate::secret::Secret;
use crate::status::{Failure, Status, handle};
use std::ffi::{c_char, c_int, c_void};
use tamis::{
    AnyFilter, Hasher, Moment, Open, Plan, Window,
    body::{Body, Map},
};

/// A filter of any kind.
pub enum Filter {
    /// On the heap, or a file shared with other writers.
    Owned(AnyFilter),
    /// A file mapped for reading.
    Mapped(AnyFilter<Map>),
    /// Bytes of the caller, who keeps them until the filter is freed.
    View(AnyFilter<&'static [u8]>),
}

/// Threads share handles, as tamis.h says.
const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<Filter>();
};

/// Runs the same expression wherever the filter lies.
macro_rules! each {
    ($filter:expr, $any:ident => $run:expr) => {
        match $filter {
            Filter::Owned($any) => $run,
            Filter::Mapped($any) => $run,
            Filter::View($any) => $run,
        }
    };
}
pub(crate) use each;

impl Filter {
    #[inline]
    pub(crate) fn hasher(&self) -> &Hasher {
        each!(self, any => any.hasher())
    }

    /// The filter to be changed.
    pub(crate) fn owned(&mut self) -> Result<&mut AnyFilter, Failure> {
        match self {
            Self::Owned(filter) => Ok(filter),
            _ => Err(read_only()),
        }
    }
}

/// When a key is seen or asked without a moment: now, but not before the window's latest key, which would be lost if
/// the clock was set back.
pub(crate) fn now<B: Body>(window: &Window<B>) -> Moment {
    Moment::now().max(window.latest().unwrap_or(Moment::MIN))
}

#[cold]
pub(crate) fn read_only() -> Failure {
    Failure::new(
        Status::TAMIS_ERROR_UNABLE,
        "the filter was opened for reading and can't be changed; load or share its file instead (tamis_load, tamis_share)",
    )
}

/// Opens a file that was open for writing when its machine went down. Keys that were added last may be missing from
/// it: the one case in which a filter can answer a false "no", so it must be asked for.
pub const TAMIS_ACCEPT_LOSS: u32 = 1;
/// Compares a mapped file with its checksum, which reads all of it. The other ways of opening always do.
pub const TAMIS_VERIFY: u32 = 2;

/// # Safety
/// The secret is NULL or valid.
unsafe fn open(secret: *const Secret, flags: u32) -> Result<Open, Failure> {
    if flags & !(TAMIS_ACCEPT_LOSS | TAMIS_VERIFY) != 0 {
        return Err(Failure::argument(format!(
            "flags: expected TAMIS_ACCEPT_LOSS and TAMIS_VERIFY or neither, got {flags:#x}"
        )));
    }
    let mut open = Open::new();
    // SAFETY: as above.
    if let Some(secret) = unsafe { secret.as_ref() } {
        open = open.key(secret.key());
    }
    if flags & TAMIS_ACCEPT_LOSS != 0 {
        open = open.accept_loss();
    }
    Ok(if flags & TAMIS_VERIFY != 0 {
        open.verify(true)
    } else {
        open
    })
}

/// An empty filter of a kind (tamis_kind) for this many keys at no more than this rate; TAMIS_BLOCKED is the usual one.
/// Finished lists are built: see tamis_list_new.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_new(
    kind: c_int,
    keys: u64,
    rate: f64,
    options: *const Options,
) -> *mut Filter {
    handle(|| {
        let kind = known_kind(kind)?;
        // SAFETY: callers keep what tamis.h says.
        let given = unsafe { Given::read(options)? };
        let plan = match given.window(kind, keys)? {
            Some(window) => Plan::window(&window, keys, rate)?,
            None => Plan::for_rate(kind, keys, rate)?,
        };
        Ok(Filter::Owned(AnyFilter::from_plan(&plan, given.hasher)?))
    })
}

/// Maps a file for reading: it costs the same for any size, and processes share the memory. The file must not be
/// shortened or written in place by others meanwhile; replacing it, as tamis_save does, is fine. The secret is NULL
/// unless it is kept apart from the file. Flags are TAMIS_ACCEPT_LOSS and TAMIS_VERIFY, or 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_open(
    file: *const c_char,
    secret: *const Secret,
    flags: u32,
) -> *mut Filter {
    handle(|| {
        // SAFETY: callers keep what tamis.h says.
        let (file, open) = unsafe { (path(file)?, open(secret, flags)?) };
        Ok(Filter::Mapped(open.open(file)?))
    })
}

/// Reads a whole file into memory, where it can be changed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_load(
    file: *const c_char,
    secret: *const Secret,
    flags: u32,
) -> *mut Filter {
    handle(|| {
        // SAFETY: callers keep what tamis.h says.
        let (file, open) = unsafe { (path(file)?, open(secret, flags)?) };
        Ok(Filter::Owned(open.load(file)?))
    })
}

/// Maps a file for adding keys, together with other processes that do the same. What was added survives the death of
/// this process, but not a crash of the machine: see tamis_sync.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_share(file: *const c_char, secret: *const Secret) -> *mut Filter {
    handle(|| {
        // SAFETY: callers keep what tamis.h says.
        let (file, open) = unsafe { (path(file)?, open(secret, 0)?) };
        Ok(Filter::Owned(open.share(file)?))
    })
}

/// Copies a filter out of the bytes of a file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_from_bytes(
    bytes: *const c_void,
    length: usize,
    secret: *const Secret,
    flags: u32,
) -> *mut Filter {
    handle(|| {
        // SAFETY: callers keep what tamis.h says.
        let bytes = unsafe { array(bytes.cast(), length, "bytes")? };
        // SAFETY: callers keep what tamis.h says.
        Ok(Filter::Owned(
            unsafe { open(secret, flags)? }.from_bytes(bytes)?,
        ))
    })
}

/// A filter in bytes that stay where they are, unchanged, until it is freed. They need not be aligned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_view(
    bytes: *const c_void,
    length: usize,
    secret: *const Secret,
    flags: u32,
) -> *mut Filter {
    handle(|| {
        // SAFETY: callers keep what tamis.h says.
        let bytes: &'static [u8] = unsafe { array(bytes.cast(), length, "bytes")? };
        // SAFETY: callers keep what tamis.h says.
        Ok(Filter::View(unsafe { open(secret, flags)? }.view(bytes)?))
    })
}

/// Frees a filter; NULL is fine. A shared file is written back: use tamis_close to hear of failures.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_free(filter: *mut Filter) {
    if !filter.is_null() {
        // SAFETY: it comes from `handle` and was not freed, which callers keep.
        let filter = unsafe { Box::from_raw(filter) };
        crate::status::status(|| {
            drop(filter);
            Ok(())
        });
    }
}
