//! Filters as files and as bytes, and keys of several values.

use crate::arguments::{array, path, read, write};
use crate::filter::{Filter, each};
use crate::status::{Failure, status};
use std::ffi::{c_char, c_int, c_void};

/// Writes a filter to a file, which appears whole or not at all, and replaces one that is there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_save(filter: *const Filter, file: *const c_char) -> c_int {
    status(|| {
        // SAFETY: callers keep what tamis.h says.
        let (filter, file) = unsafe { (read(filter, "filter")?, path(file)?) };
        Ok(each!(filter, any => any.save(file))?)
    })
}

/// The bytes of the file that tamis_save would write; to be freed with tamis_bytes_free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_to_bytes(
    filter: *const Filter,
    bytes: *mut *mut u8,
    length: *mut usize,
) -> c_int {
    status(|| {
        // SAFETY: callers keep what tamis.h says.
        let (filter, bytes, length) = unsafe {
            (
                read(filter, "filter")?,
                write(bytes, "bytes")?,
                write(length, "length")?,
            )
        };
        let all = each!(filter, any => any.to_bytes()).into_boxed_slice();
        *length = all.len();
        *bytes = Box::into_raw(all).cast();
        Ok(())
    })
}

/// Frees what tamis_to_bytes or tamis_join gave, with its length; NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_bytes_free(bytes: *mut u8, length: usize) {
    if !bytes.is_null() {
        // SAFETY: they come from a boxed slice of this length and were not freed, which callers keep.
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(bytes, length)) });
    }
}

/// For a filter whose keys are made of several values (tamis_filter_info.values): the key that these values are, to be
/// freed with tamis_bytes_free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_join(
    filter: *const Filter,
    values: *const *const c_void,
    lengths: *const usize,
    count: usize,
    key: *mut *mut u8,
    key_length: *mut usize,
) -> c_int {
    status(|| {
        // SAFETY: callers keep what tamis.h says.
        let (filter, key, key_length) = unsafe {
            (
                read(filter, "filter")?,
                write(key, "key")?,
                write(key_length, "key_length")?,
            )
        };
        let rule = filter.hasher().rule();
        if count != rule.values() {
            return Err(Failure::argument(format!(
                "values: expected {}, got {count}",
                rule.values()
            )));
        }
        // SAFETY: callers keep what tamis.h says.
        let (values, lengths) = unsafe {
            (
                array(values, count, "values")?,
                array(lengths, count, "lengths")?,
            )
        };
        let values = values.iter().zip(lengths);
        let values = values
            // SAFETY: callers keep what tamis.h says.
            .map(|(value, length)| unsafe { array(value.cast::<u8>(), *length, "value") })
            .collect::<Result<Vec<_>, _>>()?;
        let joined = rule.join(&values).into_boxed_slice();
        *key_length = joined.len();
        *key = Box::into_raw(joined).cast();
        Ok(())
    })
}

/// For a filter that shares a file: waits until all that was added is on disk, where it survives a power loss.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_sync(filter: *const Filter) -> c_int {
    status(|| {
        // SAFETY: callers keep what tamis.h says.
        match unsafe { read(filter, "filter")? } {
            Filter::Owned(filter) => Ok(filter.sync()?),
            _ => Ok(()),
        }
    })
}

/// Frees a filter, as tamis_free does, also when it fails; and says whether a shared file could be written back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_close(filter: *mut Filter) -> c_int {
    status(|| {
        if filter.is_null() {
            return Ok(());
        }
        // SAFETY: it comes from `handle` and was not freed, which callers keep.
        match *unsafe { Box::from_raw(filter) } {
            Filter::Owned(filter) => Ok(filter.close()?),
            _ => Ok(()),
        }
    })
}
