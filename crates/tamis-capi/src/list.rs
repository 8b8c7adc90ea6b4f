//! Finished lists.

use crate::arguments::{array, hash_u64, key_blocks, key_bytes, known_kind, write};
use crate::filter::Filter;
use crate::options::{Given, Options};
use crate::status::{Failure, handle, status};
use std::ffi::{c_int, c_void};
use tamis::{Error, Hash, Hasher, ListBuilder};

/// A list of which a filter will be built.
pub struct List {
    builder: ListBuilder,
    hasher: Hasher,
}

/// A finished list of a kind: TAMIS_FUSE, TAMIS_RIBBON or TAMIS_CASCADE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_list_new(
    kind: c_int,
    rate: f64,
    options: *const Options,
) -> *mut List {
    handle(|| {
        let kind = known_kind(kind)?;
        // SAFETY: callers keep what tamis.h says.
        let given = unsafe { Given::read(options)? };
        given.window(kind, 0)?;
        let hasher = given.hasher;
        let mut builder = ListBuilder::with_hasher(kind, rate, hasher)?.both(given.both);
        if let Some(memory) = given.memory {
            builder = builder.memory(memory);
        }
        Ok(List { builder, hasher })
    })
}

/// Adds a key to the list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_list_add(
    list: *mut List,
    key: *const c_void,
    length: usize,
) -> c_int {
    status(|| {
        // SAFETY: callers keep what tamis.h says.
        let (list, key) = unsafe { (write(list, "list")?, key_bytes(key, length)?) };
        Ok(list.builder.add(key)?)
    })
}

/// Adds many keys to the list; keys[i] has lengths[i] bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_list_add_many(
    list: *mut List,
    keys: *const *const c_void,
    lengths: *const usize,
    count: usize,
) -> c_int {
    status(|| {
        // SAFETY: callers keep what tamis.h says.
        let list = unsafe { write(list, "list")? };
        let add = |keys: &[&[u8]], _| Ok(list.builder.add_all(keys)?);
        // SAFETY: callers keep what tamis.h says.
        unsafe { key_blocks(keys, lengths, count, add) }
    })
}

/// Adds many integers to the list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_list_add_many_u64(
    list: *mut List,
    keys: *const u64,
    count: usize,
) -> c_int {
    status(|| {
        // SAFETY: callers keep what tamis.h says.
        let (list, keys) = unsafe { (write(list, "list")?, array(keys, count, "keys")?) };
        integers(
            list,
            keys,
            ListBuilder::add_checked,
            ListBuilder::add_hashes,
        )
    })
}

/// Adds a key to the allow list of a cascade, which then never takes it for present.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_list_allow(
    list: *mut List,
    key: *const c_void,
    length: usize,
) -> c_int {
    status(|| {
        // SAFETY: callers keep what tamis.h says.
        let (list, key) = unsafe { (write(list, "list")?, key_bytes(key, length)?) };
        Ok(list.builder.allow(key)?)
    })
}

/// Adds many keys to the allow list of a cascade; keys[i] has lengths[i] bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_list_allow_many(
    list: *mut List,
    keys: *const *const c_void,
    lengths: *const usize,
    count: usize,
) -> c_int {
    status(|| {
        // SAFETY: callers keep what tamis.h says.
        let list = unsafe { write(list, "list")? };
        let allow = |keys: &[&[u8]], _| Ok(list.builder.allow_all(keys)?);
        // SAFETY: callers keep what tamis.h says.
        unsafe { key_blocks(keys, lengths, count, allow) }
    })
}

/// Adds many integers to the allow list of a cascade.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_list_allow_many_u64(
    list: *mut List,
    keys: *const u64,
    count: usize,
) -> c_int {
    status(|| {
        // SAFETY: callers keep what tamis.h says.
        let (list, keys) = unsafe { (write(list, "list")?, array(keys, count, "keys")?) };
        integers(
            list,
            keys,
            ListBuilder::allow_checked,
            ListBuilder::allow_hashes,
        )
    })
}

/// Adds integers, with the second hash that a cascade needs to tell keys of the same hash apart.
fn integers(
    list: &mut List,
    keys: &[u64],
    checked: impl Fn(&mut ListBuilder, &[Hash], &[Hash]) -> Result<(), Error>,
    unchecked: impl Fn(&mut ListBuilder, &[Hash]) -> Result<(), Error>,
) -> Result<(), Failure> {
    for keys in keys.chunks(1 << 16) {
        let hashes = |hasher: &Hasher| -> Vec<Hash> {
            keys.iter().map(|key| hash_u64(hasher, *key)).collect()
        };
        let own = hashes(&list.hasher);
        match list.builder.checker() {
            Some(checker) => checked(&mut list.builder, &own, &hashes(&checker))?,
            None => unchecked(&mut list.builder, &own)?,
        }
    }
    Ok(())
}

/// The filter of all keys. Frees the list, also when it fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_list_build(list: *mut List) -> *mut Filter {
    handle(|| {
        if list.is_null() {
            return Err(Failure::argument("list: expected a pointer, got NULL"));
        }
        // SAFETY: it comes from `handle` and was not freed, which callers keep.
        let list = unsafe { Box::from_raw(list) };
        Ok(Filter::Owned(list.builder.build()?))
    })
}

/// Frees a list that was not built; NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_list_free(list: *mut List) {
    if !list.is_null() {
        // SAFETY: it comes from `handle` and was not freed, which callers keep.
        drop(unsafe { Box::from_raw(list) });
    }
}
