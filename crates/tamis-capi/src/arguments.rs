//! What C passes, checked as far as it can be.

use crate::status::Failure;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use tamis::{Hash, Hasher, Kind as K};

/// The kinds of filter, by their numbers in files.
#[repr(C)]
#[allow(non_camel_case_types)]
pub enum Kind {
    /// The textbook Bloom filter.
    TAMIS_BLOOM = 1,
    /// Bloom bits of a key within one to four 64-byte lines: the default.
    TAMIS_BLOCKED = 2,
    /// Blocked with counters instead of bits: keys can be removed.
    TAMIS_COUNTING = 3,
    /// Fingerprints in two places: keys can be removed, and it is small.
    TAMIS_CUCKOO = 4,
    /// Layers of blocked filters, for an unknown number of keys.
    TAMIS_GROWING = 5,
    /// A finished list: fast to build and to ask.
    TAMIS_FUSE = 6,
    /// A finished list: the smallest.
    TAMIS_RIBBON = 7,
    /// A finished block list with an allow list, never wrong about a key on either.
    TAMIS_CASCADE = 8,
    /// For a stream: the keys of the last hours, or the last so many.
    TAMIS_WINDOW = 9,
}

pub(crate) fn known_kind(number: c_int) -> Result<K, Failure> {
    let known = |kind: &K| *kind as c_int == number;
    let kind = K::ALL.into_iter().find(known);
    kind.ok_or_else(|| Failure::argument(format!("kind: expected one of tamis_kind, got {number}")))
}

#[cold]
fn null(what: &str) -> Failure {
    Failure::argument(format!("{what}: expected a pointer, got NULL"))
}

/// What a pointer points to.
///
/// # Safety
/// If it is not NULL, it is valid for reading, for as long as the result is used.
#[inline]
pub(crate) unsafe fn read<'a, T>(pointer: *const T, what: &str) -> Result<&'a T, Failure> {
    // SAFETY: as above.
    unsafe { pointer.as_ref() }.ok_or_else(|| null(what))
}

/// What a pointer points to, to be changed.
///
/// # Safety
/// If it is not NULL, it is valid, and nobody else uses it for as long as the result is used.
#[inline]
pub(crate) unsafe fn write<'a, T>(pointer: *mut T, what: &str) -> Result<&'a mut T, Failure> {
    // SAFETY: as above.
    unsafe { pointer.as_mut() }.ok_or_else(|| null(what))
}

/// An array; NULL is one of no elements.
///
/// # Safety
/// If it is not NULL, there are this many elements, which nobody changes as long as the result is used.
#[inline]
pub(crate) unsafe fn array<'a, T>(
    pointer: *const T,
    count: usize,
    what: &str,
) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    check(pointer, count, what)?;
    // SAFETY: not NULL, not larger than an array can be, and the rest as above.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// Room for answers, all "no".
///
/// # Safety
/// If it is not NULL, there is room for this many, which nobody else uses as long as the result is used.
pub(crate) unsafe fn room<'a>(pointer: *mut bool, count: usize) -> Result<&'a mut [bool], Failure> {
    if count == 0 {
        return Ok(&mut []);
    }
    check(pointer, count, "answers")?;
    // SAFETY: not NULL, not larger than an array can be, and the rest as above. Whatever was there need not have been a
    // bool, so that it is written before there is a slice of it.
    unsafe {
        pointer.write_bytes(0, count);
        Ok(std::slice::from_raw_parts_mut(pointer, count))
    }
}

#[inline]
fn check<T>(pointer: *const T, count: usize, what: &str) -> Result<(), Failure> {
    if pointer.is_null() {
        return Err(null(what));
    }
    let most = isize::MAX as usize / size_of::<T>();
    if count > most || !pointer.is_aligned() {
        return Err(Failure::argument(format!(
            "{what}: expected at most {most} aligned elements, got {count} at {pointer:?}"
        )));
    }
    Ok(())
}

/// The bytes of a key.
///
/// # Safety
/// As for [`array`].
#[inline]
pub(crate) unsafe fn key_bytes<'a>(
    pointer: *const c_void,
    length: usize,
) -> Result<&'a [u8], Failure> {
    // SAFETY: as above.
    unsafe { array(pointer.cast(), length, "key") }
}

/// The hash of an integer, to which no rule applies.
#[inline]
pub(crate) fn hash_u64(hasher: &Hasher, key: u64) -> Hash {
    hasher.hash_exact(&key.to_le_bytes())
}

/// Keys that are asked or added at once.
pub(crate) const BLOCK: usize = 256;

/// Many keys, in blocks; and of the answers those of each block.
///
/// # Safety
/// As for [`array`], for both arrays and every key.
pub(crate) unsafe fn key_blocks(
    keys: *const *const c_void,
    lengths: *const usize,
    count: usize,
    mut each: impl FnMut(&[&[u8]], std::ops::Range<usize>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    // SAFETY: as above.
    let (keys, lengths) = unsafe {
        (
            array(keys, count, "keys")?,
            array(lengths, count, "lengths")?,
        )
    };
    // All are looked at before the first is used: then nothing was changed when one is wrong.
    for (pointer, length) in keys.iter().zip(lengths) {
        // SAFETY: as above.
        unsafe { key_bytes(*pointer, *length)? };
    }
    let mut block = [&[][..]; BLOCK];
    for start in (0..count).step_by(BLOCK) {
        let end = count.min(start + BLOCK);
        for at in start..end {
            // SAFETY: as above.
            block[at - start] = unsafe { key_bytes(keys[at], lengths[at])? };
        }
        each(&block[..end - start], start..end)?;
    }
    Ok(())
}

/// A path.
///
/// # Safety
/// If it is not NULL, it is text that ends with a NUL, which nobody changes as long as the result is used.
pub(crate) unsafe fn path<'a>(pointer: *const c_char) -> Result<&'a Path, Failure> {
    if pointer.is_null() {
        return Err(null("path"));
    }
    // SAFETY: as above.
    let text = unsafe { CStr::from_ptr(pointer) };
    #[cfg(unix)]
    return Ok(Path::new(
        <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(text.to_bytes()),
    ));
    #[cfg(not(unix))]
    return text
        .to_str()
        .map(Path::new)
        .map_err(|_| Failure::argument("path: expected UTF-8, got other bytes"));
}
