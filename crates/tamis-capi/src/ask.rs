//! Asking.

use crate::arguments::{BLOCK, array, hash_u64, key_blocks, key_bytes, read, room};
use crate::filter::{Filter, each, now};
use crate::status::{answer, status};
use std::ffi::{c_int, c_void};
use std::ops::Range;
use tamis::{AnyFilter, Hash, Moment, body::Body};

/// Asks as of now, which only a window heeds.
#[inline(always)]
fn contains<B: Body>(filter: &AnyFilter<B>, hash: Hash) -> bool {
    match filter {
        AnyFilter::Window(window) => window.contains(hash, now(window)),
        other => other.contains(hash),
    }
}

/// Whether the key may have been added: 1, or 0, which is always right. A window is asked as of now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_contains(
    filter: *const Filter,
    key: *const c_void,
    length: usize,
) -> c_int {
    answer(|| {
        // SAFETY: callers keep what tamis.h says.
        let (filter, key) = unsafe { (read(filter, "filter")?, key_bytes(key, length)?) };
        Ok(each!(filter, any => contains(any, any.hasher().hash(key))))
    })
}

/// tamis_contains for an integer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_contains_u64(filter: *const Filter, key: u64) -> c_int {
    answer(|| {
        // SAFETY: callers keep what tamis.h says.
        let filter = unsafe { read(filter, "filter")? };
        let hash = hash_u64(filter.hasher(), key);
        Ok(each!(filter, any => contains(any, hash)))
    })
}

/// tamis_contains at a moment, in microseconds since 1970, which only a window heeds: whether the key was seen within
/// its span before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_contains_at(
    filter: *const Filter,
    key: *const c_void,
    length: usize,
    micros: i64,
) -> c_int {
    answer(|| {
        // SAFETY: callers keep what tamis.h says.
        let (filter, key) = unsafe { (read(filter, "filter")?, key_bytes(key, length)?) };
        let (hash, at) = (filter.hasher().hash(key), Moment::from_micros(micros));
        Ok(each!(filter, any => any.contains_at(hash, at)))
    })
}

/// Asks many keys: answers[i] for keys[i], which has lengths[i] bytes. Much faster than a loop on filters larger than
/// the processor's cache.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_contains_many(
    filter: *const Filter,
    keys: *const *const c_void,
    lengths: *const usize,
    count: usize,
    answers: *mut bool,
) -> c_int {
    status(|| {
        // SAFETY: callers keep what tamis.h says.
        let (filter, answers) = unsafe { (read(filter, "filter")?, room(answers, count)?) };
        let mut hashes = Vec::new();
        let ask = |keys: &[&[u8]], range: Range<usize>| {
            each!(filter, any => match any {
                AnyFilter::Window(window) => {
                    hashes.clear();
                    window.hasher().hash_all(keys.iter().copied(), &mut hashes);
                    window.contains_many(&hashes, now(window), &mut answers[range]);
                }
                other => other.contains_many(keys, &mut answers[range]),
            });
            Ok(())
        };
        // SAFETY: callers keep what tamis.h says.
        unsafe { key_blocks(keys, lengths, count, ask) }
    })
}

/// tamis_contains_many at a moment, the same for all; see tamis_contains_at.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_contains_many_at(
    filter: *const Filter,
    keys: *const *const c_void,
    lengths: *const usize,
    count: usize,
    micros: i64,
    answers: *mut bool,
) -> c_int {
    status(|| {
        // SAFETY: callers keep what tamis.h says.
        let (filter, answers) = unsafe { (read(filter, "filter")?, room(answers, count)?) };
        let at = Moment::from_micros(micros);
        let mut hashes = Vec::new();
        let ask = |keys: &[&[u8]], range: Range<usize>| {
            hashes.clear();
            filter.hasher().hash_all(keys.iter().copied(), &mut hashes);
            each!(filter, any => any.contains_many_at(&hashes, at, &mut answers[range]));
            Ok(())
        };
        // SAFETY: callers keep what tamis.h says.
        unsafe { key_blocks(keys, lengths, count, ask) }
    })
}

/// tamis_contains_many for integers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_contains_many_u64(
    filter: *const Filter,
    keys: *const u64,
    count: usize,
    answers: *mut bool,
) -> c_int {
    status(|| {
        // SAFETY: callers keep what tamis.h says.
        let (filter, keys) = unsafe { (read(filter, "filter")?, array(keys, count, "keys")?) };
        // SAFETY: callers keep what tamis.h says.
        let answers = unsafe { room(answers, count)? };
        let hasher = *filter.hasher();
        let mut hashes = [Hash::default(); BLOCK];
        for (keys, answers) in keys.chunks(BLOCK).zip(answers.chunks_mut(BLOCK)) {
            for (hash, key) in hashes.iter_mut().zip(keys) {
                *hash = hash_u64(&hasher, *key);
            }
            let hashes = &hashes[..keys.len()];
            each!(filter, any => match any {
                AnyFilter::Window(window) => window.contains_many(hashes, now(window), answers),
                other => other.contains_many(hashes, answers),
            });
        }
        Ok(())
    })
}
