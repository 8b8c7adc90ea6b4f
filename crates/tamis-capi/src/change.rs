//! Adding, removing, combining.

use crate::arguments::{BLOCK, array, hash_u64, key_blocks, key_bytes, read, room, write};
use crate::filter::{Filter, each, now, read_only};
use crate::status::{Failure, answer, status};
use std::ffi::{c_int, c_void};
use std::ops::Range;
use tamis::{AnyFilter, Error, Hash, Hasher, KeyRule, Kind, Moment};

/// The error of a finished list, which other threads may be asking: it is not touched.
#[cold]
fn refusal(kind: Kind) -> Failure {
    Failure::from(Error::Unable {
        kind,
        what: "added to",
        instead: "build it again from all keys, or create a blocked filter",
    })
}

/// Adds a key, which `hash` hashes. To the kinds that threads may add to at once, without exclusive access.
///
/// # Safety
/// The filter is valid, and for other kinds nobody else uses it.
#[inline(always)]
unsafe fn insert(
    filter: *mut Filter,
    hash: impl FnOnce(&Hasher) -> Hash,
    at: Option<Moment>,
) -> Result<bool, Failure> {
    // SAFETY: as above; a shared reference is enough to see the kind.
    match unsafe { read(filter, "filter")? } {
        // The usual one first, and each hashes by itself: a call then looks once at what the filter is.
        Filter::Owned(AnyFilter::Blocked(f)) => Ok(f.insert(hash(f.hasher()))),
        Filter::Owned(AnyFilter::Bloom(f)) => Ok(f.insert(hash(f.hasher()))),
        Filter::Owned(AnyFilter::Counting(f)) => Ok(f.insert(hash(f.hasher()))),
        Filter::Owned(AnyFilter::Window(f)) => {
            Ok(f.insert(hash(f.hasher()), at.unwrap_or_else(|| now(f))))
        }
        Filter::Owned(AnyFilter::Cuckoo(_) | AnyFilter::Growing(_)) => {
            // SAFETY: as above.
            let filter = unsafe { write(filter, "filter")? }.owned()?;
            Ok(filter.insert(hash(filter.hasher()))?)
        }
        Filter::Owned(finished) => Err(refusal(finished.kind())),
        Filter::Mapped(_) | Filter::View(_) => Err(read_only()),
    }
}

/// Adds keys, as [`insert`] does.
///
/// # Safety
/// As for [`insert`].
unsafe fn insert_block<K: AsRef<[u8]>>(
    filter: *mut Filter,
    keys: &[K],
    at: Option<Moment>,
    new: &mut [bool],
) -> Result<(), Failure> {
    // SAFETY: as above; a shared reference is enough to see the kind.
    match unsafe { read(filter, "filter")? } {
        Filter::Owned(AnyFilter::Blocked(f)) => f.insert_many(keys, new),
        Filter::Owned(AnyFilter::Bloom(f)) => f.insert_many(keys, new),
        Filter::Owned(AnyFilter::Counting(f)) => f.insert_many(keys, new),
        Filter::Owned(AnyFilter::Window(f)) => {
            f.insert_many(keys, at.unwrap_or_else(|| now(f)), new);
        }
        Filter::Owned(AnyFilter::Cuckoo(_) | AnyFilter::Growing(_)) => {
            // SAFETY: as above.
            let filter = unsafe { write(filter, "filter")? };
            filter.owned()?.insert_many(keys, new)?;
        }
        Filter::Owned(finished) => return Err(refusal(finished.kind())),
        Filter::Mapped(_) | Filter::View(_) => return Err(read_only()),
    }
    Ok(())
}

/// Where answers go: to the caller, or nowhere.
struct News<'a> {
    wanted: Option<&'a mut [bool]>,
    unwanted: [bool; BLOCK],
}

impl<'a> News<'a> {
    /// # Safety
    /// As for [`room`].
    unsafe fn new(pointer: *mut bool, count: usize) -> Result<Self, Failure> {
        let unwanted = [false; BLOCK];
        let wanted = match pointer.is_null() {
            true => None,
            // SAFETY: as above.
            false => Some(unsafe { room(pointer, count)? }),
        };
        Ok(Self { wanted, unwanted })
    }

    fn of(&mut self, range: Range<usize>) -> &mut [bool] {
        match &mut self.wanted {
            Some(answers) => &mut answers[range],
            None => &mut self.unwanted[..range.len()],
        }
    }
}

/// Adds a key: 1 if it was new, which is always right; 0 if it seemed present. To a window it is added as of now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_insert(
    filter: *mut Filter,
    key: *const c_void,
    length: usize,
) -> c_int {
    answer(|| {
        // SAFETY: callers keep what tamis.h says.
        unsafe {
            let key = key_bytes(key, length)?;
            insert(filter, |hasher| hasher.hash(key), None)
        }
    })
}

/// tamis_insert for a filter that no other thread uses meanwhile, whatever its kind: several times as fast, because it
/// needs no atomic instructions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_insert_alone(
    filter: *mut Filter,
    key: *const c_void,
    length: usize,
) -> c_int {
    answer(|| {
        // SAFETY: callers keep what tamis.h says.
        let (filter, key) = unsafe { (write(filter, "filter")?, key_bytes(key, length)?) };
        match filter.owned()? {
            // The usual one, without a look at all the others.
            AnyFilter::Blocked(filter) => Ok(filter.insert_mut(key)),
            AnyFilter::Window(window) => {
                let (hash, at) = (window.hasher().hash(key), now(window));
                Ok(window.insert_mut(hash, at))
            }
            filter => Ok(filter.insert(key)?),
        }
    })
}

/// tamis_insert for an integer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_insert_u64(filter: *mut Filter, key: u64) -> c_int {
    answer(|| {
        // SAFETY: callers keep what tamis.h says.
        unsafe { insert(filter, |hasher| hash_u64(hasher, key), None) }
    })
}

/// tamis_insert at a moment, in microseconds since 1970, which only a window heeds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_insert_at(
    filter: *mut Filter,
    key: *const c_void,
    length: usize,
    micros: i64,
) -> c_int {
    answer(|| {
        // SAFETY: callers keep what tamis.h says.
        unsafe {
            let key = key_bytes(key, length)?;
            let at = Some(Moment::from_micros(micros));
            insert(filter, |hasher| hasher.hash(key), at)
        }
    })
}

/// # Safety
/// As for [`insert`], [`room`] and [`key_blocks`].
unsafe fn insert_many(
    filter: *mut Filter,
    keys: *const *const c_void,
    lengths: *const usize,
    count: usize,
    at: Option<Moment>,
    new: *mut bool,
) -> c_int {
    // SAFETY: as above.
    status(|| unsafe {
        read(filter, "filter")?;
        let mut news = News::new(new, count)?;
        key_blocks(keys, lengths, count, |keys, range| {
            insert_block(filter, keys, at, news.of(range))
        })
    })
}

/// Adds many keys: is_new[i] answers for keys[i], which has lengths[i] bytes. is_new may be NULL. When a filter refuses a
/// key, those before it are in.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_insert_many(
    filter: *mut Filter,
    keys: *const *const c_void,
    lengths: *const usize,
    count: usize,
    is_new: *mut bool,
) -> c_int {
    // SAFETY: callers keep what tamis.h says.
    unsafe { insert_many(filter, keys, lengths, count, None, is_new) }
}

/// tamis_insert_many at a moment, the same for all; see tamis_insert_at.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_insert_many_at(
    filter: *mut Filter,
    keys: *const *const c_void,
    lengths: *const usize,
    count: usize,
    micros: i64,
    is_new: *mut bool,
) -> c_int {
    let at = Some(Moment::from_micros(micros));
    // SAFETY: callers keep what tamis.h says.
    unsafe { insert_many(filter, keys, lengths, count, at, is_new) }
}

/// tamis_insert_many for a filter that no other thread uses meanwhile, whatever its kind: the fastest way to add.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_insert_many_alone(
    filter: *mut Filter,
    keys: *const *const c_void,
    lengths: *const usize,
    count: usize,
    is_new: *mut bool,
) -> c_int {
    // SAFETY: callers keep what tamis.h says.
    status(|| unsafe {
        let filter = write(filter, "filter")?.owned()?;
        let mut news = News::new(is_new, count)?;
        key_blocks(keys, lengths, count, |keys, range| match &mut *filter {
            AnyFilter::Window(window) => {
                let at = now(window);
                window.insert_many_mut(keys, at, news.of(range));
                Ok(())
            }
            filter => Ok(filter.insert_many(keys, news.of(range))?),
        })
    })
}

/// tamis_insert_many for integers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_insert_many_u64(
    filter: *mut Filter,
    keys: *const u64,
    count: usize,
    is_new: *mut bool,
) -> c_int {
    // SAFETY: callers keep what tamis.h says.
    status(|| unsafe {
        let keys = array(keys, count, "keys")?;
        let mut news = News::new(is_new, count)?;
        let hasher = *read(filter, "filter")?.hasher();
        if *hasher.rule() != KeyRule::EXACT {
            for (at, key) in keys.iter().enumerate() {
                let new = insert(filter, |hasher| hash_u64(hasher, *key), None)?;
                news.of(at..at + 1)[0] = new;
            }
            return Ok(());
        }
        let mut block = [[0; 8]; BLOCK];
        for (number, keys) in keys.chunks(BLOCK).enumerate() {
            for (bytes, key) in block.iter_mut().zip(keys) {
                *bytes = key.to_le_bytes();
            }
            let range = number * BLOCK..number * BLOCK + keys.len();
            insert_block(filter, &block[..keys.len()], None, news.of(range))?;
        }
        Ok(())
    })
}

/// Takes back one adding of a key, from a counting or cuckoo filter: 1 if it seemed present. Only for keys that were
/// added: removing others may make the filter deny keys that it has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_remove(
    filter: *mut Filter,
    key: *const c_void,
    length: usize,
) -> c_int {
    answer(|| {
        // SAFETY: callers keep what tamis.h says.
        let (filter, key) = unsafe { (write(filter, "filter")?, key_bytes(key, length)?) };
        Ok(filter.owned()?.remove(key)?)
    })
}

/// tamis_remove for an integer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_remove_u64(filter: *mut Filter, key: u64) -> c_int {
    answer(|| {
        // SAFETY: callers keep what tamis.h says.
        let filter = unsafe { write(filter, "filter")? };
        let (hash, mut removed) = (hash_u64(filter.hasher(), key), [false]);
        filter.owned()?.remove_many(&[hash], &mut removed)?;
        Ok(removed[0])
    })
}

/// Adds all keys of another filter. If the two differ in kind, shape or hash it fails, and changes nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_union(filter: *mut Filter, other: *const Filter) -> c_int {
    status(|| {
        if std::ptr::eq(filter, other) {
            return Err(Failure::argument(
                "other: expected another filter, got the same",
            ));
        }
        // SAFETY: callers keep what tamis.h says, and these are not the same.
        let (filter, other) = unsafe { (write(filter, "filter")?, read(other, "other")?) };
        let filter = filter.owned()?;
        each!(other, other => filter.union_with(other))?;
        Ok(())
    })
}
